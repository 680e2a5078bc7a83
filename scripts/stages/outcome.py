"""What a stage found, and how stages run programs and read their output."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGS = ROOT / 'build-logs'


@dataclasses.dataclass
class Outcome:
    """The results of one stage. A stage without a single result has failed."""

    passed: list[str] = dataclasses.field(default_factory=list)
    failed: list[str] = dataclasses.field(default_factory=list)
    skipped: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    facts: dict[str, str] = dataclasses.field(default_factory=dict)

    def add(self, other: 'Outcome', prefix: str = '') -> None:
        self.passed += [prefix + name for name in other.passed]
        self.failed += [prefix + name for name in other.failed]
        self.skipped += [(prefix + name, reason) for name, reason in other.skipped]
        self.facts.update({prefix + key: value for key, value in other.facts.items()})

    def record(self, name: str, good: bool) -> None:
        (self.passed if good else self.failed).append(name)

    @property
    def count(self) -> int:
        return len(self.passed) + len(self.failed) + len(self.skipped)


@dataclasses.dataclass
class Done:
    """A program that has ended."""

    status: int
    text: str
    log: pathlib.Path


def run(log_name: str, *command: str | pathlib.Path, seconds: float = 1800,
        env: dict[str, str] | None = None) -> Done:
    """Runs a program to its end, or to the end of its time, with its output in a log of its own.

    It gets a process group, so that a program out of time ends together with its children.
    """
    LOGS.mkdir(exist_ok=True)
    log = LOGS / (re.sub(r'[^\w.-]', '-', log_name) + '.log')
    with log.open('wb') as output:
        process = subprocess.Popen([str(part) for part in command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   env={**os.environ, **(env or {})})
        late = ''
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
            late = f'\nended because it had not finished after {seconds:.0f} s\n'
        except KeyboardInterrupt:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    text = log.read_text(errors='backslashreplace') + late
    return Done(status, text, log)


def show(done: Done, lines: int = 60) -> None:
    """Prints the end of what a failed program said."""
    tail = done.text.strip('\n').split('\n')
    if len(tail) > lines:
        print(f'    ... (all of it in {done.log.relative_to(ROOT)})')
    for line in tail[-lines:]:
        print('    ' + line)


def check(name: str, *command: str | pathlib.Path, seconds: float = 1800,
          env: dict[str, str] | None = None) -> Outcome:
    """A program whose exit status is the result."""
    done = run(name, *command, seconds=seconds, env=env)
    outcome = Outcome()
    outcome.record(name, done.status == 0)
    if done.status != 0:
        print(f'  FAIL {name}')
        show(done)
    return outcome


def read_runner_output(text: str) -> Outcome:
    """The results that test/support/runner.py printed."""
    outcome = Outcome()
    for verdict, name, reason in re.findall(r'^(ok|FAIL|SKIP) +(\S+) \([\d.]+ s\)(?:: (.*))?$', text,
                                            re.M):
        if verdict == 'SKIP':
            outcome.skipped.append((name, reason))
        else:
            outcome.record(name, verdict == 'ok')
    return outcome


def read_gtest_output(text: str) -> Outcome:
    """The results that a GoogleTest program printed."""
    outcome = Outcome()
    for verdict, name in re.findall(r'^\[ +(OK|FAILED|SKIPPED) +\] (\S+)(?:,.*)? \(\d+ ms\)$', text, re.M):
        if verdict == 'SKIPPED':
            outcome.skipped.append((name, 'see its source'))
        else:
            outcome.record(name, verdict == 'OK')
    return outcome


def read_junit(path: pathlib.Path) -> Outcome:
    """The results in a JUnit file of `meson test`."""
    outcome = Outcome()
    for suite in xml.etree.ElementTree.parse(path).getroot().iter('testsuite'):
        for case in suite.iter('testcase'):
            name = f'{case.get("classname", suite.get("name"))}.{case.get("name")}'
            skip = case.find('skipped')
            if skip is not None:
                outcome.skipped.append((name, skip.get('message') or 'see its source'))
            else:
                outcome.record(name, case.find('failure') is None and case.find('error') is None)
    return outcome


def read_finished(name: str, done: Done, outcome: Outcome) -> Outcome:
    """Adds a failure when a program failed, or printed no result, without saying which test it was."""
    if done.status != 0 and not outcome.failed:
        outcome.failed.append(f'{name} (exit status {done.status})')
    elif not outcome.count:
        outcome.failed.append(f'{name} (no test ran)')
    if outcome.failed:
        print(f'  FAIL {name}')
        show(done, 200)
    return outcome
