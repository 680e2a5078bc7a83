#!/usr/bin/env python3
"""CPU per request of ringside beside nginx, in one interleaved run.

Both proxies run side by side with one ring or worker, without logs, with keep-alive to the same nginx
upstream, which answers 1 KiB. Rounds alternate between them. The figure is user and system time of
the whole process, kernel workers included, divided by the completed requests; medians are given, and
the ratio with its spread. A round with a failed request does not count. Where there are two CPUs or
more, the proxies have the first, the load generator and the upstream the second.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
TICK_US = 1e6 / os.sysconf('SC_CLK_TCK')


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def wait_for_port(port: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit(f'nothing listens on port {port} after 10 s: {" ".join(map(str, process.args))}')


def pinned(cpu: int | None, command: list[str]) -> list[str]:
    return command if cpu is None else ['taskset', '-c', str(cpu), *command]


@dataclasses.dataclass
class Proxy:
    """A running program with a port, and what its rounds cost."""

    name: str
    process: subprocess.Popen
    port: int
    cpu_us: list[float] = dataclasses.field(default_factory=list)
    rates: list[float] = dataclasses.field(default_factory=list)

    def cpu(self) -> float:
        """User and system time of the whole process so far, in microseconds."""
        fields = pathlib.Path(f'/proc/{self.process.pid}/stat').read_text().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) * TICK_US


class Lab:
    """Starts and ends everything, below one temporary folder."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='ringside-compare-'))
        self.processes: list[subprocess.Popen] = []
        pin = options.pin and len(os.sched_getaffinity(0)) > 1
        self.proxy_cpu, self.load_cpu = sorted(os.sched_getaffinity(0))[:2] if pin else (None, None)

    def start(self, cpu: int | None, *command: str) -> subprocess.Popen:
        log = (self.folder / f'{len(self.processes)}.log').open('wb')
        process = subprocess.Popen(pinned(cpu, list(command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def start_nginx(self, name: str, cpu: int | None, http: str, port: int) -> subprocess.Popen:
        folder = self.folder / name
        folder.mkdir()
        temporary = '\n'.join(f'{kind}_temp_path {folder}/{kind};' for kind in
                              ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        (folder / 'nginx.conf').write_text(f'''
daemon off; master_process off; worker_processes 1; pid {folder}/pid; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off; {temporary}
  keepalive_requests 100000000; keepalive_timeout 1h;
  {http}
}}
''')
        program = shutil.which('nginx') or '/usr/sbin/nginx'
        process = self.start(cpu, program, '-p', str(folder), '-c', str(folder / 'nginx.conf'), '-e',
                             str(folder / 'error.log'))
        wait_for_port(port, process)
        return process

    def upstream(self) -> int:
        port = free_port()
        body = 'x' * self.options.bytes
        self.start_nginx('upstream', self.load_cpu, f'''server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{ default_type text/plain; return 200 "{body}"; }}
  }}''', port)
        return port

    def nginx(self, upstream: int) -> Proxy:
        port = free_port()
        process = self.start_nginx('nginx', self.proxy_cpu, f'''upstream app {{
    server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 100000000; keepalive_timeout 1h;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Request-Id $request_id; proxy_set_header Via "1.1 nginx";
    }}
  }}''', port)
        return Proxy('nginx', process, port)

    def ringside(self, upstream: int) -> Proxy:
        port = free_port()
        config = self.folder / 'ringside.toml'
        config.write_text(f'''[server]
rings = 1
[log]
access = "off"
[listen.web]
address = "127.0.0.1:{port}"
[upstream.app]
servers = ["127.0.0.1:{upstream}"]
[[site]]
hosts = ["*"]
[[site.route]]
path = "/*"
upstream = "app"
''')
        process = self.start(self.proxy_cpu, self.options.ringside, 'run', '--config', str(config))
        wait_for_port(port, process)
        return Proxy('ringside', process, port)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def load(lab: Lab, port: int, seconds: float) -> tuple[int, bool, float]:
    """One burst of load: completed requests, whether all were good, and its seconds."""
    command = ['wrk', '-t', '1', '-c', str(lab.options.connections), '-d', f'{seconds:.0f}s',
               f'http://127.0.0.1:{port}/']
    started = time.monotonic()
    done = subprocess.run(pinned(lab.load_cpu, command), check=True, capture_output=True, text=True,
                          timeout=seconds + 30)
    match = re.search(r'(\d+) requests in', done.stdout)
    requests = int(match.group(1)) if match else 0
    good = requests > 0 and not re.search('Socket errors|Non-2xx', done.stdout)
    return requests, good, time.monotonic() - started


def run_round(lab: Lab, proxy: Proxy) -> None:
    before = proxy.cpu()
    requests, good, seconds = load(lab, proxy.port, lab.options.seconds)
    used = proxy.cpu() - before
    if not good:
        print(f'{proxy.name:9} a request failed, so the round does not count')
        return
    proxy.cpu_us.append(used / requests)
    proxy.rates.append(requests / seconds)
    print(f'{proxy.name:9} {used / requests:6.2f} µs CPU a request, {requests / seconds:8.0f} requests a second',
          flush=True)


def summarise(proxies: list[Proxy], options: argparse.Namespace) -> dict:
    yardstick, ours = proxies
    pairs = [a / b for a, b in zip(ours.cpu_us, yardstick.cpu_us)]
    ratio = statistics.median(ours.cpu_us) / statistics.median(yardstick.cpu_us)
    return {
        'row': f'HTTP/1.1 keep-alive, {options.bytes} bytes, {options.connections} connections',
        'kernel': platform.release(), 'cpus': os.cpu_count(), 'rounds': len(pairs),
        'cpu_us_per_request': {p.name: round(statistics.median(p.cpu_us), 2) for p in proxies},
        'requests_per_second': {p.name: round(statistics.median(p.rates)) for p in proxies},
        'ratio': round(ratio, 3), 'ratio_lowest': round(min(pairs), 3), 'ratio_highest': round(max(pairs), 3)}


def compare(options: argparse.Namespace) -> int:
    lab = Lab(options)
    try:
        upstream = lab.upstream()
        proxies = [lab.nginx(upstream), lab.ringside(upstream)]
        for proxy in proxies:
            load(lab, proxy.port, 1)
        for number in range(options.rounds):
            for proxy in proxies if number % 2 == 0 else proxies[::-1]:
                run_round(lab, proxy)
    finally:
        lab.close()
    if min(len(p.cpu_us) for p in proxies) < max(1, options.rounds // 2):
        print('too few rounds without a failed request', file=sys.stderr)
        return 1
    result = summarise(proxies, options)
    print(f'\n{result["row"]}; kernel {result["kernel"]}, {result["cpus"]} CPUs, medians of {result["rounds"]} rounds')
    for name, cpu in result['cpu_us_per_request'].items():
        print(f'  {name:9} {cpu:6.2f} µs CPU a request, {result["requests_per_second"][name]:8} requests a second')
    print(f'  ratio     {result["ratio"]:6.3f} ({result["ratio_lowest"]} to {result["ratio_highest"]})')
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(result, indent=1) + '\n')
    if options.gate is not None and result['ratio'] > options.gate:
        print(f'the ratio is above {options.gate}', file=sys.stderr)
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--ringside', default=str(ROOT / 'build' / 'ringside'), metavar='FILE',
                        help='the program (default build/ringside)')
    parser.add_argument('--rounds', type=int, default=7, help='rounds of each proxy (7)')
    parser.add_argument('--seconds', type=float, default=4, help='length of a round (4)')
    parser.add_argument('--connections', type=int, default=50, help='keep-alive connections (50)')
    parser.add_argument('--bytes', type=int, default=1024, help='length of the response (1024)')
    parser.add_argument('--no-pin', dest='pin', action='store_false', help='let the kernel place everything')
    parser.add_argument('--json', metavar='FILE', help='write the result here too')
    parser.add_argument('--gate', type=float, metavar='RATIO', help='fail when the ratio is above this')
    options = parser.parse_args()
    for tool in ('wrk', 'nginx', 'taskset'):
        if not shutil.which(tool) and not os.access(f'/usr/sbin/{tool}', os.X_OK):
            parser.error(f'{tool} is not installed (scripts/test installs it)')
    if not os.access(options.ringside, os.X_OK):
        parser.error(f'{options.ringside} is missing: run scripts/build first')
    return compare(options)


if __name__ == '__main__':
    sys.exit(main())
