"""Where a proxy's CPU time goes: kernel, its own code, libraries. Sampled in a run of its own."""

from __future__ import annotations

import pathlib
import re
import shutil
import signal
import subprocess
import time

from . import loads, usage
from .bench import Bench, say
from .proxies import Proxy
from .results import Result

# A clock that every machine has; hardware counters are often not to be had in a virtual one. Of all processes, since
# with -p some kernels (6.18) take no samples by this clock.
RECORD = ('perf', 'record', '-q', '-a', '-e', 'cpu-clock', '-F', '1999')
REPORT = ('perf', 'report', '--stdio', '-q', '-g', 'none', '--sort', 'pid,dso', '-t', ',')
PARTS = ('kernel', 'own', 'libraries')


def parse(text: str, pids: list[int], program: str) -> dict[str, float]:
    """Shares of 1, from "percent,pid:name,object" lines of these processes. An empty dictionary if there are none."""
    shares = dict.fromkeys(PARTS, 0.0)
    for percent, pid, name in re.findall(r'^\s*([\d.]+)%\s*,\s*(\d+):[^,]*,\s*(.+?)\s*$', text, re.M):
        if int(pid) not in pids:
            continue
        kernel = name.startswith('[') and name != '[vdso]'
        part = 'kernel' if kernel else 'own' if name == program else 'libraries'
        shares[part] += float(percent)
    total = sum(shares.values())
    return {part: share / total for part, share in shares.items()} if total else {}


def sample(bench: Bench, proxy: Proxy, tool: loads.Tool, job: loads.Job) -> dict[str, float]:
    file = bench.lab.folder / 'profile'
    pids = usage.tree(proxy.pid)
    command = [*RECORD, '-o', str(file)]
    watcher = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(0.3)  # to attach
        bench.load(tool, job, proxy.port)
    finally:
        watcher.send_signal(signal.SIGINT)
        watcher.wait(30)
    done = subprocess.run([*REPORT, '-i', str(file)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60, check=False)
    return parse(done.stdout, pids, pathlib.Path(f'/proc/{proxy.pid}/exe').resolve().name)


def measure(bench: Bench, result: Result, proxies: list[Proxy], tool: loads.Tool, job: loads.Job) -> None:
    """Adds each part's share of the row's figure to the details."""
    if not shutil.which(RECORD[0]):
        result.notes.append('There is no profile: perf is not installed (package linux-perf).')
        return
    for proxy in proxies:
        shares, whole = sample(bench, proxy, tool, job), result.median(proxy.name)
        if not shares or whole is None:
            result.notes.append(f'There is no profile of {proxy.name}: perf record took no samples.')
            continue
        say(0, proxy.name, ', '.join(f'{part} {shares[part]:.0%}' for part in PARTS))
        for part in PARTS:
            result.details.setdefault(proxy.name, {})[part] = [shares[part] * whole]
