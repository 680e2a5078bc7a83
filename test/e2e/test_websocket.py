"""A real WebSocket client and server (the `websockets` package) with ringside between them."""

import asyncio
import struct
import threading

import websockets

from support import h2, modes, testcase


class EchoServer:
    """`websockets` in a thread of its own; greets first, then echoes."""

    def __init__(self) -> None:
        self.address = ''
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)
        self._thread.start()
        if not self._started.wait(10):
            raise AssertionError('the WebSocket server does not start')

    async def _serve(self) -> None:
        async def handle(socket: websockets.WebSocketServerProtocol) -> None:
            await socket.send('hello ' + (socket.request_headers.get('X-Forwarded-For') or '-'))
            try:
                async for message in socket:
                    await socket.send(message)
            except websockets.ConnectionClosed:
                pass  # a browser closes without a status code

        tls = modes.upstream_context()
        async with websockets.serve(handle, '127.0.0.1', 0, max_size=1 << 24, ssl=tls) as server:
            self.address = f'{"https://" if tls else ""}127.0.0.1:{server.sockets[0].getsockname()[1]}'
            self._started.set()
            await self._stop

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set_result, None)
        self._thread.join(10)
        self._loop.close()


class WebSocket(testcase.RingsideTest):
    """Frames in both directions."""

    def setUp(self) -> None:
        super().setUp()
        self.server = EchoServer()
        self.addCleanup(self.server.close)
        self.ringside = self.start_proxy(self.server.address)

    def connect(self, path: str, **options: int) -> websockets.connect:
        scheme = 'wss' if modes.client_speaks_tls() else 'ws'
        return websockets.connect(self.ringside.url(path, scheme=scheme), ssl=modes.client_context(), **options)

    def with_client(self, talk) -> None:
        async def run() -> None:
            async with self.connect('/chat', max_size=1 << 24) as socket:
                await asyncio.wait_for(talk(socket), 30)

        asyncio.run(run())

    def test_greeting_and_echo(self) -> None:
        async def talk(socket: websockets.WebSocketClientProtocol) -> None:
            self.assertEqual(await socket.recv(), 'hello 127.0.0.1')
            for message in ('text', b'\0\xff bytes', '', 'x' * 70000, b'y' * 3_000_000):
                await socket.send(message)
                self.assertTrue(await socket.recv() == message)
            await (await socket.ping())

        self.with_client(talk)
        record = self.ringside.access_records(1)[0]
        self.assertEqual((record['status'], record['target']), (101, '/chat'))

    def test_both_directions_at_once(self) -> None:
        async def talk(socket: websockets.WebSocketClientProtocol) -> None:
            await socket.recv()
            messages = [bytes([n % 256]) * 20000 for n in range(200)]

            async def send() -> None:
                for message in messages:
                    await socket.send(message)

            sender = asyncio.ensure_future(send())
            for message in messages:
                self.assertTrue(await socket.recv() == message)
            await sender

        self.with_client(talk)

    def test_many_tunnels(self) -> None:
        async def one(number: int) -> None:
            async with self.connect(f'/{number}') as socket:
                await socket.recv()
                await socket.send(str(number))
                self.assertEqual(await socket.recv(), str(number))

        async def run() -> None:
            await asyncio.wait_for(asyncio.gather(*(one(n) for n in range(50))), 30)

        asyncio.run(run())
        self.ringside.access_records(50)


class OverHttp2(testcase.RingsideTest):
    """Opened by extended CONNECT (RFC 8441), on streams of one connection."""

    def setUp(self) -> None:
        super().setUp()
        server = EchoServer()
        self.addCleanup(server.close)
        self.ringside = self.start_proxy(server.address, listen='["127.0.0.1:0"]\nprotocols = ["h2", "http/1.1"]')
        self.client = h2.Client(self.ringside.port, h2.setting(h2.INITIAL_WINDOW, 1 << 24))
        self.addCleanup(self.client.sock.close)
        self.client.open(0, 1 << 24)
        self.sent: dict[int, int] = {}

    def open(self, stream: int, *more: tuple[str, str]) -> None:
        self.client.ask(stream, [
            (':method', 'CONNECT'), (':protocol', 'websocket'), (':scheme', 'http'), (':authority', 'a.test'),
            (':path', f'/{stream}'), ('sec-websocket-version', '13'), *more], end=False)
        self.assertTrue(self.client.wait(lambda: self.client.status(stream)))
        self.assertEqual(self.client.status(stream), 200)

    def room(self, stream: int) -> int:
        """What the windows leave."""
        given = [sum(f.number() for f in self.client.of(h2.WINDOW_UPDATE, s)) for s in (0, stream)]
        return min(65535 + given[0] - sum(self.sent.values()), 256 * 1024 + given[1] - self.sent.get(stream, 0))

    def say(self, stream: int, opcode: int, message: bytes) -> None:
        """A frame of RFC 6455 §5.2, with a mask of zeros."""
        size = len(message)
        length = (struct.pack('>B', 0x80 | size) if size < 126 else struct.pack('>BH', 0xfe, size) if size < 65536
                  else struct.pack('>BQ', 0xff, size))
        data = bytes((0x80 | opcode,)) + length + bytes(4) + message
        while data:
            self.assertTrue(self.client.wait(lambda: self.room(stream) > 0))
            part = data[:min(self.room(stream), 16384)]
            self.sent[stream] = self.sent.get(stream, 0) + len(part)
            self.client.body(stream, part)
            data = data[len(part):]

    def heard(self, stream: int) -> list[tuple[int, bytes]]:
        """Whole frames of the server: opcode and payload."""
        data, frames = self.client.data(stream), []
        while len(data) >= 2:
            form = {126: '>H', 127: '>Q'}.get(data[1])
            head = 2 + (struct.calcsize(form) if form else 0)
            if len(data) < head:
                break
            size = struct.unpack_from(form, data, 2)[0] if form else data[1]
            if len(data) < head + size:
                break
            frames.append((data[0] & 15, data[head:head + size]))
            data = data[head + size:]
        return frames

    def test_greeting_echo_and_end(self) -> None:
        self.open(1)
        messages = [b'bytes', b'', b'x' * 70_000, b'y' * 1_000_000]
        for message in messages:
            self.say(1, 2, message)
        self.assertTrue(self.client.wait(lambda: len(self.heard(1)) == 1 + len(messages)))
        self.assertEqual(self.heard(1)[0], (1, b'hello 127.0.0.1'))
        self.assertTrue([message for _, message in self.heard(1)[1:]] == messages)
        self.say(1, 8, struct.pack('>H', 1000))
        self.assertTrue(self.client.wait(lambda: self.client.complete(1)), 'the server ends its connection')
        self.assertEqual(self.heard(1)[-1], (8, struct.pack('>H', 1000)))
        self.client.body(1, b'', end=True)
        record = self.ringside.access_records(1)[0]
        self.assertEqual((record['status'], record['method'], record['target'], record['protocol'], record['end']),
                         (200, 'GET', '/1', 'HTTP/2.0', 'complete'))

    def test_many_on_one_connection(self) -> None:
        streams = range(1, 61, 2)
        for stream in streams:
            self.open(stream)
        for stream in streams:
            self.say(stream, 1, str(stream).encode())
        for stream in streams:
            self.assertTrue(self.client.wait(lambda s=stream: len(self.heard(s)) == 2))
            self.assertEqual(self.heard(stream)[1], (1, str(stream).encode()))
        self.client.reset(1)
        self.assertEqual(self.ringside.access_records(1)[0]['end'], 'client/tunnel/reset')
        self.say(3, 1, b'still here')
        self.assertTrue(self.client.wait(lambda: self.heard(3)[-1] == (1, b'still here')))
