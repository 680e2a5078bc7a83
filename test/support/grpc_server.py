"""A gRPC server for tests, in a process of its own; it needs python3-grpcio, and no generated code.

run from test/: python3 -m support.grpc_server PORT [CERTIFICATE KEY]

It prints its port (PORT, or a free one for 0) when it listens. SIGTERM: it takes no more calls, and ends behind those
that it has. What happens to calls is kept as events under a key, which calls name in their metadata as `x-key`; a test
waits for events, and adds some that calls wait for, over a connection that does not pass ringside (`Control`).
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
from concurrent import futures
from typing import Iterator

# Read when grpc is imported. Its threads are in the runner's workers, which start programs all the time: its handlers
# for forks would only be in the way. And it would print what tests ask for, as an answer that is no gRPC.
os.environ.update(GRPC_ENABLE_FORK_SUPPORT='0', GRPC_VERBOSITY='NONE')

# pylint: disable=wrong-import-position
import grpc

from . import certificates
from .upstream import slowdown, wait_until

SERVICE = 'test.Calls'
# Proxies of the environment are for others; messages may have any size.
OPTIONS = [('grpc.enable_http_proxy', 0), ('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1)]
THREADS = 100  # one for each call at a time


# ---------------------------------------------------------------- in the process


class Events:
    """What happened, by key. Its methods may be called on any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._seen: set[tuple[str, str]] = set()

    def add(self, key: str, event: str) -> None:
        with self._changed:
            self._seen.add((key, event))
            self._changed.notify_all()

    @staticmethod
    def bounded(seconds: float | None) -> bool:
        """Whether there is a deadline: without one, gRPC says None or the end of time."""
        return seconds is not None and seconds < threading.TIMEOUT_MAX

    def wait(self, key: str, event: str, context: grpc.ServicerContext) -> None:
        """Ends the call `context` when the event does not come before its deadline, or its end."""
        context.add_callback(self._wake)
        with self._changed:
            while (key, event) not in self._seen and context.is_active():
                left = context.time_remaining()
                self._changed.wait(left if self.bounded(left) else None)
            if (key, event) in self._seen:
                return
        context.abort(grpc.StatusCode.ABORTED, f'no {event}')

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


def key_of(context: grpc.ServicerContext) -> str:
    return dict(context.invocation_metadata()).get('x-key', '')


class Calls:
    """The methods; `{stream,unary}_` tells what comes and what goes."""

    def __init__(self, events: Events):
        self.events = events

    def unary_unary_echo(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """The message, and the metadata `x-…` both before and (as `t-…`) behind it."""
        mine = [(key, value) for key, value in context.invocation_metadata() if key.startswith('x-')]
        context.send_initial_metadata(mine)
        context.set_trailing_metadata([('t' + key[1:], value) for key, value in mine])
        return request

    def unary_unary_deadline(self, _: bytes, context: grpc.ServicerContext) -> bytes:
        """How many seconds are left, or nothing."""
        left = context.time_remaining()
        return b'%.1f' % left if self.events.bounded(left) else b''

    def unary_unary_fail(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        """With nothing but a status, which gRPC sends in the head."""
        status = json.loads(request)
        context.set_trailing_metadata([('t-why', 'asked for')])
        context.abort(next(code for code in grpc.StatusCode if code.value[0] == status['code']), status['details'])
        return b''

    def unary_stream_fail(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """Behind a message."""
        yield b'before'
        self.unary_unary_fail(request, context)

    def unary_stream_spread(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """So many messages; each but the first when the event `go NUMBER` is there."""
        for number in range(int(request)):
            if number:
                self.events.wait(key_of(context), f'go {number}', context)
            yield b'message %d' % number

    def stream_unary_collect(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """The hash of all messages. Each is an event `got NUMBER`."""
        total = hashlib.sha256()
        for number, request in enumerate(requests):
            total.update(request)
            self.events.add(key_of(context), f'got {number}')
        return total.hexdigest().encode()

    def stream_stream_talk(self, requests: Iterator[bytes], _: grpc.ServicerContext) -> Iterator[bytes]:
        """Answers each message as it comes."""
        for request in requests:
            yield request[::-1]

    def unary_unary_hold(self, _: bytes, context: grpc.ServicerContext) -> bytes:
        """Lasts until its end from outside: the events `started`, then `cancelled`; `release` is its good end."""
        key = key_of(context)
        context.add_callback(lambda: self.events.add(key, 'done'))
        self.events.add(key, 'started')
        try:
            self.events.wait(key, 'release', context)
        finally:
            if not context.is_active():
                self.events.add(key, 'cancelled')
        return b'released'

    def stream_stream_hold(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """The same behind a first message of each side."""
        yield next(requests)
        yield self.unary_unary_hold(b'', context)

    def unary_unary_wait(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.events.wait(key_of(context), request.decode(), context)
        return b''

    def unary_unary_note(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        self.events.add(key_of(context), request.decode())
        return b''


def handlers(calls: Calls) -> grpc.GenericRpcHandler:
    kinds = {'unary_unary': grpc.unary_unary_rpc_method_handler, 'unary_stream': grpc.unary_stream_rpc_method_handler,
             'stream_unary': grpc.stream_unary_rpc_method_handler,
             'stream_stream': grpc.stream_stream_rpc_method_handler}
    # Without serializers a message is its bytes. A method's name is the whole of its function's.
    found = {name: kinds[kind](getattr(calls, name)) for name in dir(calls) for kind in kinds if name.startswith(kind)}
    return grpc.method_handlers_generic_handler(SERVICE, found)


def serve(port: str, *pair: str) -> None:
    server = grpc.server(futures.ThreadPoolExecutor(THREADS), options=[*OPTIONS, ('grpc.so_reuseport', 0)],
                         handlers=[handlers(Calls(Events()))])
    address = f'127.0.0.1:{port}'
    if pair:
        certificate, key = (pathlib.Path(name).read_bytes() for name in pair)
        bound = server.add_secure_port(address, grpc.ssl_server_credentials([(key, certificate)]))
    else:
        bound = server.add_insecure_port(address)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server.start()
    print(bound, flush=True)
    stopped.wait()
    server.stop(60 * slowdown()).wait()


# ---------------------------------------------------------------- in the test


class Server:
    """The process. `address` is what ringside calls it."""

    def __init__(self, *, tls: bool = False, port: int = 0):
        self.tls = tls
        pair = certificates.shared().server
        self._process = subprocess.Popen(
            [sys.executable, '-B', '-m', 'support.grpc_server', str(port), *([pair.cert, pair.key] if tls else [])],
            cwd=pathlib.Path(__file__).resolve().parents[1], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True)
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line.strip():
            self.kill()
            raise AssertionError('the gRPC server did not start')
        self.port = int(line)
        self.address = f'{"https://" if tls else ""}127.0.0.1:{self.port}'

    def retire(self) -> None:
        """It takes no more connections when this returns, and ends behind the calls that it has."""
        self._process.send_signal(signal.SIGTERM)

        def refused() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', self.port)) != 0

        if not wait_until(refused):
            raise AssertionError('the gRPC server still listens')

    def wait(self) -> int:
        return self._process.wait(10 * slowdown())

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class Channel:
    """A client's connection, to ringside or to the server itself. Calls that do not end in time fail."""

    def __init__(self, port: int, *, tls: bool = False):
        options = [*OPTIONS, ('grpc.enable_retries', 0), ('grpc.use_local_subchannel_pool', 1)]
        target = f'127.0.0.1:{port}'
        if tls:
            trusted = grpc.ssl_channel_credentials(certificates.shared().authority.ca.read_bytes())
            self._channel = grpc.secure_channel(target, trusted, options)
        else:
            self._channel = grpc.insecure_channel(target, options)
        self.close = self._channel.close

    def method(self, name: str):
        """The callable for a method of Calls."""
        kind = '_'.join(name.split('_')[:2])
        return getattr(self._channel, kind)(f'/{SERVICE}/{name}')


class Control:
    """The events of a server."""

    def __init__(self, server: Server):
        self._channel = Channel(server.port, tls=server.tls)
        self.close = self._channel.close

    def wait(self, key: str, event: str) -> None:
        self._tell('unary_unary_wait', key, event)

    def note(self, key: str, event: str) -> None:
        self._tell('unary_unary_note', key, event)

    def _tell(self, method: str, key: str, event: str) -> None:
        self._channel.method(method)(event.encode(), timeout=20 * slowdown(), metadata=[('x-key', key)])


if __name__ == '__main__':
    serve(*sys.argv[1:])
