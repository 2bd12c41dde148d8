# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on broadcasts: receivers make up offers and windows, senders make up sources."""
import itertools
import struct
import time

import frames
from attacks_window import (BYTES, LIMIT, NOT_FOUND, OK, TOP, Memory, Window, goes_on, introduce,
                            lasting, live, say)
from peer import Peer

SERVICE = b'weft.broadcast.Broadcast'
WORD = b'abcdefghijklmnop'
CAST_BYTES = 8 << 20        # of the attacked's broadcast: BIG_BYTES of victim.c
DESCRIPTOR_BYTES = 37
STEP, KEY = 5, b'w'
NOBODY = b'127.0.0.1:1'


def message(*fields):
    """A message of protobuf's: a number or bytes for each field, None to leave it out."""
    out = b''
    for number, value in enumerate(fields, 1):
        if isinstance(value, int):
            out += frames.units(number << 3) + frames.units(value)
        elif value is not None:
            out += frames.units(number << 3 | 2) + frames.units(len(value)) + value
    return out


def window(count=CAST_BYTES, name=b'w' * 24):
    """A descriptor as a receiver has one."""
    return frames.descriptor(name, count, 1)


def record_of(peer, kind, number=None):
    """The first record of that kind, of a number or of any; None: it does not come."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        live(peer, turn)
        for heard, _, data in peer.records:
            if heard == kind and number in (None, struct.unpack_from('<Q', data)[0]):
                return data
        if time.monotonic() > end:
            return None


def hear(node, peers, serve=lambda: None):
    """The next line of a node, '' where none comes, while these peers live on and serve."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        for peer in peers:
            live(peer, turn)
        serve()
        said = node.hear(0.001)
        if said or time.monotonic() > end:
            return said


class Receiver:
    """A peer to whom the attacked broadcasts."""

    def __init__(self, field, place):
        self.field, self.peer, self.calls = field, Peer(field.address), itertools.count(1)
        self.peer.gives_back = True     # a node that keeps much of a flood asks for credits
        introduce(field, place, self.peer)
        self.offer = None

    def hear(self):
        """Take the announcement."""
        data = record_of(self.peer, frames.TENSOR)
        self.field.expect(data is not None, 'no broadcast is announced')
        self.field.expect(data[8] & frames.RELAYED, 'a broadcast has the flags %d' % data[8])
        self.offer = struct.unpack_from('<Q', data, 26)[0]

    def call(self, method, content):
        """A call of the broadcast's service, as a record."""
        return frames.record(frames.CALL, frames.call(next(self.calls), SERVICE, method, content))

    def ask(self, method, content):
        """Call; status and message of the reply."""
        number = next(self.calls)
        say(self.peer, frames.CALL, frames.call(number, SERVICE, method, content))
        data = record_of(self.peer, frames.REPLY, number)
        self.field.expect(data is not None, '%s is not answered' % method.decode())
        count = struct.unpack_from('<Q', data, 29)[0]
        return data[8], data[len(data) - count:]

    def expect(self, method, content, statuses, what):
        """Fail unless the call is answered with one of the statuses; the message of the reply."""
        status, said = self.ask(method, content)
        self.field.expect(status in statuses, '%s: status %d' % (what, status))
        return said


def forged(receiver, other):
    """What no honest receiver says of itself: a method and a message for each."""
    near = [(receiver.offer + n) % TOP for n in (-2, -1, 1, 2, 1 << 32)]
    for offer in near + [0, TOP - 1, other.offer]:
        if offer != receiver.offer:
            yield b'Join', message(offer, window(), NOBODY)
            yield b'Leave', message(offer)
    for count in (0, 1, DESCRIPTOR_BYTES - 1, DESCRIPTOR_BYTES + 1, 256, 10000):
        yield b'Join', message(receiver.offer, (window() * 300)[:count], NOBODY)
    yield b'Join', message(receiver.offer, None, NOBODY)
    yield b'Join', message(receiver.offer, window(), b'1' * 5000)


def joins(receiver):
    """Joins without end: forged ones, good ones, and complaints of the source."""
    for number in itertools.count():
        offer = receiver.offer + (number % 3 == 0)
        content = message(offer % TOP, window(), NOBODY, int(number % 2))
        yield receiver.call(b'Join' if number % 7 else b'Leave', content)


@lasting('receivers of a broadcast that make up offers and windows cost others time alone',
         seconds=8)
def forged_receivers(field):
    place, follower = Window(field), field.honest('follower')
    receivers = [Receiver(field, place), Receiver(field, place)]
    said = field.server.ask('cast', STEP, KEY.decode(), follower.address)
    field.expect(said.startswith('cast OK'), 'a broadcast: %r' % said)
    for receiver in receivers:
        receiver.hear()
    first, second = receivers
    count = 0
    for method, content in forged(first, second):
        first.expect(method, content, (NOT_FOUND,), 'a forged %s' % method.decode())
        count += 1
    broken = first.ask(b'Join', b'\x12\xff\xff\xff\x7fx')[0]
    field.expect(broken != OK, 'what is no message is answered well')
    # The windows are nobody's: who is sent there finds out, and takes the body from elsewhere.
    first.expect(b'Join', message(first.offer, window(), NOBODY), (OK,), 'the first Join')
    said = second.expect(b'Join', message(second.offer, window(), field.address.encode()), (OK,),
                         'the second Join')
    field.expect(said == message(NOBODY, window(), 1), 'the source of the second is %r' % said)
    goes_on(field, second.peer)
    flooded = first.peer.flood(joins(first), lambda: live(second.peer, 1) or field.on())
    goes_on(field, first.peer)
    follower.tell('follow', field.address, STEP, KEY.decode())
    said = hear(follower, [first.peer, second.peer])
    field.expect(said.startswith('follow OK "%s %d"' % (WORD.decode(), CAST_BYTES)),
                 'an honest receiver: %r' % said)
    for receiver in receivers:
        say(receiver.peer, frames.PULLED, frames.small(receiver.offer, 1))
        receiver.expect(b'Join', message(receiver.offer, window(), NOBODY), (OK, NOT_FOUND),
                        'a Join after the end')
    said = field.server.ask('uncast')
    field.expect(said == 'uncast OK "OK OK OK"', 'the end of the broadcast: %r' % said)
    for receiver in receivers:
        receiver.expect(b'Leave', message(receiver.offer), (NOT_FOUND,),
                        'a Leave after the broadcast')
        receiver.peer.close()
    place.serves()
    return '%d forgeries, %d Joins' % (count, flooded)


def answer_calls(peer, source):
    """Name this source to whoever has called."""
    calls = [data for kind, _, data in peer.records if kind == frames.CALL]
    peer.records = [r for r in peer.records if r[0] != frames.CALL]
    for data in calls:
        number = struct.unpack_from('<Q', data)[0]
        say(peer, frames.REPLY, frames.reply(number, NOT_FOUND) if source is None else
            frames.reply(number, content=source))


def sources(address):
    """Sources that do not serve; None: the call fails."""
    yield None
    for said in (NOBODY, address.encode(), b'nowhere', b'127.0.0.1:', b':1', b'127.0.0.1:99999',
                 b'x' * 300 + b':1', b'\xff\0\xfe', b'[::1'):
        yield message(said, window(BYTES * 16))
    for descriptor in (None, b'', b'twx', window(BYTES * 16)[:-1], window(BYTES * 16) + b'x',
                       window(1), window(TOP - 1), frames.descriptor(b'w' * 24, BYTES * 16, 2)):
        yield message(NOBODY, descriptor)
    yield b'\x0a\xff\xff\xff\xff\x0fx'


@lasting('sources that the sender of a broadcast makes up cost its own receiver time alone',
         seconds=30, quick=False, WEFT_LOST='1500ms', WEFT_HEARTBEAT='500ms')
def forged_sources(field):
    place, count = Window(field), 0
    content = Memory(WORD * (BYTES * 16 // len(WORD)))
    for source in sources(field.address):
        peer = Peer(field.address)
        introduce(field, place, peer)
        field.server.tell('follow', '-', STEP, KEY.decode())
        peer.records = []
        say(peer, frames.TENSOR, frames.tensor(STEP, KEY, content.body(1), flags=frames.RELAYED,
                                               shape=(len(content.buffer),)))
        said = hear(field.server, [peer], lambda: answer_calls(peer, source))
        field.expect(said.startswith('follow OK "%s %d"' % (WORD.decode(), len(content.buffer))),
                     'a receive after the source %r: %r' % (source, said))
        goes_on(field, peer)
        peer.close()
        count += 1
    place.serves()
    return '%d sources' % count
