"""The suite under kernel 6.1: one boot of the lab runs it all, since a start takes seconds."""

from __future__ import annotations

import re
import sys

from .builds import CORE_MODULES, TLS_MODES, build, executables
from .outcome import ROOT, Outcome, read_finished, read_gtest_output, read_runner_output, run

# With programs beside these modules that need no load or screen: the lab has one slow CPU.
TLS_MODULES = ('test_tls', 'test_tls_counts', 'test_tls_early', 'test_tls_upstream', 'test_https')
# By themselves, since they read the kernel's counters.
COUNTING = ('test_tls_records', 'test_tls_memory')
# Over kernel TLS, which only the lab has.
KTLS_TESTS = ('e2e.test_messages.', 'e2e.test_movers.', 'e2e.test_limits.', 'e2e.test_streams.')
SECONDS = 2400


def patterns(modules: tuple[str, ...]) -> str:
    return ' '.join(f'-k e2e.{module}.' for module in modules)


def script() -> str:
    """What runs inside. Every program runs, whatever the one before it said."""
    programs = [path for name, path in sorted(executables('build').items())
                if name.startswith(('parity', 'unit-ring', 'unit-net', 'unit-tls', 'lab-'))]
    modules = patterns(CORE_MODULES + TLS_MODULES)
    # By default TCP may have an eighth of this small machine's memory, which a hundred slow readers fill.
    lines = ['failed=0', 'echo "lab kernel $(uname -r)"', 'echo 65536 98304 131072 > /proc/sys/net/ipv4/tcp_mem']
    for program in programs:
        lines.append(f'echo "@@ {program.name}"; {program} --gtest_color=no || '
                     f'{{ failed=1; echo "@@! {program.name} $?"; }}')
    lines += [
        'echo "@@ conformance"; /usr/bin/python3 test/support/runner.py -j 6 conformance || failed=1',
        f'echo "@@ e2e"; /usr/bin/python3 test/support/runner.py -j 3 e2e {modules} || failed=1',
    ]
    lines.append(f'echo "@@ records"; /usr/bin/python3 test/support/runner.py -j 1 e2e {patterns(COUNTING)} || '
                 'failed=1')
    lines.append('echo "@@@"; cat /proc/net/tls_stat')
    for mode in TLS_MODES:
        lines.append(f'echo "@@ ktls.{mode}"; RINGSIDE_TEST_TLS={mode} /usr/bin/python3 test/support/runner.py -j 3 '
                     f'e2e {" ".join("-k " + test for test in KTLS_TESTS)} || failed=1')
    # That it was the kernel that made the records.
    lines += ['echo "@@@"; cat /proc/net/tls_stat', 'exit $failed']
    return '\n'.join(lines)


def wrong_counts(text: str) -> list[str]:
    """What the kernel's counters, before and after the tests of the core, say against them."""
    wrong = []
    for name in ('TlsTxSw', 'TlsRxSw', 'TlsDecryptError'):
        counts = [int(count) for count in re.findall(rf'^{name}\s+(\d+)$', text, re.M)]
        if len(counts) != 2:
            wrong.append(f'ktls ({name}: the kernel does not say)')
        elif name == 'TlsDecryptError' and counts[0] != counts[1]:
            wrong.append(f'ktls ({name}: {counts[1] - counts[0]} records could not be opened)')
        elif name != 'TlsDecryptError' and counts[0] >= counts[1]:
            wrong.append(f'ktls ({name}: no connection was handed to the kernel)')
    return wrong


def lab(_: bool) -> Outcome:
    outcome = build('release', '*')
    if outcome.failed:
        return outcome
    names = set(executables('build'))
    for needed in ('parity', 'unit-ring', 'lab-tls'):
        if not any(name.startswith(needed) for name in names):
            print(f'  FAIL lab: there is no target {needed}')
            outcome.failed.append(f'lab.{needed} (the target is missing)')
    done = run('lab', 'scripts/lab', '--timeout', str(SECONDS), '--memory', '1536M', '--', 'bash', '-c', script(),
               seconds=SECONDS + 60,
               env={'RINGSIDE_TEST_SLOWDOWN': '5', 'PYTHONDONTWRITEBYTECODE': '1',
                    'RINGSIDE': str(ROOT / 'build' / 'ringside')})
    inside = Outcome()
    for name, status in re.findall(r'^@@! (\S+) (\d+)$', done.text, re.M):
        if int(status) != 1:  # GoogleTest ends with 1 when a test failed: this one broke off
            inside.failed.append(f'{name} (exit status {status})')
    for section in re.split(r'^@@ ', done.text, flags=re.M)[1:]:
        name = section.split('\n', 1)[0]
        by_runner = name in ('conformance', 'e2e', 'records') or name.startswith('ktls.')
        results = read_runner_output(section) if by_runner else read_gtest_output(section)
        if not results.count:
            inside.failed.append(f'{name} (no test ran)')
        inside.add(results, f'{name}.' if name.startswith('ktls.') else '')
    inside.failed += wrong_counts(done.text)
    outcome.facts['ktls'] = 'no' if any('ktls' in name for name in inside.failed) else 'lab'
    outcome.add(read_finished('lab', done, inside), 'lab.')
    kernel = re.search(r'^lab kernel (\d+\.\d+)', done.text, re.M)
    outcome.facts['lab'] = kernel.group(1) if kernel else 'no'
    return outcome


if __name__ == '__main__':
    print(script())
    sys.exit(0)
