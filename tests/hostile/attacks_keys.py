# SPDX-License-Identifier: BSD-2-Clause
"""Attacks by strangers on a node that has a key: all they may see of it is TLS's refusal."""
import random
import select
import socket
import ssl
import time

import door
from attack import STRANGERS_BYTES, attack
from attacks_door import LIMIT, close_all, connect_many, hello_data, raise_files, send_all
from credentials import KEYED

ALERT = 0x15            # a record of TLS
RECORD_HEAD_BYTES = 5
ALERT_BYTES = RECORD_HEAD_BYTES + 2


def client_hello(**settings):
    """The first message of TLS of a client without a key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for name, value in settings.items():
        setattr(context, name, value)
    heard, said = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(heard, said)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return said.read()


def answer(address, data, limit=3):
    """All that the node says to these bytes until it closes, or for so many seconds."""
    heard = b''
    with socket.create_connection(door.host_and_port(address), timeout=limit) as s:
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while True:
                more = s.recv(4096)
                if not more:
                    break
                heard += more
        except OSError:
            pass
    return heard


def is_refusal(heard):
    """Nothing, or an alert of TLS and no more."""
    return not heard or (len(heard) == ALERT_BYTES and heard[0] == ALERT)


@attack('a stranger hears a refusal of TLS and nothing else', modes=KEYED, quota=STRANGERS_BYTES)
def strangers_words(field):
    """Greetings without TLS, handshakes without a key, of other versions, and damaged ones."""
    hello = client_hello()
    old = client_hello(minimum_version=ssl.TLSVersion.TLSv1_2,
                       maximum_version=ssl.TLSVersion.TLSv1_2)
    said = [b'', b'\0', hello_data([]), hello_data([door.rail()]), hello, old, hello[:60],
            hello + hello, b'GET / HTTP/1.1\r\n\r\n', b'\x16\x03\x01\xff\xff' + bytes(70000)]
    chance = random.Random(1)
    count = 0
    while field.on():
        data = said[count] if count < len(said) else bytearray(hello)
        if count >= len(said):
            for _ in range(chance.randrange(1, 4)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        heard = answer(field.address, bytes(data), 6)
        field.expect(is_refusal(heard), 'to %r... it answered %r' % (bytes(data[:40]), heard))
        count += 1
    field.expect(count > len(said), 'there was no time for all that strangers may say')
    return '%d times' % count


@attack('ten thousand handshakes that are begun and left keep nobody out', modes=KEYED,
        files_max=LIMIT, quota=STRANGERS_BYTES, seconds=8, quick=3)
def half_handshakes(field):
    raise_files()
    hello = client_hello()
    held, count = [], 0
    while field.on() and count < 10000:
        fresh = connect_many(field.address, 50)
        time.sleep(0.01)
        held += send_all(fresh, hello[:-1])
        count += 50
    while field.on():
        time.sleep(0.1)
    close_all(held)
    return '%d handshakes, %d held' % (count, len(held))


@attack('handshakes without a key, one after the other, keep nobody out', modes=KEYED,
        files_max=LIMIT, quota=STRANGERS_BYTES, quick=False)
def refused_handshakes(field):
    raise_files()
    hello = client_hello()
    count = 0
    while field.on():
        fresh = send_all(connect_many(field.address, 20), hello)
        ready = select.poll()
        for s in fresh:
            ready.register(s, select.POLLIN)
        ready.poll(20)
        close_all(fresh)
        count += 20
    return '%d handshakes' % count
