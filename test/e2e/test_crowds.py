"""Very many clients at once, on the limits that ringside comes with, and crowds that hardly read or write."""

import collections
import pathlib
import re
import resource
import socket
import subprocess
import threading

from support import client, nginx, proxy, testcase, upstream, wire
from support.crowd import Crowd
from support.limits import limit

KIB = 1 << 10
MIB = 1 << 20
SHIPPED = proxy.ROOT / 'conf' / 'ringside.toml'
# The hard limit: five of nine are for clients, and each ring needs room for more than its half of them.
DESCRIPTORS = 20_000


class CrowdTest(testcase.RingsideTest):
    """What the tests of this file share."""

    def setUp(self) -> None:
        super().setUp()
        self.server = nginx.Nginx()
        self.addCleanup(self.server.close)

    def start_crowd(self, kind: str, ringside: proxy.Ringside, count: int, path: str, processes: int = 1) -> Crowd:
        crowd = Crowd(kind, ringside.port, count, path, processes)
        self.addCleanup(crowd.close)
        return crowd

    def assert_load_served(self, ringside: proxy.Ringside, requests: int, clients: int) -> None:
        done = subprocess.run([self.need_program('h2load'), '--h1', '-n', str(requests), '-c', str(clients),
                               ringside.url('/small')], check=False, text=True, capture_output=True,
                              timeout=60 * upstream.slowdown())
        self.assertIn(f'{requests} succeeded, 0 failed, 0 errored, 0 timeout', done.stdout)
        self.assertIn(f'status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx', done.stdout)


class Idle(CrowdTest):
    """The configuration in conf/, with another address, an upstream and a log file; nothing else is changed."""

    def start_shipped(self, descriptors: tuple[int, int]) -> proxy.Ringside:
        text, addresses = re.subn(r'^address = .*$', 'address = "127.0.0.1:0"', SHIPPED.read_text(), flags=re.M)
        text, routes = re.subn(r'^respond = .*$', 'upstream = "app"', text, flags=re.M)
        # A reader of standard error that is slow would have lines wait in memory, which is none of the clients'.
        text, logs = re.subn(r'^# access = \{.*$', 'access = { format = "json", file = "@DIR@/access.log" }', text,
                             flags=re.M)
        self.assertEqual((addresses, routes, logs), (1, 1, 1), SHIPPED)
        text += f'\n[upstream.app]\nservers = ["{self.server.address}"]\n'
        return self.start_ringside(text, descriptors=descriptors)

    def descriptor_limits(self, ringside: proxy.Ringside) -> list[str]:
        limits = pathlib.Path(f'/proc/{ringside.pid}/limits').read_text()
        return re.findall(r'^Max open files +(\d+) +(\d+)', limits, re.M)[0]

    def can_have(self, descriptors: int) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertGreaterEqual(hard, descriptors, 'raise the hard limit of descriptors for this test (ulimit -Hn)')

    @limit(120)
    def test_ten_thousand_idle_and_two_hundred_active_clients(self) -> None:
        count = 10_000
        self.can_have(DESCRIPTORS)
        ringside = self.start_shipped((1024, DESCRIPTORS))
        self.assertEqual(self.descriptor_limits(ringside), (str(DESCRIPTORS), str(DESCRIPTORS)))
        self.assertNotIn(' limits ', ringside.log())
        # More at once than later, so that what a ring sets aside for bursts is none of the idle clients'.
        self.assert_load_served(ringside, 50_000, 1000)
        before = ringside.private_bytes()
        idle = self.start_crowd('idle', ringside, count, '/small', 4)
        self.assertEqual(idle.standing, count)
        self.assert_load_served(ringside, 50_000, 200)
        self.assertGreaterEqual(ringside.sockets(), count, 'some idle clients were let go')
        self.assertEqual(idle.ask(), count)

        def growth() -> float:
            return (ringside.private_bytes() - before) / count

        # What a connection rests from it gives back a second later.
        self.assertTrue(upstream.wait_until(lambda: growth() <= 2 * KIB),
                        f'{growth():.0f} bytes for each idle client')
        idle.close()
        self.assertTrue(upstream.wait_until(lambda: ringside.sockets() < count / 10), 'they are not closed')
        self.assert_load_served(ringside, 1000, 200)

    @limit(90)
    def test_too_few_descriptors_are_told(self) -> None:
        ringside = self.start_shipped((256, 1024))
        self.assertEqual(self.descriptor_limits(ringside), ('1024', '1024'))
        self.assertRegex(ringside.log(), r' warn limits RLIMIT_NOFILE is 1024, .* \d{3} client connections: raise it '
                                         r'\(LimitNOFILE= of systemd, ulimit -n\)')
        room = int(re.findall(r'(\d+) client connections', ringside.log())[0])
        crowd = self.start_crowd('idle', ringside, 600, '/small')
        self.assertLessEqual(crowd.standing, room)
        self.assertTrue(ringside.wait_for_log('limits.connections is reached, which follows RLIMIT_NOFILE'))
        self.assertLess(len(ringside.lines), 30, 'the log is flooded')
        # Those who came in are served as ever.
        self.assertEqual(crowd.ask(), crowd.standing)
        crowd.close()
        self.assertTrue(upstream.wait_until(lambda: ringside.sockets() < room))
        self.assert_load_served(ringside, 1000, 100)


class AllAtOnce(testcase.RingsideTest):
    """Every client that the default limits let in has a request: some of them find no descriptor for a server."""

    def setUp(self) -> None:
        super().setUp()
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)

    def held(self, connection: upstream.Connection, _: wire.Message) -> None:
        self.gate.wait(60)
        connection.send(upstream.OK)

    @limit(120)
    def test_each_is_answered_and_no_server_is_blamed(self) -> None:
        ringside, server = self.start_pair(self.held, descriptors=840)
        room = int(re.findall(r'(\d+) client connections', ringside.log())[0])
        peers = []
        for _ in range(room):
            peers.append(client.Client(ringside.port))
            self.addCleanup(peers[-1].close)
        self.assertTrue(upstream.wait_until(lambda: ringside.sockets() >= room), 'some are not accepted')
        for peer in peers:
            peer.get('/')
        self.assertTrue(ringside.wait_for_log(r' warn upstream no connection to a server of app: out of descriptors'))
        self.assertTrue(upstream.wait_until(
            lambda: len(server.connections) + len(ringside.access_lines()) >= room))
        self.gate.set()
        statuses = collections.Counter(peer.read_response().status for peer in peers)
        self.assertEqual(set(statuses), {200, 503})
        self.assertGreater(statuses[200], statuses[503])
        ends = collections.Counter((record['status'], record['end']) for record in ringside.access_records(room))
        self.assertEqual(ends, {(200, 'complete'): statuses[200], (503, 'ringside/queue/no_resources'): statuses[503]})
        # The shortage is over, for those who met it as well.
        for peer in peers:
            if peer.ended is None:
                self.assertEqual(peer.get('/').read_response().status, 200)
        self.assertLess(len(ringside.lines), 30, 'the log is flooded')


class Slow(CrowdTest):
    """Two hundred that hardly read, and two hundred that send to who does not read."""

    @limit(120)
    def test_memory_is_flat_and_others_are_served(self) -> None:
        count = 200
        with (self.server.www / 'large').open('wb') as large:
            large.truncate(1_000_000_000)
        deaf = socket.create_server(('127.0.0.1', 0), backlog=2 * count)  # who connects is never read
        self.addCleanup(deaf.close)
        ringside = self.start_proxy(
            self.server.address, access='off', timeouts='body_idle = "none"', extra=f'''
[[site.route]]
path = "/deaf"
upstream = "deaf"
[upstream.deaf]
servers = ["127.0.0.1:{deaf.getsockname()[1]}"]
body_idle_timeout = "none"
''')
        readers = self.start_crowd('readers', ringside, count, '/large')
        writers = self.start_crowd('writers', ringside, count, '/deaf')
        self.assertEqual((readers.standing, writers.standing), (count, count))
        self.assert_load_served(ringside, 5000, 50)
        # The first second fills what there is to fill.
        self.assertEqual(readers.ask('on 10000'), count)
        before = ringside.private_bytes()
        load = threading.Thread(target=self.assert_load_served, args=(ringside, 50_000, 50))
        load.start()
        self.assertEqual(readers.ask('on 50000'), count, 'a reader gets less than 10 KB/s')
        load.join()
        self.assertLess(ringside.private_bytes() - before, MIB)
        self.assertLess(before, 160 * MIB)
        self.assertEqual(writers.ask(), count)
        self.assertEqual(client.request(ringside.port, '/small').status, 200)
