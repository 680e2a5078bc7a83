"""Certificates for tests, made with the openssl command while they run and never kept."""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile

# Every name by which tests speak to ringside or to an upstream.
NAMES = ('a.test', 'localhost', '127.0.0.1')
DAYS = 7

_CONFIG = '[req]\ndistinguished_name = none\n[none]\n'
_NEW_KEY = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes')


def openssl(*arguments: str | pathlib.Path, text: bytes = b'') -> bytes:
    """What `openssl ARGUMENTS` prints; fails with what it says when it fails."""
    try:
        done = subprocess.run(['openssl', *map(str, arguments)], input=text, capture_output=True, check=False,
                              timeout=60)
    except FileNotFoundError:
        raise AssertionError('openssl is not installed (scripts/test installs it)') from None
    if done.returncode != 0:
        raise AssertionError(f'openssl {arguments[0]} failed: {done.stderr.decode(errors="replace")}')
    return done.stdout


@dataclasses.dataclass(frozen=True)
class Pair:
    """The files of a certificate and its key, both PEM."""

    cert: pathlib.Path
    key: pathlib.Path

    def toml(self) -> str:
        return f'cert = "{self.cert}", key = "{self.key}"'


class Authority:
    """A CA in a folder of its own; `ca` is its certificate, to be trusted."""

    def __init__(self, folder: pathlib.Path, name: str = 'Ringside test authority'):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.ca, self._key = folder / 'ca.pem', folder / 'ca.key'
        self._config = folder / 'openssl.cnf'
        if self.ca.exists():
            return
        self._config.write_text(_CONFIG)
        openssl('req', '-x509', '-config', self._config, *_NEW_KEY, '-keyout', self._key, '-out', self.ca,
                '-subj', f'/CN={name}', '-days', str(DAYS), '-addext', 'basicConstraints=critical,CA:true',
                '-addext', 'keyUsage=critical,keyCertSign,cRLSign')

    def issue(self, file_name: str, names: tuple[str, ...] = NAMES, *, days: int = DAYS, responder: str = '') -> Pair:
        """A certificate for host names and addresses (ECDSA P-256); with `days` below 0, one that has expired.

        `responder`: the URL that it names for OCSP.
        """
        pair = Pair(self.folder / f'{file_name}.pem', self.folder / f'{file_name}.key')
        request = self.folder / f'{file_name}.csr'
        kinds = ((name, 'IP' if name.replace('.', '').isdecimal() or ':' in name else 'DNS') for name in names)
        alternatives = ','.join(f'{kind}:{name}' for name, kind in kinds)
        access = ['-addext', f'authorityInfoAccess=OCSP;URI:{responder}'] if responder else []
        openssl('req', '-new', '-config', self._config, *_NEW_KEY, '-keyout', pair.key, '-out', request,
                '-subj', f'/CN={names[0]}', '-addext', f'subjectAltName={alternatives}', *access)
        # Moved into place whole: whoever watches the file never reads half of it.
        fresh = self.folder / f'{file_name}.new'
        openssl('x509', '-req', '-in', request, '-CA', self.ca, '-CAkey', self._key, '-CAcreateserial', '-days',
                str(days), '-copy_extensions', 'copy', '-out', fresh)
        os.replace(fresh, pair.cert)
        return pair

    def answer(self, request: bytes, *known: Pair, revoked: bool = False, minutes: int = 60) -> bytes:
        """What a responder says to an OCSP request, of certificates that it knows."""
        asked, index, said = (self.folder / name for name in ('asked.der', 'index.txt', 'said.der'))
        asked.write_bytes(request)
        lines = []
        for pair in known:
            serial = openssl('x509', '-in', pair.cert, '-noout', '-serial').decode().strip().partition('=')[2]
            state = 'R\t300101000000Z\t250101000000Z' if revoked else 'V\t300101000000Z\t'
            lines.append(f'{state}\t{serial}\tunknown\t/CN=any\n')
        index.write_text(''.join(lines))
        openssl('ocsp', '-index', index, '-CA', self.ca, '-rsigner', self.ca, '-rkey', self._key, '-reqin', asked,
                '-respout', said, '-nmin', str(minutes))
        return said.read_bytes()

    def server_context(self, pair: Pair, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """For a server that shows `pair`; with `version`, it speaks that one alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.cert, pair.key)
        context.set_alpn_protocols(['http/1.1'])
        return _pinned(context, version)

    def client_context(self, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        """For a client that trusts this authority and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.ca)
        context.set_alpn_protocols(['http/1.1'])
        return _pinned(context, version)


def _pinned(context: ssl.SSLContext, version: ssl.TLSVersion | None) -> ssl.SSLContext:
    if version:
        context.minimum_version = context.maximum_version = version
    return context


@dataclasses.dataclass(frozen=True)
class Shared:
    """What all tests of a run share."""

    authority: Authority
    server: Pair


@functools.cache
def shared() -> Shared:
    """Made by the first process that asks, in the folder that test/support/runner.py gives to its workers."""
    given = os.environ.get('RINGSIDE_TEST_FOLDER')
    base = pathlib.Path(given or tempfile.mkdtemp(prefix='ringside-certificates-'))
    if not given:
        atexit.register(shutil.rmtree, base, ignore_errors=True)
    folder = base / 'certificates'
    if not folder.exists():
        mine = pathlib.Path(tempfile.mkdtemp(prefix='making-', dir=base))
        Authority(mine).issue('server')
        try:
            mine.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was quicker: its are as good
                raise
    return Shared(Authority(folder), Pair(folder / 'server.pem', folder / 'server.key'))
