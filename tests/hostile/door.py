# SPDX-License-Identifier: BSD-2-Clause
"""Messages of the door, as weft_wire(7) gives them: a table of fields for each.

The protobuf encoding is written here by hand.  A change of the protocol is a
change of a row of MESSAGES; nothing else in this lane knows a field's number.
"""
import os
import select
import socket
import struct
import time

import credentials
import frames
import seals
import tls

# The versions that this speaker understands; the link uses the highest common one.
WIRE_MIN, WIRE_MAX = 8, 8

PREFIX = b'WEFT'
BYTES_MAX = 16376
U64_MAX = 2**64 - 1

# What a field holds: an integer, bytes, a message of that name, or a list of these.
MESSAGES = {
    'Rail': {
        'provider': (1, 'bytes'), 'libfabric': (2, 'int'), 'protocol': (3, 'int'),
        'protocol_version': (4, 'int'), 'connected': (5, 'int'),
        'same_host': (6, 'int'), 'address': (7, 'bytes'), 'frame_bytes': (8, 'int'),
        'edition': (9, 'int'),
    },
    'Hello': {
        'wire_min': (1, 'int'), 'wire_max': (2, 'int'), 'incarnation': (3, 'bytes'),
        'name': (4, 'bytes'), 'address': (5, 'bytes'),
        'manual': (7, 'int'), 'link': (8, 'int'), 'token': (9, 'int'),
        'rails': (10, 'list Rail'), 'record_bytes_max': (11, 'int'),
        'lost_ns': (12, 'int'), 'resume_link': (13, 'int'),
        'resume_token': (14, 'int'), 'security': (15, 'bytes'),
        'checksums': (16, 'int'), 'checksum': (17, 'int'),
        'compressions': (18, 'int'), 'lanes': (19, 'int'), 'side': (20, 'int'),
        'proofs': (21, 'int'), 'dials': (22, 'int'),
        'cipher': (23, 'int'),
    },
    'Refuse': {'status': (1, 'int'), 'text': (2, 'bytes')},
    'Try': {'epoch': (1, 'int'), 'mine': (2, 'int'), 'yours': (3, 'int')},
    'Cannot': {'epoch': (1, 'int'), 'text': (2, 'bytes')},
    'Beat': {'number': (1, 'int'), 'answer': (2, 'int')},
    'Resync': {'epoch': (1, 'int'), 'received': (2, 'int'), 'answer': (3, 'int')},
    'Goodbye': {'text': (1, 'bytes')},
    'Same': {'link': (1, 'int'), 'proof': (2, 'bytes'), 'answer': (3, 'int')},
}

# The kinds of the oneof in Message.
KINDS = {
    'hello': (1, 'Hello'), 'refuse': (2, 'Refuse'), 'try': (3, 'Try'),
    'cannot': (4, 'Cannot'), 'beat': (5, 'Beat'), 'resync': (6, 'Resync'),
    'goodbye': (7, 'Goodbye'), 'same': (8, 'Same'),
}
KIND_NAMES = {number: name for name, (number, _) in KINDS.items()}


def varint(number):
    """The base-128 encoding of an integer, of 64 bits and without a sign."""
    number &= U64_MAX
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data, at):
    """The integer at an offset of data, and the offset behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def field(number, value):
    """One field of a message: an integer, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def encode(message, values):
    """The bytes of a message of MESSAGES.  A value of bytes for a message is taken as it is."""
    out = b''
    for name, value in values.items():
        number, kind = MESSAGES[message][name]
        each = value if kind.startswith('list ') else [value]
        for item in each:
            if isinstance(item, dict):
                item = encode(kind.split()[-1], item)
            if item not in (0, False) or kind == 'bytes':
                out += field(number, int(item) if isinstance(item, bool) else item)
    return out


def split(data):
    """Pairs of a field's number and its raw value.  ValueError or IndexError: no protobuf."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        elif tag & 7 == 2:
            count, at = read_varint(data, at)
            value, at = data[at:at + count], at + count
        else:
            raise ValueError('wire type %d' % (tag & 7))
        yield tag >> 3, value


def decode(message, data):
    """A dict of a message's fields; those that are absent are 0, b'', {} or []."""
    rows = MESSAGES[message]
    empty = {'int': 0, 'bytes': b''}
    values = {name: [] if kind.startswith('list ') else empty.get(kind, {})
              for name, (_, kind) in rows.items()}
    names = {number: (name, kind) for name, (number, kind) in rows.items()}
    for number, value in split(data):
        name, kind = names.get(number, (None, None))
        if name is None:
            values.setdefault('unknown', []).append((number, value))
        elif kind in empty:
            values[name] = value
        elif kind.startswith('list '):
            values[name].append(decode(kind.split()[-1], value))
        else:
            values[name] = decode(kind, value)
    return values


def message(kind, **values):
    """The bytes of a Message of one kind."""
    number, name = KINDS[kind]
    return field(number, encode(name, values))


def envelope(data):
    """A message as it goes over the connection."""
    return PREFIX + struct.pack('<I', len(data)) + data


def rail(**changes):
    """A rail over tcp, at an address where nobody listens."""
    facts = dict(provider='tcp', libfabric=0x10011, protocol=0, protocol_version=0,
                 connected=1, same_host=0, address=socket_address('127.0.0.1', 9),
                 frame_bytes=frames.FRAME_BYTES)
    facts.update(changes)
    return facts


def hello(**changes):
    """What a well-formed stranger says first."""
    facts = dict(wire_min=WIRE_MIN, wire_max=WIRE_MAX, incarnation=os.urandom(16),
                 name='stranger', address='', manual=0, link=1, token=2,
                 rails=[], record_bytes_max=1 << 20, lost_ns=3 * 10**9,
                 resume_link=0, resume_token=0, security=credentials.mode, checksums=1,
                 checksum=0, compressions=1, lanes=0, cipher=0)
    facts.update(changes)
    return facts


def socket_address(ip, port):
    """A struct sockaddr_in."""
    return struct.pack('=H', socket.AF_INET) + struct.pack('>H', port) + \
        socket.inet_aton(ip) + b'\0' * 8


def host_and_port(address):
    """The two parts of host:port, where an address of IPv6 stands in brackets."""
    name, port = address.rsplit(':', 1)
    return name.strip('[]'), int(port)


class Closed(Exception):
    """The other side has closed the door."""


class Door:
    """A connection to a node's door, through TLS where the mode says so."""

    made = 0    # connections so far, with their handshakes

    def __init__(self, address, timeout=5):
        self.socket = socket.create_connection(host_and_port(address), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b''
        self.session = tls.Session(*credentials.psk()) if credentials.is_keyed() else None
        if self.session:
            try:
                self.shake_hands(time.monotonic() + timeout)
            except Closed:
                self.close()
                raise
        Door.made += 1

    def shake_hands(self, end):
        """Begin the session.  Closed: the node refuses it, or says nothing in time."""
        try:
            while not self.session.handshake():
                self.send_raw(self.session.due())
                if not self.wait(end):
                    raise Closed('no handshake')
                self.session.take(self.receive_raw())
            self.send_raw(self.session.due())
        except tls.Failed as error:
            raise Closed(str(error)) from error

    def secret(self):
        """The secret of a link whose hellos were said in this session."""
        return self.session.export(seals.EXPORTER, seals.SECRET_BYTES)

    def send_raw(self, data):
        """Send bytes over the connection as they are."""
        try:
            self.socket.sendall(data)
        except OSError as error:
            raise Closed(str(error)) from error

    def receive_raw(self):
        """Bytes that have come over the connection."""
        try:
            data = self.socket.recv(1 << 16)
        except OSError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed('end of the connection')
        return data

    def wait(self, end):
        """Wait for bytes.  False: none came in time."""
        ready = select.poll()
        ready.register(self.socket, select.POLLIN)
        return bool(ready.poll(max(0, end - time.monotonic()) * 1000))

    def send(self, kind, **values):
        """Say one message."""
        self.send_bytes(envelope(message(kind, **values)))

    def send_bytes(self, data):
        """Say bytes as they are.  Closed: nobody hears them."""
        if self.session:
            try:
                self.session.say(data)
            except tls.Failed as error:
                raise Closed(str(error)) from error
            data = self.session.due()
        self.send_raw(data)

    def take(self):
        """The next message that has come whole, or None."""
        if len(self.input) < 8:
            return None
        count = struct.unpack_from('<I', self.input, 4)[0]
        if len(self.input) < 8 + count:
            return None
        data, self.input = self.input[8:8 + count], self.input[8 + count:]
        for number, value in split(data):
            kind = KIND_NAMES.get(number)
            if kind:
                return kind, decode(KINDS[kind][1], value)
        return 'unknown', {'bytes': data}

    def receive(self, timeout=5):
        """The next message, as its kind and its fields, or None when the time is over."""
        end = time.monotonic() + timeout
        while True:
            found = self.take()
            if found:
                return found
            if not self.wait(end):
                return None
            data = self.receive_raw()
            try:
                self.input += self.session.hear(data) if self.session else data
            except tls.Failed as error:
                raise Closed(str(error)) from error

    def greet(self, timeout=5, **changes):
        """Say hello and return the fields of the answer.  Closed: it is refused."""
        self.send('hello', **hello(**changes))
        answer = self.receive(timeout)
        if not answer or answer[0] != 'hello':
            raise Closed('no hello but %r' % (answer,))
        return answer[1]

    def close(self):
        """End the connection without a word."""
        self.socket.close()


def ask_hello(address, **changes):
    """The Hello that a node answers a stranger with."""
    door = Door(address)
    try:
        return door.greet(**changes)
    finally:
        door.close()
