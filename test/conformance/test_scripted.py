"""Cases in which timing or several connections matter. Their data files say what each stands for."""

import time

from support import client, testcase, upstream, wire
from support.limits import limit

OK_CHUNKED_OPEN = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n'


class Scripted(testcase.RingsideTest):
    """Named after the folder in `cases`."""

    def test_A73_expect_final_without_100(self) -> None:
        refusal = b'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno'

        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(refusal)
            connection.drain()

        ringside, _ = self.start_pair(answer, early=True)
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Content-Length: 50000\r\nExpect: 100-continue\r\n')
            response = peer.read_response()
        self.assertEqual(response.status, 401)
        self.assertEqual(response.body, b'no')

    def test_A75_stale_keepalive_idle_fin(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(upstream.OK)
            connection.shutdown_write()
            connection.drain()

        ringside, server = self.start_pair(answer)
        for number in range(1, 11):
            for method, body in (('GET', b''), ('POST', b'x')):
                response = client.request(ringside.port, f'/{number}', method=method, body=body)
                self.assertEqual(response.status, 200, f'{method} number {number}')
                # The proxy's FIN shows that it has taken the connection out of its pool.
                self.assertTrue(server.wait_for(lambda s: all(c.ended_by for c in s.connections)),
                                'the proxy keeps a connection that its server has closed')
        self.assertEqual([len(c.requests) for c in server.connections], [1] * 20)

    def test_A76_stale_keepalive_race_get(self) -> None:
        # The second request on a connection ends it without an answer, as a server does whose idle
        # timer fires at that very moment.
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            if len(connection.requests) == 2:
                return False
            connection.send(upstream.OK)
            return True

        ringside, server = self.start_pair(answer)
        for number in range(6):
            self.assertEqual(client.request(ringside.port, f'/{number}').status, 200)
        seen = [request.target for request in server.requests]
        self.assertGreater(len(seen), 6, 'no connection was reused, so nothing was tested')

    def test_A76_stale_keepalive_race_post_is_not_repeated(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> bool:
            if len(connection.requests) == 2:
                return False
            connection.send(upstream.OK)
            return True

        ringside, server = self.start_pair(answer)
        statuses = [client.request(ringside.port, f'/{n}', method='POST', body=b'x').status
                    for n in range(6)]
        seen = [request.target for request in server.requests]
        self.assertEqual(len(seen), len(set(seen)), f'a POST was sent twice: {seen}')
        self.assertIn(502, statuses, 'no connection was reused, so nothing was tested')

    def test_A78_reject_then_lingering_close(self) -> None:
        ringside, server = self.start_pair()
        for _ in range(5):
            with client.Client(ringside.port) as peer:
                peer.send('POST / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\nContent-Length: 300000\r\n\r\n')
                for _ in range(30):
                    peer.send(b'x' * 10000)
                self.assertEqual(peer.read_response().status, 400)
                peer.read_to_end()
        self.assertEqual(server.received(), b'')

    def test_C01_client_abort_reaches_upstream(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(OK_CHUNKED_OPEN)
            connection.drain()

        ringside, server = self.start_pair(answer)
        before = ringside.sockets()
        for _ in range(5):
            peer = client.Client(ringside.port).get('/slow')
            while b'hello' not in peer.received:
                self.assertTrue(peer.read_some(5 * upstream.slowdown()), 'the body does not flow')
            peer.reset()
        self.assertTrue(server.wait_for(lambda s: all(c.ended_by for c in s.connections)),
                        'an upstream exchange goes on without its client')
        self.assertTrue(upstream.wait_until(lambda: ringside.sockets() <= before),
                        f'{ringside.sockets()} sockets, {before} before')
        self.assertEqual(len(server.connections), 5)

    @limit(60)
    def test_C02_slow_headers_bounded(self) -> None:
        ringside, server = self.start_pair(timeouts='client_header = "3s"')
        with client.Client(ringside.port) as peer:
            peer.send('GET / HTTP/1.1\r\nHost: a.test\r\n')
            deadline = time.monotonic() + 20 * upstream.slowdown()
            while peer.ended is None and time.monotonic() < deadline:
                peer.send('X-A: b\r\n')
                peer.read_some(0.3)
            self.assertIsNotNone(peer.ended, 'the connection is held for ever')
            statuses = [r.status for r in wire.parse_responses(bytes(peer.received), ended=True)[0]]
        self.assertEqual(statuses, [408])
        self.assertEqual(server.received(), b'')
