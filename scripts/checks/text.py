#!/usr/bin/env python3
"""Fails on source files that are too long, on words that the project does not use, and on stray paths."""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINES_MAX = 600
CODE = {'.cc', '.h', '.py', '.sh', '.build', '.toml', '.md', '.txt', '.json', ''}

# Built from pieces, so that this file passes its own check.
FORBIDDEN = [
    (r'\b(' + 'TO' + 'DO|FIX' + 'ME|X' + 'XX)\\b', 'unfinished work; finish it or open an issue'),
    (r'(?i)\b(down' + 'stream|front' + r'end|back' + r'end)s?\b', 'say client or upstream'),
    (r'/wo' + 'rk/|/ro' + r'ot/|/ho' + r'me/[a-z]', 'a path of one particular machine'),
    (r'[ \t]+$', 'white space at the end of the line'),
]
# Texts that others wrote, and that quote whatever they like.
UNCHECKED = re.compile(r'^(LICENSE|test/fuzz/corpus/.*|.*\.bin)$')


def files_of_tree() -> list[str]:
    """Everything that git knows of or would add."""
    output = subprocess.run(['git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard'],
                            cwd=ROOT, check=True, capture_output=True).stdout
    return sorted({name for name in output.decode().split('\0') if name and (ROOT / name).is_file()})


def problems_of(name: str, text: str) -> list[str]:
    problems = []
    lines = text.split('\n')
    if name.endswith(('.cc', '.h', '.py')) and len(lines) > LINES_MAX:
        problems.append(f'{name}: {len(lines)} lines; {LINES_MAX} are the most (split it by topic)')
    for number, line in enumerate(lines, 1):
        for pattern, why in FORBIDDEN:
            match = re.search(pattern, line)
            if match:
                problems.append(f'{name}:{number}: {match.group(0)!r}: {why}')
    if text and not text.endswith('\n'):
        problems.append(f'{name}: no newline at the end')
    return problems


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    problems = []
    checked = 0
    for name in files_of_tree():
        path = ROOT / name
        if UNCHECKED.match(name) or path.suffix not in CODE or path.is_symlink():
            continue
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        checked += 1
        problems += problems_of(name, text)
    for problem in problems:
        print(problem)
    if not checked:
        print('no file was found, so nothing was checked')
    return 1 if problems or not checked else 0


if __name__ == '__main__':
    sys.exit(main())
