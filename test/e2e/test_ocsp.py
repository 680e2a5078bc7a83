"""OCSP responses that ringside fetches and staples."""

import pathlib
import os
import re
import signal
import subprocess
import tempfile

from support import certificates, client, ocsp, testcase, upstream
from support.limits import limit


class OcspTest(testcase.RingsideTest):
    """A CA, its responder, and ringside with a certificate that names it."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        self.authority = certificates.Authority(pathlib.Path(folder.name) / 'ca')
        self.responder = ocsp.Responder()
        self.addCleanup(self.responder.close)
        self.pair = self.authority.issue('main', responder=self.responder.url)
        # With the issuer, whose key the response is about.
        self.pair.cert.write_bytes(self.pair.cert.read_bytes() + self.authority.ca.read_bytes())
        self.responder.answer = lambda request: self.authority.answer(request, self.pair)

    def start(self, **options: str):
        lines = f'certificates = [{{ {self.pair.toml()} }}]\nocsp = "fetch"\n'
        return self.start_pair(upstream.OK, tls=lines, **options)[0]

    def stapled(self, ringside) -> str:
        """What `openssl s_client -status` says of it; it verifies what it is given."""
        done = subprocess.run([self.need_program('openssl'), 's_client', '-connect', f'127.0.0.1:{ringside.port}',
                               '-CAfile', str(self.authority.ca), '-servername', 'a.test', '-status'],
                              input=b'', stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
                              env={**os.environ, 'LC_ALL': 'C'})
        return done.stdout.decode(errors='backslashreplace')

    def assert_served_without(self, ringside) -> None:
        self.assertIn('OCSP response: no response sent', self.stapled(ringside))
        context = self.authority.client_context()
        with client.Client(ringside.port, tls=context, server_name='a.test') as peer:
            self.assertEqual(peer.get('/').read_response().status, 200)


class Fetched(OcspTest):
    """Responders that do their work."""

    def test_the_response_is_stapled_on_every_ring(self) -> None:
        ringside = self.start(server='rings = 2')
        self.assertTrue(ringside.wait_for_log(
            rf'info ocsp \[tls\.main\]: \S+main\.pem: the OCSP response of {re.escape(self.responder.url)} is stapled'),
            ringside.log())
        for _ in range(8):
            said = self.stapled(ringside)
            self.assertIn('OCSP Response Status: successful', said)
            self.assertIn('Cert Status: good', said)
        self.assertEqual(len(self.responder.requests), 1)

    def test_a_certificate_that_is_loaded_again_keeps_it(self) -> None:
        ringside = self.start()
        self.assertTrue(ringside.wait_for_log('is stapled'), ringside.log())
        os.utime(self.pair.cert)
        self.assertTrue(ringside.wait_for_log('changed files are in use'), ringside.log())
        self.assertIn('Cert Status: good', self.stapled(ringside))
        self.assertEqual(len(self.responder.requests), 1)

    def test_a_renewed_certificate_gets_its_own(self) -> None:
        ringside = self.start()
        self.assertTrue(ringside.wait_for_log('is stapled'), ringside.log())
        renewed = self.authority.issue('renewed', responder=self.responder.url)
        self.responder.answer = lambda request: self.authority.answer(request, self.pair)
        renewed.cert.write_bytes(renewed.cert.read_bytes() + self.authority.ca.read_bytes())
        os.replace(renewed.key, self.pair.key)
        os.replace(renewed.cert, self.pair.cert)
        self.assertTrue(upstream.wait_until(lambda: ringside.log().count('is stapled') == 2, 15), ringside.log())
        self.assertIn('Cert Status: good', self.stapled(ringside))

    def test_a_revoked_certificate(self) -> None:
        self.responder.answer = lambda request: self.authority.answer(request, self.pair, revoked=True)
        ringside = self.start()
        self.assertTrue(ringside.wait_for_log(
            r'warn ocsp \[tls\.main\]: \S+main\.pem was revoked on 2025-01-01 00:00:00 UTC, says http'), ringside.log())
        self.assert_served_without(ringside)


class Ill(OcspTest):
    """Responders that do not: all else goes on."""

    def check(self, reason: str) -> None:
        ringside = self.start()
        self.assertTrue(ringside.wait_for_log(
            rf'warn ocsp \[tls\.main\]: \S+main\.pem: no OCSP response from {re.escape(self.responder.url)}: {reason}.*; '
            r'asked again in \d+ s, and until then nothing is stapled$', 30), ringside.log())
        self.assert_served_without(ringside)

    def test_garbage(self) -> None:
        self.responder.answer = lambda _: b'nonsense'
        self.check('')

    def test_an_error_of_http(self) -> None:
        self.responder.status = 500
        self.check('.*500')

    def test_a_page_for_people(self) -> None:
        self.responder.kind, self.responder.answer = 'text/html', lambda _: b'<html></html>'
        self.check('.*asn1')

    def test_too_much(self) -> None:
        self.responder.answer = lambda _: b'\x30\x84\x01\x00\x00\x00' + bytes(1 << 24)
        self.check('')

    def test_a_certificate_that_it_does_not_know(self) -> None:
        self.responder.answer = self.authority.answer
        self.check('its answer says that the responder does not know')

    def test_an_answer_about_another(self) -> None:
        other = self.authority.issue('other')
        asked = self.authority.folder / 'other.req'
        certificates.openssl('ocsp', '-issuer', self.authority.ca, '-cert', other.cert, '-no_nonce', '-reqout', asked)
        self.responder.answer = lambda _: self.authority.answer(asked.read_bytes(), other)
        self.check('its answer is about another certificate')

    def test_an_answer_of_a_stranger(self) -> None:
        stranger = certificates.Authority(self.authority.folder / 'stranger')
        asked = self.authority.folder / 'stranger.req'
        certificates.openssl('ocsp', '-issuer', stranger.ca, '-cert', self.pair.cert, '-no_nonce', '-reqout', asked)
        self.responder.answer = lambda _: stranger.answer(asked.read_bytes(), self.pair)
        self.check('its answer is not signed by the issuer')

    def test_one_that_is_not_there(self) -> None:
        self.responder.close()
        self.check('127.0.0.1:.*Connection refused')

    @limit(90)
    def test_one_that_says_nothing(self) -> None:
        self.responder.answer = None
        ringside = self.start()
        self.assertTrue(upstream.wait_until(lambda: len(self.responder.requests) == 1, 15), ringside.log())
        self.assert_served_without(ringside)
        self.assertTrue(ringside.wait_for_log('no OCSP response from .*: no answer in time; ', 30), ringside.log())

    def test_one_that_says_nothing_does_not_hold_up_the_end(self) -> None:
        self.responder.answer = None
        ringside = self.start()
        self.assertTrue(upstream.wait_until(lambda: len(self.responder.requests) == 1, 15), ringside.log())
        ringside.signal(signal.SIGTERM)
        self.assertEqual(ringside.wait(), 0)
        self.assertNotIn('no answer in time', ringside.log())

    @limit(90)
    def test_one_that_recovers(self) -> None:
        self.responder.status = 503
        ringside = self.start()
        self.assertTrue(ringside.wait_for_log('asked again in'), ringside.log())
        self.responder.status = 200
        self.assertTrue(ringside.wait_for_log('is stapled, good until', 40), ringside.log())
        self.assertIn('Cert Status: good', self.stapled(ringside))
