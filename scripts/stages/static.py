"""Stages that read the source without running it."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from .outcome import ROOT, Outcome, check, run

CACHE = pathlib.Path(os.environ.get('XDG_CACHE_HOME', pathlib.Path.home() / '.cache')) / 'ringside-tidy'


def tree(*suffixes: str) -> list[str]:
    output = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                            cwd=ROOT, check=True, capture_output=True).stdout.decode()
    return sorted({n for n in output.split('\0') if n.endswith(suffixes) and (ROOT / n).is_file()})


def shell_scripts() -> list[str]:
    found = []
    for name in tree(''):
        if name.startswith(('scripts/', '.ci/', 'packaging/')):
            with (ROOT / name).open('rb') as file:
                first = file.readline()
            if name.endswith('.sh') or b'bash' in first or first.startswith(b'#!/bin/sh'):
                found.append(name)
    return found


def formatted() -> Outcome:
    done = run('style.format', 'clang-format-19', '--dry-run', '-Werror', *tree('.cc', '.h'))
    outcome = Outcome()
    outcome.record('style.format', done.status == 0)
    if done.status != 0:
        names = sorted(set(re.findall(r'^(\S+?):\d+:\d+: error: code should be', done.text, re.M)))
        print(f'  FAIL style.format: clang-format-19 -i {" ".join(names)}')
    return outcome


def style(_: bool) -> Outcome:
    outcome = formatted()
    outcome.add(check('style.text', sys.executable, 'scripts/checks/text.py'))
    outcome.add(check('style.layers-self-test', sys.executable, 'scripts/checks/layers.py', '--self-test'))
    outcome.add(check('style.layers', sys.executable, 'scripts/checks/layers.py'))
    outcome.add(check('style.headers-alone', sys.executable, 'scripts/checks/headers.py'))
    outcome.add(check('style.shell', 'shellcheck', '-x', '-P', 'scripts', *shell_scripts()))
    outcome.add(check('style.python', sys.executable, '-m', 'compileall', '-q', 'perf', 'scripts', 'test',
                      env={'PYTHONPYCACHEPREFIX': str(ROOT / 'build-logs' / 'pycache')}))
    outcome.add(check('style.perf-suite', sys.executable, '-B', '-m', 'unittest', 'discover', '-s', 'perf/tests',
                      '-t', 'perf'))
    outcome.add(check('style.stages', sys.executable, '-B', '-m', 'unittest', 'discover', '-s', 'scripts/stages',
                      '-t', 'scripts'))
    return outcome


class Tidy:
    """clang-tidy over the product, remembering files that were clean.

    The memory is keyed by all that a verdict depends on: the preprocessed text, the configuration and
    the program; so it is right from any checkout, and only saves time.
    """

    def __init__(self) -> None:
        self.commands = {
            str((pathlib.Path(c['directory']) / c['file']).resolve()): c
            for c in json.loads((ROOT / 'build-asan' / 'compile_commands.json').read_text())}
        version = subprocess.run(['clang-tidy-19', '--version'], check=True, capture_output=True).stdout
        self.salt = version + (ROOT / '.clang-tidy').read_bytes()
        self.deadline = time.monotonic() + float(os.environ.get('RINGSIDE_TIDY_SECONDS', '1500'))
        CACHE.mkdir(parents=True, exist_ok=True)

    def key(self, command: dict) -> str | None:
        words = command['command'].split()
        if words[0].endswith('ccache'):
            words = words[1:]
        output = words.index('-o')
        words = [w for i, w in enumerate(words) if i not in (output, output + 1) and w != '-c']
        done = subprocess.run([*words, '-E', '-P', '-o', '-'], cwd=command['directory'],
                              capture_output=True, check=False)
        if done.returncode != 0:
            return None
        return hashlib.sha256(self.salt + done.stdout).hexdigest()

    def file(self, name: str) -> tuple[str, str]:
        """'ok', 'remembered', 'late', or 'bad' after printing the findings."""
        command = self.commands.get(str(ROOT / name))
        if command is None:
            return name, 'not built'
        key = self.key(command)
        if key and (CACHE / key).exists():
            return name, 'remembered'
        if time.monotonic() > self.deadline:
            return name, 'late'
        result = check(f'tidy.{name}', 'clang-tidy-19', '--quiet', '-p', 'build-asan', name, seconds=600)
        if result.failed:
            return name, 'bad'
        if key:
            (CACHE / key).touch()
        return name, 'ok'


def tidy(_: bool) -> Outcome:
    outcome = check('configure-asan', 'scripts/build', '--no-install', '--asan', '--configure')
    if outcome.failed:
        return outcome
    work = Tidy()
    names = [name for name in tree('.cc') if name.startswith('src/')]
    if not names:
        return Outcome(failed=['tidy (no source file)'])
    counts: dict[str, int] = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, verdict in pool.map(work.file, names):
            counts[verdict] = counts.get(verdict, 0) + 1
            outcome.record(f'tidy.{name}', verdict in ('ok', 'remembered'))
            if verdict == 'not built':
                print(f'  FAIL tidy: {name} belongs to no target of build-asan')
            if verdict == 'late':
                print(f'  FAIL tidy: no time was left for {name} (RINGSIDE_TIDY_SECONDS)')
    print('  ' + ', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items())))
    outcome.facts['tidy'] = 'yes'
    return outcome
