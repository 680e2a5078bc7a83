"""TLS for the rows that speak it: one certificate, version and cipher for all, and proof that it is so.

Load generators choose among what a proxy offers, each in its own order, so every proxy offers one thing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import socket
import ssl
import subprocess
import threading

VERSION, CIPHER, GROUP = 'TLSv1.3', 'TLS_AES_128_GCM_SHA256', 'X25519'
NAME = 'localhost'
RESUMED_MIN = 0.9  # of a probe's connections; the first of each client cannot be


@dataclasses.dataclass(frozen=True)
class Certificate:
    """PEM files; the certificate is its own authority."""

    cert: pathlib.Path
    key: pathlib.Path

    @property
    def both(self) -> pathlib.Path:
        """One file with the two, as HAProxy wants it."""
        return self.cert.with_name('both.pem')


@dataclasses.dataclass(frozen=True)
class Tls:
    """How a proxy is to speak to clients. `resume`: it gives tickets out, and opens them. `http2`: what it speaks over
    TLS, where a client asks for it."""

    certificate: Certificate
    resume: bool
    http2: bool = False

    def nginx(self) -> str:
        return (f'ssl_certificate {self.certificate.cert}; ssl_certificate_key {self.certificate.key}; '
                f'ssl_protocols {VERSION}; ssl_conf_command Ciphersuites {CIPHER}; ssl_ecdh_curve {GROUP}; '
                f'ssl_session_cache off; ssl_session_tickets {"on" if self.resume else "off"};')

    def haproxy_bind(self) -> str:
        return (f' ssl crt {self.certificate.both} ssl-min-ver {VERSION} ciphersuites {CIPHER} curves {GROUP}'
                f' alpn {"h2" if self.http2 else "http/1.1"}{"" if self.resume else " no-tls-tickets"}')

    def haproxy_global(self) -> str:
        """Without tickets, sessions would be kept there."""
        return '' if self.resume else '  tune.ssl.cachesize 0\n'

    def listen(self) -> str:
        """Lines of ringside's listener."""
        return 'protocols = ["h2", "http/1.1"]\n' if self.http2 else ''

    def ringside(self) -> str:
        """A table [tls.web]."""
        return (f'[tls.web]\ncertificates = [{{ cert = "{self.certificate.cert}", key = "{self.certificate.key}" }}]\n'
                f'min_version = "1.3"\nciphersuites = ["{CIPHER}"]\ngroups = ["{GROUP}"]\n'
                f'tickets = {str(self.resume).lower()}\n')


def make_certificate(folder: pathlib.Path, rsa: bool = False) -> Certificate:
    """ECDSA P-256, or RSA-2048, for localhost."""
    kind = ['rsa:2048'] if rsa else ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256']
    made = Certificate(folder / 'cert.pem', folder / 'key.pem')
    command = ['openssl', 'req', '-x509', '-newkey', *kind, '-nodes', '-keyout', str(made.key), '-out', str(made.cert), '-subj',
               f'/CN={NAME}', '-days', '2', '-addext',
               f'subjectAltName=DNS:{NAME},IP:127.0.0.1']
    try:
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise SystemExit(f'openssl (package openssl) cannot make a certificate: {error}') from error
    made.both.write_bytes(made.cert.read_bytes() + made.key.read_bytes())
    return made


def check(name: str, port: int, tls: Tls, path: str) -> None:
    """Two requests, each on a connection of its own, and a handshake for HTTP/2: the row means nothing unless all is as
    it should be."""
    context = ssl.create_default_context(cafile=tls.certificate.cert)
    first = _ask(name, context, port, path, None)
    second = _ask(name, context, port, path, first)
    for found in (first, second):
        if (found.version, found.cipher) != (VERSION, CIPHER):
            raise SystemExit(f'{name} speaks {found.version} with {found.cipher}, not {VERSION} with {CIPHER}')
    if second.reused != tls.resume:
        raise SystemExit(f'{name} {"resumes sessions" if second.reused else "does not resume a session"} where it '
                         f'{"should" if tls.resume else "should not"}')
    if tls.http2 and (agreed := _agree(name, tls, port)) != 'h2':
        raise SystemExit(f'{name} agrees on {agreed or "no protocol"}, not on h2')


def _agree(name: str, tls: Tls, port: int) -> str | None:
    """What a client that offers h2 gets by ALPN."""
    context = ssl.create_default_context(cafile=tls.certificate.cert)
    context.set_alpn_protocols(['h2'])
    try:
        with socket.create_connection(('127.0.0.1', port), 10) as plain:
            with context.wrap_socket(plain, server_hostname=NAME) as sock:
                return sock.selected_alpn_protocol()
    except OSError as error:
        raise SystemExit(f'{name} does not serve HTTP/2 over TLS: {error}') from error


@dataclasses.dataclass(frozen=True)
class Found:
    """What a connection came to."""

    version: str | None
    cipher: str
    reused: bool
    session: ssl.SSLSession | None


def _ask(name: str, context: ssl.SSLContext, port: int, path: str, before: Found | None) -> Found:
    request = f'GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n'
    try:
        with socket.create_connection(('127.0.0.1', port), 10) as plain:
            with context.wrap_socket(plain, server_hostname=NAME, session=before.session if before else None) as sock:
                sock.sendall(request.encode())
                answer = b''.join(iter(lambda: sock.recv(65536), b''))
                cipher = (sock.cipher() or ('none',))[0]
                found = Found(sock.version(), cipher, bool(sock.session_reused), sock.session)
    except OSError as error:
        raise SystemExit(f'{name} does not serve TLS: {error}') from error
    if not answer.startswith(b'HTTP/1.1 200 '):
        raise SystemExit(f'{name} answers {path} over TLS with {answer[:100]!r}')
    return found


class Probe:
    """A small TLS server that counts how many of its connections were resumed. Use it in a with statement."""

    def __init__(self, certificate: Certificate):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate.cert, certificate.key)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._listener = socket.create_server(('127.0.0.1', 0), backlog=256)
        self.port = self._listener.getsockname()[1]
        self.connections = self.resumed = 0
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            # One that stays silent does not hold the others up for long.
            plain.settimeout(1)
            with contextlib.suppress(OSError), self.context.wrap_socket(plain, server_side=True) as sock:
                self.connections += 1
                self.resumed += bool(sock.session_reused)
                if sock.recv(65536):
                    sock.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok')
                    sock.unwrap()
            plain.close()

    @property
    def share(self) -> float:
        return self.resumed / self.connections if self.connections else 0.0
