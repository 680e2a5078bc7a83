"""Each body mover with each framing, both ways, whoever stalls: byte for byte."""

import hashlib
import os
import re
import signal
import threading
import time

from support import client, modes, testcase, upstream, wire
from support.limits import limit

KIB = 1 << 10
MIB = 1 << 20
MOVERS = ('auto', 'copy', 'large', 'bundle', 'splice', 'zero_copy')
SIZES = (0, 1, 16 * KIB, 256 * KIB + 1, 3 * MIB)
UPGRADE = 'Connection: Upgrade\r\nUpgrade: raw\r\n'
SWITCH = b'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n'
STALL_S = 0.2  # long enough for every buffer on the way to fill; nothing is asserted about it


def pattern(seed: int, size: int) -> bytes:
    """Bytes that no other seed shares, without a period that a lost block could hide in."""
    blocks = (hashlib.sha256(f'{seed}.{at}'.encode()).digest() for at in range(size // 32 + 1))
    return b''.join(blocks)[:size]


def chunked(body: bytes, chunk: int) -> bytes:
    out = bytearray()
    for at in range(0, len(body), chunk):
        piece = body[at : at + chunk]
        out += b'%x\r\n' % len(piece) + piece + b'\r\n'
    return bytes(out) + b'0\r\n\r\n'


def download(framing: str, body: bytes) -> bytes:
    head = b'HTTP/1.1 200 OK\r\n'
    if framing == 'length':
        return head + b'Content-Length: %d\r\n\r\n' % len(body) + body
    if framing == 'close':
        return head + b'Connection: close\r\n\r\n' + body
    chunk = MIB if framing == 'large chunks' else 777
    return head + b'Transfer-Encoding: chunked\r\n\r\n' + chunked(body, chunk)


class Movers(testcase.RingsideTest):
    """`server.body_mover` changes what a byte costs, and nothing else."""

    def start_with(self, mover: str, answer: upstream.Answer) -> client.Client:
        self.ringside, _ = self.start_pair(answer, server=f'body_mover = "{mover}"')
        peer = client.Client(self.ringside.port)
        self.addCleanup(peer.close)
        return peer

    @limit(120)
    def test_downloads(self) -> None:
        framings = ('length', 'large chunks', 'small chunks', 'close')
        bodies = {size: pattern(size, size) for size in SIZES}

        def answer(connection: upstream.Connection, request: wire.Message) -> bool | None:
            _, framing, size = request.target.split('/')
            connection.send(download(framing.replace('-', ' '), bodies[int(size)]))
            return False if framing == 'close' else None

        for mover in MOVERS:
            peer = self.start_with(mover, answer)
            for framing in framings:
                for size, body in bodies.items():
                    if framing == 'small chunks' and size > MIB:
                        continue  # nothing new, and slow to check
                    peer.get(f'/{framing.replace(" ", "-")}/{size}')
                    got = peer.read_response(seconds=20).body
                    self.assertTrue(got == body, f'{mover}, {framing}, {size}: {len(got)} bytes')

    @limit(120)
    def test_uploads(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            digest = hashlib.sha256(request.body).hexdigest().encode()
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + digest)

        for mover in MOVERS:
            peer = self.start_with(mover, answer)
            for size in SIZES:
                body = pattern(size, size)
                for framing in ('length', 'chunked'):
                    if framing == 'length':
                        peer.get('/', method='POST', headers=f'Content-Length: {size}\r\n').send(body)
                    else:
                        peer.get('/', method='POST', headers='Transfer-Encoding: chunked\r\n')
                        peer.send(chunked(body, 512 * KIB))
                    got = peer.read_response(seconds=20).body.decode()
                    self.assertEqual(got, hashlib.sha256(body).hexdigest(), f'{mover}, {framing}, {size}')

    @limit(120)
    def test_ends_that_stall(self) -> None:
        body = pattern(1, 3 * MIB)

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            if request.target == '/down':
                message = download('length', body)
                connection.send(message[:1000])
                time.sleep(STALL_S)
                connection.send(message[1000:MIB])
                time.sleep(STALL_S)
                connection.send(message[MIB:])
                return
            digest = hashlib.sha256(request.body).hexdigest().encode()
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n' + digest)

        for mover in MOVERS:
            peer = self.start_with(mover, answer)
            peer.get('/down')
            for _ in range(3):  # the reader stalls too
                peer.read_some(10)
                time.sleep(STALL_S)
            self.assertTrue(peer.read_response(seconds=20).body == body, mover)
            peer.get('/up', method='POST', headers=f'Content-Length: {len(body)}\r\n')
            for at in range(0, len(body), MIB):
                peer.send(body[at : at + MIB])
                time.sleep(STALL_S)
            self.assertEqual(peer.read_response(seconds=20).body.decode(), hashlib.sha256(body).hexdigest())

    @limit(120)
    def test_tunnels_carry_both_directions_at_once(self) -> None:
        down, up = pattern(1, 3 * MIB), pattern(2, 3 * MIB)
        for mover in MOVERS:
            got = bytearray()

            def answer(connection: upstream.Connection, _: wire.Message, got: bytearray = got) -> bool:
                connection.send(SWITCH)
                sender = threading.Thread(target=connection.send, args=(down,))
                sender.start()
                got.extend(connection.pending)
                while len(got) < len(up):
                    got.extend(connection.read_some())
                sender.join()
                return False

            peer = self.start_with(mover, answer)
            peer.get('/', headers=UPGRADE)
            self.assertEqual(peer.read_response().status, 101)
            sender = threading.Thread(target=peer.sock.sendall, args=(up,))
            peer.sock.settimeout(60)
            sender.start()
            data = peer.read_to_end(seconds=30)
            sender.join()
            self.assertTrue(data == down, mover)
            self.assertTrue(bytes(got) == up, mover)

    def test_the_log_says_what_was_moved_how(self) -> None:
        body = pattern(5, 8 * MIB)

        def answer(connection: upstream.Connection, request: wire.Message) -> None:
            connection.send(download('length', body))

        for mover in MOVERS:
            peer = self.start_with(mover, answer)
            peer.get('/')
            self.assertEqual(len(peer.read_response(seconds=20).body), 8 * MIB)
            peer.get('/', method='POST', headers=f'Content-Length: {8 * MIB}\r\n').send(body)
            self.assertEqual(len(peer.read_response(seconds=20).body), 8 * MIB)
            for record in self.ringside.access_records(2):
                self.check_record(mover, record)
            self.ringside.signal(signal.SIGTERM)
            peer.close()
            self.ringside.wait()
            counted = re.search('stopped .*; bodies moved: (.*)', self.ringside.log())
            self.assertIsNotNone(counted, mover)
            if mover != 'zero_copy' or not modes.mode():
                self.assertIn(self.expected_word(mover), counted[1])
            self.assertEqual(sum(int(n) for n in re.findall(r'=(\d+)', counted[1])), 2, counted[1])

    @staticmethod
    def expected_word(mover: str) -> str:
        if mover == 'auto':
            return 'splice'
        # The oldest kernel has no bundles.
        return 'copy' if mover == 'bundle' and 'RINGSIDE_LAB' in os.environ else mover

    def check_record(self, mover: str, record: dict) -> None:
        """Almost all of it went one way: not what came with the head, or before the server had shown its pace."""
        body = record['body_bytes'] + record['request_bytes']
        # Of a quick body the kernel may owe all the notifications that it can: the rest is copied then.
        words = ('zero_copy', 'large') if mover == 'zero_copy' else (self.expected_word(mover),)
        self.assertIn(record['mover'], words, mover)
        if mover == 'zero_copy' and self.towards_tls(record):  # which cannot do it
            self.assertEqual((record['mover'], record['zero_copy_bytes']), ('large', 0), record)
            return
        for key, word in (('spliced_bytes', 'splice'), ('zero_copy_bytes', 'zero_copy')):
            if word == 'zero_copy' == mover:
                self.assertGreater(record[key], MIB, f'{mover}: {record}')
            elif record['mover'] == word:
                self.assertGreater(record[key], body / 2, f'{mover}: {record}')
            elif mover == 'auto':  # before the pipe; and on loopback the first notification says "copied"
                self.assertLess(record[key], MIB, f'{mover}: {record}')
            else:
                self.assertEqual(record[key], 0, f'{mover}: {record}')

    @staticmethod
    def towards_tls(record: dict) -> bool:
        # A POST is answered with a large body, too, so that one of its two goes to an end in plain text.
        return record['method'] == 'GET' and modes.client_speaks_tls()

    def test_a_server_that_dies_cuts_visibly(self) -> None:
        def answer(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n' % (4 * MIB) + pattern(4, 2 * MIB))
            return False

        for mover in MOVERS:
            peer = self.start_with(mover, answer)
            peer.get('/')
            data = peer.read_to_end(seconds=20)
            with self.assertRaises(wire.Incomplete, msg=mover):
                wire.parse_response(data)
            body = data.split(b'\r\n\r\n', 1)[1]
            self.assertTrue(pattern(4, 2 * MIB).startswith(body), mover)
