# SPDX-License-Identifier: BSD-2-Clause
"""The fabric of this lane: a connected endpoint over tcp, by rail.c."""
import ctypes
import errno
import os

from frames import FRAME_BYTES

RECEIVES = 128  # receive buffers of a rail, as many credits as it ever promises at once

_library = None
_fabric = None
_registered = {}    # buffers, by address and key


class Broken(Exception):
    """The connection has ended, or was never made."""


def load(path):
    """Use the helper that was built at this path."""
    global _library, _fabric
    if 'HOSTILE_LOG' in os.environ:
        os.environ['FI_LOG_LEVEL'] = 'warn'
    library = ctypes.CDLL(path)
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    for name, result, arguments in (
            ('open', pointer, [text]),
            ('facts', None, [pointer, pointer]),
            ('connect', pointer, [pointer, text, size, text, size, ctypes.c_int, ctypes.c_int]),
            ('send', ctypes.c_int, [pointer, text, size]),
            ('receive', ctypes.c_int, [pointer, pointer, size]),
            ('register', pointer, [pointer, pointer, size, ctypes.POINTER(ctypes.c_uint64)]),
            ('read', ctypes.c_int, [pointer, pointer, size, ctypes.c_uint64, ctypes.c_uint64,
                                    ctypes.c_int]),
            ('close', None, [pointer])):
        function = getattr(library, 'hostile_' + name)
        function.restype, function.argtypes = result, arguments
    fabric = library.hostile_open(b'tcp')
    if not fabric:
        raise Broken('libfabric offers no connected endpoints over tcp')
    _library, _fabric = library, fabric


def ask():
    """What the helper knows of libfabric."""
    numbers = (ctypes.c_uint32 * 4)()
    _library.hostile_facts(_fabric, numbers)
    return numbers


def facts():
    """The fields of a Rail that say what this one is."""
    numbers = ask()
    return dict(libfabric=numbers[0], protocol=numbers[1], protocol_version=numbers[2])


def register(memory):
    """Let peers read a ctypes buffer; its address, as reads are to name it, and key."""
    key = ctypes.c_uint64()
    if not _library.hostile_register(_fabric, ctypes.addressof(memory), ctypes.sizeof(memory),
                                     ctypes.byref(key)):
        raise Broken('memory is not registered')
    name = ctypes.addressof(memory) if ask()[3] else 0, key.value
    _registered[name] = memory
    return name


def memory(address, key):
    """The buffer that is registered so, or None."""
    return _registered.get((address, key))


class Rail:
    """A connection over which frames go as they are."""

    def __init__(self, address, data, limit_ms=3000):
        self.at = _library.hostile_connect(_fabric, address, len(address), data, len(data),
                                           RECEIVES, limit_ms)
        if not self.at:
            raise Broken('no connection')
        self.buffer = ctypes.create_string_buffer(FRAME_BYTES)

    def send(self, data):
        """Post a frame.  False: there is no room now; receive, then try again."""
        code = _library.hostile_send(self.at, data, len(data))
        if code == -errno.EAGAIN:
            return False
        if code:
            raise Broken('send: %d' % code)
        return True

    def receive(self):
        """The next frame that has come, or None."""
        code = _library.hostile_receive(self.at, self.buffer, FRAME_BYTES)
        if code < 0:
            raise Broken('receive: %d' % code)
        return self.buffer.raw[:code] if code else None

    def read(self, count, address, key, limit_ms=2000):
        """Bytes of the peer's memory, or None if it does not let this side read them."""
        memory = ctypes.create_string_buffer(count)
        code = _library.hostile_read(self.at, memory, count, address, key, limit_ms)
        return memory.raw if not code else None

    def close(self):
        """End the connection without a word."""
        if self.at:
            _library.hostile_close(self.at)
        self.at = None
