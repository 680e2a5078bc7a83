"""The proxies that are compared: how each is configured and started, all for the same job."""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Callable

from . import nginx, usage
from .lab import Lab, free_port, wait_for_port
from .tls import Tls

HAPROXY = shutil.which('haproxy') or '/usr/sbin/haproxy'
# Ample in every row: it keeps fewer connections to servers when a quarter of its descriptors is in use.
HAPROXY_CONNECTIONS = 12000


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a proxy is to listen, whom to ask, and for how many clients with how many rings, workers or
    threads."""

    folder: pathlib.Path
    port: int
    upstream: int
    rings: int
    clients: int
    tls: Tls | None = None  # how clients speak to it; None: in plain text
    deferred: bool = False  # TCP_DEFER_ACCEPT, of a second

    @property
    def idle(self) -> int:
        """Connections to the upstream that may wait for the next request: enough for all active clients."""
        return max(256, min(self.clients, 1024))


@dataclasses.dataclass(frozen=True)
class Kind:
    """One program: prepare writes its configuration and returns the command."""

    name: str
    prepare: Callable[[Place], list[str]]
    version: Callable[[], str]
    ours: bool = True  # its configuration is ours to write, so it can have TLS or a listener that defers


@dataclasses.dataclass(frozen=True)
class Proxy:
    """A running one."""

    name: str
    process: subprocess.Popen
    port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def cpu(self) -> float:
        return usage.tree_cpu(self.pid)


def start(lab: Lab, kind: Kind, upstream: int, rings: int, clients: int, cpu: int | None,
          tls: Tls | None = None, deferred: bool = False) -> Proxy:
    place = Place(lab.new_folder(kind.name), free_port(), upstream, rings, clients, tls, deferred)
    log = place.folder / 'log'
    process = lab.start(kind.prepare(place), cpu, log)
    wait_for_port(place.port, process, log)
    return Proxy(kind.name, process, place.port)


def first_line(command: list[str]) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return 'unknown'
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0] if lines else 'unknown'


def ringside(name: str, program: str) -> Kind:
    def prepare(place: Place) -> list[str]:
        config = place.folder / 'ringside.toml'
        config.write_text(f'''[server]
rings = {place.rings}
[limits]
connections = {max(1024, 6 * place.clients // 5)}
[timeouts]
keep_alive = "1h"
[log]
access = "off"
[listen.web]
address = "127.0.0.1:{place.port}"
{f'defer_accept = "1s"{chr(10)}' if place.deferred else ''}\
{f'tls = "web"{chr(10)}{place.tls.listen()}{place.tls.ringside()}' if place.tls else ''}[upstream.app]
servers = ["127.0.0.1:{place.upstream}"]
idle_connections = {place.idle}
idle_timeout = "1h"
[[site]]
hosts = ["*"]
[[site.route]]
path = "/*"
upstream = "app"
''')
        return [program, 'run', '--config', str(config)]
    return Kind(name, prepare, lambda: first_line([program, 'version']))


def nginx_kind() -> Kind:
    def prepare(place: Place) -> list[str]:
        config = nginx.write(place.folder, nginx.proxy(place.port, place.upstream, place.idle,
                                                       place.tls.nginx() if place.tls else '', place.deferred,
                                                       bool(place.tls and place.tls.http2)),
                             min(16384, max(1024, 2 * place.clients + 512)), place.rings)
        return nginx.command(config)
    return Kind('nginx', prepare, lambda: first_line([nginx.PROGRAM, '-v']).removeprefix('nginx version: '))


def haproxy() -> Kind:
    def prepare(place: Place) -> list[str]:
        config = place.folder / 'haproxy.cfg'
        bind = (' defer-accept' if place.deferred else '') + (place.tls.haproxy_bind() if place.tls else '')
        config.write_text(f'''global
  nbthread {place.rings}
  maxconn {HAPROXY_CONNECTIONS}
  no strict-limits
{place.tls.haproxy_global() if place.tls else ''}defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  http-reuse always
  option forwardfor
  unique-id-format %[uuid()]
  unique-id-header X-Request-Id
listen web
  bind 127.0.0.1:{place.port} backlog 4096{bind}
  http-request set-header X-Forwarded-Proto {'https' if place.tls else 'http'}
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header Via "1.1 haproxy"
  http-response set-header Via "1.1 haproxy"
  server app 127.0.0.1:{place.upstream} pool-max-conn {place.idle}
''')
        return [HAPROXY, '-db', '-f', str(config)]
    return Kind('haproxy', prepare, lambda: first_line([HAPROXY, '-v']).split(' - ')[0])


def other(name: str, template: str) -> Kind:
    """Any program: the words of the template with the numbers filled in."""
    def prepare(place: Place) -> list[str]:
        return [word.format(port=place.port, upstream=place.upstream, rings=place.rings, folder=place.folder)
                for word in shlex.split(template)]
    return Kind(name, prepare, lambda: template, ours=False)
