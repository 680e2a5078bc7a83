"""Clients with TLS libraries that are neither OpenSSL nor GnuTLS: Chromium (BoringSSL), Go and Java."""

import hashlib
import json
import os
import pathlib
import re
import subprocess

from support import chromium, golang, testcase
from support.limits import limit

PAGE = (b'<!doctype html><html><head><title>over TLS</title></head><body><p id="said"></p><script>'
        b'fetch("/more").then(r => r.text()).then(t => document.getElementById("said").textContent = "said " + t.length)'
        b'</script></body></html>')
MORE = 200_000


def answer(connection, request) -> None:
    """A page, and a body of many records that its script asks for."""
    body, kind = (b'm' * MORE, 'text/plain') if request.target == '/more' else (PAGE, 'text/html')
    connection.send(f'HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)


class ClientsTest(testcase.AuthorityTest):
    """A listener with a certificate of the CA."""

    def setUp(self) -> None:
        super().setUp()
        self.ringside, self.server = self.start_pair(
            answer, tls=f'certificates = [{{ {self.authority.issue("main").toml()} }}]\n')


class Chromium(ClientsTest):
    """It trusts what its user's certificate store has."""

    def load(self, trusted: bool) -> tuple[str, str]:
        return chromium.load(
            self.need_program('chromium'), self.ringside.url('/page', scheme='https', host='a.test'),
            '--host-resolver-rules=MAP a.test 127.0.0.1', authority=self.authority.ca if trusted else None,
            certutil=self.need_program('certutil'))

    @limit(150)
    def test_a_page(self) -> None:
        page, said = self.load(trusted=True)
        self.assertIn(f'<p id="said">said {MORE}</p>', page, said)
        self.assertLessEqual({'/page', '/more'}, {request.target for request in self.server.requests})

    @limit(150)
    def test_an_authority_that_it_does_not_know(self) -> None:
        page, said = self.load(trusted=False)
        self.assertNotIn('over TLS', page, said)
        self.assertEqual(self.server.requests, [])


class Go(ClientsTest):
    """crypto/tls, as half of the world's services have it."""

    def setUp(self) -> None:
        super().setUp()
        self.program = golang.build(self.need_program('go'), 'go_client', self.folder)

    def run_client(self, *options: str, ca: pathlib.Path | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(self.program), '-ca', str(ca or self.authority.ca), '-name', 'a.test', *options,
             self.ringside.url('/more', scheme='https')],
            check=False, timeout=100, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, 'no_proxy': '*', 'NO_PROXY': '*'})

    @limit(300)
    def test_both_versions_with_sessions_that_are_resumed(self) -> None:
        times = 3
        for options, version in (([], 'TLSv1.3'), (['-tls12'], 'TLSv1.2')):
            done = self.run_client('-times', str(times), *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([one.pop('body') == 'm' * MORE for one in found], [True] * times)
            self.assertEqual(found, [{'status': 200, 'protocol': 'HTTP/1.1', 'version': version,
                                      'resumed': number > 0, 'alpn': 'http/1.1'} for number in range(times)])
        self.assertEqual(len(self.server.requests), 2 * times)

    @limit(300)
    def test_an_authority_that_it_does_not_know(self) -> None:
        stranger = type(self.authority)(self.folder / 'other')
        done = self.run_client(ca=stranger.ca)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('certificate signed by unknown authority', done.stderr)
        self.assertEqual(self.server.requests, [])


class Java(ClientsTest):
    """The JDK's own TLS and HTTP client."""

    def run_client(self, version: str, times: int, ca: pathlib.Path | None = None) -> subprocess.CompletedProcess:
        source = pathlib.Path(__file__).resolve().parents[1] / 'support' / 'java_client' / 'Client.java'
        hosts = self.folder / 'hosts'
        hosts.write_text('127.0.0.1 a.test\n')
        return subprocess.run(
            [self.need_program('java'), f'-Djdk.net.hosts.file={hosts}', f'-Djava.io.tmpdir={self.folder}',
             '-XX:-UsePerfData', str(source), str(ca or self.authority.ca), version, str(times),
             self.ringside.url('/more', scheme='https', host='a.test')],
            check=False, timeout=140, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    @limit(300)
    def test_both_versions_with_sessions_that_are_resumed(self) -> None:
        times = 3
        for version in ('TLSv1.3', 'TLSv1.2'):
            done = self.run_client(version, times)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([json.loads(line) for line in done.stdout.splitlines()],
                             [{'status': 200, 'protocol': 'HTTP_1_1', 'version': version, 'body': MORE,
                               'digest': hashlib.sha256(b'm' * MORE).hexdigest()}] * times)
        self.assertEqual(len(self.server.requests), 2 * times)
        self.ringside.stop()
        # It does not say of a session whether it was resumed, so ringside has to.
        found = re.search(r' tls-counts clients: full=(\d+) resumed=(\d+) failed=(\d+)', self.ringside.log())
        self.assertIsNotNone(found, self.ringside.log())
        self.assertEqual(found.groups(), ('2', str(2 * times - 2), '0'))  # type: ignore[union-attr]

    @limit(300)
    def test_an_authority_that_it_does_not_know(self) -> None:
        stranger = type(self.authority)(self.folder / 'other')
        done = self.run_client('TLSv1.3', 1, stranger.ca)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('PKIX path', done.stderr)
        self.assertEqual(self.server.requests, [])
