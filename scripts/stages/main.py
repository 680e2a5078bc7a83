"""Runs the stages of scripts/test and adds up what they found."""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import signal
import sys
import time
import traceback
from typing import Callable

if __package__ in (None, ''):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from stages import builds, lab, manifest, static  # noqa: E402
from stages.outcome import LOGS, Outcome  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Stage:
    """`run` gets whether the run is a quick one."""

    name: str
    what: str
    run: Callable[[bool], Outcome]
    quick: bool


STAGES = (
    Stage('style', 'format, words, length of files, layers, headers, shell', static.style, True),
    Stage('release', 'the release build: unit tests, kernel parity, each micro benchmark once', builds.release, True),
    Stage('budgets', 'instructions and allocations a request, in the release build', builds.budgets, True),
    Stage('conformance', 'raw cases against the release build', builds.conformance, True),
    Stage('h2spec', 'its 146 cases, in strict mode: in clear text, over TLS, before a server of HTTP/2', builds.h2spec, True),
    Stage('e2e', 'real peers against the release build', builds.e2e, True),
    Stage('tls', 'raw cases and real peers again, over TLS', builds.tls, True),
    Stage('soak', 'full load and churn for half a minute: nothing fails or leaks', builds.soak, True),
    Stage('asan', 'ASan and UBSan: unit tests, simulation, corpora, raw cases', builds.asan, True),
    Stage('fuzz', 'each fuzzer for RINGSIDE_FUZZ_SECONDS (20)', builds.fuzz, False),
    Stage('tsan', 'ThreadSanitizer: what threads share', builds.tsan, False),
    Stage('lab', 'parity, raw cases and end to end under kernel 6.1', lab.lab, False),
    Stage('tidy', 'clang-tidy over src', static.tidy, False),
)


def parse(arguments: list[str]) -> argparse.Namespace:
    listing = '\n'.join(f'  {s.name:12} {s.what}{"" if s.quick else " (not with --quick)"}' for s in STAGES)
    parser = argparse.ArgumentParser(
        prog='scripts/test', formatter_class=argparse.RawDescriptionHelpFormatter,
        description='Installs what the tests need, builds and runs everything, and ends with the line '
                    '"N passed, N failed".',
        epilog=f'stages:\n{listing}\n\nenvironment:\n'
               '  RINGSIDE_SIM_SEEDS       how many fresh simulator seeds (300)\n'
               '  RINGSIDE_SIM_FIRST_SEED  the first of them (random; printed)\n'
               '  RINGSIDE_FUZZ_SECONDS    time of each fuzzer (20)\n'
               '  RINGSIDE_JOBS            compilers at a time (one a CPU)')
    parser.add_argument('stages', nargs='*', metavar='STAGE', help='only these stages')
    parser.add_argument('--quick', action='store_true', help='leave out the slow stages')
    parser.add_argument('--list', action='store_true', help='list the stages and stop')
    options = parser.parse_args(arguments)
    unknown = set(options.stages) - {s.name for s in STAGES}
    if unknown:
        parser.error(f'no such stage: {", ".join(sorted(unknown))} (see --list)')
    return options


def run_stage(stage: Stage, quick: bool) -> Outcome:
    print(f'\n== {stage.name}: {stage.what}', flush=True)
    started = time.monotonic()
    try:
        outcome = stage.run(quick)
    except Exception:  # pylint: disable=broad-except
        traceback.print_exc(file=sys.stdout)
        outcome = Outcome(failed=[f'{stage.name} (the stage itself broke)'])
    if not outcome.count:
        outcome.failed.append(f'{stage.name} (nothing ran)')
    for name in outcome.failed:
        print(f'  failed: {name}')
    for name, reason in outcome.skipped:
        print(f'  skipped: {name}: {reason}')
    skipped = f', {len(outcome.skipped)} skipped' if outcome.skipped else ''
    print(f'== {stage.name}: {len(outcome.passed)} ok, {len(outcome.failed)} not ok{skipped}, '
          f'{time.monotonic() - started:.0f} s', flush=True)
    return outcome


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.list:
        for stage in STAGES:
            print(f'{stage.name:12} {stage.what}')
        return 0
    # As Ctrl-C: what a stage has started ends with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    # Not the folder: another run in this tree may be writing there.
    for old in LOGS.glob('sim-*.log'):
        old.unlink(missing_ok=True)
    os.environ.setdefault('LANG', 'C.UTF-8')
    started = time.monotonic()
    chosen = [s for s in STAGES if (s.name in options.stages if options.stages
                                    else s.quick or not options.quick)]
    total = Outcome()
    for stage in chosen:
        total.add(run_stage(stage, options.quick))
    print()
    total.add(manifest.check_skips(total))
    print(manifest.line(total.facts))
    if len(chosen) == len(STAGES):
        total.add(manifest.check_manifest(total))
    else:
        print('(some stages were left out, so the manifest was not compared)')
    if total.failed:
        print('\nfailed:\n' + '\n'.join(f'  {name}' for name in total.failed))
    print(f'\nafter {(time.monotonic() - started) / 60:.1f} minutes:')
    skipped = f', {len(total.skipped)} skipped' if total.skipped else ''
    print(f'{len(total.passed)} passed, {len(total.failed)} failed{skipped}')
    return 1 if total.failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
