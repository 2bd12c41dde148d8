# SPDX-License-Identifier: BSD-2-Clause
"""Parcels of the mode sealed: those that a peer makes of its bodies, and those that it opens."""
import ctypes
import itertools
import struct

import frames
import rail
import seals

PARCEL_BYTES = 1 << 20      # the most that a SEAL may ask for
SEAL_HEAD = struct.Struct('<QQIIQBB')
BODY = struct.Struct('<BQBQIQQ')
PLACE_AT = 22               # of address and key in a body
WAYS = (2, 4)               # pull and staged: those that are read in parcels

_shelf = []                 # pieces of registered memory that no parcel is in


def body_at(kind, data):
    """Where in a record's bytes its body stands, or None: it can have none."""
    if kind in (frames.TENSOR, frames.ATTACHMENT, frames.REQUEST, frames.RESPONSE):
        return 16
    if kind == frames.PUSH and len(data) >= 39:
        note_bytes = struct.unpack_from('<H', data, 37)[0]
        return 39 + note_bytes + (12 if data[32] & frames.PUSH_LIST else 0)
    if kind == frames.CALL and len(data) >= 28:
        flags = data[16]
        return 28 + (8 if flags & frames.WITH_REQUEST else 0) + (16 if flags & frames.AGAIN else 0)
    return {frames.REPLY: 28, frames.OFFER: 8, frames.LEND: 9}.get(kind)


class Owner:
    """The bodies that a peer has offered, and the parcels of them that it keeps."""

    def __init__(self):
        self.offers = {}    # buffers, by offer
        self.kept = {}      # (buffer, address, key), by pull and parcel
        self.numbers = itertools.count(1)

    def offered(self, record):
        """Note what a record offers of this side's memory; the record without its place."""
        data = record[frames.RECORD.size:]
        at = body_at(record[0], data)
        if at is None or record[1] & frames.CONTINUED or len(data) < at + BODY.size:
            return record
        way, _, _, offer, _, address, key = BODY.unpack_from(data, at)
        memory = rail.memory(address, key)
        if way not in WAYS or memory is None:
            return record
        self.offers[offer] = memory
        at += frames.RECORD.size + PLACE_AT
        return record[:at] + bytes(16) + record[at + 16:]

    def parcel(self, data, cipher, epoch):
        """The SEALED that answers a SEAL, or None: nothing of that offer is here."""
        offer, pull, read, again, opened, _, count = SEAL_HEAD.unpack_from(data)
        self.opened(pull, opened)
        memory = self.offers.get(offer)
        if memory is None:
            return None
        ranges = [struct.unpack_from('<QQ', data, SEAL_HEAD.size + 16 * n) for n in range(count)]
        plain = b''.join(bytes(memory[at:at + some]) for at, some in ranges)
        if len(plain) != sum(some for _, some in ranges):
            return None
        content, tag, secret = seals.seal_parcel(cipher, plain)
        buffer, address, key = place = take_piece()
        ctypes.memmove(buffer, content, len(content))
        parcel = next(self.numbers)
        self.kept[pull, parcel] = place
        return frames.sealed(pull, read, again, parcel=parcel, epoch=epoch, address=address,
                             key=key, secret=secret, tag=tag)

    def opened(self, pull, parcel):
        """Free a parcel, or with 0 all of a pull."""
        for name in [name for name in self.kept if name[0] == pull and parcel in (0, name[1])]:
            _shelf.append(self.kept.pop(name))

    def close(self):
        """Free all."""
        _shelf.extend(self.kept.values())
        self.kept.clear()


def take_piece():
    """Memory for a parcel that peers may read; its buffer, address and key."""
    if _shelf:
        return _shelf.pop()
    buffer = ctypes.create_string_buffer(PARCEL_BYTES)
    return (buffer, *rail.register(buffer))


class Sealed:
    """The fields of a SEALED."""

    def __init__(self, data):
        (self.pull, self.read, self.again, self.status, self.parcel, self.epoch, self.address,
         self.key) = frames.SEALED_HEAD.unpack_from(data)
        at = frames.SEALED_HEAD.size
        self.secret = data[at:at + seals.SECRET_BYTES]
        self.tag = data[at + seals.SECRET_BYTES:]
