"""The way the tests speak to ringside: RINGSIDE_TEST_TLS is empty (in plain text) or one of MODES.

Mode is applied in three places: Ringside (its configuration), Client and Upstream (their sockets). Tests ask
here for what they write down themselves, such as a scheme.
"""

from __future__ import annotations

import fnmatch
import os
import pathlib
import re
import ssl

from . import certificates

MODES = {
    '': 'plain text on both sides',
    'client': 'listeners speak TLS 1.3',
    'client12': 'listeners speak TLS 1.2',
    'upstream': 'servers speak TLS 1.3',
    'upstream12': 'servers speak TLS 1.2',
}
# There while the kernel's module for TLS is loaded.
KERNEL_TLS = pathlib.Path('/proc/net/tls_stat')
SKIPS = pathlib.Path(__file__).resolve().parents[1] / 'skips.expected'


# For arguments that are an SSL context, or None for plain text: as the mode says.
DEFAULT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def mode() -> str:
    name = os.environ.get('RINGSIDE_TEST_TLS', '')
    if name not in MODES:
        raise SystemExit(f'RINGSIDE_TEST_TLS is {name!r}; it can be ' + ', '.join(filter(None, MODES)) + ', or empty')
    return name


def client_speaks_tls() -> bool:
    return mode().startswith('client')


def upstream_speaks_tls() -> bool:
    return mode().startswith('upstream')


def kernel_does_tls() -> bool:
    return KERNEL_TLS.exists()


def scheme() -> str:
    """Of URLs for ringside's listeners."""
    return 'https' if client_speaks_tls() else 'http'


def version() -> ssl.TLSVersion:
    return ssl.TLSVersion.TLSv1_2 if mode().endswith('12') else ssl.TLSVersion.TLSv1_3


def version_name() -> str:
    """As nginx writes it."""
    return 'TLSv1.2' if version() == ssl.TLSVersion.TLSv1_2 else 'TLSv1.3'


def client_context() -> ssl.SSLContext | None:
    """For clients of ringside; None: in plain text."""
    return certificates.shared().authority.client_context(version()) if client_speaks_tls() else None


def upstream_context() -> ssl.SSLContext | None:
    """For servers behind ringside; None: in plain text."""
    shared = certificates.shared()
    return shared.authority.server_context(shared.server, version()) if upstream_speaks_tls() else None


def tool_environment() -> dict[str, str]:
    """For programs that are clients of ringside: whom they trust."""
    ca = str(certificates.shared().authority.ca) if client_speaks_tls() else ''
    return {'CURL_CA_BUNDLE': ca, 'SSL_CERT_FILE': ca} if ca else {}


def configure(toml: str) -> str:
    """A test's configuration in this mode: TLS where a listener, or a server's https://, leaves it open."""
    if client_speaks_tls():
        without_tls = r'(?!(?:\n(?!\[).*)*\ntls = )'
        toml, count = re.subn(r'^(\[listen\.[\w.-]+\])$' + without_tls, r'\1\ntls = "test"', toml, flags=re.M)
        if count:
            toml += f'[tls.test]\ncertificates = [{{ {certificates.shared().server.toml()} }}]\n'
    if upstream_speaks_tls():
        for name, lines in re.findall(r'^\[upstream\.([\w-]+)\]\n((?:(?!\[)[^\n]*\n?)*)', toml, flags=re.M):
            if 'https://' in lines:
                toml += f'[upstream.{name}.tls]\nca = "{certificates.shared().authority.ca}"\n'
    return toml


def reason_to_skip(test_id: str) -> str | None:
    """Why a test makes no sense in this mode: the comment beside its glob in test/skips.expected."""
    if not mode():
        return None
    for line in SKIPS.read_text().splitlines():
        glob, _, reason = line.partition('#')
        if kernel_does_tls() and reason.strip().startswith('in user space'):
            continue
        if glob.strip() and fnmatch.fnmatchcase(f'{mode()}.{test_id}', glob.strip()):
            return reason.strip() or 'see test/skips.expected'
    return None
