"""The soak's own rules: what is a failure, and what is a leak."""

import random
import time
import unittest

from soak import rules, trend
from soak.ledger import Ledger
from soak.rules import Outage, Result, judge

SERVER = '127.0.0.1:9'
WHEN = 1_767_225_600.25  # 2026-01-01T00:00:00.25Z


def record(end: str = 'complete', status: int = 200, **changes) -> dict:
    return {'time': '2026-01-01T00:00:00.250Z', 'total_ms': 500.0, 'end': end, 'status': status, 'server': SERVER,
            'tries': 1, 'reused': False, 'request_id': 'soak-1', **changes}


def result(promise: str, seen: str = 'ok', status: int = 200, method: str = 'GET') -> Result:
    return Result('soak-1', promise, method, seen, status)


LOST = 'upstream/wait_response/closed'


class Promises(unittest.TestCase):
    """What judge() lets pass."""

    def good(self, seen: Result, what: dict, outages: list[Outage] | None = None) -> None:
        self.assertIsNone(judge(seen, what, outages or []))

    def wrong(self, seen: Result, what: dict, outages: list[Outage] | None = None) -> None:
        self.assertTrue(judge(seen, what, outages or []))

    def test_what_must_succeed(self) -> None:
        self.good(result('succeeds'), record())
        self.wrong(result('succeeds', 'status', 502), record(LOST, 502))
        self.wrong(result('succeeds', 'cut'), record('upstream/response_body/reset'))
        self.wrong(result('succeeds', 'wrong'), record())
        self.wrong(result('succeeds', 'nothing', 0), record())

    def test_a_whole_answer_with_a_record_that_denies_it(self) -> None:
        for promise in rules.PROMISES:
            self.wrong(result(promise), record(LOST))
        self.wrong(result('succeeds'), record(status=204))

    def test_what_is_sent_to_a_server_that_is_stopped(self) -> None:
        down = [Outage(SERVER, WHEN + 0.1, WHEN + 0.2)]
        self.good(result('may_die'), record())
        self.good(result('may_die', 'status', 502), record(LOST, 502), down)
        self.good(result('may_die', 'cut'), record('upstream/response_body/reset'), down)
        self.wrong(result('may_die', 'status', 502), record(LOST, 502))
        self.wrong(result('may_die', 'status', 502), record(LOST, 502), [Outage('127.0.0.1:8', WHEN)])
        self.wrong(result('may_die', 'status', 502), record('upstream/connect/refused', 502), down)
        self.wrong(result('may_die', 'status', 503), record(LOST, 503), down)
        self.wrong(result('may_die', 'cut'), record(LOST), down)
        self.wrong(result('may_die', 'wrong'), record(LOST, 502), down)

    def test_times_of_outages(self) -> None:
        lost = result('may_die', 'status', 502), record(LOST, 502)
        self.good(*lost, [Outage(SERVER, WHEN - 9)])  # it goes on
        self.wrong(*lost, [Outage(SERVER, WHEN - 9, WHEN - rules.OUTAGE_SLACK - 0.1)])
        self.good(*lost, [Outage(SERVER, WHEN + 0.5 + rules.CLOCK_LAG / 2, WHEN + 1)])
        self.wrong(*lost, [Outage(SERVER, WHEN + 0.51 + rules.CLOCK_LAG, WHEN + 1)])
        self.assertEqual(rules.interval(record()), (WHEN, WHEN + 0.5))

    def test_what_has_to_be_sent_again(self) -> None:
        down = [Outage(SERVER, WHEN)]
        used = record(LOST, 502, reused=True)
        self.wrong(result('may_die', 'status', 502), used, down)
        self.good(result('may_die', 'status', 502, 'POST'), used, down)
        self.wrong(result('may_die', 'status', 502, 'POST'), {**used, 'tries': 2}, down)

    def test_what_meets_a_connection_that_is_closed(self) -> None:
        self.good(result('may_stale', 'status', 502, 'POST'), record(LOST, 502, reused=True))
        self.wrong(result('may_stale', 'status', 502, 'POST'), record(LOST, 502))
        self.wrong(result('may_stale', 'cut', 200, 'POST'), record('upstream/response_body/closed', reused=True))

    def test_what_its_server_cuts(self) -> None:
        self.good(result('cut', 'cut'), record('upstream/response_body/closed'))
        self.good(result('cut', 'status', 502), record('upstream/wait_response/reset', 502))
        self.wrong(result('cut'), record())
        self.wrong(result('cut', 'cut'), record())
        self.wrong(result('cut', 'cut'), record('client/response_body/closed'))

    def test_who_leaves_and_who_stalls(self) -> None:
        self.good(result('leaves', 'left'), record('client/response_body/reset'))
        self.good(result('leaves', 'left'), record())
        self.wrong(result('leaves', 'left'), record('upstream/response_body/reset'))
        self.wrong(result('leaves', 'left'), record('ringside/admit/no_resources'))
        self.good(result('stalls', 'reset', 0), record('client/response_body/timed_out'))
        self.good(result('stalls', 'status', 408), record('client/send_request/timed_out', 408))
        self.wrong(result('stalls', 'not ended', 0), record('client/response_body/timed_out'))
        self.wrong(result('stalls', 'reset', 0), record('client/response_body/reset'))

    def test_strangers(self) -> None:
        self.assertIsNone(rules.judge_stranger(record('client/read_head/closed')))
        for end in (LOST, 'ringside/queue/limit'):
            self.assertTrue(rules.judge_stranger(record(end)))


class Books(unittest.TestCase):
    """The ledger finds what is missing and what is there twice."""

    def setUp(self) -> None:
        self.ledger = Ledger()

    def client(self, request_id: str, promise: str = 'succeeds', seen: str = 'ok', note: str = '') -> None:
        self.ledger.client_says(b'{"id": "%s", "promise": "%s", "method": "GET", "seen": "%s", "status": 200, '
                                b'"note": "%s"}' % tuple(x.encode() for x in (request_id, promise, seen, note)))

    def record(self, request_id: str, end: str = 'complete') -> None:
        self.ledger.access_line(b'{"time":"2026-01-01T00:00:00.250Z","total_ms":1,"request_id":"%s","status":200,'
                                b'"tries":1,"end":"%s"}' % (request_id.encode(), end.encode()))

    def problems(self, lost: int = 0) -> int:
        self.ledger.close(lost)
        return self.ledger.counts['problems']

    def test_both_sides_in_any_order(self) -> None:
        self.client('soak-a')
        self.record('soak-a')
        self.record('soak-b')
        self.client('soak-b')
        self.assertEqual(self.problems(), 0)
        self.assertEqual(self.ledger.counts['ok'], 2)

    def test_a_request_without_a_record(self) -> None:
        self.client('soak-a')
        self.assertEqual(self.problems(), 1)

    def test_a_record_that_was_lost(self) -> None:
        self.client('soak-a')
        self.assertEqual(self.problems(lost=1), 0)

    def test_a_reset_may_leave_no_record_but_a_close_must(self) -> None:
        self.client('soak-a', 'leaves', 'left', 'reset')
        self.client('soak-b', 'leaves', 'left', 'closed')
        self.assertEqual(self.problems(), 1)
        self.assertEqual(self.ledger.counts['unseen'], 1)

    def test_a_record_without_a_request(self) -> None:
        self.record('soak-a')
        self.assertEqual(self.problems(), 1)

    def test_two_records_of_one_request(self) -> None:
        self.record('soak-a')
        self.record('soak-a')
        self.client('soak-a')
        self.assertEqual(self.problems(), 1)

    def test_strangers_are_judged(self) -> None:
        self.record('0123')
        self.record('0124', 'client/read_head/reset')
        self.assertEqual(self.problems(), 0)
        self.record('0125', 'upstream/connect/refused')
        self.assertEqual(self.problems(), 1)

    def test_a_post_that_two_servers_got(self) -> None:
        self.ledger.server_says(b'post soak-a\n')
        self.ledger.server_says(b'post soak-b\n')
        self.assertEqual(self.ledger.counts['problems'], 0)
        self.ledger.server_says(b'post soak-a\n')
        self.assertEqual(self.problems(), 1)

    def test_unseen_requests_are_forgotten(self) -> None:
        self.client('soak-a', 'leaves', 'left', 'reset')
        found, _ = self.ledger.results['soak-a']
        self.ledger.results['soak-a'] = (found, time.monotonic() - 1000)
        self.client('soak-b')
        self.assertEqual(list(self.ledger.results), ['soak-b'])


class Trends(unittest.TestCase):
    """Noise is flat, leaks are not."""

    def noise(self, count: int, leak: float = 0.0) -> list[float]:
        chance = random.Random(4)
        return [100 + chance.uniform(-50, 50) + leak * i / count for i in range(count)]

    def test_noise_is_flat(self) -> None:
        self.assertTrue(trend.of(self.noise(60), 8).flat)

    def test_a_leak_in_noise_is_found(self) -> None:
        self.assertFalse(trend.of(self.noise(60, leak=400), 8).flat)

    def test_a_leak_is_found_once_half_of_it_is_more_than_the_floor(self) -> None:
        line = [float(i) for i in range(300)]
        self.assertFalse(trend.of(line, 140).flat)
        self.assertTrue(trend.of(line, 160).flat)

    def test_shrinking_is_flat(self) -> None:
        self.assertTrue(trend.of(self.noise(60, leak=-400), 0).flat)

    def test_one_thread_more_is_found(self) -> None:
        self.assertTrue(trend.of([3.0] * 30, 0, trend.STEADY).flat)
        self.assertFalse(trend.of([3.0] * 20 + [4.0] * 10, 0, trend.STEADY).flat)

    def test_steady_figures_have_no_spread(self) -> None:
        line = [float(i) for i in range(300)]
        self.assertFalse(trend.of(line, 190, trend.STEADY).flat)
        self.assertTrue(trend.of(line, 210, trend.STEADY).flat)

    def test_jumpy_figures_need_samples(self) -> None:
        line = [float(i) for i in range(60)]
        self.assertFalse(trend.of(line, 0, trend.JUMPY).flat)
        self.assertFalse(trend.of(line[:20], 0, trend.JUMPY).judged)
        self.assertTrue(trend.of(line[:20], 0, trend.JUMPY).flat)

    def test_too_few_samples_are_an_error(self) -> None:
        with self.assertRaises(ValueError):
            trend.of([1.0, 2.0], 0)
