"""Writes nginx configurations: nginx is the yardstick, and the upstream of everybody."""

from __future__ import annotations

import pathlib
import shutil

PROGRAM = shutil.which('nginx') or '/usr/sbin/nginx'


def write(folder: pathlib.Path, http: str, connections: int, workers: int = 1) -> pathlib.Path:
    """One worker is one process without a master, which is the kind way to count nginx's memory. nginx
    allocates all its connections at the start; it needs two for each client."""
    kinds = ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
    temporary = ' '.join(f'{kind}_temp_path {folder}/{kind};' for kind in kinds)
    config = folder / 'nginx.conf'
    config.write_text(f'''daemon off; master_process {"on" if workers > 1 else "off"}; user root;
worker_processes {workers}; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections {connections}; }}
http {{
  access_log off; {temporary}
  keepalive_requests 1000000000; keepalive_timeout 1h;
{http}
}}
''')
    return config


def command(config: pathlib.Path, program: str = PROGRAM) -> list[str]:
    return [program, '-p', str(config.parent), '-c', str(config), '-e', str(config.parent / 'error.log')]


def proxy(port: int, upstream: int, idle: int, tls: str = '', deferred: bool = False,
          http2: bool = False) -> str:
    """Buffering as nginx has it by default; the header fields that ringside sends by default. `tls`: the lines
    that a listener with TLS needs."""
    return f'''  upstream app {{
    server 127.0.0.1:{upstream}; keepalive {idle}; keepalive_requests 1000000000; keepalive_timeout 1h;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096 reuseport{" deferred" if deferred else ""}{" ssl" if tls else ""}{" http2" if http2 else ""}; {tls}
    client_max_body_size 0;
    location / {{
      proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host;
      proxy_set_header X-Request-Id $request_id; proxy_set_header Via "1.1 nginx";
      add_header Via "1.1 nginx";
    }}
  }}'''


def upstream(port: int, status: int, inner: pathlib.Path, files: pathlib.Path, small: pathlib.Path) -> str:
    """Files with sendfile, except for the small one, whose head and body leave in one write, as an
    application's would; sendfile makes two packets of it. An upload is read whole into memory before the inner
    server is asked for the 204, and is not sent on to it: `return` alone would answer before the body is there."""
    return f'''  sendfile on; open_file_cache max=16; open_file_cache_valid 1h;
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    root {files};
    location = /{small.name} {{ default_type text/plain; return 200 "{small.read_text()}"; }}
    location = /upload {{
      client_max_body_size 0; client_body_buffer_size 2m;
      proxy_pass http://unix:{inner}:; proxy_pass_request_body off; proxy_set_header Content-Length "";
    }}
  }}
  server {{ listen unix:{inner}; return 204; }}
  server {{ listen 127.0.0.1:{status}; location / {{ stub_status; }} }}'''
