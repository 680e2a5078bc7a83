"""HTTP/2 to servers: how connections begin, are watched, and end."""

from support import certificates, client, h2, h2_upstream, proxy, upstream
from support.h2_server import Connection, Request


class Health(h2_upstream.UpstreamTest):
    """Connections that are gone without a word."""

    def test_a_ping_finds_a_server_that_is_not_there(self) -> None:
        def answer(connection: Connection, request: Request) -> None:
            connection.answers_pings = False

        ringside, server = self.start_both(answer, lines='ping_interval = "50ms"\nping_timeout = "50ms"')
        self.assertEqual(client.request(ringside.port).status, 502)
        self.assertEqual(ringside.access_records(1)[0]['end'], 'upstream/wait_response/timed_out')
        self.assertTrue(ringside.wait_for_log('no answer to a PING in time'))
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended))

    def test_a_quiet_server_that_answers_is_asked_once(self) -> None:
        ringside, server = self.start_both(lambda c, r: None, lines='ping_interval = "20ms"\nping_timeout = "5s"\n'
                                           'response_header_timeout = "1s"')
        self.assertEqual(client.request(ringside.port).status, 504)
        self.assertEqual(len(server.connections[0].of(h2.PING)), 1)


class Floods(h2_upstream.UpstreamTest):
    """A server that sends frames without end loses its connection."""

    def flood(self, frames: bytes, times: int, *, head: bool = False) -> None:
        """Instead of an answer, or behind its head."""
        def answer(connection: Connection, request: Request) -> None:
            if connection.number:
                return connection.answer(request)
            if head:
                connection.head(request)
            for _ in range(times):
                connection.send(frames)
            return None

        ringside, server = self.start_both(answer)
        made = self.connect(ringside)
        self.ask(made)
        self.assertTrue(made.wait(lambda: made.complete(1) or made.reset_code(1) is not None))
        self.assertEqual(made.status(1), 200 if head else 502)
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended))
        self.assertTrue(ringside.wait_for_log('warn upstream server .*[Tt]oo many'), ringside.log())
        self.assertEqual(client.request(ringside.port).status, 200)

    def test_settings(self) -> None:
        self.flood(h2.frame(h2.SETTINGS, 0, 0) * 1000, 20)

    def test_pings(self) -> None:
        self.flood(h2.frame(h2.PING, 0, 0, bytes(8)) * 1000, 20)

    def test_empty_data(self) -> None:
        self.flood(h2.frame(h2.DATA, 0, 1) * 1000, 20, head=True)

    def test_continuations(self) -> None:
        self.flood(h2.frame(h2.HEADERS, 0, 1, h2.block([(':status', '200')])) +
                   h2.frame(h2.CONTINUATION, 0, 1) * 20_000, 1)


class Tls(h2_upstream.UpstreamTest):
    """What ALPN agrees on."""

    def context(self, *protocols: str):
        shared = certificates.shared()
        context = shared.authority.server_context(shared.server)
        context.set_alpn_protocols(list(protocols))
        return context

    def start_tls(self, server, protocol: str) -> proxy.Ringside:
        return self.start_before(server, protocol=protocol, upstream_tls=f'ca = "{certificates.shared().authority.ca}"')

    def test_h2(self) -> None:
        for protocol in ('h2', 'auto'):
            server = self.start_server(tls=self.context('h2', 'http/1.1'))
            ringside = self.start_tls(server, protocol)
            for _ in range(3):
                self.assertEqual(client.request(ringside.port).body, b'ok')
            self.assertEqual(server.requests[0].get(':scheme'), 'https')
            self.assertEqual(len(server.connections), 1)

    def test_auto_with_a_server_of_http_1_1(self) -> None:
        for protocols in ((), ('http/1.1',)):
            server = self.start_upstream(tls=self.context(*protocols) if protocols else
                                         certificates.shared().authority.server_context(certificates.shared().server))
            ringside = self.start_tls(server, 'auto')
            made = self.connect(ringside)
            for number in range(10):
                self.ask(made, 1 + 2 * number)
            for number in range(10):
                self.assert_answered(made, 1 + 2 * number)

    def test_auto_in_clear_text_is_http_1_1(self) -> None:
        server = self.start_upstream()
        ringside = self.start_before(server, protocol='auto')
        self.assertEqual(client.request(ringside.port).body, b'ok')

    def test_a_server_that_does_not_take_h2(self) -> None:
        server = self.start_upstream(tls=self.context('http/1.1'))
        ringside = self.start_tls(server, 'h2')
        self.assertEqual(client.request(ringside.port).status, 502)
        self.assertTrue(ringside.wait_for_log('server .* (h2|"h2")'), ringside.log())
        self.assertEqual(server.received(), b'')


class Shutdown(h2_upstream.UpstreamTest):
    def test_a_drain_lets_streams_finish(self) -> None:
        held: list[tuple[Connection, Request]] = []
        ringside, server = self.start_both(lambda *what: held.append(what))
        made = self.connect(ringside)
        self.ask(made)
        self.assertTrue(upstream.wait_until(lambda: held))
        ringside.signal(15)
        self.assertTrue(ringside.wait_for_log('drain'))
        held[0][0].answer(held[0][1])
        self.assert_answered(made)
        made.sock.close()
        self.assertEqual(ringside.wait(), 0)
        self.assertTrue(server.wait_for(lambda s: s.connections[0].ended))
