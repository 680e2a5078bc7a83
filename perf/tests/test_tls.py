"""What the TLS rows check before they measure, and the probe of load generators."""

import pathlib
import socket
import ssl
import tempfile
import unittest
from unittest import mock

from suite import tls


class Proof(unittest.TestCase):
    """Against a small server in place of a proxy. It chooses the cipher that Python's client likes best."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate = tls.make_certificate(pathlib.Path(cls.folder.name))

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def check(self, *, resume: bool, cipher: str = 'TLS_AES_256_GCM_SHA384', tickets: int = 2,
              version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, protocol: str = '') -> None:
        with tls.Probe(self.certificate) as probe, mock.patch.object(tls, 'CIPHER', cipher):
            probe.context.num_tickets = tickets
            probe.context.minimum_version = probe.context.maximum_version = version
            if protocol:
                probe.context.set_alpn_protocols([protocol])
            tls.check('it', probe.port, tls.Tls(self.certificate, resume, bool(protocol)), '/1k')

    def test_all_is_well(self) -> None:
        self.check(resume=True)
        self.check(resume=False, tickets=0)

    def test_another_cipher(self) -> None:
        with self.assertRaisesRegex(SystemExit, 'it speaks TLSv1.3 with TLS_AES_256_GCM_SHA384, not TLSv1.3 with X'):
            self.check(resume=True, cipher='X')

    def test_another_version(self) -> None:
        with self.assertRaisesRegex(SystemExit, 'it speaks TLSv1.2'):
            self.check(resume=True, version=ssl.TLSVersion.TLSv1_2)

    def test_sessions_that_are_resumed_or_not(self) -> None:
        with self.assertRaisesRegex(SystemExit, 'does not resume a session where it should$'):
            self.check(resume=True, tickets=0)
        with self.assertRaisesRegex(SystemExit, 'resumes sessions where it should not'):
            self.check(resume=False)

    def test_http_2_or_another_protocol(self) -> None:
        self.check(resume=True, protocol='h2')
        with self.assertRaisesRegex(SystemExit, 'it agrees on no protocol, not on h2'):
            self.check(resume=True, protocol='http/1.1')

    def test_another_certificate(self) -> None:
        with tempfile.TemporaryDirectory() as folder, tls.Probe(self.certificate) as probe:
            other = tls.make_certificate(pathlib.Path(folder))
            with self.assertRaisesRegex(SystemExit, 'it does not serve TLS.*verify failed'):
                tls.check('it', probe.port, tls.Tls(other, True), '/1k')

    def test_plain_text(self) -> None:
        with socket.create_server(('127.0.0.1', 0)) as listener:
            port = listener.getsockname()[1]
            listener.close()
            with self.assertRaisesRegex(SystemExit, 'it does not serve TLS'):
                tls.check('it', port, tls.Tls(self.certificate, True), '/1k')


class Probe(unittest.TestCase):
    def test_counts_what_was_resumed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            certificate = tls.make_certificate(pathlib.Path(folder))
            context = ssl.create_default_context(cafile=certificate.cert)
            with tls.Probe(certificate) as probe:
                session = None
                for _ in range(4):
                    with socket.create_connection(('127.0.0.1', probe.port), 10) as plain:
                        with context.wrap_socket(plain, server_hostname='localhost', session=session) as sock:
                            sock.sendall(b'GET / HTTP/1.1\r\n\r\n')
                            self.assertTrue(sock.recv(100).startswith(b'HTTP/1.1 200'))
                            session = sock.session
            self.assertEqual((probe.connections, probe.resumed, probe.share), (4, 3, 0.75))

    def test_a_client_that_speaks_no_tls_does_not_end_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            certificate = tls.make_certificate(pathlib.Path(folder))
            with tls.Probe(certificate) as probe:
                with socket.create_connection(('127.0.0.1', probe.port), 10) as plain:
                    plain.sendall(b'GET / HTTP/1.1\r\n\r\n')
                with self.assertRaises(SystemExit):  # a cipher that is not the rows', so it was asked
                    tls.check('it', probe.port, tls.Tls(certificate, True), '/')
            self.assertEqual((probe.connections, probe.share > 0), (2, True))


if __name__ == '__main__':
    unittest.main()
