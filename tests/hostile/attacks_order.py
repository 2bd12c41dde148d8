# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on the order of frames: acknowledgements, resyncs, credits, room, epochs."""
import itertools
import time

import credentials
import door
import frames
from attack import STRANGERS_BYTES, attack
from peer import Peer
from rail import Broken


def has_ended(peer, limit=8):
    """Does the node end this link, as it must after an offence?"""
    end = time.monotonic() + limit
    try:
        while time.monotonic() < end:
            peer.pump()
            time.sleep(0.002)
    except (Broken, door.Closed):
        return True
    return False


def offend(field, commit):
    """Come up, commit an offence and see the link end, again and again; how often."""
    rounds = 0
    while field.on():
        peer = Peer(field.address)
        peer.stay(0.02)
        try:
            commit(peer)
        except (Broken, door.Closed):
            pass
        field.expect(has_ended(peer) or not field.server.is_alive(),
                     'a link goes on after an offence')
        peer.close()
        rounds += 1
    return '%d times' % rounds


@attack('a resync that confirms frames never sent ends the link, not the node')
def resync_beyond(field):
    return offend(field, lambda peer: peer.door.send(
        'resync', epoch=peer.epoch, received=(peer.received + 1000) & frames.U32))


@attack('a frame that confirms frames never sent ends the link, not the node', quick=False)
def ack_beyond(field):
    return offend(field, lambda peer: peer.say(
        frames.DATA, [frames.record(frames.ECHO, frames.small(1))], seq=peer.sent,
        ack=(peer.received + 1000) & frames.U32))


@attack('a promise of more credits than are allowed ends the link, not the node', quick=False)
def credit_beyond(field):
    return offend(field, lambda peer: peer.say(
        frames.DATA, [frames.record(frames.ECHO, frames.small(1))], seq=peer.sent,
        credit=peer.credit_out + 70000))


@attack('frames sent without waiting for credit harm nobody else', quota=STRANGERS_BYTES,
        pool=True, quick=False)
def data_without_credit(field):
    count = 0
    while field.on():
        peer = Peer(field.address)
        filled = [frames.record(frames.ECHO, frames.small(n)) for n in range(550)]
        try:
            for _ in range(400):
                peer.say(frames.DATA, filled, seq=peer.sent)
                peer.sent += 1
                count += 1
        except (Broken, door.Closed):
            pass
        peer.close()
    return '%d frames' % count


@attack('eager bytes beyond the room end the link, not the node', quota=STRANGERS_BYTES,
        left=STRANGERS_BYTES, quick=1.5)
def eager_without_room(field):
    def commit(peer):
        for number in range(100000):
            if not peer.send_data([frames.text_tensor(7, b'%d' % number, b'x' * 12000)], 2):
                return
    return offend(field, commit)


@attack('a body of a priority beyond the highest ends the link, not the node', quick=1)
def priority_beyond(field):
    priorities = itertools.cycle(range(4, 16))

    def commit(peer):
        body = frames.preferred(frames.eager(1), next(priorities))
        peer.send_data([frames.record(frames.TENSOR, frames.tensor(7, b'p', body, b'x',
                                                                   shape=(1,)))])
    return offend(field, commit)


@attack('frames out of order, of other epochs and of other links change nothing', quick=False)
def stray_frames(field):
    peer, count = Peer(field.address), 0
    echo = [frames.record(frames.ECHO, frames.small(5))]
    while field.on():
        for change in (dict(seq=peer.sent + 7), dict(seq=peer.sent - 1), dict(epoch=0),
                       dict(epoch=9), dict(token=peer.hello['token'] ^ 1),
                       dict(link=peer.hello['link'] + 1), dict(version=4),
                       dict(flags=0 if credentials.is_keyed() else frames.SEALED_FRAME)):
            values = dict(seq=peer.sent)
            values.update(change)
            peer.say(frames.DATA, echo, **values)
            count += 1
        peer.pump()
    field.expect(peer.echo() is not None, 'the link does not go on')
    peer.close()
    return '%d frames' % count


@attack('a resync a moment does not make a node send for ever', quick=False)
def resync_flood(field):
    peer, count = Peer(field.address, credit=8), 0
    peer.renews = False
    peer.send_data([frames.record(frames.ECHO, frames.small(n)) for n in range(500)])
    while field.on():
        for _ in range(100):
            peer.door.send('resync', epoch=peer.epoch, received=0)
            count += 1
        peer.pump()
        time.sleep(0.001)
    peer.close()
    return '%d resyncs' % count
