"""A long path: what passes through it comes later, and as much at once as somebody sends."""

from __future__ import annotations

import queue
import socket
import threading
import time


class Delay:
    """Takes connections to `port`, and passes bytes on to 127.0.0.1:`target`, each direction `seconds` late.

    What is on its way waits in memory, without a limit: the path has any bandwidth. The sockets' own buffers are as
    the kernel has them, but each end is read at once, so they hold nobody up.
    """

    def __init__(self, target: int, seconds: float):
        self._target = target
        self._seconds = seconds
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(('127.0.0.1', self._target))
            self._sockets += [near, far]
            for source, sink in ((near, far), (far, near)):
                way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()
                threading.Thread(target=self._read, args=(source, way), daemon=True).start()
                threading.Thread(target=self._write, args=(sink, way), daemon=True).start()

    def _read(self, source: socket.socket, way: queue.SimpleQueue) -> None:
        data = b'more'
        while data:
            try:
                data = source.recv(1 << 20)
            except OSError:
                data = b''
            way.put((time.monotonic() + self._seconds, data))

    @staticmethod
    def _write(sink: socket.socket, way: queue.SimpleQueue) -> None:
        while True:
            due, data = way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                sink.sendall(data)
            except OSError:
                return

    def close(self) -> None:
        for sock in [self._listener, *self._sockets]:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
