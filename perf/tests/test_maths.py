"""Medians, ratios, and what they say about the targets."""

import unittest

from suite import maths
from suite.results import Result, as_json
from suite.rows import BY_NAME


def result(row: str, ours: list, nginx: list) -> Result:
    made = Result(BY_NAME[row])
    made.rounds = {'ringside': ours, 'nginx': nginx}
    return made


class Maths(unittest.TestCase):
    def test_median_skips_void_rounds(self) -> None:
        self.assertEqual(maths.median([3.0, None, 1.0]), 2.0)
        self.assertIsNone(maths.median([None, None]))
        self.assertIsNone(maths.median([]))

    def test_enough(self) -> None:
        self.assertTrue(maths.enough([1.0, 2.0, None]))
        self.assertFalse(maths.enough([1.0, None]))
        self.assertFalse(maths.enough([]))

    def test_ratio_of_medians_with_spread_of_pairs(self) -> None:
        ratio = maths.ratio([5.0, 6.0, 9.0], [10.0, 10.0, 12.0])
        self.assertEqual((ratio.value, ratio.low, ratio.high), (0.6, 0.5, 0.75))

    def test_ratio_uses_only_rounds_that_count_on_both_sides(self) -> None:
        ratio = maths.ratio([5.0, None, 100.0], [10.0, 1.0, None])
        self.assertEqual((ratio.value, ratio.low, ratio.high), (0.5, 0.5, 0.5))

    def test_no_ratio(self) -> None:
        self.assertIsNone(maths.ratio([None, 1.0], [1.0, None]))
        self.assertIsNone(maths.ratio([1.0], [0.0]))

    def test_per_million_counts_the_start_once(self) -> None:
        self.assertEqual(maths.per_million(50, 10, 100_000), 150.0)
        self.assertEqual(maths.per_million(50, 0, 0), 50.0)


class Verdicts(unittest.TestCase):
    def test_ratio_target(self) -> None:
        for ours, verdict in ((6.2, 'aim'), (7.5, 'first'), (7.6, 'missed')):
            with self.subTest(ours):
                self.assertEqual(result('keep-alive', [ours], [10.0]).verdict('ringside'), verdict)

    def test_absolute_target_needs_no_yardstick(self) -> None:
        self.assertEqual(result('connection-memory', [1.5], [None]).verdict('ringside'), 'first')

    def test_excess_target(self) -> None:
        for ours, verdict in ((2.8, 'aim'), (6.8, 'first'), (6.9, 'missed')):
            with self.subTest(ours):
                self.assertEqual(result('idle-memory', [ours], [2.8]).verdict('ringside'), verdict)
        self.assertEqual(result('idle-memory', [1.0], [None]).verdict('ringside'), '')

    def test_too_many_void_rounds_are_no_figure(self) -> None:
        made = result('keep-alive', [1.0, None], [10.0, 10.0])
        self.assertIsNone(made.median('ringside'))
        self.assertEqual(made.verdict('ringside'), '')
        self.assertEqual(made.void('ringside'), 1)

    def test_json(self) -> None:
        made = as_json(result('keep-alive', [5.0, None, 7.0], [10.0, 10.0, 10.0]))
        self.assertEqual(made['verdict'], {'ringside': 'aim'})
        self.assertEqual(made['proxies']['ringside']['ratio'], {'value': 0.6, 'low': 0.5, 'high': 0.7})
        self.assertEqual(made['proxies']['ringside']['void'], 1)


if __name__ == '__main__':
    unittest.main()
