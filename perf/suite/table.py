"""The result as text: a line for each row and proxy."""

from __future__ import annotations

from .results import Result
from .rows import ABSOLUTE, EXCESS, Target

HEAD = ('proxy', 'value', '÷ nginx', 'spread', 'first version', 'aim')
SIGNS = {'aim': ('✓', '✓'), 'first': ('✓', '✗'), 'missed': ('✗', '✗'), '': ('', '')}


def number(value: float | None) -> str:
    """Three digits that matter."""
    if value is None:
        return 'void'
    if abs(value) >= 1000:
        return f'{value:,.0f}'
    return f'{value:.3g}' if abs(value) < 100 else f'{value:.0f}'


def limit(target: Target, value: float) -> str:
    if target.of == EXCESS:
        return '≤ nginx' if value == 0 else f'≤ nginx + {value:g}'
    return f'≤ {value:g}' if target.of == ABSOLUTE else f'≤ {value:.2f}'


def cells(result: Result, proxy: str) -> list[str]:
    ratio, target = result.ratio(proxy), result.row.target
    line = [proxy, number(result.median(proxy)),
            f'{ratio.value:.3f}' if ratio else '', f'{ratio.low:.2f}–{ratio.high:.2f}' if ratio else '']
    if result.void(proxy):
        line[1] += f' ({result.void(proxy)} void)'
    if target is None or not proxy.startswith('ringside'):
        return line + ['', '']
    first, aim = SIGNS[result.verdict(proxy)]
    goals = ((target.first, first), (target.aim, aim))
    return line + [f'{limit(target, goal)} {sign}'.rstrip() for goal, sign in goals]


def details(result: Result, proxy: str) -> str:
    found = result.details.get(proxy, {})
    return ', '.join(f'{name.replace("_", " ")} {number(result.detail(proxy, name))}' for name in found)


def row_text(result: Result, with_details: bool = True) -> str:
    row = result.row
    lines = ['', f'{row.name}: {row.title} [{row.unit}]']
    if result.skipped:
        return '\n'.join([*lines, f'  not measured: {result.skipped}'])
    if result.how:
        rounds = max(map(len, result.rounds.values()), default=0)
        lines.append(f'  {result.how}; ' + ('one round' if rounds == 1 else f'medians of {rounds} rounds'))
    body = [list(HEAD)] + [cells(result, proxy) for proxy in result.rounds]
    widths = [max(len(line[column]) for line in body) for column in range(len(HEAD))]
    lines += ['  ' + '  '.join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in body]
    if with_details:
        lines += [f'    {proxy}: {text}' for proxy in result.rounds if (text := details(result, proxy))]
    lines += [f'  Note: {note}' for note in result.notes]
    return '\n'.join(lines)


def conditions_text(conditions: dict) -> str:
    lines = ['Conditions']
    for key, value in conditions.items():
        text = '; '.join(f'{k}: {v}' for k, v in value.items()) if isinstance(value, dict) else str(value)
        lines.append(f'  {key.replace("_", " ")}: {text}')
    return '\n'.join(lines)
