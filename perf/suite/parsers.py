"""What load generators print, as an Outcome. No processes here, so that tests can feed it text."""

from __future__ import annotations

import dataclasses
import json
import re

PERCENTILES = ('50', '99', '99.9')

# wrk's own report rounds its bytes to three digits; this script, run by wrk at the end, does not.
WRK_DONE = '''done = function(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\\nRESULT {"requests":%d,"bytes":%d,"us":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,' ..
    '"p50":%d,"p99":%d,"p99.9":%d}\\n', summary.requests, summary.bytes, summary.duration, e.connect, e.read,
    e.write, e.status, e.timeout, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
'''


class ParseError(Exception):
    """The tool did not print what was expected of it."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One burst of load."""

    requests: int  # completed, with a good status
    failed: int
    bytes: int  # received, headers included where the tool cannot tell
    seconds: float
    percentiles: dict[str, float] = dataclasses.field(default_factory=dict)  # milliseconds

    @property
    def good(self) -> bool:
        return self.requests > 0 and self.failed == 0


def wrk(text: str) -> Outcome:
    """The line that WRK_DONE prints."""
    match = re.search(r'^RESULT (\{.*\})$', text, re.M)
    if not match:
        raise ParseError('wrk printed no RESULT line')
    line = json.loads(match.group(1))
    failed = sum(line[kind] for kind in ('connect', 'read', 'write', 'status', 'timeout'))
    return Outcome(line['requests'] - line['status'], failed, line['bytes'], line['us'] / 1e6,
                   {p: line[f'p{p}'] / 1e3 for p in PERCENTILES})


def h2load(text: str) -> Outcome:
    """h2load's report: it has no percentiles."""
    finished = re.search(r'^finished in ([\d.]+)(us|ms|s|m|h),', text, re.M)
    counts = re.search(r'^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, '
                       r'(\d+) errored, (\d+) timeout', text, re.M)
    data = re.search(r'^traffic: .*\((\d+)\) data', text, re.M)
    if not (finished and counts and data):
        raise ParseError('h2load printed no report')
    _, _, succeeded, failed, errored, timeouts = map(int, counts.groups())
    unit = {'us': 1e-6, 'ms': 1e-3, 's': 1.0, 'm': 60.0, 'h': 3600.0}[finished.group(2)]
    # "failed" already has the errored ones in it; timeouts are errored too.
    return Outcome(succeeded, max(failed, errored, timeouts), int(data.group(1)),
                   float(finished.group(1)) * unit)


def oha(text: str) -> Outcome:
    """oha's JSON. Requests that its own deadline cut off are neither completed nor failed."""
    try:
        report = json.loads(text)
        summary, statuses = report['summary'], report['statusCodeDistribution']
        errors = report.get('errorDistribution') or {}
        latency = report['latencyPercentiles']
    except (ValueError, KeyError, TypeError) as error:
        raise ParseError(f'oha printed no report: {error!r}') from error
    good = sum(count for status, count in statuses.items() if 200 <= int(status) < 400)
    failed = sum(statuses.values()) - good
    failed += sum(count for why, count in errors.items() if 'deadline' not in why)
    percentiles = {p: latency[f'p{p}'] * 1e3 for p in PERCENTILES if latency.get(f'p{p}') is not None}
    return Outcome(good, failed, int(summary['totalData'] or 0), float(summary['total']), percentiles)
