"""Clients that others wrote for HTTP/2: Go's, Node's, Chromium's, and tools."""

import hashlib
import html
import json
import os
import pathlib
import re
import subprocess

from support import chromium, delay, golang, h2, testcase, upstream, wire
from support.limits import limit

from . import test_websocket

TEN_MB = 10_000_000
LARGE = bytes(range(256)) * (TEN_MB // 256)
MEDIUM = b'medium' * 20_000
SOUND = {
    'get': {'status': 200, 'protocol': 'HTTP/2.0', 'body': 'hello'},
    'head': {'status': 200, 'length': 5, 'body': ''},
    'post': {'statuses': [200, 200], 'same': [True, True]},
    'trailers': {'status': 200, 'body': 'hello', 'trailer': '5'},
    'continue': {'status': 200, 'told': True, 'body': 'hello'},
    'slow reader': {'beside': 20, 'alike': True, 'first': hashlib.sha256(MEDIUM).hexdigest(),
                    'slow': hashlib.sha256(LARGE).hexdigest()},
    'both ways': {'up': True, 'down': hashlib.sha256(LARGE).hexdigest()},
}
PAGE = f'''<!doctype html><html><head><title>HTTP/2</title></head><body><p id="said"></p><script>
const bytes = new Uint8Array({TEN_MB});
for (let i = 0; i < bytes.length; ++i) bytes[i] = i * 7 + (i >> 8);
const echo = async () => {{
  const back = new Uint8Array(await (await fetch('/echo', {{method: 'POST', body: bytes}})).arrayBuffer());
  return back.length === bytes.length && back.every((byte, i) => byte === bytes[i]);
}};
const large = async () => (await (await fetch('/large')).arrayBuffer()).byteLength;
const medium = async number => (await (await fetch('/medium?' + number)).text()).length;
const head = async () => (await fetch('/hello', {{method: 'HEAD'}})).headers.get('content-length');
const socket = () => new Promise(done => {{
  const socket = new WebSocket('wss://' + location.host + '/socket');
  const heard = [];
  socket.onmessage = event => {{
    heard.push(event.data.length > 99 ? event.data.length : event.data);
    if (heard.length === 1) socket.send('s'.repeat(500000));
    if (heard.length === 2) {{ socket.close(); done(heard); }}
  }};
  socket.onerror = () => done('an error');
}});
// The browser's virtual time stands still during a fetch, and not while a socket has something to say.
let waiting = true;
const wait = async () => {{ for (let i = 0; waiting && i < 5000; ++i) await fetch('/tick?' + i); }};
(async () => {{
  const [same, down, length, ...beside] = await Promise.all(
      [echo(), large(), head(), ...Array.from({{length: 20}}, (_, number) => medium(number))]);
  performance.setResourceTimingBufferSize(10000);
  wait();
  const talk = await socket();
  waiting = false;
  const protocols = new Set(performance.getEntriesByType('resource').map(entry => entry.nextHopProtocol));
  document.getElementById('said').textContent =
      JSON.stringify({{same, down, length, talk, beside: [...new Set(beside)], protocols: [...protocols]}});
}})();
</script></body></html>'''.encode()


def head(length: int, kind: str = 'application/octet-stream') -> bytes:
    return f'HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n'.encode()


def answer(connection: upstream.Connection, request: wire.Message) -> None:
    """What the cases of all clients ask for."""
    path = request.target.partition('?')[0]
    if path == '/continue':
        connection.send(b'HTTP/1.1 100 Continue\r\n\r\n')
    if request.method == 'POST':
        connection.read_body(request)
    if path in ('/echo', '/continue'):
        connection.send(head(len(request.body)) + request.body)
    elif path == '/hash':
        connection.send(head(64) + hashlib.sha256(request.body).hexdigest().encode())
    elif path == '/trailers':
        seen = dict(request.trailers).get('x-sum', '')
        connection.send(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Seen\r\n\r\n'
                        + f'{len(request.body):x}\r\n'.encode() + request.body
                        + f'\r\n0\r\nX-Seen: {seen}\r\n\r\n'.encode())
    elif request.method == 'HEAD':
        connection.send(head(5))
    else:
        body, kind = {'/large': (LARGE, ''), '/medium': (MEDIUM, ''), '/page': (PAGE, 'text/html')}.get(
            path, (b'hello', 'text/plain'))
        connection.send(head(len(body), kind or 'application/octet-stream') + body)


class ClientsTest(testcase.AuthorityTest):
    """A listener `web` in clear text, and `tls`, with a certificate of the CA; both speak HTTP/2. A WebSocket server has
    /socket."""

    def setUp(self) -> None:
        super().setUp()
        sockets = test_websocket.EchoServer()
        self.addCleanup(sockets.close)
        self.server = self.start_upstream(answer, early=True)
        self.ringside = self.start_proxy(
            self.server, listen='["127.0.0.1:0"]\nprotocols = ["h2", "http/1.1"]',
            extra=('[[site.route]]\npath = "/socket"\nupstream = "sockets"\n'
                   f'[upstream.sockets]\nservers = ["{sockets.address}"]\n'
                   '[listen.tls]\naddress = "127.0.0.1:0"\ntls = "h2"\nprotocols = ["h2", "http/1.1"]\n'
                   f'[tls.h2]\ncertificates = [{{ {self.authority.issue("main").toml()} }}]\n'))

    def url(self, scheme: str, path: str = '') -> str:
        return f'{scheme}://localhost:{self.ringside.port_of("tls" if scheme == "https" else "web")}{path}'

    def run_program(self, *command: str) -> str:
        done = subprocess.run(
            command, check=False, timeout=250, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            env={**os.environ, 'no_proxy': '*', 'NO_PROXY': '*', 'SSL_CERT_FILE': str(self.authority.ca),
                 'CURL_CA_BUNDLE': str(self.authority.ca)})
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def check_cases(self, text: str) -> None:
        found = {one.pop('case'): one for one in map(json.loads, text.splitlines())}
        self.assertEqual(found, SOUND)
        records = [json.loads(line) for line in self.ringside.access_lines()]
        self.assertEqual({record['protocol'] for record in records}, {'HTTP/2.0'})
        self.assertEqual(len({record['client_port'] for record in records}), 1, 'all on one connection')
        self.assertEqual({record['end'] for record in records}, {'complete'})


class Libraries(ClientsTest):
    """Each goes through the same cases."""

    @limit(400)
    def test_go(self) -> None:
        program = golang.build(self.need_program('go'), 'go_h2_client', self.folder)
        self.check_cases(self.run_program(str(program), '-ca', str(self.authority.ca), self.url('https')))

    def run_node(self, scheme: str, *options: str) -> None:
        script = pathlib.Path(__file__).resolve().parents[1] / 'support' / 'node_h2_client' / 'main.js'
        self.check_cases(self.run_program(self.need_program('node'), str(script), self.url(scheme), *options))

    @limit(300)
    def test_node_over_tls(self) -> None:
        self.run_node('https', str(self.authority.ca))

    @limit(300)
    def test_node_in_clear_text(self) -> None:
        self.run_node('http')


class Browser(ClientsTest):
    """Chromium, which takes HTTP/2 from ALPN alone."""

    @limit(150)
    def test_chromium(self) -> None:
        page, errors = chromium.load(
            self.need_program('chromium'), self.url('https', '/page'), authority=self.authority.ca,
            certutil=self.need_program('certutil'))
        said = re.search(r'<p id="said">([^<]+)</p>', page)
        self.assertTrue(said, page[-500:] + errors)
        self.assertEqual(json.loads(html.unescape(said[1])), {
            'same': True, 'down': len(LARGE), 'length': '5', 'talk': ['hello 127.0.0.1', 500_000],
            'beside': [len(MEDIUM)], 'protocols': ['h2']})
        self.assertTrue(upstream.wait_until(lambda: self.records_of('/socket')))
        self.assertEqual([(record['protocol'], record['status']) for record in self.records_of('/socket')],
                         [('HTTP/2.0', 200)])

    def records_of(self, target: str) -> list[dict]:
        records = map(json.loads, self.ringside.access_lines())
        return [record for record in records if record['target'] == target]


class Tools(ClientsTest):
    """What test_h2 does not ask of them."""

    def test_curl_asks_for_heads(self) -> None:
        for option, url in (('--http2-prior-knowledge', self.url('http', '/hello')),
                            ('--http2', self.url('https', '/hello'))):
            out = self.run_program(self.need_program('curl'), '-sS', '-I', option, url)
            self.assertRegex(out, r'(?s)^HTTP/2 200 .*content-length: 5\n')

    def test_an_upgrade_from_http_1_1_is_not_taken(self) -> None:
        """curl --http2 in clear text asks for h2c, which RFC 9113 took back; the answer is HTTP/1.1."""
        out = self.run_program(self.need_program('curl'), '-sS', '--http2', self.url('http', '/hello'),
                               '-w', ' %{http_version}')
        self.assertEqual(out, 'hello 1.1')

    def test_nghttp(self) -> None:
        body = self.folder / 'body'
        body.write_bytes(LARGE)
        nghttp = self.need_program('nghttp')
        for scheme in ('http', 'https'):
            out = self.run_program(nghttp, '-d', str(body), self.url(scheme, '/hash'))
            self.assertEqual(out, hashlib.sha256(LARGE).hexdigest())
            out = self.run_program(nghttp, '-v', '--expect-continue', '-d', str(body),
                                   self.url(scheme, '/continue'), '--null-out')
            self.assertRegex(out, r'(?s):status: 100\n.*:status: 200\n')
            out = self.run_program(nghttp, '-n', '-s', '-m', '20', self.url(scheme, '/medium'))
            self.assertEqual(len(re.findall(r' 200 +\d+K? /medium', out)), 20, out)

    def test_h2load_with_a_hundred_connections(self) -> None:
        for scheme in ('http', 'https'):
            for connections in (10, 100):
                out = self.run_program(self.need_program('h2load'), '-n', '4000', '-c', str(connections), '-m', '10',
                                       self.url(scheme, '/hello'))
                self.assertIn('4000 succeeded, 0 failed, 0 errored, 0 timeout', out)
                self.assertIn('status codes: 4000 2xx, 0 3xx, 0 4xx, 0 5xx', out)


class LongPath(ClientsTest):
    """A round trip of 50 ms."""

    def setUp(self) -> None:
        super().setUp()
        path = delay.Delay(self.ringside.port, 0.025)
        self.addCleanup(path.close)
        self.client = h2.Client(path.port)
        self.addCleanup(self.client.sock.close)

    def window(self, stream: int) -> int:
        """What was ever given, less what it began with."""
        return sum(f.number() for f in self.client.of(h2.WINDOW_UPDATE, stream))

    def upload(self, path: str, size: int) -> int:
        """Sends as windows let it. The most that was under way at once."""
        self.client.ask(1, [(':method', 'POST'), (':scheme', 'http'), (':authority', 'a.test'), (':path', path),
                            ('content-length', str(size))], end=False)
        sent = most = 0

        def room() -> int:
            return min(65535 + self.window(0), 256 * 1024 + self.window(1)) - sent

        while sent < size:
            self.assertTrue(self.client.wait(lambda: room() > 0))
            most = max(most, room())
            part = min(room(), size - sent)
            sent += part
            self.client.body(1, bytes(part), end=sent == size)
        return most

    @limit(120)
    def test_windows_open_for_an_upload(self) -> None:
        size = 40_000_000
        most = self.upload('/hash', size)
        self.assertTrue(self.client.wait(lambda: self.client.complete(1), 60))
        self.assertEqual(self.client.data(1), hashlib.sha256(bytes(size)).hexdigest().encode())
        self.assertGreater(most, 2 * 256 * 1024, 'it stayed at what every client gets')
        self.assertTrue(self.client.of(h2.PING))
