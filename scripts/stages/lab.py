"""The suite under kernel 6.1: one boot of the lab runs it all, since a start takes seconds."""

from __future__ import annotations

import re
import sys

from .builds import build, executables
from .outcome import ROOT, Outcome, read_finished, read_gtest_output, read_runner_output, run

# End-to-end modules that need no program with a load or a screen of its own: the lab has one slow CPU.
E2E_MODULES = ('test_messages', 'test_streams', 'test_movers', 'test_balance', 'test_logs', 'test_life', 'test_limits',
               'test_attacks', 'test_tls', 'test_tls_upstream')
SECONDS = 900


def script() -> str:
    """What runs inside. Every program runs, whatever the one before it said."""
    programs = [path for name, path in sorted(executables('build').items())
                if name.startswith(('parity', 'unit-ring', 'unit-net', 'unit-tls', 'lab-'))]
    modules = ' '.join(f'-k e2e.{module}.' for module in E2E_MODULES)
    # By default TCP may have an eighth of this small machine's memory, which a hundred slow readers fill.
    lines = ['failed=0', 'echo "lab kernel $(uname -r)"', 'echo 65536 98304 131072 > /proc/sys/net/ipv4/tcp_mem']
    for program in programs:
        lines.append(f'echo "@@ {program.name}"; {program} --gtest_color=no || '
                     f'{{ failed=1; echo "@@! {program.name} $?"; }}')
    lines += [
        'echo "@@ conformance"; /usr/bin/python3 test/support/runner.py -j 6 conformance || failed=1',
        f'echo "@@ e2e"; /usr/bin/python3 test/support/runner.py -j 3 e2e {modules} || failed=1',
        'exit $failed']
    return '\n'.join(lines)


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
        results = read_runner_output(section) if name in ('conformance', 'e2e') else read_gtest_output(section)
        if not results.count:
            inside.failed.append(f'{name} (no test ran)')
        inside.add(results)
    outcome.add(read_finished('lab', done, inside), 'lab.')
    kernel = re.search(r'^lab kernel (\d+\.\d+)', done.text, re.M)
    outcome.facts['lab'] = kernel.group(1) if kernel else 'no'
    return outcome


if __name__ == '__main__':
    print(script())
    sys.exit(0)
