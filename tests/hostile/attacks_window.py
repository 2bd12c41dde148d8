# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on windows: forged names, ranges, lists of blocks, loans and notes."""
import ctypes
import functools
import itertools
import os
import struct
import time

import credentials
import door
import frames
import rail
from attack import MIB, Failure, attack
from peer import Peer
from rail import Broken

BYTES = 65536       # of the window that is attacked
RIGHTS = 3          # to read and to write
NOTES_MAX = 4096    # WEFT_NOTES_MAX of weft/window.h
BLOCKS_MAX = 65536  # WEFT_BLOCKS_MAX
TOP = 2**64
NO_EPOCH = 9        # of no rail: a body that it names must be offered again before it is read
SHUT_MS = 500       # weft_window_close() takes at most so long on a connected rail
LIMIT = 20          # seconds until an answer, however slow the machine
# libfabric keeps the nodes of its tree of registrations for later ones, and they lie between the
# pieces that are freed with the loans, which malloc can't give back then.
SCATTERED = 64 * MIB

# Numbers of enum weft_status.
OK, CANCELLED, NOT_FOUND, EXHAUSTED, FAILED_PRECONDITION, OUT_OF_RANGE = 0, 1, 5, 8, 9, 11


def lasting(sentence, **options):
    """Register an attack whose links must not end: elsewhere that is a defence, and here none."""
    def keep(function):
        @functools.wraps(function)
        def run(field):
            try:
                return function(field)
            except (Broken, door.Closed) as error:
                raise Failure('a link ends: %s: %s' % (type(error).__name__, error)) from error
        return attack(sentence, **options)(run)
    return keep


class Window:
    """A window of the attacked, and what an honest client finds there after the attack."""

    def __init__(self, field, count=BYTES, rights=RIGHTS):
        self.field, self.count = field, count
        said = field.server.ask('window', count, rights)
        field.expect(said.startswith('window OK'), 'no window is opened: %r' % said)
        self.text = said.split('"')[1]
        self.name = bytes.fromhex(self.text)[4:28]
        self.clients = 0

    def serves(self):
        """Fail unless a new client can use the window, and nothing beside it is written."""
        self.clients += 1
        client, text = self.field.honest('client'), 'honest-%d' % self.clients
        said = client.ask('put', self.field.address, self.text, text)
        self.field.expect(said.startswith('put OK'), 'an honest put: %r' % said)
        said = client.ask('get', self.field.address, self.text, len(text))
        self.field.expect(said.startswith('get OK "%s"' % text), 'an honest get: %r' % said)
        self.is_sound()
        client.stop()

    def is_sound(self):
        """Fail unless the memory around the window is as it was; how many puts have ended."""
        said = self.field.server.ask('sound')
        self.field.expect(said.startswith('sound OK'), 'memory beside the window: %r' % said)
        return int(said.split('"')[1])

    def shows(self, text):
        """Fail unless the window begins with a text."""
        said = self.field.server.ask('look', 0, len(text))
        self.field.expect(said == 'look OK "%s"' % text, 'the window begins with %r' % said)


class Memory:
    """Memory of the attacker that its peers may read."""

    def __init__(self, content):
        self.buffer = ctypes.create_string_buffer(content, len(content))
        self.address, self.key = rail.register(self.buffer)

    def body(self, offer, count=None, epoch=1):
        """All of it, or its beginning, as a body to pull."""
        return frames.pull(len(self.buffer) if count is None else count, offer, epoch,
                           self.address, self.key)


def nowhere(offer, count=16, epoch=NO_EPOCH, way=2):
    """A body that nobody reads."""
    return frames.pull(count, offer, epoch, 0, 7, way)


def status_of(kind, data):
    """The status that a LEND, a PULLED or a NOTED has."""
    return data[8 if kind == frames.LEND else 16]


def answers(peer, kind):
    """All records of that kind, by the number that they name: a list of their statuses."""
    found = {}
    for heard, _, data in peer.records:
        if heard == kind:
            found.setdefault(struct.unpack_from('<Q', data)[0], []).append(status_of(kind, data))
    return found


def live(peer, turn):
    """Do what a peer does all the time, in one of many turns."""
    for _ in range(50):     # reads of the attacker's memory need its progress
        peer.take_frames()
    peer.hear_door()
    if turn % 50 == 0:      # the rail fails if nothing is acknowledged for a second
        peer.send_control([])


def has_ended(peer):
    """Does the node end this link, before it handles an echo behind the offence?"""
    try:
        return peer.echo(LIMIT) is None and not peer.is_alive()
    except (Broken, door.Closed):
        return True


def wait_for(peer, kind, number, limit=LIMIT):
    """The first record of that kind that names the number; None: it does not come."""
    end = time.monotonic() + limit
    for turn in itertools.count(1):
        live(peer, turn)
        if time.monotonic() > end:
            return None
        for heard, _, data in peer.records:
            if heard == kind and struct.unpack_from('<Q', data)[0] == number:
                return data


def expect_status(field, peer, kind, number, status, what):
    """Fail unless the answer to the number has that status."""
    data = wait_for(peer, kind, number)
    field.expect(data is not None, '%s is not answered' % what)
    field.expect(status_of(kind, data) == status,
                 '%s is answered with status %d, not %d' % (what, status_of(kind, data), status))
    return data


def say(peer, kind, data):
    """Send one record, however long."""
    for part in frames.parts(kind, data):
        if not peer.send_data([part]):
            raise Broken('no credit')


def lent(field, peer, window, number=1, count=BYTES, flags=frames.ASK_STAY):
    """Ask for the beginning of the window; offer, address and key of what is lent."""
    say(peer, frames.ASK, frames.ask(number, window.name, 0, count, flags))
    data = expect_status(field, peer, frames.LEND, number, OK, 'an honest ASK')
    _, _, _, offer, _, address, key = struct.unpack_from('<BQBQIQQ', data, 9)
    return offer, address, key


def goes_on(field, peer):
    """Fail unless the link of this peer is served still."""
    field.expect(peer.echo(LIMIT) is not None, 'a link without an offence is not served')
    peer.send_control([])   # what came is acknowledged


def forgeries(name):
    """Names that no window has."""
    number, token = struct.unpack('<Q', name[:8])[0], name[8:]
    for other in (0, 1, number - 1, number + 1, number + (1 << 32), TOP - 1):
        if other % TOP != number:
            yield struct.pack('<Q', other % TOP) + token
    for at in (0, 7, 8, 15):
        yield name[:8] + token[:at] + bytes([token[at] ^ 1]) + token[at + 1:]
    yield name[:8] + bytes(16)
    for _ in range(20):
        yield name[:8] + os.urandom(16)


@lasting('forged ids and tokens of windows are refused')
def forged_names(field):
    window, peer = Window(field), Peer(field.address)
    content = Memory(b'FORGED')
    list_of = frames.block_list([(2, 0, 0), (2, 4, 4)])
    for number, name in enumerate(forgeries(window.name), 1):
        say(peer, frames.ASK, frames.ask(number, name, 0, 16))
        say(peer, frames.PUSH, frames.push(name, number, frames.PUSH_NOTED, note=b'forged'))
        say(peer, frames.PUSH, frames.push(name, 0, frames.PUSH_LAST, content.body(2 * number)))
        say(peer, frames.PUSH, frames.push(name, 0, frames.PUSH_LAST | frames.PUSH_LIST,
                                           content.body(2 * number + 1), announced=(2, 4),
                                           blocks=list_of))
        for kind, answered in ((frames.LEND, number), (frames.NOTED, number),
                               (frames.PULLED, 2 * number), (frames.PULLED, 2 * number + 1)):
            expect_status(field, peer, kind, answered, NOT_FOUND, 'a forged name')
    goes_on(field, peer)
    peer.close()
    window.shows('......')
    field.expect(window.is_sound() == 0, 'a put by a forged name counts')
    window.serves()
    return '%d names' % number


@lasting('a window that may only be read or only be written is neither put into nor lent',
         quick=False)
def rights(field):
    denied = 7
    for rights_of, name in ((1, 'reading'), (2, 'writing')):
        window, peer = Window(field, rights=rights_of), Peer(field.address)
        content = Memory(b'DENIED')
        say(peer, frames.ASK, frames.ask(1, window.name, 0, 16))
        say(peer, frames.PUSH, frames.push(window.name, 2, frames.PUSH_NOTED | frames.PUSH_GOT))
        say(peer, frames.PUSH, frames.push(window.name, 3, frames.PUSH_NOTED))
        say(peer, frames.PUSH, frames.push(window.name, 0, 0, content.body(4)))
        reads, writes = (OK, denied) if rights_of == 1 else (denied, OK)
        for kind, number, status in ((frames.LEND, 1, reads), (frames.NOTED, 2, reads),
                                     (frames.NOTED, 3, writes), (frames.PULLED, 4, writes)):
            expect_status(field, peer, kind, number, status, 'a window for %s' % name)
        peer.close()
        window.shows('......' if rights_of == 1 else 'DENIED')
    Window(field).serves()


RANGES = [(0, BYTES + 1), (BYTES, 1), (BYTES - 1, 2), (BYTES + 1, 1), (1, TOP - 1), (0, TOP - 1),
          (TOP - 1, 1), (TOP - 1, 2), (TOP - 16, 32), (TOP - 4096, 4096), (TOP - 1, TOP - 1),
          (16, TOP - 16), (16, TOP - 8), (2**63, 2**63), (BYTES, TOP - BYTES), (1 << 40, 16)]


@lasting('ranges beyond a window, and those that wrap, are refused')
def beyond_range(field):
    window, peer = Window(field), Peer(field.address)
    for number, (at, count) in enumerate(RANGES, 1):
        say(peer, frames.ASK, frames.ask(number, window.name, at, count,
                                         number % 2 * frames.ASK_STAY))
        expect_status(field, peer, frames.LEND, number, OUT_OF_RANGE,
                      'an ASK for %d bytes at %d' % (count, at))
        for way in (2, 4):
            body = nowhere(10 * number + way, count, way=way) + (bytes(8) if way == 4 else b'')
            say(peer, frames.PUSH, frames.push(window.name, at, frames.PUSH_LAST, body))
            expect_status(field, peer, frames.PULLED, 10 * number + way, OUT_OF_RANGE,
                          'a PUSH of %d bytes at %d' % (count, at))
    goes_on(field, peer)
    peer.close()
    field.expect(window.is_sound() == 0, 'a put beyond the window counts')
    window.serves()
    return '%d ranges' % len(RANGES)


def view(offer):
    """A body that is to be looked at."""
    return frames.view(16, offer, 1, 0, 7, 1, 0, 3, 0)


def bad_records(name):
    """Records about the window of that name that each are an offence."""
    push, ask, lend = frames.push, frames.ask, frames.lend
    noted, last, got = frames.PUSH_NOTED, frames.PUSH_LAST, frames.PUSH_GOT
    return {
        'GOT with a body': (frames.PUSH, push(name, 0, got, nowhere(1))),
        'GOT with a staged body': (frames.PUSH, push(name, 0, got, nowhere(1, way=4) + bytes(8))),
        'GOT with LAST': (frames.PUSH, push(name, 1, got | last)),
        'an unknown flag of PUSH': (frames.PUSH, push(name, 1, 16)),
        'all flags of PUSH': (frames.PUSH, push(name, 1, 255)),
        'an eager body': (frames.PUSH, push(name, 0, last, frames.eager(4)) + b'EAGE'),
        'an eager body of no bytes': (frames.PUSH, push(name, 0, last, frames.eager(0))),
        'a PUSH to look at': (frames.PUSH, push(name, 0, last, view(1))),
        'a PUSH by handle': (frames.PUSH, push(name, 0, last, nowhere(1, way=5) + bytes(64))),
        'a body of no bytes': (frames.PUSH, push(name, 0, last, nowhere(1, 0))),
        'a body that wraps': (frames.PUSH, push(name, 0, last, frames.pull(
            16, 1, NO_EPOCH, TOP - 8, 7))),
        'a note without NOTED': (frames.PUSH, push(name, 1, last, note=b'note')),
        'a number without NOTED': (frames.PUSH, push(name, 1, last, number=4)),
        'a long note': (frames.PUSH, push(name, 1, noted, note=b'n' * 4097)),
        'bytes behind a PUSH': (frames.PUSH, push(name, 1, noted) + b'x'),
        'half a PUSH': (frames.PUSH, push(name, 1, noted)[:40]),
        'an ASK of no bytes': (frames.ASK, ask(1, name, 0, 0)),
        'an unknown flag of ASK': (frames.ASK, ask(1, name, 0, 16, 4)),
        'bytes behind an ASK': (frames.ASK, ask(1, name, 0, 16) + b'x'),
        'half an ASK': (frames.ASK, ask(1, name, 0, 16)[:-1]),
        'a LEND without a body': (frames.LEND, lend(1)),
        'a LEND that refuses and lends': (frames.LEND, lend(1, NOT_FOUND, nowhere(1))),
        'a LEND of no status': (frames.LEND, lend(1, 17)),
        'a LEND to look at': (frames.LEND, lend(1, OK, view(1))),
        'a LEND by handle': (frames.LEND, lend(1, OK, nowhere(1, way=5) + bytes(64))),
        'an eager LEND': (frames.LEND, lend(1, OK, frames.eager(4)) + b'EAGE'),
        'a NOTED of no status': (frames.NOTED, frames.small(1, 0, 17)),
        'a long NOTED': (frames.NOTED, frames.small(1) + b'x'),
    }


def offend(field, window, offences, neighbour):
    """Commit each offence over a link of its own, which must end; the neighbour's must not."""
    for what, records in offences.items():
        peer = Peer(field.address)
        try:
            for kind, data in records:
                say(peer, kind, data)
        except (Broken, door.Closed):
            pass
        ended = has_ended(peer)
        peer.close()
        field.expect(ended or not field.server.is_alive(), 'a link goes on after %s' % what)
    goes_on(field, neighbour)
    window.is_sound()
    return '%d offences' % len(offences)


@lasting('records about windows that break the rules end their link alone', quick=2, seconds=20)
def broken_records(field):
    window, neighbour = Window(field), Peer(field.address)
    loan = lent(field, neighbour, window)
    offences = {what: [record] for what, record in bad_records(window.name).items()}
    figures = offend(field, window, offences, neighbour)
    field.expect(neighbour.fetch(8, *loan) == b'.' * 8,
                 "another link's loan can't be read any more")
    neighbour.close()
    field.expect(window.is_sound() == 0, 'a put that breaks the rules counts')
    window.serves()
    return figures


def listed(window, offer, announced, blocks, flags=frames.PUSH_LAST, body=None, at=0):
    """A PUSH of blocks, some of them or all."""
    return frames.PUSH, frames.push(window.name, at, flags | frames.PUSH_LIST,
                                    nowhere(offer, BYTES) if body is None else body,
                                    announced=announced, blocks=blocks)


def more(offer, blocks):
    """A BLOCKS."""
    return frames.BLOCKS, struct.pack('<Q', offer) + blocks


def overlap(count):
    """Blocks of 16 bytes that overlap: each begins a byte behind the one before, in both."""
    return [(16, n % (BYTES - 16), n % (BYTES - 16)) for n in range(count)]


def cut_list(blocks, size):
    """The bytes of blocks in pieces of so many blocks each."""
    before = (0, 0, 0)
    for at in range(0, len(blocks), size):
        yield frames.block_list(blocks[at:at + size], before)
        before = blocks[min(at + size, len(blocks)) - 1]


@lasting('lists of 65536 blocks that overlap are read or withdrawn, and nobody waits', seconds=20,
         quick=False)
def overlapping(field):
    window, peer = Window(field), Peer(field.address)
    text = bytes(0x61 + n % 26 for n in range(BYTES))
    content = Memory(text)
    # A parcel has four of them: this speaker makes some thousand in a second.
    blocks = overlap(BLOCKS_MAX // 16 if credentials.is_sealed() else BLOCKS_MAX)
    announced = len(blocks), 16 * len(blocks)
    say(peer, *listed(window, 1, announced, frames.block_list(blocks), body=content.body(1)))
    expect_status(field, peer, frames.PULLED, 1, OK, 'a list of blocks that overlap')
    window.shows(text[:200].decode())
    pieces = cut_list(blocks, 1000)
    say(peer, *listed(window, 2, announced, next(pieces), body=content.body(2)))
    for piece in pieces:
        say(peer, *more(2, piece))
    expect_status(field, peer, frames.PULLED, 2, OK, 'a list in many records')
    field.expect(window.is_sound() == 2, 'the lists do not count as two puts')
    # All blocks are one place, and its bytes never come: the node must be able to let go.
    same = frames.units(16) + bytes(2) + (b'\0' + frames.units(31) * 2) * (len(blocks) - 1)
    say(peer, *listed(window, 3, announced, same))
    goes_on(field, peer)
    peer.send_control([frames.record(frames.WITHDRAW, frames.small(3, peer.sent))], LIMIT)
    field.expect(wait_for(peer, frames.WITHDRAWN, 3) is not None, 'a list is not withdrawn')
    peer.close()
    window.serves()


def bad_lists(window):
    """Lists that each are an offence."""
    two, one = frames.block_list([(8, 0, 0), (8, 16, 16)]), frames.block_list([(8, 0, 0)])
    long_number = b'\x80' * 10 + b'\0'
    checked = frames.pull(BYTES, 1, NO_EPOCH, 0, 7)
    checked = checked[:9] + b'\1' + checked[10:] + bytes(8)
    staged = nowhere(1, BYTES, way=4) + bytes(8)
    behind = frames.block_list([(8, 32, 32)], (8, 16, 16))
    return {
        'more blocks than were announced': [listed(window, 1, (1, 16), two)],
        'more blocks in BLOCKS': [listed(window, 1, (2, 24), one), more(1, two)],
        'blocks of fewer bytes': [listed(window, 1, (2, 17), two)],
        'blocks of more bytes': [listed(window, 1, (2, 15), two)],
        'fewer bytes in BLOCKS': [listed(window, 1, (3, 25), two), more(1, behind)],
        'more bytes in BLOCKS': [listed(window, 1, (3, 23), two), more(1, behind)],
        'a first block of no bytes': [listed(window, 1, (2, 16), b'\0\0\0' + one)],
        'half a block': [listed(window, 1, (2, 16), two[:-1])],
        'half a block in BLOCKS': [listed(window, 1, (3, 24), two), more(1, behind[:1])],
        'a number of eleven units': [listed(window, 1, (1, 8), long_number + one)],
        'a list of no blocks': [listed(window, 1, (0, 8), b'')],
        'a list of no bytes': [listed(window, 1, (1, 0), b'')],
        'a list of too many blocks': [listed(window, 1, (BLOCKS_MAX + 1, 8 * BLOCKS_MAX), one)],
        'a list of 2^32 - 1 blocks': [listed(window, 1, (2**32 - 1, TOP - 1), one)],
        'a list with a place': [listed(window, 1, (2, 16), two, at=8)],
        'a list without a body': [listed(window, 1, (2, 16), two, body=frames.no_body())],
        'a list with a staged body': [listed(window, 1, (2, 16), two, body=staged)],
        'a list with a checksum': [listed(window, 1, (2, 16), two, body=checked)],
        'a list with GOT': [listed(window, 1, (2, 16), two, flags=frames.PUSH_GOT)],
        'a second list': [listed(window, 1, (3, 24), two), listed(window, 2, (2, 16), two)],
        'blocks without LIST': [(frames.PUSH, frames.push(window.name, 0, 0, nowhere(1)) + two)],
        'half a BLOCKS': [(frames.BLOCKS, bytes(7))],
    }


@lasting('lists of blocks that break the rules end their link alone', quick=2, seconds=20)
def broken_lists(field):
    window, neighbour = Window(field), Peer(field.address)
    lent(field, neighbour, window)
    figures = offend(field, window, bad_lists(window), neighbour)
    neighbour.close()
    field.expect(window.is_sound() == 0, 'a list that breaks the rules counts')
    window.serves()
    return figures


@lasting('blocks beyond the window or the body write nothing, and end their put alone')
def misplaced_blocks(field):
    window, peer = Window(field), Peer(field.address)
    content = Memory(b'M' * 64)
    places = [(8, BYTES, 0), (8, BYTES - 7, 0), (8, TOP - 8, 0), (16, TOP - 8, 0), (8, 2**63, 0),
              (8, 0, 64), (8, 0, 57), (8, 0, TOP - 8), (8, 0, TOP - 1), (8, BYTES, 64),
              (BYTES + 1, 0, 0), (65, 0, 0), (2**63, 0, 0), (TOP - 9, 0, 0)]
    good, offer = (8, 0, 0), 0
    for place in places:
        announced = (3, 16 + place[0])
        if sum(announced) >= TOP:
            announced = (3, TOP - 1)
        ahead = frames.block_list([good, place])
        offer += 2
        say(peer, *listed(window, offer, announced, ahead,
                          body=content.body(offer, epoch=NO_EPOCH)))
        say(peer, *more(offer, frames.block_list([good], place)))
        say(peer, *listed(window, offer + 1, announced, frames.block_list([good]),
                          body=content.body(offer + 1, epoch=NO_EPOCH)))
        say(peer, *more(offer + 1, frames.block_list([place], good)))
        for number in (offer, offer + 1):
            expect_status(field, peer, frames.PULLED, number, OUT_OF_RANGE, 'a block %r' % (place,))
    # BLOCKS of what has ended, or never was, are ignored.
    for number in (1, offer, TOP - 1):
        say(peer, *more(number, b'\xff' * 100))
    goes_on(field, peer)
    # So many bytes are never told of that sums of them must not wrap, and they are left open.
    for number in (1001, 1002):
        say(peer, *listed(window, number, (BLOCKS_MAX, TOP - 1), frames.block_list([good]),
                          body=content.body(number)))
        goes_on(field, peer)
        peer.send_control([frames.record(frames.WITHDRAW, frames.small(number, peer.sent))], LIMIT)
        field.expect(wait_for(peer, frames.WITHDRAWN, number) is not None,
                     'a list that is never whole is not withdrawn')
    say(peer, *listed(window, 1003, (2, 16), frames.block_list([good]), body=content.body(1003)))
    peer.close()
    window.serves()
    field.expect(window.is_sound() == 1, 'a put with a misplaced block counts')
    return '%d places' % len(places)


class Leaver:
    """A peer that leaves after the measurement: what it leaves behind takes a while to end."""

    def __init__(self, field):
        self.peer = Peer(field.address)
        field.bystanders.append(self)

    def stop(self):
        """Leave."""
        self.peer.close()


def flood(field, window, records, kind):
    """Send such records until the node refuses; how many it has refused, and MiB held."""
    peer = Leaver(field).peer
    peer.flood(records, field.on)
    goes_on(field, peer)
    found = [status for statuses in answers(peer, kind).values() for status in statuses]
    refused = sum(status == EXHAUSTED for status in found)
    held = field.server.rss() - field.watch.rss_before
    field.expect(refused, 'nothing of %d is refused' % len(found))
    field.expect(all(status in (OK, EXHAUSTED) for status in found), 'another status comes')
    window.serves()     # while the attacker has all that it was given
    return 'refused %d of %d, %d MiB held' % (refused, len(found), held >> 20)


@lasting('loans that stay are refused where their peer has too many', seconds=20, quick=6,
         left=SCATTERED)
def many_loans(field):
    window = Window(field)
    return flood(field, window, (
        frames.record(frames.ASK, frames.ask(n, window.name, n % 1000, 64, frames.ASK_STAY))
        for n in range(1, 100000)), frames.LEND)


@lasting('puts whose bodies are never readable are refused where their peer has too many',
         seconds=20, quick=6)
def many_pushes(field):
    window = Window(field)
    figures = flood(field, window, (
        frames.record(frames.PUSH, frames.push(window.name, 0, frames.PUSH_LAST, nowhere(n)))
        for n in range(1, 30000)), frames.PULLED)
    field.expect(window.is_sound() == 1, 'a put without bytes counts')
    return figures


@lasting('lists of many blocks are refused where their peer has too many', seconds=20,
         quick=False)
def many_lists(field):
    window, peer = Window(field), Peer(field.address)
    blocks = b'\1\0\0' + b'\0\0\0' * (BLOCKS_MAX - 1)
    peer.flood_long(frames.PUSH, (
        listed(window, n, (BLOCKS_MAX, BLOCKS_MAX), blocks)[1] for n in range(1, 61)), field.on)
    goes_on(field, peer)
    held = field.server.rss() - field.watch.rss_before
    statuses = [status for each in answers(peer, frames.PULLED).values() for status in each]
    field.expect(EXHAUSTED in statuses, 'no list is refused')
    window.serves()
    peer.close()
    window.serves()
    return '%d of 60 refused, %d MiB held' % (len(statuses), held >> 20)


def introduce(field, window, peer):
    """Have the attacked know the attacker as the peer of a note."""
    say(peer, frames.PUSH, frames.push(window.name, 77, frames.PUSH_NOTED, note=b'me'))
    expect_status(field, peer, frames.NOTED, 77, OK, 'a note')
    said = field.server.ask('note')
    field.expect(said.startswith('note OK "me"'), 'the note of the attacker: %r' % said)


READ = 8    # bytes that the attacked reads


def asked(field, peer, content):
    """The attacked begins to read a window of the attacker; the number of its ASK."""
    descriptor = frames.descriptor(b'w' * 24, len(content), 3)
    field.server.tell('get', '-', descriptor.hex(), READ)
    return next_ask(peer)


def next_ask(peer):
    """The number of the next ASK, which is forgotten with all before it."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        live(peer, turn)
        numbers = [struct.unpack_from('<Q', data)[0]
                   for kind, _, data in peer.records if kind == frames.ASK]
        if numbers:
            peer.records = [r for r in peer.records if r[0] != frames.ASK]
            return numbers[-1]
        if time.monotonic() > end:
            raise Failure('the node asks for nothing')


def hear(field, peer):
    """What the attacked says of its operation, while the attacker lives on."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        live(peer, turn)
        said = field.server.hear(0.001)
        if said or time.monotonic() > end:
            return said


@lasting('answers that nobody asked for change nothing', seconds=10)
def unasked(field):
    window, owner, stranger = Window(field), Peer(field.address), Peer(field.address)
    introduce(field, window, owner)
    content, forged = Memory(b'genuine!'), Memory(b'forged!!')
    number = asked(field, owner, content.buffer)
    offers = itertools.count(1)
    near = [n % TOP for n in range(number - 100, number + 100)]
    for name in near + [0, 1, TOP - 1, 1 << 32]:
        offer = next(offers)
        say(stranger, frames.LEND, frames.lend(name, OK, forged.body(offer)))
        say(stranger, frames.LEND, frames.lend(name, NOT_FOUND))
        say(stranger, frames.NOTED, frames.small(name))
        expect_status(field, stranger, frames.PULLED, offer, CANCELLED, 'a LEND for %d' % name)
    # The owner's own answers, too: of another number, and of another kind.
    say(owner, frames.LEND, frames.lend(number + 1, OK, forged.body(5000)))
    expect_status(field, owner, frames.PULLED, 5000, CANCELLED, 'a LEND for another number')
    say(owner, frames.NOTED, frames.small(number))
    goes_on(field, owner)
    goes_on(field, stranger)
    say(owner, frames.LEND, frames.lend(number, OK, content.body(5001)))
    said = hear(field, owner)
    field.expect(said.startswith('get OK "genuine!"'), 'a get beside the attack: %r' % said)
    say(owner, frames.LEND, frames.lend(number, OK, content.body(5002)))
    expect_status(field, owner, frames.PULLED, 5002, CANCELLED, 'a second LEND')
    owner.close()
    stranger.close()
    window.serves()
    return '%d answers' % next(offers)


def expect_unread(field, peer, offer, what):
    """Fail unless what was lent is refused, and nothing of it read; the end of the peer."""
    expect_status(field, peer, frames.PULLED, offer, FAILED_PRECONDITION, what)
    said = hear(field, peer)
    field.expect(said.startswith('get ') and 'OK' not in said and 'LENT' not in said,
                 '%s: %r' % (what, said))
    goes_on(field, peer)
    peer.close()


@lasting('what is lent in another length or way than was asked for is not read', seconds=15,
         quick=False)
def wrong_loans(field):
    window, content = Window(field), Memory(b'LENT' * 16)
    whole, address, key = len(content.buffer), content.address, content.key
    checked = content.body(6)
    bodies = {
        'fewer bytes': content.body(1, whole - 1), 'more bytes': content.body(2, whole + 1),
        'one byte': content.body(3, 1),
        'so many bytes that their sum wraps': frames.pull(TOP - 1 - address, 4, 1, address, key),
        'a checksum': checked[:9] + b'\1' + checked[10:] + bytes(8),
    }
    for what, body in bodies.items():
        peer = Peer(field.address)
        introduce(field, window, peer)
        say(peer, frames.LEND, frames.lend(asked(field, peer, content.buffer), OK, body))
        offer = struct.unpack_from('<Q', body, 10)[0]
        expect_unread(field, peer, offer, what)
    # What is staged is asked for block by block, and each must have its length.
    peer = Peer(field.address)
    introduce(field, window, peer)
    say(peer, frames.LEND, frames.lend(asked(field, peer, content.buffer), OK,
                                       frames.staged(whole, 5, 1, address, key, whole)))
    expect_status(field, peer, frames.PULLED, 5, OK, 'a window that is staged')
    say(peer, frames.LEND, frames.lend(next_ask(peer), OK,
                                       frames.staged(READ - 1, 7, 1, address, key, READ - 1)))
    expect_unread(field, peer, 7, 'a short block, staged')
    ways = {'a view': view(1), 'a handle': nowhere(1, way=5) + bytes(64), 'nothing': None,
            'an eager body': frames.eager(whole) + bytes(content.buffer)}
    for what, body in ways.items():
        peer = Peer(field.address)
        introduce(field, window, peer)
        say(peer, frames.LEND, frames.lend(asked(field, peer, content.buffer), OK, body))
        field.expect(has_ended(peer), 'a link goes on after a LEND with %s' % what)
        peer.close()
        said = field.server.hear()
        field.expect(said.startswith('get ') and 'OK' not in said, '%s: %r' % (what, said))
    window.serves()
    return '%d loans' % (len(bodies) + len(ways))


@lasting('notes that nobody takes are limited, and each that is taken makes room for one')
def many_notes(field):
    window, peer = Window(field), Peer(field.address)
    count = NOTES_MAX + 1000

    def note(number, flags=frames.PUSH_NOTED):
        return frames.record(frames.PUSH, frames.push(window.name, number, flags, number=number,
                                                      note=b'n%d ' % number + b'x' * 200))

    peer.flood((note(n, frames.PUSH_NOTED | (frames.PUSH_GOT if n % 2 else frames.PUSH_LAST))
                for n in range(count)), lambda: True)
    goes_on(field, peer)
    found = answers(peer, frames.NOTED)
    field.expect(all(found.get(n) == [OK if n < NOTES_MAX else EXHAUSTED] for n in range(count)),
                 '%d notes are taken, the limit is %d' %
                 (sum(OK in each for each in found.values()), NOTES_MAX))
    # Neither does a body help, nor does one that fails keep a place.
    say(peer, frames.PUSH, frames.push(window.name, 0, frames.PUSH_NOTED, nowhere(1)))
    expect_status(field, peer, frames.PULLED, 1, EXHAUSTED, 'a note with a body')
    said = field.server.ask('note')
    field.expect(said.startswith('note OK "n0 '), 'the first note: %r' % said)
    say(peer, frames.PUSH, frames.push(window.name, 0, frames.PUSH_NOTED, nowhere(2)))
    goes_on(field, peer)
    peer.send_control([frames.record(frames.WITHDRAW, frames.small(2, peer.sent))], LIMIT)
    field.expect(wait_for(peer, frames.WITHDRAWN, 2) is not None, 'a put is not withdrawn')
    peer.send_data([note(count), note(count + 1)])
    expect_status(field, peer, frames.NOTED, count, OK, 'a note after one was taken')
    expect_status(field, peer, frames.NOTED, count + 1, EXHAUSTED, 'one more note')
    window.serves()
    peer.close()
    return '%d notes' % count


@lasting('a put that names an offer that is not over ends its link alone', quick=False)
def same_offer(field):
    window, neighbour = Window(field), Peer(field.address)
    push = frames.PUSH, frames.push(window.name, 0, frames.PUSH_LAST, nowhere(1))
    tensor = frames.TENSOR, frames.tensor(7, b'k', nowhere(1), shape=(16,))
    lend = frames.LEND, frames.lend(1, OK, nowhere(1))
    two = frames.block_list([(8, 0, 0), (8, 16, 16)])
    figures = offend(field, window, {
        'an offer that is pushed twice': [push, push],
        'an offer of a tensor that is pushed': [tensor, push],
        'an offer that is pushed and sent': [push, tensor],
        'an offer that is pushed and lent': [push, lend],
        'an offer of a list that is pushed': [listed(window, 1, (3, 24), two), push],
    }, neighbour)
    # Once an offer is over its number may come again.
    content = Memory(b'twice')
    for _ in range(2):
        neighbour.records = []
        say(neighbour, frames.PUSH, frames.push(window.name, 0, frames.PUSH_LAST, content.body(1)))
        expect_status(field, neighbour, frames.PULLED, 1, OK, 'a put')
    window.shows('twice')
    field.expect(window.is_sound() == 2, 'puts with the same offer count')
    neighbour.close()
    window.serves()
    return figures


@lasting('a loan that was given back cannot be read, and the node lives', quick=False)
def returned_loan(field):
    window, count = Window(field), 0
    while field.on() and count < 20:
        peer = Peer(field.address)
        loan = lent(field, peer, window)
        field.expect(peer.fetch(8, *loan) == b'.' * 8, 'a loan is not readable')
        for _ in range(2):
            say(peer, frames.PULLED, frames.small(loan[0]))
        say(peer, frames.RESUME, frames.small(loan[0], 5))
        again = wait_for(peer, frames.OFFER, 5)
        field.expect(again is not None and again[8] == 0, 'what was given back is offered again')
        try:
            read = peer.fetch(8, *loan)
        except Broken:
            read = None
        field.expect(read is None, 'a loan is read after it was given back')
        peer.close()
        count += 1
    window.serves()
    return '%d loans' % count


@lasting('a peer that answers nothing does not keep a window from closing', seconds=15)
def kept_window(field):
    window, peer = Window(field), Peer(field.address)
    content = Memory(b'K' * 4096)
    for number in range(1, 200):
        say(peer, frames.ASK, frames.ask(number, window.name, 0, BYTES, frames.ASK_STAY))
        say(peer, frames.PUSH, frames.push(window.name, 0, 0, nowhere(2 * number)))
    say(peer, *listed(window, 1, (3, 24), frames.block_list([(8, 0, 0), (8, 16, 16)])))
    expect_status(field, peer, frames.LEND, 199, OK, 'an ASK')
    # The reads of this one are under way, and its memory makes no progress.
    say(peer, frames.PUSH, frames.push(window.name, 0, 0, content.body(999)))
    said = field.server.ask('shut')
    field.expect(said.startswith('shut OK'), 'closing a window: %r' % said)
    took = int(said.split('"')[1])
    slow = 10 if field.build.is_sanitized else 4
    field.expect(took < slow * SHUT_MS, 'a window closes after %d ms' % took)
    peer.close()
    Window(field).serves()
    return 'closed after %d ms' % took
