"""What a round of the handshake rows comes to."""

import unittest

from suite import handshake_rows, parsers
from suite.results import Result
from suite.rows import BY_NAME


def outcome(requests: int, failed: int = 0) -> parsers.Outcome:
    return parsers.Outcome(requests, failed, 0, 4.0, {})


class Rounds(unittest.TestCase):
    def setUp(self) -> None:
        self.result = Result(BY_NAME['handshake-rings'])

    def test_cpu_of_a_connection_at_two_rings_by_that_at_one(self) -> None:
        handshake_rows.note_round(self.result, 0, 'ringside', [(outcome(10_000), 1.0), (outcome(5_000), 0.55)])
        self.assertAlmostEqual(self.result.median('ringside'), 1.1)
        self.assertAlmostEqual(self.result.detail('ringside', 'one_ring_us'), 100)
        self.assertAlmostEqual(self.result.detail('ringside', 'two_rings_us'), 110)
        self.assertEqual(self.result.verdict('ringside'), 'first')

    def test_a_failed_request_makes_it_void(self) -> None:
        for pair in ([outcome(10, 1), outcome(10)], [outcome(10), outcome(0)]):
            result = Result(self.result.row)
            handshake_rows.note_round(result, 0, 'ringside', [(each, 1.0) for each in pair])
            self.assertEqual(result.void('ringside'), 1)


class Rows(unittest.TestCase):
    def test_each_kind_of_certificate_and_of_handshake_has_one(self) -> None:
        found = {(row.tls, row.rsa) for row in BY_NAME.values() if row.kind == 'handshake'}
        self.assertEqual(found, {(tls, rsa) for tls in ('full', 'resumed') for rsa in (False, True)})
