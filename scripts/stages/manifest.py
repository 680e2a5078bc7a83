"""What a whole run covered, compared with what it ought to cover."""

from __future__ import annotations

import fnmatch
import pathlib

from .outcome import ROOT, Outcome

EXPECTED = ROOT / 'test' / 'manifest.expected'
SKIPS = ROOT / 'test' / 'skips.expected'


def read_lines(path: pathlib.Path) -> list[str]:
    """The lines of a file without comments and empty ones. The file must exist."""
    lines = [line.partition('#')[0].strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line]


def unexpected_skips(skipped: list[tuple[str, str]]) -> list[str]:
    patterns = read_lines(SKIPS)
    return [f'{name}: {reason}' for name, reason in skipped
            if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def check_skips(total: Outcome) -> Outcome:
    outcome = Outcome()
    for skip in unexpected_skips(total.skipped):
        print(f'  FAIL a test was skipped that test/skips.expected does not name: {skip}')
        outcome.failed.append(f'skipped.{skip}')
    return outcome


def check_manifest(total: Outcome) -> Outcome:
    expected = dict(line.split('=', 1) for line in read_lines(EXPECTED))
    outcome = Outcome()
    for key in sorted(expected.keys() | total.facts.keys()):
        want, have = expected.get(key, 'absent'), total.facts.get(key, 'absent')
        if want != have:
            print(f'  FAIL manifest: {key} is {have}; test/manifest.expected says {want}')
            outcome.failed.append(f'manifest.{key}')
    if not outcome.failed:
        outcome.passed.append('manifest')
    return outcome


def line(facts: dict[str, str]) -> str:
    return 'manifest: ' + ' '.join(f'{key}={value}' for key, value in sorted(facts.items()))
