"""What the log says of TLS connections: how their handshakes went, and who made their records."""

import re
import signal
import socket

from support import certificates, client, modes, openssl, proxy, testcase, upstream
from support.limits import limit
from support.openssl import TLS12, TLS13

REQUEST = b'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n'


def counts_in(line: str) -> dict[str, dict[str, int]]:
    """By role, as in the line; reasons as `user_space.cipher`."""
    found: dict[str, dict[str, int]] = {}
    for role, text in re.findall(r'\b(clients|servers): ([^;]*)', line):
        plain, _, reasons = text.partition('(')
        found[role] = {name: int(count) for name, count in re.findall(r'(\w+)=(\d+)', plain)}
        found[role] |= {f'user_space.{name}': int(count) for name, count in re.findall(r'(\w+)=(\d+)', reasons)}
    return found


class Counts(testcase.AuthorityTest):
    """Two rings, whose counts are added up."""

    def setUp(self) -> None:
        super().setUp()
        self.pair = self.authority.issue('main')

    def start(self, tls: str = '', **options: str) -> proxy.Ringside:
        ringside, self.server = self.start_pair(server='rings = 2', tls=f'certificates = [{{ {self.pair.toml()} }}]\n'
                                                + tls, **options)
        return ringside

    def ask(self, ringside: proxy.Ringside, context=None) -> None:
        with client.Client(ringside.port, tls=context or self.authority.client_context(), server_name='a.test') as peer:
            self.assertEqual(peer.get('/').read_response().status, 200)
            peer.shutdown_write()
            self.assertEqual(peer.read_to_end(), b'')

    @staticmethod
    def lines(ringside: proxy.Ringside) -> list[str]:
        return [line for line in ringside.lines if ' info tls-counts ' in line]

    def final(self, ringside: proxy.Ringside) -> dict[str, dict[str, int]]:
        """The last line, which comes at the end."""
        ringside.stop()
        return counts_in(self.lines(ringside)[-1])

    @staticmethod
    def reasons(counts: dict[str, int]) -> dict[str, int]:
        return {name.partition('.')[2]: count for name, count in counts.items() if '.' in name}

    def assert_records(self, counts: dict[str, int], connections: int) -> None:
        """That all were the kernel's where it has TLS, and otherwise why not."""
        if modes.kernel_does_tls():
            self.assertEqual((counts['kernel_sends'], counts['kernel_receives'], counts['user_space']),
                             (connections, connections, 0), counts)
        else:
            self.assertEqual((counts['kernel_sends'], counts['kernel_receives'], counts['user_space']),
                             (0, 0, connections), counts)
            self.assertEqual(self.reasons(counts), {'unavailable': connections})

    def test_full_resumed_and_failed(self) -> None:
        ringside = self.start()
        session = str(self.folder / 'session')
        for option in ('-sess_out', '-sess_in', '-sess_in'):
            said = certificates.openssl('s_client', '-connect', f'127.0.0.1:{ringside.port}', option, session,
                                        '-ign_eof', text=REQUEST)
            self.assertIn(b'HTTP/1.1 200', said)
        for garbage in (b'\x17\x03\x03\0\x01x', b'GET / HTTP/1.1\r\n\r\n'):
            with socket.create_connection(('127.0.0.1', ringside.port), 10 * upstream.slowdown()) as plain:
                plain.sendall(garbage)
                while plain.recv(4096):
                    pass
        # Somebody who only looks whether the port is open did not fail.
        socket.create_connection(('127.0.0.1', ringside.port), 10 * upstream.slowdown()).close()
        counts = self.final(ringside)
        self.assertEqual(list(counts), ['clients'])
        clients = counts['clients']
        self.assertEqual((clients['full'], clients['resumed'], clients['failed']), (1, 2, 2))
        self.assert_records(clients, 3)

    def test_servers_are_counted_too(self) -> None:
        for version in (TLS12, TLS13):
            server = self.start_upstream(tls=openssl.Context(version, 'aes128', pair=self.pair))
            ringside = self.start_proxy(server, upstream_tls=f'ca = "{self.authority.ca}"')
            with client.Client(ringside.port, tls=None) as peer:
                for _ in range(2):
                    self.assertEqual(peer.get('/').read_response().status, 200)
            counts = self.final(ringside)
            self.assertEqual(list(counts), ['servers'])
            self.assertEqual((counts['servers']['full'], counts['servers']['failed']), (1, 0))
            self.assert_records(counts['servers'], 1)

    def test_what_is_switched_off(self) -> None:
        ringside = self.start(tls='ktls = "off"\n')
        for _ in range(3):
            self.ask(ringside)
        clients = self.final(ringside)['clients']
        self.assertEqual((clients['kernel_sends'], clients['kernel_receives'], clients['user_space']), (0, 0, 3))
        self.assertEqual(self.reasons(clients), {'off': 3})

    @limit(60)
    def test_they_are_said_when_asked_for_and_when_files_change(self) -> None:
        ringside = self.start()
        ringside.signal(signal.SIGUSR2)
        self.assertTrue(upstream.wait_until(lambda: self.lines(ringside), 10))
        self.assertRegex(self.lines(ringside)[0], ' info tls-counts none$')
        self.ask(ringside)
        self.authority.issue('main')
        self.assertTrue(upstream.wait_until(lambda: len(self.lines(ringside)) == 2, 20), ringside.log())
        self.assertEqual(counts_in(self.lines(ringside)[1])['clients']['full'], 1)
        self.ask(ringside)
        self.assertEqual(self.final(ringside)['clients']['full'], 2)

    def test_without_tls_nothing_is_said(self) -> None:
        ringside, _ = self.start_pair()
        ringside.stop()
        self.assertEqual(self.lines(ringside), [])
