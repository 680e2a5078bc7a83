"""The rows of the table, and what ringside promises on each."""

from __future__ import annotations

import dataclasses
from typing import Literal

RATIO, ABSOLUTE, EXCESS = 'ratio', 'absolute', 'excess'


@dataclasses.dataclass(frozen=True)
class Target:
    """What the first version has to reach, and what is aimed at: of the ratio to nginx, of the value
    itself, or of the value less nginx's."""

    of: Literal['ratio', 'absolute', 'excess']
    first: float
    aim: float


@dataclasses.dataclass(frozen=True)
class Row:
    """`kind` says which module measures it; the other fields are for that module."""

    name: str
    title: str
    unit: str
    kind: Literal['cpu', 'idle-memory', 'connection-memory', 'pool', 'latency', 'fairness', 'handshake']
    target: Target | None = None
    path: str = '/1k'
    connections: int = 50
    fresh: bool = False
    deferred: bool = False  # connections come to the proxy with their first byte
    upload: bool = False
    streams: int = 0  # of HTTP/2, at a time on each connection; 0: HTTP/1.1
    per_gb: int = 0  # bytes of one transfer, when the cost is counted by the GB
    tool: str = 'wrk'  # the load generator, or nothing where we ask ourselves
    max_rounds: int | None = None
    # To clients: with connections that stay; a full handshake for each connection; one that resumes.
    tls: Literal['', 'kept', 'full', 'resumed'] = ''
    rsa: bool = False  # with a certificate of RSA-2048 instead of P-256


ROWS = (
    Row('keep-alive', 'HTTP/1.1 keep-alive, 1 KiB, 50 connections', 'µs CPU/request', 'cpu',
        Target(RATIO, 0.75, 0.62)),
    Row('keep-alive-split', 'the same; the upstream sends head and body in two packets', 'µs CPU/request', 'cpu',
        path='/1k-split'),
    Row('new-connection', 'a new connection for each request, 1 KiB', 'µs CPU/request', 'cpu',
        Target(RATIO, 0.80, 0.65), fresh=True),
    Row('new-connection-deferred', 'a new connection for each request, accepted with its first byte, 1 KiB',
        'µs CPU/request', 'cpu', fresh=True, deferred=True),
    Row('download-1m', '1 MB downloads, 10 connections', 'ms CPU/GB', 'cpu',
        Target(RATIO, 0.50, 0.35), path='/1m', connections=10, per_gb=1 << 20),
    Row('download-10m', '10 MB downloads, 10 connections', 'ms CPU/GB', 'cpu',
        Target(RATIO, 0.50, 0.35), path='/10m', connections=10, per_gb=10 << 20),
    Row('upload-1m', '1 MB uploads, 10 connections', 'ms CPU/GB', 'cpu',
        Target(RATIO, 0.50, 0.35), path='/upload', connections=10, upload=True, per_gb=1 << 20),
    Row('active-1000', 'HTTP/1.1 keep-alive, 1 KiB, 1,000 connections', 'µs CPU/request', 'cpu',
        Target(RATIO, 0.70, 0.60), connections=1000),
    Row('tls-keep-alive', 'HTTP/1.1 keep-alive over TLS, 1 KiB, 50 connections', 'µs CPU/request', 'cpu',
        Target(RATIO, 0.80, 0.65), tls='kept'),
    Row('tls-new-connection', 'a new TLS connection with a full handshake for each request, 1 KiB', 'µs CPU/request',
        'cpu', Target(RATIO, 1.00, 0.95), fresh=True, tls='full'),
    Row('tls-resumed-connection', 'a new TLS connection that resumes a session for each request, 1 KiB',
        'µs CPU/request', 'cpu', fresh=True, tls='resumed'),
    Row('tls-download-1m', '1 MB downloads over TLS, 10 connections', 'ms CPU/GB', 'cpu', path='/1m', connections=10,
        per_gb=1 << 20, tls='kept'),
    Row('handshake-rings', 'CPU of a full TLS handshake (P-256) and a request, 2 rings ÷ 1 ring', '×', 'handshake',
        Target(ABSOLUTE, 1.15, 1.05), fresh=True, tls='full'),
    Row('handshake-rings-rsa', 'the same with a certificate of RSA-2048', '×', 'handshake',
        Target(ABSOLUTE, 1.15, 1.05), fresh=True, tls='full', rsa=True),
    Row('handshake-rings-resumed', 'the same with sessions that are resumed (P-256)', '×', 'handshake',
        Target(ABSOLUTE, 1.15, 1.05), fresh=True, tls='resumed'),
    Row('handshake-rings-rsa-resumed', 'the same with sessions that are resumed (RSA-2048)', '×', 'handshake',
        Target(ABSOLUTE, 1.15, 1.05), fresh=True, tls='resumed', rsa=True),
    Row('http2', 'HTTP/2 over TLS, 1 KiB, 10 connections of 10 streams', 'µs CPU/request', 'cpu',
        Target(RATIO, 0.75, 0.50), connections=10, streams=10, tool='h2load', tls='kept'),
    Row('connection-memory', 'private memory of an idle keep-alive connection', 'KiB', 'connection-memory',
        Target(ABSOLUTE, 2.0, 1.0), connections=10000, tool='', max_rounds=3),
    Row('idle-memory-tls', 'private memory of an idle keep-alive connection with TLS', 'KiB', 'connection-memory',
        Target(ABSOLUTE, 20.0, 20.0), connections=10000, tool='', max_rounds=3, tls='kept'),
    Row('idle-memory', 'private memory when idle, 1 ring', 'MB', 'idle-memory',
        Target(EXCESS, 4.0, 0.0), tool='', max_rounds=3),
    Row('pool', 'upstream connections per million requests, clients stay', '× pool', 'pool',
        Target(ABSOLUTE, 2.0, 1.0), max_rounds=3),
    Row('pool-churn', 'upstream connections per million requests, clients come and go', '× pool', 'pool',
        Target(ABSOLUTE, 2.0, 1.0), fresh=True, max_rounds=3),
    Row('latency', 'latency at a fixed rate (open loop), 99th percentile', 'ms', 'latency', tool='oha'),
    Row('fairness', '99th percentile beside one fast 10 GB transfer ÷ alone', '×', 'fairness',
        connections=10, tool='oha', max_rounds=3),
)
BY_NAME = {row.name: row for row in ROWS}


def select(names: str | None) -> list[Row]:
    """The rows of a comma-separated list; all without one."""
    if not names:
        return list(ROWS)
    unknown = [name for name in names.split(',') if name not in BY_NAME]
    if unknown:
        raise SystemExit(f'no such row: {", ".join(unknown)} (--list shows them)')
    return [BY_NAME[name] for name in names.split(',')]
