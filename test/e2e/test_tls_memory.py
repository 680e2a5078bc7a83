"""What an idle connection with TLS keeps: little in user space, next to nothing once the kernel makes the records."""

import pathlib
import re
import socket
import ssl

from support import testcase, upstream
from support.limits import limit

WARM = 200
# Connections, and KiB of private memory for each. With fewer, what a ring sets aside for bursts would count.
IN_USER_SPACE, IN_KERNEL = (3000, 20), (1000, 3)
REQUEST = b'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n'


class Memory(testcase.AuthorityTest):
    """Connections that had one request each, and then nothing."""

    def setUp(self) -> None:
        super().setUp()
        pair = self.authority.issue('main')
        self.ringside, _ = self.start_pair(
            access='off', tls=f'certificates = [{{ {pair.toml()} }}]\n',
            limits=f'connections = {WARM + IN_USER_SPACE[0] + 100}', timeouts='keep_alive = "1h"\nclient_header = "1m"')

    def open(self, count: int, context: ssl.SSLContext) -> None:
        """Our own sessions are thrown away, which the other end does not see."""
        for _ in range(count):
            plain = socket.create_connection(('127.0.0.1', self.ringside.port), 30 * upstream.slowdown())
            with context.wrap_socket(plain, server_hostname='a.test') as peer:
                peer.sendall(REQUEST)
                got = b''
                while not got.endswith(b'ok'):
                    piece = peer.recv(4096)
                    self.assertTrue(piece, got)
                    got += piece
                kept = socket.socket(fileno=peer.detach())
            self.addCleanup(kept.close)

    def private_kib(self) -> int:
        text = pathlib.Path(f'/proc/{self.ringside.pid}/smaps_rollup').read_text()
        return sum(int(size) for size in re.findall(r'^Private_\w+:\s+(\d+) kB', text, re.M))

    def in_kernel(self) -> list[int]:
        """Connections whose records the kernel makes, and opens."""
        text = pathlib.Path('/proc/net/tls_stat').read_text()
        return [int(count) for count in re.findall(r'^TlsCurr[TR]xSw\s+(\d+)$', text, re.M)]

    def judge(self, version: ssl.TLSVersion) -> None:
        kernel = any(re.search(r' info start ktls: yes', line) for line in self.ringside.lines)
        connections, most = IN_KERNEL if kernel else IN_USER_SPACE
        context = self.authority.client_context(version)
        self.open(WARM, context)
        before = self.private_kib()
        sockets, handed = self.ringside.sockets(), self.in_kernel() if kernel else []
        self.open(connections, context)
        # They give memory back when they have been idle for a while.
        self.assertTrue(upstream.wait_until(lambda: self.private_kib() - before <= most * connections, 15),
                        f'{(self.private_kib() - before) / connections:.1f} KiB each, kernel TLS: {kernel}')
        self.assertEqual(self.ringside.sockets() - sockets, connections)
        if kernel:
            self.assertEqual(self.in_kernel(), [count + connections for count in handed])

    @limit(120)
    def test_tls13(self) -> None:
        self.judge(ssl.TLSVersion.TLSv1_3)

    @limit(120)
    def test_tls12(self) -> None:
        self.judge(ssl.TLSVersion.TLSv1_2)
