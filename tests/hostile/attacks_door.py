# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on the door: connections and greetings, many and bad."""
import os
import random
import resource
import select
import socket
import struct
import time

import door
from attack import STRANGERS_BYTES, attack
from peer import Peer

# This process holds more connections than the node it attacks may have.
FILES = 15000
LIMIT = 1024

# Greetings that do not go through TLS.
PLAIN = dict(modes=('open',), why='it greets without TLS')


def raise_files():
    """Let this process have many descriptors."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def connect_many(address, count):
    """Connections that are begun, none of them waited for."""
    out = []
    for _ in range(count):
        s = socket.socket()
        s.setblocking(False)
        try:
            s.connect(door.host_and_port(address))
        except BlockingIOError:
            pass
        except OSError:
            s.close()
            continue
        out.append(s)
    return out


def send_all(sockets, data):
    """Say bytes on each; those that still take them."""
    living = []
    for s in sockets:
        try:
            s.send(data)
            living.append(s)
        except BlockingIOError:
            living.append(s)
        except OSError:
            s.close()
    return living


def hello_data(rails):
    """A valid greeting, each of another node."""
    return door.envelope(door.message('hello', **door.hello(rails=rails)))


def close_all(sockets):
    """End all of them."""
    for s in sockets:
        s.close()


@attack('connections that say nothing keep nobody out', files_max=LIMIT, quota=STRANGERS_BYTES,
        quick=1.5)
def silent_doors(field):
    raise_files()
    held, count = [], 0
    while field.on() and count < 10000:
        held += connect_many(field.address, 50)
        count += 50
        time.sleep(0.01)
    while field.on():
        time.sleep(0.1)
    close_all(held)
    return '%d connections' % count


@attack('greetings a byte at a time keep nobody out', files_max=LIMIT, quota=STRANGERS_BYTES,
        quick=False, seconds=8, **PLAIN)
def slow_doors(field):
    raise_files()
    data = hello_data([])
    held = connect_many(field.address, 3000)
    sent = 0
    while field.on():
        held = send_all(held, data[sent % len(data):][:1])
        sent += 1
        time.sleep(0.2)
    close_all(held)
    return '3000 connections, %d left' % len(held)


@attack('halves of greetings keep nobody out', files_max=LIMIT, quota=STRANGERS_BYTES,
        quick=False, **PLAIN)
def half_hellos(field):
    raise_files()
    data = hello_data([])
    held, count = [], 0
    while field.on():
        fresh = connect_many(field.address, 50)
        time.sleep(0.01)
        held += send_all(fresh, data[:len(data) // 2])
        count += 50
        if len(held) > 5000:
            close_all(held[:2500])
            held = held[2500:]
    close_all(held)
    return '%d halves' % count


@attack('connections that come and go cost nobody a turn', quick=False)
def door_churn(field):
    count = 0
    while field.on():
        close_all(connect_many(field.address, 20))
        count += 20
        time.sleep(0.002)
    return '%d connections' % count


def renew(field, held, rails, most):
    """Greet anew for each that the node has closed, up to so many at once."""
    ready = select.poll()
    for s in held:
        ready.register(s, select.POLLRDHUP)
    gone = {fd for fd, _ in ready.poll(0)}
    close_all(s for s in held if s.fileno() in gone)
    held = [s for s in held if s.fileno() >= 0]
    # Few at a time, and each is answered before the next: a node can tell them from no others.
    fresh = connect_many(field.address, min(20, most - len(held)))
    time.sleep(0.001)
    fresh = [s for s in fresh if send_all([s], hello_data(rails))]
    for s in fresh:
        answer = select.poll()
        answer.register(s, select.POLLIN)
        answer.poll(50)
    return held + fresh, len(fresh)


@attack('valid greetings, renewed all the time, keep no new client out', files_max=LIMIT,
        quota=STRANGERS_BYTES, seconds=20, quick=5, **PLAIN)
def valid_hellos(field):
    raise_files()
    held, count = [], 0
    while field.on():
        held, fresh = renew(field, held, [door.rail()], 5000)
        count += fresh
    most = len(held)
    close_all(held)
    return '%d greetings, %d held at the end' % (count, most)


@attack('valid greetings without a rail in common, renewed, keep no new client out',
        files_max=LIMIT, quota=STRANGERS_BYTES, seconds=20, quick=False, **PLAIN)
def valid_railless(field):
    raise_files()
    held, count = [], 0
    while field.on():
        held, fresh = renew(field, held, [], 5000)
        count += fresh
    most = len(held)
    close_all(held)
    return '%d greetings, %d held at the end' % (count, most)


@attack('valid greetings that end at once leave nothing behind', quick=False)
def hello_churn(field):
    count = 0
    while field.on():
        d = door.Door(field.address)
        try:
            d.greet(1, rails=[door.rail()])
        except door.Closed:
            pass
        d.close()
        count += 1
    return '%d greetings' % count


def absurd_hellos():
    """Bytes of messages that no honest node says first."""
    def hello(**changes):
        return door.message('hello', **door.hello(**changes))

    for changes in (
            dict(wire_min=0, wire_max=0), dict(wire_min=2**32 - 1, wire_max=0),
            dict(incarnation=b''), dict(incarnation=b'x' * 17), dict(name='n' * 64),
            dict(name='\x1b[2J\x1b]0;x\x07\n\nlog'), dict(address='a' * 256),
            dict(address='%n%n%s' * 20), dict(address='[fe80::1%eth0]:1'),
            dict(record_bytes_max=0), dict(record_bytes_max=2**32 - 1), dict(lost_ns=0),
            dict(lost_ns=1), dict(lost_ns=2**64 - 1), dict(link=0, token=0),
            dict(link=2**64 - 1), dict(resume_link=1 << 32, resume_token=5),
            dict(security='keyed'), dict(security='x' * 16), dict(lanes=2**32 - 1),
            dict(checksums=2**32 - 1, compressions=2**32 - 1),
            dict(rails=[door.rail()] * 17), dict(rails=[door.rail(provider='x' * 64)]),
            dict(rails=[door.rail(address=b'x' * 129)]),
            dict(rails=[door.rail(provider='shm', protocol=16, protocol_version=1,
                                  connected=0, same_host=1, address=os.urandom(128))] * 16)):
        yield hello(**changes)
    for count in (0, 1, 55, 56, 57, 511, 512, 2**32 - 1):
        yield hello(rails=[door.rail(frame_bytes=count)] * 16)
    for side in (1, 2**32, 2**64 - 1):
        yield hello(side=side)
    for count in (1, 16, 17, 2**32 - 1):
        yield hello(proofs=count, dials=1)
    for count in (1, 16, 17):
        yield door.message('same', link=count, proof=b'x' * count)
    yield door.message('same', link=2**64 - 1, proof=b'x' * 16, answer=1)
    yield b''
    yield door.field(2, b'\x08\x63' + door.field(2, 'x' * 9000))
    yield door.message('try', epoch=1, mine=0, yours=0)
    yield door.message('beat', number=1, answer=0)
    yield door.message('resync', epoch=2**32 - 1, received=5)
    yield door.message('goodbye', text='g' * 9000)
    yield door.field(1, b'\xff' * 50)
    yield b'\x0a\xff\xff\xff\xff\x0f'
    yield b'\x08' * 16000
    yield door.field(99, b'x' * 16000)
    yield hello() + hello()


@attack('greetings that no node says are refused, and nothing else happens', quick=False)
def absurd(field):
    rng, count = random.Random(1), 0
    variants = list(absurd_hellos())
    while field.on():
        for data in variants + [mutated(rng, rng.choice(variants)) for _ in range(100)]:
            d = door.Door(field.address)
            try:
                d.send_bytes(door.envelope(data))
                if d.receive(0.02):
                    d.send_bytes(door.envelope(data) * 2)
            except (door.Closed, ValueError, IndexError):
                pass
            d.close()
            count += 1
    return '%d greetings' % count


def mutated(rng, data):
    """The same bytes, some of them changed."""
    out = bytearray(data or b'x')
    for _ in range(rng.randint(1, 8)):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


@attack('lengths that promise more than a message may have are refused', quick=False)
def long_messages(field):
    count = 0
    while field.on():
        d = door.Door(field.address)
        try:
            d.send_bytes(door.PREFIX + struct.pack('<I', 2**32 - 1) + b'x' * 65536)
            field.expect(not d.receive(2), 'it answers')
        except door.Closed:
            pass
        d.close()
        count += 1
    return '%d messages' % count


@attack('messages without end at the door of a link that is up keep nobody waiting', quick=1.5)
def door_messages(field):
    peer, count = Peer(field.address), 0
    # Answers to heartbeats, to which nothing is said.
    beats = door.envelope(door.message('beat', number=1, answer=1)) * 1000
    while field.on():
        peer.door.send_bytes(beats)
        count += 1000
    peer.close()
    return '%d messages' % count
