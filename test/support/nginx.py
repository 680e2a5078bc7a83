"""A private nginx as the upstream: own folder, own port, no root, ended by pid."""

from __future__ import annotations

import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

from . import certificates, modes
from .upstream import wait_until


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


class Nginx:
    """Serves its `www`, takes uploads to /upload, answers /small with 1 KiB; over TLS as the mode says.

    With `tls`, it speaks TLS to clients with that certificate and its own defaults, whatever the mode.
    """

    def __init__(self, server_lines: str = '', *, workers: int = 1, tls: certificates.Pair | None = None):
        self._pair = tls
        self._tls = tls is not None or modes.upstream_speaks_tls()
        program = shutil.which('nginx') or '/usr/sbin/nginx'
        self._temporary = tempfile.TemporaryDirectory(prefix='ringside-nginx-')
        self.folder = pathlib.Path(self._temporary.name)
        self.www = self.folder / 'www'
        self.www.mkdir()
        self.folder.chmod(0o755)
        for attempt in range(5):
            self.port = free_port()
            self.address = f'{"https://" if self._tls else ""}127.0.0.1:{self.port}'
            config = self.folder / 'nginx.conf'
            config.write_text(self._config(server_lines, workers))
            self.process = subprocess.Popen(
                [program, '-p', str(self.folder), '-c', str(config), '-e', str(self.folder / 'error.log')],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if wait_until(lambda: self._answers() or self.process.poll() is not None) and self._answers():
                return
            # Somebody else took the port between our look and nginx's bind.
            self.process.wait()
        raise AssertionError('nginx does not start: ' + (self.folder / 'error.log').read_text())

    def _config(self, server_lines: str, workers: int) -> str:
        kib = 'x' * 1024
        ssl = ''
        if self._tls:
            pair = self._pair or certificates.shared().server
            ssl = f'ssl_certificate {pair.cert}; ssl_certificate_key {pair.key};'
            if not self._pair:
                ssl += f' ssl_protocols {modes.version_name()};'
        return f'''
daemon off;
worker_processes {workers};
pid {self.folder}/pid;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  default_type application/octet-stream;
  types {{ text/html html; text/css css; application/javascript js; image/png png; }}
  client_body_temp_path {self.folder}/body;
  proxy_temp_path {self.folder}/proxy;
  fastcgi_temp_path {self.folder}/fastcgi;
  uwsgi_temp_path {self.folder}/uwsgi;
  scgi_temp_path {self.folder}/scgi;
  client_max_body_size 0;
  keepalive_requests 1000000;
  server {{
    listen 127.0.0.1:{self.port} backlog=1024{" ssl" if self._tls else ""}; {ssl}
    root {self.www};
    location = /small {{ return 200 "{kib}"; }}
    {server_lines}
  }}
}}
'''

    def _answers(self) -> bool:
        try:
            socket.create_connection(('127.0.0.1', self.port), 1).close()
            return True
        except OSError:
            return False

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._temporary.cleanup()
