"""The upstream of all proxies: an nginx with everything in memory, and what it says about its connections."""

from __future__ import annotations

import pathlib
import re
import shutil
import socket
import time
import urllib.request

from . import nginx
from .lab import Lab, free_port, wait_for_port

FILES = {'1k': 1 << 10, '1k-split': 1 << 10, '1m': 1 << 20, '10m': 10 << 20}
BIG_BYTES = 10 << 30  # a hole: it takes no memory
UPLOAD_BYTES = 1 << 20
CONNECTIONS = 16384


class Upstream:
    """Started in the lab; pid, port."""

    def __init__(self, lab: Lab):
        folder = lab.new_folder('upstream')
        files = folder / 'files'
        files.mkdir()
        for name, size in FILES.items():
            (files / name).write_bytes(b'x' * size)
        with (files / 'big').open('wb') as big:
            big.truncate(BIG_BYTES)
        self.upload = files / '1m'
        self.port, self.status_port = free_port(), free_port()
        # A copy, so that its pages are not those of the nginx that is measured.
        program = shutil.copy2(nginx.PROGRAM, folder / 'nginx')
        http = nginx.upstream(self.port, self.status_port, folder / 'inner', files, files / '1k')
        config = nginx.write(folder, http, CONNECTIONS)
        log = folder / 'log'
        self.process = lab.start(nginx.command(config, str(program)), lab.upstream_cpu, log)
        wait_for_port(self.port, self.process, log)
        check_reads_uploads(self.port)

    @property
    def pid(self) -> int:
        return self.process.pid

    def counts(self) -> tuple[int, int]:
        """Connections accepted and requests answered so far; asking is one of each."""
        with urllib.request.urlopen(f'http://127.0.0.1:{self.status_port}/', timeout=10) as answer:
            return parse_status(answer.read().decode())


def parse_status(text: str) -> tuple[int, int]:
    match = re.search(r'^\s*(\d+) (\d+) (\d+)\s*$', text, re.M)
    if not match:
        raise SystemExit(f'the upstream has no counts: {text!r}')
    return int(match.group(1)), int(match.group(3))


def check_reads_uploads(port: int) -> None:
    """The row of uploads means nothing unless the last byte is waited for."""
    with socket.create_connection(('127.0.0.1', port), 10) as sock:
        head = f'POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: {UPLOAD_BYTES}\r\n\r\n'
        sock.sendall(head.encode() + b'x' * (UPLOAD_BYTES - 1))
        time.sleep(0.2)
        sock.setblocking(False)
        try:
            early = sock.recv(64)
        except BlockingIOError:
            early = b''
        if early:
            raise SystemExit('the upstream answers an upload before its end, so that row would be wrong')
        sock.settimeout(10)
        sock.sendall(b'x')
        if not sock.recv(64).startswith(b'HTTP/1.1 204'):
            raise SystemExit('the upstream does not take uploads')
