"""Plays one recorded case against a running proxy and compares what both ends saw."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
import time

from support import client, upstream, wire

CASES = pathlib.Path(__file__).parent / 'cases'


def unescape(text: str) -> bytes:
    """The bytes of a JSON text in which bytes above 0x7f are written as \\xNN."""
    return text.encode('latin-1').decode('unicode_escape').encode('latin-1')


class Case:
    """The data of one folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.name = folder.name
        self.data = json.loads((folder / 'case.json').read_text())

    def bytes_of(self, step: dict) -> bytes:
        if 'file' in step:
            return (self.folder / step['file']).read_bytes()
        return unescape(step['send'])

    def answer(self, connection: upstream.Connection, _: wire.Message, number: int) -> bool:
        """Plays the server's part for request `number`. False: close the connection."""
        for step in self.data.get('upstream', []):
            if step.get('only', number) != number:
                continue
            if 'sleep' in step:
                time.sleep(step['sleep'])
            if 'file' in step or 'send' in step:
                connection.send(self.bytes_of(step))
            if step.get('drain'):
                connection.drain()
            if step.get('close'):
                return False
        if 'upstream' not in self.data:
            connection.send(upstream.OK)
        return True


class Server(upstream.Upstream):
    """The upstream of a case; counts requests over all its connections."""

    def __init__(self, case: Case):
        self.answered = 0

        def answer(connection: upstream.Connection, request: wire.Message) -> bool:
            number = self.answered
            self.answered += 1
            return case.answer(connection, request, number)

        super().__init__(answer)


@dataclasses.dataclass
class Seen:
    """What both ends saw."""

    data: bytes
    closed: bool
    statuses: list[int]
    stray: bytes  # bytes to the client that are no response and no tunnel
    upstream_raw: bytes
    upstream_requests: int

    @property
    def final(self) -> list[int]:
        return [status for status in self.statuses if status >= 200 or status == 101]


def play(case: Case, port: int, server: Server) -> Seen:
    with client.Client(port) as peer:
        for step in case.data.get('steps', [{'file': 'request.bin'}]):
            if 'sleep' in step:
                peer.read_until_quiet(step['sleep'], step['sleep'])
            elif step.get('fin'):
                peer.shutdown_write()
            else:
                peer.send(case.bytes_of(step))
        slow = upstream.slowdown()
        peer.read_until_quiet(case.data.get('quiet', 1.0) * slow, case.data.get('total', 6.0) * slow)
        data, ended = bytes(peer.received), peer.ended
    responses, rest = wire.parse_responses(data, ended=ended is not None)
    tunnel = bool(responses) and responses[-1].status == 101
    cut = rest.startswith(b'HTTP/1.1 ') and ended is not None
    statuses = [r.status for r in responses] + ([int(rest[9:12])] if cut else [])
    return Seen(data, ended is not None, statuses, b'' if tunnel or cut else rest,
                server.received(), len(server.requests))


def _found(pattern: str, data: bytes) -> bool:
    return re.search(pattern.encode('latin-1'), data, re.S | re.I) is not None


def differs(outcome: dict, seen: Seen) -> str | None:
    """The first condition of an outcome that does not hold; None when all do."""
    first = seen.statuses[0] if seen.statuses else None
    finals = [status for status in seen.statuses if status >= 200]
    final = finals[0] if finals else None
    checks = [
        ('status' in outcome and first not in outcome['status'], f'first status is {first}'),
        ('statuses' in outcome and seen.statuses != outcome['statuses'], f'statuses {seen.statuses}'),
        ('final' in outcome and final not in outcome['final'], f'final status is {final}'),
        (len(finals) > outcome.get('max_final', 1 << 30), f'too many responses: {seen.statuses}'),
        (seen.closed != outcome.get('closed', seen.closed), f'closed is {seen.closed}'),
        ('up_requests' in outcome and seen.upstream_requests not in outcome['up_requests'],
         f'the upstream saw {seen.upstream_requests} requests'),
        (outcome.get('up_silent') and seen.upstream_raw.strip(), 'the upstream got bytes'),
    ]
    checks += [(not _found(p, seen.data), f'the client lacks {p!r}') for p in outcome.get('client_has', [])]
    checks += [(_found(p, seen.data), f'the client got {p!r}') for p in outcome.get('client_not', [])]
    checks += [(not _found(p, seen.upstream_raw), f'the upstream lacks {p!r}')
               for p in outcome.get('up_has', [])]
    checks += [(_found(p, seen.upstream_raw), f'the upstream got {p!r}') for p in outcome.get('up_not', [])]
    return next((text for wrong, text in checks if wrong), None)


def verdict(case: Case, seen: Seen) -> str | None:
    """None when the case passes, else why not."""
    if seen.stray:
        return f'bytes to the client that are no response: {seen.stray[:100]!r}'
    promised = case.data.get('ringside', {})
    reasons = []
    for outcome in case.data['accept']:
        if promised.get('outcome', outcome['name']) != outcome['name']:
            continue
        reason = differs(outcome, seen)
        if reason is None and promised.get('statuses', seen.statuses) != seen.statuses:
            reason = f'statuses {seen.statuses}, ringside promises {promised["statuses"]}'
        if reason is None:
            return None
        reasons.append(f'{outcome["name"]}: {reason}')
    return '; '.join(reasons) or f'no outcome is named {promised.get("outcome")!r}'
