# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on memory: what a peer makes a node keep."""
import ctypes
import itertools
import struct
import time

import frames
import rail
from attack import MIB, PEER_BYTES, STRANGERS_BYTES, attack
from door import Closed
from peer import Peer
from rail import Broken

REFLECTION = b'weft.reflect.Reflection'
HEALTH = b'grpc.health.v1.Health'
PERF = b'\x0a\x0eweft.perf.Perf'


def said(field, peer, count, what):
    """End the attack's link; what was sent, and what the node held then."""
    held = field.server.rss() - field.watch.rss_before
    peer.close()
    return '%d %s, %d MiB held' % (count, what, held // MIB)


@attack('unmatched tensors with keys of 64 KiB are held back at their sender', left=PEER_BYTES,
        quick=1.5)
def long_keys(field):
    peer = Peer(field.address)
    bodies = (frames.tensor(7, struct.pack('<Q', n) + b'k' * 65527, frames.no_body(),
                            flags=frames.DEAD) for n in itertools.count())
    count = peer.flood_long(frames.TENSOR, bodies, field.on)
    return said(field, peer, count, 'tensors')


@attack('unmatched offers are held back at their sender')
def many_offers(field):
    peer = Peer(field.address)
    count = peer.flood((frames.offered_tensor(7, b'%d' % n, n, 1 << 62)
                        for n in itertools.count(1)), field.on)
    return said(field, peer, count, 'offers')


@attack('small calls that announce thousands of attachments take no more than their bytes',
        quick=1.5)
def announced(field):
    peer = Peer(field.address)
    count = peer.flood((frames.record(frames.CALL, frames.call(n, REFLECTION, b'List',
                                                               attachments=4096))
                        for n in itertools.count(1)), field.on)
    return said(field, peer, count, 'calls')


@attack('calls with long metadata that wait for an attachment are limited', quick=False)
def long_metadata(field):
    peer = Peer(field.address)
    block = frames.metadata_block([(b'k', b'v' * 60000)])
    bodies = (frames.call(n, REFLECTION, b'List', attachments=1, metadata=block)
              for n in itertools.count(1))
    count = peer.flood_long(frames.CALL, bodies, field.on)
    return said(field, peer, count, 'calls')


@attack('health watches that are opened and left are limited', quick=1.5)
def watches(field):
    peer = Peer(field.address)
    count = peer.flood((frames.record(frames.CALL, frames.call(
        n, HEALTH, b'Watch', body=frames.no_body(), flags=frames.STREAM))
                        for n in itertools.count(1)), field.on)
    return said(field, peer, count, 'watches')


def deaf(field, records, what):
    """Ask for answers and give no credit to send them."""
    peer = Peer(field.address, credit=1)
    peer.renews = peer.keeps = False
    return said(field, peer, peer.flood(records, field.on), what)


@attack('echoes that are never taken stay few', quick=1.5)
def deaf_echo(field):
    return deaf(field, (frames.record(frames.ECHO, frames.small(n)) for n in itertools.count()),
                'echoes')


@attack('replies of failures that are never taken stay few', quick=False)
def deaf_calls(field):
    return deaf(field, (frames.record(frames.CALL, frames.call(n, b'no.such.Service', b'X' * 90))
                        for n in itertools.count(1)), 'calls')


@attack('replies of reflection that are never taken stay few', quick=False)
def deaf_reflection(field):
    return deaf(field, (frames.record(frames.CALL, frames.call(n, REFLECTION, b'Describe', PERF))
                        for n in itertools.count(1)), 'calls')


@attack('answers to questions after unknown offers that are never taken stay few', quick=False)
def deaf_resume(field):
    return deaf(field, (frames.record(frames.RESUME, frames.small(n, n))
                        for n in itertools.count()), 'questions')


@attack('refusals of loans and of puts that are never taken stay few', quick=1.5)
def deaf_asks(field):
    nowhere = bytes(24)     # the name of no window
    records = ((frames.record(frames.ASK, frames.ask(n, nowhere, 0, 16)) if n % 2 else
                frames.record(frames.PUSH, frames.push(nowhere, n, frames.PUSH_NOTED)))
               for n in itertools.count(1))
    return deaf(field, records, 'records')


def from_nowhere(number):
    """A body that nobody reads, as it is refused."""
    return frames.pull(16, number, 9, 0, 7)


@attack('refusals of loans that nobody asked for and that are never taken stay few', quick=1.5)
def deaf_lends(field):
    return deaf(field, (frames.record(frames.LEND, frames.lend(n, body=from_nowhere(n)))
                        for n in itertools.count(1)), 'loans')


@attack('refusals of replies to no call and that are never taken stay few', quick=False)
def deaf_replies(field):
    return deaf(field, (frames.record(frames.REPLY, frames.reply(n, body=from_nowhere(n)))
                        for n in itertools.count(1)), 'replies')


@attack('refusals of offers in a step that is over and that are never taken stay few', quick=False)
def deaf_offers(field):
    offers = (frames.offered_tensor(7, b'k', n) for n in itertools.count(1))
    return deaf(field, itertools.chain([frames.abort(7)], offers), 'offers')


@attack('replies kept for attempts that may come again are limited', quick=False)
def kept_replies(field):
    peer = Peer(field.address)
    peer.keeps = False
    count = peer.flood((frames.record(frames.CALL, frames.call(
        n, REFLECTION, b'Describe', PERF, flags=frames.WITH_REQUEST, request=n))
                        for n in itertools.count(1)), field.on)
    return said(field, peer, count, 'calls')


# What stays is receive slots: 20 for each link, of 64 KiB, as far as frames were in them.
@attack('long records that never end are limited', quota=STRANGERS_BYTES, pool=True, seconds=8,
        quick=False, left=128 * MIB)
def half_records(field):
    total = 1 << 20
    peers = []
    while field.on() and len(peers) < 200:
        peer = Peer(field.address)
        peers.append(peer)
        for number in range(total // frames.ROOM_IN_FRAME - 1):
            flags = frames.MORE | (frames.CONTINUED if number else 0)
            part = frames.record(frames.TENSOR, b'k' * (frames.ROOM_IN_FRAME - 12), flags, total)
            if not peer.send_data([part], 2, field.on):
                break
    for peer in peers:
        peer.close()
    return '%d records of 1 MiB' % len(peers)


FEW = 16 * MIB      # WEFT_STRANGERS_BYTES of the attacked


@attack('long records that never end take no more than strangers have together', quota=FEW,
        seconds=8, quick=False, WEFT_STRANGERS_BYTES='16M')
def long_beginnings(field):
    peers, held = [], 0
    while field.on() and len(peers) < 40:
        try:
            peers.append(Peer(field.address))
        except (Broken, Closed):    # strangers beyond the limit may be turned away
            time.sleep(0.02)
            continue
        part = frames.record(frames.TENSOR, b'k' * (frames.ROOM_IN_FRAME - 12), frames.MORE, MIB)
        peers[-1].send_data([part], 2, field.on)
    time.sleep(0.5)     # frames that were taken are acknowledged by then
    for peer in peers:
        peer.pump()
        held += not peer.acked
    for peer in peers:
        peer.close()
    field.expect(held, 'all of %d records of 1 MiB have begun' % len(peers))
    return '%d records of 1 MiB, %d held back' % (len(peers), held)


@attack('many strangers together are limited like one', quota=STRANGERS_BYTES,
        left=STRANGERS_BYTES, seconds=30, quick=False)
def many_strangers(field):
    peers, count = [], 0
    records = (frames.dead_tensor(7, b'k' * 1000 + struct.pack('<Q', n))
               for n in itertools.count())
    while field.on() and len(peers) < 60:
        try:
            peers.append(Peer(field.address))
            end = time.monotonic() + 1.5
            count += peers[-1].flood(records, lambda: field.on() and time.monotonic() < end, 0.5)
            for peer in peers:
                peer.pump()
        except (Broken, Closed):    # strangers beyond the limit may be turned away
            time.sleep(0.02)
    for peer in peers:
        peer.close()
    return '%d strangers, %d tensors' % (len(peers), count)


@attack('requests that are to be pulled from nowhere fill no memory', pool=True)
def pulls_from_nowhere(field):
    count = 0
    while field.on():
        peer = Peer(field.address)
        records = [frames.record(frames.CALL, frames.call(
            n, REFLECTION, b'Describe', body=frames.pull(64 << 20, n, 1, 0x1000, n + 5)))
                   for n in range(1, 500)]
        try:
            count += 1
            peer.flood(records, field.on)
            peer.stay(0.5, field.on)
        except (Broken, Closed):
            pass
        peer.close()
    return '%d peers' % count


@attack('reads that their owner never answers stop nobody else', seconds=8, pool=True,
        quick=False)
def frozen_pulls(field):
    memory = ctypes.create_string_buffer(64 << 20)
    address, key = rail.register(memory)
    peer = Peer(field.address)
    records = [frames.record(frames.CALL, frames.call(
        n, REFLECTION, b'Describe', body=frames.pull(64 << 20, n, 1, address, key)))
               for n in range(1, 64)]
    count = peer.flood(records, field.on)
    while field.on():
        peer.hear_door()    # alive, but its endpoint makes no progress
        time.sleep(0.05)
    return said(field, peer, count, 'calls')


@attack('an honest early tensor is not lost behind a million that nobody wants', seconds=60,
        left=PEER_BYTES)
def poisoned_arrivals(field):
    honest = field.honest('sender')
    honest.ask('ping', field.address)
    peer = Peer(field.address)
    wanted = (1 << 20) + 50000
    try:
        peer.flood((frames.dead_tensor(7, struct.pack('<I', n)) for n in range(wanted)),
                   field.in_time)
        alive = True
    except (Broken, Closed):
        alive = False
    honest.tell('send', field.address, 1, 'early', 'hello-early')
    time.sleep(1)
    field.server.ask('expect', 1, 'early')
    taken, sent = field.server.ask('take'), honest.hear()
    peer.close()
    field.expect('OK "hello-early"' in taken,
                 'its sender is told %r, its receiver %r' % (sent, taken))
    field.expect(' OK ' in sent, 'it arrived, and its sender is told %r' % sent)
    return 'the attacker %s' % ('is held back' if alive else 'was thrown out')
