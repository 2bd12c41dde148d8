# SPDX-License-Identifier: BSD-2-Clause
"""What the fuzzer says: records and door messages that are valid, almost valid, or not."""
import os
import struct

import door
import frames

EDGES = [0, 1, 2, 3, 5, 4096, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
SERVICES = [(b'weft.reflect.Reflection', b'List', b''),
            (b'weft.reflect.Reflection', b'Describe', b'\x0a\x0eweft.perf.Perf'),
            (b'grpc.health.v1.Health', b'Check', b''), (b'grpc.health.v1.Health', b'Watch', b''),
            (b'no.such.Service', b'Method', b'body'), (b'', b'', b''),
            (b'x' * 2000, b'y' * 2000, b'')]
SHAPES = [(), (0,), (1,), (4,), (4096,), (2**31, 2**31), (2,) * 62, (0,) * 64, (1,) * 64, (-1,),
          (2**62, 0), (2**63 - 1,)]


WINDOW_BYTES = 65536
# The name of a window of the attacked node, which whoever starts that sets.
names = {'window': bytes(24)}


class Chance:
    """A session's random choices; the same seed makes the same ones."""

    def __init__(self, rng):
        self.rng = rng
        self.polite = rng.random() < 0.6    # it keeps most rules, and so comes far
        self.known = [1]    # numbers that one side or the other has named

    def of(self, *choices):
        """One of them."""
        return self.rng.choice(choices)

    def usual(self, ordinary, *others):
        """One of them; in a polite session it is mostly the first."""
        if self.polite and self.often(0.97):
            return ordinary
        return self.rng.choice((ordinary,) + others)

    def rare(self, share):
        """True in that share of all cases, and in a polite session in few of those."""
        return self.often(share / 10 if self.polite else share)

    def often(self, share):
        """True in that share of all cases."""
        return self.rng.random() < share

    def name(self):
        """A number that is known, or new, or an edge."""
        if self.often(0.6):
            return self.rng.choice(self.known[-40:])
        number = self.of(self.rng.getrandbits(8), self.rng.choice(EDGES),
                         self.rng.getrandbits(64))
        self.known.append(number)
        return number

    def number(self):
        """Any amount."""
        return self.of(self.rng.getrandbits(6), self.rng.choice(EDGES), self.rng.getrandbits(64))

    def count(self):
        """An amount of bytes that may be a body's."""
        return self.of(1, 4, 4096, 1 << 20, 3 << 20, 8 << 20, self.number())

    def bytes(self, most):
        """Random bytes, up to so many."""
        return self.rng.randbytes(self.rng.randint(0, most))


def body(c, ways=(0, 1, 2, 3, 4, 5, 6)):
    """A description of a body, what follows it, and its length; lies included."""
    way = c.of(*ways)
    offer, epoch = c.name(), c.usual(1, 1, 1, 0, 2, 2**32 - 1)
    address, key, count = c.number(), c.number(), c.count()
    if way == 0:
        return frames.no_body(c.usual(0, 0, 1, 7)), b'', 0
    if way == 1:
        content = c.bytes(64)
        return frames.eager(len(content)), content, len(content)
    if way == 3:
        return frames.view(count, offer, epoch, address, key, c.number(), c.number(),
                           c.usual(0, 3, 8, 2**31 - 1, 2**31),
                           c.usual(0, 1, 1022, 1023, 2**32 - 1)), b'', count
    if way == 4:
        room = c.usual(0, 1 << 20, count)
        return frames.staged(count, offer, epoch, address, key, room), b'', count
    if way == 6:
        return frames.pull_with_parcel(count, offer, epoch, address, key, c.usual(1, 0, c.number()),
                                       c.usual(1, min(count, 1 << 19), 0, 2**32 - 1) & 2**32 - 1,
                                       c.rng.randbytes(32), c.rng.randbytes(16)), b'', count
    head = frames.pull(count, offer, epoch, address, key, way)
    if way == 5:
        head += c.rng.randbytes(64)
    elif c.often(0.2):      # with a checksum
        head = head[:9] + b'\1' + head[10:] + (struct.pack('<Q', c.number())
                                              if count <= 1 << 20 else b'')
    return head, b'', count


def tensor(c, key=None, step=None):
    """A TENSOR or the bytes of an ATTACHMENT."""
    described, content, count = body(c, (0, 1, 2, 3, 4, 6, c.usual(2, 5)))
    shape = (count,) if not c.rare(0.3) and count < 2**63 else c.rng.choice(SHAPES)
    if any(not -2**63 <= n < 2**63 for n in shape):
        shape = ()
    flags = c.usual(0, 0, 0, 1, 2, 3, 4, 64, 128)
    if flags & 1 and not c.rare(0.2):
        described, content = frames.no_body(), b''
    return frames.tensor(c.usual(1, 7, c.name()) if step is None else step,
                         c.bytes(c.usual(1, 20, 300)) if key is None else key, described, content,
                         flags, c.usual(1, 0, 2, 9), c.usual(8, 0, 1, 32), c.usual(1, 0, 4), shape)


def call(c):
    """A CALL."""
    service, method, content = c.rng.choice(SERVICES)
    flags = c.of(0, 0, 1, 2, c.usual(0, 6, 8, 15))
    described, after = None, c.bytes(40) if c.rare(0.3) else content
    if c.often(0.2) or flags & frames.STREAM:
        ways = (0,) if flags & frames.STREAM and not c.rare(0.1) else (0, 1, 2)
        described, after, _ = body(c, ways)
    block = b''
    if c.often(0.3):
        block = frames.metadata_block([(b'k', b'v'), (b'k-bin', c.bytes(30)),
                                       (c.usual(b'x', b'', b'K'), b'\0')][:c.usual(1, 2, 3)])
    return frames.call(c.name(), service, method, after, body=described,
                       left_ns=c.usual(frames.NO_DEADLINE, 0, 1, 10**9), flags=flags,
                       attachments=c.usual(0, 1, 3, 4096, 4097), metadata=block,
                       request=c.name() if flags & 2 else None,
                       incarnation=os.urandom(16) if flags & 4 else b'')


def message(c):
    """A REQUEST or a RESPONSE."""
    described, content, _ = body(c, (0, 1, 1, 2))
    block = frames.metadata_block([(b'k', b'v')]) if c.often(0.1) else b''
    flags = c.of(0, 0, 2, c.usual(0, 1, 4, 8, 16))
    return struct.pack('<QHHI', c.name(), flags, c.usual(0, 1, 5), len(block)) + described + \
        block + content


def window_name(c):
    """The name of a window that the node has, or of none."""
    name = names['window']
    return c.usual(name, bytes(24), name[:8] + c.rng.randbytes(16))


def place(c):
    """A place in a window, or behind it."""
    return c.usual(c.rng.randrange(WINDOW_BYTES), WINDOW_BYTES, WINDOW_BYTES - 1, c.number())


def block_list(c, count, before=(0, 0, 0)):
    """The bytes of so many blocks, how many bytes these have together, and the last one."""
    blocks = [(c.usual(c.rng.randint(1, 64), 1, c.number() or 1), place(c),
               c.usual(c.rng.randrange(1024), c.number())) for _ in range(count)]
    return (frames.block_list(blocks, before), sum(block[0] for block in blocks) % 2**64,
            blocks[-1] if blocks else before)


def push(c):
    """A PUSH."""
    flags = c.of(0, 1, 2, 3, 8, 9, 11, c.usual(6, 4, 5, 12, 15, 16, 255))
    described, after, _ = body(c, (2, 2, 4, c.usual(2, 0, 1, 3, 5)) if flags & 8 == 0
                               else (c.usual(2, 0, 1, 3, 4, 5),))
    if flags & 4 and not c.rare(0.3) or c.often(0.2):
        described, after = frames.no_body(), b''
    announced = None
    if flags & 8:
        count = c.of(1, 2, 20, 200)
        after, total, _ = block_list(c, count)
        announced = (c.usual(count, count + 1, 0, 65536, 65537, 2**32 - 1),
                     c.usual(total, total + 1, 0, 2**64 - 1) % 2**64)
    noted = flags & 2 and not c.rare(0.1)
    return frames.push(window_name(c), 0 if flags & 8 and not c.rare(0.1) else place(c), flags,
                       described, number=c.rng.getrandbits(32) if noted else 0,
                       note=c.bytes(c.of(0, 8, 100)) if noted else b'', announced=announced,
                       blocks=after)


def window_record(c, kind):
    """A PUSH, ASK, LEND or BLOCKS."""
    if kind == frames.PUSH:
        return push(c)
    if kind == frames.ASK:
        return frames.ask(c.name(), window_name(c), place(c),
                          c.usual(c.rng.randint(1, 4096), c.number()),
                          c.usual(0, 1, 2, 3, 4, 255))
    if kind == frames.LEND:
        status = c.usual(0, 0, 5, 16, 17)
        described, after, _ = body(c, (0,) if status else (2, c.usual(2, 0, 1, 3, 4, 5)))
        return frames.lend(c.name(), status, described) + after
    return struct.pack('<Q', c.name()) + block_list(c, c.of(0, 1, 20))[0]


def parcel_record(c, kind):
    """A SEAL or a SEALED."""
    if kind == frames.SEAL:
        ranges = [(c.usual(0, place(c), c.number()), c.usual(c.rng.randint(1, 64), c.count()))
                  for _ in range(c.usual(1, 4, 0, 5))]
        return frames.seal(c.name(), c.name(), ranges, read=c.rng.getrandbits(3),
                           again=c.rng.getrandbits(3), opened=c.usual(0, c.name()),
                           priority=c.usual(0, 3, 4, 255),
                           count=c.usual(len(ranges), 0, 5, 255))
    fields = dict(parcel=c.name(), epoch=c.usual(1, 1, 0, 2), address=c.number(),
                  key=c.number(), secret=c.rng.randbytes(32), tag=c.rng.randbytes(16))
    status = c.usual(0, 5, 8, 13, 16, 17)
    return frames.sealed(c.name(), c.usual(0, c.rng.getrandbits(3), frames.U32),
                         c.usual(1, c.rng.getrandbits(3)), status,
                         **({} if status and not c.rare(0.1) else fields))


def small(c):
    """A record that has an id, another number and a status."""
    return frames.small(c.name(), c.usual(0, 1, 64, c.name(), c.number()),
                        c.usual(0, 1, 2, 16, 17))


def any_record(c):
    """The type and the bytes of a record."""
    t = c.of(*([frames.TENSOR] * 4 + [frames.CALL] * 5 + [frames.PUSH] * 3 +
               list(range(1, frames.OPENED + 1)) +
               [c.usual(frames.CALL, c.rng.randrange(256))]))
    if t == frames.TENSOR:
        return t, tensor(c)
    if t == frames.CALL:
        return t, call(c)
    if t == frames.REPLY:
        return t, frames.reply(c.name(), c.usual(5, 0, 16, 17), c.usual(0, 1, 2, 3),
                               c.usual(0, 1, 2), c.bytes(20), text=b'why')
    if t == frames.OFFER:
        return t, struct.pack('<Q', c.name()) + body(c, (0, 2, 4, 5))[0]
    if t == frames.ABORT:
        return t, struct.pack('<QBH', c.usual(1, 7, c.name()), c.usual(1, 0, 16, 17), 3) + b'why'
    if t == frames.SUMS:
        return t, frames.sums(c.name(), c.usual(0, 1, 1023, 2**32 - 1),
                              [c.number()] * c.usual(1, 0, 4, 5))
    if t in (frames.REQUEST, frames.RESPONSE):
        return t, message(c)
    if t == frames.ATTACHMENT:
        key = frames.attachment_key(c.usual(0, 0, 1, 2), c.usual(0, 0, 1, c.name()),
                                    c.usual(0, 1, 4095, 4096))
        return t, tensor(c, key, c.name())
    if t == frames.LANE:
        return t, frames.lane(c.name(), c.usual(1, 0, 2), c.number(), c.number())
    if frames.PUSH <= t <= frames.BLOCKS:
        return t, window_record(c, t)
    if t in (frames.SEAL, frames.SEALED):
        return t, parcel_record(c, t)
    if t <= frames.OPENED:
        return t, small(c)
    return t, c.bytes(60)


def damage(c, data):
    """The same bytes, some changed, or fewer of them."""
    out = bytearray(data)
    for _ in range(c.rng.randint(1, 3)):
        if out:
            out[c.rng.randrange(len(out))] = c.usual(0, 1, 127, 128, 255, c.rng.randrange(256))
    return bytes(out[:c.rng.randint(0, len(out))] if c.often(0.3) else out)


def records(c, share):
    """Records for one frame, a share of them damaged."""
    out = []
    for _ in range(c.of(1, 1, 2, 9)):
        kind, data = any_record(c)
        if c.often(share):
            data = damage(c, data)
        flags, total = 0, None
        if c.often(share / 3):
            flags = c.usual(1, 2, 3, 4)
            total = c.usual(len(data), len(data) + 1, 1 << 20, (1 << 20) + 1, 2**32 - 1)
        out.append(frames.record(kind, data, flags, total)[:frames.ROOM_IN_FRAME // 9])
    return out


def rails(c, own):
    """Rails of a Hello: the one that works, and some that are anything."""
    out = [own] if c.often(0.8) else []
    for _ in range(c.usual(0, 0, 1, 3, 16)):
        out.append(c.usual(
            door.rail(protocol=own['protocol'], protocol_version=own['protocol_version'],
                      libfabric=own['libfabric'],
                      address=door.socket_address('127.0.0.1', c.usual(1, 9, 65535)),
                      frame_bytes=c.usual(0, 511, 512, 4096, frames.FRAME_BYTES, 2**32 - 1)),
            door.rail(address=c.bytes(128)),
            door.rail(provider='shm', protocol=16, protocol_version=1, connected=0, same_host=1,
                      address=b'fi_ns://../../etc/passwd\0' + c.rng.randbytes(8)),
            door.rail(provider='nosuch')))
    return out


def hello(c, own):
    """Fields of a Hello that a session begins with."""
    return dict(rails=[own] if c.often(0.9) else rails(c, own),
                address=c.usual('', '', '127.0.0.1:1', 'localhost:9', '[::1]:5', 'x'),
                lost_ns=c.usual(3 * 10**9, 3 * 10**9, 3 * 10**9, 0, 1, 10**6, 2**64 - 1),
                record_bytes_max=c.usual(1 << 20, 1 << 20, 0, 100, 2**32 - 1),
                checksums=c.usual(1, 1, 0, 255), checksum=c.usual(0, 0, 1),
                compressions=c.usual(1, 0, 255), lanes=c.usual(0, 3, 2**32 - 1),
                manual=c.usual(0, 1), resume_link=c.usual(0, 0, 0, c.name()),
                resume_token=c.usual(0, 0, 0, c.name()))


def any_door_message(c, peer, own):
    """The bytes of a door message at any stage."""
    kind = c.of('try', 'try', 'cannot', 'beat', 'resync', 'resync', 'hello', 'refuse', 'goodbye',
                'damaged')
    if kind == 'try':
        peer.epoch += c.usual(0, 0, 1, 2)
        return door.message('try', epoch=c.usual(peer.epoch, peer.epoch, 0, 2**31, 2**32 - 1),
                            mine=c.usual(0, 0, 1, 15, 2**32 - 1), yours=c.usual(0, 1, 7, 2**32 - 1))
    if kind == 'cannot':
        return door.message('cannot', epoch=c.usual(1, peer.epoch, 0),
                            text='no' * c.usual(0, 1, 300))
    if kind == 'beat':
        return door.message('beat', number=c.number(), answer=c.usual(0, 1))
    if kind == 'resync':
        return door.message('resync', epoch=c.usual(1, peer.epoch, 0),
                            received=c.usual(0, peer.received, peer.received + 1, 2**31, 2**32 - 1),
                            answer=c.usual(0, 1))
    if kind == 'hello':
        facts = dict(peer.said, rails=rails(c, own))
        if c.often(0.3):
            facts['incarnation'] = os.urandom(16)
        return door.message('hello', **door.hello(**facts))
    if kind == 'refuse':
        return door.message('refuse', status=c.usual(0, 14, 99, 2**32 - 1), text='no')
    if kind == 'goodbye':
        return door.message('goodbye', text='g' * c.usual(0, 5, 600))
    return damage(c, any_door_message(c, peer, own))
