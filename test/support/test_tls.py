"""The client and the upstream of the tests over TLS, talking to each other; modes; certificates."""

import os
import pathlib
import ssl
import tempfile
import threading
import tomllib
import unittest
from unittest import mock

from . import certificates, client, modes, proxy, upstream, wire

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
MIB = 1 << 20


class Ends(unittest.TestCase):
    """Every test runs over TLS 1.2 and over TLS 1.3."""

    def pairs(self, answer, **options):
        """For each version, a server and a way to connect to it."""
        made = certificates.shared()
        for version in VERSIONS:
            server_side, client_side = made.authority.server_context(made.server, version), \
                made.authority.client_context(version)
            with upstream.Upstream(answer, tls=server_side, **options) as server:
                yield server, lambda: client.Client(server.port, tls=client_side)

    def test_messages_on_one_connection(self) -> None:
        for server, connect in self.pairs(upstream.OK):
            with connect() as peer:
                for number in range(3):
                    self.assertEqual(peer.get(f'/{number}').read_response().body, b'ok')
            self.assertEqual([r.target for r in server.requests], ['/0', '/1', '/2'])
            self.assertEqual((len(server.connections), server.errors), (1, []))
            self.assertTrue(server.address.startswith('https://127.0.0.1:'))

    def test_how_a_client_leaves_is_seen(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(b'x')
            connection.drain()

        for server, connect in self.pairs(answer):
            polite, dead, rude = connect().get('/fin'), connect().get('/cut'), connect().get('/rst')
            # All is read, tickets too, or the kernel would make a reset of every end.
            for peer in (polite, dead, rude):
                self.assertEqual(peer.read_some(5), b'x')
            polite.close()
            dead.sock.cut()
            rude.reset()
            self.assertTrue(server.wait_for(lambda s: all(c.ended_by for c in s.connections)))
            self.assertEqual({c.requests[0].target: (c.ended_by, c.whole) for c in server.connections},
                             {'/fin': ('fin', True), '/cut': ('fin', False), '/rst': ('reset', False)})

    def test_how_a_server_ends_is_seen(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\n\r\nuntil the end')
            {'/fin': lambda: None, '/cut': connection.cut, '/rst': connection.reset}[request.target]()
            return False

        for _, connect in self.pairs(answer):
            for target, ended, whole in (('/fin', 'fin', True), ('/cut', 'fin', False), ('/rst', 'reset', False)):
                with connect() as peer:
                    peer.get(target).read_to_end()
                    self.assertEqual((peer.ended, peer.whole), (ended, whole), target)
            with connect() as peer:
                self.assertEqual(peer.get('/fin').read_response().body, b'until the end')
            with connect() as peer, self.assertRaises(AssertionError):
                peer.get('/cut').read_response()  # what has no length must end in order

    def test_each_direction_ends_by_itself(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'first')
            connection.shutdown_write()
            while b'last' not in connection.received:
                connection.read_some()
            return False

        for server, connect in self.pairs(answer):
            with connect() as peer:
                self.assertEqual(peer.get('/').read_to_end(), b'first')
                self.assertTrue(peer.whole)
                peer.send('last')
                self.assertTrue(server.wait_for(lambda s: s.received().endswith(b'last')))

    def test_data_on_its_way_survives_our_own_end(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'x' * MIB)
            with self.assertRaises(upstream.Ended):
                connection.drain()
            connection.send(b'after')
            return False

        for server, connect in self.pairs(answer):
            with connect() as peer:
                peer.get('/').read_some(5)
                peer.shutdown_write()
                self.assertEqual(peer.read_to_end(), b'x' * MIB + b'after')
                self.assertTrue(peer.whole and server.connections[0].whole)

    def test_both_directions_at_once(self) -> None:
        down, up = os.urandom(3 * MIB), os.urandom(3 * MIB)
        got = bytearray()

        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            sender = threading.Thread(target=connection.send, args=(down,))
            sender.start()
            got.extend(connection.pending)
            while len(got) < len(up):
                got.extend(connection.read_some())
            sender.join()
            return False

        for _, connect in self.pairs(answer):
            got.clear()
            with connect() as peer:
                sender = threading.Thread(target=peer.get('/').send, args=(up,))
                sender.start()
                self.assertTrue(peer.read_to_end() == down)
                sender.join()
            self.assertTrue(bytes(got) == up)

    def test_no_more_is_given_than_was_asked_for(self) -> None:
        for _, connect in self.pairs(lambda c, _: c.send(b'0123456789')):
            with connect() as peer:
                peer.get('/')
                peer.sock.settimeout(5)
                self.assertEqual([peer.sock.recv(2), peer.sock.recv(2)], [b'01', b'23'])
                peer.shutdown_write()
                self.assertEqual([peer.sock.recv(4), peer.sock.recv(4), peer.sock.recv(4)], [b'4567', b'89', b''])

    def test_a_certificate_that_is_not_trusted(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            stranger = certificates.Authority(pathlib.Path(folder)).client_context()
            for server, _ in self.pairs(upstream.OK):
                with client.Client(server.port, tls=stranger) as peer:
                    self.assertEqual(peer.get('/').ended, 'reset')
                self.assertTrue(server.wait_for(lambda s: s.connections[0].failure))
                self.assertRegex(server.connections[0].failure, '(?i)unknown.?ca')


class Certificates(unittest.TestCase):
    """What openssl thinks of them."""

    def test_names_and_dates(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            authority = certificates.Authority(pathlib.Path(folder))
            good = authority.issue('good', ('a.test', '*.b.test', '127.0.0.1', '::1'))
            old = authority.issue('old', days=-1)
            said = certificates.openssl('x509', '-in', good.cert, '-noout', '-text').decode()
            self.assertIn('DNS:a.test, DNS:*.b.test, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1', said)
            self.assertIn('NIST CURVE: P-256', said)
            self.assertIn('OK', certificates.openssl('verify', '-CAfile', authority.ca, good.cert).decode())
            with self.assertRaisesRegex(AssertionError, 'has expired'):
                certificates.openssl('verify', '-CAfile', authority.ca, old.cert)


class Modes(unittest.TestCase):
    """What a mode does to a configuration and to a list of tests."""

    TOML = proxy.proxy_config(['https://127.0.0.1:1', '127.0.0.1:2'], extra=(
        '[listen.other]\naddress = "127.0.0.1:0"\n[upstream.plain]\nservers = ["127.0.0.1:3"]\n'))

    def configured(self, mode: str) -> dict:
        with mock.patch.dict(os.environ, RINGSIDE_TEST_TLS=mode):
            return tomllib.loads(modes.configure(self.TOML))

    def test_plain(self) -> None:
        self.assertEqual(self.configured(''), tomllib.loads(self.TOML))

    def test_client(self) -> None:
        for mode in ('client', 'client12'):
            made = self.configured(mode)
            self.assertEqual([listener['tls'] for listener in made['listen'].values()], ['test', 'test'])
            self.assertEqual(list(made['tls']), ['test'])
            self.assertEqual(made['upstream'], tomllib.loads(self.TOML)['upstream'])

    def test_upstream(self) -> None:
        made = self.configured('upstream')
        self.assertEqual(list(made['upstream']['app']['tls']), ['ca'])
        self.assertNotIn('tls', made['upstream']['plain'])
        self.assertNotIn('tls', made['listen']['web'])

    def test_an_unknown_mode_is_refused(self) -> None:
        with self.assertRaises(SystemExit):
            self.configured('clients')

    def test_what_a_mode_skips(self) -> None:
        for mode, test, skipped in (('', 'e2e.test_tls.X.y', False), ('client', 'e2e.test_tls.X.y', True),
                                    ('upstream', 'e2e.test_tls.X.y', True), ('client', 'e2e.test_curl.X.y', False)):
            with mock.patch.dict(os.environ, RINGSIDE_TEST_TLS=mode):
                self.assertEqual(modes.reason_to_skip(test) is not None, skipped, (mode, test))

    def test_what_only_the_kernel_can_do_is_skipped_without_it(self) -> None:
        test = 'e2e.test_movers.Movers.test_the_log_says_what_was_moved_how'
        for there, skipped in ((True, False), (False, True)):
            with mock.patch.dict(os.environ, RINGSIDE_TEST_TLS='client'), \
                    mock.patch.object(modes, 'kernel_does_tls', return_value=there):
                self.assertEqual(modes.reason_to_skip(test) is not None, skipped)


if __name__ == '__main__':
    unittest.main()
