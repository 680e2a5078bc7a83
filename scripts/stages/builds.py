"""Stages that build ringside and run what meson knows of."""

from __future__ import annotations

import json
import os
import pathlib
import random
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from .outcome import ROOT, Outcome, check, read_finished, read_junit, read_runner_output, run, show

SANITIZER_ENV = {
    'ASAN_OPTIONS': 'detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1'
                    ':detect_leaks=1',
    'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1',
    'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1',
    # A sanitised program, or a loaded machine, is slower; limits in tests only bound failures.
    'RINGSIDE_TEST_SLOWDOWN': '4',
}


def build(kind: str, *targets: str) -> Outcome:
    option = [] if kind == 'release' else [f'--{kind}']
    return check(f'build-{kind}', 'scripts/build', '--no-install', *option, *targets, seconds=3000)


def executables(folder: str, pattern: str = '*') -> dict[str, pathlib.Path]:
    done = subprocess.run([sys.executable, 'scripts/lib/meson_targets.py', folder, pattern], cwd=ROOT,
                          capture_output=True, text=True, check=False)
    files = subprocess.run([sys.executable, 'scripts/lib/meson_targets.py', '--files', folder, pattern],
                           cwd=ROOT, capture_output=True, text=True, check=False)
    return {name: ROOT / folder / path
            for name, path in zip(done.stdout.split(), files.stdout.split(), strict=True)}


def suites_of(folder: str) -> set[str]:
    output = subprocess.run(['meson', 'introspect', '--tests', folder], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout
    return {suite.rpartition(':')[2] for test in json.loads(output) for suite in test['suite']}


def meson_tests(folder: str, suite: str, env: dict[str, str] | None = None) -> Outcome:
    """One suite of meson's tests; a suite that does not exist is a failure."""
    name = f'{folder}-{suite}'
    if suite not in suites_of(folder):
        print(f'  FAIL {name}: meson knows no suite {suite}')
        return Outcome(failed=[f'{name} (the suite is missing)'])
    junit = ROOT / folder / 'meson-logs' / 'testlog.junit.xml'
    junit.unlink(missing_ok=True)
    multiplier = '4' if env else '1'
    done = run(name, 'meson', 'test', '-C', folder, '--suite', suite, '--print-errorlogs', '-t', multiplier,
               seconds=2400, env=env)
    return read_finished(name, done, read_junit(junit) if junit.exists() else Outcome())


def python_tests(name: str, *arguments: str, env: dict[str, str] | None = None, jobs: int = 4,
                 seconds: float = 1200) -> Outcome:
    done = run(name, sys.executable, 'test/support/runner.py', '-j', str(jobs), *arguments,
               seconds=seconds, env=env)
    return read_finished(name, done, read_runner_output(done.text))


def release(_: bool) -> Outcome:
    outcome = build('release', '*')
    if not outcome.failed:
        outcome.add(meson_tests('build', 'unit'))
        outcome.add(meson_tests('build', 'parity'))
        outcome.facts['parity'] = 'yes'
        outcome.add(benchmarks())
    return outcome


def benchmarks() -> Outcome:
    """Each program once, for as short as it goes: that it still does what it measures, not how fast."""
    outcome = meson_tests('build', 'benchmarks')
    found = [name.removeprefix('bench-') for name in executables('build', 'bench-*')]
    outcome.facts['benchmarks'] = 'no' if outcome.failed else ','.join(sorted(found))
    return outcome


def budgets(_: bool) -> Outcome:
    """Counts, not times: they hold on a busy machine too."""
    outcome = build('release', 'ringside-budget')
    if outcome.failed:
        return outcome
    done = run('budgets', sys.executable, '-B', 'perf/budget', '--check', seconds=900)
    found = read_finished('budgets', done, read_runner_output(done.text))
    outcome.add(found)
    outcome.facts['budgets'] = 'no' if found.failed else 'skipped' if found.skipped else 'yes'
    return outcome


def conformance(_: bool) -> Outcome:
    outcome = build('release')
    outcome.add(python_tests('harness', 'support'))
    outcome.add(python_tests('conformance', 'conformance', jobs=6))
    outcome.facts['h1'] = 'yes' if not outcome.failed else 'no'
    return outcome


def h2spec(_: bool) -> Outcome:
    """Each of its cases counts, in clear text, over TLS, and where the server speaks HTTP/2 too."""
    outcome = build('release')
    if outcome.failed:
        return outcome
    # It prints its results as the runner does.
    done = run('h2spec', sys.executable, '-B', 'scripts/h2spec', seconds=900)
    found = read_finished('h2spec', done, read_runner_output(done.text))
    outcome.add(found)
    runs = sorted({name.split('.')[1] for name in found.passed})
    outcome.facts['h2spec'] = 'no' if found.failed else ','.join(runs)
    return outcome


def e2e(_: bool) -> Outcome:
    outcome = build('release')
    tests = python_tests('e2e', 'e2e', jobs=3)
    outcome.add(tests)
    modules = {name.split('.')[1] for name in tests.passed + tests.failed + [n for n, _ in tests.skipped]
               if name.startswith('e2e.')}
    for module in modules:
        mine = f'e2e.{module}.'
        whole = (any(n.startswith(mine) for n in tests.passed)
                 and not any(n.startswith(mine) for n in tests.failed))
        outcome.facts['e2e.' + module.removeprefix('test_')] = 'yes' if whole else 'no'
    return outcome


# The ways of test/support/modes.py in which everything that speaks HTTP/1.1 is tried again.
TLS_MODES = ('client', 'client12', 'upstream')
# End-to-end modules that do not depend on the way, nor on a program with a load or a screen of its own.
CORE_MODULES = ('test_messages', 'test_streams', 'test_movers', 'test_balance', 'test_logs', 'test_life', 'test_limits',
                'test_attacks')


def core_patterns() -> list[str]:
    return [argument for module in CORE_MODULES for argument in ('-k', f'e2e.{module}.')]


def tls(_: bool) -> Outcome:
    """The core's tests over TLS in user space."""
    outcome = build('release')
    good = []
    for mode in TLS_MODES:
        tests = python_tests(f'tls-{mode}', 'conformance', 'e2e', '-k', 'conformance.', *core_patterns(),
                             env={'RINGSIDE_TEST_TLS': mode})
        outcome.add(tests, f'{mode}.')
        if tests.passed and not tests.failed:
            good.append(mode)
    outcome.facts['tls'] = ','.join(good) or 'no'
    return outcome


def soak(_: bool) -> Outcome:
    """The short form; the long one is test/soak/soak --minutes 30."""
    outcome = build('release')
    if outcome.failed:
        return outcome
    outcome.add(python_tests('soak-rules', 'soak'))
    # It prints its results as the runner does. The limit bounds a hang on a slow machine.
    done = run('soak', sys.executable, '-B', 'test/soak/soak', seconds=600)
    found = read_finished('soak', done, read_runner_output(done.text))
    outcome.add(found)
    outcome.facts['soak'] = 'yes' if found.passed and not found.failed else 'no'
    return outcome


def simulation(program: pathlib.Path, name: str, *arguments: str) -> bool:
    done = run(name, program, *arguments, seconds=900, env=SANITIZER_ENV)
    if done.status != 0:
        print(f'  FAIL {name}: ringside-sim {" ".join(arguments)}')
        show(done, 30)
    else:
        done.log.unlink(missing_ok=True)
    return done.status == 0


def simulate(quick: bool) -> Outcome:
    """The kept seeds, and fresh ones, in pieces; each piece that fails names the seed."""
    program = executables('build-asan', 'ringside-sim').get('ringside-sim')
    kept = ROOT / 'test' / 'sim' / 'seeds.txt'
    if program is None or not kept.exists():
        print('  FAIL sim: ringside-sim or test/sim/seeds.txt is missing')
        return Outcome(failed=['sim (missing)'])
    outcome = Outcome()
    kept_count = len(re.findall(r'^\d+', kept.read_text(), re.M))
    outcome.record(f'sim.kept-{kept_count}', simulation(program, 'sim-kept', '--replay', str(kept)))
    count = int(os.environ.get('RINGSIDE_SIM_SEEDS', '40' if quick else '300'))
    first = int(os.environ.get('RINGSIDE_SIM_FIRST_SEED', random.SystemRandom().randrange(10**12)))
    print(f'  {kept_count} kept seeds, and {count} fresh ones from {first}', flush=True)
    step = 20
    pieces = [(at, min(step, first + count - at)) for at in range(first, first + count, step)]

    def one(piece: tuple[int, int]) -> tuple[tuple[int, int], bool]:
        at, length = piece
        return piece, simulation(program, f'sim-{at}', '--seed', str(at), '--seeds', str(length))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for (at, length), good in pool.map(one, pieces):
            if good:
                outcome.passed += [f'sim.seed-{seed}' for seed in range(at, at + length)]
            else:
                outcome.failed.append(f'sim.seeds-{at}-to-{at + length - 1}')
    return outcome


def asan(quick: bool) -> Outcome:
    outcome = build('asan')
    if outcome.failed:
        return outcome
    outcome.add(meson_tests('build-asan', 'unit', SANITIZER_ENV))
    outcome.add(simulate(quick))
    outcome.add(replay())
    if not quick:
        program = {**SANITIZER_ENV, 'RINGSIDE': str(ROOT / 'build-asan' / 'ringside')}
        outcome.add(python_tests('conformance-asan', 'conformance', env=program, jobs=6), 'asan.')
    outcome.facts.update({'asan': 'yes', 'ubsan': 'yes', 'sim': 'yes'})
    return outcome


def tsan(_: bool) -> Outcome:
    outcome = check('configure-tsan', 'scripts/build', '--no-install', '--tsan', '--configure')
    if outcome.failed:
        return outcome
    # `meson test` builds what the suite needs, and nothing else.
    outcome.add(meson_tests('build-tsan', 'threads', SANITIZER_ENV))
    outcome.facts['tsan'] = 'yes'
    return outcome


def fuzzers() -> dict[str, pathlib.Path]:
    return executables('build-asan', 'fuzz-*')


def corpus_of(name: str) -> pathlib.Path:
    return ROOT / 'test' / 'fuzz' / 'corpus' / name.removeprefix('fuzz-')


def replay() -> Outcome:
    """Runs every kept input once through its fuzzer."""
    outcome = Outcome()
    for name, program in fuzzers().items():
        corpus = corpus_of(name)
        if not corpus.is_dir() or not any(corpus.iterdir()):
            print(f'  FAIL replay of {name}: {corpus.relative_to(ROOT)} holds no input')
            outcome.failed.append(f'replay.{name} (no corpus)')
            continue
        outcome.add(check(f'replay.{name}', program, '-runs=0', corpus, seconds=300, env=SANITIZER_ENV))
    if not outcome.count:
        print('  FAIL replay: there is no fuzzer')
        outcome.failed.append('replay (no fuzzer)')
    return outcome


def fuzz(_: bool) -> Outcome:
    """Each fuzzer for a short while, beginning with its corpus."""
    outcome = build('fuzz')
    if outcome.failed:
        return outcome
    seconds = int(os.environ.get('RINGSIDE_FUZZ_SECONDS', '20'))
    found = fuzzers()
    folder = ROOT / 'build-logs' / 'fuzz'

    def one(item: tuple[str, pathlib.Path]) -> Outcome:
        name, program = item
        scratch = folder / name
        scratch.mkdir(parents=True, exist_ok=True)
        seed = random.SystemRandom().randrange(1, 2**32)
        return check(f'fuzz.{name}', program, f'-max_total_time={seconds}', f'-seed={seed}', '-timeout=10',
                     '-rss_limit_mb=2048', '-print_final_stats=1', f'-artifact_prefix={scratch}/crash-',
                     scratch, corpus_of(name), seconds=seconds + 120, env=SANITIZER_ENV)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for result in pool.map(one, found.items()):
            outcome.add(result)
    outcome.facts['fuzz'] = ','.join(sorted(name.removeprefix('fuzz-') for name in found)) or 'no'
    return outcome
