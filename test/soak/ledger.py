"""Brings together what clients saw and what ringside recorded, and counts."""

from __future__ import annotations

import collections
import json
import re
import signal
import threading
import time

from . import rules
from .rules import Outage, Result

_PREFIX = b'"request_id":"soak-'
RECORD_SECONDS = 60.0  # far more than it takes until a record is read
PROBLEMS_MAX = 20  # that are kept with all they say


class Ledger:
    """Fed by several threads. Holds only requests of which one side is known so far."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.outages: list[Outage] = []
        self.results: dict[str, tuple[Result, float]] = {}
        self.records: dict[str, tuple[dict, float]] = {}
        self.posts: collections.OrderedDict[str, int] = collections.OrderedDict()
        self.counts: collections.Counter[str] = collections.Counter()
        self.ends: collections.Counter[str] = collections.Counter()
        self.problems: list[str] = []

    def problem(self, text: str) -> None:
        self.counts['problems'] += 1
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(text)

    # ---- what comes in

    def client_says(self, line: bytes) -> None:
        said = json.loads(line)
        with self.lock:
            if 'trouble' in said:
                self.problem(said['trouble'])
                return
            result = Result(**said)
            record = self.records.pop(result.id, None)
            if record:
                self._judge(result, record[0])
            else:
                self.results[result.id] = (result, time.monotonic())
                self._forget_unseen(time.monotonic() - RECORD_SECONDS)

    def _forget_unseen(self, before: float) -> None:
        """From the oldest on, requests that may have no record, and had none for long."""
        while self.results:
            oldest = next(iter(self.results))
            result, at = self.results[oldest]
            if at > before or not rules.may_be_unseen(result):
                return
            del self.results[oldest]
            self.counts['unseen'] += 1

    def server_says(self, line: bytes) -> None:
        word, _, rest = line.decode().strip().partition(' ')
        with self.lock:
            if word != 'post':
                self.problem(f'a server could not read what it got: {rest}')
                return
            # A request that is not safe must not reach servers twice.
            times = self.posts[rest] = self.posts.get(rest, 0) + 1
            if times > 1:
                self.problem(f'{rest} reached servers {times} times')
            while len(self.posts) > 200_000:
                self.posts.popitem(last=False)

    def access_line(self, line: bytes) -> None:
        if _PREFIX in line:
            record = json.loads(line)
            with self.lock:
                self.counts['records'] += 1
                found = self.results.pop(record['request_id'], None)
                if found:
                    self._judge(found[0], record)
                elif record['request_id'] in self.records:
                    self.problem(f'two records of one request: {line.decode()}')
                else:
                    self.records[record['request_id']] = (record, time.monotonic())
            return
        with self.lock:
            self.counts['strangers'] += 1
            if b'"end":"complete"' in line:
                return
            record = json.loads(line)
            self.ends[record['end']] += 1
            wrong = rules.judge_stranger(record)
            if wrong:
                self.problem(f'{wrong}\n    record: {json.dumps(record)}')

    def _judge(self, result: Result, record: dict) -> None:
        wrong = rules.judge(result, record, self.outages)
        self.ends[record['end']] += 1
        if wrong:
            self.problem(f'{result.id} ({result.method}, {result.promise}): {wrong}\n    record: {json.dumps(record)}')
        elif result.seen == 'ok':
            self.counts['ok'] += 1
            self.counts['again'] += record['tries'] > 1
        else:
            self.counts['not ok by the rules' if result.promise.startswith('may_') else 'as planned'] += 1

    # ---- what it comes to

    def waiting(self) -> int:
        with self.lock:
            return len(self.results) + len(self.records)

    def close(self, lost: int) -> None:
        """After the last line: what is without its other half. `lost`: records that ringside could not write."""
        with self.lock:
            without = [result.id for result, _ in self.results.values() if not rules.may_be_unseen(result)]
            self.counts['unseen'] += len(self.results) - len(without)
            if len(without) > lost:
                self.problem(f'{len(without)} requests have no access record, {lost} were lost: {without[:10]}')
            for record, _ in self.records.values():
                self.problem(f'a record whose client saw nothing: {json.dumps(record)}')

    def met(self, pattern: str) -> int:
        """How many exchanges ended so."""
        return sum(count for end, count in self.ends.items() if re.fullmatch(pattern, end))


class AccessLog:
    """Reads ringside's access log by rotation, so that it never grows: renames it, has it opened again, reads
    and removes what was written."""

    def __init__(self, ringside, ledger: Ledger):
        self.ringside = ringside
        self.ledger = ledger
        self.path = ringside.access_path
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.stopping.wait(2):
            self.turn()

    def turn(self) -> None:
        old = self.path.with_suffix('.old')
        self.path.rename(old)
        self.ringside.signal(signal.SIGUSR1)
        while not self.path.exists():
            if not self.ringside.running():
                break
            time.sleep(0.01)
        self.read(old)

    def read(self, path) -> None:
        with path.open('rb') as lines:
            for line in lines:
                self.ledger.access_line(line)
        path.unlink()

    def stop(self) -> None:
        self.stopping.set()
        self.thread.join()

    def lost(self) -> int:
        return sum(int(n) for n in re.findall(r'access-log (\d+) records? (?:was|were) lost', self.ringside.log()))
