"""The reader of messages that all the other tests trust."""

import unittest

from . import client, upstream, wire


class Responses(unittest.TestCase):
    """Framing of RFC 9112 §6.3, at every split of the input."""

    def whole(self, data: bytes, **options) -> wire.Message:
        for cut in range(len(data)):
            try:
                early, _ = wire.parse_response(data[:cut], **options)
            except wire.Incomplete:
                continue
            self.fail(f'{cut} of {len(data)} bytes are taken for a whole response: {early}')
        message, rest = wire.parse_response(data + b'next', **options)
        self.assertEqual(rest, b'next')
        return message

    def test_length(self) -> None:
        self.assertEqual(self.whole(b'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc').body, b'abc')

    def test_chunked(self) -> None:
        message = self.whole(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n'
                             b'0\r\nX: 1\r\nY: 2\r\n\r\n')
        self.assertEqual((message.body, message.trailers), (b'abc', [('X', '1'), ('Y', '2')]))

    def test_no_body(self) -> None:
        for status in (100, 103, 204, 304):
            self.assertEqual(self.whole(f'HTTP/1.1 {status} X\r\nContent-Length: 9\r\n\r\n'.encode()).body, b'')
        self.assertEqual(self.whole(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n', method='HEAD').body, b'')

    def test_close_delimited(self) -> None:
        data = b'HTTP/1.1 200 OK\r\n\r\nabc'
        self.assertRaises(wire.Incomplete, wire.parse_response, data)
        self.assertEqual(wire.parse_response(data, ended=True)[0].body, b'abc')

    def test_malformed(self) -> None:
        for data in (b'HTTP/1.1 200 OK\r\nX : 1\r\n\r\n', b'HTTP/1.1 200 OK\r\nX\r\n\r\n',
                     b'HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n', b'HTTP/3 200 OK\r\n\r\n', b'junk\r\n\r\n',
                     b'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na',
                     b'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
                     b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n',
                     b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n'):
            with self.assertRaises(wire.Malformed, msg=data):
                wire.parse_response(data, ended=True)

    def test_several(self) -> None:
        data = (b'HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
                b'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ncut')
        responses, rest = wire.parse_responses(data, ended=True)
        self.assertEqual([r.status for r in responses], [103, 200])
        self.assertTrue(rest.endswith(b'cut'))


class Ends(unittest.TestCase):
    """The scripted upstream and the raw client, talking to each other."""

    def test_chunked_request_and_kept_connection(self) -> None:
        with upstream.Upstream(tls=None) as server, client.Client(server.port, tls=None) as peer:
            for piece in ('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab', 'c\r\n0\r\n\r\n'):
                peer.send(piece)
            self.assertEqual(peer.read_response().body, b'ok')
            peer.get('/2')
            self.assertEqual(peer.read_response().body, b'ok')
            self.assertEqual([r.body for r in server.requests], [b'abc', b''])
            self.assertEqual(len(server.connections), 1)

    def test_how_a_client_leaves_is_seen(self) -> None:
        with upstream.Upstream(lambda c, _: c.drain(), tls=None) as server:
            polite = client.Client(server.port, tls=None).get('/fin')
            rude = client.Client(server.port, tls=None).get('/rst')
            self.assertTrue(server.wait_for(lambda s: len(s.requests) == 2))
            polite.close()
            rude.reset()
            self.assertTrue(server.wait_for(lambda s: all(c.ended_by for c in s.connections)))
            self.assertEqual({c.requests[0].target: c.ended_by for c in server.connections},
                             {'/fin': 'fin', '/rst': 'reset'})


if __name__ == '__main__':
    unittest.main()
