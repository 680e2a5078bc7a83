"""Runs unittest tests in parallel worker processes, each test with a time limit.

usage: python3 test/support/runner.py [options] FOLDER... [-k PATTERN]

Every test gets a line "ok|FAIL|SKIP NAME (seconds)"; the last line is "N passed, N failed", with
", N skipped" when tests were skipped. A test that does not end in time fails, and its worker is
replaced together with all that it started. RINGSIDE_TEST_TLS chooses how the tests speak to ringside
(support/modes.py).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fnmatch
import importlib
import io
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

TEST_ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TEST_ROOT))


def slowdown() -> float:
    return float(os.environ.get('RINGSIDE_TEST_SLOWDOWN', '1'))


def flatten(suite: unittest.TestSuite) -> list[unittest.TestCase]:
    tests: list[unittest.TestCase] = []
    for item in suite:
        tests += flatten(item) if isinstance(item, unittest.TestSuite) else [item]
    return tests


def collect(folders: list[str]) -> list[str]:
    names = []
    for folder in folders:
        path = TEST_ROOT / folder
        if not path.is_dir():
            raise SystemExit(f'{path} is missing')
        found = []
        for file in sorted(path.glob('test_*.py')):
            module = importlib.import_module(f'{folder}.{file.stem}')
            found += [t.id() for t in flatten(unittest.defaultTestLoader.loadTestsFromModule(module))]
        if not found:
            raise SystemExit(f'{path} holds no test')
        names += found
    return names


# ---------------------------------------------------------------- in a worker


class Recorder(unittest.TestResult):
    """Remembers how the one test ended."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = ''

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        super().addSkip(test, reason)
        self.reason = reason


def run_one(name: str) -> dict:
    output = io.StringIO()
    recorder = Recorder()
    with contextlib.redirect_stdout(output):
        try:
            unittest.defaultTestLoader.loadTestsFromName(name).run(recorder)
            problems = [text for _, text in recorder.failures + recorder.errors]
            if recorder.testsRun + len(recorder.skipped) == 0:
                problems.append('the test did not run')
        except Exception:  # pylint: disable=broad-except
            problems = [traceback.format_exc()]
    verdict = 'FAIL' if problems else 'SKIP' if recorder.skipped else 'ok'
    return {'verdict': verdict, 'reason': recorder.reason,
            'text': '\n'.join(problems + [output.getvalue()]) if problems else ''}


def keep_memory() -> None:
    """Lets the C library use the memory of large blocks again rather than return it each time.

    Under the lab's kernel each page that is touched for the first time costs some 200 us.
    """
    libc = ctypes.CDLL(None)
    m_trim_threshold, m_mmap_threshold = -1, -3
    libc.mallopt(m_mmap_threshold, 8 << 20)
    libc.mallopt(m_trim_threshold, 64 << 20)


def serve() -> None:
    """Reads test names from standard input, writes one JSON result a line."""
    keep_memory()
    answers = os.fdopen(os.dup(1), 'w')
    os.dup2(2, 1)
    for line in sys.stdin:
        result = run_one(line.strip())
        answers.write(json.dumps(result) + '\n')
        answers.flush()


# ---------------------------------------------------------------- in the parent


class Worker:
    """A process that runs tests one after another, in a process group of its own."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, __file__, '--serve'], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True)

    def run(self, name: str, seconds: float) -> dict:
        assert self.process.stdin and self.process.stdout
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self.end()

        timer = threading.Timer(seconds, expire)
        timer.start()
        try:
            self.process.stdin.write(name + '\n')
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ''
        finally:
            timer.cancel()
        if line:
            return json.loads(line)
        self.end()
        why = f'not finished after {seconds:.0f} s' if expired.is_set() else 'the test process died'
        return {'verdict': 'FAIL', 'reason': why, 'text': why, 'worker_lost': True}

    def end(self) -> None:
        """Ends the worker and every process that its tests started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def limit_of(name: str) -> float:
    """A test may carry its own limit: `@limit(seconds)` in support.limits, else 60 s."""
    try:
        module, cls, method = name.rsplit('.', 2)
        function = getattr(getattr(importlib.import_module(module), cls), method)
        return getattr(function, 'limit_seconds', 60.0) * slowdown()
    except (ValueError, AttributeError):
        return 60.0 * slowdown()


def work(names: 'queue.Queue[str]', report: 'queue.Queue[tuple[str, dict, float]]') -> None:
    worker = None
    while True:
        try:
            name = names.get_nowait()
        except queue.Empty:
            break
        worker = worker or Worker()
        started = time.monotonic()
        result = worker.run(name, limit_of(name))
        if result.get('worker_lost'):
            worker = None
        report.put((name, result, time.monotonic() - started))
    if worker:
        worker.end()


def run_all(names: list[str], jobs: int) -> int:
    todo: queue.Queue[str] = queue.Queue()
    done: queue.Queue[tuple[str, dict, float]] = queue.Queue()
    for name in names:
        todo.put(name)
    for _ in range(min(jobs, len(names))):
        threading.Thread(target=work, args=(todo, done), daemon=True).start()
    counts = {'ok': 0, 'FAIL': 0, 'SKIP': 0}
    for _ in names:
        name, result, seconds = done.get()
        verdict = result['verdict']
        counts[verdict] += 1
        print(f'{verdict:4} {name} ({seconds:.1f} s)' +
              (f': {result["reason"]}' if verdict == 'SKIP' else ''), flush=True)
        if verdict == 'FAIL':
            print('    ' + result['text'].strip().replace('\n', '\n    '), flush=True)
    skipped = f', {counts["SKIP"]} skipped' if counts['SKIP'] else ''
    print(f'{counts["ok"]} passed, {counts["FAIL"]} failed{skipped}')
    return 1 if counts['FAIL'] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('folders', nargs='*', help='folders of test/, such as e2e')
    parser.add_argument('-k', dest='patterns', action='append', default=[], metavar='PATTERN',
                        help='only tests whose name contains this, or matches it as a glob')
    parser.add_argument('-j', dest='jobs', type=int, default=2, help='tests at a time (default 2)')
    parser.add_argument('--list', action='store_true', help='print the names and stop')
    parser.add_argument('--serve', action='store_true', help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return 0
    if not options.folders:
        parser.error('name at least one folder of test/')
    names = collect(options.folders)
    if options.patterns:
        names = [n for n in names
                 if any(p in n or fnmatch.fnmatch(n, p) for p in options.patterns)]
    if options.list:
        print('\n'.join(names))
        return 0
    if not names:
        print('no test matches', file=sys.stderr)
        return 1
    # For what all workers share; they are ended by force, and could not remove it.
    with tempfile.TemporaryDirectory(prefix='ringside-tests-') as folder:
        os.environ['RINGSIDE_TEST_FOLDER'] = folder
        return run_all(names, options.jobs)


if __name__ == '__main__':
    sys.exit(main())
