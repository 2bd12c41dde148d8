# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on the processor: records whose handling looks through all that is kept."""
import contextlib
import itertools

import frames
from attack import (BUSY_P99_FACTOR, MIB, PEER_BYTES, SANITIZED_P99_FACTOR, STRANGERS_BYTES, attack,
                    is_busy)
from peer import Peer

# A frame of some 500 records may cost this much; each record is 40 us then.  Not tuned.
FRAME_MS = 20
FRAMES = 10
IN_FRAME = 500
UNKNOWN = 1 << 62

# Receives of the attacked that wait for an honest peer: 1 KiB each, and what malloc adds.
WAITING = 100000
WAITING_BYTES = 160 * MIB


def limit_s(field):
    """What a frame may take here."""
    return FRAME_MS / 1e3 * (SANITIZED_P99_FACTOR if field.build.is_sanitized else 1) * \
        (BUSY_P99_FACTOR if is_busy(0) else 1)


class Kept:
    """Offers that the node keeps: some of the peer that acts, as many as it will of others.

    The peer that acts stays below its limit, for it needs credit to go on.
    """

    OWN = 30000
    OTHERS = 4

    def __init__(self, field, peer):
        self.count = self.fill(field, peer, self.OWN)
        self.others = []
        wanted = field.size(1000000, 100000)
        while self.count < wanted and len(self.others) < self.OTHERS and field.on():
            self.others.append(Peer(field.address))
            self.count += self.fill(field, self.others[-1], wanted - self.count)
            self.live()

    @staticmethod
    def fill(field, peer, wanted):
        """Offer so many tensors, or until no credit comes; how many left."""
        return peer.flood((frames.offered_tensor(7, b'%d' % n, n) for n in range(1, wanted)),
                          field.on, 1)

    def live(self):
        """Let the others show that they live."""
        for peer in self.others:
            peer.pump()

    def close(self):
        """End the others."""
        for peer in self.others:
            peer.close()


def check(field, name, seconds, kept):
    """Hold the time of a frame against the limit."""
    field.expect(seconds is not None, '%s: no answer beside %d offers' % (name, kept.count))
    field.expect(seconds < limit_s(field), '%s: a frame of %d takes %.0f ms beside %d offers' %
                 (name, IN_FRAME, seconds * 1e3, kept.count))


@attack('withdrawing unknown offers costs little beside many kept ones', seconds=30,
        quota=STRANGERS_BYTES)
def withdraws(field):
    peer = Peer(field.address)
    kept = Kept(field, peer)
    worst = 0
    for number in range(FRAMES):
        records = [frames.record(frames.WITHDRAW, frames.small(UNKNOWN + number * 1000 + n,
                                                               peer.sent))
                   for n in range(IN_FRAME)]
        seconds = peer.send_control(records)
        check(field, 'WITHDRAW', seconds, kept)
        worst = max(worst, seconds)
        kept.live()
    peer.close()
    kept.close()
    return '%d offers kept, a frame takes at most %.1f ms' % (kept.count, worst * 1e3)


@attack('aborting unknown steps costs little beside many kept tensors', seconds=30,
        quota=STRANGERS_BYTES)
def aborts(field):
    peer = Peer(field.address)
    kept = Kept(field, peer)
    steps = itertools.count(1000)
    worst = 0
    for _ in range(FRAMES):
        peer.send_data([frames.abort(next(steps)) for _ in range(IN_FRAME)])
        seconds = peer.echo(30)
        check(field, 'ABORT', seconds, kept)
        worst = max(worst, seconds)
        kept.live()
    peer.close()
    kept.close()
    return '%d offers kept, a frame takes at most %.1f ms' % (kept.count, worst * 1e3)


# Records that name what their receiver may not know, and then have no effect.
NAMING = {
    'PULLED': lambda n: frames.record(frames.PULLED, frames.small(n)),
    'RESUME': lambda n: frames.record(frames.RESUME, frames.small(n, n)),
    'CHECK': lambda n: frames.record(frames.CHECK, frames.small(n, n)),
    'SPREAD': lambda n: frames.record(frames.SPREAD, frames.small(n, n)),
    'TAKEN': lambda n: frames.record(frames.TAKEN, frames.small(n, 1)),
    'RELEASED': lambda n: frames.record(frames.RELEASED, frames.small(n, 1)),
    'FILLED': lambda n: frames.record(frames.FILLED, frames.small(n, 1)),
    'OFFER': lambda n: frames.record(frames.OFFER, frames.small(n)[:8] + frames.no_body()),
    'SUMS': lambda n: frames.record(frames.SUMS, frames.sums(n, 0, [1])),
    'LANE': lambda n: frames.record(frames.LANE, frames.lane(n, 1, 0, 0)),
    'GRANT_REQUESTS': lambda n: frames.record(frames.GRANT_REQUESTS, frames.small(n, 100)),
    'GRANT_RESPONSES': lambda n: frames.record(frames.GRANT_RESPONSES, frames.small(n, 100)),
    'REQUEST': lambda n: frames.record(frames.REQUEST, frames.stream_message(n, b'x')),
    'RESPONSE': lambda n: frames.record(frames.RESPONSE, frames.stream_message(n, b'x')),
    'REPLY': lambda n: frames.record(frames.REPLY, frames.reply(n, 5)),
    'ATTACHMENT': lambda n: frames.record(frames.ATTACHMENT, frames.tensor(
        n, frames.attachment_key(0, 0, 0), frames.no_body(), flags=frames.DEAD)),
}


@attack('a record that names what is not known costs little beside much that is kept',
        seconds=60, quick=False, quota=STRANGERS_BYTES)
def unknown_names(field):
    peer = Peer(field.address)
    kept = Kept(field, peer)
    figures = {}
    for name, make in NAMING.items():
        for number in range(FRAMES // 2):
            some = (make(UNKNOWN + number * 1000 + n) for n in range(IN_FRAME))
            sent = 0
            for filled in frames.fill(some):
                peer.send_data(filled)
                sent += 1
            seconds = peer.echo(30)
            check(field, name, seconds and seconds / sent, kept)
            figures[name] = max(figures.get(name, 0), seconds / sent)
            kept.live()
    seconds = peer.send_control([frames.record(frames.CANCEL, frames.small(UNKNOWN + n, peer.sent))
                                 for n in range(IN_FRAME)])
    check(field, 'CANCEL', seconds, kept)
    peer.close()
    kept.close()
    slowest = max(figures, key=figures.get)
    return '%d offers kept, a frame takes at most %.1f ms (%s)' % (
        kept.count, figures[slowest] * 1e3, slowest)


@attack('calls of a service that is not there are answered as fast as they come', quick=False)
def unimplemented(field):
    peer = Peer(field.address)
    peer.keeps = False
    count = peer.flood((frames.record(frames.CALL, frames.call(n, b'no.such.Service', b'X'))
                        for n in itertools.count(1)), field.on)
    peer.close()
    return '%d calls' % count


@contextlib.contextmanager
def awaited(field, count):
    """The node has receives that name an honest peer, which sends nothing.

    Gives the seconds of processor time that each of them took to begin.
    """
    owner, begun = field.honest('owner'), field.server.cpu()
    said = field.server.ask('await', owner.address, 1, 'w', count)
    field.expect(' OK ' in said, 'the receives of the attacked: %r' % said)
    try:
        yield (field.server.cpu() - begun) / count
    finally:
        field.server.ask('forget')


@attack('strangers that come and go cost little beside many receives that wait', seconds=10,
        quota=PEER_BYTES + WAITING_BYTES)
def leavers(field):
    def cost(count):
        begun = field.server.cpu()
        for _ in range(count):
            Peer(field.address).close()
        return (field.server.cpu() - begun) / count

    count = field.size(400, 100)
    alone = cost(count)
    with awaited(field, WAITING):
        beside = cost(count)
    field.expect(beside < 2 * alone + 1e-3, 'a stranger costs %.1f ms, and %.1f beside %d receives' %
                 (alone * 1e3, beside * 1e3, WAITING))
    return 'a stranger costs %.1f ms, and %.1f beside %d receives' % (
        alone * 1e3, beside * 1e3, WAITING)


@attack('tensors that nobody wants cost little where many wait for others with their key',
        seconds=20, quota=STRANGERS_BYTES + WAITING_BYTES)
def crowded_key(field):
    peer = Peer(field.address)
    worst = kept = 0
    with awaited(field, WAITING):
        for some in frames.fill(frames.dead_tensor(1, b'w') for _ in range(FRAMES * IN_FRAME)):
            peer.send_data(some)
            kept += len(some)
            seconds = peer.echo(30)
            field.expect(seconds is not None and seconds < limit_s(field),
                         'a frame of %d takes %.0f ms beside %d receives' %
                         (len(some), (seconds or 30) * 1e3, WAITING))
            worst = max(worst, seconds)
    # The other way: the stranger's tensors lie where honest ones are received.
    kept += peer.flood((frames.dead_tensor(1, b'w') for _ in range(30000)), field.on, 1)
    with awaited(field, WAITING // 10) as each:
        pass
    peer.close()
    field.expect(each < 50e-6 * (SANITIZED_P99_FACTOR if field.build.is_sanitized else 1),
                 'a receive takes %.0f us beside %d tensors' % (each * 1e6, kept))
    return 'a frame takes at most %.1f ms, and a receive %.0f us beside %d tensors' % (
        worst * 1e3, each * 1e6, kept)
