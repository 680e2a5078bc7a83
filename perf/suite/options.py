"""The command line of perf/compare."""

from __future__ import annotations

import argparse
import os
import pathlib

from . import loads, nginx, proxies, table
from .rows import select

ROOT = pathlib.Path(__file__).resolve().parents[2]
ABOUT = '''Ringside beside nginx, HAProxy and whatever else is named, on this machine, in one run.

Every proxy does the same job with one ring, worker or thread, without logs, with keep-alive to the same
upstream (an nginx, everything in memory). Rounds alternate between the proxies, where CPU time is measured
every tenth of a second; medians are shown, and the ratio to nginx with the lowest and highest ratio of a
pair of rounds. CPU is user and system time of all
threads and children, io_uring's kernel workers included. A round with a failed request does not count.
With two CPUs or more the proxies have the first and the load and the upstream the next.
docs/benchmarks.md says more.'''
EXAMPLES = '''examples:
  perf/compare                                            all rows, about half an hour
  perf/compare --rows keep-alive,download-1m --rounds 3   a quick look
  perf/compare --ringside-old /tmp/ringside               beside an older ringside
  perf/compare --with 'caddy=caddy reverse-proxy --from :{port} --to 127.0.0.1:{upstream}'

exit status: 0; 1 if a row could not be measured or --gate was missed; 2 for a mistake or a busy machine'''


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog='perf/compare', description=ABOUT, epilog=EXAMPLES,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)
    who = made.add_argument_group('who')
    who.add_argument('--ringside', default=str(ROOT / 'build' / 'ringside'), metavar='FILE',
                     help='the program (default build/ringside)')
    who.add_argument('--ringside-old', metavar='FILE', help='one more, such as an older version')
    who.add_argument('--with', dest='others', action='append', default=[], metavar='NAME=COMMAND',
                     help='one more proxy; {port}, {upstream} (a port too), {rings} and {folder} are filled in')
    who.add_argument('--without', default='', metavar='LIST', help='leave these out, such as haproxy')
    what = made.add_argument_group('what')
    what.add_argument('--list', action='store_true', help='list the rows and end')
    what.add_argument('--rows', metavar='LIST', help='only these, with commas between them')
    what.add_argument('--rounds', type=int, default=5, metavar='N', help='rounds of each proxy (5)')
    what.add_argument('--seconds', type=float, default=4, metavar='S', help='length of a round (4)')
    what.add_argument('--turn', type=float, default=100, metavar='MS',
                      help='turns within a round of the rows of CPU time (100)')
    what.add_argument('--load', choices=sorted(loads.TOOLS),
                      help='load generator, on rows where it can do the job')
    what.add_argument('--rate', type=float, default=2000, metavar='R',
                      help='requests a second of the latency row; fairness has half of it (2000)')
    what.add_argument('--rings', type=int, default=4, metavar='N', help='rings in the rows of the pool (4)')
    what.add_argument('--syscalls', action='store_true', help='count system calls too, in runs of their own')
    what.add_argument('--profile', action='store_true',
                      help='split the CPU time into kernel, own code and libraries, in runs of their own')
    how = made.add_argument_group('how')
    how.add_argument('--no-pin', dest='pin', action='store_false', help='let the kernel place everything')
    how.add_argument('--busy-ok', action='store_true', help='go on though the machine is busy, and say so')
    how.add_argument('--wait', type=float, default=0, metavar='S', help='wait so long for a quiet machine (0)')
    how.add_argument('--json', metavar='FILE', help='write the result here too')
    how.add_argument('--svg', metavar='FILE', help='draw it here')
    how.add_argument('--gate', choices=('first', 'aim'), help='fail if ringside misses a target of this kind')
    return made


def chosen_kinds(options: argparse.Namespace, made: argparse.ArgumentParser) -> list[proxies.Kind]:
    without = set(filter(None, options.without.split(',')))
    kinds = []
    for name, program in (('ringside', options.ringside), ('ringside-old', options.ringside_old)):
        if program and name not in without:
            if not os.access(program, os.X_OK):
                made.error(f'{program} is missing' + (': run scripts/build first' if name == 'ringside' else ''))
            kinds.append(proxies.ringside(name, os.path.abspath(program)))
    if not os.access(nginx.PROGRAM, os.X_OK):
        made.error('nginx is not installed (package nginx); it is the yardstick and the upstream')
    kinds.append(proxies.nginx_kind())
    if 'haproxy' not in without:
        if os.access(proxies.HAPROXY, os.X_OK):
            kinds.append(proxies.haproxy())
        else:
            print('haproxy is not installed (package haproxy), so it is left out')
    for text in options.others:
        name, equals, template = text.partition('=')
        if not (name and equals and template):
            made.error(f'--with takes NAME=COMMAND, not {text}')
        kinds.append(proxies.other(name, template))
    return kinds


def print_rows() -> None:
    for row in select(None):
        target = row.target
        goals = 'no target'
        if target:
            goals = f'{table.limit(target, target.first)}, aim {table.limit(target, target.aim)}'
        print(f'{row.name:23} {row.title} [{row.unit}; {goals}{"; " + row.tool if row.tool else ""}]')
