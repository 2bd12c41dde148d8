# SPDX-License-Identifier: BSD-2-Clause
"""TLS 1.3 of a client with a key of the cluster, and AEAD ciphers: OpenSSL through ctypes.

Python's ssl can neither offer an external PSK in TLS 1.3 nor export a secret.
"""
import ctypes
import functools

READ_BYTES = 1 << 16
TLS1_3 = 0x0304
SET_MIN_VERSION, SET_MAX_VERSION = 123, 124     # SSL_CTRL_SET_..._PROTO_VERSION of openssl/ssl.h
WANT_READ = 2                                   # SSL_ERROR_WANT_READ
UPDATE_REQUESTED = 1                            # SSL_KEY_UPDATE_REQUESTED
SET_TAG, GET_TAG = 17, 16                       # EVP_CTRL_AEAD_..._TAG of openssl/evp.h
TAG_BYTES, NONCE_BYTES = 16, 12

AES, CHACHA = 0, 1                              # as Hello.cipher of weft_wire(7) has them
KEY_BYTES = (16, 32)

pointer, size, text, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int
# unsigned (*)(SSL *, const char *hint, char *identity, unsigned, unsigned char *psk, unsigned)
PskCallback = ctypes.CFUNCTYPE(ctypes.c_uint, pointer, text, pointer, ctypes.c_uint, pointer,
                               ctypes.c_uint)

PROTOTYPES = {
    'libssl.so.3': (
        ('TLS_client_method', pointer, []),
        ('SSL_CTX_new', pointer, [pointer]),
        ('SSL_CTX_free', None, [pointer]),
        ('SSL_CTX_ctrl', ctypes.c_long, [pointer, number, ctypes.c_long, pointer]),
        ('SSL_CTX_set_psk_client_callback', None, [pointer, PskCallback]),
        ('SSL_new', pointer, [pointer]),
        ('SSL_free', None, [pointer]),
        ('SSL_set_bio', None, [pointer, pointer, pointer]),
        ('SSL_set_connect_state', None, [pointer]),
        ('SSL_do_handshake', number, [pointer]),
        ('SSL_read', number, [pointer, pointer, number]),
        ('SSL_write', number, [pointer, text, number]),
        ('SSL_get_error', number, [pointer, number]),
        ('SSL_key_update', number, [pointer, number]),
        ('SSL_export_keying_material', number, [pointer, pointer, size, text, size, pointer, size,
                                                number])),
    'libcrypto.so.3': (
        ('BIO_s_mem', pointer, []),
        ('BIO_new', pointer, [pointer]),
        ('BIO_read', number, [pointer, pointer, number]),
        ('BIO_write', number, [pointer, text, number]),
        ('ERR_clear_error', None, []),
        ('ERR_get_error', ctypes.c_ulong, []),
        ('ERR_error_string_n', None, [ctypes.c_ulong, pointer, size]),
        ('EVP_CIPHER_CTX_new', pointer, []),
        ('EVP_CIPHER_CTX_free', None, [pointer]),
        ('EVP_CIPHER_CTX_ctrl', number, [pointer, number, number, pointer]),
        ('EVP_CipherInit_ex', number, [pointer, pointer, pointer, text, text, number]),
        ('EVP_CipherUpdate', number, [pointer, pointer, ctypes.POINTER(number), text, number]),
        ('EVP_CipherFinal_ex', number, [pointer, pointer, ctypes.POINTER(number)]),
        ('EVP_aes_128_gcm', pointer, []),
        ('EVP_chacha20_poly1305', pointer, []))}


@functools.cache
def library():
    """The functions of OpenSSL that are used here, as attributes."""
    found = {}
    for file, rows in PROTOTYPES.items():
        loaded = ctypes.CDLL(file)
        for name, result, arguments in rows:
            function = getattr(loaded, name)
            function.restype, function.argtypes = result, arguments
            found[name] = function
    return type('OpenSSL', (), {name: staticmethod(f) for name, f in found.items()})


class Failed(Exception):
    """The session has failed, or the other side has ended it."""


def reason(what):
    """What failed, with OpenSSL's oldest reason."""
    ssl, said = library(), ctypes.create_string_buffer(256)
    code = ssl.ERR_get_error()
    ssl.ERR_error_string_n(code, said, len(said))
    ssl.ERR_clear_error()
    return '%s: %s' % (what, said.value.decode() if code else 'end of the session')


class Session:
    """The client's side of a session: bytes go in and out, and no socket is known here."""

    def __init__(self, identity, secret):
        ssl = library()
        self.at = None
        self.context = ssl.SSL_CTX_new(ssl.TLS_client_method())
        for what in (SET_MIN_VERSION, SET_MAX_VERSION):
            ssl.SSL_CTX_ctrl(self.context, what, TLS1_3, None)

        def offer(_ssl, _hint, identity_at, _room, secret_at, _secret_room):
            ctypes.memmove(identity_at, identity + b'\0', len(identity) + 1)
            ctypes.memmove(secret_at, secret, len(secret))
            return len(secret)

        self.offer = PskCallback(offer)     # OpenSSL keeps no reference to it
        ssl.SSL_CTX_set_psk_client_callback(self.context, self.offer)
        self.at = ssl.SSL_new(self.context)
        self.heard, self.said = ssl.BIO_new(ssl.BIO_s_mem()), ssl.BIO_new(ssl.BIO_s_mem())
        ssl.SSL_set_bio(self.at, self.heard, self.said)
        ssl.SSL_set_connect_state(self.at)
        self.buffer = ctypes.create_string_buffer(READ_BYTES)

    def __del__(self):
        if self.at:
            library().SSL_free(self.at)
        library().SSL_CTX_free(self.context)

    def goes_on(self, code, what):
        """Does this call want more bytes of the other side?  Failed: it wants nothing any more."""
        if library().SSL_get_error(self.at, code) == WANT_READ:
            return True
        raise Failed(reason(what))

    def handshake(self):
        """Go on with the handshake.  False: more must be heard; say what is due in any case."""
        library().ERR_clear_error()
        code = library().SSL_do_handshake(self.at)
        return code == 1 or not self.goes_on(code, 'handshake')

    def take(self, data):
        """Take bytes that the other side has sent."""
        library().BIO_write(self.heard, data, len(data))

    def hear(self, data=b''):
        """Take bytes that the other side has sent; the plain ones that they give."""
        ssl, out = library(), b''
        self.take(data)
        while True:
            ssl.ERR_clear_error()
            count = ssl.SSL_read(self.at, self.buffer, READ_BYTES)
            if count <= 0:
                if not out:     # else what came before the end counts first
                    self.goes_on(count, 'read')
                return out
            out += self.buffer.raw[:count]

    def say(self, data):
        """Encrypt plain bytes."""
        ssl = library()
        ssl.ERR_clear_error()
        if data and ssl.SSL_write(self.at, data, len(data)) != len(data):
            raise Failed(reason('write'))

    def due(self):
        """The bytes that the other side must hear now."""
        out = b''
        while True:
            count = library().BIO_read(self.said, self.buffer, READ_BYTES)
            if count <= 0:
                return out
            out += self.buffer.raw[:count]

    def update_key(self):
        """Change this side's key, and ask the other side to change its own."""
        library().ERR_clear_error()
        if library().SSL_key_update(self.at, UPDATE_REQUESTED) != 1:
            raise Failed(reason('key update'))
        self.handshake()

    def export(self, label, count):
        """So many secret bytes that both sides of the session know, without a context."""
        out = ctypes.create_string_buffer(count)
        if library().SSL_export_keying_material(self.at, out, count, label, len(label), None, 0,
                                                0) != 1:
            raise Failed(reason('exporter'))
        return out.raw


class Aead:
    """AES-128-GCM or ChaCha20-Poly1305 with one key."""

    def __init__(self, cipher, key):
        ssl = library()
        self.at = ssl.EVP_CIPHER_CTX_new()
        kind = ssl.EVP_aes_128_gcm() if cipher == AES else ssl.EVP_chacha20_poly1305()
        self.init = functools.partial(ssl.EVP_CipherInit_ex, self.at)
        self.key = key[:KEY_BYTES[cipher]]
        self.init(kind, None, self.key, bytes(NONCE_BYTES), 1)
        self.count = number()

    def __del__(self):
        library().EVP_CIPHER_CTX_free(self.at)

    def run(self, nonce, beside, data, sealing, tag):
        """The other bytes of data, and whether the cipher ended well."""
        ssl, out = library(), ctypes.create_string_buffer(len(data) + TAG_BYTES)
        self.init(None, None, None, nonce, sealing)
        if not sealing:
            ssl.EVP_CIPHER_CTX_ctrl(self.at, SET_TAG, TAG_BYTES, tag)
        if beside:
            ssl.EVP_CipherUpdate(self.at, None, self.count, beside, len(beside))
        if data:
            ssl.EVP_CipherUpdate(self.at, out, self.count, data, len(data))
        ended = ssl.EVP_CipherFinal_ex(self.at, ctypes.byref(out, len(data)), self.count)
        if sealing:
            ssl.EVP_CIPHER_CTX_ctrl(self.at, GET_TAG, TAG_BYTES, tag)
        return out.raw[:len(data)], ended == 1

    def seal(self, nonce, beside, data):
        """The encrypted bytes, and the tag over them and what stands beside."""
        tag = ctypes.create_string_buffer(TAG_BYTES)
        return self.run(nonce, beside, data, 1, tag)[0], tag.raw

    def open(self, nonce, beside, data, tag):
        """The plain bytes, or None where the tag is another."""
        out, is_right = self.run(nonce, beside, data, 0,
                                 ctypes.create_string_buffer(tag, TAG_BYTES))
        return out if is_right else None
