"""What a process and its children use: CPU time, memory, system calls. Linux only."""

from __future__ import annotations

import pathlib
import time


def stat_fields(pid: int) -> list[str] | None:
    """/proc/PID/stat after the name, which may have spaces: state, parent, ..."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def tree(pid: int) -> list[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in pathlib.Path('/proc').iterdir():
        if entry.name.isdigit() and (fields := stat_fields(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def process_cpu(pid: int) -> float:
    """Seconds of user and system time of all threads of a process, those that ended and io_uring's kernel
    workers (threads of the process too) included. This is the process's CPU clock (clock_getcpuclockid(3)),
    the same sum as in /proc/PID/stat, but in nanoseconds and not in ticks."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
    except OSError:
        return 0.0  # it ended


def tree_cpu(pid: int) -> float:
    return sum(process_cpu(each) for each in tree(pid))


def parse_rollup(text: str) -> dict[str, int]:
    """/proc/PID/smaps_rollup, in bytes."""
    sizes = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[2] == 'kB':
            sizes[words[0].rstrip(':')] = int(words[1]) * 1024
    return sizes


def private_memory(pid: int) -> dict[str, int]:
    """Private bytes of the whole tree: dirty (its own data) and clean (pages of files only it uses)."""
    total = {'dirty': 0, 'clean': 0}
    for each in tree(pid):
        try:
            sizes = parse_rollup(pathlib.Path(f'/proc/{each}/smaps_rollup').read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
        total['dirty'] += sizes.get('Private_Dirty', 0)
        total['clean'] += sizes.get('Private_Clean', 0)
    return total
