"""Sites that want https, and what they and their servers get to know of TLS clients."""

import base64
import hashlib
import os
import pathlib
import ssl
import subprocess
import tempfile

from support import certificates, client, testcase, upstream

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
FIELDS = ('subject', 'cn', 'issuer', 'serial', 'fingerprint', 'san', 'dns', 'uri', 'verified')


class HttpsTest(testcase.RingsideTest):
    """Ringside with a listener in clear text, `web`, and one of TLS, `tls`."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.authority = certificates.Authority(self.folder / 'ca')
        self.pair = self.authority.issue('main', ('a.test', 'b.test', 'c.test', '127.0.0.1'))

    def start(self, sites: str, *, web: str = '', tls: str = '', more: str = ''):
        self.server = self.start_upstream(
            b'HTTP/1.1 200 OK\r\nStrict-Transport-Security: max-age=1\r\nContent-Length: 2\r\n\r\nok')
        return self.start_ringside(f'''
[server]
rings = 1
[log]
access = {{ format = "json", file = "@DIR@/access.log" }}
{more}
[listen.web]
address = "127.0.0.1:0"
{web}
[listen.tls]
address = "127.0.0.1:0"
tls = "main"
[tls.main]
certificates = [{{ {self.pair.toml()} }}]
{tls}
[upstream.app]
servers = ["{self.server.address}"]
{sites}''')

    def clear(self, ringside) -> client.Client:
        peer = client.Client(ringside.port_of('web'), tls=None)
        self.addCleanup(peer.close)
        return peer

    def secure(self, ringside, name: str = 'a.test', *, shown: certificates.Pair | None = None,
               version: ssl.TLSVersion | None = None) -> client.Client:
        context = self.authority.client_context(version)
        if shown:
            context.load_cert_chain(shown.cert, shown.key)
        peer = client.Client(ringside.port_of('tls'), tls=context, server_name=name)
        self.addCleanup(peer.close)
        return peer

    def ask(self, peer: client.Client, target: str = '/', *, host: str = 'a.test', method: str = 'GET',
            fields: str = ''):
        peer.send(f'{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n')
        return peer.read_response(method=method)


class Redirects(HttpsTest):
    SITE = '''
[[site]]
hosts = ["a.test", "*.a.test"]
redirect_https = {redirect}
[[site.route]]
path = "/x/*"
upstream = "app"
[[site.route]]
path = "/.well-known/acme-challenge/*"
respond = {{ body = "proof" }}
[[site.route]]
path = "/healthz"
respond = {{ body = "fine" }}
redirect_https = false
[[site]]
hosts = ["b.test"]
[[site.route]]
respond = {{ body = "b" }}
'''

    def test_a_request_in_clear_text_goes_to_the_same_place(self) -> None:
        ringside = self.start(self.SITE.format(redirect='true'))
        peer = self.clear(ringside)
        for target, location in (('/x/y%2Fz?a=1&b', 'https://a.test/x/y%2Fz?a=1&b'), ('/none', 'https://a.test/none'),
                                 ('//evil.test', 'https://a.test//evil.test'),
                                 ('http://W.A.test:80/x?', 'https://w.a.test/x?')):
            response = self.ask(peer, target, host='A.test:8080')
            self.assertEqual((response.status, response.get('location'), response.body), (308, location, b''))
            self.assertIsNone(response.get('strict-transport-security'))
        self.assertEqual(self.ask(peer, '/x/', method='HEAD').status, 308)
        self.assertEqual(self.ask(peer, '/x/', method='POST', fields='Content-Length: 0\r\n').status, 308)
        self.assertEqual(self.ask(peer, '/', host='c.test').status, 404)
        self.assertEqual(self.ask(peer, '/', host='b.test').body, b'b')
        self.assertEqual(self.ask(peer, '/.well-known/acme-challenge/t').body, b'proof')
        self.assertEqual(self.ask(peer, '/healthz').body, b'fine')
        self.assertEqual(self.server.requests, [])
        self.assertEqual(self.ask(self.secure(ringside), '/x/').body, b'ok')
        self.assertEqual(ringside.access_records(11)[0]['end'], 'complete')

    def test_status_and_port(self) -> None:
        ringside = self.start(self.SITE.format(redirect='{ status = 301, port = 8443 }'))
        response = self.ask(self.clear(ringside), '/q?1')
        self.assertEqual((response.status, response.get('location')), (301, 'https://a.test:8443/q?1'))

    def test_a_listener_speaks_for_its_sites(self) -> None:
        ringside = self.start(self.SITE.format(redirect='false'), web='redirect_https = true')
        peer = self.clear(ringside)
        self.assertEqual(self.ask(peer, '/x/').status, 200)
        self.assertEqual(self.ask(peer, '/', host='b.test').get('location'), 'https://b.test/')

    def test_hosts_that_could_be_read_in_two_ways(self) -> None:
        ringside = self.start(self.SITE.format(redirect='true'))
        for host in ('evil.test%2f.a.test', 'evil.test;.a.test', 'evil.test,.a.test', 'evil.test@w.a.test', 'a.test/b',
                     'evil.test\\.a.test', 'a.test:80:90', '[::1].a.test', 'a.test:x', ' ', 'a.test\r\nHost: b.test',
                     'evil.test?.a.test', 'evil.test#.a.test', 'evil.test\t.a.test', 'evil.test\xff.a.test'):
            response = self.ask(self.clear(ringside), '/x/', host=host)
            self.assertIn(response.status, (400, 404), host)
            self.assertIsNone(response.get('location'), host)
        for target in ('http://evil.test%2f.a.test/x', 'http://u@a.test/', 'http:///x', 'http://evil.test\\.a.test/'):
            response = self.ask(self.clear(ringside), target)
            self.assertEqual((response.status, response.get('location')), (400, None), target)
        anything = self.start('[[site]]\nhosts = ["*"]\nredirect_https = true\n[[site.route]]\nupstream = "app"\n')
        response = self.clear(anything).send('GET / HTTP/1.0\r\n\r\n').read_response()
        self.assertEqual((response.status, response.get('location')), (400, None))
        self.assertEqual(self.server.requests, [])

    def test_a_proxy_that_speaks_tls_for_us(self) -> None:
        ringside = self.start(self.SITE.format(redirect='true'), more='[forwarding]\ntrusted_proxies = "127.0.0.1"')
        peer = self.clear(ringside)
        for fields, status in (('X-Forwarded-Proto: https\r\n', 200), ('X-Forwarded-Proto: http\r\n', 308),
                               ('Forwarded: for=1.1.1.1;proto=https\r\n', 200), ('', 308)):
            self.assertEqual(self.ask(peer, '/x/', fields=fields).status, status, fields)
        # It makes TLS of what came in clear text.
        self.assertEqual(self.ask(self.secure(ringside), '/x/', fields='X-Forwarded-Proto: http\r\n').status, 308)

    def test_a_stranger_is_not_believed(self) -> None:
        ringside = self.start(self.SITE.format(redirect='true'))
        for fields in ('X-Forwarded-Proto: https\r\n', 'Forwarded: proto=https\r\n'):
            self.assertEqual(self.ask(self.clear(ringside), '/x/', fields=fields).status, 308)

    def test_curl_follows(self) -> None:
        server = self.start_upstream(upstream.OK)
        tls = self.start_ringside(f'''
[listen.tls]
address = "127.0.0.1:0"
tls = "main"
[tls.main]
certificates = [{{ {self.pair.toml()} }}]
[upstream.app]
servers = ["{server.address}"]
[[site]]
hosts = ["a.test"]
[[site.route]]
upstream = "app"
''')
        clear = self.start('[[site]]\nhosts = ["a.test"]\nlisten = ["web"]\nredirect_https = '
                           f'{{ port = {tls.port_of("tls")} }}\n[[site.route]]\nupstream = "app"\n')
        resolve = ['--resolve', f'a.test:{clear.port_of("web")}:127.0.0.1',
                   '--resolve', f'a.test:{tls.port_of("tls")}:127.0.0.1']
        done = subprocess.run([self.need_program('curl'), '-sSL', '--max-time', '30', '--cacert',
                               str(self.authority.ca), *resolve, '-d', 'body',
                               f'http://a.test:{clear.port_of("web")}/p?q'], check=False, timeout=60,
                              capture_output=True, env={**os.environ, 'no_proxy': '*'})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(r.method, r.target, r.body) for r in server.requests], [('POST', '/p?q', b'body')])


class Hsts(HttpsTest):
    SITE = '''
[[site]]
hosts = ["a.test"]
hsts = { max_age = "400d", include_subdomains = true, preload = true }
[[site.route]]
path = "/x"
methods = ["GET"]
upstream = "app"
[[site.route]]
path = "/local"
respond = { body = "l" }
[[site.route]]
path = "/own"
respond = { body = "l", headers = { "strict-transport-security" = "max-age=7" } }
[[site.route]]
path = "/moved"
redirect = "https://b.test/"
[[site]]
hosts = ["b.test"]
[[site.route]]
upstream = "app"
'''
    OURS = 'max-age=34560000; includeSubDomains; preload'

    def hsts(self, peer: client.Client, target: str, **options: str) -> list[str]:
        return self.ask(peer, target, **options).get_all('strict-transport-security')

    def test_every_response_over_tls_has_it(self) -> None:
        ringside = self.start(self.SITE)
        peer = self.secure(ringside)
        for target in ('/x', '/local', '/moved', '/none'):
            self.assertEqual(self.hsts(peer, target), [self.OURS], target)
        self.assertEqual(self.hsts(peer, '/x', method='PUT', fields='Content-Length: 0\r\n'), [self.OURS])  # 405
        self.assertEqual(self.hsts(peer, '/own'), ['max-age=7'])
        self.assertEqual(self.hsts(peer, '/', host='b.test'), ['max-age=1'])
        self.assertEqual(self.hsts(peer, '/', host='c.test'), [])
        self.server.close()
        self.assertEqual(self.hsts(peer, '/x'), [self.OURS])  # 502

    def test_none_has_it_in_clear_text(self) -> None:
        ringside = self.start(self.SITE)
        for target in ('/x', '/local', '/none'):
            self.assertEqual(self.hsts(self.clear(ringside), target), [], target)

    def test_a_proxy_that_speaks_tls_for_us(self) -> None:
        ringside = self.start(self.SITE, more='[forwarding]\ntrusted_proxies = "127.0.0.1"')
        self.assertEqual(self.hsts(self.clear(ringside), '/x', fields='X-Forwarded-Proto: https\r\n'), [self.OURS])


class Misdirected(HttpsTest):
    SITES = ''.join(f'[[site]]\nhosts = [{hosts}]\n[[site.route]]\nrespond = {{ body = "{hosts[1]}" }}\n'
                    for hosts in ('"a.test", "aa.test"', '"b.test"'))

    def rules(self, rule: str) -> str:
        self.asked = self.authority.issue('client', ('client.test',))
        return f'client_certificate = "{rule}"\nclient_ca = "{self.authority.ca}"\n'

    def test_another_site_than_that_of_the_handshake(self) -> None:
        for rule in ('optional', 'required'):
            ringside = self.start(self.SITES, tls=self.rules(rule))
            peer = self.secure(ringside, shown=self.asked)
            self.assertEqual(self.ask(peer, host='A.test:443').body, b'a')
            self.assertEqual(self.ask(peer, host='aa.test').body, b'a')
            response = self.ask(peer, host='b.test')
            self.assertEqual(response.status, 421)
            self.assertEqual(self.ask(peer, 'https://b.test/').status, 421)
            self.assertEqual(self.ask(peer, host='none.test').status, 421)
            # The connection is as good as before for its own site.
            self.assertEqual(self.ask(peer, host='a.test').body, b'a')
            self.assertEqual(self.ask(self.secure(ringside, 'b.test', shown=self.asked), host='b.test').body, b'b')
            ends = [record['end'] for record in ringside.access_records(7)]
            self.assertEqual(ends[2], 'client/route/misdirected')
            self.assertTrue(ringside.wait_for_log('421, since its handshake was for a.test'))

    def test_no_name_is_bound_to_none(self) -> None:
        ringside = self.start(self.SITES, tls=self.rules('required'))
        context = self.authority.client_context()
        context.check_hostname = False
        context.load_cert_chain(self.asked.cert, self.asked.key)
        with client.Client(ringside.port_of('tls'), tls=context, server_name='') as peer:
            self.assertEqual(self.ask(peer, host='b.test').body, b'b')

    def test_without_client_certificates_nothing_is(self) -> None:
        ringside = self.start(self.SITES)
        self.assertEqual(self.ask(self.secure(ringside), host='b.test').body, b'b')

    def test_rules_that_have_changed(self) -> None:
        ringside = self.start(self.SITES, tls=self.rules('required'))
        peer = self.secure(ringside, shown=self.asked)
        self.assertEqual(self.ask(peer).status, 200)
        other = certificates.Authority(self.folder / 'other', 'Another authority')
        fresh = self.folder / 'fresh'
        fresh.write_bytes(other.ca.read_bytes())
        # Clients still trust the old one for the server's certificate.
        trust = self.authority.client_context()
        os.replace(fresh, self.authority.ca)
        self.assertTrue(ringside.wait_for_log(r'\[tls\.main\]: changed files are in use'), ringside.log())
        new = other.issue('new', ('client.test',))
        trust.load_cert_chain(new.cert, new.key)
        response = self.ask(peer)
        self.assertEqual((response.status, response.get('connection')), (421, 'close'))
        with client.Client(ringside.port_of('tls'), tls=trust) as newer:
            self.assertEqual(self.ask(newer).status, 200)


class Identity(HttpsTest):
    """What a server is told of the client."""

    SITE = ('[[site]]\nhosts = ["*"]\n[[site.route]]\nupstream = "app"\n[site.route.request_headers.set]\n'
            + ''.join(f'x-{name} = "{{tls_client_{name}}}"\n' for name in FIELDS)
            + 'client-cert = "{tls_client_cert}"\nx-tls = "{tls_version} {tls_cipher} {tls_sni} {tls_alpn}"\n'
            + '[site.route.response_headers.set]\nx-you = "{tls_client_cn}"\n')
    SPOOFED = ''.join(f'X-{name}: evil\r\nX_{name}: evil\r\n' for name in FIELDS) + 'Client-Cert: :AA==:\r\n'

    def start_identity(self):
        return self.start(self.SITE, tls=f'client_certificate = "optional"\nclient_ca = "{self.authority.ca}"\n')

    def assert_identified(self, request, pair: certificates.Pair) -> None:
        der = ssl.PEM_cert_to_DER_cert(pair.cert.read_text())
        told = {name: request.get_all(f'x-{name}') for name in FIELDS}
        serial = certificates.openssl('x509', '-in', pair.cert, '-noout', '-serial').decode().strip().split('=')[1]
        self.assertEqual(told, {
            'subject': ['CN=client.test'], 'cn': ['client.test'], 'issuer': ['CN=Ringside test authority'],
            'serial': [serial], 'fingerprint': [hashlib.sha256(der).hexdigest()],
            'san': ['DNS:client.test, DNS:other.test, IP:10.1.2.3'], 'dns': ['client.test, other.test'], 'uri': [],
            'verified': ['true']})
        self.assertEqual(request.get_all('client-cert'), [f':{base64.b64encode(der).decode()}:'])
        self.assertFalse([name for name, value in request.headers if 'evil' in value])

    def test_of_a_client_with_a_certificate(self) -> None:
        ringside = self.start_identity()
        mine = self.authority.issue('client', ('client.test', 'other.test', '10.1.2.3'))
        for version, words in ((TLS12, r'TLSv1\.2 ECDHE-'), (TLS13, r'TLSv1\.3 TLS_')):
            peer = self.secure(ringside, 'A.test', shown=mine, version=version)
            for _ in range(2):
                response = self.ask(peer, fields=self.SPOOFED)
                self.assertEqual((response.status, response.get('x-you')), (200, 'client.test'))
                self.assert_identified(self.server.requests[-1], mine)
                self.assertRegex(self.server.requests[-1].get('x-tls'), words + r'\S+ a\.test http/1\.1$')
        self.assertEqual({record['tls_client'] for record in ringside.access_records(4)}, {'CN=client.test'})

    def test_of_a_client_without_one(self) -> None:
        ringside = self.start_identity()
        for peer in (self.secure(ringside), self.clear(ringside)):
            self.assertIsNone(self.ask(peer, fields=self.SPOOFED).get('x-you'))
            request = self.server.requests[-1]
            self.assertEqual([value for name in (*FIELDS, 'client-cert') if name != 'verified'
                              for value in request.get_all(f'x-{name}') + request.get_all(name)], [])
            self.assertEqual(request.get_all('x-verified'), ['false'])
            self.assertFalse([name for name, value in request.headers if 'evil' in value])
        self.assertEqual({record['tls_client'] for record in ringside.access_records(2)}, {''})

    def test_in_a_resumed_session(self) -> None:
        ringside = self.start_identity()
        mine = self.authority.issue('client', ('client.test', 'other.test', '10.1.2.3'))
        session = self.folder / 'session'
        common = ['openssl', 's_client', '-connect', f'127.0.0.1:{ringside.port_of("tls")}', '-CAfile',
                  str(self.authority.ca), '-servername', 'a.test', '-ign_eof', '-cert', str(mine.cert), '-key',
                  str(mine.key)]
        for version in ('-tls1_2', '-tls1_3'):
            for option in ('-sess_out', '-sess_in'):
                done = subprocess.run([*common, version, option, str(session)], check=False, timeout=60,
                                      input=b'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n',
                                      capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(b'Reused, ' if option == '-sess_in' else b'New, ', done.stdout)
                self.assert_identified(self.server.requests[-1], mine)
        self.assertEqual(len(self.server.requests), 4)
