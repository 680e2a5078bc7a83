"""Messages of every shape, from a raw client to a raw upstream."""

import re

from support import client, modes, testcase, upstream, wire


def reply(body: bytes = b'ok', *, headers: str = '', status: str = '200 OK') -> bytes:
    return f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n'.encode() + body


class Requests(testcase.RingsideTest):
    """What the upstream sees of a request."""

    def test_get_keeps_target_and_fields(self) -> None:
        ringside, server = self.start_pair()
        target = '/a%2Fb/c?x=1&y=%20&z=[1]'
        response = client.request(ringside.port, target, headers='X-One: 1\r\nx-one: 2\r\nAccept: */*\r\n')
        self.assertEqual((response.status, response.body), (200, b'ok'))
        request = server.requests[0]
        self.assertEqual(request.start, f'GET {target} HTTP/1.1')
        self.assertEqual(request.get_all('x-one'), ['1', '2'])
        self.assertEqual(request.get_all('host'), ['a.test'])
        self.assertEqual(request.get('accept'), '*/*')

    def test_forwarding_fields(self) -> None:
        ringside, server = self.start_pair(forwarding='forwarded = true')
        client.request(ringside.port, '/', headers='X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: forged\r\n'
                                                   'Forwarded: for=6.6.6.6\r\n')
        request = server.requests[0]
        self.assertEqual(request.get_all('x-forwarded-for'), ['127.0.0.1'])
        self.assertEqual(request.get_all('x-forwarded-proto'), [modes.scheme()])
        self.assertEqual(request.get_all('x-forwarded-host'), ['a.test'])
        self.assertNotIn('6.6.6.6', request.get('forwarded') or '')
        self.assertIn('for=127.0.0.1', (request.get('forwarded') or '').replace('"', ''))
        self.assertRegex(request.get('via') or '', r'^1\.1 ringside')
        self.assertRegex(request.get('x-request-id') or '', r'^[0-9a-f]{32}$')

    def test_trusted_proxy_is_extended(self) -> None:
        ringside, server = self.start_pair(forwarding='trusted_proxies = ["127.0.0.0/8"]')
        client.request(ringside.port, '/', headers='X-Forwarded-For: 192.0.2.7\r\nX-Request-Id: abc-1\r\n')
        request = server.requests[0]
        self.assertEqual(request.get('x-forwarded-for'), '192.0.2.7, 127.0.0.1')
        self.assertEqual(request.get('x-request-id'), 'abc-1')
        self.assertEqual(ringside.access_records(1)[0]['client'], '192.0.2.7')

    def test_C19_names_that_fold_to_managed_ones(self) -> None:
        ringside, server = self.start_pair()
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers=(
                'X_Forwarded_For: 6.6.6.6\r\nX.Forwarded.Proto: forged\r\nX-Forwarded_Host: 6.6.6.6\r\n'
                'Transfer-Encoding: chunked\r\n'))
            peer.send('1\r\nx\r\n0\r\nX_Forwarded_For: 6.6.6.6\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n')
            self.assertEqual(peer.read_response().status, 200)
        self.assertNotIn(b'6.6.6.6', server.received())
        self.assertNotIn(b'forged', server.received())

    def test_hop_by_hop_fields_stay_here(self) -> None:
        ringside, server = self.start_pair()
        client.request(ringside.port, '/', headers=(
            'Connection: X-Private\r\nX-Private: secret\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n'
            'TE: gzip\r\nUpgrade: other\r\n'))
        request = server.requests[0]
        for name in ('x-private', 'keep-alive', 'proxy-connection', 'te', 'upgrade'):
            self.assertEqual(request.get_all(name), [], name)

    def test_chunked_upload_with_trailers(self) -> None:
        ringside, server = self.start_pair()
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n')
            for piece in ('3;ext=1\r\nabc\r\n', '00a\r\n0123456789\r\n', '0\r\nX-Sum: 13\r\n\r\n'):
                peer.send(piece)
            self.assertEqual(peer.read_response().status, 200)
        request = server.requests[0]
        self.assertEqual(request.body, b'abc0123456789')
        self.assertEqual(dict(request.trailers).get('X-Sum'), '13')
        self.assertIsNone(request.get('content-length'))

    def test_head_in_single_bytes(self) -> None:
        ringside, server = self.start_pair()
        with client.Client(ringside.port) as peer:
            for byte in b'POST /x HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n\r\nabc':
                peer.send(bytes([byte]))
            self.assertEqual(peer.read_response().status, 200)
        self.assertEqual(server.requests[0].body, b'abc')

    def test_keep_alive_reuses_both_connections(self) -> None:
        ringside, server = self.start_pair()
        with client.Client(ringside.port) as peer:
            for number in range(20):
                peer.get(f'/{number}')
                self.assertEqual(peer.read_response().body, b'ok')
        self.assertEqual(len(server.connections), 1)
        self.assertEqual([r.target for r in server.requests], [f'/{n}' for n in range(20)])

    def test_pipelined_requests_are_answered_in_order(self) -> None:
        ringside, _ = self.start_pair(lambda c, r: c.send(reply(r.target.encode())))
        with client.Client(ringside.port) as peer:
            peer.send(b''.join(f'GET /{n} HTTP/1.1\r\nHost: a.test\r\n\r\n'.encode() for n in range(50)))
            self.assertEqual([peer.read_response().body for _ in range(50)],
                             [f'/{n}'.encode() for n in range(50)])

    def test_http10_client(self) -> None:
        ringside, server = self.start_pair()
        with client.Client(ringside.port) as peer:
            peer.send('GET / HTTP/1.0\r\n\r\n')
            self.assertTrue(peer.read_to_end().endswith(b'\r\n\r\nok'))
        with client.Client(ringside.port) as peer:
            peer.send('GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n')
            response = peer.read_response()
            self.assertEqual(response.body, b'ok')
            self.assertIsNone(peer.ended)
            if (response.get('connection') or '').lower() == 'keep-alive':
                peer.send('GET /2 HTTP/1.0\r\nHost: a.test\r\n\r\n')
                self.assertEqual(peer.read_response().body, b'ok')
        self.assertTrue(all(r.start.endswith(' HTTP/1.1') for r in server.requests))

    def test_options_asterisk(self) -> None:
        ringside, server = self.start_pair()
        self.assertEqual(client.request(ringside.port, '*', method='OPTIONS').status, 200)
        self.assertEqual(server.requests[0].start, 'OPTIONS * HTTP/1.1')

    def test_dot_segments_cannot_slip_by_a_route(self) -> None:
        server = self.start_upstream()
        ringside = self.start_proxy(server, extra=(
            '[[site.route]]\npath = "/admin/*"\nrespond = { status = 403, body = "no" }\n'))
        for target in ('/admin/x', '/a/../admin/x', '/%2e%2e/admin/x', '/a/%2E%2e/admin/x', '/%61dmin/x',
                       '/./admin/x'):
            self.assertEqual(client.request(ringside.port, target).status, 403, target)
        self.assertEqual(server.requests, [])


class Responses(testcase.RingsideTest):
    """What the client sees of a response."""

    def answer_with(self, data: bytes, *, method: str = 'GET', end: bool = False) -> client.Client:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(data)
            return not end

        ringside, _ = self.start_pair(answer)
        peer = client.Client(ringside.port)
        self.addCleanup(peer.close)
        return peer.get('/', method=method)

    def test_head(self) -> None:
        peer = self.answer_with(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n', method='HEAD')
        self.assertEqual(peer.read_response(method='HEAD').get('content-length'), '1000')
        peer.get('/', method='HEAD')
        self.assertEqual(peer.read_response(method='HEAD').status, 200)
        self.assertEqual(peer.unread(), b'')

    def test_204_and_304_have_no_body(self) -> None:
        for status in ('204 No Content', '304 Not Modified'):
            peer = self.answer_with(f'HTTP/1.1 {status}\r\nETag: "x"\r\n\r\n'.encode())
            for _ in range(2):
                response = peer.read_response()
                self.assertEqual((response.start, response.get('etag')), (f'HTTP/1.1 {status}', '"x"'))
                self.assertIsNone(response.get('transfer-encoding'))
                peer.get('/')

    def test_chunked_with_trailers(self) -> None:
        peer = self.answer_with(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n'
                                b'5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n')
        response = peer.read_response()
        self.assertEqual(response.body, b'hello')
        self.assertEqual(response.trailers, [('X-Sum', '5')])

    def test_close_delimited(self) -> None:
        peer = self.answer_with(b'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nuntil the end', end=True)
        response = peer.read_response()
        self.assertEqual(response.body, b'until the end')
        self.assertEqual(response.get('content-type'), 'text/plain')

    def test_interim_responses_are_relayed(self) -> None:
        peer = self.answer_with(b'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n' + reply())
        first = peer.read_response(interim=True)
        self.assertEqual((first.status, first.get('link')), (103, '</a.css>'))
        last = peer.read_response()
        self.assertEqual((last.status, last.get('link')), (200, None))

    def test_hop_by_hop_fields_stay_here(self) -> None:
        peer = self.answer_with(reply(headers='Connection: X-Private\r\nX-Private: 1\r\nKeep-Alive: 5\r\n'
                                              'Proxy-Authenticate: Basic\r\nX-Kept: 1\r\n'))
        response = peer.read_response()
        self.assertIsNone(response.get('x-private'))
        self.assertIsNone(response.get('keep-alive'))
        self.assertEqual(response.get('x-kept'), '1')

    def test_set_cookie_lines_are_not_joined(self) -> None:
        peer = self.answer_with(reply(headers='Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n'))
        self.assertEqual(peer.read_response().get_all('set-cookie'), ['a=1', 'b=2'])

    def test_bad_responses_are_502(self) -> None:
        for data in (b'nonsense\r\n\r\n', b'HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n',
                     b'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
                     b'HTTP/2.0 200 OK\r\n\r\n', b'HTTP/1.1 99 Low\r\n\r\n'):
            peer = self.answer_with(data, end=True)
            self.assertEqual(peer.read_response().status, 502, data)


class Continue(testcase.RingsideTest):
    """Expect: 100-continue (RFC 9110 §10.1.1)."""

    def test_the_server_says_continue(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(b'HTTP/1.1 100 Continue\r\n\r\n')
            connection.read_body(request)
            connection.send(reply(request.body))

        ringside, server = self.start_pair(answer, early=True)
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Expect: 100-continue\r\nContent-Length: 4\r\n')
            self.assertEqual(peer.read_response(interim=True).status, 100)
            peer.send('body')
            self.assertEqual(peer.read_response().body, b'body')
        self.assertEqual(server.errors, [])

    def test_early_response_while_the_body_comes_in(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(reply(b'too much', status='413 Content Too Large', headers='Connection: close\r\n'))
            connection.drain()

        ringside, _ = self.start_pair(answer, early=True)
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Content-Length: 10000000\r\n').send(b'x' * 100000)
            response = peer.read_response()
            self.assertEqual((response.status, response.body), (413, b'too much'))
            self.assertIsNone(re.search(rb'HTTP/1\.1', peer.unread()))


class Local(testcase.RingsideTest):
    """Answers that ringside makes itself."""

    def test_respond_redirect_and_methods(self) -> None:
        server = self.start_upstream()
        ringside = self.start_proxy(server, extra='''
[[site.route]]
path = "/hello"
methods = ["GET"]
respond = { status = 201, body = "hello", headers = { "content-type" = "text/plain", "x-a" = "b" } }
[[site.route]]
path = "/old/*"
redirect = { to = "https://{host}/new", status = 301 }
''')
        response = client.request(ringside.port, '/hello')
        self.assertEqual((response.status, response.body, response.get('x-a')), (201, b'hello', 'b'))
        self.assertEqual(response.get('content-type'), 'text/plain')
        head = client.request(ringside.port, '/old/x')
        self.assertEqual((head.status, head.get('location')), (301, 'https://a.test/new'))
        self.assertEqual(server.requests, [])

    def test_response_headers_of_answers_made_here(self) -> None:
        edits = ('response_headers = { set = { server = "s", cache-control = "max-age=9", x-m = "{method} {header.x-a}" }, '
                 'add = { x-b = ["1", "2"] }, remove = ["x-request-id", "x-c"] }\n')
        ringside = self.start_ringside(f'''
[listen.web]
address = "127.0.0.1:0"
protocols = ["h2", "http/1.1"]
[upstream.gone]
servers = ["unix:@DIR@/none.sock"]
[[site]]
hosts = ["*"]
[[site.route]]
path = "/respond"
respond = {{ body = "hello", headers = {{ x-c = "c", x-d = "d" }} }}
{edits}
[[site.route]]
path = "/redirect"
redirect = "https://b.test/"
{edits}
[[site.route]]
path = "/gone"
upstream = "gone"
{edits}
''')
        kept = {'/respond': (200, 'max-age=9', 'd', None, 'text/plain; charset=utf-8'),
                '/redirect': (308, 'max-age=9', None, 'https://b.test/', None),
                # Not to be kept as long as what it stands for.
                '/gone': (502, None, None, None, 'text/plain; charset=utf-8')}
        for path, wanted in kept.items():
            response = client.request(ringside.port, path, headers='X-A: a\r\n')
            names = ('cache-control', 'x-d', 'location', 'content-type')
            self.assertEqual((response.status, *(response.get(name) for name in names)), wanted)
            self.assertEqual([response.get_all(name) for name in ('server', 'x-m', 'x-b', 'x-request-id', 'x-c')],
                             [['s'], ['GET a'], ['1', '2'], [], []])
        response = client.request(ringside.port, '/none')
        self.assertEqual((response.status, response.get('server'), response.get('x-b')), (404, 'ringside', None))

    def test_nobody_answers_for_that_host(self) -> None:
        server = self.start_upstream()
        toml = ('[listen.web]\naddress = "127.0.0.1:0"\n[[site]]\nhosts = ["b.test"]\n[[site.route]]\n'
                'path = "/x"\nmethods = ["GET"]\nrespond = { status = 200, body = "b" }\n')
        ringside = self.start_ringside(toml)
        self.assertEqual(client.request(ringside.port, '/x').status, 404)
        with client.Client(ringside.port) as peer:
            peer.send('GET /x HTTP/1.1\r\nHost: b.test\r\n\r\n')
            self.assertEqual(peer.read_response().body, b'b')
            peer.send('GET /y HTTP/1.1\r\nHost: b.test\r\n\r\n')
            self.assertEqual(peer.read_response().status, 404)
            peer.send('DELETE /x HTTP/1.1\r\nHost: b.test\r\n\r\n')
            response = peer.read_response()
            self.assertEqual((response.status, 'GET' in (response.get('allow') or '')), (405, True))
        self.assertEqual(server.connections, [])

    def test_header_edits(self) -> None:
        server = self.start_upstream(reply(headers='X-Remove: 1\r\nX-Keep: 1\r\n'))
        ringside = self.start_proxy(server, route='''
request_headers = { set = { "x-set" = "{method} {host}" }, add = { "x-one" = "2" }, remove = ["x-gone"] }
response_headers = { set = { "x-new" = "n" }, remove = ["x-remove"] }
''')
        response = client.request(ringside.port, '/p', headers='X-Set: old\r\nX-One: 1\r\nX-Gone: 1\r\n')
        request = server.requests[0]
        self.assertEqual(request.get_all('x-set'), ['GET a.test'])
        self.assertEqual(request.get_all('x-one'), ['1', '2'])
        self.assertEqual(request.get_all('x-gone'), [])
        self.assertEqual([response.get(n) for n in ('x-new', 'x-remove', 'x-keep')], ['n', None, '1'])

    def test_prefixes(self) -> None:
        server = self.start_upstream()
        ringside = self.start_proxy(server, extra=(
            '[[site.route]]\npath = "/api/*"\nupstream = "app"\nstrip_prefix = "/api"\nadd_prefix = "/v1"\n'))
        client.request(ringside.port, '/api/a%20b?q=1')
        client.request(ringside.port, '/other')
        self.assertEqual([r.target for r in server.requests], ['/v1/a%20b?q=1', '/other'])
