"""curl as the client, nginx as the upstream."""

import hashlib
import json
import os
import pathlib
import subprocess
import tempfile

from support import modes, nginx, testcase, upstream, wire
from support.limits import limit

BIG = 50_000_000


class Curl(testcase.RingsideTest):
    """What people type."""

    def setUp(self) -> None:
        super().setUp()
        self.curl_program = self.need_program('curl')
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start_nginx(self, lines: str = '') -> nginx.Nginx:
        server = nginx.Nginx(lines)
        self.addCleanup(server.close)
        return server

    def curl(self, *arguments: str) -> bytes:
        done = subprocess.run([self.curl_program, '-sS', '--max-time', '60', *arguments], check=False,
                              capture_output=True, env={**os.environ, **modes.tool_environment(), 'no_proxy': '*'})
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return done.stdout

    def test_get_and_head(self) -> None:
        server = self.start_nginx()
        (server.www / 'page.html').write_text('<p>page</p>')
        ringside = self.start_proxy(server.address)
        self.assertEqual(self.curl(ringside.url('/page.html')), b'<p>page</p>')
        head = self.curl('-I', ringside.url('/page.html')).decode()
        self.assertIn('Content-Length: 11', head)
        self.assertIn('200', head.splitlines()[0])
        self.assertEqual(self.curl('-o', '/dev/null', '-w', '%{http_code}', ringside.url('/none')), b'404')

    def test_post_echo(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(f'HTTP/1.1 200 OK\r\nContent-Length: {len(request.body)}\r\n\r\n'.encode() + request.body)

        ringside, server = self.start_pair(answer)
        body = json.dumps({'a': list(range(1000))})
        self.assertEqual(self.curl('-d', body, ringside.url()).decode(), body)
        self.assertEqual(server.requests[0].get('content-type'), 'application/x-www-form-urlencoded')

    def upload(self, *options: str) -> tuple[wire.Message, bytes]:
        """Uploads a big file; returns what the server read of it and what curl printed."""
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            digest = hashlib.sha256(request.body).hexdigest().encode()
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + digest)

        ringside, server = self.start_pair(answer)
        data = os.urandom(1 << 20) * (BIG >> 20)
        (self.folder / 'up').write_bytes(data)
        printed = self.curl('-T', str(self.folder / 'up'), *options, ringside.url())
        self.assertEqual(printed.decode(), hashlib.sha256(data).hexdigest())
        return server.requests[0], printed

    @limit(120)
    def test_upload_50_mb(self) -> None:
        request, _ = self.upload()
        self.assertEqual(request.method, 'PUT')
        self.assertIsNotNone(request.get('content-length'))

    @limit(120)
    def test_upload_50_mb_chunked(self) -> None:
        request, _ = self.upload('-H', 'Transfer-Encoding: chunked')
        self.assertTrue(request.chunked)

    @limit(120)
    def test_upload_after_100_continue(self) -> None:
        request, _ = self.upload('-H', 'Expect: 100-continue', '--expect100-timeout', '30')
        self.assertEqual(len(request.body), (BIG >> 20) << 20)

    @limit(120)
    def test_download_50_mb_and_ranges(self) -> None:
        server = self.start_nginx()
        data = os.urandom(1 << 20) * (BIG >> 20)
        (server.www / 'big').write_bytes(data)
        ringside = self.start_proxy(server.address)
        self.curl('-o', str(self.folder / 'down'), ringside.url('/big'))
        self.assertTrue((self.folder / 'down').read_bytes() == data)
        self.assertTrue(self.curl('-r', '1000-1999', ringside.url('/big')) == data[1000:2000])
        head = self.curl('-r', '5-9', '-D', '-', '-o', '/dev/null', ringside.url('/big')).decode()
        self.assertIn('206', head.splitlines()[0])
        self.assertIn(f'bytes 5-9/{len(data)}', head)
        # A download that was cut is taken up again where it ended.
        (self.folder / 'part').write_bytes(data[:12345])
        self.curl('-C', '-', '-o', str(self.folder / 'part'), ringside.url('/big'))
        self.assertTrue((self.folder / 'part').read_bytes() == data)

    def test_conditional_request(self) -> None:
        server = self.start_nginx()
        (server.www / 'x').write_text('x')
        ringside = self.start_proxy(server.address)
        etag = next(line.split(': ')[1].strip() for line in
                    self.curl('-I', ringside.url('/x')).decode().splitlines() if line.startswith('ETag'))
        self.assertEqual(self.curl('-H', f'If-None-Match: {etag}', '-o', '/dev/null', '-w', '%{http_code}',
                                   ringside.url('/x')), b'304')

    def test_http10(self) -> None:
        server = self.start_nginx()
        ringside = self.start_proxy(server.address)
        self.assertEqual(len(self.curl('--http1.0', ringside.url('/small'))), 1024)

    def test_connections_are_reused(self) -> None:
        server = self.start_nginx()
        ringside = self.start_proxy(server.address)
        urls = [ringside.url('/small')] * 5
        counts = self.curl('-o', '/dev/null', '-w', '%{num_connects}\n', *[
            part for url in urls for part in ('-o', '/dev/null', url)][2:])
        self.assertEqual(counts.split(), [b'1', b'0', b'0', b'0', b'0'])
        self.assertEqual([record['reused'] for record in ringside.access_records(5)],
                         [False, True, True, True, True])

    def test_gzip_passes_untouched(self) -> None:
        server = self.start_nginx('gzip on; gzip_proxied any; gzip_types text/html; gzip_min_length 1;')
        (server.www / 'z.html').write_text('z' * 5000)
        ringside = self.start_proxy(server.address)
        self.assertEqual(self.curl('--compressed', ringside.url('/z.html')), b'z' * 5000)
        raw = self.curl('-H', 'Accept-Encoding: gzip', ringside.url('/z.html'))
        self.assertTrue(raw.startswith(b'\x1f\x8b'))
