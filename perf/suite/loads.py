"""Load generators: how each is asked for a job, and what it can do."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
from collections.abc import Callable

from . import parsers
from .lab import Lab


@dataclasses.dataclass(frozen=True)
class Job:
    """One burst of load on one path."""

    path: str
    connections: int
    seconds: float
    fresh: bool = False  # a new connection for each request
    upload: pathlib.Path | None = None  # POST this file
    rate: float | None = None  # open loop: so many requests a second, latency from when each was due
    tls: bool = False
    streams: int = 0  # of HTTP/2, at a time on each connection; 0: HTTP/1.1


@dataclasses.dataclass(frozen=True)
class Tool:
    """A load generator."""

    name: str
    install: str
    version: str  # the option that prints it
    can: Callable[[Job], bool]
    command: Callable[[str, Job, str, pathlib.Path], list[str]]
    parse: Callable[[str], parsers.Outcome]


def wrk_command(program: str, job: Job, url: str, folder: pathlib.Path) -> list[str]:
    script = folder / 'wrk.lua'
    text = parsers.WRK_DONE
    if job.upload:
        text += (f'wrk.method = "POST"\nlocal file = io.open("{job.upload}", "rb")\n'
                 'wrk.body = file:read("*a")\nfile:close()\n')
    script.write_text(text)
    close = ['-H', 'Connection: close'] if job.fresh else []
    return [program, '-t', '1', '-c', str(job.connections), '-d', f'{max(1, round(job.seconds))}s', '--timeout',
            '20s', '-s', str(script), *close, url]


def h2load_command(program: str, job: Job, url: str, folder: pathlib.Path) -> list[str]:
    body = ['-d', str(job.upload)] if job.upload else []
    protocol = ['-m', str(job.streams)] if job.streams else ['--h1']
    return [program, *protocol, '-t', '1', '-c', str(job.connections), '-D', f'{job.seconds:g}', *body, url]


def oha_command(program: str, job: Job, url: str, folder: pathlib.Path) -> list[str]:
    command = [program, '--no-tui', '--output-format', 'json', '-c', str(job.connections), '-z',
               f'{job.seconds:g}s']
    if job.rate:
        command += ['-q', f'{job.rate:g}', '--latency-correction']
    if job.fresh:
        command.append('--disable-keepalive')
    if job.upload:
        command += ['-m', 'POST', '-D', str(job.upload)]
    if job.tls:
        command.append('--insecure')
    return [*command, url]


TOOLS = {tool.name: tool for tool in (
    Tool('wrk', 'the package wrk', '-v', lambda job: job.rate is None and not job.streams, wrk_command, parsers.wrk),
    Tool('h2load', 'the package nghttp2-client', '--version', lambda job: job.rate is None and not job.fresh,
         h2load_command, parsers.h2load),
    Tool('oha', '"cargo install oha"', '--version', lambda job: not job.streams, oha_command, parsers.oha))}


def find(name: str) -> str | None:
    """Where a program is, also where cargo puts it."""
    cargo = pathlib.Path.home() / '.cargo' / 'bin' / name
    return shutil.which(name) or (str(cargo) if os.access(cargo, os.X_OK) else None)


def choose(job: Job, wanted: str | None, default: str) -> Tool:
    """The tool that was asked for if it can do the job, or the row's own."""
    tool = TOOLS[wanted] if wanted else TOOLS[default]
    return tool if tool.can(job) else TOOLS[default]


@dataclasses.dataclass
class Running:
    """A load generator at work."""

    lab: Lab
    tool: Tool
    job: Job
    process: subprocess.Popen
    report: pathlib.Path

    def finish(self) -> parsers.Outcome:
        """Waits for its end. A tool that fails or says nothing is a failed round, not a crash."""
        try:
            self.process.wait(self.job.seconds + 30)
            return self.tool.parse(self.report.read_text(errors='replace'))
        except (subprocess.TimeoutExpired, parsers.ParseError) as error:
            print(f'  {self.tool.name}: {error}', flush=True)
            return parsers.Outcome(0, 1, 0, self.job.seconds)
        finally:
            self.end()

    def end(self) -> None:
        """Also in the middle of its work, and when it is stopped."""
        if self.process in self.lab.processes:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGCONT)
            self.lab.stop([self.process])


def begin(lab: Lab, tool: Tool, job: Job, port: int) -> Running:
    program = find(tool.name)
    if program is None:
        raise SystemExit(f'{tool.name} is not installed: it comes with {tool.install}')
    folder = lab.new_folder(tool.name)
    command = tool.command(program, job, f'http{"s" if job.tls else ""}://127.0.0.1:{port}{job.path}', folder)
    report = folder / 'report'
    return Running(lab, tool, job, lab.start(command, lab.load_cpu, report, folder / 'errors'), report)


def run(lab: Lab, tool: Tool, job: Job, port: int) -> parsers.Outcome:
    """Runs one job to its end."""
    return begin(lab, tool, job, port).finish()
