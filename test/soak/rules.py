"""Which request may fail, and how: the judgement of one request by what its client saw and what ringside recorded.

Every request makes one of these promises:

    succeeds    whatever happens around it: its servers stay up, or it is safe and can be sent again elsewhere
    may_stale   not safe, to a server that closes idle connections: may meet one that is closed just then
    may_die     to a server that is stopped now and then: may be lost with it, when it was on its way
    cut         its server ends in the middle of the body: must be cut visibly, never look whole
    leaves      its client goes away in the middle
    stalls      its client stops reading or writing: must be ended
"""

from __future__ import annotations

import calendar
import dataclasses
import re
import time

# The note of a client that left by RST.
RESET = 'reset'
PROMISES = ('succeeds', 'may_stale', 'may_die', 'cut', 'leaves', 'stalls')
# A server that is killed is gone for ringside when its reset has come through; on a machine full of load
# that takes a moment.
OUTAGE_SLACK = 2.0
# The times of a record are those at which turns of its ring began. What a turn took off its queue may be as much newer
# as the thread stood still behind that.
CLOCK_LAG = 0.1

_LOST = re.compile(r'upstream/(send_request|wait_response|response_body)/(closed|reset)')
_LEFT = re.compile(r'complete|client/(read_head|queue|connect|send_request|wait_response|response_body)/(closed|reset)')
_STALLED = ('client/send_request/timed_out', 'client/response_body/timed_out')


@dataclasses.dataclass(frozen=True)
class Result:
    """What the client of one request saw.

    `seen`: `ok`, all as it should be; `status`, a whole answer of ringside's own; `cut`, the right bytes and
    too few of them; `left`, gone as planned; `reset`, ended by a reset as planned; else a word for what is
    wrong, explained by `note`.
    """

    id: str
    promise: str
    method: str
    seen: str
    status: int = 0
    note: str = ''


@dataclasses.dataclass
class Outage:
    """A server was stopped at some time between the two (seconds since 1970)."""

    server: str
    began: float
    over: float | None = None

    def meets(self, begin: float, end: float) -> bool:
        return end + CLOCK_LAG >= self.began and (self.over is None or begin <= self.over + OUTAGE_SLACK)


def interval(record: dict) -> tuple[float, float]:
    """When an exchange began and ended, seconds since 1970."""
    text = record['time']
    begin = calendar.timegm(time.strptime(text[:19], '%Y-%m-%dT%H:%M:%S')) + float('0' + text[19:].rstrip('Z'))
    return begin, begin + record['total_ms'] / 1000


def may_be_unseen(result: Result) -> bool:
    """A reset takes what was sent before with it, so ringside may never have seen this request."""
    return result.promise == 'leaves' and result.note == RESET


def judge(result: Result, record: dict, outages: list[Outage]) -> str | None:
    """What is wrong with it; None: nothing."""
    end = record['end']
    if result.seen == 'ok':
        if result.promise in ('cut', 'stalls'):
            return f'it succeeded, though it was to be {result.promise}'
        if end != 'complete' or record['status'] != 200:
            return f'the client got a whole answer, but the record says {record["status"]}, {end}'
        return None
    if result.promise == 'succeeds':
        return f'it had to succeed, but: {result.seen} {result.status or ""} {result.note}'.rstrip()
    if result.promise == 'leaves':
        return None if result.seen == 'left' and _LEFT.fullmatch(end) else f'{result.seen} {result.note} for {end}'
    if result.promise == 'stalls':
        good = end in _STALLED and (result.seen == 'reset' or (result.seen == 'status' and result.status == 408))
        return None if good else f'{result.seen} {result.status} {result.note} for {end}'
    return _judge_lost(result, record, outages)


def _judge_lost(result: Result, record: dict, outages: list[Outage]) -> str | None:
    """A request that did not succeed because of its server."""
    end = record['end']
    if not (result.seen == 'cut' or (result.seen == 'status' and result.status == 502)):
        return f'neither 502 nor cut, but: {result.seen} {result.status} {result.note}'
    if not _LOST.fullmatch(end) or end.startswith('upstream/response_body/') != (result.seen == 'cut'):
        return f'the client saw {result.seen} {result.status or ""}, the record says {end}'
    if result.promise == 'cut':
        return None
    if record['tries'] > 1:
        return 'it was sent again, to a server that stays up, and failed all the same'
    if result.promise == 'may_stale':
        return None if record['reused'] and result.seen == 'status' else 'it failed on a connection that was fresh'
    if result.method == 'GET' and record['reused'] and result.seen == 'status':
        return 'it is safe and met a connection that had been used, so it had to be sent again'
    begin, over = interval(record)
    if not any(o.server == record['server'] and o.meets(begin, over) for o in outages):
        return f'no server was stopped while it was on its way to {record["server"]}'
    return None


def judge_stranger(record: dict) -> str | None:
    """The record of a request that no verified client sent: raw load, or a head that never became whole."""
    end = record['end']
    return None if end == 'complete' or end.startswith('client/') else f'it ended as {end}'
