"""What a whole run covered, compared with what it ought to cover."""

from __future__ import annotations

import dataclasses
import fnmatch
import os
import pathlib
import subprocess

from .outcome import ROOT, Outcome

EXPECTED = ROOT / 'test' / 'manifest.expected'
SKIPS = ROOT / 'test' / 'skips.expected'


def read_lines(path: pathlib.Path) -> list[str]:
    """The lines of a file without comments and empty ones. The file must exist."""
    lines = [line.partition('#')[0].strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line]


def machine() -> str:
    """The compiler, the libc and the kind of CPU, found without asking what may be skipped for them."""
    compiler = subprocess.run(['g++', '-dumpfullversion'], check=True, capture_output=True, text=True).stdout.strip()
    avx2 = 'avx2' in pathlib.Path('/proc/cpuinfo').read_text().split()
    return (f'g++ {compiler}, {os.confstr("CS_GNU_LIBC_VERSION")}, '
            f'{os.uname().machine}{" avx2" if avx2 else ""}')


@dataclasses.dataclass(frozen=True)
class Rule:
    """A line of test/skips.expected. With `unless`, the skip is allowed on every other machine()."""

    pattern: str
    unless: str | None

    @staticmethod
    def read(line: str) -> 'Rule':
        pattern, _, unless = line.partition(' unless ')
        return Rule(pattern.strip(), unless.strip() or None)

    def allows(self, name: str) -> bool:
        return fnmatch.fnmatch(name, self.pattern) and (self.unless is None or self.unless != machine())


def skip_rules() -> list[Rule]:
    return [Rule.read(line) for line in read_lines(SKIPS)]


def unexpected_skips(skipped: list[tuple[str, str]], rules: list[Rule]) -> list[str]:
    return [f'{name}: {reason}' for name, reason in skipped if not any(rule.allows(name) for rule in rules)]


def skips_everywhere(skipped: list[tuple[str, str]], rules: list[Rule]) -> int:
    """How many there are, without those that the machine is the reason for."""
    return sum(not any(rule.unless and rule.allows(name) for rule in rules) for name, _ in skipped)


def check_skips(total: Outcome) -> Outcome:
    outcome = Outcome()
    rules = skip_rules()
    for skip in unexpected_skips(total.skipped, rules):
        print(f'  FAIL a test was skipped that test/skips.expected does not allow here: {skip}')
        outcome.failed.append(f'skipped.{skip}')
    outcome.facts['skipped'] = str(skips_everywhere(total.skipped, rules))
    return outcome


def check_manifest(total: Outcome) -> Outcome:
    """A value may have alternatives: `budgets=yes|skipped`."""
    expected = dict(line.split('=', 1) for line in read_lines(EXPECTED))
    outcome = Outcome()
    for key in sorted(expected.keys() | total.facts.keys()):
        want, have = expected.get(key, 'absent'), total.facts.get(key, 'absent')
        if have not in want.split('|'):
            print(f'  FAIL manifest: {key} is {have}; test/manifest.expected says {want}')
            outcome.failed.append(f'manifest.{key}')
    if not outcome.failed:
        outcome.passed.append('manifest')
    return outcome


def line(facts: dict[str, str]) -> str:
    return 'manifest: ' + ' '.join(f'{key}={value}' for key, value in sorted(facts.items()))
