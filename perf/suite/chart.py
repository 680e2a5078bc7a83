"""The result as an SVG bar chart, readable on light and on dark paper."""

from __future__ import annotations

import dataclasses
from xml.sax.saxutils import escape

from . import table
from .results import YARDSTICK, Result
from .rows import EXCESS, RATIO

WIDTH = 900
MARGIN = 20
NAME_WIDTH = 150
VALUE_WIDTH = 240
BAR_LEFT = MARGIN + NAME_WIDTH
BAR_WIDTH = WIDTH - 2 * MARGIN - NAME_WIDTH - VALUE_WIDTH
BAR_HEIGHT, BAR_STEP = 16, 22
TITLE_HEIGHT, GROUP_GAP = 26, 14
LETTER = 7.3  # the widest letter's width at 13 px, roughly; used to keep text inside its place

STYLE = '''
  svg { background: #ffffff; font: 13px system-ui, sans-serif; }
  text { fill: #1d2430; } .dim { fill: #5b6675; } .title { font-weight: 600; }
  .bar { fill: #9aa7b8; } .ours { fill: #1f7a5c; } .goal { stroke: #b3451d; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    svg { background: #14181f; } text { fill: #e8ecf2; } .dim { fill: #9fabbb; }
    .bar { fill: #5c6a7d; } .ours { fill: #46b48d; } .goal { stroke: #ff9b6a; }
  }
'''


@dataclasses.dataclass(frozen=True)
class Label:
    """A piece of text; x is its left edge."""

    x: float
    y: float
    text: str
    style: str = ''

    def svg(self) -> str:
        style = f' class="{self.style}"' if self.style else ''
        return f'<text x="{self.x:.1f}" y="{self.y:.1f}"{style}>{escape(self.text)}</text>'


def fit(text: str, width: float) -> str:
    """The text, cut so that it stays inside the width."""
    room = int(width / LETTER)
    return text if len(text) <= room else text[:room - 1] + '…'


def goal(result: Result) -> float | None:
    """The aim in the row's unit."""
    target, yard = result.row.target, result.median(YARDSTICK)
    if target is None:
        return None
    if target.of in (RATIO, EXCESS):
        if yard is None:
            return None
        return yard * target.aim if target.of == RATIO else yard + target.aim
    return target.aim


def value_text(result: Result, proxy: str) -> str:
    ratio = result.ratio(proxy)
    text = f'{table.number(result.median(proxy))} {result.row.unit}'
    return text + (f' ({ratio.value:.2f}×)' if ratio and proxy != YARDSTICK else '')


def group(result: Result, top: float) -> tuple[list[str], list[Label], float]:
    """Shapes and labels of one row, and where the next may begin. Every row has its own scale."""
    shown = {name: value for name in result.rounds if (value := result.median(name)) is not None}
    aim = goal(result)
    largest = max([*shown.values(), aim or 0.0, 1e-12])
    labels = [Label(MARGIN, top + 14, fit(result.row.title, WIDTH - 2 * MARGIN), 'title')]
    shapes, y = [], top + TITLE_HEIGHT
    for name, value in shown.items():
        style = 'ours' if name.startswith('ringside') else 'bar'
        length = max(1.0, BAR_WIDTH * max(0.0, value) / largest)
        shapes.append(f'<rect x="{BAR_LEFT}" y="{y:.1f}" width="{length:.1f}" height="{BAR_HEIGHT}" '
                      f'rx="2" class="{style}"/>')
        labels.append(Label(MARGIN, y + 13, fit(name, NAME_WIDTH - 8)))
        figure = fit(value_text(result, name), VALUE_WIDTH - 10)
        labels.append(Label(BAR_LEFT + BAR_WIDTH + 10, y + 13, figure, 'dim'))
        y += BAR_STEP
    if aim is not None and shown:
        x = BAR_LEFT + BAR_WIDTH * aim / largest
        ends = f'y1="{top + TITLE_HEIGHT - 3:.1f}" y2="{y - 3:.1f}"'
        shapes.append(f'<line x1="{x:.1f}" x2="{x:.1f}" {ends} class="goal"/>')
    return shapes, labels, y + GROUP_GAP


def layout(results: list[Result], foot: str) -> tuple[list[str], list[Label], float]:
    head = 'Less is better. The line is what ringside aims at; n× is the ratio to nginx.'
    labels = [Label(MARGIN, 30, head, 'dim')]
    shapes: list[str] = []
    top = 48.0
    for result in results:
        if any(result.median(name) is not None for name in result.rounds):
            more_shapes, more_labels, top = group(result, top)
            shapes += more_shapes
            labels += more_labels
    for line in foot.splitlines():
        labels.append(Label(MARGIN, top + 14, fit(line, WIDTH - 2 * MARGIN), 'dim'))
        top += 20
    return shapes, labels, top + MARGIN


def svg(results: list[Result], foot: str) -> str:
    shapes, labels, height = layout(results, foot)
    body = '\n'.join(shapes + [label.svg() for label in labels])
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
            f'height="{height:.0f}" role="img">\n<title>ringside beside other proxies</title>\n'
            f'<style>{STYLE}</style>\n{body}\n</svg>\n')
