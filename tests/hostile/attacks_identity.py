# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on who is who: addresses and incarnations of others, steps and calls of others."""
import os
import socket
import subprocess
import time

import credentials
import door
import frames
from attack import attack
from peer import Peer
from rail import Broken

SECRET = 'for-b-only'
NEIGHBOURS_MAX = 6


def captured(peer):
    """What the attacker got of the honest sender's tensor, or b''."""
    for kind, _, data in peer.records:
        if kind == frames.TENSOR:
            return data
    return b''


def send_to(field, other, peer):
    """The server sends a tensor to the other node, while the attacker does all it can to get it."""
    field.server.tell('send', other.address, 1, 'secret', SECRET)
    other.tell('expect', 1, 'secret')
    other.tell('take')
    taken, end = [], time.monotonic() + 40
    while len(taken) < 2 and time.monotonic() < end:
        line = other.hear(0.01)
        taken += [line] if line else []
        try:
            peer.pump()
        except (Broken, door.Closed):
            pass
    field.expect(not captured(peer), 'the attacker got %r' % captured(peer)[-40:])
    field.expect(len(taken) == 2 and 'OK "%s"' % SECRET in taken[1],
                 'the receiver is told %r' % taken[-1:])
    said = field.server.hear()
    field.expect(said.startswith('send OK'), 'the sender is told %r' % said)


def attempt(make):
    """A peer, or one that never came up: the node may refuse it."""
    try:
        return make()
    except (Broken, door.Closed):
        return None


def others(field):
    """Honest nodes, and their incarnations: one above and one below the server's.

    Which of two dials that cross gives way depends on that.  All of them are random: a
    server near either end has neighbours on one side only, as a rule.
    """
    own = door.ask_hello(field.address)['incarnation']
    wanted = {False, True}
    for _ in range(NEIGHBOURS_MAX):
        if not wanted:
            return
        other = field.honest('B')
        incarnation = door.ask_hello(other.address)['incarnation']
        if (own < incarnation) in wanted:
            wanted.remove(own < incarnation)
            yield other, incarnation
        other.stop()


class Nobody:
    """An attacker that was refused."""

    records = ()

    def pump(self):
        """Nothing to do."""

    def close(self):
        """Nothing to end."""


def claim(field, other, **hello):
    """Come up with a claim to be another node, or be refused."""
    return attempt(lambda: Peer(field.address, name='B', **hello)) or Nobody()


@attack("a stranger that names another node's address gets nothing that is sent there",
        seconds=20)
def named_address(field):
    other = field.honest('B')
    peer = claim(field, other, address=other.address)
    send_to(field, other, peer)
    peer.close()


@attack("a stranger that claims another node's incarnation gets nothing that is sent there",
        seconds=20)
def named_incarnation(field):
    for other, incarnation in others(field):
        peer = claim(field, other, address='', incarnation=incarnation)
        send_to(field, other, peer)
        peer.close()


@attack('a stranger that claims the incarnation of a peer that lives gets nothing sent to it',
        seconds=20)
def living_incarnation(field):
    for other, incarnation in others(field):
        field.server.ask('ping', other.address)
        peer = claim(field, other, address=other.address, incarnation=incarnation)
        send_to(field, other, peer)
        peer.close()


@attack('a node whose incarnation a stranger claims is not locked out', seconds=20)
def lockout(field):
    for other, incarnation in others(field):
        peer = claim(field, other, address='', incarnation=incarnation)
        other.tell('ping', field.address)
        said, end = '', time.monotonic() + 20
        while not said and time.monotonic() < end:
            said = other.hear(0.01)
            try:
                peer.pump()
            except (Broken, door.Closed):
                pass
        peer.close()
        field.expect(said.startswith('ping OK'), 'the node itself is told %r' % said)


@attack("a stranger's redial with a made-up token takes over no link", seconds=10, quick=1)
def made_up_redial(field):
    other = field.honest('B')
    other.ask('ping', field.address)
    incarnation = door.ask_hello(other.address)['incarnation']
    count = 0
    while field.on():
        for link in (1, 2, 1 << 32, (1 << 32) + 1):
            d = door.Door(field.address)
            try:
                answer = d.greet(2, incarnation=incarnation, resume_link=link,
                                 resume_token=int.from_bytes(os.urandom(8), 'little'))
                field.expect(not answer['link'], 'a made-up token resumes a link')
            except door.Closed:
                pass
            d.close()
            count += 1
    field.expect(other.ask('ping', field.address).startswith('ping OK'), 'the link is lost')
    return '%d redials' % count


@attack('an address that a stranger names is not dialled after its link has died', seconds=8,
        quick=False)
def named_dial(field):
    with socket.create_server(('127.0.0.1', 0)) as listener:
        address = '127.0.0.1:%d' % listener.getsockname()[1]
        for _ in range(3):
            peer = Peer(field.address, address=address)
            peer.send_data([frames.offered_tensor(9, b'x', 5), frames.record(
                frames.CALL, frames.call(1, b'grpc.health.v1.Health', b'Watch',
                                         body=frames.no_body(), flags=frames.STREAM))])
            peer.stay(0.1)
            peer.close()
        listener.settimeout(5)
        try:
            listener.accept()[0].close()
            field.expect(False, 'the node dials it')
        except TimeoutError:
            pass


@attack('a hello tells a stranger nothing of the host, the user or the process',
        WEFT_SHM='yes')
def hello_facts(field):
    first, second = (door.ask_hello(field.address) for _ in range(2))
    told = ['field %d' % number for number, _ in first.get('unknown', [])]
    field.expect(not told, 'it tells what the page does not name: %s' % ', '.join(told))
    pid = field.server.pid.to_bytes(4, 'little')
    for rail in first['rails']:
        name = rail['provider'].decode()
        field.expect(not (rail['same_host'] and rail['address']),
                     'it tells the address of %s, which is for the same host' % name)
        field.expect(pid not in rail['address'], 'the address of %s has the process id' % name)
    field.expect(first['token'] != second['token'], 'two strangers are told one token')
    return 'fields: %s' % ', '.join(sorted(name for name, value in first.items() if value))


@attack("a stranger's abort of a step ends nothing of others", seconds=10)
def strange_abort(field):
    other = field.honest('B')
    other.ask('ping', field.address)
    field.server.ask('expect', 5, 'k')
    peer = Peer(field.address)
    for _ in range(10):
        peer.send_data([frames.abort(step, 10, b'it is over') for step in (1, 5, 6, 2**64 - 1)])
    field.expect(peer.echo() is not None, 'the stranger gets no answer')
    sent = other.ask('send', field.address, 5, 'k', 'step-five')
    taken = field.server.ask('take')
    field.expect('OK "step-five"' in taken, 'the receiver is told %r' % taken)
    field.expect(sent.startswith('send OK'), 'the sender is told %r' % sent)
    sent = other.ask('send', field.address, 6, 'k', 'step-six')
    field.server.ask('expect', 6, 'k')
    taken = field.server.ask('take')
    field.expect('OK "step-six"' in taken, 'of a later step the receiver is told %r' % taken)
    peer.close()


@attack("a stranger's drain keeps nobody else from calling", seconds=10)
def strange_drain(field):
    peer = Peer(field.address)
    peer.send_data([frames.record(frames.DRAIN, frames.small(0))])
    field.expect(peer.echo() is not None, 'the stranger gets no answer')
    result = subprocess.run(
        [field.build.program('weft'), 'call', field.address, 'grpc.health.v1.Health/Check', '{}'],
        env=dict(field.build.environment, WEFT_SHM='no', **credentials.settings()),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    field.expect('SERVING' in result.stdout, 'a call ends with %r' % result.stdout.strip()[-200:])
    peer.close()
