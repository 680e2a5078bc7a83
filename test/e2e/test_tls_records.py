"""TLS connections after the handshake, whoever makes their records: ringside, or the kernel where it can.

In the lab the kernel does, and its own counters have to say so.
"""

import contextlib
import hashlib
import pathlib
import random
import re
import tempfile
import threading

from support import certificates, client, modes, openssl, proxy, testcase, upstream, wire
from support.limits import limit
from support.openssl import TLS12, TLS13

MIB = 1 << 20
SIZES = (1, 16384, 16385, MIB + 1, 50_000_000)
KINDS = tuple((version, cipher) for version in (TLS12, TLS13) for cipher in ('aes128', 'chacha20'))


def pattern(seed: int, size: int) -> bytes:
    # Repeated, as the lab's CPU needs seconds for 50 MB; not at a multiple of anything that is moved at once.
    block = random.Random(seed).randbytes(min(size, 1_000_003))
    return (block * (size // len(block) + 1))[:size]


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def response(body: bytes, headers: bytes = b'') -> bytes:
    return b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n' % (len(body), headers) + body


def echo_or_serve(connection: upstream.Connection, request: wire.Message) -> None:
    """/N: a body of N bytes; otherwise the digest of the request's body."""
    size = request.target[1:]
    connection.send(response(pattern(int(size), int(size)) if size else digest(request.body)))


class RecordsTest(testcase.RingsideTest):
    """A CA of its own; `kernel` says who makes the records, `goes_on` whether a KeyUpdate is no obstacle."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        self.authority = certificates.Authority(pathlib.Path(folder.name) / 'ca')
        self.pair = self.authority.issue('main')
        self.kernel = self.goes_on = False

    def start(self, answer: upstream.Answer, **options: str) -> proxy.Ringside:
        """Before a plain server."""
        ringside, self.server = self.start_pair(
            answer, tls=f'certificates = [{{ {self.pair.toml()} }}]\n', **options)
        return self.look_at_kernel(ringside)

    def start_before(self, version, cipher: str, answer: upstream.Answer, **options: str) -> proxy.Ringside:
        """Before a server that speaks TLS."""
        self.server = self.start_upstream(answer, tls=openssl.Context(version, cipher, pair=self.pair))
        return self.look_at_kernel(self.start_proxy(self.server, upstream_tls=f'ca = "{self.authority.ca}"', **options))

    def look_at_kernel(self, ringside: proxy.Ringside) -> proxy.Ringside:
        said = re.search(r'ktls: (yes|no): .*', ringside.log())
        self.assertIsNotNone(said, ringside.log())
        self.kernel = said[1] == 'yes'  # type: ignore[index]
        self.goes_on = not self.kernel or 'rekey=yes' in said[0]  # type: ignore[index]
        self.assertEqual(self.kernel, modes.kernel_does_tls(), 'the kernel has TLS, and it is not used')
        self.before = self.counters()
        return ringside

    def connect(self, ringside: proxy.Ringside, version, cipher: str = 'aes128') -> client.Client:
        peer = client.Client(ringside.port, tls=openssl.Context(version, cipher, authority=self.authority))
        self.addCleanup(peer.close)
        return peer

    @staticmethod
    def counters() -> dict[str, int]:
        lines = modes.KERNEL_TLS.read_text().splitlines() if modes.kernel_does_tls() else []
        return {name: int(count) for name, count in map(str.split, lines)}

    def assert_by_the_kernel(self, connections: int) -> None:
        """It had so many connections since the start, both ways, and no record was refused."""
        if not self.kernel:
            return
        gained = {name: count - self.before[name] for name, count in self.counters().items()}
        self.assertGreaterEqual(gained['TlsTxSw'], connections, gained)
        self.assertGreaterEqual(gained['TlsRxSw'], connections, gained)
        self.assertEqual(gained['TlsDecryptError'], 0, gained)

    def assert_spliced(self, record: dict) -> None:
        """A body of many MB went through a pipe where the kernel has both ends' bytes in clear."""
        if self.kernel:
            self.assertEqual(record['mover'], 'splice', record)
            self.assertGreater(record['spliced_bytes'], 25_000_000, record)
        else:
            self.assertEqual(record['spliced_bytes'], 0, record)


class Transfers(RecordsTest):
    """1 B to 50 MB, both ways, each version and kind of cipher, towards clients and servers."""

    def transfer(self, ringside: proxy.Ringside, peer: client.Client) -> None:
        for size in SIZES:
            self.assertEqual(digest(peer.get(f'/{size}').read_response(seconds=60).body), digest(pattern(size, size)))
            body = pattern(size + 1, size)
            peer.get('/', method='POST', headers=f'Content-Length: {size}\r\n')
            sender = threading.Thread(target=peer.send, args=(body,))
            sender.start()
            self.assertEqual(peer.read_response(seconds=60).body, digest(body), size)
            sender.join()
            peer.received.clear()
            peer._parsed = 0  # pylint: disable=protected-access
        for record in ringside.access_records(2 * len(SIZES))[-2:]:
            self.assert_spliced(record)

    @limit(300)
    def test_clients(self) -> None:
        for version, cipher in KINDS:
            ringside = self.start(echo_or_serve)
            peer = self.connect(ringside, version, cipher)
            self.transfer(ringside, peer)
            self.assertEqual((peer.sock.session.version(), peer.sock.session.cipher()),
                             (version.name.replace('_', '.'), openssl.CIPHERS[cipher][version == TLS13]))
            peer.shutdown_write()
            self.assertEqual(peer.read_to_end(), b'')
            self.assertTrue(peer.whole)
            self.assert_by_the_kernel(1)
            ringside.stop()

    @limit(300)
    def test_servers(self) -> None:
        for version, cipher in KINDS:
            ringside = self.start_before(version, cipher, echo_or_serve)
            with client.Client(ringside.port, tls=None) as peer:
                self.transfer(ringside, peer)
            self.assertEqual(len(self.server.connections), 1)
            self.assertEqual(self.server.errors, [])
            self.assert_by_the_kernel(1)
            ringside.stop()
            self.assertTrue(self.server.wait_for(lambda s: s.connections[0].whole))

    def test_both_sides(self) -> None:
        for version, ours, theirs in ((TLS12, 'chacha20', 'aes256'), (TLS13, 'aes256', 'chacha20')):
            self.server = self.start_upstream(echo_or_serve, tls=openssl.Context(version, theirs, pair=self.pair))
            ringside = self.look_at_kernel(self.start_proxy(
                self.server, upstream_tls=f'ca = "{self.authority.ca}"',
                tls=f'certificates = [{{ {self.pair.toml()} }}]\n'))
            self.transfer(ringside, self.connect(ringside, version, ours))
            self.assert_by_the_kernel(2)


class KeyUpdates(RecordsTest):
    """RFC 8446 §4.6.3. Where the kernel takes no new key, nothing is opened or sent under an old one."""

    def test_of_a_client_between_requests(self) -> None:
        ringside = self.start(echo_or_serve)
        for requested in (False, True):
            peer = self.connect(ringside, TLS13)
            for number in range(3):
                peer.get('/100000')
                if number and not self.goes_on:
                    break
                self.assertEqual(peer.read_response().body, pattern(100_000, 100_000))
                peer.sock.update_key(requested)
            if self.goes_on:
                self.assertEqual(peer.sock.session.updates_received, 2 if requested else 0)
            else:
                self.assertEqual(peer.read_to_end(), b'')
                self.assertTrue(peer.whole, peer.ended)
                self.assertTrue(ringside.wait_for_log('info tls client .* new key'), ringside.log())

    def test_of_a_client_that_waits_for_its_answer(self) -> None:
        go = threading.Event()

        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            go.wait(60)
            connection.send(response(pattern(1, MIB)))

        ringside = self.start(answer)
        peer = self.connect(ringside, TLS13).get('/')
        self.assertTrue(self.server.wait_for(lambda s: s.requests))
        peer.sock.update_key(False)
        if not self.goes_on:
            self.assertTrue(ringside.wait_for_log('info tls client .* new key'), ringside.log())
        go.set()
        self.assertTrue(peer.read_response().body == pattern(1, MIB))
        if not self.goes_on:
            self.assertEqual(peer.read_to_end(), b'')
            self.assertTrue(peer.whole, peer.ended)
        self.assertEqual(ringside.access_records(1)[0]['end'], 'complete')

    def test_of_a_client_that_sends(self) -> None:
        body = pattern(2, 3 * MIB)
        ringside = self.start(echo_or_serve)
        for requested in (False, True):
            peer = self.connect(ringside, TLS13)
            peer.get('/', method='POST', headers=f'Content-Length: {len(body)}\r\n')
            for at in range(0, len(body), MIB):
                peer.send(body[at : at + MIB])
                with contextlib.suppress(OSError):  # cut already
                    peer.sock.update_key(requested)
            if self.goes_on:
                self.assertEqual(peer.read_response().body, digest(body))
                self.assertGreater(peer.sock.session.updates_received, 0 if requested else -1)
            else:
                peer.read_to_end()
                # A reset where more was on its way, as a rule.
                self.assertIn((bytes(peer.received), peer.ended), ((b'', 'reset'), (b'', 'fin')))
        if not self.goes_on:
            self.assertEqual(self.server.requests, [], 'a cut request looks whole')
            self.assertEqual({r['end'].split('/')[0] for r in ringside.access_records(2)}, {'client'})

    def test_of_a_client_in_a_tunnel(self) -> None:
        heard = bytearray()

        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n')
            while not heard.endswith(b'last'):
                heard.extend(connection.read_some())
            connection.send(b'bye')
            return False

        ringside = self.start(answer)
        peer = self.connect(ringside, TLS13).get('/', headers='Connection: Upgrade\r\nUpgrade: raw\r\n')
        self.assertEqual(peer.read_response().status, 101)
        peer.send(b'first')
        self.assertTrue(upstream.wait_until(lambda: heard == b'first'))
        peer.sock.update_key(False)
        peer.send(b'last')
        if self.goes_on:
            self.assertEqual(peer.read_to_end(), b'bye')
        else:
            self.assertTrue(self.server.wait_for(lambda s: s.connections[0].ended_by))
            self.assertEqual(bytes(heard), b'first', 'a byte under a stale key')

    def test_of_a_server(self) -> None:
        body = pattern(3, 3 * MIB)
        heads = {'/length': b'Content-Length: %d\r\n\r\n' % len(body), '/close': b'Connection: close\r\n\r\n'}

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(b'HTTP/1.1 200 OK\r\n' + heads[request.target])
            for at in range(0, len(body), MIB):
                connection.send(body[at : at + MIB])
                connection.sock.update_key(at == MIB)
            if request.target == '/close':
                connection.shutdown_write()
                connection.drain()  # ringside's new key, which would make a close a reset

        ringside = self.start_before(TLS13, 'aes128', answer)
        for target in heads:
            with client.Client(ringside.port, tls=None) as peer:
                peer.get(target)
                if self.goes_on:
                    self.assertTrue(peer.read_response().body == body, target)
                    continue
                peer.read_to_end()
                with self.assertRaises(wire.Incomplete):
                    wire.parse_response(bytes(peer.received))
        if not self.goes_on:
            self.assertEqual({r['end'] for r in ringside.access_records(2)}, {'upstream/response_body/tls'})
            self.assertTrue(ringside.wait_for_log('warn tls server .* new key'), ringside.log())


class OtherRecords(RecordsTest):
    """Tickets, alerts and ends, in the middle of data."""

    def test_tickets(self) -> None:
        body = pattern(4, 2 * MIB)

        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            connection.sock.new_ticket()
            connection.send(response(body)[:MIB])
            for _ in range(3):
                connection.sock.new_ticket()
            connection.send(response(body)[MIB:])

        ringside = self.start_before(TLS13, 'aes256', answer)
        with client.Client(ringside.port, tls=None) as peer:
            for _ in range(3):
                self.assertTrue(peer.get('/').read_response().body == body)
        self.assertEqual(len(self.server.connections), 1)
        self.assert_by_the_kernel(1)

    def test_an_alert_of_a_client(self) -> None:
        for version in (TLS12, TLS13):
            ringside = self.start(echo_or_serve)
            idle, busy = self.connect(ringside, version), self.connect(ringside, version)
            self.assertEqual(idle.get('/10').read_response().body, pattern(10, 10))
            idle.sock.give_up()
            idle.read_to_end()
            self.assertTrue(ringside.wait_for_log('info tls client .*alert received: bad record mac'), ringside.log())
            busy.get('/', method='POST', headers='Content-Length: 1000000\r\n').send(bytes(100_000))
            busy.sock.give_up()
            busy.read_to_end()
            self.assertRegex(ringside.access_records(2)[1]['end'], '^client/.*/tls$')
            self.assertEqual(len(self.server.requests), 1, 'a cut request looks whole')
            self.assert_by_the_kernel(2)

    def test_an_alert_of_a_server(self) -> None:
        for version in (TLS12, TLS13):
            def answer(connection: upstream.Connection, _: wire.Message) -> bool:
                connection.send(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n' + pattern(5, 100_000))
                connection.sock.give_up()
                return False

            ringside = self.start_before(version, 'aes128', answer)
            with client.Client(ringside.port, tls=None) as peer:
                peer.get('/').read_to_end()
                with self.assertRaises(wire.Incomplete):
                    wire.parse_response(bytes(peer.received))
            self.assertEqual(ringside.access_records(1)[0]['end'], 'upstream/response_body/tls')
            self.assertTrue(ringside.wait_for_log('warn tls server .*alert received: bad record mac'), ringside.log())

    def test_a_client_that_is_cut_off(self) -> None:
        for version in (TLS12, TLS13):
            ringside = self.start(echo_or_serve)
            peer = self.connect(ringside, version)
            self.assertEqual(peer.get('/10').read_response().body, pattern(10, 10))
            peer.get('/', method='POST', headers='Content-Length: 1000000\r\n').send(bytes(100_000))
            peer.sock.cut()
            self.assertRegex(ringside.access_records(2)[1]['end'], '^client/')
            self.assertEqual(len(self.server.requests), 1, 'a cut request looks whole')

    def test_a_server_that_is_cut_off(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n' + pattern(6, 2 * MIB))
            if request.target == '/cut':
                connection.cut()
            return False

        for version in (TLS12, TLS13):
            ringside = self.start_before(version, 'aes128', answer)
            for target in ('/whole', '/cut'):
                with client.Client(ringside.port, tls=None) as peer:
                    peer.get(target)
                    if target == '/whole':
                        self.assertTrue(peer.read_response().body == pattern(6, 2 * MIB))
                        continue
                    peer.read_to_end()
                    with self.assertRaises(wire.Incomplete):  # in chunks: the last one is missing
                        wire.parse_response(bytes(peer.received))
            self.assertEqual([r['end'] for r in ringside.access_records(2)],
                             ['complete', 'upstream/response_body/tls'])

    def test_a_client_that_has_said_all_still_reads(self) -> None:
        go = threading.Event()

        def answer(connection: upstream.Connection, _: wire.Message) -> None:
            go.wait(60)
            connection.send(response(pattern(7, 2 * MIB)))

        for version in (TLS12, TLS13):
            ringside = self.start(answer)
            go.clear()
            peer = self.connect(ringside, version).get('/')
            self.assertTrue(self.server.wait_for(lambda s: s.requests))
            peer.shutdown_write()
            go.set()
            self.assertTrue(peer.read_response().body == pattern(7, 2 * MIB))
            peer.read_to_end()
            self.assertTrue(peer.whole, peer.ended)
            self.assert_by_the_kernel(1)
