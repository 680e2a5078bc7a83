"""perf/compare: the rows one after the other, and the report."""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import signal
import sys

from . import chart, cpu_row, handshake_rows, latency_rows, loads, machine, memory_rows, pool_rows, proxies, table
from .bench import Bench, Settings, others_limit
from .lab import Lab
from .options import chosen_kinds, parser, print_rows
from .results import Result, as_json
from .rows import Row, select
from .upstream import Upstream

MEASURES = {'cpu': cpu_row.measure, 'idle-memory': memory_rows.measure_idle,
            'connection-memory': memory_rows.measure_connection, 'pool': pool_rows.measure,
            'handshake': handshake_rows.measure,
            'latency': latency_rows.measure_latency, 'fairness': latency_rows.measure_fairness}


def measure_row(bench: Bench, row: Row) -> Result:
    print(f'\n{row.name}: {row.title}', flush=True)
    needed = row.tool
    if row.kind == 'cpu':
        needed = loads.choose(cpu_row.job_of(bench, row), bench.settings.load, row.tool).name
    if needed and not loads.find(needed):
        return Result(row, skipped=f'{needed} is not installed; it comes with {loads.TOOLS[needed].install}')
    return MEASURES[row.kind](bench, row)


def conditions(options: argparse.Namespace, kinds: list[proxies.Kind], lab: Lab, quiet: tuple) -> dict:
    share, load, reason = quiet
    found = machine.describe()
    found |= {'busy_before': f'{share:.0%} of the CPUs, load average {load:.2f}', 'quiet': not reason,
              'versions': {kind.name: kind.version() for kind in kinds},
              'load_generators': {tool.name: proxies.first_line([program, tool.version]).split(' Copyright')[0]
                                  for tool in loads.TOOLS.values() if (program := loads.find(tool.name))},
              'pinning': f'proxies on CPU {lab.proxy_cpu}, load on {lab.load_cpu}, upstream on {lab.upstream_cpu}'
              if lab.pinning else 'none',
              'rounds': f'{options.rounds} of {options.seconds:g} s', 'command': ' '.join(sys.argv[1:])}
    if reason:
        found['warning'] = f'BUSY: {reason}. These figures are doubtful.'
    return found


def note_others(found: dict, others: list[float]) -> None:
    """Whoever else used the CPUs while we measured, measured too."""
    if not others:
        return
    worst = max(others)
    found['others_meanwhile'] = (f'{sorted(others)[len(others) // 2]:.2f} CPUs in the median round, '
                                 f'{worst:.2f} in the worst')
    if worst > others_limit() and 'warning' not in found:
        found['warning'] = 'BUSY: somebody else used the CPUs during a round. These figures are doubtful.'
        found['quiet'] = False


def report(options: argparse.Namespace, results: list[Result], found: dict) -> None:
    print('\n' + table.conditions_text(found))
    for result in results:
        print(table.row_text(result))
    if options.json:
        document = {'conditions': found, 'rows': [as_json(result) for result in results]}
        pathlib.Path(options.json).write_text(json.dumps(document, indent=1, ensure_ascii=False) + '\n')
    if options.svg:
        foot = f'{found["cpu"]}, {found["cpus"]} CPUs, Linux {found["kernel"]}, {found["time"]}\n'
        foot += ', '.join(f'{name}: {version}' for name, version in found['versions'].items())
        foot += f'\n{found["warning"]}' if 'warning' in found else ''
        pathlib.Path(options.svg).write_text(chart.svg(results, foot))


def failed(options: argparse.Namespace, results: list[Result]) -> bool:
    """Whether there is a reason for exit status 1; says it."""
    reasons = []
    for result in results:
        ours = 'ringside' if 'ringside' in result.rounds else None
        if result.skipped or not ours or result.median(ours) is None:
            reasons.append(f'{result.row.name} could not be measured')
        elif options.gate and result.verdict(ours) in ('missed', 'first' if options.gate == 'aim' else 'missed'):
            reasons.append(f'{result.row.name} misses its target')
    for reason in reasons:
        print(f'perf/compare: {reason}', file=sys.stderr)
    return bool(reasons)


def run(options: argparse.Namespace, rows: list[Row], kinds: list[proxies.Kind], quiet: tuple) -> int:
    settings = Settings(options.rounds, options.seconds, options.turn / 1e3, options.load, options.rate, options.rings,
                        options.syscalls, options.profile)
    results: list[Result] = []
    with Lab(options.pin) as lab:
        found = conditions(options, kinds, lab, quiet)
        bench = Bench(lab, Upstream(lab), kinds, settings)
        try_all(bench)
        try:
            for row in rows:
                results.append(measure_row(bench, row))
        except KeyboardInterrupt:
            print('\nended early; what was measured so far:')
        note_others(found, bench.others)
    report(options, results, found)
    return int(failed(options, results) or len(results) < len(rows))


def try_all(bench: Bench) -> None:
    """Every proxy answers once, so that a mistake shows before half an hour of rounds, not after it."""
    for kind in bench.kinds:
        with bench.running(kind, clients=50) as proxy:
            try:
                memory_rows.warm(proxy.port, '/1k')
            except OSError as error:
                raise SystemExit(f'{kind.name} does not pass on the upstream\'s answer: {error}') from error


def on_sigterm(*_: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    made = parser()
    options = made.parse_args()
    if options.list:
        print_rows()
        return 0
    rows, kinds = select(options.rows), chosen_kinds(options, made)
    if options.rounds < 1 or options.seconds < 1 or options.rings < 1 or options.rate <= 0:
        made.error('--rounds, --seconds, --rings and --rate are at least 1')
    if not 10 <= options.turn <= 1000 * options.seconds:
        made.error('--turn is at least 10 and not longer than a round')
    if not shutil.which('taskset'):
        made.error('taskset is not installed (package util-linux)')
    quiet = machine.wait_until_quiet(options.wait)
    if quiet[2] and not options.busy_ok:
        print(f'perf/compare: {quiet[2]}. Figures would be noise: wait (--wait S) or say --busy-ok.',
              file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, on_sigterm)
    try:
        return run(options, rows, kinds, quiet)
    except KeyboardInterrupt:
        return 130
