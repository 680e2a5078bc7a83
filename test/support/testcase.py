"""The base of tests that talk to a running ringside."""

from __future__ import annotations

import pathlib
import shutil
import tempfile
import unittest
from typing import Any

from . import certificates, modes, proxy, upstream


class RingsideTest(unittest.TestCase):
    """Starts proxies and upstreams that end with the test; a failing test prints ringside's log."""

    maxDiff = None

    def setUp(self) -> None:
        reason = modes.reason_to_skip(self.id())
        if reason:
            self.skipTest(reason)
        self._proxies: list[proxy.Ringside] = []

    def start_upstream(self, *args: Any, **options: Any) -> upstream.Upstream:
        server = upstream.Upstream(*args, **options)
        self.addCleanup(server.close)
        return server

    def start_ringside(self, toml: str, **options: Any) -> proxy.Ringside:
        instance = proxy.Ringside(toml, **options)
        self._proxies.append(instance)
        self.addCleanup(self._end, instance)
        return instance

    def start_proxy(self, servers: Any, **options: Any) -> proxy.Ringside:
        """A proxy for upstreams (or their addresses), with the lines of `proxy_config`."""
        if not isinstance(servers, list):
            servers = [servers]
        addresses = [s if isinstance(s, str) else s.address for s in servers]
        descriptors = options.pop('descriptors', None)
        return self.start_ringside(proxy.proxy_config(addresses, **options), descriptors=descriptors)

    def start_pair(self, answer: Any = upstream.OK, *, early: bool = False,
                   **options: Any) -> tuple[proxy.Ringside, upstream.Upstream]:
        server = self.start_upstream(answer, early=early)
        return self.start_proxy(server, **options), server

    def _end(self, instance: proxy.Ringside) -> None:
        crashed = not instance.running() and instance.process.returncode not in instance.statuses_allowed
        records = instance.access_lines()[-20:]
        try:
            instance.stop()
        finally:
            if self._failed() or instance.process.returncode not in instance.statuses_allowed:
                print(f'--- log of ringside (pid {instance.pid}) ---\n{instance.log()}')
                for line in records:
                    print('access:', line.decode('utf-8', 'backslashreplace'))
        if instance.process.returncode not in instance.statuses_allowed:
            self.fail(f'ringside ended {"by itself " if crashed else ""}with status {instance.process.returncode}')

    def _failed(self) -> bool:
        outcome = getattr(self, '_outcome', None)
        result = getattr(outcome, 'result', None)
        return bool(result) and any(test is self for test, _ in result.failures + result.errors)

    def need_program(self, name: str) -> str:
        """A program that scripts/test installs; its absence is a failure, not a skip."""
        path = shutil.which(name)
        if not path:
            self.fail(f'{name} is not installed (scripts/test installs it)')
        return path


class AuthorityTest(RingsideTest):
    """With a temporary folder and, in it, a CA; both end with the test."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.authority = certificates.Authority(self.folder / 'ca')
