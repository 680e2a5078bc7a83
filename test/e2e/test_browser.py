"""Chromium loads a page with scripts, style, pictures and a WebSocket through ringside."""

import json
import pathlib
import re
import struct
import zlib

from support import chromium, nginx, testcase
from support.limits import limit

from .test_websocket import EchoServer

PICTURES = 12

PAGE = f'''<!doctype html><html><head><meta charset="utf-8"><title>through ringside</title>
<link rel="stylesheet" href="style.css"></head><body>
<p id="style">style</p><p id="script">script</p><p id="fetch">fetch</p><p id="socket">socket</p>
<p id="pictures">0</p>
<script src="script.js"></script>
</body></html>'''

SCRIPT = f'''
const say = (id, text) => document.getElementById(id).textContent = text;
say('script', 'script ran');
say('style', getComputedStyle(document.getElementById('style')).color);
let loaded = 0;
for (let i = 0; i < {PICTURES}; ++i) {{
  const picture = new Image();
  picture.onload = () => say('pictures', ++loaded + ' pictures, ' + picture.width + ' wide');
  picture.src = 'picture' + i + '.png';
}}
fetch('data.txt', {{method: 'GET'}}).then(r => r.text()).then(t => say('fetch', 'fetched ' + t.length));
// The browser's virtual time stands still during a fetch, and not while a socket has something to say.
let waiting = true;
const wait = async () => {{ for (let i = 0; waiting && i < 5000; ++i) await fetch('tick.txt?' + i); }};
wait();
const socket = new WebSocket(location.protocol.replace('http', 'ws') + '//' + location.host + '/socket');
socket.onmessage = event => {{
  if (event.data.startsWith('hello')) socket.send('from the browser');
  else {{ waiting = false; say('socket', 'socket said ' + event.data); socket.close(); }}
}};
'''


def png(width: int) -> bytes:
    """A grey picture of that width."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))

    rows = b''.join(b'\0' + b'\x80' * width for _ in range(width))
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, width, 8, 0, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


class Browser(testcase.RingsideTest):
    """The page says by itself what has worked."""

    @limit(150)
    def test_a_page_with_all_its_parts(self) -> None:
        server = nginx.Nginx()
        self.addCleanup(server.close)
        sockets = EchoServer()
        self.addCleanup(sockets.close)
        (server.www / 'index.html').write_text(PAGE)
        (server.www / 'script.js').write_text(SCRIPT)
        (server.www / 'style.css').write_text('#style { color: rgb(1, 2, 3) }')
        (server.www / 'tick.txt').write_text('tick')
        (server.www / 'data.txt').write_text('d' * 200000)
        for number in range(PICTURES):
            (server.www / f'picture{number}.png').write_bytes(png(64))
        ringside = self.start_proxy(server.address, extra=(
            '[[site.route]]\npath = "/socket"\nupstream = "sockets"\n'
            f'[upstream.sockets]\nservers = ["{sockets.address}"]\n'))
        page, errors = chromium.load(self.need_program('chromium'), ringside.url('/index.html'),
                                     '--ignore-certificate-errors')
        said = dict(re.findall(r'<p id="(\w+)">([^<]*)</p>', page))
        self.assertEqual(said, {
            'style': 'rgb(1, 2, 3)', 'script': 'script ran', 'fetch': 'fetched 200000',
            'socket': 'socket said from the browser', 'pictures': f'{PICTURES} pictures, 64 wide'},
            errors)
        targets = {pathlib.PurePosixPath(record['target']).name: record['status']
                   for record in map(json.loads, ringside.access_lines())}
        self.assertEqual(targets.get('picture0.png'), 200)
