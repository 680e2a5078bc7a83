"""The processes around ringside: servers, clients, raw load."""

from __future__ import annotations

import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import threading
import time
from typing import Callable

from support import nginx

from .ledger import Ledger
from .rules import Outage

HERE = pathlib.Path(__file__).resolve().parent


class Peer:
    """A program of this folder. Its lines go to `hear`; it ends when its standard input does."""

    def __init__(self, hear: Callable[[bytes], None], program: str, *arguments: object):
        self.hear = hear
        self.process = subprocess.Popen([sys.executable, '-B', str(HERE / program), *map(str, arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.hear(line)

    def finish(self, seconds: float) -> bool:
        """Asks it to end, and waits. False: it had to be killed."""
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        finally:
            self.thread.join(10)
        return True


class Server(Peer):
    """An upstream server on a port that it chooses once and keeps."""

    def __init__(self, ledger: Ledger, *arguments: object, port: int = 0):
        self._ports: queue.Queue[int] = queue.Queue()
        self._ledger = ledger
        super().__init__(self._line, 'server.py', '--port', port, *arguments)
        self.port = self._ports.get(timeout=30)
        self.address = f'127.0.0.1:{self.port}'

    def _line(self, line: bytes) -> None:
        if line.startswith(b'port '):
            self._ports.put(int(line[5:]))
        else:
            self._ledger.server_says(line)


class Stopped(threading.Thread):
    """Stops and starts one server again and again, by SIGTERM and SIGKILL in turn."""

    def __init__(self, ledger: Ledger, server: Server):
        super().__init__(daemon=True)
        self.ledger, self.server = ledger, server
        self.stops = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(random.uniform(1.5, 4)):
            self._once()

    def _once(self) -> None:
        old = self.server
        outage = Outage(old.address, time.time())
        with self.ledger.lock:
            self.ledger.outages.append(outage)
        old.process.send_signal(signal.SIGKILL if self.stops % 2 else signal.SIGTERM)
        old.process.wait()
        outage.over = time.time()
        old.thread.join(10)
        time.sleep(random.uniform(0, 1))
        self.server = Server(self.ledger, port=old.port)
        self.stops += 1

    def finish(self) -> None:
        self.stopping.set()
        self.join()


class RawLoad(threading.Thread):
    """wrk and h2load in turn, against nginx behind ringside: as much as goes, judged as a whole."""

    def __init__(self, ledger: Ledger, port: int, program_of: Callable[[str], str]):
        super().__init__(daemon=True)
        self.ledger = ledger
        url = f'http://127.0.0.1:{port}/raw/small'
        self.commands = ([program_of('wrk'), '-t', '1', '-c', '24', '-d', '3s', url],
                         [program_of('h2load'), '--h1', '-n', '8000', '-c', '16', '-m', '4', url])
        self.requests = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        turn = 0
        while not self.stopping.wait(1):
            done = subprocess.run(self.commands[turn % 2], capture_output=True, text=True, timeout=600, check=False)
            self._judge(done)
            turn += 1

    def _judge(self, done: subprocess.CompletedProcess[str]) -> None:
        found = re.search(r'(\d+) requests in', done.stdout)
        h2load = re.search(r'(\d+) succeeded, 0 failed, 0 errored, 0 timeout', done.stdout)
        bad = re.search(r'Socket errors|Non-2xx', done.stdout)
        if done.returncode or bad or not (found or h2load):
            with self.ledger.lock:
                self.ledger.problem(f'{done.args[0]}: {done.stdout}{done.stderr}')
            return
        self.requests += int((found or h2load)[1])  # type: ignore[index]

    def finish(self) -> None:
        self.stopping.set()
        self.join()


class Cast:
    """All of them. The servers are there from the start; `play` begins the load, `leave` ends it."""

    def __init__(self, ledger: Ledger):
        self.ledger = ledger
        self.nginx = nginx.Nginx()
        self.steady = [Server(ledger), Server(ledger)]
        self.closing = Server(ledger, '--close-idle')
        self.dying = Server(ledger)
        self.stopped: Stopped | None = None
        self.raw: RawLoad | None = None
        self.clients: list[Peer] = []

    def config(self, rings: int) -> str:
        first, second = (server.address for server in self.steady)
        pools = {'steady': [first, second], 'closing': [self.closing.address, first],
                 'dying': [self.dying.address, second], 'raw': [self.nginx.address]}
        text = CONFIG.replace('@RINGS@', str(rings))
        for name, servers in pools.items():
            text += f'[upstream.{name}]\nservers = {servers}\nidle_timeout = "2s"\n'.replace("'", '"')
        for host, extra in (('*', ''), ('stall.test', 'timeouts = { body_idle = "1s" }\n')):
            text += f'[[site]]\nhosts = ["{host}"]\n{extra}'
            for name in pools:
                text += f'[[site.route]]\npath = "/{name}/*"\nupstream = "{name}"\nstrip_prefix = "/{name}"\n'
        return text

    def fill_logs(self, port: int, rings: int, program_of: Callable[[str], str]) -> None:
        """The queues of access records are touched as far as they fill, and they fill in a circle: 8 MiB a ring
        that would look like growth. So each goes round once before the load begins."""
        done = subprocess.run([program_of('h2load'), '--h1', '-n', str(50_000 * rings), '-c', '100', '-t', '1', '-m',
                               '4', f'http://127.0.0.1:{port}/raw/small'], capture_output=True, text=True,
                              timeout=1200, check=False)
        if f'{50_000 * rings} succeeded, 0 failed' not in done.stdout:
            with self.ledger.lock:
                self.ledger.problem(f'h2load: {done.stdout}{done.stderr}')

    def play(self, port: int, seed: int, groups: list[str], program_of: Callable[[str], str]) -> None:
        self.stopped = Stopped(self.ledger, self.dying)
        self.stopped.start()
        self.raw = RawLoad(self.ledger, port, program_of)
        self.raw.start()
        self.clients = [Peer(self.ledger.client_says, 'clients.py', group, port, seed) for group in groups]

    def leave(self) -> None:
        """The load ends, each client after the request that it is at."""
        for client in self.clients:
            assert client.process.stdin
            client.process.stdin.close()
        for client in self.clients:
            if not client.finish(150):
                with self.ledger.lock:
                    self.ledger.problem('clients did not end')
        self.clients = []
        for part in (self.raw, self.stopped):
            if part:
                part.finish()

    def close(self) -> None:
        for client in self.clients:
            client.finish(5)
        for part in (self.raw, self.stopped):
            if part and part.is_alive():
                part.finish()
        dying = self.stopped.server if self.stopped else self.dying
        for server in (*self.steady, self.closing, dying):
            server.finish(5)
        self.nginx.close()


CONFIG = '''[server]
rings = @RINGS@
buffers = 256   # few, so that running out of them is part of the test, and all are used within the warm-up
[timeouts]
response_header = "120s"   # a machine that is full of load is slow, and that must not fail a request
connect = "60s"
drain = "10s"
[forwarding]
trusted_proxies = ["127.0.0.0/8"]   # so that clients choose their request ids
[log]
level = "debug"
access = { format = "json", file = "@DIR@/access.log" }
[listen.web]
address = "127.0.0.1:0"
'''
