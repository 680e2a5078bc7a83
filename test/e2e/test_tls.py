"""TLS listeners, as real clients see them: curl, openssl, gnutls-cli, Python."""

import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess

from support import certificates, client, proxy, testcase, upstream, wire
from support.limits import limit

REQUEST = b'GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n'
TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


class TlsTest(testcase.AuthorityTest):
    """Ringside with the certificates that the CA made."""

    def setUp(self) -> None:
        super().setUp()
        self.pair = self.authority.issue('main')

    def lines(self, *pairs: certificates.Pair) -> str:
        return 'certificates = [' + ', '.join(f'{{ {pair.toml()} }}' for pair in pairs or (self.pair,)) + ']\n'

    def start_tls(self, answer: upstream.Answer | bytes = upstream.OK, *, tls: str = '', early: bool = False,
                  **options: str):
        """A pair that speaks TLS to clients; `tls`: further lines of its table."""
        return self.start_pair(answer, early=early, tls=self.lines() + tls, **options)

    def connect(self, ringside, *, version: ssl.TLSVersion | None = None, name: str = 'a.test',
                **options: int) -> client.Client:
        peer = client.Client(ringside.port, tls=self.authority.client_context(version), server_name=name, **options)
        self.addCleanup(peer.close)
        return peer

    def assert_served(self, ringside) -> None:
        with self.connect(ringside) as peer:
            self.assertEqual(peer.get('/fine').read_response().status, 200)

    def run_program(self, *command: str, text: bytes = b'') -> tuple[int, str]:
        """Its exit status and all that it printed."""
        done = subprocess.run([self.need_program(command[0]), *command[1:]], input=text, check=False, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, 'no_proxy': '*', 'LC_ALL': 'C'})
        return done.returncode, done.stdout.decode(errors='backslashreplace')

    def s_client(self, ringside, *options: str, request: bytes = REQUEST, name: str = 'a.test') -> str:
        """Asks once with `openssl s_client`, which waits for ringside to end the connection."""
        return self.run_program('openssl', 's_client', '-connect', f'127.0.0.1:{ringside.port}', '-CAfile',
                                str(self.authority.ca), '-servername', name, '-ign_eof', *options, text=request)[1]


class Curl(TlsTest):
    """What people type."""

    def curl(self, ringside, *options: str, name: str = 'a.test') -> tuple[int, str]:
        return self.run_program('curl', '-sSv', '--max-time', '30', '--cacert', str(self.authority.ca), '--resolve',
                                f'{name}:{ringside.port}:127.0.0.1', *options,
                                ringside.url(scheme='https', host=name))

    def test_both_versions(self) -> None:
        ringside, server = self.start_tls()
        for option, version in (('--tls-max', 'TLSv1.2'), ('--tlsv1.3', 'TLSv1.3')):
            status, said = self.curl(ringside, *([option, '1.2'] if option == '--tls-max' else [option]))
            self.assertEqual(status, 0, said)
            self.assertIn(f'SSL connection using {version} ', said)
            self.assertIn('server accepted http/1.1', said)
        self.assertEqual(len(server.requests), 2)

    def test_what_is_too_old_is_refused(self) -> None:
        ringside, server = self.start_tls(tls='policy = "modern"\n')
        status, said = self.curl(ringside, '--tls-max', '1.2')
        self.assertEqual(status, 35, said)
        self.assertRegex(said, '(?i)alert protocol version')
        self.assertEqual(self.curl(ringside)[0], 0)
        self.assertEqual(len(server.requests), 1)

    def test_a_name_that_the_certificate_lacks(self) -> None:
        ringside, server = self.start_tls()
        self.assertEqual(self.curl(ringside, name='other.test')[0], 60)
        self.assertEqual(server.requests, [])

    @limit(90)
    def test_large_bodies_both_ways(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % len(request.body) + request.body)

        ringside, _ = self.start_tls(answer)
        sent, got = self.folder / 'sent', self.folder / 'got'
        sent.write_bytes(os.urandom(20_000_000))
        for option in ('1.2', '1.3'):
            status, said = self.curl(ringside, '--tls-max', option, '-T', str(sent), '-o', str(got))
            self.assertEqual(status, 0, said)
            self.assertTrue(got.read_bytes() == sent.read_bytes(), option)

    def test_client_certificates(self) -> None:
        mine = self.authority.issue('client', ('client.test',))
        stranger = certificates.Authority(self.folder / 'other').issue('stranger', ('client.test',))
        for rule, without in (('required', 56), ('optional', 0)):
            ringside, _ = self.start_tls(tls=f'client_certificate = "{rule}"\nclient_ca = "{self.authority.ca}"\n')
            for pair, expected in ((mine, 0), (stranger, 56), (None, without)):
                shown = ['--cert', str(pair.cert), '--key', str(pair.key)] if pair else []
                status, said = self.curl(ringside, *shown)
                self.assertEqual(status, expected, f'{rule}, {pair}: {said}')


class Names(TlsTest):
    """Which certificate a client gets."""

    def subject(self, ringside, name: str) -> str:
        options = ['-noservername'] if not name else []
        said = self.s_client(ringside, *options, name=name) if name else self.run_program(
            'openssl', 's_client', '-connect', f'127.0.0.1:{ringside.port}', *options)[1]
        found = re.search(r'^subject=CN ?= ?(\S+)', said, re.M)
        self.assertIsNotNone(found, said)
        return found[1]  # type: ignore[index]

    def test_exact_wildcard_and_default(self) -> None:
        pairs = [self.authority.issue(f'n{number}', (name,)) for number, name in
                 enumerate(('default.test', '*.c.test', 'exact.c.test', 'b.test'))]
        ringside = self.start_proxy(self.start_upstream(), tls=self.lines(*pairs))
        for asked, given in (('b.test', 'b.test'), ('B.Test', 'b.test'), ('exact.c.test', 'exact.c.test'),
                             ('any.c.test', '*.c.test'), ('deep.any.c.test', 'default.test'),
                             ('c.test', 'default.test'), ('unknown.test', 'default.test'), ('', 'default.test')):
            self.assertEqual(self.subject(ringside, asked), given, asked)

    def test_rsa_for_clients_that_know_nothing_else(self) -> None:
        rsa = self.folder / 'rsa'
        certificates.openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', f'{rsa}.key', '-out',
                             f'{rsa}.pem', '-subj', '/CN=a.test', '-addext', 'subjectAltName=DNS:a.test')
        both = self.lines(self.pair, certificates.Pair(rsa.with_suffix('.pem'), rsa.with_suffix('.key')))
        ringside = self.start_proxy(self.start_upstream(), tls=both)
        for algorithms, kind in (('RSA+SHA256:RSA-PSS+SHA256', 'RSA'), ('ECDSA+SHA256', 'ECDSA')):
            for version in ('-tls1_2', '-tls1_3'):
                said = self.s_client(ringside, version, '-sigalgs', algorithms)
                self.assertRegex(said, f'Peer signature type: {kind}', version)
                self.assertIn('HTTP/1.1 200', said)


class Openssl(TlsTest):
    """openssl s_client: sessions and protocols."""

    def test_sessions_are_resumed_on_every_ring(self) -> None:
        ringside, _ = self.start_tls(server='rings = 2')
        for version in ('-tls1_2', '-tls1_3'):
            session = str(self.folder / f'session{version}')
            first = self.s_client(ringside, version, '-sess_out', session)
            self.assertRegex(first, '(?m)^New, TLSv1', version)
            for _ in range(6):
                again = self.s_client(ringside, version, '-sess_in', session)
                self.assertRegex(again, '(?m)^Reused, TLSv1', version)
                self.assertIn('HTTP/1.1 200', again)

    def test_a_ticket_that_nobody_knows_is_no_obstacle(self) -> None:
        for lines in ('', 'tickets = false\n'):
            first, _ = self.start_tls(tls=lines)
            second, _ = self.start_tls(tls=lines)
            for version in ('-tls1_2', '-tls1_3'):
                session = self.folder / f'session{version}'
                self.s_client(first, version, '-sess_out', str(session))
                if lines and not session.exists():
                    continue  # no ticket: nothing was to be kept
                other = first if lines else second
                said = self.s_client(other, version, '-sess_in', str(session))
                self.assertRegex(said, '(?m)^New, TLSv1', version)
                self.assertIn('HTTP/1.1 200', said)
                session.unlink()

    def test_tickets_of_shared_keys_open_elsewhere(self) -> None:
        keys = self.folder / 'ticket.keys'
        keys.write_bytes(os.urandom(80))
        lines = f'ticket_keys_file = "{keys}"\n'
        first, _ = self.start_tls(tls=lines)
        second, _ = self.start_tls(tls=lines)
        session = str(self.folder / 'session')
        self.s_client(first, '-sess_out', session)
        self.assertRegex(self.s_client(second, '-sess_in', session), '(?m)^Reused, TLSv1.3')

    def test_a_shared_key_is_rotated_in(self) -> None:
        keys = self.folder / 'ticket.keys'
        old, new = os.urandom(80), os.urandom(80)

        def write(content: bytes) -> None:
            fresh = self.folder / 'ticket.new'
            fresh.write_bytes(content)
            os.replace(fresh, keys)

        def resumes(there, session: pathlib.Path) -> bool:
            said = self.s_client(there, '-sess_in', str(session))
            self.assertIn('HTTP/1.1 200', said)
            return re.search('(?m)^Reused, TLSv1.3', said) is not None

        write(old)
        hosts = [self.start_tls(tls=f'ticket_keys_file = "{keys}"\n', server='rings = 2')[0] for _ in range(2)]
        early = self.folder / 'early'
        self.s_client(hosts[0], '-sess_out', str(early))
        for step, content in enumerate((old + new, new + old, new)):
            write(content)
            for host in hosts:
                self.assertTrue(upstream.wait_until(
                    lambda host=host, step=step: host.log().count('changed ticket keys are in use') == step + 1, 15),
                    host.log())
            self.assertEqual(resumes(hosts[1], early), content != new, 'a ticket of the first key')
            for here, there in (hosts, hosts[::-1]):
                session = self.folder / 'session'
                self.s_client(here, '-sess_out', str(session))
                self.assertTrue(resumes(there, session), f'step {step}')
        write(new[:50])
        self.assertTrue(hosts[0].wait_for_log(r'\berror tls \[tls\.main\].* has 50 bytes'), hosts[0].log())
        self.assertTrue(resumes(hosts[0], self.folder / 'session'))

    def test_the_protocol_is_agreed_on(self) -> None:
        ringside, server = self.start_tls()
        for offered in ('http/1.1', 'h2,http/1.1'):
            said = self.s_client(ringside, '-alpn', offered)
            self.assertIn('ALPN protocol: http/1.1', said)
            self.assertIn('HTTP/1.1 200', said)
        self.assertIn('No ALPN negotiated', self.s_client(ringside))
        said = self.s_client(ringside, '-alpn', 'spdy/1')
        self.assertRegex(said, 'alert no application protocol')
        self.assertEqual(len(server.requests), 3)

    def test_a_new_key_in_the_middle(self) -> None:
        # The kernel can take a new key from Linux 6.14 on.
        ringside, _ = self.start_tls(tls='ktls = "off"\n')
        # "K" alone on a line: s_client sends a KeyUpdate and asks for one.
        body = self.run_in_steps(ringside, [b'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n', b'K\n', REQUEST])
        self.assertEqual(body.count(b'HTTP/1.1 200'), 2, body)

    def run_in_steps(self, ringside, steps: list[bytes]) -> bytes:
        """Gives s_client each step as a read of its own, the next one when the one before had its effect."""
        command = [self.need_program('openssl'), 's_client', '-connect', f'127.0.0.1:{ringside.port}', '-tls1_3',
                   '-servername', 'a.test']
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT) as process:
            self.addCleanup(process.kill)
            assert process.stdin and process.stdout
            got = b''
            for step, effect in zip(steps, (b'\r\n\r\nok', b'KEYUPDATE', b'')):
                process.stdin.write(step)
                process.stdin.flush()
                before = len(got)
                while effect not in got[before:] or not effect:
                    piece = os.read(process.stdout.fileno(), 65536)
                    got += piece
                    if not piece:
                        break
            return got


class Gnutls(TlsTest):
    """Another library than ours."""

    def gnutls(self, ringside, *options: str) -> tuple[int, str]:
        return self.run_program('gnutls-cli', '--x509cafile', str(self.authority.ca), '--port', str(ringside.port),
                                '--sni-hostname', 'a.test', '--verify-hostname', 'a.test', *options, '127.0.0.1',
                                text=REQUEST)

    def test_both_versions(self) -> None:
        ringside, server = self.start_tls()
        for version in ('1.2', '1.3'):
            status, said = self.gnutls(ringside, '--priority', f'NORMAL:-VERS-ALL:+VERS-TLS{version}')
            self.assertEqual(status, 0, said)
            self.assertIn(f'- Description: (TLS{version}', said)
            self.assertIn('HTTP/1.1 200 OK', said)
            self.assertIn('- Peer has closed the GnuTLS connection', said)
        self.assertEqual(len(server.requests), 2)

    def test_resumption(self) -> None:
        ringside, _ = self.start_tls()
        for version in ('1.2', '1.3'):
            _, said = self.gnutls(ringside, '--resume', '--waitresumption', '--priority',
                                  f'NORMAL:-VERS-ALL:+VERS-TLS{version}')
            self.assertIn('*** This is a resumed session', said)


class Ends(TlsTest):
    """How connections end: close_notify says that all has come (RFC 8446 §6.1), and nothing else does."""

    def read_strictly(self, ringside, version: ssl.TLSVersion, data: bytes) -> bytes:
        """Everything, with Python's own TLS, for which an end without close_notify is an error."""
        context = self.authority.client_context(version)
        with socket.create_connection(('127.0.0.1', ringside.port), 10 * upstream.slowdown()) as plain:
            with context.wrap_socket(plain, server_hostname='a.test', suppress_ragged_eofs=False) as peer:
                peer.sendall(data)
                return b''.join(iter(lambda: peer.recv(65536), b''))

    def test_every_orderly_end_has_it(self) -> None:
        ringside, _ = self.start_tls(timeouts='keep_alive = "200ms"\nlinger = "200ms"')
        for version in (TLS12, TLS13):
            for data, status in ((REQUEST, b' 200 '), (REQUEST.replace(b'Connection: close\r\n', b''), b' 200 '),
                                 (b'GET / HTTP/1.0\r\n\r\n', b' 200 '), (b'nonsense\r\n\r\n', b' 400 ')):
                self.assertIn(status, self.read_strictly(ringside, version, data))

    def test_a_body_without_length_is_whole(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.0 200 OK\r\n\r\n' + b'x' * 100_000)
            return False

        ringside, _ = self.start_tls(answer)
        for version in (TLS12, TLS13):
            with self.connect(ringside, version=version) as peer:
                peer.send('GET / HTTP/1.0\r\n\r\n')
                self.assertEqual(len(peer.read_response().body), 100_000)
                self.assertTrue(peer.whole)

    def test_an_idle_connection_is_kept(self) -> None:
        # Long enough for whatever is given back when nothing happens.
        ringside, server = self.start_tls()
        peers = [self.connect(ringside, version=version) for version in (TLS12, TLS13)]
        for _ in range(2):
            for peer in peers:
                self.assertEqual(peer.get('/').read_response().status, 200)
            peers[0].read_until_quiet(1.5, 1.5)
        self.assertEqual((len(server.requests), peers[0].ended), (4, None))

    def test_a_drain_ends_in_order(self) -> None:
        ringside, _ = self.start_tls()
        peers = [self.connect(ringside, version=version).get('/') for version in (TLS12, TLS13)]
        for peer in peers:
            self.assertEqual(peer.read_response().status, 200)
        ringside.signal(signal.SIGTERM)
        for peer in peers:
            self.assertEqual(peer.read_to_end(), b'')
            self.assertTrue(peer.whole, peer.ended)
        self.assertEqual(ringside.wait(), 0)

    def test_a_server_that_dies_is_not_a_whole_body(self) -> None:
        for framing in ('Content-Length: 1000\r\n\r\npartial', 'Transfer-Encoding: chunked\r\n\r\n7\r\npartial\r\n'):
            def answer(connection: upstream.Connection, _: wire.Message, framing: str = framing) -> bool:
                connection.send(f'HTTP/1.1 200 OK\r\n{framing}'.encode())
                return False

            ringside, _ = self.start_tls(answer)
            for version in (TLS12, TLS13):
                with self.connect(ringside, version=version) as peer:
                    self.assertIn(b'partial', peer.get('/').read_to_end())
                    self.assertFalse(peer.whole, f'close_notify says that a cut body is whole: {framing!r}')

    def test_a_client_that_ends_without_it_is_served(self) -> None:
        ringside, server = self.start_tls()
        for version in (TLS12, TLS13):
            with self.connect(ringside, version=version) as peer:
                peer.get('/')
                self.assertEqual(peer.read_response().status, 200)
                peer.sock.cut()
        self.assertEqual(len(server.requests), 2)
        self.assert_served(ringside)

    def test_a_client_that_says_it_has_no_more_still_reads(self) -> None:
        ringside, _ = self.start_tls()
        with self.connect(ringside, version=TLS13) as peer:
            peer.get('/').shutdown_write()
            self.assertEqual(peer.read_response().status, 200)
            peer.read_to_end()
            self.assertTrue(peer.whole)


class Strangers(TlsTest):
    """Who does not speak TLS, or does not finish a handshake, disturbs nobody."""

    def hello(self) -> bytes:
        """The bytes of a ClientHello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.authority.client_context().wrap_bio(incoming, outgoing, server_hostname='a.test')
        with self.assertRaises(ssl.SSLWantReadError):
            tls.do_handshake()
        return outgoing.read()

    def raw(self, ringside, data: bytes) -> client.Client:
        peer = client.Client(ringside.port, tls=None)
        self.addCleanup(peer.close)
        return peer.send(data)

    def test_plain_http_gets_an_answer_that_explains(self) -> None:
        ringside, server = self.start_tls()
        for data in (b'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n', b'POST /x HTTP/1.0\r\n\r\n'):
            peer = self.raw(ringside, data)
            response = peer.read_response()
            self.assertEqual((response.status, response.get('connection')), (400, 'close'))
            self.assertIn(b'https://', response.body)
            self.assertEqual(peer.read_to_end(), b'')
            self.assertEqual(peer.ended, 'fin')
        self.assertEqual(server.connections, [])

    def test_garbage(self) -> None:
        # Some of it may go on as a handshake, for all that ringside can see.
        ringside, server = self.start_tls(timeouts='client_header = "500ms"')
        hello = self.hello()
        for data in (b'\0' * 100, b'\x16\x03\x01\xff\xff' + b'x' * 17000, b'\x17\x03\x03\0\x05hello' * 9,
                     hello[:40] + bytes(200), b'\x80\x2e\x01\0\x02', b'\x15\x03\x01\0\x02\x02\x28', hello + b'x' * 200):
            peer = self.raw(ringside, data)
            peer.read_to_end()
            self.assertNotIn(b'HTTP/', bytes(peer.received))
            self.assert_served(ringside)
        self.assertEqual({r.target for r in server.requests}, {'/fine'})

    def test_half_a_handshake(self) -> None:
        ringside, _ = self.start_tls()
        hello = self.hello()
        for cut in (0, 1, 5, 50, len(hello) - 1, len(hello)):
            peer = self.raw(ringside, hello[:cut])
            self.assert_served(ringside)
            peer.reset()
        peers = [self.raw(ringside, hello) for _ in range(100)]
        self.assert_served(ringside)
        for peer in peers:
            peer.close()
        self.assert_served(ringside)

    def test_a_handshake_has_the_time_of_a_head(self) -> None:
        ringside, _ = self.start_tls(timeouts='client_header = "300ms"')
        hello = self.hello()
        for data in (b'', hello[:50], hello):
            peer = self.raw(ringside, data)
            peer.read_to_end()
            self.assertNotIn(b'HTTP/', bytes(peer.received))
        with self.connect(ringside) as peer:
            self.assertEqual(peer.send('GET /').read_response().status, 408)
        self.assert_served(ringside)

    def test_a_handshake_in_single_bytes(self) -> None:
        ringside, _ = self.start_tls()
        for version in (TLS12, TLS13):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = self.authority.client_context(version).wrap_bio(incoming, outgoing, server_hostname='a.test')
            with socket.create_connection(('127.0.0.1', ringside.port), 10 * upstream.slowdown()) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

                def turn(step, sock: socket.socket = sock, incoming: ssl.MemoryBIO = incoming,
                         outgoing: ssl.MemoryBIO = outgoing):
                    while True:
                        try:
                            return step()
                        except ssl.SSLWantReadError:
                            for byte in outgoing.read():
                                sock.sendall(bytes([byte]))
                            incoming.write(sock.recv(65536))

                turn(tls.do_handshake)
                tls.write(REQUEST)
                self.assertIn(b' 200 ', turn(lambda tls=tls: tls.read(4096)))


class Requests(TlsTest):
    """What the server is told."""

    def test_the_scheme(self) -> None:
        ringside, server = self.start_tls(forwarding='forwarded = true',
                                          route='request_headers = { set = { "x-scheme" = "{scheme}" } }')
        with self.connect(ringside) as peer:
            peer.get('/', headers='X-Forwarded-Proto: http\r\n')
            self.assertEqual(peer.read_response().status, 200)
        request = server.requests[0]
        self.assertEqual(request.get_all('x-forwarded-proto'), ['https'])
        self.assertIn('proto=https', request.get('forwarded') or '')
        self.assertEqual(request.get('x-scheme'), 'https')

    def test_the_log_says_how_it_was_spoken_to(self) -> None:
        ringside, _ = self.start_tls()
        for version in (TLS12, TLS13):
            with self.connect(ringside, version=version) as peer:
                self.assertEqual(peer.get('/').read_response().status, 200)
                agreed = peer.sock.session.cipher()
                record = ringside.access_records(1 if version == TLS12 else 2)[-1]
                self.assertEqual((record['tls'], record['cipher']), (peer.sock.session.version(), agreed[0]))

    def test_pipelined_requests_in_one_record(self) -> None:
        ringside, _ = self.start_tls(lambda c, r: c.send(
            f'HTTP/1.1 200 OK\r\nContent-Length: {len(r.target)}\r\n\r\n{r.target}'.encode()))
        for version in (TLS12, TLS13):
            with self.connect(ringside, version=version) as peer:
                peer.send(b''.join(b'GET /%d HTTP/1.1\r\nHost: a.test\r\n\r\n' % n for n in range(50)))
                self.assertEqual([peer.read_response().body for _ in range(50)], [b'/%d' % n for n in range(50)])


class Reload(TlsTest):
    """Certificates that are renewed while ringside runs."""

    def serial(self, ringside) -> str:
        context = self.authority.client_context()
        with socket.create_connection(('127.0.0.1', ringside.port), 10) as plain:
            with context.wrap_socket(plain, server_hostname='a.test') as peer:
                return (peer.getpeercert() or {})['serialNumber']

    def test_an_entry_that_nothing_uses_is_left_alone(self) -> None:
        server = self.start_upstream()
        ringside = self.start_ringside(proxy.proxy_config([server.address]) + '[tls.spare]\n' + self.lines())
        self.assertEqual(client.request(ringside.port).status, 200)

    def test_a_renewed_certificate_is_taken_up(self) -> None:
        ringside, _ = self.start_tls(server='rings = 2')
        before = self.serial(ringside)
        old = self.connect(ringside).get('/')
        self.assertEqual(old.read_response().status, 200)
        pair = self.authority.issue('renewed')
        # The key first: as long as the two do not fit together, the old ones stay.
        os.replace(pair.key, self.pair.key)
        os.replace(pair.cert, self.pair.cert)
        self.assertTrue(upstream.wait_until(lambda: all(self.serial(ringside) != before for _ in range(8)), 15),
                        ringside.log())
        self.assertEqual(old.get('/').read_response().status, 200)

    def test_a_broken_file_changes_nothing(self) -> None:
        ringside, _ = self.start_tls()
        before = self.serial(ringside)
        self.pair.cert.write_text('nonsense')
        self.assertTrue(ringside.wait_for_log(r'\berror tls \[tls\.main\].*main\.pem'), ringside.log())
        self.assertEqual(self.serial(ringside), before)
        self.assert_served(ringside)
