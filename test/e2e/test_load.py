"""Load generators: every request must be answered, and well."""

import re
import subprocess

from support import nginx, testcase
from support.limits import limit
from support.upstream import wait_until


class Load(testcase.RingsideTest):
    """Bounded runs against nginx's 1 KiB answer."""

    def setUp(self) -> None:
        super().setUp()
        self.server = nginx.Nginx()
        self.addCleanup(self.server.close)

    def run_tool(self, *command: str) -> str:
        done = subprocess.run([self.need_program(command[0]), *command[1:]], check=False, text=True,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def h2load(self, ringside, requests: int, clients: int, *options: str) -> None:
        text = self.run_tool('h2load', '--h1', '-n', str(requests), '-c', str(clients), *options,
                             ringside.url('/small'))
        self.assertIn(f'{requests} succeeded, 0 failed, 0 errored, 0 timeout', text)
        self.assertIn(f'status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx', text)

    @limit(90)
    def test_h2load_keep_alive(self) -> None:
        ringside = self.start_proxy(self.server.address)
        self.h2load(ringside, 20000, 50)

        def accounted() -> int:
            # A log that cannot keep up may lose records, but says how many.
            lost = re.findall(r'access-log (\d+) records? (?:was|were) lost', ringside.log())
            return len(ringside.access_lines()) + sum(map(int, lost))

        wait_until(lambda: accounted() >= 20000)
        self.assertEqual(accounted(), 20000)

    @limit(90)
    def test_h2load_pipelined_over_two_rings(self) -> None:
        ringside = self.start_proxy(self.server.address, server='rings = 2', access='off')
        self.h2load(ringside, 20000, 40, '-m', '8')

    @limit(90)
    def test_wrk(self) -> None:
        ringside = self.start_proxy(self.server.address, access='off')
        text = self.run_tool('wrk', '-t', '1', '-c', '50', '-d', '3s', ringside.url('/small'))
        match = re.search(r'(\d+) requests in', text)
        self.assertIsNotNone(match, text)
        self.assertGreater(int(match.group(1)), 100)  # type: ignore[union-attr]
        self.assertNotRegex(text, 'Socket errors|Non-2xx')

    @limit(90)
    def test_a_thousand_connections(self) -> None:
        ringside = self.start_proxy(self.server.address, access='off')
        self.h2load(ringside, 10000, 1000)
