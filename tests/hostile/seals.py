# SPDX-License-Identifier: BSD-2-Clause
"""Keys and seals, as weft_wire(7) derives them: of a session, of frames, of parcels."""
import hashlib
import hmac
import os
import struct

from tls import NONCE_BYTES, TAG_BYTES, Aead

SEAL_BYTES = TAG_BYTES
SECRET_BYTES = 32
PROOF_BYTES = 16
STEP_FRAMES = 65536     # after so many the next secret gives the keys
EXPORTER = b'EXPORTER-weft-link'

DIALLER, ACCEPTOR = 0, 1    # the direction of who sends


def derive(secret, label, a=0, b=0):
    """D of the page."""
    return hmac.digest(secret, label + b'\0' + struct.pack('<QQ', a, b) + b'\1', hashlib.sha256)


def psk(key):
    """The identity and the secret that a key file's bytes stand for in TLS."""
    name = struct.unpack_from('<Q', derive(key, b'weft key id'))[0]
    return b'key:%016x' % name, derive(key, b'weft key')


def proof(secret, data, address):
    """What proves a request for a connection to the rail at an address."""
    key = derive(secret, b'request')
    return hmac.digest(key, data + address, hashlib.sha256)[:PROOF_BYTES]


class Direction:
    """The keys of one direction of a link in one epoch."""

    def __init__(self, secret, epoch, direction, cipher):
        self.cipher = cipher
        self.next = derive(secret, b'frames', epoch, direction)
        self.steps = []     # of (cipher with its key, iv)

    def step(self, number):
        """The keys of the frame of a number."""
        while len(self.steps) <= number // STEP_FRAMES:
            self.steps.append((Aead(self.cipher, derive(self.next, b'key')),
                               derive(self.next, b'iv')[:NONCE_BYTES]))
            self.next = derive(self.next, b'next')
        return self.steps[number // STEP_FRAMES]

    def keys(self, number):
        """The cipher and the nonce of the frame of a number."""
        aead, iv = self.step(number)
        mask = int.from_bytes(iv[4:], 'big') ^ number
        return aead, iv[:4] + mask.to_bytes(8, 'big')

    def seal(self, header, body, number):
        """The frame as it goes over the rail."""
        aead, nonce = self.keys(number)
        return header + b''.join(aead.seal(nonce, header, body))

    def open(self, header, sealed, number):
        """The body of a frame, or None where the seal does not verify."""
        aead, nonce = self.keys(number)
        return aead.open(nonce, header, sealed[:-SEAL_BYTES], sealed[-SEAL_BYTES:])


class Stuck(Direction):
    """A direction whose keys do not change with the count."""

    def step(self, number):
        """The first keys."""
        return super().step(0)


def seal_parcel(cipher, data):
    """A parcel's bytes, and the secret and the tag that SEALED says."""
    secret = os.urandom(SECRET_BYTES)
    return (*Aead(cipher, secret).seal(bytes(NONCE_BYTES), b'', data), secret)


def open_parcel(cipher, data, secret, tag):
    """The bytes that a parcel holds, or None where its tag is another."""
    return Aead(cipher, secret).open(bytes(NONCE_BYTES), b'', data, tag)
