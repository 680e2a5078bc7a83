"""perf/budget: the command line."""

from __future__ import annotations

import argparse
import pathlib
import shutil
import sys

from . import counting, figures

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE = ROOT / 'perf' / 'budgets.toml'
HOW = ('A figure is not within its budget. If that is meant, write the new ones with perf/budget --renew and '
       'say why in the commit.')


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='perf/budget',
        description='Counts what one request costs the proxy on the simulated kernel, under callgrind, and '
                    'compares it with perf/budgets.toml. Needs valgrind and a release build: scripts/build '
                    'ringside-budget.')
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument('--check', action='store_true', help='fail when a figure is not within its budget')
    what.add_argument('--renew', action='store_true', help='write the figures of now')
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build', metavar='FOLDER',
                        help='build folder (build)')
    return parser.parse_args(arguments)


def check(program: pathlib.Path) -> int:
    """Prints the table, then one line a scenario that scripts/test reads."""
    budgets = figures.read(FILE.read_text())
    here = counting.toolchain(program)
    if here != budgets.toolchain:
        print(f'SKIP budgets (0.0 s): they were counted with {budgets.toolchain}; this is {here}')
        return 0
    counted = counting.count_all(program, counting.lines_of(program, '--list'))
    found = figures.compare({name: both[0] for name, both in counted.items()}, budgets.scenarios)
    print(figures.table(found))
    bad = {d.scenario for d in found if not d.good}
    for scenario in dict.fromkeys(d.scenario for d in found):
        seconds = counted[scenario][1] if scenario in counted else 0.0
        print(f'{"FAIL" if scenario in bad else "ok  "} budgets.{scenario} ({seconds:.1f} s)')
    if bad:
        print(HOW)
    return 1 if bad else 0


def renew(program: pathlib.Path) -> int:
    counted = counting.count_all(program, counting.lines_of(program, '--list'))
    budgets = figures.Budgets(counting.toolchain(program), {name: both[0] for name, both in counted.items()})
    before = figures.read(FILE.read_text()).scenarios if FILE.exists() else {}
    print(figures.table(figures.compare(budgets.scenarios, before)))
    FILE.write_text(figures.write(budgets))
    return 0


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    program = options.build / 'perf' / 'counts' / 'ringside-budget'
    if not program.exists():
        print(f'perf/budget: {program} is missing; scripts/build ringside-budget makes it', file=sys.stderr)
        return 2
    if shutil.which('valgrind') is None:
        print('perf/budget: valgrind is missing', file=sys.stderr)
        return 2
    try:
        return check(program) if options.check else renew(program)
    except counting.Failed as error:
        print(f'perf/budget: {error}', file=sys.stderr)
        return 1
