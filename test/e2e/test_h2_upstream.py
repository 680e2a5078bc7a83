"""HTTP/2 to servers."""

import os
import pathlib
import socket
import subprocess
import tempfile

from support import client, h2, h2_upstream, nginx, upstream
from support.h2_server import Connection, Request
from support.limits import limit

GRPC = ('content-type', 'application/grpc')
TRAILERS = ('te', 'trailers')


class Tools(h2_upstream.UpstreamTest):
    """What people use."""

    def start_nghttpd(self, *options: str) -> tuple[str, pathlib.Path]:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        port = nginx.free_port()
        process = subprocess.Popen(
            [self.need_program('nghttpd'), '-a', '127.0.0.1', '-d', folder.name, *options, str(port)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def listens() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', port)) == 0

        self.assertTrue(upstream.wait_until(listens))
        return f'127.0.0.1:{port}', pathlib.Path(folder.name)

    def curl(self, *arguments: str) -> str:
        done = subprocess.run([self.need_program('curl'), '-sS', *arguments], check=False, text=True,
                              capture_output=True, timeout=100, env={**os.environ, 'no_proxy': '*'})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @limit(120)
    def test_10_mb_both_ways(self) -> None:
        address, folder = self.start_nghttpd('--no-tls', '--echo-upload')
        ringside = self.start_before(address)
        body, back = folder / 'body', folder / 'back'
        body.write_bytes(os.urandom(10_000_000))
        for version in ('--http1.1', '--http2-prior-knowledge'):
            chunked = 'Transfer-Encoding: chunked' if version == '--http1.1' else 'Content-Length:'
            for more in ((), ('-H', chunked)):
                self.curl(version, '-T', str(body), '-X', 'POST', *more, '-o', str(back), ringside.url('/'))
                self.assertTrue(back.read_bytes() == body.read_bytes(), f'{version} {more}')
            self.curl(version, '-o', str(back), ringside.url('/body'))
            self.assertTrue(back.read_bytes() == body.read_bytes(), version)

    @limit(120)
    def test_h2load(self) -> None:
        address, folder = self.start_nghttpd('--no-tls')
        (folder / 'small').write_bytes(b'ok')
        ringside = self.start_before(address, access='off')
        for version in ('--h1', '--no-tls-proto=h2c'):
            out = subprocess.run(['h2load', version, '-n', '10000', '-c', '20', '-m', '20', ringside.url('/small')],
                                 check=True, text=True, capture_output=True, timeout=100).stdout
            self.assertIn('10000 succeeded, 0 failed, 0 errored, 0 timeout', out)
            self.assertIn('status codes: 10000 2xx, 0 3xx, 0 4xx, 0 5xx', out)


class Messages(h2_upstream.UpstreamTest):
    """What a server gets, and what becomes of its answer."""

    def test_the_head_of_a_request(self) -> None:
        ringside, server = self.start_both()
        self.assertEqual(client.request(ringside.port, '/a?b=c', headers='X-Case: Yes\r\nKeep-Alive: timeout=5\r\n'
                                        'TE: trailers\r\nConnection: TE\r\n').body, b'ok')
        request = server.requests[0]
        self.assertEqual(request.fields[:4], [(':method', 'GET'), (':scheme', 'http'),
                                              (':authority', 'a.test'), (':path', '/a?b=c')])
        self.assertEqual(request.get('x-case'), 'Yes')
        self.assertEqual(request.get('te'), 'trailers')
        for name in ('host', 'connection', 'keep-alive', 'transfer-encoding', 'upgrade'):
            self.assertIsNone(request.get(name), name)
        self.assertTrue(request.ended)
        self.assertEqual(request.body, b'')

    def test_an_upgrade_goes_on_without(self) -> None:
        ringside, server = self.start_both()
        self.assertEqual(client.request(ringside.port, headers='Connection: Upgrade\r\nUpgrade: websocket\r\n').status,
                         200)
        self.assertIsNone(server.requests[0].get('upgrade'))

    def test_bodies_and_trailers_of_both(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            connection.head(request)
            connection.body(request, request.body)
            connection.trailers(request, *[(name, value) for name, value in request.trailers or []])

        ringside, server = self.start_both(answer)
        with client.Client(ringside.port) as sender:
            sender.get('/', method='POST', headers='Transfer-Encoding: chunked\r\nTE: trailers\r\nConnection: TE\r\n')
            sender.send(b'3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n')
            message = sender.read_response(method='POST')
        self.assertEqual(message.body, b'abc')
        self.assertEqual([(n.lower(), v) for n, v in message.trailers], [('x-sum', '7')])
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/', TRAILERS), end=False)
        made.body(1, b'abc')
        made.ask(1, [('x-sum', '7')])
        self.assert_answered(made)
        self.assertEqual(made.data(1), b'abc')
        self.assertEqual(len(made.of(h2.HEADERS, 1)), 2, 'a head, and trailers')
        for request in server.requests:
            self.assertEqual((request.body, request.trailers), (b'abc', [('x-sum', '7')]))

    def test_trailers_behind_a_known_length(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            body = bytes(int(request.get(':path')[1:]))
            connection.head(request, ('content-length', str(len(body))))
            if body:
                connection.body(request, body)
            connection.trailers(request, ('x-sum', '7'))

        ringside, _ = self.start_both(answer)
        made = self.connect(ringside)
        for stream, size in ((1, 5), (3, 0), (5, 100_000)):
            made.ask(stream, h2.request('GET', f'/{size}', TRAILERS))
            made.open(stream, 1 << 20)
            made.open(0, 1 << 20)
            self.assert_answered(made, stream)
            self.assertEqual(len(made.data(stream)), size)
            frames = [f for f in made.frames if f.stream == stream and f.kind in (h2.HEADERS, h2.DATA)]
            self.assertEqual([f.kind for f in (frames[0], frames[-1])], [h2.HEADERS] * 2)
            self.assertGreater(len(frames), 1, 'a head, and trailers')
            self.assertEqual([bool(f.flags & h2.END_STREAM) for f in frames], [False] * (len(frames) - 1) + [True])
        # HTTP/1.1 has no place for them there.
        with client.Client(ringside.port) as peer:
            for size in (5, 0, 100_000, 5):
                message = peer.get(f'/{size}').read_response()
                self.assertEqual((message.get('content-length'), len(message.body)), (str(size), size))

    def test_a_length_without_trailers_takes_no_frame_more(self) -> None:
        ringside, _ = self.start_both()
        made = self.connect(ringside)
        made.ask(1, h2.request())
        self.assert_answered(made)
        self.assertEqual([(f.payload, f.flags & h2.END_STREAM) for f in made.of(h2.DATA, 1)], [(b'ok', h2.END_STREAM)])

    def test_a_length_is_told_and_kept(self) -> None:
        ringside, server = self.start_both()
        message = client.request(ringside.port, method='POST', body=b'12345')
        self.assertEqual((message.get('content-length'), message.body), ('2', b'ok'))
        self.assertEqual(server.requests[0].get('content-length'), '5')
        self.assertEqual(server.requests[0].body, b'12345')

    def test_answers_without_a_body(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            if request.get(':method') == 'HEAD':
                return connection.head(request, ('content-length', '9'), end=True)
            return connection.head(request, status=request.get(':path')[1:], end=True)

        ringside, _ = self.start_both(answer)
        for status in (200, 204, 304):
            self.assertEqual(client.request(ringside.port, f'/{status}').status, status)
        with client.Client(ringside.port) as made:
            self.assertEqual(made.get('/', method='HEAD').read_response(method='HEAD').get('content-length'), '9')
            self.assertEqual(made.get('/204').read_response().status, 204)

    def test_interim_answers(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            connection.head(request, ('link', '</a>'), status='103')
            connection.answer(request)

        ringside, _ = self.start_both(answer)
        made = self.connect(ringside)
        self.ask(made)
        self.assert_answered(made)
        self.assertEqual([h2.status_of(f.payload) for f in made.of(h2.HEADERS, 1)], [103, 200])

    def test_a_malformed_answer_is_the_servers_failure(self) -> None:
        heads = {
            '/none': [],
            '/text': [(':status', 'ok')],
            '/twice': [(':status', '200'), (':status', '200')],
            '/late': [('a', 'b'), (':status', '200')],
            '/request': [(':status', '200'), (':path', '/')],
            '/upper': [(':status', '200'), ('Upper', 'b')],
            '/connection': [(':status', '200'), ('connection', 'close')],
            '/101': [(':status', '101')],
            '/break': [(':status', '200'), ('a', 'b\r\nc: d')],
            '/length': [(':status', '200'), ('content-length', '5')],
        }

        def answer(connection: Connection, request: Request) -> None:
            connection.send(h2.frame(h2.HEADERS, h2.END_HEADERS | h2.END_STREAM, request.stream,
                                     h2.block(heads[request.get(':path')])))

        ringside, server = self.start_both(answer)
        for path in heads:
            self.assertEqual(client.request(ringside.port, path).status, 502, path)
        self.assertEqual({record['end'] for record in ringside.access_records(len(heads))},
                         {'upstream/wait_response/bad_message'})
        self.assertEqual(len(server.connections), 1, 'one bad answer is no reason to end the others')

    def test_a_body_that_is_not_as_long_as_it_says(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            connection.head(request, ('content-length', '5'))
            connection.body(request, b'1234' if request.get(':path') == '/less' else b'123456', end=True)

        ringside, _ = self.start_both(answer)
        for path in ('/less', '/more'):
            made = self.connect(ringside)
            self.ask(made, 1, path)
            self.assertTrue(made.wait(lambda m=made: m.reset_code(1) is not None), path)


class Connections(h2_upstream.UpstreamTest):
    """How requests share them."""

    def test_requests_share_one(self) -> None:
        held: list[tuple[Connection, Request]] = []
        ringside, server = self.start_both(lambda *what: held.append(what))
        made = self.connect(ringside)
        for number in range(20):
            self.ask(made, 1 + 2 * number)
        self.assertTrue(upstream.wait_until(lambda: len(held) == 20))
        self.assertEqual(len(server.connections), 1)
        for connection, request in reversed(held):
            connection.answer(request)
        for number in range(20):
            self.assert_answered(made, 1 + 2 * number)
        self.assertEqual([record['reused'] for record in ringside.access_records(20)].count(False), 1)

    def test_another_before_the_first_is_full(self) -> None:
        held: list[tuple[Connection, Request]] = []
        ringside, server = self.start_both(lambda *what: held.append(what), lines='max_streams = 8')
        made = self.connect(ringside)
        for number in range(6):
            self.ask(made, 1 + 2 * number)
            self.assertTrue(upstream.wait_until(lambda n=number: len(held) == n + 1))
        self.assertEqual(len(server.connections), 1)
        self.ask(made, 13)
        self.assertTrue(upstream.wait_until(lambda: len(server.connections) == 2))
        self.assertEqual(len(server.connections[1].order), 0, 'it waits for who needs it')

    def test_the_servers_limit_counts(self) -> None:
        held: list[tuple[Connection, Request]] = []
        ringside, server = self.start_both(lambda *what: held.append(what), settings=h2.setting(3, 2))
        made = self.connect(ringside)
        self.ask(made, 1)  # its answer comes behind the server's SETTINGS
        self.assertTrue(upstream.wait_until(lambda: len(held) == 1))
        for number in range(1, 6):
            self.ask(made, 1 + 2 * number)
        self.assertTrue(upstream.wait_until(lambda: len(held) == 6))
        self.assertEqual([len(connection.order) for connection in server.connections], [2, 2, 2])

    def test_without_a_place_requests_wait_for_a_stream(self) -> None:
        held: list[tuple[Connection, Request]] = []
        ringside, server = self.start_both(lambda *what: held.append(what), lines='max_streams = 2\nmax_connections = 1')
        made = self.connect(ringside)
        for number in range(5):
            self.ask(made, 1 + 2 * number)
        for number in range(5):
            self.assertTrue(upstream.wait_until(lambda n=number: len(held) > n))
            self.assertLessEqual(len(held), number + 2)
            connection, request = held[number]
            connection.answer(request)
        for number in range(5):
            self.assert_answered(made, 1 + 2 * number)
        self.assertEqual(len(server.connections), 1)

    def test_rings_give_up_a_place_for_another(self) -> None:
        ringside, server = self.start_both(lines='max_connections = 1', server='rings = 2')
        for _ in range(40):  # whichever ring a connection comes to
            self.assertEqual(client.request(ringside.port).status, 200)
        self.assertEqual(sum(not connection.ended for connection in server.connections), 1)

    def test_a_long_request_keeps_the_only_place(self) -> None:
        held: list[tuple[Connection, Request]] = []

        def answer(connection: Connection, request: Request) -> None:
            held.append((connection, request)) if request.get(':path') == '/long' else connection.answer(request)

        ringside, server = self.start_both(answer, lines='max_connections = 1\nqueue_timeout = "300ms"', server='rings = 2')
        self.assertTrue(ringside.wait_for_log(r'warn limits \[upstream.app\] max_connections = 1 '))
        made = self.connect(ringside)
        self.ask(made, path='/long')
        self.assertTrue(upstream.wait_until(lambda: held))
        # Its ring serves others beside it, until one comes to the other ring and asks for the place.
        served = next(n for n in range(100) if client.request(ringside.port).status == 503)
        self.assertEqual([client.request(ringside.port).status for _ in range(8)], [503] * 8)
        self.assertEqual(ringside.access_records(served + 9)[-1]['end'], 'ringside/queue/timed_out')
        held[0][0].answer(held[0][1])
        self.assert_answered(made)
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended))
        self.assertTrue(upstream.wait_until(lambda: client.request(ringside.port).status == 200))

    def test_idle_ones_are_closed_in_order(self) -> None:
        ringside, server = self.start_both(lines='idle_timeout = "50ms"')
        self.assertEqual(client.request(ringside.port).status, 200)
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended))
        self.assertEqual([f.number(4) for f in server.connections[0].of(h2.GOAWAY)], [h2.NO_ERROR])
        self.assertEqual(client.request(ringside.port).status, 200)


class Ends(h2_upstream.UpstreamTest):
    """Who ends what, and what is done again."""

    def test_goaway_loses_no_request(self) -> None:
        held: list[tuple[Connection, Request]] = []

        def answer(connection: Connection, request: Request) -> None:
            connection.answer(request) if connection.number else held.append((connection, request))

        ringside, server = self.start_both(answer)
        made = self.connect(ringside)
        for number in range(6):
            self.ask(made, 1 + 2 * number)
        self.assertTrue(upstream.wait_until(lambda: len(held) == 6))
        first = held[0][0]
        first.go_away(5)
        for number in range(3, 6):
            self.assert_answered(made, 1 + 2 * number)
        for connection, request in held[:3]:
            connection.answer(request)
        for number in range(3):
            self.assert_answered(made, 1 + 2 * number)
        self.assertTrue(upstream.wait_until(lambda: first.ended), 'nothing is left there')
        self.assertEqual(sorted(record['tries'] for record in ringside.access_records(6)), [1, 1, 1, 2, 2, 2])

    def test_what_is_refused_is_sent_again(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            if request.stream == 1:
                return connection.reset(request, h2.REFUSED_STREAM)
            return connection.answer(request)

        ringside, server = self.start_both(answer)
        self.assertEqual(client.request(ringside.port, method='POST').status, 200)
        self.assertEqual(ringside.access_records(1)[0]['tries'], 2)
        self.assertEqual(len(server.requests), 2)

    def test_a_body_is_sent_again(self) -> None:
        for size in (10, 60_000):
            def answer(connection: Connection, request: Request, size=size) -> None:
                if connection.number:
                    return connection.answer(request, request.body) if request.ended else None
                if len(request.body) == size and not request.ended:
                    connection.go_away(0)
                return None

            ringside, server = self.start_both(answer, tells_all=True)
            made = self.connect(ringside)
            made.ask(1, h2.request('POST', '/'), end=False)
            made.body(1, b'x' * size)
            self.assertTrue(server.wait_for(lambda s: len(s.connections) > 1 and s.connections[1].order))
            made.body(1, b'y' * 10, end=True)
            self.assert_answered(made)
            self.assertTrue(made.data(1) == b'x' * size + b'y' * 10)

    def test_a_body_that_is_not_kept(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            if len(request.body) > 65536:
                connection.reset(request, h2.REFUSED_STREAM)

        ringside, server = self.start_both(answer, tells_all=True)
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/'), end=False)
        made.body(1, bytes(65535))  # the window of the connection
        self.assertTrue(made.wait(lambda: made.of(h2.WINDOW_UPDATE, 0)))
        made.body(1, bytes(1000))
        self.assert_answered(made, 1, 502)
        self.assertEqual(len(server.requests), 1)

    def test_a_server_that_refuses_all(self) -> None:
        ringside, server = self.start_both(lambda c, r: c.reset(r, h2.REFUSED_STREAM))
        self.assertEqual(client.request(ringside.port).status, 502)
        record = ringside.access_records(1)[0]
        self.assertEqual((record['tries'], record['end']), (3, 'upstream/wait_response/refused'))
        self.assertEqual(len(server.requests), 3)

    def test_a_clients_reset_reaches_the_server(self) -> None:
        ringside, server = self.start_both(lambda c, r: None, early=True)
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/'), end=False)
        self.ask(made, 3)
        self.assertTrue(server.wait_for(lambda s: len(s.requests) == 2))
        made.reset(1)
        self.assertTrue(server.wait_for(lambda s: s.requests[0].reset == h2.CANCEL))
        self.assertIsNone(server.requests[1].reset)
        self.assertEqual(ringside.access_records(1)[0]['end'], 'client/send_request/reset')

    def test_an_h1_clients_end_reaches_the_server(self) -> None:
        ringside, server = self.start_both(lambda c, r: c.head(r), early=True)
        with client.Client(ringside.port) as made:
            made.send(b'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
            self.assertTrue(server.wait_for(lambda s: len(s.requests) == 1))
            upstream.close_with_reset(made.sock)
        self.assertTrue(server.wait_for(lambda s: s.requests[0].reset == h2.CANCEL))

    def test_a_servers_reset_reaches_the_client(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            connection.head(request)
            connection.body(request, b'some')
            connection.reset(request, h2.CANCEL)

        ringside, server = self.start_both(answer)
        made = self.connect(ringside)
        self.ask(made)
        self.assertTrue(made.wait(lambda: made.reset_code(1) is not None))
        self.assertFalse(made.complete(1))
        self.assertEqual(ringside.access_records(1)[0]['end'], 'upstream/response_body/reset')
        self.assertEqual(len(server.connections), 1)

    def test_a_reset_behind_a_whole_answer_is_none(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            connection.answer(request)
            connection.reset(request, h2.NO_ERROR)

        ringside, _ = self.start_both(answer, early=True)
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/'), end=False)
        self.assert_answered(made)
        self.assertEqual(made.data(1), b'ok')

    def test_a_connection_that_breaks_ends_its_requests(self) -> None:
        ringside, server = self.start_both(lambda c, r: c.close() if r.get(':path') == '/end' else None)
        made = self.connect(ringside)
        self.ask(made, 1)
        self.assertTrue(server.wait_for(lambda s: len(s.requests) == 1))
        self.ask(made, 3, '/end')
        self.assert_answered(made, 1, 502)
        self.assertTrue(made.wait(lambda: made.complete(3)))

    def test_time_outs_are_those_of_http_1(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            if request.get(':path') == '/body':
                connection.head(request)

        ringside, server = self.start_both(
            answer, lines='response_header_timeout = "200ms"\nbody_idle_timeout = "200ms"')
        self.assertEqual(client.request(ringside.port).status, 504)
        self.assertTrue(server.wait_for(lambda s: s.requests[0].reset == h2.CANCEL))
        made = self.connect(ringside)
        self.ask(made, 1, '/body')
        self.assertTrue(made.wait(lambda: made.reset_code(1) is not None))
        self.assertEqual([record['end'] for record in ringside.access_records(2)],
                         ['upstream/wait_response/timed_out', 'upstream/response_body/timed_out'])
        self.assertEqual(len(server.connections), 1)


class Grpc(h2_upstream.UpstreamTest):
    """As its clients and servers speak."""

    def test_both_ways_at_once(self) -> None:
        ringside, server = self.start_both(lambda c, r: c.head(r, GRPC), early=True)
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/s/m', GRPC, TRAILERS), end=False)
        self.assertTrue(made.wait(lambda: made.status(1) == 200), 'the head, before any message')
        request, connection = server.requests[0], server.connections[0]
        for number in range(5):
            message = b'\0\0\0\0\1%d' % number
            made.body(1, message)
            self.assertTrue(server.wait_for(lambda _, m=message: request.body.endswith(m)))
            connection.body(request, message)
            self.assertTrue(made.wait(lambda m=message: made.data(1).endswith(m)))
        made.body(1, b'', end=True)
        self.assertTrue(server.wait_for(lambda _: request.ended))
        connection.trailers(request, ('grpc-status', '0'))
        self.assert_answered(made)
        self.assertEqual(ringside.access_records(1)[0]['grpc_status'], '0')

    def test_trailers_only(self) -> None:
        ringside, _ = self.start_both(lambda c, r: c.head(r, GRPC, ('grpc-status', '12'), end=True))
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/s/m', GRPC, TRAILERS), end=False)
        made.body(1, b'\0\0\0\0\0', end=True)
        self.assert_answered(made)
        self.assertEqual(made.data(1), b'')
        self.assertEqual(ringside.access_records(1)[0]['grpc_status'], '12')

    def test_others_have_no_status(self) -> None:
        ringside, _ = self.start_both()
        self.assertEqual(client.request(ringside.port).status, 200)
        self.assertNotIn('grpc_status', ringside.access_records(1)[0])


class Flow(h2_upstream.UpstreamTest):
    """Nobody waits for another."""

    def test_a_response_that_nobody_takes_holds_up_no_other(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            if request.get(':path') == '/fast':
                return connection.answer(request, bytes(50_000))
            connection.head(request)
            return connection.fill(request)

        ringside, server = self.start_both(answer, limits='buffered_bytes = "64KiB"')
        made = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 0))
        made.open(0, 1 << 28)
        for number in range(8):
            self.ask(made, 1 + 2 * number, '/slow')
        self.assertTrue(server.wait_for(lambda s: len(s.requests) == 8 and all(r.sent for r in s.requests)))
        for number in range(8, 30):
            stream = 1 + 2 * number
            self.ask(made, stream, '/fast')
            made.open(stream, 1 << 20)
            self.assert_answered(made, stream)
        self.assertEqual(len(server.connections), 1)
        slow = server.requests[:8]
        # What a client that takes nothing lets the server send: one window, and what may wait in ringside.
        self.assertLessEqual(max(r.sent + r.window for r in slow), 4 * 65536)
        made.open(1, 1 << 20)
        before = slow[0].sent
        self.assertTrue(made.wait(lambda: len(made.data(1)) >= before))
        self.assertTrue(server.wait_for(lambda _: slow[0].window > 0), 'the window opens again')

    def test_a_request_that_the_server_does_not_take_waits(self) -> None:
        ringside, server = self.start_both(settings=h2.setting(h2.INITIAL_WINDOW, 0))
        self.assertEqual(client.request(ringside.port).status, 200)
        made = self.connect(ringside)
        made.ask(1, h2.request('POST', '/'), end=False)
        made.body(1, bytes(1000), end=True)
        self.assertTrue(server.wait_for(lambda s: len(s.requests) == 2))
        for number in range(1, 5):
            self.ask(made, 1 + 2 * number)
            self.assert_answered(made, 1 + 2 * number)
        request = server.requests[1]
        self.assertEqual(request.body, b'')
        server.connections[0].send(h2.frame(h2.WINDOW_UPDATE, 0, request.stream, h2.struct.pack('>I', 1000)))
        self.assert_answered(made)
        self.assertEqual(request.body, bytes(1000))
