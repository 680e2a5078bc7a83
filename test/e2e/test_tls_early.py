"""Early data (RFC 8446 §2.3, RFC 8470): requests that come with the first flight of a session that is resumed."""

import re
import socket
import subprocess

from support import early, modes, openssl, proxy, testcase, upstream, wire
from support.limits import limit
from support.openssl import TLS13

GET = b'GET /early HTTP/1.1\r\nHost: a.test\r\n\r\n'
POST = b'POST /early HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello'


def ok(connection: upstream.Connection, request: wire.Message) -> None:
    connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n' + (b'' if request.method == 'HEAD' else b'ok'))


def fields(request: wire.Message) -> list[str]:
    return request.get_all('early-data')


class EarlyTest(testcase.AuthorityTest):
    """A listener that takes early data; `more`: further lines of its table."""

    def setUp(self) -> None:
        super().setUp()
        self.pair = self.authority.issue('main')
        self.context = openssl.Context(TLS13, 'aes128', authority=self.authority)
        self.asked = 0

    def start(self, answer: upstream.Answer = ok, *, more: str = 'early_data = true\n',
              **options: str) -> proxy.Ringside:
        ringside, self.server = self.start_pair(answer, tls=f'certificates = [{{ {self.pair.toml()} }}]\n{more}',
                                                **options)
        return ringside

    def connect(self, ringside: proxy.Ringside, ticket: openssl.Ticket | None = None) -> early.EarlyClient:
        peer = early.EarlyClient(ringside.port, self.context, ticket)
        self.addCleanup(peer.close)
        return peer

    def ticket(self, ringside: proxy.Ringside) -> openssl.Ticket:
        """Of a connection with one request, which has no early data and says nothing of it."""
        peer = self.connect(ringside)
        peer.shake()
        self.ask_late(peer)
        return peer.session.ticket()

    def ask_late(self, peer: early.EarlyClient) -> None:
        """A request behind the handshake, of which nothing is said."""
        self.asked += 1
        target = f'/late/{self.asked}'
        peer.send(f'GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n'.encode())
        self.assertEqual(peer.read_response().status, 200)
        self.assertEqual([fields(request) for request in self.server.requests if request.target == target], [[]])

    def early_requests(self) -> list[wire.Message]:
        return [request for request in self.server.requests if request.target == '/early']


class Requests(EarlyTest):
    """What is served before the handshake is over, and what waits."""

    def test_safe_requests_are_served_at_once(self) -> None:
        ringside = self.start()
        for number, method in enumerate(('GET', 'HEAD', 'OPTIONS')):
            peer = self.connect(ringside, self.ticket(ringside))
            peer.send_early(GET.replace(b'GET', method.encode()))
            # The client's Finished has not been sent.
            self.assertEqual(peer.read_response(method).status, 200)
            self.assertTrue(peer.session.early_accepted())
            self.assertEqual(len(self.early_requests()), number + 1)
            self.assertEqual(fields(self.early_requests()[-1]), ['1'], method)
            peer.finish()
            self.ask_late(peer)

    def test_others_wait_for_the_handshake(self) -> None:
        ringside = self.start()
        for request in (POST, POST.replace(b'POST', b'DELETE'), POST.replace(b'POST', b'GET'),
                        b'TRACE /early HTTP/1.1\r\nHost: a.test\r\n\r\n',
                        GET.replace(b'\r\n\r\n', b'\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n')):
            peer = self.connect(ringside, self.ticket(ringside))
            before = len(self.early_requests())
            peer.send_early(request)
            peer.shake()
            self.assertTrue(peer.session.early_accepted())
            # Another one's request passes it by.
            self.ticket(ringside)
            self.assertEqual(len(self.early_requests()), before, request)
            peer.finish()
            self.assertEqual(peer.read_response().status, 200, request)
            self.assertEqual(len(self.early_requests()), before + 1)
            self.assertEqual(fields(self.early_requests()[-1]), [], request)

    def test_the_rest_of_a_body_may_come_later(self) -> None:
        ringside = self.start()
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(POST[:-3])
        peer.shake()
        peer.finish()
        peer.send(POST[-3:])
        self.assertEqual(peer.read_response().status, 200)
        self.assertEqual(self.early_requests()[0].body, b'hello')

    # One that was whole may have been forwarded elsewhere; one that was not cannot have been.
    def test_the_rest_of_a_head_makes_it_certain(self) -> None:
        ringside = self.start()
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(GET[:-3])
        peer.shake()
        peer.finish()
        peer.send(GET[-3:])
        self.assertEqual(peer.read_response().status, 200)
        self.assertEqual(fields(self.early_requests()[0]), [])

    def test_requests_behind_one_that_waits(self) -> None:
        ringside = self.start()
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(POST + GET + POST)
        peer.shake()
        peer.finish()
        for _ in range(3):
            self.assertEqual(peer.read_response().status, 200)
        self.assertEqual([(request.method, fields(request)) for request in self.early_requests()],
                         [('POST', []), ('GET', ['1']), ('POST', [])])

    def test_what_was_early_before_us_cannot_wait(self) -> None:
        ringside = self.start()
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(POST.replace(b'\r\n\r\n', b'\r\nEarly-Data: 1\r\n\r\n'))
        self.assertEqual(peer.read_response().status, 425)
        self.assertEqual(self.early_requests(), [])
        peer.finish()
        # A safe one goes on, with one field; and what is not early is the server's to judge.
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(GET.replace(b'\r\n\r\n', b'\r\nEarly-Data: 1\r\n\r\n'))
        self.assertEqual(peer.read_response().status, 200)
        peer.finish()
        peer.send(POST.replace(b'\r\n\r\n', b'\r\nEarly-Data: 1\r\n\r\n'))
        self.assertEqual(peer.read_response().status, 200)
        self.assertEqual([fields(request) for request in self.early_requests()], [['1'], ['1']])

    def test_a_server_that_finds_it_too_early(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            status = b'425 Too Early' if fields(request) else b'200 OK'
            connection.send(b'HTTP/1.1 ' + status + b'\r\nContent-Length: 0\r\n\r\n')

        ringside = self.start(answer)
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(GET)
        self.assertEqual(peer.read_response().status, 425)
        self.assertEqual(len(self.early_requests()), 1, 'it is the client that asks again')
        peer.finish()
        peer.send(GET)
        self.assertEqual(peer.read_response().status, 200)


class Connections(EarlyTest):
    """Keys and ends: the records before and after the end of the handshake have different ones."""

    def answer_by_size(self, connection: upstream.Connection, request: wire.Message) -> None:
        size = int(request.get('x-size', '2'))
        connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % size + self.body[:size])

    body = bytes(range(256)) * (20_000_000 // 256)

    @limit(120)
    def test_a_body_across_the_end_of_the_handshake(self) -> None:
        ringside = self.start(self.answer_by_size)
        big = GET.replace(b'\r\n\r\n', b'\r\nX-Size: %d\r\n\r\n' % len(self.body))
        for cipher in openssl.CIPHERS:
            self.context = openssl.Context(TLS13, cipher, authority=self.authority)
            peer = self.connect(ringside, self.ticket(ringside))
            peer.send_early(big)
            while len(peer.received) < 100_000:
                peer.read_some()
            peer.finish()
            self.assertTrue(peer.read_response().body == self.body, cipher)
            for request in (big, POST, big):
                peer.send(request)
                self.assertEqual(peer.read_response().status, 200)
        ringside.stop()
        said = re.search(r' tls-counts clients: (.*)', ringside.log())
        self.assertIsNotNone(said, ringside.log())
        counts = dict(re.findall(r'(\w+)=(\d+)', said[1]))  # type: ignore[index]
        self.assertEqual((counts['full'], counts['resumed'], counts['early_data']), ('3', '3', '3'))
        if modes.kernel_does_tls():
            self.assertEqual((counts['kernel_sends'], counts['kernel_receives']), ('6', '6'))

    def test_the_last_response(self) -> None:
        ringside = self.start(timeouts='linger = "20s"')
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(GET.replace(b'\r\n\r\n', b'\r\nConnection: close\r\n\r\n'))
        self.assertEqual(peer.read_response().status, 200)
        peer.finish()
        peer.read_some()
        self.assertEqual(peer.ended, 'notified')

    def test_a_client_that_never_ends_its_handshake(self) -> None:
        ringside = self.start(timeouts='client_header = "300ms"')
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(POST)
        self.assertEqual(peer.read_response().status, 408)
        self.assertEqual(self.early_requests(), [])

    def test_clients_that_leave(self) -> None:
        ringside = self.start()
        for request in (GET, POST):
            peer = self.connect(ringside, self.ticket(ringside))
            peer.send_early(request)
            peer.shake()
            peer.close()
        records = ringside.access_records(4)
        self.assertEqual(records[1]['target'], '/early')
        self.assertEqual(records[3]['end'], 'client/read_head/tls', 'its head was whole, and nobody was to see it')
        self.assertEqual([request.method for request in self.early_requests()].count('POST'), 0)
        self.ticket(ringside)

    def test_it_has_a_limit(self) -> None:
        ringside = self.start(more='early_data = true\nearly_data_max = "1KiB"\n')
        ticket = self.ticket(ringside)
        self.assertEqual(ticket.early_bytes, 1024)

    def test_off_by_default(self) -> None:
        ringside = self.start(more='')
        self.assertEqual(self.ticket(ringside).early_bytes, 0)


class Replays(EarlyTest):
    """Whoever has seen the first flight can send it again."""

    @limit(60)
    def test_a_flight_is_taken_once_on_all_rings(self) -> None:
        ringside = self.start(server='rings = 2')
        peer = self.connect(ringside, self.ticket(ringside))
        flight = peer.send_early(GET)
        self.assertEqual(peer.read_response().status, 200)
        for _ in range(12):
            with socket.create_connection(('127.0.0.1', ringside.port), 10 * upstream.slowdown()) as plain:
                plain.sendall(flight)
                self.assertEqual(plain.recv(1), b'\x16', 'a handshake as any other')
        self.ticket(ringside)
        self.assertEqual(len(self.early_requests()), 1)
        peer.finish()
        peer.send(GET)
        self.assertEqual(peer.read_response().status, 200)

    def test_a_session_may_have_it_again(self) -> None:
        ringside = self.start()
        ticket = self.ticket(ringside)
        for number in (1, 2):
            peer = self.connect(ringside, ticket)
            peer.send_early(GET)
            self.assertEqual(peer.read_response().status, 200)
            self.assertTrue(peer.session.early_accepted())
            self.assertEqual(len(self.early_requests()), number)
            peer.finish()

    def test_shared_keys_make_it_wait_after_the_start(self) -> None:
        keys = self.folder / 'ticket.keys'
        keys.write_bytes(bytes(range(80)))
        ringside = self.start(more=f'early_data = true\nticket_keys_file = "{keys}"\n')
        peer = self.connect(ringside, self.ticket(ringside))
        peer.send_early(GET)
        peer.shake()
        self.assertFalse(peer.session.early_accepted())
        peer.finish()
        self.ticket(ringside)
        self.assertEqual(self.early_requests(), [])


class Programs(EarlyTest):
    """openssl and gnutls-cli."""

    def run_program(self, *command: str, text: bytes = b'') -> str:
        done = subprocess.run([self.need_program(command[0]), *command[1:]], input=text, check=False, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.stdout.decode(errors='backslashreplace')

    def test_openssl(self) -> None:
        ringside = self.start()
        session, request = self.folder / 'session', self.folder / 'request'
        request.write_bytes(GET.replace(b'\r\n\r\n', b'\r\nConnection: close\r\n\r\n'))
        common = ('openssl', 's_client', '-connect', f'127.0.0.1:{ringside.port}', '-CAfile', str(self.authority.ca),
                  '-servername', 'a.test', '-ign_eof')
        self.run_program(*common, '-sess_out', str(session), text=request.read_bytes())
        said = self.run_program(*common, '-sess_in', str(session), '-early_data', str(request))
        self.assertIn('Early data was accepted', said)
        self.assertIn('HTTP/1.1 200', said)
        self.assertEqual([fields(each) for each in self.early_requests()], [[], ['1']])

    def test_gnutls(self) -> None:
        ringside = self.start()
        request = self.folder / 'request'
        request.write_bytes(GET)
        said = self.run_program(
            'gnutls-cli', '--x509cafile', str(self.authority.ca), '--port', str(ringside.port), '--sni-hostname',
            'a.test', '--verify-hostname', 'a.test', '--resume', '--waitresumption', '--earlydata', str(request),
            '127.0.0.1', text=b'GET /last HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
        self.assertIn('*** This is a resumed session', said)
        self.assertRegex(said, '(?s)HTTP/1.1 200.*HTTP/1.1 200', said)
        self.assertEqual([fields(each) for each in self.early_requests()], [['1']])
