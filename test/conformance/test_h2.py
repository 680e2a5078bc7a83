"""HTTP/2 cases. Their names are those of public reports about some proxy, as the folders in `cases` are."""

import socket

from support import certificates, h2, proxy, testcase, upstream, wire

OTHER = ('GET', '/other')


class H2Cases(testcase.RingsideTest):
    """Each class of fault in what HTTP/2 clients send."""

    def start(self, answer=upstream.OK, **options: str) -> tuple[proxy.Ringside, upstream.Upstream]:
        early = bool(options.pop('early', False))
        server = self.start_upstream(answer, early=early)
        listen = '["127.0.0.1:0"]\nprotocols = ["h2", "http/1.1"]'
        return self.start_ringside(proxy.proxy_config(server.address, listen=listen, **options)), server

    def connect(self, ringside: proxy.Ringside, settings: bytes = b'') -> h2.Client:
        client = h2.Client(ringside.port, settings)
        self.addCleanup(client.sock.close)
        return client

    def check_rejected(self, fields: h2.Fields, *, body: bytes | None = None,
                       trailers: h2.Fields | None = None) -> None:
        """It is reset with PROTOCOL_ERROR, the server has no whole request of it, and the connection goes on."""
        ringside, server = self.start()
        client = self.connect(ringside)
        client.ask(1, fields, end=body is None and trailers is None)
        if body is not None:
            client.body(1, body, end=trailers is None)
        if trailers is not None:
            client.ask(1, trailers)
        self.assertTrue(client.wait(lambda: client.reset_code(1) is not None))
        self.assertEqual(client.reset_code(1), h2.PROTOCOL_ERROR)
        client.ask(3, h2.request(*OTHER))
        self.assertTrue(client.wait(lambda: client.complete(3)))
        self.assertEqual(client.status(3), 200)
        self.assertEqual([request.target for request in server.requests], ['/other'])

    def with_pseudo(self, name: str, value: str) -> h2.Fields:
        return [(name, value) if field[0] == name else field for field in h2.request()]

    def test_B02_transfer_encoding(self) -> None:
        smuggled = b'0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
        self.check_rejected(h2.request('POST', '/', ('transfer-encoding', 'chunked')), body=smuggled)

    def test_B03_crlf_in_value(self) -> None:
        for value in ('b\r\nx-injected: 1', 'b\nx-injected: 1', 'b\rx'):
            with self.subTest(value):
                self.check_rejected(h2.request('GET', '/', ('x-a', value)))

    def test_B05_crlf_in_name(self) -> None:
        for name in ('x-a\r\nx-injected', 'x a', 'x:a', 'X-A', 'x\0a', 'x\xe9'):
            with self.subTest(name):
                self.check_rejected(h2.request('GET', '/', (name, 'b')))

    def test_B07_empty_name(self) -> None:
        self.check_rejected(h2.request('GET', '/', ('', 'v')))

    def test_B08_value_whitespace(self) -> None:
        for value in (' v', 'v ', '\tv', 'v\t'):
            with self.subTest(value):
                self.check_rejected(h2.request('GET', '/', ('x-a', value)))

    def test_B10_method_with_space(self) -> None:
        for method in ('GET /admin', 'GET\r\nX: y', ''):
            with self.subTest(method):
                self.check_rejected(self.with_pseudo(':method', method))

    def test_B12_path_fragment(self) -> None:
        for path in ('/a#b', '/a b', '', 'a', '/a\r\nX: y'):
            with self.subTest(path):
                self.check_rejected(self.with_pseudo(':path', path))

    def test_B13_authority_slash(self) -> None:
        for authority in ('a.test/b', 'user@a.test', 'a.test b', 'a.test:x', 'a.test?b', 'a.test#b'):
            with self.subTest(authority):
                self.check_rejected(self.with_pseudo(':authority', authority))

    def test_B15_host_vs_authority(self) -> None:
        self.check_rejected(h2.request('GET', '/', ('host', 'evil.test')))

    def test_B17_cl_too_long(self) -> None:
        self.check_rejected(h2.request('POST', '/', ('content-length', '50')), body=b'hello')

    def test_B18_cl_too_short(self) -> None:
        smuggled = b'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
        self.check_rejected(h2.request('POST', '/', ('content-length', '0')), body=smuggled)

    def test_B20_cl_two(self) -> None:
        for second in ('5', '6'):
            with self.subTest(second):
                lengths = (('content-length', '5'), ('content-length', second))
                self.check_rejected(h2.request('POST', '/', *lengths), body=b'hello')

    def test_B22_upgrade_header(self) -> None:
        for field in (('upgrade', 'websocket'), ('connection', 'keep-alive'), ('keep-alive', 'timeout=5'),
                      ('proxy-connection', 'keep-alive')):
            with self.subTest(field[0]):
                self.check_rejected(h2.request('GET', '/', field))

    def test_B23_te_not_trailers(self) -> None:
        self.check_rejected(h2.request('GET', '/', ('te', 'trailers, deflate')))

    def test_B25_pseudo_twice(self) -> None:
        for name in (':path', ':method', ':authority', ':scheme'):
            with self.subTest(name):
                self.check_rejected([*h2.request(), (name, '/two')])

    def test_B27_pseudo_in_trailers(self) -> None:
        self.check_rejected(h2.request('POST', '/'), body=b'hello', trailers=[(':path', '/other')])

    def test_B28_trailer_framing(self) -> None:
        for name in ('content-length', 'transfer-encoding', 'connection'):
            with self.subTest(name):
                self.check_rejected(h2.request('POST', '/'), body=b'hello', trailers=[(name, '5')])
        ringside, server = self.start()
        client = self.connect(ringside)
        client.ask(1, h2.request('POST', '/'), end=False)
        client.body(1, b'hello')
        client.ask(1, [('x-forwarded-for', '10.0.0.1'), ('host', 'evil.test')])
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(server.requests[0].trailers, [])

    def test_B30_nul_in_value(self) -> None:
        self.check_rejected(h2.request('GET', '/', ('x-a', 'a\0b')))

    def attack(self, ringside: proxy.Ringside, rounds: int, frames) -> h2.Client:
        """Sends frames(number) until the connection has ended, which it must, and for what it did."""
        client = self.connect(ringside)
        for number in range(rounds):
            if client.refused:
                break
            client.send(frames(number))
        self.assertTrue(client.wait(lambda: client.end_code() is not None), 'it may go on for ever')
        self.assertEqual(client.end_code(), h2.ENHANCE_YOUR_CALM)
        other = self.connect(ringside)
        other.ask(1, h2.request(*OTHER))
        self.assertTrue(other.wait(lambda: other.complete(1)), 'others notice nothing')
        return client

    def request_and(self, number: int, kind: int, payload: bytes) -> bytes:
        stream = 2 * number + 1
        return h2.frame(h2.HEADERS, 5, stream, h2.block(h2.request())) + h2.frame(kind, 0, stream, payload)

    def test_B32_rapid_reset(self) -> None:
        ringside, server = self.start()
        self.attack(ringside, 4000, lambda n: self.request_and(n, h2.RST_STREAM, b'\0\0\0\x08'))
        self.assertLess(len(server.requests), 600)

    def test_B33_made_you_reset(self) -> None:
        ringside, server = self.start()
        client = self.connect(ringside)
        client.send(self.request_and(0, h2.WINDOW_UPDATE, b'\0\0\0\0'))
        self.assertTrue(client.wait(lambda: client.end_code() is not None))
        self.assertEqual(client.end_code(), h2.PROTOCOL_ERROR)
        self.attack(ringside, 4000, lambda n: self.request_and(n, h2.WINDOW_UPDATE, b'\x7f\xff\xff\xff'))
        self.assertLess(len(server.requests), 600)

    def test_B35_hpack_bomb(self) -> None:
        ringside, server = self.start()
        for name, size, references in ((b'x-bomb', 3500, 12000), (b'x-tiny', 1, 14000), (b'cookie', 100, 3000)):
            with self.subTest(name):
                client = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 0))
                entry = b'\x40' + h2.integer(len(name), 7) + name + h2.integer(size, 7) + b'v' * size
                client.send(h2.frame(h2.HEADERS, 5, 1, h2.block(h2.request()) + entry + b'\xbe' * references))
                self.assertTrue(client.wait(lambda c=client: c.end_code() is not None or c.status(1) is not None))
                self.assertTrue(client.status(1) == 431 or client.end_code() == h2.ENHANCE_YOUR_CALM)
        self.assertEqual(server.requests, [])

    def test_B37_ping_and_settings_floods(self) -> None:
        ringside, _ = self.start()
        for name, flood in (('ping', h2.frame(h2.PING, 0, 0, b'12345678')),
                            ('settings', h2.frame(h2.SETTINGS, 0, 0, h2.setting(h2.INITIAL_WINDOW, 65536)))):
            with self.subTest(name):
                self.attack(ringside, 2000, lambda _, flood=flood: flood * 100)

    def test_B38_window_zero_then_open(self) -> None:
        body = bytes(range(256)) * 64
        ringside, _ = self.start(f'HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body)
        client = self.connect(ringside, h2.setting(h2.INITIAL_WINDOW, 0))
        client.ask(1, h2.request())
        self.assertTrue(client.wait(lambda: client.status(1)))
        client.send(h2.frame(h2.PING, 0, 0, b'12345678'))
        self.assertTrue(client.wait(lambda: client.of(h2.PING)))
        self.assertEqual(client.data(1), b'', 'no byte before the window opens')
        while len(client.data(1)) < len(body):
            before = len(client.data(1))
            client.open(1, 1001)
            self.assertTrue(client.wait(lambda b=before: len(client.data(1)) == min(b + 1001, len(body))))
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(client.data(1), body)

    def test_B40_early_response_upload(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(b'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno')
            connection.drain()

        ringside, _ = self.start(answer, early='yes')
        client = self.connect(ringside)
        client.ask(1, h2.request('POST', '/', ('content-length', '1000000')), end=False)
        sent = 0
        self.assertTrue(client.wait(lambda: client.complete(1)))
        while sent < 1_000_000 and client.reset_code(1) is None:
            given = 65535 + sum(f.number() for f in client.of(h2.WINDOW_UPDATE, 0))
            if not client.wait(lambda s=sent, g=given: client.reset_code(1) is not None or s + 10_000 <= g, 5):
                self.fail('the upload waits for a window that never comes')
            sent += 10_000
            client.send(h2.frame(h2.DATA, h2.END_STREAM if sent == 1_000_000 else 0, 1, bytes(10_000)),
                        h2.frame(h2.PING, 0, 0, b'12345678'))
            pings = sent // 10_000
            self.assertTrue(client.wait(lambda p=pings: len(client.of(h2.PING)) >= p))
        self.assertEqual((client.status(1), client.data(1)), (403, b'no'))
        self.assertIn(client.reset_code(1), (None, h2.NO_ERROR))

    def test_B42_extended_connect_is_for_websockets(self) -> None:
        connect = [(':method', 'CONNECT'), (':protocol', 'websocket'), (':scheme', 'http'), (':authority', 'a.test'),
                   (':path', '/ws'), ('sec-websocket-version', '13')]
        ringside, server = self.start()
        client = self.connect(ringside)
        self.assertTrue(client.wait(lambda: client.of(h2.SETTINGS)))
        settings = client.of(h2.SETTINGS)[0].payload
        self.assertIn(h2.setting(8, 1), [settings[at:at + 6] for at in range(0, len(settings), 6)])
        client.ask(1, [(name, 'connect-udp' if name == ':protocol' else value) for name, value in connect], end=False)
        self.assertTrue(client.wait(lambda: client.complete(1)))
        self.assertEqual(client.status(1), 501)
        # Over before it began; told to be a GET; with a body; and answered by a server that speaks none.
        self.check_rejected(connect)
        self.check_rejected([(':method', 'GET'), *connect[1:]], body=b'')
        self.check_rejected([*connect, ('content-length', '5')], body=b'hello')
        client.ask(3, connect, end=False)
        self.assertTrue(client.wait(lambda: client.complete(3)))
        self.assertEqual(client.status(3), 502)
        self.assertEqual(server.requests[0].method, 'GET')
        self.assertEqual(server.requests[0].get('upgrade'), 'websocket')

    def test_B43_response_trailers(self) -> None:
        ringside, _ = self.start(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: grpc-status\r\n\r\n'
                                 b'2\r\nok\r\n0\r\ngrpc-status: 0\r\n\r\n')
        client = self.connect(ringside)
        client.ask(1, h2.request())
        self.assertTrue(client.wait(lambda: client.complete(1)))
        last = [f for f in client.frames if f.stream == 1][-1]
        self.assertEqual(last.kind, h2.HEADERS)
        self.assertTrue(last.flags & h2.END_STREAM)
        self.assertEqual(len(client.of(h2.HEADERS, 1)), 2)
        self.assertFalse(any(f.flags & h2.END_STREAM for f in client.of(h2.DATA, 1)))

    def test_B45_plain_http_on_a_tls_port(self) -> None:
        server = self.start_upstream(upstream.OK)
        extra = ('[listen.tls]\naddress = "127.0.0.1:0"\ntls = "main"\nprotocols = ["h2", "http/1.1"]\n'
                 f'[tls.main]\ncertificates = [{{ {certificates.shared().server.toml()} }}]\n')
        ringside = self.start_ringside(proxy.proxy_config(server.address, extra=extra))
        for first in (b'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n', h2.PREFACE):
            with socket.create_connection(('127.0.0.1', ringside.port_of('tls')), 10) as sock:
                sock.settimeout(10)
                sock.sendall(first)
                answer = b''
                while data := sock.recv(4096):
                    answer += data
            self.assertRegex(answer, b'^(HTTP/1.1 400 |\x15|$)', 'a status in clear text, an alert, or nothing')
        self.assertEqual(server.requests, [])
