# SPDX-License-Identifier: BSD-2-Clause
"""No attack: what the page says is enough to be served by a node."""
import ctypes
import itertools

import frames
import rail
from attack import attack
from peer import Peer

REFLECTION = b'weft.reflect.Reflection'
HEALTH = b'grpc.health.v1.Health'
BIG = 3000000
REPLY_BODY_AT = 28


def await_record(field, peer, kind, start):
    """The record of a type whose bytes begin so."""
    end = 2000
    while end and field.server.is_alive():
        for found in peer.records:
            if found[0] == kind and found[2].startswith(start):
                return found[2]
        peer.stay(0.005)
        end -= 1
    field.expect(False, 'no record of type %d' % kind)
    return b''


def call(field, peer, number, service, method, content=b'', **how):
    """A call's status and whether it was executed."""
    peer.send_data([frames.record(frames.CALL, frames.call(number, service, method, content,
                                                           **how))])
    data = await_record(field, peer, frames.REPLY, number.to_bytes(8, 'little'))
    return data[8], data[9]


@attack('a second implementation that keeps the rules is served', seconds=20)
def well_behaved(field):
    peer = Peer(field.address)
    field.expect(peer.echo() is not None, 'an echo does not come back')
    for number, method, wanted in ((1, b'Check', 0), (2, b'Nothing', 12)):
        status, _ = call(field, peer, number, HEALTH, method)
        field.expect(status == wanted, '%s ends with %d' % (method.decode(), status))

    memory = ctypes.create_string_buffer(b'p' * BIG, BIG)
    address, key = rail.register(memory)
    offers = itertools.count(100)
    for priority, (text, count) in enumerate((('eager', 0), ('pulled', BIG),
                                              ('short and pulled', 5))):
        described, content = frames.eager(5), b'hello'
        if count:
            described = frames.pull(count, next(offers), peer.epoch, address, key)
            content = b''
        count = count or 5
        peer.send_data([frames.record(frames.TENSOR, frames.tensor(
            9, b'k', frames.preferred(described, priority + 1), content, shape=(count,)))])
        field.server.ask('expect', 9, 'k')
        field.server.tell('take')
        taken = ''
        while not taken and field.on():
            taken = field.server.hear(0.002)
            peer.pump()
        field.expect(taken.startswith('take OK'), '%s: the receiver is told %r' % (text, taken))
    for offer in (100, 101):
        data = await_record(field, peer, frames.PULLED, offer.to_bytes(8, 'little'))
        field.expect(data[16] == 0, 'an offer ends with %d' % data[16])
    peer.send_data([frames.record(frames.CALL, frames.call(
        3, REFLECTION, b'Describe', body=frames.pull(4096, 200, peer.epoch, address, key)))])
    data = await_record(field, peer, frames.REPLY, (3).to_bytes(8, 'little'))
    field.expect(data[8] != 0, 'a request of nonsense is no failure')
    peer.send_data([frames.record(frames.CALL, frames.call(
        4, HEALTH, b'Check', body=frames.preferred(frames.eager(0), 2)))])
    data = await_record(field, peer, frames.REPLY, (4).to_bytes(8, 'little'))
    field.expect(data[8] == 0 and data[REPLY_BODY_AT + 9] >> 4 == 2,
                 'a reply has not the priority of its call')
    seconds = peer.send_control([frames.record(frames.WITHDRAW, frames.small(12345, peer.sent))])
    field.expect(seconds is not None, 'a control frame is not answered')
    # A cancel that comes before its call ends it.
    peer.send_control([frames.record(frames.CANCEL, frames.small(77))])
    peer.send_data([frames.record(frames.CALL, frames.call(77, HEALTH, b'Check', attachments=1)),
                    frames.record(frames.CALL, frames.call(78, HEALTH, b'Nothing'))])
    await_record(field, peer, frames.REPLY, (78).to_bytes(8, 'little'))
    field.expect(not any(kind == frames.REPLY and data.startswith((77).to_bytes(8, 'little'))
                         for kind, _, data in peer.records), 'a cancelled call is answered')
    peer.close(goodbye=True)
    return 'tensors and calls, eager and pulled'
