"""The budgets of a request: reading what callgrind counted, comparing, writing the file."""

import unittest

from budgets import counting, figures

CALLGRIND = 'version: 1\ncreator: callgrind-3.19.0\nevents: Ir\nfn=(1) main\n12 5\nsummary: 1234\n\n\ntotals: 1234\n'
TOTALS = {'requests': 4, 'allocations': 0, 'enters': 1, 'submissions': 8, 'completions': 6}
FIGURES = {'instructions': 1000, 'allocations': 0, 'enters': 0.25, 'submissions': 2, 'completions': 1.5}


def bad(measured: dict, budget: dict) -> set:
    return {d.name for d in figures.compare({'a': measured}, {'a': budget}) if not d.good}


class Counting(unittest.TestCase):
    def test_totals_of_callgrind(self) -> None:
        self.assertEqual(counting.parse_totals(CALLGRIND), 1234)

    def test_totals_of_several_parts_add_up(self) -> None:
        self.assertEqual(counting.parse_totals(CALLGRIND + CALLGRIND), 2468)

    def test_no_totals_and_other_events_are_failures(self) -> None:
        for text in ('', 'events: Ir\n', CALLGRIND.replace('events: Ir', 'events: Dr')):
            with self.assertRaises(counting.Failed):
                counting.parse_totals(text)

    def test_counts(self) -> None:
        self.assertEqual(counting.parse_counts('requests 4\nnot a count\nenters 12\n'), {'requests': 4, 'enters': 12})


class Figures(unittest.TestCase):
    def test_per_request(self) -> None:
        self.assertEqual(figures.per_request(4001, TOTALS), FIGURES)

    def test_no_request(self) -> None:
        with self.assertRaises(ValueError):
            figures.per_request(1, {**TOTALS, 'requests': 0})

    def test_what_is_written_is_read(self) -> None:
        budgets = figures.Budgets('g++ 1', {'keep-alive': FIGURES, 'other': {**FIGURES, 'instructions': 7}})
        self.assertEqual(figures.read(figures.write(budgets)), budgets)

    def test_the_kept_file_is_as_it_would_be_written(self) -> None:
        from budgets.cli import FILE
        text = FILE.read_text()
        self.assertEqual(figures.write(figures.read(text)), text)


class Comparing(unittest.TestCase):
    def test_instructions_have_room_both_ways(self) -> None:
        for good in (980, 1000, 1020):
            self.assertEqual(bad({**FIGURES, 'instructions': good}, FIGURES), set())
        for wrong in (979, 1021):
            self.assertEqual(bad({**FIGURES, 'instructions': wrong}, FIGURES), {'instructions'})

    def test_the_others_have_none(self) -> None:
        for name in figures.EXACT:
            for delta in (-0.25, 0.25):
                self.assertEqual(bad({**FIGURES, name: FIGURES[name] + delta}, FIGURES), {name})

    def test_a_scenario_that_one_side_lacks_fails(self) -> None:
        for measured, budget in (({'a': FIGURES}, {}), ({}, {'a': FIGURES})):
            found = figures.compare(measured, budget)
            self.assertEqual([d.name for d in found if not d.good], list(figures.NAMES))

    def test_the_table_shows_what_failed(self) -> None:
        found = figures.compare({'a': {**FIGURES, 'instructions': 1100}}, {'a': FIGURES})
        marked = [line for line in figures.table(found).splitlines() if '<-' in line]
        self.assertEqual(len(marked), 1)
        self.assertIn('+10.00%', marked[0])


if __name__ == '__main__':
    unittest.main()
