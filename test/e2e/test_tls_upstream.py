"""TLS to servers: whom ringside trusts, whom it does not, and what it says then."""

import socket
import ssl
import threading

from support import certificates, client, testcase, upstream, wire

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


class UpstreamTest(testcase.AuthorityTest):
    """Servers with certificates of a CA that ringside trusts, or of another."""

    def context(self, *names: str, days: int = certificates.DAYS, authority: certificates.Authority | None = None,
                version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        made = authority or self.authority
        return made.server_context(made.issue('server', names or certificates.NAMES, days=days), version)

    def start_server(self, context: ssl.SSLContext, answer: upstream.Answer | bytes = upstream.OK) -> upstream.Upstream:
        return self.start_upstream(answer, tls=context)

    def start_before(self, server: upstream.Upstream, lines: str = '', *, host: str = '127.0.0.1', **options: str):
        """Ringside in front of it, with lines of [upstream.app.tls]."""
        return self.start_proxy(server.address_as(host), upstream_tls=f'ca = "{self.authority.ca}"\n{lines}',
                                **options)

    def assert_served(self, ringside) -> None:
        self.assertEqual(client.request(ringside.port).status, 200, ringside.log())


class Trust(UpstreamTest):
    """Who is refused, and what the log says."""

    def assert_refused(self, ringside, server: upstream.Upstream, words: str) -> None:
        self.assertEqual(client.request(ringside.port, '/secret', method='POST', body=b'x').status, 502)
        self.assertTrue(ringside.wait_for_log(rf'(?i)\bwarn tls\b.*{server.port}.*{words}'), ringside.log())
        self.assertRegex(ringside.access_records(1)[0]['end'], '^upstream/.*/tls$')
        self.assertEqual(server.received(), b'', 'a server that is not trusted got the request')

    def test_a_server_that_is_who_it_says(self) -> None:
        for version in (TLS12, TLS13):
            server = self.start_server(self.context(version=version))
            for host in ('127.0.0.1', 'localhost'):
                ringside = self.start_before(server, host=host)
                self.assertTrue(upstream.wait_until(lambda: client.request(ringside.port).status == 200),
                                ringside.log())

    def test_another_name(self) -> None:
        server = self.start_server(self.context('other.test'))
        self.assert_refused(self.start_before(server), server, r'(mismatch|not for)')

    def test_an_unknown_authority(self) -> None:
        server = self.start_server(self.context(authority=certificates.Authority(self.folder / 'other')))
        self.assert_refused(self.start_before(server), server, r'(unable to get local issuer|self-signed|unknown ca)')

    def test_a_certificate_that_has_expired(self) -> None:
        server = self.start_server(self.context(days=-1))
        self.assert_refused(self.start_before(server), server, 'expired')

    def test_too_old_a_version(self) -> None:
        server = self.start_server(self.context(version=TLS12))
        self.assert_refused(self.start_before(server, 'min_version = "1.3"'), server, '(version|protocol)')

    def test_a_server_that_speaks_no_tls(self) -> None:
        def refuse(listener: socket.socket) -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                with sock:
                    sock.recv(4096)
                    sock.sendall(b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n')

        with socket.create_server(('127.0.0.1', 0)) as listener:
            port = listener.getsockname()[1]
            server = threading.Thread(target=refuse, args=(listener,))
            server.start()
            try:
                ringside = self.start_proxy(f'https://127.0.0.1:{port}', upstream_tls=f'ca = "{self.authority.ca}"')
                self.assertEqual(client.request(ringside.port).status, 502)
                self.assertTrue(ringside.wait_for_log(rf'warn tls\b.*{port}'), ringside.log())
            finally:
                listener.shutdown(socket.SHUT_RDWR)
                server.join()

    def test_without_verification_all_are_taken_and_the_log_is_loud(self) -> None:
        stranger = certificates.Authority(self.folder / 'other')
        server = self.start_server(self.context('other.test', authority=stranger, days=-1))
        ringside = self.start_proxy(server, upstream_tls='verify = false')
        self.assert_served(ringside)
        self.assertRegex(ringside.log(), r'(?i)warn.*\[upstream\.app\.tls\] verify = false')

    def test_the_name_to_check_can_be_set(self) -> None:
        server = self.start_server(self.context('inner.test'))
        self.assert_served(self.start_before(server, 'server_name = "inner.test"'))


class Handshakes(UpstreamTest):
    """What a server gets to see."""

    def test_the_name_that_is_asked_for(self) -> None:
        asked: list[str | None] = []
        context = self.context('localhost', '127.0.0.1', 'inner.test')
        context.sni_callback = lambda sock, name, context: asked.append(name)
        server = self.start_server(context)
        for host, lines, name in (('127.0.0.1', '', None), ('localhost', '', 'localhost'),
                                  ('127.0.0.1', 'server_name = "inner.test"', 'inner.test')):
            ringside = self.start_before(server, lines, host=host)
            self.assertTrue(upstream.wait_until(lambda: client.request(ringside.port).status == 200), ringside.log())
            self.assertEqual(asked[-1], name)

    def test_http11_is_agreed_on(self) -> None:
        server = self.start_server(self.context())
        self.assert_served(self.start_before(server))
        self.assertEqual(server.connections[0].sock.session.selected_alpn_protocol(), 'http/1.1')

    def test_sessions_are_resumed(self) -> None:
        def once(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
            return False

        for version in (TLS12, TLS13):
            server = self.start_server(self.context(version=version), once)
            ringside = self.start_before(server)
            for _ in range(4):
                self.assert_served(ringside)
            self.assertEqual(len(server.connections), 4)
            self.assertEqual([c.sock.session.session_reused for c in server.connections],
                             [False, True, True, True], version)

    def test_connections_are_kept(self) -> None:
        server = self.start_server(self.context())
        ringside = self.start_before(server)
        for _ in range(10):
            self.assert_served(ringside)
        self.assertEqual(len(server.connections), 1)

    def test_a_client_certificate_is_shown(self) -> None:
        mine = self.authority.issue('mine', ('ringside.test',))
        for version in (TLS12, TLS13):
            context = self.context(version=version)
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.authority.ca)
            server = self.start_server(context)
            self.assert_served(self.start_before(server, f'cert = "{mine.cert}"\nkey = "{mine.key}"'))
            subject = server.connections[0].sock.session.getpeercert()['subject']
            self.assertEqual(subject, ((('commonName', 'ringside.test'),),))
            # Without one the server refuses us.
            self.assertEqual(client.request(self.start_before(server).port).status, 502)

    def test_a_server_that_does_not_answer_the_handshake(self) -> None:
        with socket.create_server(('127.0.0.1', 0)) as silent:
            port = silent.getsockname()[1]
            ringside = self.start_proxy(f'https://127.0.0.1:{port}', upstream_tls=f'ca = "{self.authority.ca}"',
                                        upstream='connect_timeout = "300ms"')
            self.assertEqual(client.request(ringside.port).status, 504)

    def test_one_bad_server_does_not_spoil_the_other(self) -> None:
        stranger = certificates.Authority(self.folder / 'other')
        bad, good = self.start_server(self.context(authority=stranger)), self.start_server(self.context())
        ringside = self.start_proxy([bad, good], upstream_tls=f'ca = "{self.authority.ca}"')
        statuses = [client.request(ringside.port, method='POST', body=b'x').status for _ in range(6)]
        self.assertEqual(statuses, [200] * 6)
        self.assertEqual((bad.received(), len(good.requests)), (b'', 6))


class Ends(UpstreamTest):
    """An end without close_notify is a cut (RFC 8446 §6.1)."""

    def body_without_length(self, end) -> client.Client:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n' + b'x' * 50_000)
            end(connection)
            return False

        server = self.start_server(self.context(), answer)
        self.ringside = self.start_before(server)
        peer = client.Client(self.ringside.port)
        self.addCleanup(peer.close)
        return peer.get('/')

    def test_a_body_that_ends_in_order(self) -> None:
        peer = self.body_without_length(lambda connection: None)
        self.assertEqual(len(peer.read_response().body), 50_000)
        self.assertEqual(self.ringside.access_records(1)[0]['end'], 'complete')

    def test_a_body_that_is_cut(self) -> None:
        peer = self.body_without_length(lambda connection: connection.cut())
        data = peer.read_to_end()
        with self.assertRaises(wire.Incomplete, msg='a cut body looks whole'):
            wire.parse_response(data, ended=peer.whole)
        self.assertRegex(self.ringside.access_records(1)[0]['end'], '^upstream/response_body/')

    def test_idle_connections_end_in_order(self) -> None:
        server = self.start_server(self.context())
        ringside = self.start_before(server, upstream='idle_timeout = "200ms"')
        self.assert_served(ringside)
        connection = server.connections[0]
        self.assertTrue(server.wait_for(lambda s: connection.ended_by))
        self.assertTrue(connection.whole, connection.ended_by)

    def test_a_server_that_ends_an_idle_connection(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.send(upstream.OK)
            connection.shutdown_write()
            connection.drain()

        server = self.start_server(self.context(), answer)
        ringside = self.start_before(server)
        for _ in range(5):
            self.assert_served(ringside)
            self.assertTrue(server.wait_for(lambda s: all(c.ended_by for c in s.connections)))
        self.assertEqual(len(server.connections), 5)
