# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on parcels: readers that ask for too much, and owners that answer with lies.

Whatever a peer says, no byte is delivered that its owner has not sealed for that read.
"""
import ctypes
import itertools
import os
import struct
import time

import door
import frames
import parcels
import rail
from attack import MIB, PEER_BYTES, is_busy
from attacks_window import (BYTES, EXHAUSTED, LIMIT, NOT_FOUND, OK, TOP, Memory, Window,
                            expect_status, goes_on, has_ended, lasting, lent, live, say,
                            wait_for)
from credentials import SEALED
from peer import Peer
from rail import Broken

SEALED_LANE = dict(modes=SEALED, quick=False)     # as KEYED_LANE
CANNOT_HAVE = 1 << 40       # an offer, a pull or a parcel that there is not
INTERNAL = 13
PARCELS_BYTES = 32 * MIB    # that a node keeps for all its readers
LEAST_BYTES = 16384         # of a parcel's memory
TURNS_LIMIT = 5             # seconds that an honest read may take beside readers that ask for all
HOARDERS = 20               # each takes half of what is left, until nothing is
TEXT = b'the truth and nothing else, byte by byte'


def ask(offer, pull=1, ranges=((0, 16),), **changes):
    """A whole SEAL record."""
    return frames.record(frames.SEAL, frames.seal(offer, pull, list(ranges), **changes))


def bad_asks():
    """What a SEAL says that is an offence, and its bytes for an offer of BYTES bytes."""
    for ranges in ([(BYTES, 1)], [(0, BYTES + 1)], [(BYTES - 1, 2)], [(0, 1), (BYTES, 1)],
                   [(0, 16), (0, 16), (0, 16), (BYTES - 8, 16)], [(TOP - 1, 1)], [(2**63, 16)],
                   [(TOP - 8, 16)], [(0, 0)], [(0, 16), (8, 0)], [], [(0, 1)] * 5,
                   [(0, MIB + 1)], [(0, MIB), (0, 1)], [(0, TOP - 1)], [(1, TOP - 1)],
                   [(16, TOP - 8), (0, 8)]):
        yield 'the ranges %s' % ranges[:5], lambda offer, r=ranges: frames.seal(offer, 1, r)
    for count in (0, 2, 4, 5, 255):
        yield 'a count of %d' % count, lambda offer, n=count: frames.seal(
            offer, 1, [(0, 16)], count=n)
    for priority in (4, 255):
        yield 'the priority %d' % priority, lambda offer, n=priority: frames.seal(
            offer, 1, [(0, 16)], priority=n)
    yield 'half a SEAL', lambda offer: frames.seal(offer, 1, [(0, 16)])[:-8]
    yield 'bytes behind a SEAL', lambda offer: frames.seal(offer, 1, [(0, 16)]) + b'x'


def bad_answers():
    """What a SEALED or an OPENED says that is an offence, whatever was asked."""
    sealed = frames.sealed
    for status in (17, 255):
        yield 'the status %d' % status, frames.SEALED, sealed(1, 0, 1, status)
    yield 'no parcel', frames.SEALED, sealed(1, 0, 1)
    for name in ('parcel', 'epoch', 'address', 'key'):
        yield 'a refusal with %s' % name, frames.SEALED, sealed(1, 0, 1, NOT_FOUND, **{name: 1})
    yield 'a refusal with a secret', frames.SEALED, sealed(1, 0, 1, 5, secret=b'x' * 32)
    yield 'a refusal with a tag', frames.SEALED, sealed(1, 0, 1, 5, tag=b'x' * 16)
    yield 'half a SEALED', frames.SEALED, sealed(1, 0, 1, 5)[:-1]
    yield 'bytes behind a SEALED', frames.SEALED, sealed(1, 0, 1, 5) + b'x'
    yield 'half an OPENED', frames.OPENED, frames.small(1)[:-1]
    yield 'bytes behind an OPENED', frames.OPENED, frames.small(1) + b'x'


@lasting('records about parcels that break the rules end their link alone', seconds=20,
         **SEALED_LANE)
def broken_parcels(field):
    window, neighbour = Window(field), Peer(field.address)
    loan = lent(field, neighbour, window)
    offences = [(what, frames.SEAL, make) for what, make in bad_asks()]
    offences += [(what, kind, lambda _, data=data: data) for what, kind, data in bad_answers()]
    for what, kind, make in offences:
        peer = Peer(field.address)
        offer = lent(field, peer, window)[0]
        try:
            say(peer, kind, make(offer))
        except (Broken, door.Closed):
            pass
        ended = has_ended(peer)
        peer.close()
        field.expect(ended or not field.server.is_alive(), 'a link goes on after %s' % what)
    goes_on(field, neighbour)
    field.expect(neighbour.fetch(8, *loan) == b'.' * 8, "another link's loan can't be read")
    neighbour.close()
    window.serves()
    return '%d offences' % len(offences)


@lasting('parcels hold the ranges that were asked for, and each until it is opened', **SEALED_LANE)
def honest_reader(field):
    window, peer = Window(field, 4 * MIB), Peer(field.address)
    text = b'honest words'
    writer = Memory(text)
    say(peer, frames.PUSH, frames.push(window.name, 2 * MIB, 0, writer.body(1)))
    expect_status(field, peer, frames.PULLED, 1, OK, 'a put')
    offer = lent(field, peer, window, count=4 * MIB)[0]
    pulls, count = itertools.count(1), 0
    while field.on():
        for ranges in ([(2 * MIB, len(text))], [(0, 1), (2 * MIB, 6), (4 * MIB - 1, 1), (5, 5)],
                       [(2 * MIB + 5, 7), (2 * MIB, 5)], [(0, MIB)], [(3 * MIB, MIB // 4)] * 4):
            pull = next(pulls)
            said = peer.ask_parcel(offer, pull, ranges)
            field.expect(said and not said.status, 'no parcel of %s' % ranges)
            memory = bytearray(b'.') * (4 * MIB)
            memory[2 * MIB:2 * MIB + len(text)] = text
            wanted = b''.join(bytes(memory[at:at + some]) for at, some in ranges)
            field.expect(peer.open_parcel(said, len(wanted)) == wanted, 'a parcel of %s' % ranges)
            say(peer, frames.OPENED, frames.small(pull, said.parcel if pull % 2 else 0))
            count += 1
        peer.records = []
    window.serves()
    peer.close()
    return '%d parcels' % count


@lasting('no peer gets parcels of what another was offered, or opens them for it', **SEALED_LANE)
def foreign_parcels(field):
    window, owner, thief = Window(field), Peer(field.address), Peer(field.address)
    offer, count = lent(field, owner, window)[0], 0
    own = lent(field, thief, window)[0]
    said = owner.ask_parcel(offer, 7, [(0, 64)])
    while field.on():
        for other in (offer, offer ^ 1 << 63, 0, TOP - 1, CANNOT_HAVE, own + 1):
            if other == own:
                continue
            answer = thief.ask_parcel(other, 7, [(0, 64)])
            field.expect(answer and answer.status == NOT_FOUND and not answer.parcel,
                         'a SEAL for the offer of another is answered with %s' %
                         (answer and answer.status))
        for pull, parcel in ((7, said.parcel), (7, 0), (0, 0), (CANNOT_HAVE, said.parcel)):
            say(thief, frames.OPENED, frames.small(pull, parcel))
        mine = thief.ask_parcel(own, 7, [(0, 64)])
        # A seal again, with the other's parcel in place of the own one that was opened.
        thief.send_data([ask(own, 7, opened=said.parcel, read=CANNOT_HAVE & frames.U32)])
        field.expect(mine and not mine.status and mine.secret != said.secret,
                     'two parcels have one key')
        stolen = thief.rail.read(64, said.address, said.key)
        field.expect(stolen is None or stolen != b'.' * 64, 'a parcel is not encrypted')
        say(thief, frames.OPENED, frames.small(7))
        for peer in (thief, owner):
            goes_on(field, peer)
            peer.records = []
        count += 1
    field.expect(owner.open_parcel(said, 64) == b'.' * 64, 'a parcel is gone that was not opened')
    for peer in (owner, thief):
        peer.close()
    window.serves()
    return '%d times' % count


@lasting('a parcel cannot be read once it is opened, nor any of an offer that is over',
         **SEALED_LANE)
def opened_parcels(field):
    window, count = Window(field), 0
    while field.on() and count < 30:
        peer = Peer(field.address)
        offer = lent(field, peer, window)[0]
        said = peer.ask_parcel(offer, 1, [(0, 64)])
        again = peer.ask_parcel(offer, 1, [(0, 64)])
        field.expect(again.parcel != said.parcel and again.secret != said.secret,
                     'two parcels have one name or one key')
        field.expect(peer.open_parcel(again, 64) == b'.' * 64, 'a second parcel of a pull')
        say(peer, frames.OPENED, frames.small(1))
        say(peer, frames.PULLED, frames.small(offer))
        late = peer.ask_parcel(offer, 1, [(0, 64)])
        field.expect(late and late.status == NOT_FOUND, 'an offer that is over is sealed')
        try:
            read = peer.rail.read(64, again.address, again.key)
        except Broken:
            read = None
        field.expect(read is None, 'a parcel is read after it was opened')
        peer.close()
        count += 1
    window.serves()
    return '%d parcels' % count


def beside(field, peers, node, *words):
    """What a node says to a command, while these peers live on."""
    node.tell(*words)
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        for peer in peers:
            live(peer, turn)
        said = node.hear(0.001)
        if said or time.monotonic() > end:
            return said


def statuses(peer):
    """How many parcels the peer was given, and how often it was refused one."""
    found = [parcels.Sealed(data).status for kind, _, data in peer.records
             if kind == frames.SEALED]
    return found.count(OK), found.count(EXHAUSTED), len(found)


@lasting('parcels that nobody reads or opens are few, and room for others is left', seconds=8,
         **SEALED_LANE, left=PARCELS_BYTES, quota=PEER_BYTES + PARCELS_BYTES)
def hoarded_parcels(field):
    window, held = Window(field, 2 * MIB), []
    for some in (16, MIB):
        peer = Peer(field.address)
        offer = lent(field, peer, window, count=2 * MIB)[0]
        begun = time.monotonic()
        peer.flood((ask(offer, n, [(0, some)]) for n in range(1, 60000)),
                   lambda: field.on() and time.monotonic() - begun < field.size(3, 2))
        goes_on(field, peer)
        given, refused, answers = statuses(peer)
        field.expect(given and refused and given + refused == answers,
                     '%d of %d are given, %d refused' % (given, answers, refused))
        field.expect(given * max(some, LEAST_BYTES) < PARCELS_BYTES,
                     '%d parcels of %d bytes are given to one peer' % (given, some))
        window.serves()
        held.append('%d of %d' % (given, answers))
        peer.close()
    window.serves()
    return 'parcels given: %s' % ', '.join(held)


@lasting('asks for parcels whose answers are never taken stay few', seconds=6, **SEALED_LANE,
         left=PARCELS_BYTES, quota=PEER_BYTES + PARCELS_BYTES)
def deaf_asks(field):
    window = Window(field)
    peer = Peer(field.address)
    offer = lent(field, peer, window)[0]
    peer.renews = peer.keeps = False
    peer.credit_out = peer.received + 1
    count = peer.flood(itertools.chain.from_iterable(
        (ask(offer, n), ask(CANNOT_HAVE, n), frames.record(frames.SEALED, frames.sealed(
            n, 0, 1, parcel=n, epoch=1))) for n in itertools.count(1)), field.on)
    window.serves()
    peer.close()
    return '%d records' % count


@lasting('peers that open none of their parcels leave room for an honest one', seconds=20,
         **SEALED_LANE, left=PARCELS_BYTES, quota=PEER_BYTES + 2 * PARCELS_BYTES)
def many_hoarders(field):
    window, peers, given = Window(field, 2 * MIB), [], []
    client = field.honest('client')
    client.ask('ping', field.address)

    def on():
        """Let all others live, and go on."""
        for each in peers[:-1]:
            each.pump()
            each.say(frames.CONTROL, seq=each.control_sent)     # it says what has come
        return field.on()

    while field.on() and len(peers) < HOARDERS:
        peer = Peer(field.address)
        peer.gives_back = True
        peer.send_control([])
        peers.append(peer)
        offer = lent(field, peer, window, count=2 * MIB)[0]
        for some, count in ((MIB, 20), (MIB // 4, 40), (16, 700)):
            for number in range(0, count, 100):
                peer.send_data([ask(offer, some + number + n, [(0, some)])
                                for n in range(min(count, 100))])
                on()
        goes_on(field, peer)
        given.append(statuses(peer)[0])
        peer.keeps = False
    said = beside(field, peers, client, 'get', field.address, window.text, 16)
    for peer in peers:
        peer.close()
    field.expect(said.startswith('get OK'), 'beside %d peers with %s parcels an honest get ends '
                 'with %r' % (len(peers), given, said))
    window.serves()
    return '%d peers, %d parcels' % (len(peers), sum(given))


@lasting('readers that ask for all the time to encrypt leave some for an honest one', seconds=10,
         **SEALED_LANE, left=PARCELS_BYTES, quota=PEER_BYTES + PARCELS_BYTES)
def busy_sealer(field):
    window, client = Window(field, 2 * MIB), field.honest('client')
    client.ask('get', field.address, window.text, 16)
    peers, worst, served, asked = [], 0, 0, 0
    for _ in range(3):
        peer = Peer(field.address)
        peers.append((peer, lent(field, peer, window, count=2 * MIB)[0]))
        peer.keeps = False
    begun = None
    for number in itertools.count(1):
        if begun is None and not field.on():
            break
        if begun is None:
            begun = time.monotonic()
            client.tell('get', field.address, window.text, 16)
        for peer, offer in peers:
            # A pull that is asked for again keeps one parcel: there is room for the next.
            peer.send_data([frames.record(frames.OPENED, frames.small(1))] + [
                ask(offer, 1, [(0, MIB)], read=n, again=number & frames.U32) for n in range(8)])
            peer.pump()
            asked += 8
        said = client.hear(0.001)
        if said:
            field.expect(said.startswith('get OK'), 'an honest get: %r' % said)
            worst, served, begun = max(worst, time.monotonic() - begun), served + 1, None
        field.expect(begun is None or time.monotonic() - begun < LIMIT, 'a get takes for ever')
    for peer, _ in peers:
        peer.close()
    limit = TURNS_LIMIT * (2 if field.build.is_sanitized or is_busy(0) else 1)
    field.expect(worst < limit, 'an honest get takes %.1f s' % worst)
    window.serves()
    return '%d asks of 1 MiB, %d honest gets, %.2f s at most' % (asked, served, worst)


def altered(said, **changes):
    """The bytes of a SEALED, but for the changes."""
    fields = dict(pull_id=said.pull, read=said.read, again=said.again, status=said.status,
                  parcel=said.parcel, epoch=said.epoch, address=said.address, key=said.key,
                  secret=said.secret, tag=said.tag)
    return frames.sealed(**dict(fields, **changes))


def refused(said, status):
    """The bytes of a SEALED that gives no parcel."""
    return frames.sealed(said.pull, said.read, said.again, status)


def flipped(data, bit):
    """The same bytes but for a bit."""
    return (int.from_bytes(data, 'little') ^ 1 << bit).to_bytes(len(data), 'little')


# What an owner says in place of the truth, or before and behind it.
LIES = {
    'a wrong tag': lambda said: [altered(said, tag=flipped(said.tag, 100))],
    'a tag of zeros': lambda said: [altered(said, tag=bytes(16))],
    'a wrong secret': lambda said: [altered(said, secret=flipped(said.secret, 77))],
    'no secret': lambda said: [altered(said, secret=bytes(32))],
    "another parcel's secret and tag": lambda said: [altered(said, secret=os.urandom(32),
                                                             tag=os.urandom(16))],
    'an earlier epoch': lambda said: [altered(said, epoch=said.epoch - 1)],
    'a later epoch': lambda said: [altered(said, epoch=said.epoch + 1)],
    'no room': lambda said: [refused(said, EXHAUSTED)],
    'an error': lambda said: [refused(said, INTERNAL)],
    'no such offer': lambda said: [refused(said, NOT_FOUND)],
    'answers to other reads': lambda said: [
        altered(said, read=n, tag=bytes(16)) for n in (said.read ^ 1, frames.U32, 1 << 16)] + [
            altered(said)],
    'answers of other rounds': lambda said: [
        altered(said, again=said.again + n & frames.U32, tag=bytes(16)) for n in (1, -1, 99)] + [
            altered(said)],
    'answers to other pulls': lambda said: [
        altered(said, pull_id=(said.pull + n) % TOP, tag=bytes(16)) for n in (1, -1, 1 << 32)] + [
            altered(said)],
    'an answer twice': lambda said: [altered(said)] * 2,
    'a second answer with a wrong tag': lambda said: [altered(said),
                                                      altered(said, tag=bytes(16))],
    'a refusal behind an answer': lambda said: [altered(said), refused(said, INTERNAL)],
}


class Liar:
    """An owner that answers the first asks with lies, and later ones with the truth."""

    def __init__(self, field, content, lie, times):
        self.field, self.content, self.lie, self.left = field, content, lie, times
        self.peer = Peer(field.address)
        self.peer.answers = False
        self.lies = 0

    def say_all(self):
        """Answer what has been asked."""
        peer, asked = self.peer, []
        for kind in (frames.SEAL, frames.RESUME):
            asked += [(kind, data) for heard, _, data in peer.records if heard == kind]
        peer.records = [r for r in peer.records if r[0] not in (frames.SEAL, frames.RESUME)]
        for kind, data in asked:
            if kind == frames.RESUME:
                offer, pull = struct.unpack_from('<QQ', data)
                say(peer, frames.OFFER, struct.pack('<Q', pull) + self.content.body(
                    offer, epoch=peer.epoch))
                continue
            truth = parcels.Sealed(peer.owner.parcel(data, peer.cipher(), peer.epoch))
            for said in self.lie(truth) if self.left else [altered(truth)]:
                say(peer, frames.SEALED, said)
                self.lies += bool(self.left)
            self.left -= bool(self.left)

    def until(self, ended, limit=LIMIT):
        """Answer until ended() gives something; that, or None when the time is over."""
        end = time.monotonic() + limit
        for turn in itertools.count(1):
            live(self.peer, turn)
            self.say_all()
            found = ended()
            if found:
                return found
            if time.monotonic() > end:
                return None

    def record_of(self, kind, number):
        """The first record of that kind that names the number, or None."""
        return next((data for heard, _, data in self.peer.records
                     if heard == kind and struct.unpack_from('<Q', data)[0] == number), None)


@lasting('an owner that lies about its parcels delivers nothing but what it has sealed',
         seconds=40, **SEALED_LANE)
def lying_owner(field):
    window, content, lies = Window(field), Memory(TEXT), 0
    for what, lie in LIES.items():
        liar = Liar(field, content, lie, 3)
        # Into a window, at which others may look meanwhile.
        say(liar.peer, frames.PUSH, frames.push(window.name, 0, 0, content.body(1)))
        shown = set()

        def put_ended():
            shown.add(field.server.ask('look', 0, len(TEXT)))
            return liar.record_of(frames.PULLED, 1)

        data = liar.until(put_ended)
        field.expect(data is not None and data[16] == OK, '%s: a put ends with %s' %
                     (what, data and data[16]))
        window.shows(TEXT.decode())
        allowed = {'look OK "%s"' % (b'.' * len(TEXT)).decode(), 'look OK "%s"' % TEXT.decode()}
        field.expect(shown <= allowed, '%s: the window showed %r' % (what, shown - allowed))
        # Into the memory of a receive.
        liar.left = 3
        say(liar.peer, frames.TENSOR, frames.tensor(9, b'k', content.body(2), shape=(len(TEXT),)))
        field.server.ask('expect', 9, 'k')
        field.server.tell('take')
        taken = liar.until(lambda: field.server.hear(0.001))
        field.expect(taken and taken.startswith('take OK "%s"' % TEXT.decode()),
                     '%s: a receive is told %r' % (what, taken))
        goes_on(field, liar.peer)
        liar.peer.close()
        lies += liar.lies
        window = Window(field)
    window.serves()
    return '%d kinds of lies, %d lies' % (len(LIES), lies)


@lasting('bodies of an owner whose parcels never open are given up, and its link goes on',
         seconds=30, **SEALED_LANE)
def lasting_liar(field):
    window, content = Window(field), Memory(TEXT)
    liar = Liar(field, content, LIES['a wrong tag'], 1 << 30)
    say(liar.peer, frames.PUSH, frames.push(window.name, 0, 0, content.body(1)))
    say(liar.peer, frames.TENSOR, frames.tensor(9, b'k', content.body(2), shape=(len(TEXT),)))
    field.server.ask('expect', 9, 'k')
    field.server.tell('take')
    data = liar.until(lambda: liar.record_of(frames.PULLED, 1))
    field.expect(data is not None and data[16] != OK, 'a put ends with %s' % (data and data[16]))
    taken = liar.until(lambda: field.server.hear(0.001))
    field.expect(taken and taken.startswith('take ') and ' OK ' not in taken,
                 'a receive is told %r' % taken)
    goes_on(field, liar.peer)
    liar.peer.close()
    window.shows('.' * len(TEXT))
    field.expect(window.is_sound() == 0, 'a put without its bytes counts')
    window.serves()
    return '%d lies' % liar.lies


def misplaced(said):
    """What an owner says of where a parcel is, when it is not there."""
    short = ctypes.create_string_buffer(len(TEXT) // 2)
    address, key = rail.register(short)
    yield 'another key', altered(said, key=said.key ^ 1)
    yield 'another address', altered(said, address=(said.address + (1 << 40)) % TOP)
    yield 'an address that wraps', altered(said, address=TOP - 8)
    yield 'a short parcel', altered(said, address=address, key=key)


@lasting('parcels that are not where their owner says cost its rail at most', seconds=20,
         **SEALED_LANE)
def misplaced_parcels(field):
    window, content, ended = Window(field), Memory(TEXT), 0
    for what in ('another key', 'another address', 'an address that wraps', 'a short parcel'):
        liar = Liar(field, content, lambda said, w=what: [dict(misplaced(said))[w]], 1 << 30)
        say(liar.peer, frames.PUSH, frames.push(window.name, 0, 0, content.body(1)))
        try:
            data = liar.until(lambda: liar.record_of(frames.PULLED, 1), 3)
            field.expect(data is None or data[16] != OK, '%s: a put ends well' % what)
        except (Broken, door.Closed):
            ended += 1
        liar.peer.close()
        window.shows('.' * len(TEXT))
    field.expect(window.is_sound() == 0, 'a put without its bytes counts')
    window.serves()
    return '%d rails ended' % ended


@lasting('parcels that nobody asked for are given back, and cost little', seconds=5, **SEALED_LANE)
def unasked_parcels(field):
    window, peer = Window(field), Peer(field.address)
    count = peer.flood((frames.record(frames.SEALED, frames.sealed(
        n * 7919 % TOP, n & 15, n & 3, parcel=n, epoch=1, address=1 << 40, key=7))
                        for n in itertools.count(1)), field.on)
    goes_on(field, peer)
    opened = {struct.unpack_from('<Q', data, 8)[0] for kind, _, data in peer.records
              if kind == frames.OPENED}
    field.expect(len(opened) >= count, '%d of %d are given back' % (len(opened), count))
    peer.close()
    window.serves()
    return '%d parcels' % count


@lasting('an owner that answers no SEAL keeps its own bodies waiting alone', seconds=10,
         **SEALED_LANE)
def mute_owner(field):
    window, content, peer = Window(field), Memory(b'mute' * 4096), Peer(field.address)
    client = field.honest('client')
    peer.answers = False
    peer.flood((frames.record(frames.PUSH, frames.push(window.name, 0, 0, content.body(n)))
                for n in range(1, 3000)), field.on)
    goes_on(field, peer)
    asked = sum(kind == frames.SEAL for kind, _, _ in peer.records)
    field.expect(asked, 'the node asks for no parcel')
    for words in (('put', field.address, window.text, 'honest'),
                  ('get', field.address, window.text, 6)):
        said = beside(field, [peer], client, *words)
        field.expect(said.startswith('%s OK' % words[0]), 'beside it: %r' % said)
    peer.send_control([frames.record(frames.WITHDRAW, frames.small(1, peer.sent))], LIMIT)
    field.expect(wait_for(peer, frames.WITHDRAWN, 1) is not None, 'a put is not withdrawn')
    peer.close()
    window.serves()
    return '%d asks' % asked


@lasting('owners that answer no SEAL leave room for the bodies of an honest one', seconds=25,
         **SEALED_LANE, quota=2 * PEER_BYTES + PARCELS_BYTES)
def many_mute_owners(field):
    window, content, peers = Window(field), Memory(b'mute' * 4096), []
    client = field.honest('client')
    client.ask('put', field.address, window.text, 'before')

    def on():
        """Let all others live, and go on."""
        for each in peers:
            each.pump()
            each.say(frames.CONTROL, seq=each.control_sent)
        return field.on()

    while field.on() and len(peers) < HOARDERS:
        peer = Peer(field.address)
        peer.answers = False
        peer.flood((frames.record(frames.PUSH, frames.push(window.name, 0, 0, content.body(n)))
                    for n in range(1, 700 // (len(peers) + 1) + 30)), on)
        goes_on(field, peer)
        peers.append(peer)
    asked = [sum(kind == frames.SEAL for kind, _, _ in peer.records) for peer in peers]
    said = beside(field, peers, client, 'put', field.address, window.text, 'honest')
    for peer in peers:
        peer.close()
    field.expect(said.startswith('put OK'), 'beside %d owners with %s parcels to answer an honest '
                 'put ends with %r' % (len(peers), asked, said))
    window.serves()
    return '%d owners, %d asks' % (len(peers), sum(asked))
