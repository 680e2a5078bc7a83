"""The table and the chart."""

import itertools
import unittest
import xml.etree.ElementTree

from suite import chart, table
from suite.results import Result
from suite.rows import BY_NAME, ROWS, select


def results() -> list[Result]:
    """Every row, with long names and markup in them."""
    made = []
    for row in ROWS:
        result = Result(row)
        result.rounds = {'ringside': [6.0, 6.5, 12.0], 'nginx': [10.0, 11.0, 10.0],
                         'a-proxy-with-<a>-&-very-long-name': [12345.678, None, 12345.0],
                         'broken': [None, None, None]}
        made.append(result)
    return made


class Table(unittest.TestCase):
    def test_numbers(self) -> None:
        for value, text in ((None, 'void'), (0.123456, '0.123'), (18.06, '18.1'), (523.4, '523'),
                            (12345.6, '12,346')):
            with self.subTest(text):
                self.assertEqual(table.number(value), text)

    def test_row(self) -> None:
        lines = table.row_text(results()[0]).splitlines()
        ours = next(line for line in lines if line.startswith('  ringside'))
        self.assertEqual(ours.split(), 'ringside 6.5 0.650 0.59–1.20 ≤ 0.75 ✓ ≤ 0.62 ✗'.split())
        broken = next(line for line in lines if line.startswith('  broken'))
        self.assertEqual(broken.split(), ['broken', 'void', '(3', 'void)'])

    def test_columns_are_aligned(self) -> None:
        lines = table.row_text(results()[0]).splitlines()
        head = next(line for line in lines if line.startswith('  proxy'))
        ours = next(line for line in lines if line.startswith('  ringside'))
        self.assertEqual(head.index('÷ nginx'), ours.index('0.650'))
        self.assertEqual(head.index('first version'), ours.index('≤ 0.75'))

    def test_skipped(self) -> None:
        text = table.row_text(Result(BY_NAME['latency'], skipped='oha is not installed'))
        self.assertIn('not measured: oha is not installed', text)

    def test_select(self) -> None:
        self.assertEqual([row.name for row in select('pool,keep-alive')], ['pool', 'keep-alive'])
        self.assertEqual(select(None), list(ROWS))
        with self.assertRaises(SystemExit):
            select('no-such-row')


class Chart(unittest.TestCase):
    foot = 'a CPU <with> markup, ' + 'x' * 300 + '\na second line'

    def test_well_formed(self) -> None:
        root = xml.etree.ElementTree.fromstring(chart.svg(results(), self.foot))
        space = '{http://www.w3.org/2000/svg}'
        texts = [''.join(node.itertext()) for node in root.iter(f'{space}text')]
        self.assertIn('nginx', texts)
        self.assertTrue(any('<a>' in text for text in texts))
        bars = list(root.iter(f'{space}rect'))
        self.assertEqual(len(bars), 3 * len(ROWS))
        for bar in bars:
            self.assertGreater(float(bar.get('width')), 0)
            right = float(bar.get('x')) + float(bar.get('width'))
            self.assertLessEqual(right, chart.BAR_LEFT + chart.BAR_WIDTH + 0.1)

    def test_texts_neither_overlap_nor_leave_the_picture(self) -> None:
        _, labels, height = chart.layout(results(), self.foot)
        boxes = [(label.x, label.x + len(label.text) * chart.LETTER, label.y - 11, label.y + 4, label.text)
                 for label in labels]
        for left, right, top, bottom, text in boxes:
            self.assertTrue(0 <= left and right <= chart.WIDTH and 0 <= top and bottom <= height, text)
        for left, right, _, _, text in boxes:
            begins_before_bars = left < chart.BAR_LEFT and right > chart.BAR_LEFT
            self.assertFalse(begins_before_bars and text.startswith('a-proxy'), f'{text} runs into its bar')
        for a, b in itertools.combinations(boxes, 2):
            apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] or b[3] <= a[2]
            self.assertTrue(apart, f'{a[4]} and {b[4]}')

    def test_goal(self) -> None:
        for row, goal in (('keep-alive', 6.2), ('connection-memory', 1.0), ('idle-memory', 10.0),
                          ('latency', None)):
            with self.subTest(row):
                result = Result(BY_NAME[row])
                result.rounds = {'ringside': [5.0], 'nginx': [10.0]}
                self.assertEqual(chart.goal(result), goal)

    def test_nothing_measured(self) -> None:
        xml.etree.ElementTree.fromstring(chart.svg([Result(ROWS[0])], 'foot'))


if __name__ == '__main__':
    unittest.main()
