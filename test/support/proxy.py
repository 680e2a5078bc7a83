"""Starts ringside with a configuration of a test's own, and ends it."""

from __future__ import annotations

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

from . import modes
from .upstream import slowdown, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]


def binary() -> str:
    """The program under test: $RINGSIDE, or the release build's."""
    path = os.environ.get('RINGSIDE') or str(ROOT / 'build' / 'ringside')
    if not os.access(path, os.X_OK):
        raise AssertionError(f'{path} is missing: run scripts/build first, or set RINGSIDE')
    return path


def proxy_config(servers: list[str] | str, *, server: str = '', timeouts: str = '', limits: str = '',
                 upstream: str = '', route: str = '', forwarding: str = '', extra: str = '',
                 listen: str = '["127.0.0.1:0"]', log: str = '', access: str = 'json', tls: str = '',
                 upstream_tls: str = '') -> str:
    """TOML for the usual case: listener `web`, everything goes to upstream `app`.

    The keyword arguments are lines for their tables: `tls` for the listener's [tls.main]. @DIR@ stands for the
    instance's own folder.
    """
    if isinstance(servers, str):
        servers = [servers]
    listed = servers if servers and servers[0].startswith('{') else [f'"{s}"' for s in servers]
    sink = 'access = "off"' if access == 'off' else (
        f'access = {{ format = "{access}", file = "@DIR@/access.log" }}')
    tables = [
        ('server', server if 'rings' in server else 'rings = 1\n' + server),
        ('timeouts', timeouts),
        ('limits', limits),
        ('forwarding', forwarding),
        ('log', log + '\n' + sink),
        ('listen.web', f'address = {listen}' + ('\ntls = "main"' if tls else '')),
        ('tls.main', tls),
        ('upstream.app', f'servers = [{", ".join(listed)}]\n{upstream}'),
        ('upstream.app.tls', upstream_tls),
        ('[site]', 'hosts = ["*"]'),
        ('[site.route]', 'path = "/*"\nupstream = "app"\n' + route),
    ]
    text = ''.join(f'[{name}]\n{lines}\n' for name, lines in tables if lines.strip())
    return text + extra


class Ringside:
    """One running proxy. `ports` maps listener names to the ports really bound."""

    def __init__(self, toml: str, *, descriptors: int | tuple[int, int] | None = None):
        """`descriptors`: the limit of open files, or the soft and the hard one."""
        self._folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.folder = pathlib.Path(self._folder.name)
        self.config_path = self.folder / 'ringside.toml'
        self.config_path.write_text(modes.configure(toml).replace('@DIR@', str(self.folder)))
        self.access_path = self.folder / 'access.log'
        # How it may end. A test that ends it by force allows more.
        self.statuses_allowed: set[int] = {0}
        self.lines: list[str] = []
        self.addresses: dict[str, list[str]] = {}
        self._ready = threading.Event()
        both = (descriptors, descriptors) if isinstance(descriptors, int) else descriptors
        limit = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, both)) if both else None
        self.process = subprocess.Popen(
            [binary(), 'run', '--config', str(self.config_path)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=limit)
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        if not self._ready.wait(20 * slowdown()) or not self.addresses:
            self.kill()
            raise AssertionError('ringside did not get ready; its log:\n' + self.log())

    def _read_log(self) -> None:
        stream = self.process.stderr
        assert stream is not None
        for raw in stream:
            line = raw.decode('utf-8', 'backslashreplace').rstrip('\n')
            self.lines.append(line)
            if not self.addresses and re.search(r'\bready\b', line):
                found: dict[str, list[str]] = {}
                for name, address in re.findall(r'\blisten\.([\w-]+)=(\S+)', line):
                    found.setdefault(name, []).append(address)
                self.addresses = found
                self._ready.set()
        self._ready.set()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def port(self) -> int:
        return self.port_of('web')

    def port_of(self, listener: str) -> int:
        return int(self.addresses[listener][0].rpartition(':')[2])

    def url(self, path: str = '/', *, host: str = '127.0.0.1', scheme: str | None = None) -> str:
        """For the first address of listener `web`; `scheme`: instead of the mode's."""
        return f'{scheme or modes.scheme()}://{host}:{self.port}{path}'

    def log(self) -> str:
        return '\n'.join(self.lines)

    def wait_for_log(self, pattern: str, seconds: float = 10.0) -> bool:
        return wait_until(lambda: any(re.search(pattern, line) for line in list(self.lines)), seconds)

    def access_lines(self) -> list[bytes]:
        try:
            data = self.access_path.read_bytes()
        except FileNotFoundError:
            return []
        return data.split(b'\n')[:-1]

    def access_records(self, count: int, seconds: float = 10.0) -> list[dict]:
        """The first `count` records of the JSON access log; fails when there are more or fewer."""
        wait_until(lambda: len(self.access_lines()) >= count, seconds)
        lines = self.access_lines()
        if len(lines) != count:
            raise AssertionError(f'{len(lines)} access records, not {count}: {lines[-5:]}')
        return [json.loads(line) for line in lines]

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = 10.0) -> int:
        """Its exit status; fails when it is still there."""
        try:
            status = self.process.wait(seconds * slowdown())
        except subprocess.TimeoutExpired:
            raise AssertionError('ringside is still running; its log:\n' + self.log()) from None
        self._reader.join(5)
        return status

    def running(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """The orderly end of a test: it must leave by itself, with status 0."""
        try:
            if self.running():
                # Tests leave connections open; the second signal spares them the drain.
                self.signal(signal.SIGTERM)
                time.sleep(0.02)
                self.signal(signal.SIGTERM)
                self.wait(10)
        finally:
            self.kill()

    def kill(self) -> None:
        if self.running():
            self.process.kill()
        self.process.wait(10)
        self._reader.join(5)
        if self.process.stderr:
            self.process.stderr.close()
        self._folder.cleanup()

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f'/proc/{self.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def private_bytes(self) -> int:
        """Memory that it has written and that no other process shares."""
        sums = pathlib.Path(f'/proc/{self.pid}/smaps_rollup').read_text()
        found = re.search(r'^Private_Dirty: +(\d+) kB', sums, re.M)
        assert found
        return int(found[1]) << 10

    def sockets(self) -> int:
        """How many of its descriptors are sockets."""
        count = 0
        for name in os.listdir(f'/proc/{self.pid}/fd'):
            try:
                count += os.readlink(f'/proc/{self.pid}/fd/{name}').startswith('socket:')
            except FileNotFoundError:
                pass  # closed between the two calls
        return count


def run_command(*arguments: str, seconds: float = 20.0,
                env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs `ringside ARGUMENTS` to its end."""
    return subprocess.run([binary(), *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors='backslashreplace', timeout=seconds * slowdown(),
                          env={**os.environ, **(env or {})}, check=False)
