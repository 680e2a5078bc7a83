"""OpenSSL by its own functions, for what Python's ssl module cannot do: a given cipher of TLS 1.3, KeyUpdates, tickets.

A Context takes the place of an ssl.SSLContext wherever a TlsSocket is made from one (Client, Upstream).
"""

from __future__ import annotations

import ctypes
import ssl
import weakref

from . import certificates

TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
# By cipher: the name for TLS 1.2 (with the tests' ECDSA certificates), and for TLS 1.3.
CIPHERS = {
    'aes128': ('ECDHE-ECDSA-AES128-GCM-SHA256', 'TLS_AES_128_GCM_SHA256'),
    'aes256': ('ECDHE-ECDSA-AES256-GCM-SHA384', 'TLS_AES_256_GCM_SHA384'),
    'chacha20': ('ECDHE-ECDSA-CHACHA20-POLY1305', 'TLS_CHACHA20_POLY1305_SHA256'),
}

_PEM, _VERIFY_NONE, _VERIFY_PEER = 1, 0, 1
_WANT_READ, _ZERO_RETURN = 2, 6
_SET_MIN, _SET_MAX, _SET_SERVER_NAME = 123, 124, 55
_HANDSHAKE, _KEY_UPDATE = 22, 24
_EARLY_ACCEPTED = 2

_ssl, _crypto = ctypes.CDLL('libssl.so.3'), ctypes.CDLL('libcrypto.so.3')
_MESSAGE = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_ubyte),
                            ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)


def _function(library: ctypes.CDLL, name: str, result: type | None, *arguments: type):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


_pointer, _int, _size, _text = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p
_client_method = _function(_ssl, 'TLS_client_method', _pointer)
_server_method = _function(_ssl, 'TLS_server_method', _pointer)
_ctx_new = _function(_ssl, 'SSL_CTX_new', _pointer, _pointer)
_ctx_free = _function(_ssl, 'SSL_CTX_free', None, _pointer)
_ctx_ctrl = _function(_ssl, 'SSL_CTX_ctrl', ctypes.c_long, _pointer, _int, ctypes.c_long, _pointer)
_ctx_ciphers = _function(_ssl, 'SSL_CTX_set_cipher_list', _int, _pointer, _text)
_ctx_suites = _function(_ssl, 'SSL_CTX_set_ciphersuites', _int, _pointer, _text)
_ctx_chain = _function(_ssl, 'SSL_CTX_use_certificate_chain_file', _int, _pointer, _text)
_ctx_key = _function(_ssl, 'SSL_CTX_use_PrivateKey_file', _int, _pointer, _text, _int)
_ctx_trust = _function(_ssl, 'SSL_CTX_load_verify_locations', _int, _pointer, _text, _text)
_ctx_verify = _function(_ssl, 'SSL_CTX_set_verify', None, _pointer, _int, _pointer)
_ctx_messages = _function(_ssl, 'SSL_CTX_set_msg_callback', None, _pointer, _MESSAGE)
_new = _function(_ssl, 'SSL_new', _pointer, _pointer)
_free = _function(_ssl, 'SSL_free', None, _pointer)
_set_bio = _function(_ssl, 'SSL_set_bio', None, _pointer, _pointer, _pointer)
_set_host = _function(_ssl, 'SSL_set1_host', _int, _pointer, _text)
_ctrl = _function(_ssl, 'SSL_ctrl', ctypes.c_long, _pointer, _int, ctypes.c_long, _pointer)
_accept_state = _function(_ssl, 'SSL_set_accept_state', None, _pointer)
_connect_state = _function(_ssl, 'SSL_set_connect_state', None, _pointer)
_do_handshake = _function(_ssl, 'SSL_do_handshake', _int, _pointer)
_read = _function(_ssl, 'SSL_read_ex', _int, _pointer, _pointer, _size, ctypes.POINTER(_size))
_write = _function(_ssl, 'SSL_write_ex', _int, _pointer, _pointer, _size, ctypes.POINTER(_size))
_shutdown = _function(_ssl, 'SSL_shutdown', _int, _pointer)
_key_update = _function(_ssl, 'SSL_key_update', _int, _pointer, _int)
_new_ticket = _function(_ssl, 'SSL_new_session_ticket', _int, _pointer)
_write_early = _function(_ssl, 'SSL_write_early_data', _int, _pointer, _pointer, _size, ctypes.POINTER(_size))
_early_status = _function(_ssl, 'SSL_get_early_data_status', _int, _pointer)
_get_session = _function(_ssl, 'SSL_get1_session', _pointer, _pointer)
_set_session = _function(_ssl, 'SSL_set_session', _int, _pointer, _pointer)
_session_free = _function(_ssl, 'SSL_SESSION_free', None, _pointer)
_session_early = _function(_ssl, 'SSL_SESSION_get_max_early_data', ctypes.c_uint32, _pointer)
_get_error = _function(_ssl, 'SSL_get_error', _int, _pointer, _int)
_get_version = _function(_ssl, 'SSL_get_version', _text, _pointer)
_get_cipher = _function(_ssl, 'SSL_get_current_cipher', _pointer, _pointer)
_cipher_name = _function(_ssl, 'SSL_CIPHER_get_name', _text, _pointer)
_bio_new = _function(_crypto, 'BIO_new', _pointer, _pointer)
_bio_memory = _function(_crypto, 'BIO_s_mem', _pointer)
_bio_read = _function(_crypto, 'BIO_read', _int, _pointer, _pointer, _int)
_bio_write = _function(_crypto, 'BIO_write', _int, _pointer, _pointer, _int)
_bio_pending = _function(_crypto, 'BIO_ctrl_pending', _size, _pointer)
_error = _function(_crypto, 'ERR_get_error', ctypes.c_ulong)
_error_text = _function(_crypto, 'ERR_error_string_n', None, ctypes.c_ulong, _text, _size)
_error_clear = _function(_crypto, 'ERR_clear_error', None)


def _why() -> str:
    text = ctypes.create_string_buffer(256)
    _error_text(_error(), text, len(text))
    return text.value.decode()


def _need(good: int | None) -> None:
    if not good or good <= 0:
        raise AssertionError(f'OpenSSL: {_why()}')


_sessions: 'weakref.WeakValueDictionary[int, Session]' = weakref.WeakValueDictionary()


@_MESSAGE  # for ever there: OpenSSL does not keep Python's objects alive
def _on_message(sent: int, _version: int, kind: int, data, size: int, connection: int, _: object) -> None:
    session = _sessions.get(connection)
    if session and not sent and kind == _HANDSHAKE and size and data[0] == _KEY_UPDATE:
        session.updates_received += 1


class Context:
    """One version and one cipher. With `pair` a server's, which shows it; else a client's, which trusts `authority`."""

    def __init__(self, version: ssl.TLSVersion, cipher: str, *, authority: certificates.Authority | None = None,
                 pair: certificates.Pair | None = None):
        self._context = _ctx_new(_server_method() if pair else _client_method())
        _need(self._context)
        for limit in (_SET_MIN, _SET_MAX):
            _need(_ctx_ctrl(self._context, limit, version.value, None))
        names = CIPHERS[cipher]
        _need(_ctx_ciphers(self._context, names[0].encode()))
        _need(_ctx_suites(self._context, names[1].encode()))
        if pair:
            _need(_ctx_chain(self._context, str(pair.cert).encode()))
            _need(_ctx_key(self._context, str(pair.key).encode(), _PEM))
        else:
            assert authority
            _need(_ctx_trust(self._context, str(authority.ca).encode(), None))
            _ctx_verify(self._context, _VERIFY_PEER, None)
        _ctx_messages(self._context, _on_message)

    def __del__(self) -> None:
        _ctx_free(self._context)

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False,
                 server_hostname: str | None = None) -> 'Session':
        """As ssl.SSLContext has it."""
        connection = _new(self._context)
        _need(connection)
        session = Session(connection, incoming, outgoing, server_side, server_hostname)
        _sessions[connection] = session
        return session


class Ticket:
    """What a client needs to resume a connection; `early_bytes` may come with its first flight."""

    def __init__(self, connection: int):
        self.pointer = _get_session(connection)
        _need(self.pointer)
        self.early_bytes = _session_early(self.pointer)

    def __del__(self) -> None:
        _session_free(self.pointer)


class Session:
    """What a TlsSocket needs of an ssl.SSLObject, and more. Its owner sees to it that calls do not overlap."""

    def __init__(self, connection: int, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool,
                 server_hostname: str | None):
        self._connection, self._incoming, self._outgoing = connection, incoming, outgoing
        self._in, self._out = _bio_new(_bio_memory()), _bio_new(_bio_memory())
        _set_bio(connection, self._in, self._out)  # which owns both from here on
        (_accept_state if server_side else _connect_state)(connection)
        if server_hostname:
            name = server_hostname.encode()
            _need(_ctrl(connection, _SET_SERVER_NAME, 0, ctypes.cast(ctypes.c_char_p(name), ctypes.c_void_p)))
            _need(_set_host(connection, name))
        self._buffer = ctypes.create_string_buffer(1 << 18)
        self.updates_received = 0

    def __del__(self) -> None:
        _free(self._connection)

    def do_handshake(self) -> None:
        self._call(lambda: _do_handshake(self._connection))

    def read(self, size: int) -> bytes:
        got = _size()
        size = min(size, len(self._buffer))
        self._call(lambda: _read(self._connection, self._buffer, size, ctypes.byref(got)))
        return self._buffer.raw[: got.value]

    def write(self, data: bytes) -> None:
        done = _size()
        self._call(lambda: _write(self._connection, data, len(data), ctypes.byref(done)))

    def unwrap(self) -> None:
        self._call(lambda: min(_shutdown(self._connection), 0) or 1)

    def update_key(self, requested: bool) -> None:
        """Sends a KeyUpdate, which may request the other end's."""
        _need(_key_update(self._connection, 1 if requested else 0))
        self.do_handshake()

    def new_ticket(self) -> None:
        _need(_new_ticket(self._connection))
        self.do_handshake()

    def ticket(self) -> Ticket:
        """Of a client that has read the server's."""
        return Ticket(self._connection)

    def resume(self, ticket: Ticket) -> None:
        """Before the handshake."""
        _need(_set_session(self._connection, ticket.pointer))

    def write_early(self, data: bytes) -> None:
        """With the first flight."""
        done = _size()
        self._call(lambda: _write_early(self._connection, data, len(data), ctypes.byref(done)))

    def early_accepted(self) -> bool:
        return _early_status(self._connection) == _EARLY_ACCEPTED

    def version(self) -> str:
        return _get_version(self._connection).decode()

    def cipher(self) -> str:
        return _cipher_name(_get_cipher(self._connection)).decode()

    def _call(self, function) -> None:
        data = self._incoming.read()
        if data:
            _need(_bio_write(self._in, data, len(data)))
        _error_clear()
        result = function()
        error = _get_error(self._connection, result) if result <= 0 else 0
        while waiting := _bio_pending(self._out):
            piece = ctypes.create_string_buffer(waiting)
            count = _bio_read(self._out, piece, waiting)
            self._outgoing.write(piece.raw[:count])
        if error == _WANT_READ:
            raise ssl.SSLWantReadError
        if error == _ZERO_RETURN:
            raise ssl.SSLZeroReturnError
        if error:
            raise ssl.SSLError(f'OpenSSL: {_why()}')
