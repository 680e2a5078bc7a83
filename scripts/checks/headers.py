#!/usr/bin/env python3
"""Compiles every header by itself, so that none depends on what was included before it."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def quoted(header: pathlib.Path) -> list[str]:
    """Where its quoted includes are found: beside it, and for tests in the folder that they test."""
    places = [header.parent]
    if header.parts[:2] == ('test', 'unit'):
        places.append(pathlib.Path('src', *header.parts[2:-1]))
    elif header.parts[:2] == ('test', 'lab'):
        places.append(pathlib.Path('src', 'tls'))
    return [argument for place in places for argument in ('-iquote', str(place))]


def compile_alone(header: pathlib.Path) -> str:
    """Empty when it compiles; else what the compiler says."""
    command = ['clang++-19', '-std=c++23', '-fsyntax-only', '-Wall', '-Wextra', '-Werror',
               '-Wno-pragma-once-outside-header', '-Wno-unused-const-variable', '-Iinclude', *quoted(header),
               '-x', 'c++', str(header)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return '' if done.returncode == 0 else f'{header}:\n{done.stderr}'


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    headers = [path.relative_to(ROOT) for top in ('include', 'src', 'test')
               for path in sorted((ROOT / top).rglob('*.h'))]
    if not headers:
        print('no header was found, so nothing was checked')
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [text for text in pool.map(compile_alone, headers) if text]
    for text in failures:
        print(text)
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
