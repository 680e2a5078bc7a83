"""Limits that hold while somebody attacks: the attacker is ended, everybody else is served."""

import json
import subprocess
import threading
import time

from support import client, testcase, upstream, wire
from support.limits import limit

BODY = b'x' * 100_000
# More than the kernel's buffers of a connection take, so that a client must read to get it.
LARGE = 32 * 1024 * 1024


class AttackTest(testcase.RingsideTest):
    """What the tests of this file share."""

    def served(self, ringside, **options: str) -> bool:
        """Whether a client that behaves gets its answer."""
        try:
            with client.Client(ringside.port, **options) as peer:
                return peer.get('/fine', headers='Connection: close\r\n').read_response().status == 200
        except (AssertionError, OSError):
            return False

    def assert_served(self, ringside, **options: str) -> None:
        self.assertTrue(self.served(ringside, **options), 'a client that behaves is not served')

    def ends(self, ringside) -> list[str]:
        return [json.loads(line)['end'] for line in ringside.access_lines()]

    def wait_for_ends(self, ringside, end: str, count: int) -> None:
        upstream.wait_until(lambda: self.ends(ringside).count(end) >= count)
        self.assertEqual(self.ends(ringside).count(end), count, self.ends(ringside))

    def answered(self, peer: client.Client) -> bool:
        """Whether the peer's request gets an answer, or False when its connection is closed instead."""
        while peer.ended is None and b'ok' not in peer.received:
            if not peer.read_some(5 * upstream.slowdown()) and peer.ended is None:
                self.fail('neither an answer nor an end')
        return b'ok' in peer.received


def large(connection: upstream.Connection, request: wire.Message) -> None:
    """Answers /large with LARGE bytes, and everything else as usual."""
    if request.target != '/large':
        connection.send(upstream.OK)
        return
    connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % LARGE)
    piece = b'x' * 65536
    for _ in range(LARGE // len(piece)):
        connection.send(piece)


def send_large(peer: client.Client, count: int) -> None:
    """Sends `count` bytes out of little memory."""
    piece = b'x' * 65536
    for at in range(0, count, len(piece)):
        peer.send(piece[: count - at])


def grace(milliseconds: int) -> str:
    """A grace that clients which behave keep on a slow machine too."""
    return f'body_grace = "{int(milliseconds * upstream.slowdown())}ms"'


class Slow(AttackTest):
    """Clients that hold a connection by doing next to nothing."""

    def drip(self, peers: list[client.Client], byte: bytes) -> None:
        """Keeps them busy, a byte at a time, until all were ended."""
        def open_ones() -> list[client.Client]:
            for peer in peers:
                if peer.ended is None:
                    peer.send(byte)
                    peer.read_some(0.01)
            return [peer for peer in peers if peer.ended is None]

        self.assertTrue(upstream.wait_until(lambda: not open_ones()), 'some are still open')

    def test_slow_headers(self) -> None:
        ringside, _ = self.start_pair(timeouts='client_header = "500ms"')
        peers = [client.Client(ringside.port).send('GET / HTTP/1.1\r\nX: ') for _ in range(20)]
        self.assert_served(ringside)
        self.drip(peers, b'a')
        for peer in peers:
            self.assertIn(b' 408 ', bytes(peer.received))
            peer.close()
        self.wait_for_ends(ringside, 'client/read_head/timed_out', len(peers))
        self.assert_served(ringside)

    def test_slow_request_bodies(self) -> None:
        ringside, server = self.start_pair(limits='body_rate = "100KiB/s"',
                                           timeouts='body_grace = "500ms"')
        head = f'Content-Length: {len(BODY)}\r\n'
        peers = [client.Client(ringside.port).get('/slow', method='POST', headers=head)
                 for _ in range(20)]
        self.assert_served(ringside)
        self.drip(peers, b'x')
        for peer in peers:
            self.assertIn(b' 408 ', bytes(peer.received))
            peer.close()
        self.wait_for_ends(ringside, 'client/send_request/too_slow', len(peers))
        self.assertEqual({request.target for request in server.requests}, {'/fine'})
        self.assert_served(ringside)

    def test_a_slow_request_body_after_the_response_began(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome')
            connection.read_body(request)

        ringside, _ = self.start_pair(answer, early=True, limits='body_rate = "100KiB/s"',
                                      timeouts='body_grace = "500ms"')
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers=f'Content-Length: {len(BODY)}\r\n')
            self.assertTrue(peer.read_to_end().endswith(b'some'))
        self.wait_for_ends(ringside, 'client/response_body/too_slow', 1)

    def slow_readers(self, mover: str) -> None:
        ringside, _ = self.start_pair(large, server=f'body_mover = "{mover}"',
                                      limits='body_rate = "4MiB/s"',
                                      timeouts='body_grace = "500ms"')
        peers = [client.Client(ringside.port, receive_bytes=4096).get('/large') for _ in range(4)]
        self.assert_served(ringside)
        self.wait_for_ends(ringside, 'client/response_body/too_slow', len(peers))
        for peer in peers:
            received = peer.read_to_end()
            self.assertEqual(peer.ended, 'reset', 'what is cut must not look whole')
            self.assertLess(len(received), LARGE)
            peer.close()
        self.assert_served(ringside)

    def test_slow_readers(self) -> None:
        self.slow_readers('bundle')

    def test_slow_readers_with_pipes(self) -> None:
        self.slow_readers('splice')

    def test_slow_readers_with_zero_copy(self) -> None:
        self.slow_readers('zero_copy')

    def test_a_slow_upstream_is_not_the_clients_fault(self) -> None:
        self.slow_upstream(LARGE)

    def test_nor_is_it_while_there_is_room_for_more(self) -> None:
        self.slow_upstream(LARGE - 1, limits='\nbuffered_bytes = "64MiB"')

    def slow_upstream(self, at_first: int, *, limits: str = '') -> None:
        """The client sends `at_first` of LARGE bytes, and the rest once the upstream reads."""
        gate = threading.Event()
        self.addCleanup(gate.set)

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            if request.target == '/fine':
                connection.send(upstream.OK)
                return
            gate.wait(30)
            connection.skip_body(request)
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nso')
            gate.clear()
            gate.wait(30)
            connection.send(b'me')

        ringside, _ = self.start_pair(answer, early=True, limits='body_rate = "1KiB/s"' + limits,
                                      timeouts=grace(500))
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers=f'Content-Length: {LARGE}\r\n')
            sender = threading.Thread(target=send_large, args=(peer, at_first))
            sender.start()
            # Others that began later are judged while this one still waits: so it was spared.
            self.judge_two(ringside)
            gate.set()
            sender.join()
            peer.send(b'x' * (LARGE - at_first))
            while not peer.received.endswith(b'so'):
                self.assertTrue(peer.read_some(10 * upstream.slowdown()), peer.received)
            self.judge_two(ringside)
            gate.set()
            self.assertEqual(peer.read_response().body, b'some')

    def test_who_waits_for_100_is_not_at_fault(self) -> None:
        gate = threading.Event()
        self.addCleanup(gate.set)

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            if request.target == '/':
                gate.wait(30)
                connection.send(b'HTTP/1.1 100 Continue\r\n\r\n')
            connection.read_body(request)
            connection.send(upstream.OK)

        ringside, _ = self.start_pair(answer, early=True, limits='body_rate = "1KiB/s"',
                                      timeouts=grace(500))
        with client.Client(ringside.port) as peer, client.Client(ringside.port) as judged:
            peer.get('/', method='POST', headers='Content-Length: 4\r\nExpect: 100-continue\r\n')
            self.judge(judged)
            gate.set()
            self.assertEqual(peer.read_response(interim=True).status, 100)
            self.assertEqual(peer.send('body').read_response().status, 200)

    def test_a_reader_that_keeps_the_rate_is_not_cut(self) -> None:
        # The kernel says that there is room only when a good part of what it holds is gone, so a
        # steady reader looks, to who sends, like one that does nothing for seconds.
        ringside, _ = self.start_pair(large, limits='body_rate = "10KiB/s"', timeouts=grace(1000))
        with client.Client(ringside.port, receive_bytes=65536) as peer:
            with client.Client(ringside.port, receive_bytes=4096) as judged:
                peer.get('/large')
                judged.get('/large')
                # It reads, slowly, for longer than the one who does not may.
                peer.sock.settimeout(5 * upstream.slowdown())
                while not self.ends(ringside):
                    peer.received += peer.sock.recv(16384)
                    time.sleep(0.05)
                self.assertEqual(self.ends(ringside), ['client/response_body/too_slow'])
            before = len(peer.received)
            while peer.ended is None and len(peer.received) < before + 8 * 1024 * 1024:
                peer.read_some(5 * upstream.slowdown())
            self.assertIsNone(peer.ended)

    def judge_two(self, ringside) -> None:
        """One after the other: what little another one has sent does not count any more then."""
        for _ in range(2):
            with client.Client(ringside.port) as peer:
                self.judge(peer)

    def judge(self, peer: client.Client) -> None:
        peer.get('/slow', method='POST', headers='Content-Length: 100\r\n')
        self.assertEqual(peer.read_response().status, 408)

    def test_a_long_upload_that_keeps_the_rate_is_not_capped(self) -> None:
        ringside, server = self.start_pair(limits='body_rate = "10B/s"',
                                           timeouts=grace(1000))
        with client.Client(ringside.port) as peer, client.Client(ringside.port) as judged:
            peer.get('/', method='POST', headers='Content-Length: 4000\r\n')
            judged.get('/', method='POST', headers='Content-Length: 4000\r\n')
            # It goes on for longer than the one who sends nothing may.
            count = 0
            while judged.ended is None and b' 408 ' not in judged.received and count < 3900:
                peer.send('x' * 20)
                count += 20
                judged.read_some(0.2)
            self.assertIn(b' 408 ', bytes(judged.received))
            peer.read_until_quiet(0.2, 0.2)
            peer.send('x' * (4000 - count))
            self.assertEqual(peer.read_response().status, 200)
        self.assertEqual([len(request.body) for request in server.requests], [4000])


class SlowHttpTest(AttackTest):
    """The usual tool for such attacks."""

    def attack(self, end: str, *mode: str) -> None:
        program = self.need_program('slowhttptest')
        ringside, _ = self.start_pair(large, limits='body_rate = "1MiB/s"',
                                      timeouts='client_header = "1s"\nbody_grace = "1s"')
        count = 20
        command = [program, *mode, '-u', ringside.url('/large'), '-c', f'{count}',
                   '-r', '100', '-i', '1', '-l', '60', '-v', '1']
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as tool:
            try:
                def over() -> bool:
                    self.assert_served(ringside)
                    return self.ends(ringside).count(end) >= count

                self.assertTrue(upstream.wait_until(over, 20), self.ends(ringside)[-50:])
            finally:
                tool.kill()
        self.assert_served(ringside)

    @limit(60)
    def test_slow_headers(self) -> None:
        self.attack('client/read_head/timed_out', '-H')

    @limit(60)
    def test_slow_bodies(self) -> None:
        self.attack('client/send_request/too_slow', '-B', '-s', '100000')

    @limit(60)
    def test_slow_reads(self) -> None:
        self.attack('client/response_body/too_slow', '-X', '-w', '512', '-y', '1024', '-z', '32')


class Crowds(AttackTest):
    """More connections than there may be."""

    def connect(self, ringside, count: int, **options: str) -> list[client.Client]:
        peers = []
        for _ in range(count):
            peer = client.Client(ringside.port, **options)
            self.addCleanup(peer.close)
            peers.append(peer.get('/'))
        return peers

    def test_connections_of_one_address(self) -> None:
        ringside, _ = self.start_pair(server='rings = 2', limits='connections_per_address = 8',
                                      forwarding='trusted_proxies = ["127.0.0.3"]')
        peers = self.connect(ringside, 8)
        self.assertTrue(all(self.answered(peer) for peer in peers))
        # Each ring would have room for some of these, were it alone.
        extra = self.connect(ringside, 16)
        self.assertFalse(any(self.answered(peer) for peer in extra))
        self.assertTrue(ringside.wait_for_log('127.0.0.1 has limits.connections_per_address'))
        self.assertLess(len(ringside.lines), 20, 'the log is flooded')
        # Others have their own count, and a trusted proxy has none.
        self.assert_served(ringside, source='127.0.0.2')
        proxied = self.connect(ringside, 16, source='127.0.0.3')
        self.assertTrue(all(self.answered(peer) for peer in proxied))
        for peer in peers[:3]:
            peer.close()
        self.assertTrue(upstream.wait_until(lambda: self.served(ringside)), 'it does not recover')
        # As many as have left, and not one more.
        again: list[client.Client] = []

        def full() -> bool:
            again.extend(peer for peer in self.connect(ringside, 1) if self.answered(peer))
            return len(again) >= 3

        self.assertTrue(upstream.wait_until(full))
        self.assertFalse(any(self.answered(peer) for peer in self.connect(ringside, 4)))

    def test_unix_clients_have_no_address(self) -> None:
        ringside, _ = self.start_pair(limits='connections_per_address = 1',
                                      listen='["127.0.0.1:0", "unix:@DIR@/web.sock"]')
        peers = []
        for _ in range(4):
            peers.append(client.Client(unix_path=str(ringside.folder / 'web.sock')).get('/'))
            self.addCleanup(peers[-1].close)
        for peer in peers:
            self.assertEqual(peer.read_response().status, 200)

    def test_a_flood_of_connections(self) -> None:
        ringside, _ = self.start_pair(server='rings = 2', limits='connections = 16')
        peers = self.connect(ringside, 100)
        answered = [peer for peer in peers if self.answered(peer)]
        self.assertLessEqual(len(answered), 16)
        self.assertGreaterEqual(len(answered), 8, 'a ring did not fill its places')
        self.assertTrue(ringside.wait_for_log('limits.connections is reached'))
        self.assertLess(len(ringside.lines), 30, 'the log is flooded')
        # Who came in keeps being served.
        for peer in answered:
            del peer.received[:]
            self.assertTrue(self.answered(peer.get('/')))
        for peer in peers:
            peer.close()
        self.assertTrue(upstream.wait_until(lambda: self.served(ringside)), 'it does not recover')

    @limit(90)
    def test_out_of_descriptors_is_not_the_servers_fault(self) -> None:
        ringside, _ = self.start_pair(descriptors=64, limits='connections = 1000')
        first = client.Client(ringside.port)
        self.addCleanup(first.close)
        # One that has the proxy's ear before the descriptors are gone.
        first.send('GET / HTTP/1.1\r\n')
        crowd: list[client.Client] = []
        for _ in range(80):
            crowd.append(client.Client(ringside.port))
            self.addCleanup(crowd[-1].close)
        self.assertTrue(ringside.wait_for_log('out of file descriptors'))
        first.send('Host: a.test\r\n\r\n')
        self.assertEqual(first.read_response().status, 503)
        self.assertEqual(ringside.access_records(1)[0]['end'], 'ringside/queue/no_resources')
        for peer in crowd:
            peer.close()
        self.assertTrue(upstream.wait_until(lambda: self.served(ringside), 15), 'it does not recover')
        for _ in range(20):
            self.assert_served(ringside)
        self.assertFalse([end for end in self.ends(ringside) if end.startswith('upstream')])
