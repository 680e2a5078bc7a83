"""Runs ringside-budget under callgrind."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from .figures import Figures, per_request

SECONDS = 120
# Of its own making: what is in the environment moves the stack, and lengths and alignments with it.
ENVIRONMENT = {'PATH': '/usr/bin:/bin', 'LANG': 'C'}


class Failed(Exception):
    """A run that gave no figures; the text says why."""


def parse_totals(text: str) -> int:
    """Instructions in a file that callgrind wrote."""
    found = re.findall(r'^totals: (\d+)', text, re.M)
    if not found or 'events: Ir' not in text:
        raise Failed('callgrind wrote no total of instructions')
    return sum(map(int, found))


def parse_counts(text: str) -> dict[str, int]:
    """"name value" lines of ringside-budget."""
    return {name: int(value) for name, value in re.findall(r'^(\w+) (\d+)$', text, re.M)}


def lines_of(program: pathlib.Path, option: str) -> list[str]:
    return subprocess.run([program, option], check=True, capture_output=True, text=True).stdout.splitlines()


def processor() -> str:
    """libc and the parser choose their code by this."""
    flags = pathlib.Path('/proc/cpuinfo').read_text().split()
    return f'{os.uname().machine}{" avx2" if "avx2" in flags else ""}'


def toolchain(program: pathlib.Path) -> str:
    return f'{lines_of(program, "--toolchain")[0]}, {processor()}'


def count(program: pathlib.Path, scenario: str) -> tuple[Figures, float]:
    """The figures of one request, and how many seconds it took to count them."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix='ringside-budget-') as folder:
        out = pathlib.Path(folder) / 'callgrind.out'
        try:
            done = subprocess.run(['valgrind', '--tool=callgrind', '--collect-atstart=no',
                                   f'--callgrind-out-file={out}', program, scenario],
                                  env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f'{scenario} did not end within {SECONDS} s') from error
        if done.returncode != 0:
            raise Failed(f'{scenario} failed: {done.stderr.strip()[-500:]}')
        figures = per_request(parse_totals(out.read_text()), parse_counts(done.stdout))
    if figures['instructions'] == 0:
        raise Failed(f'{scenario}: nothing was counted; was it built without valgrind/callgrind.h?')
    return figures, time.monotonic() - started


def count_all(program: pathlib.Path, scenarios: list[str]) -> dict[str, tuple[Figures, float]]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(scenarios, pool.map(lambda name: count(program, name), scenarios), strict=True))
