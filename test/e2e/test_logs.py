"""What is written down about requests."""

import json
import re
import signal

from support import client, testcase, upstream, wire


class Holdings(testcase.RingsideTest):
    """SIGUSR2: each ring says what it holds."""

    def report(self, ringside) -> dict[str, int]:
        """The sum over both rings."""
        before = len(ringside.lines)

        def lines() -> list[str]:
            return [line for line in ringside.lines[before:] if ' info holdings ' in line]

        ringside.signal(signal.SIGUSR2)
        self.assertTrue(upstream.wait_until(lambda: len(lines()) == 2), ringside.log())
        self.assertEqual({re.search(r'ring=(\d+)', line).group(1) for line in lines()}, {'0', '1'})
        total: dict[str, int] = {}
        for line in lines():
            for name, count in re.findall(r'(\w+)=(\d+)', line):
                total[name] = total.get(name, 0) + int(count)
        return total

    def test_what_rings_hold(self) -> None:
        ringside, server = self.start_pair(server='rings = 2', log='level = "debug"')
        self.assertEqual(self.report(ringside)['clients'], 0)
        with client.Client(ringside.port) as peer:
            peer.get('/', method='POST', headers='Content-Length: 4\r\n')
            self.assertTrue(server.wait_for(lambda s: s.connections))
            held = self.report(ringside)
            self.assertEqual([held['clients'], held['exchanges'], held['servers']], [1, 1, 1])
            self.assertGreater(held['chunks'], 0)
            peer.send(b'body')
            self.assertEqual(peer.read_response().status, 200)
        ringside.signal(signal.SIGTERM)
        self.assertEqual(ringside.wait(), 0)
        last = [line for line in ringside.lines if ' debug holdings ' in line]
        self.assertEqual(len(last), 2, ringside.log())
        for line in last:
            self.assertRegex(line, r'clients=0 exchanges=0 servers=0 leases=0 chunks=0 slices=0 pipes=0 operations=0$')


class AccessLog(testcase.RingsideTest):
    """One request, one record, whatever its bytes."""

    def test_a_record_says_what_happened(self) -> None:
        ringside, server = self.start_pair()
        with client.Client(ringside.port) as peer:
            for target in ('/a?b=1', '/c'):
                peer.get(target, headers='User-Agent: test/1\r\nReferer: http://x.test/\r\n')
                peer.read_response()
        first, second = ringside.access_records(2)
        self.assertEqual([first['method'], first['target'], first['status'], first['protocol'], first['host']],
                         ['GET', '/a?b=1', 200, 'HTTP/1.1', 'a.test'])
        self.assertEqual([first['user_agent'], first['referer']], ['test/1', 'http://x.test/'])
        self.assertEqual([first['client'], first['upstream'], first['server'], first['listener']],
                         ['127.0.0.1', 'app', f'127.0.0.1:{server.port}', 'web'])
        self.assertEqual([first['reused'], second['reused']], [False, True])
        self.assertEqual(first['body_bytes'], 2)
        self.assertGreaterEqual(first['total_ms'], first['first_byte_ms'])
        self.assertEqual(first['request_id'], server.requests[0].get('x-request-id'))
        self.assertNotEqual(first['request_id'], second['request_id'])
        self.assertRegex(first['time'], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$')

    def test_C15_bytes_cannot_forge_a_record(self) -> None:
        ringside, _ = self.start_pair()
        peer = client.Client(ringside.port)
        peer.get('/%0d%0aFAKE?%22%5c', headers='User-Agent: "\\\r\n')
        self.assertEqual(peer.read_response().status, 200)
        sent = 1
        for byte in range(256):
            peer.send(b'GET / HTTP/1.1\r\nHost: a.test\r\nUser-Agent: x' + bytes([byte]) + b'y\r\n\r\n')
            sent += 1
            if peer.read_response().status == 400:
                peer.close()
                peer = client.Client(ringside.port)
        peer.close()
        records = ringside.access_records(sent)
        self.assertEqual(records[0]['target'], '/%0d%0aFAKE?%22%5c')
        self.assertTrue(all('end' in record for record in records))

    def test_C15_combined(self) -> None:
        ringside, _ = self.start_pair(access='combined')
        client.request(ringside.port, '/%0d%0aFAKE', headers='User-Agent: a"b\\c\r\nReferer: \xff\r\n')
        client.request(ringside.port, '/plain')
        self.assertTrue(upstream.wait_until(lambda: len(ringside.access_lines()) >= 2))
        lines = [line.decode('utf-8') for line in ringside.access_lines()]
        self.assertEqual(len(lines), 2)
        for line in lines:
            self.assertRegex(line, r'^127\.0\.0\.1 - - \[[^\]]+\] "GET \S+ HTTP/1\.1" 200 2 "(?:[^"\\]|\\.)*" '
                                   r'"(?:[^"\\]|\\.)*"$')
        self.assertNotIn('a"b', lines[0])

    def test_end_reasons_say_who_ended_it(self) -> None:
        def answer(connection: upstream.Connection, request: wire.Message) -> bool | None:
            if request.target == '/vanish':
                return False
            if request.target == '/hang':
                connection.drain()
            connection.send(upstream.OK)
            return None

        ringside, server = self.start_pair(answer)
        client.request(ringside.port, '/fine')
        client.request(ringside.port, '/vanish')
        peer = client.Client(ringside.port).get('/hang')
        self.assertTrue(server.wait_for(lambda s: any(r.target == '/hang' for r in s.requests)))
        peer.reset()
        records = {r['target']: r for r in ringside.access_records(3)}
        self.assertIn('upstream', records['/vanish']['end'])
        self.assertIn('client', records['/hang']['end'])
        self.assertNotEqual(records['/fine']['end'], records['/vanish']['end'])

    def test_requests_that_are_refused_are_logged_too(self) -> None:
        ringside, _ = self.start_pair()
        with client.Client(ringside.port) as peer:
            peer.send('GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')
            self.assertEqual(peer.read_response().status, 400)
        record = ringside.access_records(1)[0]
        self.assertEqual(record['status'], 400)
        self.assertIn('client', record['end'])

    def test_files_are_opened_again_after_a_rotation(self) -> None:
        ringside, _ = self.start_pair()
        client.request(ringside.port, '/before')
        ringside.access_records(1)
        rotated = ringside.access_path.with_suffix('.1')
        ringside.access_path.rename(rotated)
        ringside.signal(signal.SIGUSR1)
        self.assertTrue(upstream.wait_until(ringside.access_path.exists), 'no new file appears')
        client.request(ringside.port, '/after')
        self.assertEqual(ringside.access_records(1)[0]['target'], '/after')
        self.assertEqual(len(rotated.read_bytes().splitlines()), 1)

    def test_standard_error_takes_records_too(self) -> None:
        server = self.start_upstream()
        ringside = self.start_ringside(
            '[log]\naccess = "json"\n[listen.web]\naddress = "127.0.0.1:0"\n'
            f'[upstream.app]\nservers = ["{server.address}"]\n'
            '[[site]]\nhosts = ["*"]\n[[site.route]]\npath = "/*"\nupstream = "app"\n')
        client.request(ringside.port, '/here')
        self.assertTrue(ringside.wait_for_log('"target":"/here"'))
        line = next(line for line in ringside.lines if '"/here"' in line)
        self.assertEqual(json.loads(line)['status'], 200)


class ErrorLog(testcase.RingsideTest):
    """One readable line an event, and not too many."""

    def test_ready_line(self) -> None:
        ringside = self.start_proxy('127.0.0.1:1', listen='["127.0.0.1:0", "[::1]:0"]')
        line = next(line for line in ringside.lines if re.search(r'\bready\b', line))
        self.assertRegex(line, r'\binfo\b.*\bready\b.*listen\.web=127\.0\.0\.1:\d+')
        self.assertIn(f'pid={ringside.pid}', line)
        self.assertEqual(len(ringside.addresses['web']), 2)
        self.assertRegex(ringside.addresses['web'][1], r'^\[::1\]:\d+$')

    def test_a_flood_of_failures_is_limited(self) -> None:
        ringside = self.start_proxy('127.0.0.1:1')
        with client.Client(ringside.port) as peer:
            for _ in range(300):
                peer.get('/')
                self.assertEqual(peer.read_response().status, 502)
        self.assertLess(len(ringside.lines), 60)
