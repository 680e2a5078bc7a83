"""A flood of TLS handshakes that are begun and never finished."""

import contextlib
import itertools
import pathlib
import re
import socket
import ssl

from support import client, testcase, upstream
from support.limits import limit

COUNT = 2000
# Time for all of them to be there at once.
HEADER_SECONDS = 5


class Flood(testcase.AuthorityTest):
    """On one ring, which also has the connections of clients that behave."""

    def setUp(self) -> None:
        super().setUp()
        pair = self.authority.issue('main')
        self.context = self.authority.client_context()
        self.ringside, self.server = self.start_pair(
            timeouts=f'client_header = "{int(HEADER_SECONDS * upstream.slowdown())}s"\nkeep_alive = "10m"',
            limits=f'connections = {COUNT + 100}', tls=f'certificates = [{{ {pair.toml()} }}]\n')
        self.established = client.Client(self.ringside.port, tls=self.context)
        self.addCleanup(self.established.close)
        self.asked = 0

    def ask(self) -> None:
        """A request of the connection that was there before."""
        self.established.get('/kept')
        self.assertEqual(self.established.read_response().status, 200)
        self.asked += 1

    def assert_newcomer_served(self) -> None:
        with client.Client(self.ringside.port, tls=self.context) as peer:
            self.assertEqual(peer.get('/new', headers='Connection: close\r\n').read_response().status, 200)

    def hello(self) -> bytes:
        """The bytes of a ClientHello."""
        outgoing = ssl.MemoryBIO()
        tls = self.context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname='a.test')
        with self.assertRaises(ssl.SSLWantReadError):
            tls.do_handshake()
        return outgoing.read()

    def begin(self, stack: contextlib.ExitStack) -> list[socket.socket]:
        """In equal parts: silent ones, half a ClientHello, a whole one and no more."""
        hello = self.hello()
        peers = []
        for number, words in zip(range(COUNT), itertools.cycle((b'', hello[: len(hello) // 2], hello))):
            peers.append(stack.enter_context(
                socket.create_connection(('127.0.0.1', self.ringside.port), 30 * upstream.slowdown())))
            peers[-1].sendall(words)
            if number % 20 == 0:
                self.ask()
        return peers

    def logged_ends(self) -> int:
        """Handshakes of which the log says that their time was over, lines that it left out included."""
        lines = [line for line in list(self.ringside.lines) if re.search(r' info tls ', line)]
        self.assertFalse([line for line in lines if not re.search(
            r'client 127\.0\.0\.1: handshake: not over in time( \(\d+ similar lines left out\))?$|'
            r'tls \d+ similar lines left out$', line)])
        left_out = sum(int(count) for line in lines for count in re.findall(r'(\d+) similar lines left out', line))
        return left_out + sum('not over in time' in line for line in lines)

    def flood(self, sockets: int, total: int) -> None:
        """One of them, from its first connection until nothing of it is left.

        `sockets`: as many as there are without it. `total`: of handshakes, with those of floods before it.
        """
        self.assertTrue(upstream.wait_until(lambda: self.ringside.sockets() == sockets), self.ringside.sockets())
        with contextlib.ExitStack() as stack:
            peers = self.begin(stack)
            self.assertTrue(upstream.wait_until(lambda: self.ringside.sockets() >= sockets + COUNT),
                            'they were not there all at once')
            self.assert_newcomer_served()

            def ended() -> bool:
                self.ask()
                return self.ringside.sockets() == sockets

            # The peers still have their ends open, and have read nothing.
            self.assertTrue(upstream.wait_until(ended, 60), self.ringside.sockets())
            for peer in peers:
                self.assertNotIn(b'HTTP/', self.rest_of(peer))
        self.assertTrue(upstream.wait_until(lambda: self.logged_ends() >= total, 30), self.ringside.log())
        self.assertEqual(self.logged_ends(), total)

    def rest_of(self, peer: socket.socket) -> bytes:
        try:
            return b''.join(iter(lambda: peer.recv(65536), b''))
        except ConnectionResetError:
            return b''

    def private_bytes(self) -> int:
        text = pathlib.Path(f'/proc/{self.ringside.pid}/smaps_rollup').read_text()
        return sum(int(size) * 1024 for size in re.findall(r'^Private_\w+:\s+(\d+) kB', text, re.M))

    @limit(240)
    def test_established_traffic_goes_on_and_everything_comes_back(self) -> None:
        self.ask()
        sockets, memory = self.ringside.sockets(), [self.private_bytes()]
        for number in (1, 2):
            self.flood(sockets, number * COUNT)
            self.assert_newcomer_served()
            memory.append(self.private_bytes())
        # What is kept for the next connections is kept once.
        self.assertLess(memory[2] - memory[1], (memory[1] - memory[0]) / 2, memory)
        served = [request.target for request in self.server.requests]
        self.assertEqual((served.count('/kept'), served.count('/new'), len(served)), (self.asked, 4, self.asked + 4))
        self.assertIsNone(self.established.ended)
