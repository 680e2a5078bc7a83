"""Verified clients of the soak, a process for each group of kinds.py: prints one JSON line a request.

They end when standard input ends, each after the request that it is at.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import pathlib
import random
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from soak import kinds  # noqa: E402
from soak.flow import Ended  # noqa: E402
from soak.rules import Result  # noqa: E402


class Client(threading.Thread):
    """One client: does what its kind does, again and again."""

    def __init__(self, name: str, kind: kinds.Kind, port: int, stopping: threading.Event):
        super().__init__(daemon=True)
        self.kind, self.port, self.stopping = kind, port, stopping
        ids = itertools.count()
        self.next_id = lambda: f'soak-{name}-{next(ids)}'
        self.label = name

    def report(self, result: Result) -> None:
        os.write(1, json.dumps(dataclasses.asdict(result)).encode() + b'\n')

    def trouble(self, text: str) -> None:
        os.write(1, json.dumps({'trouble': f'{self.label}: {text}'}).encode() + b'\n')

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                self.kind(self.port, self.next_id, self.report)
            except Ended as ended:
                self.trouble(f'the connection ended where nobody had to end it: {ended.how}')
                time.sleep(0.1)
            except OSError as error:
                self.trouble(str(error))
                time.sleep(0.1)
            except Exception:  # pylint: disable=broad-except
                self.trouble(traceback.format_exc())
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('group', choices=sorted(kinds.GROUPS))
    parser.add_argument('port', type=int, help='of ringside')
    parser.add_argument('seed', type=int, help='of the choices that clients make')
    options = parser.parse_args()
    random.seed(f'{options.seed} {options.group}')
    stopping = threading.Event()
    clients = [Client(f'{kind.__name__}-{number}', kind, options.port, stopping)
               for kind, count in kinds.GROUPS[options.group] for number in range(count)]
    for client in clients:
        client.start()
    sys.stdin.buffer.read()
    stopping.set()
    for client in clients:
        client.join(120)
        if client.is_alive():
            client.trouble('it is still waiting')
    return 0


if __name__ == '__main__':
    sys.exit(main())
