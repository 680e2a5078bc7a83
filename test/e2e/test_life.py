"""The program's life: command line, configuration errors, start, drain, end."""

import os
import pathlib
import re
import signal
import tempfile
import threading
import time

from support import client, proxy, testcase, upstream, wire

GOOD = '''[listen.web]
address = "127.0.0.1:0"
[[site]]
hosts = ["*"]
[[site.route]]
path = "/*"
respond = { status = 200, body = "ok" }
'''


class CommandLine(testcase.RingsideTest):
    """run, check, version, help, and their exit codes."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='ringside-test-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text: str) -> str:
        path = self.folder / 'ringside.toml'
        path.write_text(text)
        return str(path)

    def test_help_and_version(self) -> None:
        for arguments in (['--help'], ['help']):
            done = proxy.run_command(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in ('run', 'check', 'version', '--config'):
                self.assertIn(word, done.stdout)
        done = proxy.run_command('version')
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r'ringside \d+\.\d+\.\d+')

    def test_usage_errors_exit_with_2(self) -> None:
        for arguments in (['frob'], ['run', '--no-such-option'], ['run', '--config']):
            done = proxy.run_command(*arguments)
            self.assertEqual(done.returncode, 2, f'{arguments}: {done.stderr}')
            self.assertTrue(done.stderr.strip())

    def test_check_prints_the_sizing_sheet(self) -> None:
        done = proxy.run_command('check', '--config', self.file(GOOD))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'(?i)\b(KiB|MiB)\b')

    def test_all_mistakes_are_reported_at_once(self) -> None:
        broken = self.file('''[listen.web]
address = "127.0.0.1:99999"
[timeouts]
keep_alvie = "75s"
connect = "soon"
[upstream.app]
servers = ["127.0.0.1:80"]
[[site]]
hosts = ["*"]
[[site.route]]
path = "/*"
upstream = "ap"
''')
        for command in ('check', 'run'):
            done = proxy.run_command(command, '--config', broken)
            self.assertEqual(done.returncode, 78, done.stderr)
            text = done.stdout + done.stderr
            for line in (2, 4, 5, 12):
                self.assertRegex(text, rf'ringside\.toml:{line}:\d+: ')
            self.assertIn('keep_alive', text)
            self.assertIn('"app"', text)

    def test_a_missing_file_exits_with_78(self) -> None:
        done = proxy.run_command('run', '--config', str(self.folder / 'none.toml'))
        self.assertEqual(done.returncode, 78, done.stderr)
        self.assertIn('none.toml', done.stderr)

    def test_an_address_in_use_is_a_clear_failure(self) -> None:
        server = self.start_upstream()
        done = proxy.run_command('run', '--config', self.file(GOOD.replace(':0"', f':{server.port}"')))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(str(server.port), done.stderr)

    def test_variables_of_the_environment(self) -> None:
        path = self.file(GOOD.replace('"ok"', '"${WORD:-none}"'))
        done = proxy.run_command('check', '--config', path, env={'WORD': 'x'})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_shipped_configurations_are_good(self) -> None:
        for name in ('demo.toml', 'ringside.toml'):
            done = proxy.run_command('check', '--config', str(proxy.ROOT / 'conf' / name))
            self.assertEqual(done.returncode, 0, f'{name}: {done.stderr}')

    def test_the_demo_proxies_to_itself(self) -> None:
        text = (proxy.ROOT / 'conf' / 'demo.toml').read_text()
        port = re.search(r'127\.0\.0\.1:8080', text)
        self.assertIsNotNone(port, 'the demo does not listen on 127.0.0.1:8080')


class Drain(testcase.RingsideTest):
    """SIGTERM lets requests in flight finish."""

    def setUp(self) -> None:
        super().setUp()
        self.gate = threading.Event()
        self.addCleanup(self.gate.set)

    def slow(self, connection: upstream.Connection, _: wire.Message) -> None:
        connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst')
        self.gate.wait(30)
        connection.send(b'later')

    def in_flight(self, **options: str):
        ringside, server = self.start_pair(self.slow, **options)
        peer = client.Client(ringside.port).get('/')
        self.addCleanup(peer.close)
        while not peer.received.endswith(b'first'):
            self.assertTrue(peer.read_some(5 * upstream.slowdown()))
        return ringside, server, peer

    def refuses(self, port: int) -> bool:
        try:
            client.Client(port).close()
            return False
        except OSError:
            return True

    def test_a_request_in_flight_finishes(self) -> None:
        ringside, _, peer = self.in_flight()
        ringside.signal(signal.SIGTERM)
        self.assertTrue(upstream.wait_until(lambda: self.refuses(ringside.port)),
                        'new connections are still accepted')
        self.assertTrue(ringside.running())
        self.gate.set()
        response = peer.read_response()
        self.assertEqual(response.body, b'firstlater')
        peer.read_to_end()
        self.assertEqual(ringside.wait(), 0)
        self.assertEqual(len(ringside.access_lines()), 1)

    def test_idle_connections_do_not_hold_a_drain_up(self) -> None:
        ringside, _ = self.start_pair()
        peers = [client.Client(ringside.port) for _ in range(3)]
        peers[0].get('/')
        self.assertEqual(peers[0].read_response().status, 200)
        peers[1].get('/')
        self.assertEqual(peers[1].read_response().status, 200)
        ringside.signal(signal.SIGTERM)
        self.assertEqual(ringside.wait(), 0)
        for peer in peers:
            self.assertEqual(peer.read_to_end(), b'')
            peer.close()

    def test_a_second_signal_ends_it_at_once(self) -> None:
        ringside, _, peer = self.in_flight()
        ringside.signal(signal.SIGTERM)
        self.assertTrue(upstream.wait_until(lambda: self.refuses(ringside.port)))
        self.assertTrue(ringside.running())
        ringside.statuses_allowed = {0, 1}
        ringside.signal(signal.SIGTERM)
        ringside.wait()
        self.assertNotIn(b'later', peer.read_to_end())

    def test_the_drain_has_a_deadline(self) -> None:
        ringside, _, _ = self.in_flight(timeouts='drain = "300ms"')
        ringside.statuses_allowed = {0, 1}
        ringside.signal(signal.SIGTERM)
        ringside.wait()

    def test_interrupt_works_like_terminate(self) -> None:
        ringside, _, peer = self.in_flight()
        ringside.signal(signal.SIGINT)
        self.assertTrue(upstream.wait_until(lambda: self.refuses(ringside.port)))
        self.gate.set()
        self.assertEqual(peer.read_response().body, b'firstlater')
        self.assertEqual(ringside.wait(), 0)

    def test_no_request_fails_in_a_drain_under_load(self) -> None:
        ringside, server = self.start_pair(server='rings = 2')
        failures: list[str] = []
        counts = [0] * 8

        def load(number: int) -> None:
            while True:
                try:
                    peer = client.Client(ringside.port)
                except OSError:
                    return
                with peer:
                    while peer.ended is None:
                        try:
                            peer.get('/')
                            response = peer.read_response()
                        except AssertionError as error:
                            # Closed between two requests, as HTTP allows: no byte of an answer, and
                            # (seen below) nothing that a server answered was lost.
                            if peer.unread():
                                failures.append(str(error))
                            break
                        if response.status != 200:
                            failures.append(response.start)
                        counts[number] += 1
                        if (response.get('connection') or '').lower() == 'close':
                            break

        threads = [threading.Thread(target=load, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        self.assertTrue(upstream.wait_until(lambda: min(counts) > 20, 30))
        ringside.signal(signal.SIGTERM)
        for thread in threads:
            thread.join(30)
        self.assertEqual(ringside.wait(), 0)
        self.assertEqual(failures, [])
        self.assertEqual(sum(counts), len(server.requests), 'answers were lost')


class DeferredAccept(testcase.RingsideTest):
    """A listener whose connections come with their first byte."""

    def start(self, seconds: int, **options: str) -> tuple[proxy.Ringside, upstream.Upstream]:
        return self.start_pair(listen=f'["127.0.0.1:0"]\ndefer_accept = "{seconds}s"', **options)

    def silent(self, ringside: proxy.Ringside) -> client.Client:
        """Connected, and in no hurry to say anything, over TLS either."""
        peer = client.Client(ringside.port, tls=None)
        self.addCleanup(peer.close)
        return peer

    def test_who_sends_is_served_as_ever(self) -> None:
        ringside, _ = self.start(15)
        with client.Client(ringside.port) as peer:
            for _ in range(3):
                self.assertEqual(peer.get('/').read_response().status, 200)
        with client.Client(ringside.port) as peer:
            peer.send('GET / HT')
            peer.send('TP/1.1\r\nHost: a.test\r\n\r\n')
            self.assertEqual(peer.read_response().status, 200)

    def test_who_is_silent_is_kept_back_and_comes_in_with_the_first_byte(self) -> None:
        ringside, _ = self.start(15)
        before = ringside.sockets()
        late = client.Client(ringside.port)
        self.addCleanup(late.close)
        with client.Client(ringside.port) as peer:
            self.assertEqual(peer.get('/').read_response().status, 200)
            self.assertEqual(ringside.sockets() - before, 2, 'a client and its server, and nobody else')
            self.assertEqual(late.get('/').read_response().status, 200)

    def test_who_stays_silent_is_accepted_later_and_has_the_time_of_a_head_then(self) -> None:
        ringside, server = self.start(1, timeouts='client_header = "300ms"')
        before = ringside.sockets()
        peer = self.silent(ringside)
        self.assertTrue(upstream.wait_until(lambda: ringside.sockets() > before), 'it is never accepted')
        peer.read_to_end()
        self.assertEqual(server.connections, [])

    def test_a_drain_waits_for_nobody_who_is_silent_and_serves_who_is_not(self) -> None:
        ringside, server = self.start(15)
        quiet = self.silent(ringside)
        with client.Client(ringside.port) as begun:
            begun.send('GET / HTTP/1.1\r\n')
            ringside.signal(signal.SIGTERM)
            begun.send('Host: a.test\r\n\r\n')
            self.assertEqual(begun.read_response().status, 200)
        self.assertEqual(ringside.wait(), 0)
        self.assertEqual(len(server.requests), 1)
        # Nobody is there any more, and that is what it is told.
        quiet.get('/')
        quiet.read_to_end()
        self.assertEqual(quiet.ended, 'reset')


class Rings(testcase.RingsideTest):
    """Several rings in one process."""

    def test_two_rings_serve_and_share(self) -> None:
        ringside, _ = self.start_pair(server='rings = 2')
        threads = len(os.listdir(f'/proc/{ringside.pid}/task'))
        self.assertGreaterEqual(threads, 2)
        for _ in range(50):
            self.assertEqual(client.request(ringside.port).status, 200)

    def test_it_is_quiet_when_idle(self) -> None:
        ringside, _ = self.start_pair()
        self.assertEqual(client.request(ringside.port).status, 200)
        before = ringside.cpu_seconds()
        time.sleep(2)
        self.assertLess(ringside.cpu_seconds() - before, 0.2, 'it spins while nothing happens')
