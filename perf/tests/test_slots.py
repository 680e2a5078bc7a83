"""Turns within a round: every load generator comes to its report, and none is left behind."""

import os
import signal
import unittest

from suite import loads, parsers, slots
from suite.lab import Lab
from tests.test_lab import gone

SAYS = 'import sys; print(sys.argv[1])'


class FakeProxy:
    def __init__(self, name: str, port: int):
        self.name, self.port, self.used = name, port, 0.0

    def cpu(self) -> float:
        self.used += 1.5
        return self.used


class FakeBench:
    def __init__(self, lab: Lab):
        self.lab = lab


def tool(code: str) -> loads.Tool:
    """A load generator that is told its URL and whose whole report is a number of requests."""
    def parse(text: str) -> parsers.Outcome:
        if not text.strip().isdigit():
            raise parsers.ParseError('no report')
        return parsers.Outcome(int(text), 0, 0, 99.0, {'50': 1.0})
    return loads.Tool('python3', 'nothing', '-V', lambda job: True,
                      lambda program, job, url, folder: [program, '-c', code, url.split(':')[2].split('/')[0]], parse)


JOB = loads.Job('/1k', 1, 0.2)


class Slots(unittest.TestCase):
    def test_each_proxy_has_its_own_report_and_cpu_time(self) -> None:
        with Lab(pin=False) as lab:
            proxies = [FakeProxy('a', 101), FakeProxy('b', 202), FakeProxy('c', 303)]
            found = slots.run(FakeBench(lab), proxies, tool(SAYS), JOB, 0.02)
            self.assertEqual(lab.processes, [])
        self.assertEqual({name: outcome.requests for name, (outcome, _) in found.items()},
                         {'a': 101, 'b': 202, 'c': 303})
        for outcome, cpu in found.values():
            self.assertEqual(cpu, 1.5)
            self.assertNotEqual(outcome.seconds, 99.0)  # the time of its turns, not what it believes
            self.assertEqual(outcome.percentiles, {})

    def test_a_tool_without_a_report_is_a_failed_round(self) -> None:
        with Lab(pin=False) as lab:
            found = slots.run(FakeBench(lab), [FakeProxy('a', 1)], tool('print("oh")'), JOB, 0.02)
        self.assertFalse(found['a'][0].good)

    def test_stopped_tools_end_when_the_round_is_given_up(self) -> None:
        pids = []

        class Interrupted(FakeProxy):
            def cpu(self) -> float:
                pids.extend(process.pid for process in lab.processes)
                if self.name == 'c':
                    raise KeyboardInterrupt
                return 0.0
        with Lab(pin=False) as lab:
            proxies = [Interrupted('a', 1), Interrupted('b', 2), Interrupted('c', 3)]
            with self.assertRaises(KeyboardInterrupt):
                slots.run(FakeBench(lab), proxies, tool('import time; time.sleep(60)'), JOB, 0.02)
            self.assertEqual(lab.processes, [])
        self.assertTrue(pids)
        self.assertTrue(all(gone(pid) for pid in pids))

    def test_a_stopped_tool_can_be_ended(self) -> None:
        with Lab(pin=False) as lab:
            running = loads.begin(lab, tool('import time; time.sleep(60)'), JOB, 1)
            os.killpg(running.process.pid, signal.SIGSTOP)
            running.end()
            self.assertTrue(gone(running.process.pid))
            running.end()  # once more does nothing


if __name__ == '__main__':
    unittest.main()
