# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on landings: senders push what they may not, and owners announce what there is not."""
import itertools
import struct
import time

import frames
from attacks_broadcast import hear, message
from attacks_window import (EXHAUSTED, LIMIT, NOT_FOUND, OK, OUT_OF_RANGE, SHUT_MS, TOP, Memory,
                            Window, answers, expect_status, goes_on, introduce, lasting, live,
                            nowhere, say, wait_for)
from door import Closed
from peer import Peer
from rail import Broken

SERVICE = b'weft.landings.Landings'
SLOTS, SLOT_BYTES = 8, 4096
ABORTED = 10
SERIALS = 40        # more than a landing announces here before it is attacked
OF_PEER = 4         # subscriptions to a landing that a peer may have
SLOTS_MAX = 4096    # WEFT_LANDING_SLOTS_MAX
OF_MESSAGE = 64     # slots that one message announces
TENSOR = frames.PUSH_LAST | frames.PUSH_NOTED


class Landing:
    """A landing of the attacked, and what an honest sender finds there after the attack."""

    def __init__(self, field, slots=SLOTS):
        self.field, self.slots, self.pushes = field, slots, itertools.count(1)
        said = field.server.ask('landing', slots, SLOT_BYTES)
        field.expect(said.startswith('landing OK'), 'no landing is opened: %r' % said)
        self.text = said.split('"')[1]
        self.name = bytes.fromhex(self.text)[4:28]
        self.request = message(struct.unpack('<Q', self.name[:8])[0], self.name[8:])
        self.sender = field.honest('sender')

    def takes(self, text):
        """Fail unless the tensor that landed next is this text, which stays in its slot."""
        said = self.field.server.ask('landed')
        self.field.expect(said.startswith('landed OK "%s"' % text), 'what landed: %r' % said)

    def serves(self, peers=()):
        """Fail unless an honest sender's tensor lands, and nothing beside the slots is written."""
        text = 'honest-%d' % next(self.pushes)
        self.sender.tell('push', self.field.address, self.text, text)
        said = hear(self.sender, peers)
        self.field.expect(said.startswith('push OK'), 'an honest push: %r' % said)
        self.takes(text)
        said = self.field.server.ask('sound')
        self.field.expect(said.startswith('sound OK'), 'memory beside the landing: %r' % said)

    def closes(self):
        """Fail unless the landing closes soon."""
        said = self.field.server.ask('shut')
        self.field.expect(said.startswith('shut OK'), 'closing a landing: %r' % said)
        took = int(said.split('"')[1])
        slow = 10 if self.field.build.is_sanitized else 4
        self.field.expect(took < slow * SHUT_MS, 'a landing closes after %d ms' % took)

    def push(self, slot, serial, body=None, *, shape=(0,), **changes):
        """A PUSH of a tensor into a slot."""
        values = dict(at=slot * SLOT_BYTES, flags=TENSOR, number=slot, note=note_of(serial, shape))
        return frames.push(self.name, body=body, **dict(values, **changes))


def note_of(serial, shape, code=1, bits=8, lanes=1, rank=None):
    """The note that a tensor comes with."""
    return struct.pack('<QQBBHB', serial, 7, code, bits, lanes,
                       len(shape) if rank is None else rank) + \
        struct.pack('<%dq' % len(shape), *shape)


def number_at(data, at):
    """A number in units of seven bits, and where the next thing is."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return value, at


def lists_of(data):
    """The repeated numbers of a message Slots, by their field."""
    fields, at = {2: [], 3: [], 4: []}, 0
    while at < len(data):
        head, at = number_at(data, at)
        value, at = number_at(data, at)
        if head & 7 == 2:
            end = at + value
            while at < end:
                value, at = number_at(data, at)
                fields[head >> 3].append(value)
        elif head >> 3 in fields:
            fields[head >> 3].append(value)
    return fields


def subscription(call, request=None):
    """The records of a subscription; without a request it says nothing."""
    yield frames.CALL, frames.call(call, SERVICE, b'Subscribe', body=frames.no_body(),
                                   flags=frames.STREAM)
    if request is not None:
        yield frames.REQUEST, frames.stream_message(call, request, flags=frames.LAST)


def subscribe(peer, call, request):
    """Ask for slots."""
    for kind, data in subscription(call, request):
        say(peer, kind, data)


def announced(peer, call):
    """The slots that the call has announced up to now, and their serials; None: no answer yet."""
    slots, heard = {}, False
    for kind, _, data in peer.records:
        if kind != frames.RESPONSE or struct.unpack_from('<Q', data)[0] != call:
            continue
        fields = lists_of(data[len(data) - struct.unpack_from('<Q', data, 17)[0]:])
        heard = True
        for serial in fields[4]:
            slots = {s: n for s, n in slots.items() if n != serial}
        slots.update(zip(fields[2], fields[3]))
    return slots if heard else None


def wait_slots(field, peer, call, least=1):
    """The slots of a call, once there are so many."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        live(peer, turn)
        slots = announced(peer, call)
        if slots is not None and len(slots) >= least:
            return slots
        field.expect(time.monotonic() < end, 'too few slots are announced: %s' % slots)


def replied(peer, call):
    """The status that the call has ended with; None: it does not end."""
    data = wait_for(peer, frames.REPLY, call)
    return None if data is None else data[8]


def lie_about_all(field, landing, peer, offers, serials=range(SERIALS), but=()):
    """Push into every slot by every serial; all must be refused, and nothing read."""
    count, content = 0, Memory(b'LIES')
    for slot, serial in itertools.product(range(landing.slots), serials):
        if (slot, serial) in but:
            continue
        offer, count = next(offers), count + 1
        say(peer, frames.PUSH, landing.push(slot, serial, content.body(offer), shape=(4,)))
        if serial % 8 == 0:
            expect_status(field, peer, frames.PULLED, offer, ABORTED, 'a lie about slot %d' % slot)
    goes_on(field, peer)
    statuses = answers(peer, frames.PULLED)
    field.expect(all(status in ([ABORTED], [OK]) for status in statuses.values()) and
                 sum(status == [OK] for status in statuses.values()) <= 1,
                 'lies about slots are answered with %s' % statuses)
    return count


@lasting('pushes into slots that were not announced, or by other serials, are refused',
         seconds=15)
def forged_slots(field):
    landing, offers = Landing(field), itertools.count(1)
    sender, stranger = Peer(field.address), Peer(field.address)
    landing.serves()            # the tensor stays in its slot
    subscribe(sender, 1, landing.request)
    slots = wait_slots(field, sender, 1, SLOTS - 1)     # all but that one
    count = lie_about_all(field, landing, stranger, offers)
    count += lie_about_all(field, landing, sender, offers, but=slots.items())
    slot, serial = next(iter(slots.items()))
    content, offer = Memory(b'PUSHED'), next(offers)
    say(sender, frames.PUSH, landing.push(slot, serial, content.body(offer), shape=(6,)))
    expect_status(field, sender, frames.PULLED, offer, OK, 'an honest push')
    landing.takes('PUSHED')
    # The slot holds a tensor now, also for the one who pushed it, and the first one is announced.
    slots = wait_slots(field, sender, 1, SLOTS)
    count += lie_about_all(field, landing, sender, offers,
                           but=[s for s in slots.items() if s[0] != slot])
    said = field.server.ask('look', slot * SLOT_BYTES, 6)
    field.expect(said == 'look OK "PUSHED"', 'a tensor that is held: %r' % said)
    landing.serves([sender, stranger])
    for peer in (sender, stranger):
        peer.close()
    landing.serves()
    return '%d lies' % count


def bad_tensors(slot, serial, whole):
    """What makes a PUSH of so many bytes no tensor in its slot: a phrase, and what is otherwise."""
    note = note_of(serial, (whole,))
    for count in range(len(note)):
        yield 'a note of %d bytes' % count, dict(note=note[:count])
    yield 'bytes behind a note', dict(note=note + b'x')
    yield 'a long note', dict(note=note + bytes(4000))
    for shape in ((whole - 1,), (whole + 1,), (-whole,), (0,), (), (1 << 62, 1 << 62), (2**63 - 1,),
                  (whole, 2**63 - 1, 0), (-2**63,), (whole, -1, -1), (1 << 32, 1 << 32, whole)):
        yield 'the shape %s' % (shape,), dict(shape=shape)
    for words in (dict(bits=0), dict(lanes=0), dict(bits=16), dict(lanes=2), dict(rank=0),
                  dict(rank=2), dict(rank=65), dict(rank=255), dict(bits=255, lanes=65535)):
        yield 'the type and rank %s' % words, dict(note=note_of(serial, (whole,), **words))
    yield 'a rank of 65', dict(note=note_of(serial, (1,) * 64 + (whole,)))
    for at in (slot * SLOT_BYTES + 1, (slot + 1) % SLOTS * SLOT_BYTES, SLOTS * SLOT_BYTES, TOP - 1):
        yield 'the place %d' % at, dict(at=at)
    for number in (slot + SLOTS, slot + (1 << 16), frames.U32):
        yield 'the number %d' % number, dict(number=number)
    yield 'no LAST', dict(flags=frames.PUSH_NOTED)
    yield 'no note', dict(flags=frames.PUSH_LAST, note=b'', number=0)


@lasting('pushes that bring no tensor for a slot are refused, and leave it announced', seconds=8)
def bad_notes(field):
    landing, peer, content = Landing(field), Peer(field.address), Memory(b'TENSOR')
    whole, offers, notes = len(content.buffer), itertools.count(1), itertools.count(1 << 32)
    subscribe(peer, 1, landing.request)
    slot, serial = next(iter(wait_slots(field, peer, 1).items()))

    bad = list(bad_tensors(slot, serial, whole))
    bad.append(('a tensor that is longer than a slot', dict(shape=(SLOT_BYTES + 1,))))
    for what, changes in bad:
        offer = next(offers)
        changes.setdefault('shape', (whole,))
        body = content.body(offer) if changes['shape'] != (SLOT_BYTES + 1,) else \
            nowhere(offer, SLOT_BYTES + 1)
        say(peer, frames.PUSH, landing.push(slot, serial, body, **changes))
        data = wait_for(peer, frames.PULLED, offer)
        field.expect(data is not None and data[16] in (ABORTED, OUT_OF_RANGE),
                     '%s is answered with %s' % (what, data and data[16]))
        note = next(notes)
        say(peer, frames.PUSH, landing.push(slot, serial, at=note, shape=(whole,)))
        expect_status(field, peer, frames.NOTED, note, ABORTED, 'a tensor without its bytes')
    field.expect(field.server.ask('look', slot * SLOT_BYTES, 6) == 'look OK "......"',
                 'a slot is written')
    offer = next(offers)
    say(peer, frames.PUSH, landing.push(slot, serial, content.body(offer), shape=(whole,)))
    expect_status(field, peer, frames.PULLED, offer, OK, 'an honest push')
    landing.takes('TENSOR')
    landing.serves([peer])
    peer.close()
    return '%d pushes' % len(bad)


def requests(landing):
    """Requests that name no landing."""
    number, token = struct.unpack('<Q', landing.name[:8])[0], landing.name[8:]
    for content in (b'', message(number), message(number + 1, token), message(0, token),
                    message(number, token[:-1]), message(number, token + b'x'),
                    message(number, bytes(16)), message(number, token[:-1] + b'?'),
                    message(number, b'x' * 10000), b'\x12\xff\xff\xff\xff\x0fx'):
        yield content


@lasting('a peer that subscribes thousands of times has few subscriptions and costs others nothing',
         seconds=10)
def many_subscriptions(field):
    landing, peer = Landing(field), Peer(field.address)
    calls = itertools.count(1)
    for call, content in zip(calls, requests(landing)):
        subscribe(peer, call, content)
        field.expect(replied(peer, call) not in (None, OK), 'what names no landing is heard')
    first = next(calls)
    flooded = peer.flood((frames.record(*record) for call in itertools.islice(calls, 20000)
                          for record in subscription(call, landing.request)), field.on)
    goes_on(field, peer)
    replies = {struct.unpack_from('<Q', d)[0]: d[8] for k, _, d in peer.records
               if k == frames.REPLY}
    served = {struct.unpack_from('<Q', d)[0] for k, _, d in peer.records if k == frames.RESPONSE}
    field.expect(len(served) == OF_PEER, '%d subscriptions are served' % len(served))
    field.expect(all(status == EXHAUSTED for call, status in replies.items() if call > first),
                 'subscriptions end with other statuses')
    landing.serves([peer])
    peer.close()
    # The same again, and without a word.
    peer = Peer(field.address)
    mute = peer.flood((frames.record(*record) for call in itertools.count(1)
                       for record in subscription(call)), field.on)
    landing.serves([peer])
    peer.close()
    landing.serves()
    return '%d records, %d mute calls' % (flooded, mute)


@lasting('a peer that subscribes and ends it again and again leaves no slot behind', seconds=6)
def short_subscriptions(field):
    landing, peer = Landing(field, slots=2), Peer(field.address)
    peer.keeps = False

    for call in itertools.count(1):
        if not field.on() or call > 2000:
            break
        subscribe(peer, call, landing.request)
        peer.send_control([frames.record(frames.CANCEL, frames.small(call))], LIMIT)
    peer.keeps = True
    goes_on(field, peer)
    landing.serves([peer])
    peer.close()
    landing.serves()
    return '%d subscriptions' % call


@lasting('senders that take nothing, and bodies that nobody can read, keep their own share alone',
         seconds=10)
def kept_slots(field):
    landing = Landing(field)
    deaf, mute = Peer(field.address, credit=1), Peer(field.address)
    deaf.renews = deaf.keeps = False
    subscribe(deaf, 1, landing.request)
    subscribe(mute, 1, landing.request)
    slots = wait_slots(field, mute, 1, 2)
    for offer, (slot, serial) in enumerate(slots.items(), 1):
        say(mute, frames.PUSH, landing.push(slot, serial, nowhere(offer, 64), shape=(64,)))
    count = 0
    try:
        while field.on() and count < 100:
            landing.serves([deaf, mute])
            count += 1
    except (Broken, Closed):    # the node gives up a rail where a read comes to nothing for long
        field.expect(count, 'no honest push lands beside them')
    landing.closes()
    deaf.close()
    mute.close()
    Landing(field).serves()
    return '%d honest pushes beside' % count


def slots_message(slot_bytes, numbers=(), serials=(), withdrawn=()):
    """A message Slots."""
    def packed(values):
        return b''.join(frames.units(value) for value in values)

    return message(slot_bytes, packed(numbers), packed(serials), packed(withdrawn))


def announcements():
    """What no honest owner announces."""
    few = range(8)
    yield 'numbers without serials', slots_message(64, few)
    yield 'serials without numbers', slots_message(64, (), few)
    yield 'a number less than serials', slots_message(64, few[1:], few)
    for number in (SLOTS_MAX, 1 << 32, (1 << 32) + 1, TOP - 1):
        yield 'the slot %d' % number, slots_message(64, (number,), (1,))
    yield 'too many slots', slots_message(64, range(OF_MESSAGE + 1), range(OF_MESSAGE + 1))
    yield 'one slot too often', slots_message(64, [0] * 100000, range(100000))
    yield 'too many withdrawals', slots_message(64, (), (), [TOP - 1] * (OF_MESSAGE + 1))
    yield 'slots of no bytes', slots_message(0, few, few)
    yield 'slots too short', slots_message(3, few, few)
    yield 'withdrawals without end', slots_message(64, (), (), [TOP - 1] * 50000)
    yield 'no message', b'\x12\xff\xff\xff\xff\x0fx'


def wait_call(field, peer):
    """The id of the call by which the attacked subscribes; its records are forgotten."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        live(peer, turn)
        calls = [data for kind, _, data in peer.records if kind == frames.CALL]
        peer.records = [r for r in peer.records if r[0] != frames.CALL]
        if calls:
            return struct.unpack_from('<Q', calls[-1])[0]
        field.expect(time.monotonic() < end, 'the node does not subscribe')


def refuse(peer):
    """Refuse all pushes that have come; how many."""
    pushes = [data for kind, _, data in peer.records if kind == frames.PUSH]
    peer.records = [r for r in peer.records if r[0] != frames.PUSH]
    for data in pushes:
        body = 39 + struct.unpack_from('<H', data, 37)[0]
        offer = struct.unpack_from('<Q', data, body + 10)[0]
        say(peer, frames.PULLED, frames.small(offer, 0, ABORTED))
    return len(pushes)


@lasting('owners that announce slots there cannot be, or refuse each push, fail the pushes alone',
         seconds=15)
def forged_owners(field):
    place = Window(field)
    count = refused = 0
    descriptor = frames.descriptor(b'l' * 24, 64 * SLOTS, 4).hex()
    for what, content in announcements():
        peer = Peer(field.address)
        introduce(field, place, peer)
        field.server.tell('push', '-', descriptor, 'text')
        call = wait_call(field, peer)
        say(peer, frames.RESPONSE, frames.stream_message(call, content, flags=frames.INITIAL))
        said = hear(field.server, [peer])
        field.expect(said.startswith('push ') and 'OK' not in said and 'DEADLINE' not in said,
                     'a push after %s: %r' % (what, said))
        goes_on(field, peer)
        peer.close()
        count += 1
    peer = Peer(field.address)
    introduce(field, place, peer)
    field.server.tell('push', '-', descriptor, 'text')
    call = wait_call(field, peer)
    for serial in range(50):
        say(peer, frames.RESPONSE, frames.stream_message(
            call, slots_message(64, (1,), (serial,), (serial - 1,) if serial else ()),
            flags=0 if serial else frames.INITIAL))
        end = time.monotonic() + LIMIT
        while not refuse(peer) and time.monotonic() < end:
            live(peer, 1)
        refused += 1
    say(peer, frames.REPLY, frames.reply(call, NOT_FOUND))
    said = hear(field.server, [peer])
    field.expect(said.startswith('push NOT_FOUND'), 'a push that is refused: %r' % said)
    peer.close()
    place.serves()
    return '%d announcements, %d refusals' % (count, refused)
