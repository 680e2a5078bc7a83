"""What the load generators print."""

import json
import unittest

from suite import parsers

H2LOAD = '''starting benchmark...
spawning thread #0: 10 total client(s). 1000 total requests
Application protocol: http/1.1

finished in 29.65ms, 33725.68 req/s, 40.65MB/s
requests: 1000 total, 1000 started, 1000 done, 990 succeeded, 10 failed, 4 errored, 0 timeout
status codes: 990 2xx, 0 3xx, 6 4xx, 0 5xx
traffic: 1.21MB (1264000) total, 184.57KB (189000) headers (space savings 0.00%), 1000.00KB (1024000) data
                     min         max         mean         sd        +/- sd
time for request:       23us      6.42ms       284us       742us    97.10%
'''


def wrk_line(**changes: int) -> str:
    fields = {'requests': 1000, 'bytes': 5, 'us': 2_500_000, 'connect': 0, 'read': 0, 'write': 0, 'status': 0,
              'timeout': 0, 'p50': 1000, 'p99': 20_000, 'p99.9': 30_500} | changes
    return f'Running 2s test\n  1000 requests in 2.50s\n\nRESULT {json.dumps(fields)}\n'


def oha_report(**changes: object) -> str:
    report = {'summary': {'total': 2.0, 'totalData': 4096, 'successRate': 1.0},
              'latencyPercentiles': {'p50': 0.001, 'p99': 0.02, 'p99.9': 0.5, 'p99.99': None},
              'statusCodeDistribution': {'200': 100}, 'errorDistribution': {}}
    return json.dumps(report | changes)


class Wrk(unittest.TestCase):
    def test_good(self) -> None:
        outcome = parsers.wrk(wrk_line())
        self.assertTrue(outcome.good)
        self.assertEqual((outcome.requests, outcome.bytes, outcome.seconds), (1000, 5, 2.5))
        self.assertEqual(outcome.percentiles, {'50': 1.0, '99': 20.0, '99.9': 30.5})

    def test_every_kind_of_failure_voids_the_round(self) -> None:
        for kind in ('connect', 'read', 'write', 'status', 'timeout'):
            with self.subTest(kind):
                outcome = parsers.wrk(wrk_line(**{kind: 3}))
                self.assertEqual(outcome.failed, 3)
                self.assertFalse(outcome.good)

    def test_bad_statuses_are_not_completed(self) -> None:
        self.assertEqual(parsers.wrk(wrk_line(status=400)).requests, 600)

    def test_nothing_done_is_not_good(self) -> None:
        self.assertFalse(parsers.wrk(wrk_line(requests=0)).good)

    def test_no_report(self) -> None:
        with self.assertRaises(parsers.ParseError):
            parsers.wrk('unable to connect to 127.0.0.1:1 Connection refused\n')


class H2load(unittest.TestCase):
    def test_report(self) -> None:
        outcome = parsers.h2load(H2LOAD)
        self.assertEqual((outcome.requests, outcome.failed, outcome.bytes), (990, 10, 1024000))
        self.assertAlmostEqual(outcome.seconds, 0.02965)
        self.assertFalse(outcome.good)

    def test_units_of_time(self) -> None:
        for text, seconds in (('2.04s', 2.04), ('850us', 0.00085), ('1.50m', 90.0)):
            with self.subTest(text):
                outcome = parsers.h2load(H2LOAD.replace('29.65ms', text))
                self.assertAlmostEqual(outcome.seconds, seconds)

    def test_good(self) -> None:
        text = H2LOAD.replace('990 succeeded, 10 failed, 4 errored', '1000 succeeded, 0 failed, 0 errored')
        self.assertTrue(parsers.h2load(text).good)

    def test_no_report(self) -> None:
        with self.assertRaises(parsers.ParseError):
            parsers.h2load('Could not resolve host\n')


class Oha(unittest.TestCase):
    def test_good(self) -> None:
        outcome = parsers.oha(oha_report())
        self.assertTrue(outcome.good)
        self.assertEqual((outcome.requests, outcome.bytes, outcome.seconds), (100, 4096, 2.0))
        self.assertEqual(outcome.percentiles, {'50': 1.0, '99': 20.0, '99.9': 500.0})

    def test_cut_off_by_its_own_deadline(self) -> None:
        outcome = parsers.oha(oha_report(errorDistribution={'aborted due to deadline': 50}))
        self.assertTrue(outcome.good)

    def test_failures(self) -> None:
        refused = {'connection refused': 7}
        outcome = parsers.oha(oha_report(statusCodeDistribution={'200': 90, '502': 5}, errorDistribution=refused))
        self.assertEqual((outcome.requests, outcome.failed), (90, 12))

    def test_no_report(self) -> None:
        for text in ('', '{}', 'null', 'error: bad option'):
            with self.subTest(text), self.assertRaises(parsers.ParseError):
                parsers.oha(text)


if __name__ == '__main__':
    unittest.main()
