"""Very many clients in a few processes, each with descriptors of its own.

A test uses Crowd. Run as a program, this file is one of its processes: it connects COUNT clients of one KIND, prints
a line when they are as they should be, and then answers each line that it reads with another one.

    idle      each makes a request and stays; `ask`: each makes another one; answers how many got a whole answer
    readers   each reads a response at SLOW_BYTES a step; `on BYTES`: answers when every one has read so many more
    writers   each sends a body without end, as much as is taken; stands when nobody could send for a while
"""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import subprocess
import sys
import time

STEP_S = 0.1
SLOW_BYTES = 1024  # 10 KB/s
ENDLESS = 1 << 40
STANDING_STEPS = 10
KERNEL_BYTES = 65536  # at the clients' ends: the kernel's memory for TCP is that of other tests, too
WAIT_S = 60
SPARE_DESCRIPTORS = 64


class Crowd:
    """Clients in processes of their own; use it in a with statement, or close it."""

    def __init__(self, kind: str, port: int, count: int, path: str, processes: int = 1):
        share, rest = divmod(count, processes)
        self._parts = [
            subprocess.Popen([sys.executable, '-B', __file__, kind, str(port), str(share + (number < rest)), path],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number in range(processes)]
        self.standing = self._read()

    def ask(self, line: str = 'ask') -> int:
        """The sum of what the parts answer."""
        for part in self._parts:
            assert part.stdin
            part.stdin.write(line + '\n')
            part.stdin.flush()
        return self._read()

    def _read(self) -> int:
        total = 0
        for part in self._parts:
            assert part.stdout
            line = part.stdout.readline().strip()
            if not line.isdigit():
                raise AssertionError(f'a part of the crowd says {line!r}')
            total += int(line)
        return total

    def close(self) -> None:
        for part in self._parts:
            part.kill()
            part.wait()
            for stream in (part.stdin, part.stdout):
                if stream:
                    stream.close()

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# ---------------------------------------------------------------- one part, a process of its own


class Idle:
    """Requests are made one after the other."""

    def __init__(self, port: int, count: int, path: str):
        self._request = f'GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n'.encode()
        self._socks: list[socket.socket] = []
        for _ in range(count):
            with contextlib.suppress(OSError):
                self._socks.append(socket.create_connection(('127.0.0.1', port), WAIT_S))
        self.standing = self.answer('ask')

    def answer(self, _: str) -> int:
        return sum(self._ask(sock) for sock in self._socks)

    def _ask(self, sock: socket.socket) -> bool:
        data = b''
        try:
            sock.sendall(self._request)
            while b'\r\n\r\n' not in data:
                data += self._some(sock)
            head, _, body = data.partition(b'\r\n\r\n')
            fields = dict(line.lower().split(b': ', 1) for line in head.split(b'\r\n')[1:])
            left = int(fields[b'content-length']) - len(body)
            while left > 0:
                left -= len(self._some(sock))
            return left == 0 and head.startswith(b'HTTP/1.1 200 ') and fields.get(b'connection') != b'close'
        except (OSError, KeyError):
            return False

    @staticmethod
    def _some(sock: socket.socket) -> bytes:
        data = sock.recv(65536)
        if not data:
            raise ConnectionResetError
        return data

    def step(self) -> None:
        """They are idle."""


class Readers:
    """They stand when each has read its first bytes."""

    def __init__(self, port: int, count: int, path: str):
        self._socks: list[socket.socket] = []
        for _ in range(count):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KERNEL_BYTES)
            sock.settimeout(WAIT_S)
            sock.connect(('127.0.0.1', port))
            sock.sendall(f'GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n'.encode())
            self._socks.append(sock)
        heads = [sock.recv(SLOW_BYTES) for sock in self._socks]
        self._read = [len(head) for head in heads]
        for sock in self._socks:
            sock.setblocking(False)
        self.standing = sum(head.startswith(b'HTTP/1.1 200 ') for head in heads)

    def answer(self, line: str) -> int:
        goals = [read + int(line.split()[1]) for read in self._read]
        deadline = time.monotonic() + WAIT_S
        while any(read < goal for read, goal in zip(self._read, goals)) and time.monotonic() < deadline:
            self.step()
            time.sleep(STEP_S)
        return sum(read >= goal for read, goal in zip(self._read, goals))

    def step(self) -> None:
        for number, sock in enumerate(self._socks):
            with contextlib.suppress(BlockingIOError):
                self._read[number] += len(sock.recv(SLOW_BYTES))


class Writers:
    """Each sends whatever is taken. `answer`: how many are still connected."""

    def __init__(self, port: int, count: int, path: str):
        self._piece = b'x' * 65536
        head = f'POST {path} HTTP/1.1\r\nHost: a.test\r\nContent-Length: {ENDLESS}\r\n\r\n'.encode()
        self._socks = [socket.create_connection(('127.0.0.1', port), WAIT_S) for _ in range(count)]
        for sock in self._socks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)
            sock.sendall(head)
            sock.setblocking(False)
        quiet, deadline = 0, time.monotonic() + WAIT_S
        while quiet < STANDING_STEPS and time.monotonic() < deadline:
            quiet = 0 if self.step() else quiet + 1
            time.sleep(STEP_S)
        self.standing = self.answer('') if quiet == STANDING_STEPS else 0

    def step(self) -> int:
        """How much was taken."""
        taken = 0
        for sock in self._socks:
            with contextlib.suppress(OSError):
                while True:
                    taken += sock.send(self._piece)
        return taken

    def answer(self, _: str) -> int:
        alive = 0
        for sock in self._socks:
            try:
                sock.recv(1)  # an answer or the end; neither is due
            except BlockingIOError:
                alive += 1
            except OSError:
                pass
        return alive


KINDS = {'idle': Idle, 'readers': Readers, 'writers': Writers}


def main() -> None:
    kind, port, count, path = sys.argv[1:]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if int(count) + SPARE_DESCRIPTORS > hard:
        print(f'{count} clients are too many for a limit of {hard} descriptors', flush=True)
        return
    part = KINDS[kind](int(port), int(count), path)
    print(part.standing, flush=True)
    while True:
        if select.select([sys.stdin], [], [], STEP_S)[0]:
            line = sys.stdin.readline()
            if not line:
                return
            print(part.answer(line.strip()), flush=True)
        part.step()


if __name__ == '__main__':
    main()
