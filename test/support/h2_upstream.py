"""The base of tests whose servers speak HTTP/2."""

from __future__ import annotations

from . import h2, h2_server, proxy, testcase


class UpstreamTest(testcase.RingsideTest):
    """A proxy whose listener takes both protocols, and servers that speak HTTP/2."""

    def start_server(self, answer=None, **options) -> h2_server.Server:
        server = h2_server.Server(answer, **options)
        self.addCleanup(server.close)
        return server

    def start_before(self, *servers, lines: str = '', protocol: str = 'h2', **options) -> proxy.Ringside:
        addresses = [s if isinstance(s, str) else s.address for s in servers]
        options.setdefault('listen', '["127.0.0.1:0"]\nprotocols = ["h2", "http/1.1"]')
        return self.start_ringside(proxy.proxy_config(
            addresses, upstream=f'protocol = "{protocol}"\n{lines}', **options))

    def start_both(self, answer=None, *, early: bool = False, tells_all: bool = False, settings: bytes = b'', **options):
        server = self.start_server(answer, early=early, tells_all=tells_all, settings=settings)
        return self.start_before(server, **options), server

    def connect(self, ringside: proxy.Ringside, settings: bytes = b'') -> h2.Client:
        made = h2.Client(ringside.port, settings)
        self.addCleanup(made.sock.close)
        return made

    def ask(self, made: h2.Client, stream: int = 1, path: str = '/') -> None:
        made.ask(stream, h2.request('GET', path))

    def assert_answered(self, made: h2.Client, stream: int = 1, status: int = 200) -> None:
        self.assertTrue(made.wait(lambda: made.complete(stream)), f'stream {stream}: {made.frames}')
        self.assertEqual(made.status(stream), status)
