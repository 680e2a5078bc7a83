"""System calls for each request, counted in a run of their own: counting costs time."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time

from . import loads, usage
from .bench import Bench, say
from .proxies import Proxy
from .results import Result

EVENT = 'raw_syscalls:sys_enter'


def counter(pids: list[int], output: str) -> list[list[str]]:
    """Commands that count until they are interrupted, the cheapest first."""
    perf = ['perf', 'stat', '-x', ',', '-o', output, '-e', EVENT, '-p', ','.join(map(str, pids))]
    strace = ['strace', '-c', '-f', '-q', '-o', output]
    for pid in pids:
        strace += ['-p', str(pid)]
    return [command for command in (perf, strace) if shutil.which(command[0])]


def parse(text: str) -> int | None:
    """The count of perf stat -x, or of strace -c; None if it counted nothing."""
    if match := re.search(rf'^(\d+),[^,]*,{EVENT}', text, re.M):
        return int(match.group(1)) or None
    if match := re.search(r'^100[.,]00\s+[\d.]+\s+(?:\d+\s+)?(\d+)\s+(?:\d+\s+)?total$', text, re.M):
        return int(match.group(1))
    return None


def measure(bench: Bench, result: Result, proxies: list[Proxy], tool: loads.Tool, job: loads.Job) -> None:
    for proxy in proxies:
        count = requests = None
        output = bench.lab.folder / 'syscalls'
        for command in counter(usage.tree(proxy.pid), str(output)):
            output.write_text('')
            watcher = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                time.sleep(0.3)  # to attach; a request before it is counted by neither
                requests = bench.load(tool, job, proxy.port).requests
            finally:
                watcher.send_signal(signal.SIGINT)
                watcher.wait(10)
            count = parse(output.read_text())
            if count and requests:
                break
        if count and requests:
            result.details.setdefault(proxy.name, {})['syscalls_per_request'] = [count / requests]
            say(0, proxy.name, f'{count / requests:.2f} system calls a request')
        else:
            result.notes.append(f'System calls of {proxy.name} could not be counted: neither perf stat -e {EVENT} '
                                'nor strace -c works here.')
