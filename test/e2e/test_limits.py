"""Limits and timeouts, each with its status."""

from support import client, nginx, testcase, upstream, wire
from support.limits import limit


class Sizes(testcase.RingsideTest):
    """Too much of something."""

    def status_for(self, ringside, data: bytes) -> int:
        with client.Client(ringside.port) as peer:
            peer.send(data)
            return peer.read_response().status

    def test_head_limits(self) -> None:
        ringside, server = self.start_pair(
            limits='request_line = "200B"\nheader_bytes = "2KiB"\nheader_count = 20\n')
        head = b'GET / HTTP/1.1\r\nHost: a.test\r\n'
        self.assertEqual(self.status_for(ringside, head + b'\r\n'), 200)
        self.assertEqual(self.status_for(ringside, b'GET /' + b'a' * 300 + head[5:] + b'\r\n'), 414)
        self.assertEqual(self.status_for(ringside, head + b'X: ' + b'a' * 3000 + b'\r\n\r\n'), 431)
        self.assertEqual(self.status_for(ringside, head + b'X: a\r\n' * 30 + b'\r\n'), 431)
        self.assertEqual(len(server.requests), 1)

    def test_body_limit(self) -> None:
        ringside, server = self.start_pair(limits='body_size = "1KiB"')
        head = b'POST / HTTP/1.1\r\nHost: a.test\r\n'
        self.assertEqual(self.status_for(ringside, head + b'Content-Length: 1024\r\n\r\n' + b'x' * 1024), 200)
        self.assertEqual(self.status_for(ringside, head + b'Content-Length: 1025\r\n\r\n' + b'x' * 1025), 413)
        chunk = b'400\r\n' + b'x' * 1024 + b'\r\n'
        self.assertEqual(
            self.status_for(ringside, head + b'Transfer-Encoding: chunked\r\n\r\n' + chunk * 2 + b'0\r\n\r\n'), 413)
        self.assertEqual(len(server.requests), 1)

    def test_requests_per_connection(self) -> None:
        ringside, _ = self.start_pair(limits='requests_per_connection = 3')
        with client.Client(ringside.port) as peer:
            for number in range(3):
                peer.get('/')
                response = peer.read_response()
                self.assertEqual(response.status, 200)
                self.assertEqual((response.get('connection') or '').lower() == 'close', number == 2)
            self.assertEqual(peer.read_to_end(), b'')

    def test_connections(self) -> None:
        ringside, _ = self.start_pair(limits='connections = 4')
        peers = [client.Client(ringside.port).get('/') for _ in range(4)]
        for peer in peers:
            self.assertEqual(peer.read_response().status, 200)
        extra = client.Client(ringside.port).get('/')
        extra.read_until_quiet(0.5, 0.5)
        self.assertNotIn(b' 200 ', bytes(extra.received))
        extra.close()
        for peer in peers:
            peer.close()
        self.assertTrue(upstream.wait_until(lambda: self.works(ringside)))

    def works(self, ringside) -> bool:
        try:
            return client.request(ringside.port).status == 200
        except (AssertionError, OSError):
            return False

    @limit(90)
    def test_C04_out_of_descriptors(self) -> None:
        ringside, _ = self.start_pair(descriptors=64, limits='connections = 1000')
        before = ringside.cpu_seconds()
        peers = []
        for _ in range(100):
            try:
                peers.append(client.Client(ringside.port))
            except OSError:
                break
        self.assertGreater(len(peers), 60)
        peers[0].read_until_quiet(5, 5)
        self.assertTrue(ringside.running())
        self.assertLess(ringside.cpu_seconds() - before, 1.0, 'accept spins')
        self.assertLess(len(ringside.lines), 30, 'the log is flooded')
        for peer in peers:
            peer.close()
        self.assertTrue(upstream.wait_until(lambda: self.works(ringside), 15), 'it does not recover')


class Times(testcase.RingsideTest):
    """Too slow."""

    def hang(self, connection: upstream.Connection, _: wire.Message) -> None:
        connection.drain()

    def test_client_header(self) -> None:
        ringside, server = self.start_pair(timeouts='client_header = "300ms"')
        with client.Client(ringside.port) as peer:
            peer.send('GET / HTTP/1.1\r\nHost:')
            self.assertEqual(peer.read_response().status, 408)
            peer.read_to_end()
        self.assertEqual(server.connections, [])

    def test_keep_alive_ends_in_silence(self) -> None:
        ringside, _ = self.start_pair(timeouts='keep_alive = "300ms"')
        with client.Client(ringside.port) as peer:
            peer.get('/')
            peer.read_response()
            self.assertEqual(peer.read_to_end(), b'')
        self.assertEqual(len(ringside.access_lines()), 1)

    def test_body_idle_of_the_client(self) -> None:
        ringside, server = self.start_pair(timeouts='body_idle = "300ms"')
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Content-Length: 100\r\n').send('some')
            self.assertEqual(peer.read_response().status, 408)
        self.assertEqual(server.requests, [])

    def test_body_idle_of_the_server_cuts(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome')
            connection.drain()

        ringside, _ = self.start_pair(answer, upstream='body_idle_timeout = "300ms"')
        with client.Client(ringside.port) as peer:
            peer.get('/')
            self.assertTrue(peer.read_to_end().endswith(b'some'))

    def test_response_header(self) -> None:
        ringside, _ = self.start_pair(self.hang, upstream='response_header_timeout = "300ms"')
        self.assertEqual(client.request(ringside.port).status, 504)
        self.assertIn('upstream', ringside.access_records(1)[0]['end'])

    def test_a_long_upload_is_not_capped(self) -> None:
        ringside, server = self.start_pair(timeouts='body_idle = "1s"\nclient_header = "1s"')
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Content-Length: 8\r\n')
            for _ in range(8):
                peer.read_until_quiet(0.3, 0.3)
                peer.send('x')
            self.assertEqual(peer.read_response().status, 200)
        self.assertEqual(server.requests[0].body, b'x' * 8)

    def test_nobody_listens(self) -> None:
        ringside = self.start_proxy(f'127.0.0.1:{nginx.free_port()}')
        self.assertEqual(client.request(ringside.port, method='POST', body=b'x').status, 502)
