# SPDX-License-Identifier: BSD-2-Clause
"""Attacks on the port of the rail, which everybody learns who says hello.

Honest clients come over shared memory where connections must not be left: one
over the attacked port makes libfabric look at the others, and so hides the fault.
"""
import os
import random
import socket
import struct
import time

import credentials
import door
import rail
from attack import STRANGERS_BYTES, attack
from attacks_door import LIMIT, close_all, connect_many, raise_files
from peer import Peer


def tcp_rail(field):
    """The fields of the node's rail over tcp, and its host:port."""
    answer = door.ask_hello(field.address)
    facts = next(r for r in answer['rails'] if r['provider'] == b'tcp' and r['connected'])
    ip, port = facts['address'][4:8], struct.unpack('>H', facts['address'][2:4])[0]
    return answer, facts, '%s:%d' % (socket.inet_ntoa(ip), port)


@attack('connects to the rail that end at once leave no descriptor and keep nobody out',
        files_max=LIMIT, quota=STRANGERS_BYTES, seconds=8, WEFT_SHM='yes')
def rail_connects(field):
    _, _, address = tcp_rail(field)
    raise_files()
    count, most = 0, field.size(2000, 1500)
    while field.on() and count < most:
        fresh = connect_many(address, 50)
        count += 50
        time.sleep(0.05)    # the node has accepted them
        close_all(fresh)
    return '%d connects' % count


@attack('connects to the rail that are held and say nothing keep nobody out',
        files_max=LIMIT, quota=STRANGERS_BYTES, seconds=20, quick=False)
def rail_held(field):
    _, _, address = tcp_rail(field)
    raise_files()
    held = []
    while field.on() and len(held) < 2000:
        held += connect_many(address, 50)
        time.sleep(0.05)
    while field.on():
        time.sleep(0.1)
    close_all(held)
    return '%d connections held' % len(held)


@attack('bytes at the rail that are no request keep nobody out', files_max=LIMIT,
        quota=STRANGERS_BYTES, quick=False)
def rail_garbage(field):
    _, _, address = tcp_rail(field)
    rng, count = random.Random(2), 0
    while field.on():
        data = bytearray(rng.randbytes(rng.choice([1, 8, 16, 20, 64, 300, 5000])))
        if len(data) > 8 and rng.random() < 0.7:    # almost a request of libfabric's
            data[0], data[1] = rng.choice([2, 3, 4]), rng.choice([0, 1, 2, 3])
        with socket.create_connection(door.host_and_port(address), timeout=2) as s:
            try:
                s.sendall(data)
                s.settimeout(0.01)
                s.recv(100)
            except OSError:
                pass
        count += 1
    return '%d times' % count


@attack('requests to the rail with made-up tokens are rejected and leave nothing',
        files_max=LIMIT, quick=False)
def rail_tokens(field):
    _, facts, _ = tcp_rail(field)
    count = 0
    while field.on():
        data = os.urandom([1, 16, 19, 20, 24, 40, 200][count % 7])
        try:
            rail.Rail(facts['address'], data, 500).close()
            field.expect(False, 'a made-up token is taken')
        except rail.Broken:
            pass
        count += 1
    return '%d requests' % count


@attack('a request for a rail on which the two have not agreed is rejected')
def rail_not_agreed(field):
    # A peer that has no rail, and one whose rail is of no provider that the node has.
    offers = [[], [door.rail(**dict(rail.facts(), provider='none'))]]
    for rails in offers:
        peer = Peer(field.address, up=False, rails=rails)
        facts = peer.place()[1]
        if credentials.is_keyed():
            peer.take_keys()
        try:
            peer.rail = rail.Rail(facts['address'], peer.request(facts['address']), 1000)
            field.expect(False, 'a rail that nobody agreed on is taken')
        except rail.Broken:
            pass
        peer.close()
    return '%d requests' % len(offers)
