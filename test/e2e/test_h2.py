"""HTTP/2 from clients."""

import hashlib
import os
import pathlib
import signal
import subprocess
import tempfile
import threading

from support import certificates, h2, nginx, proxy, testcase, upstream, wire
from support.limits import limit

MIB = 1 << 20
TEN_MB = 10_000_000


def echo(connection: upstream.Connection, request: wire.Message) -> None:
    connection.send(f'HTTP/1.1 200 OK\r\nContent-Length: {len(request.body)}\r\n\r\n'.encode() + request.body)


class H2Test(testcase.RingsideTest):
    """A proxy whose listener `web` speaks HTTP/2 too, in clear text, and `tls` over TLS."""

    def start_h2(self, server: str, **options: str) -> proxy.Ringside:
        shared = certificates.shared()
        extra = ('[listen.tls]\naddress = "127.0.0.1:0"\ntls = "h2"\nprotocols = ["h2", "http/1.1"]\n'
                 f'[tls.h2]\ncertificates = [{{ {shared.server.toml()} }}]\n')
        listen = '["127.0.0.1:0"]\nprotocols = ["h2", "http/1.1"]'
        return self.start_ringside(proxy.proxy_config(server, listen=listen, extra=extra, **options))

    def start_both(self, answer=upstream.OK, **options: str) -> tuple[proxy.Ringside, upstream.Upstream]:
        early = bool(options.pop('early', False))
        server = self.start_upstream(answer, early=early)
        return self.start_h2(server.address, **options), server

    def connect(self, ringside: proxy.Ringside, settings: bytes = b'') -> h2.Client:
        client = h2.Client(ringside.port, settings)
        self.addCleanup(client.sock.close)
        return client


class Tools(H2Test):
    """What people use."""

    def run_tool(self, *command: str) -> str:
        environment = {**os.environ, 'no_proxy': '*', 'CURL_CA_BUNDLE': str(certificates.shared().authority.ca),
                       'SSL_CERT_FILE': str(certificates.shared().authority.ca)}
        done = subprocess.run([self.need_program(command[0]), *command[1:]], check=False, text=True,
                              capture_output=True, timeout=100, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def urls(self, ringside: proxy.Ringside, path: str) -> list[tuple[str, str]]:
        """With curl's option for each."""
        return [('--http2-prior-knowledge', f'http://127.0.0.1:{ringside.port}{path}'),
                ('--http2', f'https://localhost:{ringside.port_of("tls")}{path}')]

    def test_curl(self) -> None:
        ringside, server = self.start_both()
        for option, url in self.urls(ringside, '/x'):
            out = self.run_tool('curl', '-sS', option, url, '-w', '%{http_version} %{http_code}')
            self.assertEqual(out, 'ok2 200')
        self.assertEqual(server.requests[0].get('host'), f'127.0.0.1:{ringside.port}')
        records = ringside.access_records(2)
        self.assertEqual([record['protocol'] for record in records], ['HTTP/2.0'] * 2)
        self.assertEqual([record['end'] for record in records], ['complete'] * 2)

    def test_http_1_1_is_served_beside_it(self) -> None:
        ringside, _ = self.start_both()
        for _, url in self.urls(ringside, '/x'):
            self.assertEqual(self.run_tool('curl', '-sS', '--http1.1', url, '-w', '%{http_version}'), 'ok1.1')

    @limit(120)
    def test_10_mb_both_ways(self) -> None:
        ringside, _ = self.start_both(echo)
        with tempfile.TemporaryDirectory() as folder:
            body = os.urandom(TEN_MB)
            up, back = pathlib.Path(folder, 'up'), pathlib.Path(folder, 'back')
            up.write_bytes(body)
            for option, url in self.urls(ringside, '/'):
                for more in ((), ('-H', 'Content-Length:')):
                    self.run_tool('curl', '-sS', option, '-T', str(up), '-X', 'POST', *more, '-o', str(back), url)
                    self.assertTrue(back.read_bytes() == body, f'{option} {more}')

    @limit(120)
    def test_h2load(self) -> None:
        server = nginx.Nginx()
        self.addCleanup(server.close)
        ringside = self.start_h2(server.address, access='off')
        for _, url in self.urls(ringside, '/small'):
            for clients, streams in ((10, 10), (10, 100)):
                out = self.run_tool('h2load', '-n', '20000', '-c', str(clients), '-m', str(streams), url)
                self.assertIn('20000 succeeded, 0 failed, 0 errored, 0 timeout', out)
                self.assertIn('status codes: 20000 2xx, 0 3xx, 0 4xx, 0 5xx', out)

    @limit(120)
    def test_h2load_with_bodies_both_ways(self) -> None:
        ringside, _ = self.start_both(echo)
        with tempfile.NamedTemporaryFile() as body:
            body.write(os.urandom(MIB))
            body.flush()
            out = self.run_tool('h2load', '-n', '60', '-c', '2', '-m', '10', '-d', body.name,
                                f'http://127.0.0.1:{ringside.port}/')
        self.assertIn('60 succeeded, 0 failed, 0 errored, 0 timeout', out)

    def test_trailers_come_behind_the_body(self) -> None:
        ringside, _ = self.start_both(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: grpc-status\r\n\r\n'
                                      b'2\r\nok\r\n0\r\ngrpc-status: 0\r\n\r\n')
        out = self.run_tool('nghttp', '-v', f'http://127.0.0.1:{ringside.port}/')
        self.assertRegex(out, 'grpc-status.*: 0')


class Streams(H2Test):
    """Many exchanges on one connection, each as if it were alone."""

    def test_a_stream_that_is_not_read_holds_up_no_other(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            size = MIB if request.target == '/slow' else 100_000
            connection.send(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode() + bytes(size))

        ringside, _ = self.start_both(answer)
        client = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 1000))
        client.open(0, 10 * MIB)
        client.ask(1, h2.request('GET', '/slow'))
        self.assertTrue(client.wait(lambda: len(client.data(1)) == 1000))
        for number in range(20):
            stream = 3 + 2 * number
            client.ask(stream, h2.request('GET', '/fast'))
            client.open(stream, MIB)
            self.assertTrue(client.wait(lambda s=stream: client.complete(s)))
            self.assertEqual(len(client.data(stream)), 100_000)
        self.assertEqual(len(client.data(1)), 1000, 'no byte beyond the window')
        client.open(1, MIB)
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(len(client.data(1)), MIB)

    def test_a_window_that_opens_by_small_steps(self) -> None:
        size = 200_000
        ringside, _ = self.start_both(
            f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode() + bytes(size))
        client = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 0))
        client.open(0, MIB)
        client.ask(1, h2.request())
        self.assertTrue(client.wait(lambda: client.status(1)))
        for step in range(size // 7001 + 1):
            self.assertEqual(len(client.data(1)), min(7001 * step, size))
            client.open(1, 7001)
            self.assertTrue(client.wait(lambda s=step: len(client.data(1)) == min(7001 * (s + 1), size)))
        self.assertTrue(client.wait(lambda: client.complete(1)))

    @limit(60)
    def test_an_upload_and_a_download_at_once(self) -> None:
        size = TEN_MB

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            if request.method == 'POST':
                digest = hashlib.sha256(request.body).hexdigest().encode()
                connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + digest)
                return
            connection.send(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode() + bytes(size))

        ringside, _ = self.start_both(answer)
        client = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 2 * size))
        client.open(0, 2 * size)
        client.ask(1, h2.request('GET', '/down'))
        client.ask(3, h2.request('POST', '/up', ('content-length', str(size))), end=False)
        body, sent, used = os.urandom(size), 0, 0

        def room() -> int:
            windows = [sum(f.number() for f in client.of(h2.WINDOW_UPDATE, stream)) for stream in (0, 3)]
            return min(65535 + windows[0], 256 * 1024 + windows[1]) - sent

        while sent < size:
            self.assertTrue(client.wait(lambda: room() > 0))
            part = min(room(), 16384, size - sent)
            sent += part
            client.body(3, body[sent - part:sent], end=sent == size)
            used += 1
        self.assertTrue(client.wait(lambda: client.complete(1) and client.complete(3)))
        self.assertEqual(len(client.data(1)), size)
        self.assertEqual(client.data(3), hashlib.sha256(body).hexdigest().encode())

    def test_clients_are_stopped_by_a_server_that_does_not_read(self) -> None:
        hold = threading.Event()
        self.addCleanup(hold.set)

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            if request.method == 'POST':
                hold.wait(60)
                connection.read_body(request)
            connection.send(upstream.OK)

        ringside, _ = self.start_both(answer, early='yes')
        client = self.connect(ringside)
        client.ask(1, h2.request('POST', '/', ('content-length', str(50 * MIB))), end=False)
        client.wait(lambda: client.of(h2.WINDOW_UPDATE))
        window = 256 * 1024
        client.body(1, bytes(window))
        client.ask(3, h2.request())
        self.assertTrue(client.wait(lambda: client.complete(3)), 'the other stream goes on')
        given = sum(f.number() for f in client.of(h2.WINDOW_UPDATE, 1))
        self.assertLess(given, 20 * MIB)

    def test_a_reset_reaches_the_server(self) -> None:
        gone = threading.Event()

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe')
            try:
                connection.drain()
            finally:
                gone.set()

        ringside, _ = self.start_both(answer)
        client = self.connect(ringside)
        client.ask(1, h2.request())
        self.assertTrue(client.wait(lambda: client.data(1) == b'he'))
        client.reset(1)
        self.assertTrue(gone.wait(20))
        self.assertEqual(ringside.access_records(1)[0]['end'], 'client/response_body/reset')
        client.send(h2.frame(h2.PING, 0, 0, b'12345678'))
        self.assertTrue(client.wait(lambda: client.of(h2.PING)), 'the connection lives')

    def test_a_response_that_the_server_cuts_is_reset(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe')
            return False

        ringside, _ = self.start_both(answer)
        client = self.connect(ringside)
        client.ask(1, h2.request())
        self.assertTrue(client.wait(lambda: client.reset_code(1) is not None))
        self.assertEqual(client.data(1), b'he')
        self.assertFalse(client.complete(1))
        self.assertEqual(client.reset_code(1), 2)

    def test_an_early_answer_ends_the_upload(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig')
            connection.shutdown_write()
            return False

        ringside, _ = self.start_both(answer, early='yes')
        client = self.connect(ringside)
        client.ask(1, h2.request('POST', '/', ('content-length', '4000000')), end=False)
        self.assertTrue(client.wait(lambda: client.complete(1)))
        for number in range(20):  # until the server's kernel says that nobody is there any more
            client.body(1, bytes(10_000))
            client.send(h2.frame(h2.PING, 0, 0, b'12345678'))
            self.assertTrue(client.wait(lambda n=number: len(client.of(h2.PING)) > n))
            if client.reset_code(1) is not None:
                break
        self.assertEqual(client.status(1), 413)
        self.assertTrue(client.complete(1))
        self.assertEqual(client.reset_code(1), h2.NO_ERROR)


class Strictness(H2Test):
    """The server sees no request that could be read in two ways."""

    def test_malformed_requests_are_reset_and_no_server_sees_them(self) -> None:
        ringside, server = self.start_both()
        client = self.connect(ringside)
        cases = [h2.request('GET', '/', field) for field in (
            ('transfer-encoding', 'chunked'), ('x-a', 'b\r\nx-injected: 1'), ('host', 'evil.test'), ('te', 'gzip'),
            ('X-A', 'b'), ('', 'v'), (':path', '/other'), ('content-length', '5'))]
        for number, fields in enumerate(cases):
            stream = 2 * number + 1
            client.ask(stream, fields)
            self.assertTrue(client.wait(lambda s=stream: client.reset_code(s) is not None), fields)
            self.assertEqual(client.reset_code(stream), h2.PROTOCOL_ERROR, fields)
        self.assertEqual(len(server.requests), 0)
        ends = {record['end'] for record in ringside.access_records(len(cases))}
        self.assertEqual(ends, {'client/read_head/bad_message'})

    def test_bodies_that_content_length_contradicts_are_no_requests(self) -> None:
        ringside, server = self.start_both()
        client = self.connect(ringside)
        smuggled = b'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
        for stream, length, body in ((1, 50, b'hello'), (3, 0, smuggled), (5, 4, b'hello')):
            client.ask(stream, h2.request('POST', '/', ('content-length', str(length))), end=False)
            client.body(stream, body, end=True)
            self.assertTrue(client.wait(lambda s=stream: client.reset_code(s) is not None))
            self.assertEqual(client.reset_code(stream), h2.PROTOCOL_ERROR)
        self.assertEqual(len(server.requests), 0)

    def test_a_head_that_is_too_large_gets_its_answer(self) -> None:
        ringside, _ = self.start_both(limits='header_bytes = "8KiB"')
        client = self.connect(ringside)
        client.ask(1, h2.request('GET', '/', ('x', 'y' * 9000)))
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(client.status(1), 431)

    def test_cookies_and_host_are_those_of_http_1_1(self) -> None:
        ringside, server = self.start_both()
        client = self.connect(ringside)
        client.ask(1, h2.request('GET', '/', ('cookie', 'a=1'), ('cookie', 'b=2')))
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(server.requests[0].get('cookie'), 'a=1; b=2')
        self.assertEqual(server.requests[0].get('host'), 'a.test')

    def test_request_trailers(self) -> None:
        ringside, server = self.start_both()
        client = self.connect(ringside)
        client.ask(1, h2.request('POST', '/'), end=False)
        client.body(1, b'hello')
        client.ask(1, [('x-sum', '5'), ('x-forwarded-for', '6.6.6.6')])
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(server.requests[0].body, b'hello')
        self.assertEqual(server.requests[0].trailers, [('x-sum', '5')])


class Defence(H2Test):
    """Who attacks is ended, and nobody else notices."""

    def test_rapid_resets(self) -> None:
        ringside, server = self.start_both()
        client = self.connect(ringside)
        for stream in range(1, 8000, 2):
            if client.refused:
                break
            client.send(h2.frame(h2.HEADERS, 5, stream, h2.block(h2.request())),
                        h2.frame(h2.RST_STREAM, 0, stream, b'\0\0\0\x08'))
        client.wait(lambda: client.end_code() is not None)
        self.assertEqual(client.end_code(), h2.ENHANCE_YOUR_CALM)
        self.assertLess(len(server.requests), 600)
        other = self.connect(ringside)
        other.ask(1, h2.request())
        self.assertTrue(other.wait(lambda: other.complete(1)))

    def test_pings_of_a_client_that_never_reads(self) -> None:
        ringside, _ = self.start_both()
        client = self.connect(ringside)
        for _ in range(2000):
            if client.refused:
                break
            client.send(h2.frame(h2.PING, 0, 0, b'12345678') * 100)
        self.assertTrue(client.wait(lambda: client.end_code() is not None), 'it may go on for ever')
        self.assertEqual(client.end_code(), h2.ENHANCE_YOUR_CALM)

    def test_a_head_in_endless_pieces(self) -> None:
        ringside, _ = self.start_both()
        client = self.connect(ringside)
        client.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, h2.block(h2.request())))
        for _ in range(2000):
            if client.refused:
                break
            client.send(h2.frame(h2.CONTINUATION, 0, 1) * 10)
        self.assertTrue(client.wait(lambda: client.end_code() is not None), 'it may go on for ever')
        self.assertNotEqual(client.end_code(), h2.NO_ERROR)

    def test_the_log_says_why_a_connection_was_ended(self) -> None:
        ringside, _ = self.start_both()
        for flood, reason in ((h2.frame(h2.PING, 0, 0, b'12345678') * 5000, 'too many frames'),
                              (h2.frame(h2.PING, 0, 1, b'12345678'), 'PROTOCOL_ERROR')):
            client = self.connect(ringside)
            client.send(flood)
            self.assertTrue(client.wait(lambda c=client: c.end_code() is not None))
            self.assertTrue(ringside.wait_for_log(f'client 127.0.0.1: {reason}'), ringside.log())

    def test_windows_that_stay_closed(self) -> None:
        size = MIB
        grace = int(500 * upstream.slowdown())
        ringside, _ = self.start_both(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode() + bytes(size),
                                      limits='body_rate = "100KiB/s"', timeouts=f'body_grace = "{grace}ms"')
        closed = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 0))
        closed.ask(1, h2.request())
        trickle = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 1))
        trickle.ask(1, h2.request())
        self.assertTrue(closed.wait(lambda: closed.reset_code(1) is not None))
        while trickle.reset_code(1) is None:  # a byte for each window, as fast as it goes
            before = len(trickle.data(1))
            trickle.open(1, 1)
            self.assertTrue(trickle.wait(
                lambda b=before: len(trickle.data(1)) > b or trickle.reset_code(1) is not None))
            if len(trickle.data(1)) > 100_000:
                self.fail('it is as fast as it must be')
        self.assertEqual(closed.data(1), b'')
        ends = [record['end'] for record in ringside.access_records(2)]
        self.assertEqual(ends, ['client/response_body/too_slow'] * 2)

    def test_more_streams_than_allowed_are_refused(self) -> None:
        hold = threading.Event()
        self.addCleanup(hold.set)

        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            hold.wait(60)
            connection.send(upstream.OK)

        ringside, _ = self.start_both(answer, limits='streams_per_connection = 3')
        client = self.connect(ringside)
        for stream in (1, 3, 5, 7):
            client.ask(stream, h2.request())
        self.assertTrue(client.wait(lambda: client.reset_code(7) is not None))
        self.assertEqual(client.reset_code(7), h2.REFUSED_STREAM)
        hold.set()
        self.assertTrue(client.wait(lambda: all(client.complete(s) for s in (1, 3, 5))))


class Life(H2Test):
    """How connections end."""

    def test_a_drain_finishes_every_stream(self) -> None:
        hold = threading.Event()
        self.addCleanup(hold.set)

        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            hold.wait(60)
            connection.send(upstream.OK)

        ringside, server = self.start_both(answer)
        client = self.connect(ringside)
        client.ask(1, h2.request())
        self.assertTrue(upstream.wait_until(lambda: server.requests))
        ringside.signal(signal.SIGTERM)
        self.assertTrue(client.wait(lambda: client.of(h2.GOAWAY)))
        self.assertEqual(client.of(h2.GOAWAY)[0].number(), 0x7fff_ffff)
        client.ask(3, h2.request())  # sent before the client knew
        self.assertTrue(client.wait(lambda: len(client.of(h2.GOAWAY)) == 2))
        self.assertEqual(client.of(h2.GOAWAY)[1].number(), 3)
        hold.set()
        self.assertTrue(client.wait(lambda: client.complete(1) and client.complete(3)))
        self.assertTrue(client.wait(lambda: client.ended))
        client.sock.close()
        self.assertEqual(ringside.wait(), 0)

    def test_an_idle_connection_is_told_and_ended(self) -> None:
        ringside, _ = self.start_both(timeouts='keep_alive = "300ms"')
        client = self.connect(ringside)
        client.ask(1, h2.request())
        self.assertTrue(client.wait(lambda: client.ended))
        self.assertTrue(client.complete(1))
        self.assertEqual(client.end_code(), h2.NO_ERROR)

    def test_a_connection_has_only_so_many_requests(self) -> None:
        ringside, _ = self.start_both(limits='requests_per_connection = 2')
        client = self.connect(ringside)
        for stream in (1, 3, 5):
            client.ask(stream, h2.request())
        self.assertTrue(client.wait(lambda: client.ended))
        self.assertEqual([client.complete(stream) for stream in (1, 3, 5)], [True, True, False])
        self.assertEqual(client.of(h2.GOAWAY)[-1].number(), 3)

    def test_a_head_that_never_ends(self) -> None:
        ringside, _ = self.start_both(timeouts='client_header = "300ms"')
        client = self.connect(ringside)
        self.assertTrue(client.wait(lambda: len(client.of(h2.SETTINGS)) == 2))
        client.send(h2.frame(h2.HEADERS, 1, 1, h2.block(h2.request())))
        self.assertTrue(client.wait(lambda: client.ended))
        self.assertEqual(client.end_code(), h2.ENHANCE_YOUR_CALM)

    def test_without_it_the_preface_is_refused(self) -> None:
        ringside, _ = self.start_pair()
        client = self.connect(ringside)
        client.wait(lambda: client.ended)
        self.assertTrue(client.pending.startswith(b'HTTP/1.1 505 '), client.pending)
