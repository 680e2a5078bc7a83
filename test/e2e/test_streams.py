"""Bodies and tunnels: large, slow, cut, and many at a time over few buffers."""

import hashlib
import threading

from support import client, testcase, upstream, wire
from support.limits import limit

MIB = 1 << 20


def pattern(seed: int, size: int) -> bytes:
    """Bytes that no other seed shares, so that a byte of a wrong stream is seen."""
    block = hashlib.sha256(str(seed).encode()).digest()
    return (block * (size // len(block) + 1))[:size]


class Bodies(testcase.RingsideTest):
    """Bytes arrive whole and in order, or visibly cut."""

    def test_echo_of_many_sizes(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            head = f'HTTP/1.1 200 OK\r\nContent-Length: {len(request.body)}\r\n\r\n'
            connection.send(head.encode() + request.body)

        ringside, _ = self.start_pair(answer)
        with client.Client(ringside.port) as peer:
            for size in (1, 2, 4095, 4096, 16383, 16384, 16385, 65536, 300000):
                body = pattern(size, size)
                sender = threading.Thread(target=peer.get('/', method='POST', headers=(
                    f'Content-Length: {size}\r\n')).send, args=(body,))
                sender.start()
                self.assertTrue(peer.read_response(seconds=20).body == body, f'{size} bytes')
                sender.join()

    def test_a_slow_reader_parks_its_server_only(self) -> None:
        piece, pieces = pattern(7, MIB + 1), 64  # one more than a MiB: a lost piece is no period
        size = len(piece) * pieces
        sent = []

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            if request.target == '/fast':
                connection.send(upstream.OK)
                return
            connection.send(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode())
            for at in range(pieces):
                connection.send(piece)
                sent.append(at)

        ringside, _ = self.start_pair(answer)
        slow = client.Client(ringside.port).get('/slow')
        self.addCleanup(slow.close)
        self.assertTrue(upstream.wait_until(lambda: sent))
        for _ in range(50):
            self.assertEqual(client.request(ringside.port, '/fast').status, 200)
        self.assertLess(len(sent), 40, 'ringside takes more from the server than the client reads')
        whole = hashlib.sha256()
        for _ in range(pieces):
            whole.update(piece)
        self.assertEqual(slow.read_large_body(size, seconds=60), whole.hexdigest())

    def test_server_killed_mid_body_cuts_visibly(self) -> None:
        for framing in ('Content-Length: 1000\r\n\r\npartial', 'Transfer-Encoding: chunked\r\n\r\n7\r\npartial\r\n'):
            def answer(connection: upstream.Connection, _: wire.Message, framing: str = framing) -> bool:
                connection.send(f'HTTP/1.1 200 OK\r\n{framing}'.encode())
                return False

            ringside, _ = self.start_pair(answer)
            with client.Client(ringside.port) as peer:
                peer.get('/')
                data = peer.read_to_end()
            self.assertIn(b'partial', data)
            with self.assertRaises(wire.Incomplete):
                wire.parse_response(data)
            record = ringside.access_records(1)[0]
            self.assertIn('upstream', record['end'])

    def test_client_that_leaves_mid_upload_ends_the_upstream_request(self) -> None:
        ringside, server = self.start_pair(lambda c, r: c.read_body(r), early=True)
        peer = client.Client(ringside.port)
        peer.get('/', method='POST', headers='Content-Length: 1000000\r\n').send(b'x' * 1000)
        self.assertTrue(server.wait_for(lambda s: s.received().endswith(b'xxx')))
        peer.reset()
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended_by), 'the upstream was not told')

    def test_client_that_said_close_and_leaves_ends_the_upstream_request(self) -> None:
        # Nothing is received from such a client at first, as most answers come at once.
        ringside, server = self.start_pair(lambda c, r: c.drain())
        peer = client.Client(ringside.port).get('/', headers='Connection: close\r\n')
        self.assertTrue(server.wait_for(lambda s: s.connections and s.connections[0].requests))
        peer.reset()
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended_by), 'the upstream was not told')

    def test_last_response_is_whole_and_ended_by_fin(self) -> None:
        for size in (0, 1, 16000, 20000, MIB):
            answer = b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % size + pattern(size, size)
            ringside, _ = self.start_pair(answer)
            for method in ('GET', 'POST'):
                with self.subTest(size=size, method=method), client.Client(ringside.port) as peer:
                    peer.get('/', method=method, headers='Connection: close\r\n')
                    self.assertTrue(peer.read_response().body == pattern(size, size))
                    peer.read_to_end()
                    self.assertEqual(peer.ended, 'fin')

    @limit(120)
    def test_C09_uploads_over_few_buffers(self) -> None:
        size = MIB

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            digest = hashlib.sha256(request.body).hexdigest().encode()
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + digest)

        # Where all 64 handshakes are computed on one slow CPU, the last one may have to wait for long.
        ringside, _ = self.start_pair(answer, server='buffers = 16\nbuffer_bytes = 1024',
                                      timeouts='client_header = "90s"')
        wrong: list[str] = []

        def upload(number: int) -> None:
            body = pattern(number, size)
            try:
                with client.Client(ringside.port) as peer:
                    peer.get('/', method='POST', headers=f'Content-Length: {size}\r\n')
                    peer.sock.settimeout(90)
                    peer.sock.sendall(body)
                    response = peer.read_response(seconds=60)
                if response.status != 200 or response.body.decode() != hashlib.sha256(body).hexdigest():
                    wrong.append(f'{number}: {response.start} {response.body!r}')
            except (AssertionError, OSError) as error:
                wrong.append(f'{number}: {error}')

        threads = [threading.Thread(target=upload, args=(n,)) for n in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_C10_buffers_come_back_from_closed_connections(self) -> None:
        ringside, _ = self.start_pair(server='buffers = 16\nbuffer_bytes = 1024')
        for _ in range(100):
            peer = client.Client(ringside.port)
            peer.send(b'G')
            peer.reset()
        self.assertEqual(client.request(ringside.port).status, 200)

    def test_C12_streams_do_not_mix(self) -> None:
        size = 8 * MIB

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            body = pattern(int(request.target[1:]), size)
            connection.send(f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode() + body)

        ringside, _ = self.start_pair(answer, server='buffers = 32\nbuffer_bytes = 4096')
        slow = client.Client(ringside.port).get('/1')
        self.addCleanup(slow.close)
        slow.read_some(5)
        for number in (2, 3, 4):
            with client.Client(ringside.port) as fast:
                fast.get(f'/{number}')
                self.assertTrue(fast.read_response(seconds=30).body == pattern(number, size))
        self.assertTrue(slow.read_response(seconds=30).body == pattern(1, size))


    def test_many_slow_readers_do_not_starve_the_others(self) -> None:
        size = 4 * MIB
        # One object for all: a hundred copies are more than a small machine has.
        large = f'HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n'.encode() + pattern(1, size)

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(upstream.OK if request.target == '/fast' else large)

        ringside, _ = self.start_pair(answer)
        slow = [client.Client(ringside.port).get('/slow') for _ in range(100)]
        for peer in slow:
            self.addCleanup(peer.close)
            self.assertTrue(peer.read_some(10 * upstream.slowdown()), 'a download does not begin')
        for _ in range(20):
            self.assertEqual(client.request(ringside.port, '/fast').status, 200)


SWITCH = b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n'
UPGRADE = 'Connection: Upgrade\r\nUpgrade: raw\r\n'


class Tunnels(testcase.RingsideTest):
    """Upgraded connections carry bytes as they are."""

    def test_echo_with_early_bytes_on_both_sides(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(SWITCH + b'early server ')
            while b'bye' not in connection.received:
                connection.send(connection.read_some())
            return False

        ringside, server = self.start_pair(answer)
        with client.Client(ringside.port) as peer:
            peer.get('/', headers=UPGRADE).send(b'early client ')
            self.assertEqual(peer.read_response().status, 101)
            peer.send(b'later bye')
            data = peer.read_to_end()
        self.assertTrue(data.startswith(b'early server '), data)
        self.assertTrue(server.received().endswith(b'early client later bye'), server.received())
        record = ringside.access_records(1)[0]
        self.assertEqual(record['status'], 101)

    def test_C22_both_directions_end_by_themselves(self) -> None:
        size = MIB
        got = bytearray()

        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(SWITCH + pattern(1, size))
            connection.shutdown_write()
            got.extend(connection.pending)
            while len(got) < size:
                got.extend(connection.read_some())
            return False

        ringside, _ = self.start_pair(answer)
        with client.Client(ringside.port) as peer:
            peer.get('/', headers=UPGRADE)
            self.assertEqual(peer.read_response().status, 101)
            data = peer.read_to_end()  # up to the server's FIN
            peer.send(pattern(2, size))
            self.assertTrue(upstream.wait_until(lambda: len(got) >= size), f'{len(got)} bytes arrived')
        self.assertTrue(data == pattern(1, size))
        self.assertTrue(bytes(got) == pattern(2, size))

    def test_a_client_that_leaves_ends_the_tunnel(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(SWITCH)
            connection.drain()

        ringside, server = self.start_pair(answer)
        peer = client.Client(ringside.port).get('/', headers=UPGRADE)
        self.assertEqual(peer.read_response().status, 101)
        peer.reset()
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended_by))
