"""Several servers, pools, queues, and what is tried again."""

import pathlib
import tempfile
import threading

from support import client, nginx, testcase, upstream, wire


class Servers(testcase.RingsideTest):
    """Who gets a request."""

    def test_round_robin_with_weights(self) -> None:
        first, second = self.start_upstream(), self.start_upstream()
        ringside = self.start_proxy([f'{{ address = "{first.address}", weight = 3 }}',
                                     f'{{ address = "{second.address}" }}'])
        for _ in range(40):
            self.assertEqual(client.request(ringside.port).status, 200)
        self.assertEqual((len(first.requests), len(second.requests)), (30, 10))

    def test_unix_socket(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        server = self.start_upstream(unix_path=str(pathlib.Path(folder.name) / 'app.sock'))
        ringside = self.start_proxy(server)
        self.assertEqual(client.request(ringside.port, '/u').status, 200)
        self.assertEqual(server.requests[0].target, '/u')

    def test_a_name(self) -> None:
        server = self.start_upstream()
        ringside = self.start_proxy(server.address_as('localhost'))
        self.assertTrue(upstream.wait_until(lambda: client.request(ringside.port).status == 200))

    def test_a_dead_server_is_passed_over(self) -> None:
        alive = self.start_upstream()
        ringside = self.start_proxy([f'127.0.0.1:{nginx.free_port()}', alive.address])
        statuses = [client.request(ringside.port, method='POST', body=b'x').status for _ in range(10)]
        self.assertEqual(statuses, [200] * 10)

    def test_no_server_at_all_is_502(self) -> None:
        ringside = self.start_proxy(f'127.0.0.1:{nginx.free_port()}')
        self.assertEqual(client.request(ringside.port).status, 502)
        record = ringside.access_records(1)[0]
        self.assertEqual(record['status'], 502)
        self.assertIn('upstream', record['end'])

    def test_C17_no_second_server_after_bytes(self) -> None:
        def half(connection: upstream.Connection, _: wire.Message) -> bool:
            connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
            return False

        dying, well = self.start_upstream(half), self.start_upstream()
        ringside = self.start_proxy([f'{{ address = "{dying.address}", weight = 1 }}', f'{{ address = "{well.address}" }}'])
        cut = 0
        for _ in range(4):
            with client.Client(ringside.port) as peer:
                peer.get('/', headers='Connection: close\r\n')
                data = peer.read_to_end()
            self.assertFalse(b'half' in data and data.endswith(b'ok'), data)
            cut += data.endswith(b'half')
        self.assertEqual((cut, len(dying.requests), len(well.requests)), (2, 2, 2))

    def test_a_request_that_may_have_arrived_is_not_sent_again(self) -> None:
        def vanish(connection: upstream.Connection, request: wire.Message) -> bool:
            return False

        first, second = self.start_upstream(vanish), self.start_upstream(vanish)
        ringside = self.start_proxy([first, second])
        self.assertEqual(client.request(ringside.port, method='POST', body=b'x').status, 502)
        self.assertEqual(len(first.requests) + len(second.requests), 1)


class Queue(testcase.RingsideTest):
    """max_connections and those who wait."""

    def setUp(self) -> None:
        super().setUp()
        self.gate = threading.Event()

    def hold(self, connection: upstream.Connection, request: wire.Message) -> None:
        if request.target == '/hold':
            self.gate.wait(30)
        connection.send(upstream.OK)

    def holding(self, **options: str):
        server = self.start_upstream(self.hold)
        self.addCleanup(self.gate.set)
        ringside = self.start_proxy(f'{{ address = "{server.address}", max_connections = 1 }}', **options)
        first = client.Client(ringside.port).get('/hold')
        self.addCleanup(first.close)
        self.assertTrue(server.wait_for(lambda s: s.requests))
        return ringside, server, first

    def test_a_waiting_request_is_served_in_its_turn(self) -> None:
        ringside, server, first = self.holding()
        second = client.Client(ringside.port).get('/second')
        self.addCleanup(second.close)
        second.read_until_quiet(0.3, 0.3)
        self.assertEqual((bytes(second.received), len(server.requests)), (b'', 1))
        self.gate.set()
        self.assertEqual(first.read_response().status, 200)
        self.assertEqual(second.read_response().status, 200)
        self.assertEqual(len(server.connections), 1)

    def test_the_wait_is_bounded(self) -> None:
        ringside, _, _ = self.holding(upstream='queue_timeout = "200ms"')
        self.assertEqual(client.request(ringside.port, '/late').status, 503)

    def test_the_queue_is_bounded(self) -> None:
        ringside, _, _ = self.holding(upstream='queue = 0')
        self.assertEqual(client.request(ringside.port, '/none').status, 503)

    def test_C24_who_leaves_the_queue_is_not_sent(self) -> None:
        ringside, server, first = self.holding()
        leaver = client.Client(ringside.port).get('/left')
        # A request behind it in the queue proves that it had been queued before it left.
        last = client.Client(ringside.port).get('/last')
        self.addCleanup(last.close)
        last.read_until_quiet(0.3, 0.3)
        leaver.reset()
        self.assertTrue(upstream.wait_until(lambda: b'/left' in b''.join(ringside.access_lines())))
        self.gate.set()
        self.assertEqual(first.read_response().status, 200)
        self.assertEqual(last.read_response().status, 200)
        self.assertEqual([r.target for r in server.requests], ['/hold', '/last'])
