# SPDX-License-Identifier: BSD-2-Clause
"""Attacks by an allowed peer on TLS at the door and on sealed frames.

A frame that does not verify is nobody's: it must be counted and dropped, and its link go on.
"""
import itertools
import os
import random
import struct
import time

import credentials
import door
import frames
import rail
import seals
import tls
from attacks_window import LIMIT, Window, goes_on, lasting, lent, live, say
from credentials import KEYED
from peer import Peer
from rail import Broken

# scripts/check makes a few of these by their names, and --quick none.
KEYED_LANE = dict(modes=KEYED, quick=False)
REFUSED = 0xbad     # the number of echoes that must not be answered
OPEN_REQUEST = struct.Struct('<QQI')


def echo(number=REFUSED):
    """The records of a frame that has an echo."""
    return [frames.record(frames.ECHO, frames.small(number))]


def echoed(peer, number=REFUSED):
    """How often an echo was answered."""
    return peer.records.count((frames.ECHOED, 0, frames.small(number)))


def counted(field):
    """Frames that the node has refused, and those that came too late, together."""
    said = field.server.ask('count')
    field.expect(said.startswith('count OK'), 'counters: %r' % said)
    return sum(int(word) for word in said.split('"')[1].split())


def next_frame(peer, records):
    """The bytes of the next data frame, once there is credit for it."""
    end = time.monotonic() + LIMIT
    for turn in itertools.count(1):
        if peer.credits():
            break
        live(peer, turn)
        if time.monotonic() > end:
            raise Broken('no credit')
    data = peer.frame(frames.DATA, records, seq=peer.sent)
    peer.sent = (peer.sent + 1) & frames.U32
    return data


def dropped(field, peer, made):
    """Send frames that must be dropped, counted, and change nothing; how many."""
    before, count = counted(field), 0
    for data in made:
        peer.post(data)
        count += 1
        if count % 50 == 0:
            live(peer, 1)
    goes_on(field, peer)
    field.expect(not echoed(peer), 'what must be dropped is answered')
    field.expect(counted(field) >= before + count, '%d of %d dropped frames are counted' %
                 (counted(field) - before, count))
    return count


@lasting('a second implementation is served with each cipher, and with keys of later epochs',
         seconds=10, **KEYED_LANE)
def later_keys(field):
    window = Window(field)
    for cipher in (tls.AES, tls.CHACHA):
        peer = Peer(field.address, cipher=cipher)
        field.expect(peer.cipher() == cipher, 'the node prefers another cipher')
        for change in (lambda: None, peer.renew_rail, peer.redial, peer.renew_rail,
                       lambda: peer.renew_rail(1000)):
            change()
            goes_on(field, peer)
            loan = lent(field, peer, window)
            field.expect(peer.fetch(100, *loan) == b'.' * 100, 'a loan is not readable')
            say(peer, frames.PULLED, frames.small(loan[0]))
            goes_on(field, peer)    # this speaker sends nothing again that a rail has lost
            peer.records = []
        field.expect(not peer.unverified, '%d frames of the node do not verify' % peer.unverified)
        peer.close(goodbye=True)
    window.serves()


@lasting('a second implementation is served when keys change with the count, both ways',
         seconds=60, **KEYED_LANE)
def ratchet(field):
    peer, count = Peer(field.address), seals.STEP_FRAMES + 1000
    heard = 0
    for number in range(count):
        peer.say(frames.PING)   # the node answers each
        if number % 16 == 0:
            heard += len(peer.take_frames())
        if number % 1000 == 0:
            goes_on(field, peer)
    goes_on(field, peer)
    heard += len(peer.take_frames())
    field.expect(len(peer.receiving.steps) > 1, 'the node answers with %d frames of %d' %
                 (heard, count))
    field.expect(not peer.unverified, '%d frames of the node do not verify' % peer.unverified)
    peer.close()
    return '%d frames' % count


def damaged(data, rng):
    """Frames that differ from this one in something: a bit, or the length."""
    for at in range(len(data)):
        yield data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]
    for count in (1, seals.SEAL_BYTES - 1, seals.SEAL_BYTES, seals.SEAL_BYTES + 1, 40,
                  len(data) - frames.HEADER.size, len(data) - 1):
        yield data[:-count]
    yield data + b'\0'
    yield data[:-seals.SEAL_BYTES] + bytes(seals.SEAL_BYTES)
    yield data[:frames.HEADER.size] + rng.randbytes(len(data) - frames.HEADER.size)


@lasting('frames whose seal does not verify are counted and dropped, and their link goes on',
         **KEYED_LANE)
def damaged_frames(field):
    peer, rng, count = Peer(field.address), random.Random(1), 0
    while field.on():
        for kind in (frames.DATA, frames.CONTROL, frames.ANSWER, frames.PING, frames.READY):
            records = echo() if kind == frames.DATA else ()
            data = peer.frame(kind, records, seq=peer.sent if kind == frames.DATA else 0)
            count += dropped(field, peer, damaged(data, rng))
    peer.close()
    return '%d frames' % count


@lasting('a sealed frame that is replayed is dropped, soon and late', **KEYED_LANE)
def replayed_frames(field):
    peer, numbers, count = Peer(field.address), itertools.count(1 << 20), 0
    peer.say(frames.PING)
    kept = [peer.frame(kind) for kind in (frames.PING, frames.READY)]
    for data in kept:
        peer.post(data)
    while field.on():
        said = []
        for number in itertools.islice(numbers, 300):
            data = next_frame(peer, echo(number))
            peer.post(data)
            count += dropped(field, peer, [data] * 2) if number % 100 == 0 else 0
            said.append(number)
            kept.append(data)
        count += dropped(field, peer, kept)
        goes_on(field, peer)
        heard = [echoed(peer, number) for number in said]
        field.expect(heard == [1] * len(said), 'an echo is answered %d times' % max(heard))
        peer.records, kept = [], kept[-600:]
    peer.close()
    return '%d frames' % count


def foreign_keys(peer):
    """Keys that are not those of what the peer sends now."""
    secret, side, cipher = peer.door.secret(), seals.DIALLER, peer.cipher()
    yield peer.receiving
    yield seals.Direction(secret, peer.epoch + 1, side, cipher)
    yield seals.Direction(secret, peer.epoch, 2, cipher)
    yield seals.Direction(secret, peer.epoch, side, 1 - cipher)
    yield seals.Direction(bytes(seals.SECRET_BYTES), peer.epoch, side, cipher)
    yield seals.Direction(credentials.psk()[1], peer.epoch, side, cipher)


@lasting('a frame of an older epoch, of another direction, link or cipher is dropped', seconds=6,
         **KEYED_LANE)
def foreign_frames(field):
    peer, other, count = Peer(field.address), Peer(field.address), 0
    keys, old = [], []
    while field.on():
        keys += [*foreign_keys(peer), other.sending]
        count += dropped(field, peer, [
            peer.frame(frames.DATA, echo(), seq=peer.sent, keys=key) for key in keys])
        count += dropped(field, peer, old)
        goes_on(field, other)
        keys = keys[-20:] + [peer.sending]
        old += [peer.frame(frames.DATA, echo(), seq=peer.sent) for _ in range(3)]
        peer.redial()
        peer.renew_rail()
    for each in (peer, other):
        each.close()
    return '%d frames' % count


@lasting('a frame of an older ratchet step or of one far ahead is dropped at once', **KEYED_LANE)
def other_steps(field):
    peer, count = Peer(field.address), 0
    secret = peer.door.secret()
    stuck = seals.Stuck(secret, peer.epoch, seals.DIALLER, peer.cipher())
    for step in range(1, 6):
        early = [peer.frame(frames.DATA, echo(), seq=peer.sent) for _ in range(5)]
        peer.number = step * seals.STEP_FRAMES - 2
        for number in range(1, 6):      # the step changes among these
            peer.post(next_frame(peer, echo(number)))
        goes_on(field, peer)
        ahead = [peer.number + n * seals.STEP_FRAMES for n in (2, 3, 100)]
        count += dropped(field, peer, early + [
            peer.frame(frames.DATA, echo(), seq=peer.sent, number=number) for number in ahead] + [
                peer.frame(frames.DATA, echo(), seq=peer.sent, keys=stuck, number=number)
                for number in (peer.number, peer.number + seals.STEP_FRAMES,
                               frames.NUMBER_MAX, 1 << 47, 1 << 32)])
    while field.on():
        count += dropped(field, peer, [
            peer.frame(frames.DATA, echo(), seq=peer.sent, keys=stuck, number=number)
            for number in (peer.number + 65536, 1 << 40, frames.NUMBER_MAX) * 50])
    peer.close()
    return '%d frames' % count


@lasting('a frame without a seal is dropped on a sealed link', **KEYED_LANE)
def unsealed_frames(field):
    peer, count = Peer(field.address), 0
    plain = dict(keys=None, number=0)
    while field.on():
        made = []
        for flags, token in itertools.product((0, frames.SEALED_FRAME),
                                              (0, peer.hello['token'])):
            for kind in (frames.DATA, frames.CONTROL, frames.ANSWER, frames.PONG, frames.READY):
                made.append(peer.frame(kind, echo() if kind == frames.DATA else (),
                                       seq=peer.sent if kind == frames.DATA else 0, flags=flags,
                                       token=token, **plain))
        for changes in (dict(flags=0), dict(token=peer.hello['token']),
                        dict(flags=0, number=0), dict(flags=2), dict(flags=3)):
            made.append(peer.frame(frames.DATA, echo(), seq=peer.sent, **changes))
        count += dropped(field, peer, made)
    peer.close()
    return '%d frames' % count


def requests(peer, other, address):
    """Connect data that proves nothing, for a link that is not up."""
    link, secret = peer.hello['link'], peer.door.secret()
    data = struct.pack('<QII', link, peer.epoch, 0)
    right = seals.proof(secret, data, address)
    yield 'a request without TLS', OPEN_REQUEST.pack(link, peer.hello['token'], peer.epoch)
    yield 'no proof', data
    yield 'a proof of zeros', data + bytes(seals.PROOF_BYTES)
    yield 'half a proof', data + right[:8]
    for bit in (0, 63, 127):
        flipped = int.from_bytes(right, 'little') ^ 1 << bit
        yield 'a wrong bit', data + flipped.to_bytes(seals.PROOF_BYTES, 'little')
    yield "another rail's proof", data + seals.proof(secret, data, address[:-1] + b'x')
    yield 'the proof without an address', data + seals.proof(secret, data, b'')
    yield "another link's secret", data + seals.proof(other.door.secret(), data, address)
    yield "the key's own secret", data + seals.proof(credentials.psk()[1], data, address)
    for changed in (struct.pack('<QII', link, peer.epoch + 1, 0),
                    struct.pack('<QII', link, peer.epoch, 1),
                    struct.pack('<QII', other.hello['link'], peer.epoch, 0),
                    struct.pack('<QII', link + 1, peer.epoch, 0)):
        yield 'the proof of another request', changed + right
    early = struct.pack('<QII', link, 0, 0)
    yield 'an earlier epoch', early + seals.proof(secret, early, address)


@lasting('a request for a rail with a wrong proof is rejected, and the right one taken',
         **KEYED_LANE)
def false_requests(field):
    other, count = Peer(field.address), 0
    while field.on():
        peer = Peer(field.address, up=False)
        _, facts = peer.place()
        for what, data in requests(peer, other, facts['address']):
            try:
                rail.Rail(facts['address'], data, 500).close()
                taken = True
            except Broken:
                taken = False
            field.expect(not taken, '%s is taken' % what)
            count += 1
        peer.come_up()
        goes_on(field, peer)
        peer.close()
    goes_on(field, other)
    other.close()
    return '%d requests' % count


def other_modes():
    """What a hello may say of security in place of the mode of all."""
    return [mode for mode in credentials.MODES + ('', 'Sealed', 'sealed\0x', 'x' * 15)
            if mode.split('\0')[0] != credentials.mode]


@lasting('a hello of another mode is refused inside TLS, by a sentence that names both',
         **KEYED_LANE)
def rewritten_hello(field):
    count = 0
    while field.on():
        for mode in other_modes():
            d = door.Door(field.address)
            d.send('hello', **door.hello(security=mode, rails=[door.rail(**rail.facts())]))
            answer = d.receive(LIMIT)
            field.expect(answer and answer[0] == 'refuse', '%r: it answers %r' % (mode, answer))
            said = answer[1]['text'].decode()
            wanted = [credentials.mode] + ([mode] if mode in credentials.MODES else [])
            field.expect(all(word in said for word in wanted), '%r: it says %r' % (mode, said))
            d.close()
            count += 1
    return '%d hellos' % count


@lasting('a hello of a cipher that there is not is refused', **KEYED_LANE)
def other_cipher(field):
    count = 0
    while field.on():
        for cipher in (2, 9, 255, 256, 257, 1 << 16, 1 << 31, frames.U32):
            d = door.Door(field.address)
            d.send('hello', **door.hello(cipher=cipher, rails=[door.rail(**rail.facts())]))
            answer = d.receive(LIMIT)
            field.expect(answer and answer[0] == 'refuse', '%d: it answers %r' % (cipher, answer))
            d.close()
            count += 1
    return '%d hellos' % count


@lasting('a second hello of another mode or cipher makes no frame less sealed', seconds=8,
         **KEYED_LANE)
def second_hello(field):
    ended = count = 0
    changes = [dict(security=mode) for mode in other_modes()] + [dict(cipher=1), dict(cipher=9)]
    for change in itertools.cycle(changes):
        if not field.on():
            break
        peer = Peer(field.address)
        peer.door.send('hello', **door.hello(**dict(peer.said, **change)))
        try:
            dropped(field, peer, [peer.frame(frames.DATA, echo(), seq=peer.sent, flags=0, number=0,
                                             token=peer.hello['token'], keys=None)])
            peer.renew_rail()
            goes_on(field, peer)
        except (Broken, door.Closed):
            ended += 1
        field.expect(not echoed(peer), 'after %r a frame without a seal is taken' % change)
        peer.close()
        count += 1
    return '%d hellos, %d links ended' % (count, ended)


@lasting('a redial that names another mode makes no frame less sealed', **KEYED_LANE)
def other_redial(field):
    peer, said, count = Peer(field.address), dict(), 0
    said.update(peer.said)
    while field.on():
        for mode in other_modes():
            peer.said = dict(said, security=mode)
            try:
                peer.redial()
            except door.Closed:
                peer.said = said
                peer.redial()
            dropped(field, peer, [peer.frame(frames.DATA, echo(), seq=peer.sent, flags=0, number=0,
                                             token=peer.hello['token'], keys=None)])
            peer.renew_rail()
            goes_on(field, peer)
            count += 1
    peer.close()
    return '%d redials' % count


@lasting('bytes that are no record of its session close a door alone, and a redial goes on',
         **KEYED_LANE)
def broken_session(field):
    peer, count, rng = Peer(field.address), 0, random.Random(3)
    old = b''
    while field.on():
        for data in (b'x' * 100, b'\x17\x03\x03\xff\xff' + bytes(70000),
                     b'\x17\x03\x03\x00\x40' + rng.randbytes(64), b'\x15\x03\x03\x00\x02\x02\x28',
                     b'\x16\x03\x03\x00\x04\x01\0\0\0', b'\x14\x03\x03\x00\x01\x02', old):
            peer.door.send_raw(data)
            peer.redial()
            goes_on(field, peer)
            count += 1
        peer.door.session.say(door.envelope(door.message('beat', number=1)))
        old = peer.door.session.due()
        peer.door.send_raw(old)     # another session repeats what was said in this one
    peer.close()
    return '%d sessions' % count


def updates(session, count):
    """The bytes of so many changes of the key, each of which asks for one of the other side."""
    out = []
    for _ in range(count):
        session.update_key()
        out.append(session.due())
    return b''.join(out)


@lasting('a session whose key changes without end, and that reads no answer, ends alone',
         **KEYED_LANE, seconds=8)
def key_updates(field):
    peer = Peer(field.address)
    for turn in range(8):       # an honest peer may change its key now and then
        peer.door.send_raw(updates(peer.door.session, 1))
        goes_on(field, peer)
    data = updates(peer.door.session, field.size(200000, 60000))
    end = time.monotonic() + LIMIT
    try:
        peer.door.send_raw(data)
        while time.monotonic() < end:
            peer.door.receive(0.1)
        field.expect(False, 'a door stays open after %d bytes of changes' % len(data))
    except door.Closed:
        pass
    peer.close()
    Window(field).serves()
    return '%d bytes of changes' % len(data)


@lasting('sessions that are resumed or renewed by strangers to their link take over no link',
         **KEYED_LANE)
def stolen_link(field):
    owner, thief, count = Peer(field.address), Peer(field.address), 0
    while field.on():
        for link, token in ((owner.hello['link'], os.urandom(8)),
                            (owner.hello['link'], thief.hello['token'].to_bytes(8, 'little')),
                            (thief.hello['link'], owner.hello['token'].to_bytes(8, 'little'))):
            d = door.Door(field.address)
            try:
                d.greet(**dict(owner.said, resume_link=link,
                               resume_token=int.from_bytes(token, 'little')))
                field.expect(False, 'a wrong token resumes a link')
            except door.Closed:
                pass
            d.close()
            count += 1
        made = [thief.frame(frames.DATA, echo(), link=owner.hello['link'], seq=owner.sent)
                for _ in range(20)]
        dropped(field, thief, made)
        goes_on(field, owner)
    for peer in (owner, thief):
        peer.close()
    return '%d redials' % count
