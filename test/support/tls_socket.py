"""TLS over a socket that one thread may read while another one writes, which Python's own cannot."""

from __future__ import annotations

import socket
import ssl
import threading

RECORD_BYTES = 16384


class TlsSocket:
    """Behaves as the plain socket that it wraps; the handshake runs with the first byte in either direction.

    An end without close_notify reads as an end, as it does in plain text: `notified` says whether there was one.
    Errors of TLS are ssl.SSLError, which is an OSError; a peer that leaves in the handshake has reset it.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, *, server_name: str | None = None,
                 server_side: bool = False):
        self._sock = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=server_side,
                                     server_hostname=server_name or None)
        self._state = threading.Lock()  # of the session, never held while the socket may block
        self._sending = threading.Lock()  # keeps records in their order
        self._starting = threading.Lock()
        self._ready = False
        self._opened = b''  # plaintext that was read before close_notify was sent
        self.notified = False  # the peer's close_notify has come

    @property
    def session(self) -> ssl.SSLObject:
        """What was agreed on, once bytes have passed."""
        return self._tls

    # ------------------------------------------------------------ as a socket has it

    def settimeout(self, seconds: float | None) -> None:
        self._sock.settimeout(seconds)

    def setsockopt(self, *arguments) -> None:
        self._sock.setsockopt(*arguments)

    def getsockname(self):
        return self._sock.getsockname()

    def getpeername(self):
        return self._sock.getpeername()

    def fileno(self) -> int:
        return self._sock.fileno()

    def sendall(self, data: bytes) -> None:
        self.handshake()
        with self._sending:
            for at in range(0, len(data), 4 * RECORD_BYTES):
                with self._state:
                    self._tls.write(data[at : at + 4 * RECORD_BYTES])
                self._flush()

    def recv(self, size: int) -> bytes:
        """Nothing is read from the kernel before it is asked for, and not much more than is asked for."""
        self.handshake()
        while True:
            data = self._open(size)
            if data:
                return data
            self._answer()
            raw = self._sock.recv(max(RECORD_BYTES, min(size, 1 << 18)))
            if not raw:
                return b''
            if not self.notified:  # what follows a close_notify is ignored (RFC 8446 §6.1)
                with self._state:
                    self._incoming.write(raw)

    def shutdown(self, how: int) -> None:
        """SHUT_WR is close_notify and FIN; SHUT_RDWR only wakes who waits for the socket."""
        if how == socket.SHUT_WR:
            self.handshake()
            with self._sending:
                self._notify()
                self._flush()
        self._sock.shutdown(how)

    def close(self) -> None:
        """close_notify, if that does not block, and the end of the socket."""
        if self._ready and self._sock.fileno() >= 0 and self._sending.acquire(blocking=False):
            try:
                self._notify()
                self._sock.setblocking(False)
                self._sock.send(self._outgoing.read())
            except OSError:
                pass  # gone already, or full: there is nothing more to say
            finally:
                self._sending.release()
        self._sock.close()

    def update_key(self, requested: bool) -> None:
        """A KeyUpdate behind what was sent (support/openssl.py has sessions that can)."""
        self._by_itself(lambda: self._tls.update_key(requested))

    def new_ticket(self) -> None:
        """As update_key; of a server."""
        self._by_itself(self._tls.new_ticket)

    def give_up(self) -> None:
        """Sends the fatal alert of an end that could not open what it got (bad_record_mac)."""
        def read_nonsense() -> None:
            self._incoming.write(b'\x17\x03\x03\x00\x20' + bytes(32))
            try:
                self._tls.read(1)
            except ssl.SSLError:
                pass

        self._by_itself(read_nonsense)

    def cut(self) -> None:
        """The end of the socket without close_notify, as when a process dies."""
        self._sock.close()

    # ------------------------------------------------------------ the session

    def handshake(self) -> None:
        if self._ready:
            return
        with self._starting:
            while not self._ready:
                try:
                    with self._state:
                        self._tls.do_handshake()
                    self._ready = True
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError:
                    self._flush()  # the alert that says why
                    raise
                self._flush()
                if not self._ready:
                    raw = self._sock.recv(RECORD_BYTES)
                    if not raw:
                        raise ConnectionResetError('the peer ended the connection in the handshake')
                    self._incoming.write(raw)

    def _open(self, size: int) -> bytes:
        """Plaintext that is at hand."""
        with self._state:
            data, self._opened = self._opened[:size], self._opened[size:]
            return data or self._read(size)

    def _read(self, size: int) -> bytes:
        """As many records as there are, since OpenSSL gives one at a time."""
        parts: list[bytes] = []
        while size > 0 and not self.notified:
            try:
                parts.append(self._tls.read(size))
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                parts.append(b'')
            # Python makes an empty read of the peer's close_notify when ours has not been sent.
            self.notified = not parts[-1]
            size -= len(parts[-1])
        return b''.join(parts)

    def _notify(self) -> None:
        with self._state:
            try:
                # OpenSSL looks for the peer's close_notify, and would drop data that is before it.
                while data := self._read(1 << 18):
                    self._opened += data
                self._tls.unwrap()
            except ssl.SSLError:
                pass  # it is written; the peer's may come later, or never

    def _by_itself(self, act) -> None:
        self.handshake()
        with self._sending:
            with self._state:
                act()
            self._flush()

    def _answer(self) -> None:
        """Sends what reading asked for (a new key), unless a writer is about to."""
        if self._outgoing.pending and self._sending.acquire(blocking=False):
            try:
                self._flush()
            finally:
                self._sending.release()

    def _flush(self) -> None:
        with self._state:
            data = self._outgoing.read()
        if data:
            self._sock.sendall(data)
