"""A temporary folder and the processes of one run: started here, ended here, nobody else's touched."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_SECONDS = 15
STOP_SECONDS = 5
ROOM_BYTES = 2 << 30  # nginx may put 1 GB of a response that nobody reads into its folder


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


def choose_base() -> str | None:
    """A folder in memory if there is room, so that no disk takes part."""
    try:
        room = shutil.disk_usage('/dev/shm').free
    except OSError:
        return None
    return '/dev/shm' if room > ROOM_BYTES and os.access('/dev/shm', os.W_OK) else None


class Lab:
    """Use it in a with statement."""

    def __init__(self, pin: bool):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='ringside-compare-', dir=choose_base()))
        self.processes: list[subprocess.Popen] = []
        cpus = sorted(os.sched_getaffinity(0))
        self.pinning = pin and len(cpus) > 1
        self.proxy_cpu = cpus[0] if self.pinning else None
        self.load_cpu = cpus[1] if self.pinning else None
        self.upstream_cpu = cpus[min(2, len(cpus) - 1)] if self.pinning else None
        self.count = 0

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(list(self.processes))
        shutil.rmtree(self.folder, ignore_errors=True)

    def pinned(self, cpu: int | None, command: list[str]) -> list[str]:
        return command if cpu is None else ['taskset', '-c', str(cpu), *command]

    def new_folder(self, name: str) -> pathlib.Path:
        self.count += 1
        folder = self.folder / f'{self.count}-{name}'
        folder.mkdir()
        return folder

    def start(self, command: list[str], cpu: int | None, log: pathlib.Path,
              errors: pathlib.Path | None = None) -> subprocess.Popen:
        """In a session of its own: a Ctrl-C is for us, and we end it in order."""
        try:
            with log.open('wb') as output, (errors or log).open('ab') as error_output:
                process = subprocess.Popen(self.pinned(cpu, command), stdin=subprocess.DEVNULL, stdout=output,
                                           stderr=error_output, start_new_session=True)
        except OSError as error:
            raise SystemExit(f'cannot start {command[0]}: {error}') from error
        self.processes.append(process)
        return process

    def stop(self, processes: list[subprocess.Popen]) -> None:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in processes:
            end(process)
            self.processes.remove(process)


def end(process: subprocess.Popen) -> None:
    """Waits for it, then kills what is left of its group. The group is its own, and its number cannot be
    another's as long as nobody has collected the process, hence WNOWAIT."""
    deadline = time.monotonic() + STOP_SECONDS
    while process.returncode is None:
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) or time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        else:
            time.sleep(0.01)


def wait_for_port(port: int, process: subprocess.Popen, log: pathlib.Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(('127.0.0.1', port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    said = log.read_text(errors='replace')[-2000:]
    raise SystemExit(f'this does not listen on port {port}: {" ".join(map(str, process.args))}\n{said}')
