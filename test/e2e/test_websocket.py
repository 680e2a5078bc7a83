"""A real WebSocket client and server (the `websockets` package) with ringside between them."""

import asyncio
import threading

import websockets

from support import modes, testcase


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
