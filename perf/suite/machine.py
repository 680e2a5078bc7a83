"""What the figures were measured on, and whether anybody else was using it."""

from __future__ import annotations

import os
import pathlib
import platform
import time

BUSY_SHARE = 0.10  # of all CPUs, over one second before the start
BUSY_LOAD = 0.75  # load average of a minute, for each CPU
TICK = 1 / os.sysconf('SC_CLK_TCK')


def parse_cpu_line(text: str) -> tuple[float, float]:
    """Seconds that all CPUs were busy, and that were stolen by the host, from /proc/stat."""
    fields = [int(field) for field in text.splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq) * TICK, steal * TICK


def cpu_seconds() -> tuple[float, float]:
    return parse_cpu_line(pathlib.Path('/proc/stat').read_text())


def busy_share(seconds: float = 1.0) -> float:
    busy, stolen = cpu_seconds()
    began = time.monotonic()
    time.sleep(seconds)
    later, stolen_later = cpu_seconds()
    wall = (time.monotonic() - began) * (os.cpu_count() or 1)
    return max(0.0, (later + stolen_later - busy - stolen) / wall)


def why_busy(share: float, load: float, cpus: int) -> str:
    """A sentence if the machine is not quiet, or nothing."""
    if share > BUSY_SHARE:
        return f'the CPUs were {share:.0%} busy before anything was started (at most {BUSY_SHARE:.0%} is quiet)'
    if load > BUSY_LOAD * cpus:
        return f'the load average is {load:.2f} (at most {BUSY_LOAD * cpus:.2f} is quiet)'
    return ''


def wait_until_quiet(seconds: float) -> tuple[float, float, str]:
    """Busy share, load average, and why that is too much; tries until it is not, for so long."""
    deadline = time.monotonic() + seconds
    while True:
        share, load = busy_share(), os.getloadavg()[0]
        reason = why_busy(share, load, os.cpu_count() or 1)
        if not reason or time.monotonic() >= deadline:
            return share, load, reason
        print(f'waiting for a quiet machine: {reason}', flush=True)
        time.sleep(10)


def cpu_model() -> str:
    for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
        if line.startswith('model name'):
            return line.partition(':')[2].strip()
    return platform.machine()


def congestion_control() -> str:
    try:
        return pathlib.Path('/proc/sys/net/ipv4/tcp_congestion_control').read_text().strip()
    except OSError:
        return 'unknown'


def describe() -> dict:
    return {'kernel': platform.release(), 'tcp': congestion_control(), 'cpus': os.cpu_count(), 'cpu': cpu_model(),
            'memory_bytes': os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE'),
            'time': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}
