"""gRPC's own client and server with ringside between them, in clear text and over TLS."""

import hashlib
import json
import os
import queue
from typing import Iterator

from support import certificates, h2_upstream
from support.grpc_server import SERVICE, Channel, Control, Server, grpc
from support.limits import limit
from support.upstream import slowdown

TEN_MB = 10_000_000
OK, CANCELLED = grpc.StatusCode.OK, grpc.StatusCode.CANCELLED
SECONDS = 20 * slowdown()  # bounds a hang


class Sender:
    """The messages of a call that the test sends one by one."""

    def __init__(self) -> None:
        self._queue: 'queue.Queue[bytes | None]' = queue.Queue()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._queue.get, None)

    def send(self, message: bytes) -> None:
        self._queue.put(message)

    def end(self) -> None:
        self._queue.put(None)


class GrpcTest(h2_upstream.UpstreamTest):
    """Over TLS on both sides with `tls`, else in clear text with prior knowledge."""

    tls = False

    def start(self, lines: str = '', **options: str) -> Channel:
        """A server, ringside, and a client's connection to it. `control` has the server's events."""
        self.server = self.start_grpc()
        self.control = self.closing(Control(self.server))
        shared = certificates.shared()
        trust = {'tls': f'certificates = [{{ {shared.server.toml()} }}]',
                 'upstream_tls': f'ca = "{shared.authority.ca}"'} if self.tls else {}
        self.ringside = self.start_before(self.server, lines=lines, listen='["127.0.0.1:0"]\nprotocols = ["h2"]', **trust,
                                          **options)
        return self.connect_grpc()

    def start_grpc(self, port: int = 0) -> Server:
        server = Server(tls=self.tls, port=port)
        self.addCleanup(server.kill)
        return server

    def connect_grpc(self) -> Channel:
        return self.closing(Channel(self.ringside.port, tls=self.tls))

    def closing(self, what):
        self.addCleanup(what.close)
        return what

    def talk(self, channel: Channel) -> tuple[Sender, grpc.Call]:
        sender = Sender()
        self.addCleanup(sender.end)
        return sender, channel.method('stream_stream_talk')(iter(sender), timeout=SECONDS)

    def assert_talks(self, sender: Sender, call: grpc.Call, message: bytes) -> None:
        sender.send(message)
        self.assertEqual(next(call), message[::-1])

    def assert_echoes(self, channel: Channel, message: bytes = b'message') -> None:
        self.assertEqual(channel.method('unary_unary_echo')(message, timeout=SECONDS), message)

    def error_of(self, wait) -> grpc.RpcError:
        with self.assertRaises(grpc.RpcError) as caught:
            wait()
        return caught.exception

    def tls_lines(self) -> str:
        """What follows the keys of the listener."""
        return f'tls = "main"\n[tls.main]\ncertificates = [{{ {certificates.shared().server.toml()} }}]' if self.tls else ''

    def assert_refused(self, status: str, end: str) -> None:
        """By the first record: an answer of ringside itself."""
        record = self.ringside.access_records(1)[0]
        self.assertEqual((record['status'], record['grpc_status'], record['end']), (200, status, end))

    def statuses(self, count: int) -> list[str | None]:
        return [record.get('grpc_status') for record in self.ringside.access_records(count)]


class Messages:
    """What a call carries."""

    def test_unary(self) -> None:
        channel = self.start()
        for message in (b'', b'message', bytes(100_000)):
            self.assert_echoes(channel, message)
        self.assertEqual(self.statuses(3), ['0'] * 3)
        record = self.ringside.access_records(3)[0]
        self.assertEqual((record['status'], record['end']), (200, 'complete'))

    def test_a_stream_of_the_server(self) -> None:
        channel = self.start()
        call = channel.method('unary_stream_spread')(b'20', timeout=SECONDS, metadata=[('x-key', 'a')])
        for number in range(20):
            self.assertEqual(next(call), b'message %d' % number)
            self.control.note('a', f'go {number + 1}')
        self.assertEqual(list(call), [])
        self.assertEqual(self.statuses(1), ['0'])

    def test_a_stream_of_the_client(self) -> None:
        channel = self.start()
        sender, total = Sender(), hashlib.sha256()
        self.addCleanup(sender.end)
        call = channel.method('stream_unary_collect').future(iter(sender), timeout=SECONDS, metadata=[('x-key', 'a')])
        for number in range(20):
            message = os.urandom(1 << number % 18)
            total.update(message)
            sender.send(message)
            self.control.wait('a', f'got {number}')
        sender.end()
        self.assertEqual(call.result(), total.hexdigest().encode())

    def test_streams_both_ways_at_once(self) -> None:
        channel = self.start()
        talks = [self.talk(channel) for _ in range(10)]
        for number in range(10):
            for place, (sender, call) in enumerate(talks):
                self.assert_talks(sender, call, b'%d of %d' % (number, place) * (1 << number))
        for sender, call in talks:
            sender.end()
            self.assertEqual(list(call), [])
            self.assertEqual(call.code(), OK)
        self.assertEqual(self.statuses(10), ['0'] * 10)

    @limit(120)
    def test_10_mb_both_ways(self) -> None:
        channel = self.start()
        message = os.urandom(TEN_MB)
        wanted = hashlib.sha256(message).hexdigest()
        back = channel.method('unary_unary_echo')(message, timeout=4 * SECONDS)
        self.assertEqual(hashlib.sha256(back).hexdigest(), wanted)
        total = channel.method('stream_unary_collect')(iter([message]), timeout=4 * SECONDS)
        self.assertEqual(total.decode(), wanted)
        sender, call = self.talk(channel)
        sender.send(message)
        sender.send(message)
        for _ in range(2):
            self.assertEqual(hashlib.sha256(next(call)[::-1]).hexdigest(), wanted)

    def test_metadata_both_ways(self) -> None:
        channel = self.start()
        sent = [('x-text', 'words with spaces, and commas'), ('x-raw-bin', bytes(range(256))), ('x-long', 'v' * 4000),
                ('x-many', 'one'), ('x-many', 'two')]
        _, call = channel.method('unary_unary_echo').with_call(b'', timeout=SECONDS, metadata=sent)
        first = [(key, value) for key, value in call.initial_metadata() if key.startswith('x-')]
        last = [('x' + key[1:], value) for key, value in call.trailing_metadata() if key.startswith('t-')]
        for got in (first, last):
            # What ringside adds came back with the others.
            got = [(key, value) for key, value in got if not key.startswith('x-forwarded') and key != 'x-request-id']
            self.assertEqual(sorted(got), sorted(sent))

    @limit(120)
    def test_many_calls_at_once(self) -> None:
        channels = [self.start()]
        channels += [self.connect_grpc() for _ in range(3)]
        talks = [self.talk(channel) for channel in channels for _ in range(10)]
        calls = {}
        for number in range(1000):
            message = b'%d' % number * (number % 500)
            calls[channels[number % 4].method('unary_unary_echo').future(message, timeout=4 * SECONDS)] = message
        for number, (sender, call) in enumerate(talks):
            self.assert_talks(sender, call, b'talk %d' % number)
        for call, message in calls.items():
            self.assertEqual(call.result(), message)
        for sender, call in talks:
            sender.end()
            self.assertEqual(list(call), [])
        self.assertEqual(self.statuses(1040), ['0'] * 1040)


class Ends:
    """How a call ends that does not end well."""

    def test_errors_have_their_status(self) -> None:
        channel = self.start()
        for code in (3, 5, 13, 16):
            details = f'no luck: {code} % äöü\n'
            for method in ('unary_unary_fail', 'unary_stream_fail'):
                asked = json.dumps({'code': code, 'details': details}).encode()
                call = channel.method(method)
                error = self.error_of(lambda c=call, a=asked: list(c(a, timeout=SECONDS)))
                self.assertEqual((error.code().value[0], error.details()), (code, details))
                self.assertIn(('t-why', 'asked for'), error.trailing_metadata())
        self.assertEqual(self.statuses(8), [str(code) for code in (3, 5, 13, 16) for _ in range(2)])

    def test_a_message_comes_before_its_error(self) -> None:
        call = self.start().method('unary_stream_fail')(b'{"code": 9, "details": "no"}', timeout=SECONDS)
        self.assertEqual(next(call), b'before')
        self.assertEqual(self.error_of(lambda: next(call)).code().value[0], 9)

    def test_a_method_that_is_not_there(self) -> None:
        error = self.error_of(lambda: self.start().method('unary_unary_none')(b'', timeout=SECONDS))
        self.assertEqual(error.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertEqual(self.statuses(1), ['12'])

    def test_a_deadline(self) -> None:
        channel = self.start()
        self.assertEqual(channel.method('unary_unary_deadline')(b''), b'')
        left = float(channel.method('unary_unary_deadline')(b'', timeout=1000))
        self.assertTrue(500 < left < 2000, left)  # it is sent with two digits or three
        error = self.error_of(lambda: channel.method('unary_unary_hold')(b'', timeout=0.5, metadata=[('x-key', 'a')]))
        self.assertEqual(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.assertEqual(len(self.ringside.access_records(3)), 3)
        self.assert_echoes(channel)

    def test_cancelling_reaches_the_server(self) -> None:
        channel = self.start()
        held = channel.method('unary_unary_hold').future(b'', metadata=[('x-key', 'unary')])
        sender = Sender()
        self.addCleanup(sender.end)
        streams = channel.method('stream_stream_hold')(iter(sender), metadata=[('x-key', 'stream')])
        sender.send(b'first')
        self.assertEqual(next(streams), b'first')
        for key, call in (('unary', held), ('stream', streams)):
            self.control.wait(key, 'started')
            call.cancel()
            self.control.wait(key, 'cancelled')
            self.control.wait(key, 'done')
            self.assertEqual(call.code(), CANCELLED)
        self.assert_echoes(channel)
        records = self.ringside.access_records(3)
        self.assertEqual([record.get('grpc_status') for record in records], [None, None, '0'])
        self.assertEqual([record['reused'] for record in records].count(False), 1, 'one connection to the server')

    def test_a_client_that_is_gone_reaches_the_server(self) -> None:
        channel = self.start()
        other = self.connect_grpc()
        held = [channel.method('unary_unary_hold').future(b'', metadata=[('x-key', f'{number}')]) for number in range(5)]
        self.assert_echoes(other)
        for number in range(5):
            self.control.wait(f'{number}', 'started')
        channel.close()
        for number in range(5):
            self.control.wait(f'{number}', 'cancelled')
            self.assertEqual(held[number].code(), CANCELLED)
        self.assert_echoes(other)


    def test_a_server_that_does_not_answer_in_time(self) -> None:
        channel = self.start('response_header_timeout = "200ms"')
        error = self.error_of(lambda: channel.method('unary_unary_hold')(b'', metadata=[('x-key', 'a')]))
        self.assertEqual((error.code(), error.details()),
                         (grpc.StatusCode.DEADLINE_EXCEEDED, 'The server did not answer in time.'))
        self.control.wait('a', 'cancelled')
        self.assert_refused('4', 'upstream/wait_response/timed_out')
        self.assert_echoes(channel)

    def test_a_call_that_nobody_takes(self) -> None:
        self.ringside = self.start_ringside('''
[server]
rings = 1
[log]
access = { format = "json", file = "@DIR@/access.log" }
[listen.web]
address = "127.0.0.1:0"
protocols = ["h2"]
%s
[upstream.gone]
servers = ["unix:@DIR@/none.sock"]
protocol = "h2"
[[site]]
hosts = ["*"]
[[site.route]]
path = "/SERVICE/unary_unary_gone"
upstream = "gone"
response_headers = { set = { content-type = "text/html", grpc-status = "0", x-a = "b" } }
[[site.route]]
path = "/SERVICE/unary_unary_get"
methods = ["GET"]
upstream = "gone"
'''.replace('SERVICE', SERVICE) % self.tls_lines())
        channel = self.connect_grpc()
        Code = grpc.StatusCode
        wanted = {'gone': (Code.UNAVAILABLE, 'The server cannot be reached.', '14', 'upstream/connect/refused'),
                  'get': (Code.UNIMPLEMENTED, 'The method is not allowed here.', '12', 'client/route/not_allowed'),
                  'none': (Code.UNIMPLEMENTED, 'Nothing is served here.', '12', 'client/route/not_found')}
        for method, (code, details, _, _) in wanted.items():
            error = self.error_of(lambda m=method: channel.method(f'unary_unary_{m}')(b'', timeout=SECONDS))
            self.assertEqual((error.code(), error.details()), (code, details))
            self.assertEqual(('x-a', 'b') in error.trailing_metadata(), method == 'gone')
        records = self.ringside.access_records(3)
        self.assertEqual([(record['grpc_status'], record['end']) for record in records],
                         [(status, end) for _, _, status, end in wanted.values()])
        self.assertEqual([record['status'] for record in records], [200] * 3)

    def test_messages_beyond_the_limit(self) -> None:
        channel = self.start(limits='body_size = "4KiB"')
        error = self.error_of(lambda: channel.method('unary_unary_hold')(bytes(8192), timeout=SECONDS))
        self.assertEqual((error.code(), error.details()),
                         (grpc.StatusCode.RESOURCE_EXHAUSTED, "The request's body is too large."))
        self.assert_refused('8', 'client/send_request/too_large')
        self.assert_echoes(channel)

    def test_a_queue_that_is_full(self) -> None:
        channel = self.start('max_connections = 1\nmax_streams = 1\nqueue = 1\nqueue_timeout = "60s"')
        sender, call = self.talk(channel)
        self.assert_talks(sender, call, b'before')
        waits = channel.method('unary_unary_echo').future(b'waits', timeout=SECONDS)
        # Which of the two has the place in the queue is not ours to say; the other is refused at once.
        other = channel.method('unary_unary_echo').future(b'waits', timeout=SECONDS)
        self.assert_refused('14', 'ringside/queue/limit')
        sender.end()
        self.assertEqual(list(call), [])
        answers = [each.exception() for each in (waits, other)]
        self.assertEqual(sorted(error is None for error in answers), [False, True])
        for error in filter(None, answers):
            self.assertEqual((error.code(), error.details()),
                             (grpc.StatusCode.UNAVAILABLE, 'No server is free to answer.'))


class Servers:
    """Servers that come and go."""

    def test_a_server_that_dies_and_is_there_again(self) -> None:
        channel = self.start()
        held = channel.method('unary_unary_hold').future(b'', timeout=SECONDS, metadata=[('x-key', 'a')])
        sender, call = self.talk(channel)
        self.assert_talks(sender, call, b'before')
        self.control.wait('a', 'started')
        self.server.kill()
        self.assertEqual(self.error_of(held.result).code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.error_of(lambda: next(call)).code(), grpc.StatusCode.INTERNAL, 'a stream that is reset')
        error = self.error_of(lambda: self.assert_echoes(channel))
        self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
        self.start_grpc(self.server.port)
        self.assert_echoes(channel)

    def test_a_server_that_is_replaced_loses_no_call(self) -> None:
        channel = self.start()
        sender, call = self.talk(channel)
        self.assert_talks(sender, call, b'before')
        self.server.retire()
        after = self.start_grpc(self.server.port)
        for number in range(20):
            self.assert_echoes(channel)
            self.assert_talks(sender, call, b'number %d' % number)
        sender.end()
        self.assertEqual(list(call), [])
        self.control.close()
        self.assertEqual(self.server.wait(), 0)
        self.assertEqual(self.statuses(21), ['0'] * 21)
        self.closing(Control(after)).note('a', 'it answers')

    def test_a_drain_lets_calls_finish(self) -> None:
        channel = self.start()
        sender, call = self.talk(channel)
        self.assert_talks(sender, call, b'before')
        self.ringside.signal(15)
        self.assertTrue(self.ringside.wait_for_log('drain'))
        self.assert_talks(sender, call, b'behind')
        sender.end()
        self.assertEqual(list(call), [])
        self.assertEqual(self.ringside.wait(), 0)

    def test_pings_do_not_annoy_a_server(self) -> None:
        channel = self.start('ping_interval = "1ms"')
        sender, call = self.talk(channel)
        held = channel.method('unary_unary_hold').future(b'', timeout=SECONDS, metadata=[('x-key', 'a')])
        for number in range(200):
            self.assert_echoes(channel)
            self.assert_talks(sender, call, b'number %d' % number)
        for _ in range(200):  # while nothing comes from ringside but a PING
            self.control.note('a', 'a while later')
        self.control.note('a', 'release')
        self.assertEqual(held.result(), b'released')
        sender.end()
        self.assertEqual(list(call), [])
        reused = [record['reused'] for record in self.ringside.access_records(202)]
        self.assertEqual(reused.count(False), 1, 'it ended the connection')


class ClearMessages(Messages, GrpcTest):
    pass


class ClearEnds(Ends, GrpcTest):
    pass


class ClearServers(Servers, GrpcTest):
    pass


class TlsMessages(Messages, GrpcTest):
    tls = True


class TlsEnds(Ends, GrpcTest):
    tls = True


class TlsServers(Servers, GrpcTest):
    tls = True
