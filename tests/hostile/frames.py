# SPDX-License-Identifier: BSD-2-Clause
"""Frames and records, as weft_wire(7) gives them: bytes from numbers and back."""
import struct

from seals import SEAL_BYTES

HEADER = struct.Struct('<BBHIQQIIIIQHHI')
RECORD = struct.Struct('<BBHII')
FRAME_BYTES = 66560
ROOM_IN_FRAME = FRAME_BYTES - HEADER.size - SEAL_BYTES  # in each mode the same
U32 = 0xffffffff

SEALED_FRAME = 1    # a flag of frames
NUMBER_MAX = 2**48 - 1

DATA, CONTROL, ANSWER, PING, PONG, READY = range(1, 7)

(TENSOR, CALL, REPLY, PULLED, RESUME, OFFER, ECHO, ECHOED, ABORT, CHECK, SUMS,
 RELEASED, REQUEST, RESPONSE, GRANT_REQUESTS, GRANT_RESPONSES, ATTACHMENT, DRAIN,
 SPREAD, LANE, FILLED, TAKEN, PUSH, ASK, LEND, BLOCKS, NOTED, SEAL,
 SEALED, OPENED) = range(1, 31)
WITHDRAW, WITHDRAWN, CANCEL, RETURN, RETURNED = range(32, 37)

# Flags of records.
MORE, CONTINUED = 1, 2
DEAD, RELAYED = 1, 64
STREAM, WITH_REQUEST, AGAIN, COMPRESSED = 1, 2, 4, 8
NONE, LAST, INITIAL = 1, 2, 4
PUSH_LAST, PUSH_NOTED, PUSH_GOT, PUSH_LIST = 1, 2, 4, 8
ASK_STAY, ASK_SUM = 1, 2

NO_DEADLINE = 2**64 - 1


def frame(kind, link, token, epoch, *, version, seq=0, ack=0, credit=0, room=0,
          records=(), flags=0, count=None, number=0):
    """The header and the body of a frame of whole records; count lies about how many."""
    body = b''.join(records)
    return HEADER.pack(version, kind, flags, len(body), link, token, epoch, seq & U32,
                       ack & U32, credit & U32, room,
                       len(records) if count is None else count,
                       number >> 32, number & U32), body


def parse(data, opened=None):
    """A dict of a frame's header, and its records as (type, flags, bytes).

    opened gives the body of a sealed one, for the header's bytes, what follows and the number.
    None: it does not verify.
    """
    names = ('version', 'kind', 'flags', 'body_bytes', 'link', 'token', 'epoch', 'seq',
             'ack', 'credit', 'room', 'count', 'high', 'low')
    header = dict(zip(names, HEADER.unpack_from(data)))
    header['records'] = []
    at = HEADER.size
    if opened:
        body = opened(data[:at], data[at:], header['high'] << 32 | header['low'])
        if body is None or not header['flags'] & SEALED_FRAME:
            return None
        data = data[:at] + body
    for _ in range(header['count']):
        kind, flags, _, count, _ = RECORD.unpack_from(data, at)
        at += RECORD.size
        header['records'].append((kind, flags, data[at:at + count]))
        at += count
    return header


def older(a, b):
    """Of two u32 totals, is the first the older one?"""
    return (a - b) & U32 >= 1 << 31


def record(kind, data, flags=0, total=None):
    """One part of a record; the only one, unless told otherwise."""
    return RECORD.pack(kind, flags, 0, len(data), len(data) if total is None else total) + data


def parts(kind, data, room=ROOM_IN_FRAME):
    """A record of any length in parts that fill a frame each."""
    step = room - RECORD.size
    for at in range(0, len(data), step):
        piece = data[at:at + step]
        last = at + step >= len(data)
        yield record(kind, piece, (0 if last else MORE) | (CONTINUED if at else 0), len(data))


def fill(records, room=ROOM_IN_FRAME):
    """Lists of records that fit a frame, from any number of short ones."""
    out, used = [], 0
    for item in records:
        if used + len(item) > room and out:
            yield out
            out, used = [], 0
        out.append(item)
        used += len(item)
    if out:
        yield out


def no_body(kind=0):
    """A body that is not there; kind asks for checksums of the answer."""
    return struct.pack('<BQB', 0, 0, kind)


def preferred(body, priority):
    """The same body, with a priority."""
    return body[:9] + bytes([body[9] & 15 | priority << 4]) + body[10:]


def eager(count):
    """A body whose bytes end the record."""
    return struct.pack('<BQB', 1, count, 0)


def pull(count, offer, epoch, address, key, way=2):
    """A body that its owner offers to be read."""
    return struct.pack('<BQBQIQQ', way, count, 0, offer, epoch, address, key)


def pull_with_parcel(count, offer, epoch, address, key, parcel, some, secret, tag):
    """A body whose first bytes are in a parcel at that address."""
    return pull(count, offer, epoch, address, key, 6) + struct.pack('<QI', parcel, some) + \
        secret + tag


def view(count, offer, epoch, address, key, file, offset, fd, place):
    """A body in a memory file that its reader may look at."""
    return pull(count, offer, epoch, address, key, 3) + struct.pack('<QQII', file, offset, fd,
                                                                    place)


def staged(count, offer, epoch, address, key, room):
    """A body that passes through a room of its owner's."""
    return pull(count, offer, epoch, address, key, 4) + struct.pack('<Q', room)


def tensor(step, key, body, content=b'', flags=0, code=1, bits=8, lanes=1, shape=()):
    """A TENSOR, or an ATTACHMENT."""
    return (struct.pack('<QBBBBHH', step, flags, code, bits, len(shape), lanes, len(key)) +
            body + struct.pack('<%dq' % len(shape), *shape) + key + content)


def text_tensor(step, key, text):
    """A whole TENSOR record of bytes that travel with it."""
    return record(TENSOR, tensor(step, key, eager(len(text)), text, shape=(len(text),)))


def offered_tensor(step, key, offer, count=1 << 40):
    """A whole TENSOR record of bytes that are offered at a place where nothing is."""
    body = pull(count, offer, 1, 1 << 41, offer)
    return record(TENSOR, tensor(step, key, body, shape=(count,)))


def dead_tensor(step, key):
    """A whole TENSOR record without content: it costs its receiver the most for its bytes."""
    return record(TENSOR, tensor(step, key, no_body(), flags=DEAD))


def call(number, service, method, content=b'', *, body=None, left_ns=NO_DEADLINE, flags=0,
         attachments=0, metadata=b'', request=None, incarnation=b''):
    """A CALL."""
    head = struct.pack('<QQHHHHI', number, left_ns, flags, len(service), len(method),
                       attachments, len(metadata))
    if request is not None:
        head += struct.pack('<Q', request)
    return (head + incarnation + (body if body is not None else eager(len(content))) +
            service + method + metadata + content)


def reply(number, status=0, executed=2, flags=0, content=b'', *, text=b'', attachments=0,
          initial=b'', trailing=b'', details=b'', body=None):
    """A REPLY."""
    if body is None:
        body = no_body() if status else eager(len(content))
    return (struct.pack('<QBBHHHIII', number, status, executed, flags, len(text), attachments,
                        len(initial), len(trailing), len(details)) +
            body + text + initial + trailing + details + (b'' if status else content))


def stream_message(number, content=b'', flags=0, attachments=0, metadata=b'', body=None):
    """A REQUEST or a RESPONSE."""
    return (struct.pack('<QHHI', number, flags, attachments, len(metadata)) +
            (body if body is not None else eager(len(content))) + metadata + content)


def attachment_key(reply_side, message, index):
    """The key of an ATTACHMENT."""
    return struct.pack('<BQI', reply_side, message, index)


def metadata_block(pairs):
    """A block of metadata of pairs of bytes."""
    return b''.join(struct.pack('<HI', len(key), len(value)) + key + value
                    for key, value in pairs)


def small(number, other=0, status=0):
    """Any record that has an id, another number and a status."""
    return struct.pack('<QQB', number, other, status)


def abort(step, status=1, text=b''):
    """A whole ABORT record."""
    return record(ABORT, struct.pack('<QBH', step, status, len(text)) + text)


def sums(pull_id, first, values):
    """A SUMS."""
    return struct.pack('<QI', pull_id, first) + struct.pack('<%dQ' % len(values), *values)


def lane(pull_id, number, address, key):
    """A LANE."""
    return struct.pack('<QIQQ', pull_id, number, address, key)


def push(window, at=0, flags=0, body=None, *, number=0, note=b'', announced=None, blocks=b''):
    """A PUSH; window: the 24 bytes of its id and token, announced: how many blocks and bytes."""
    return (window + struct.pack('<QBIH', at, flags, number, len(note)) + note +
            (struct.pack('<IQ', *announced) if announced else b'') +
            (body if body is not None else no_body()) + blocks)


def ask(number, window, at, count, flags=0):
    """An ASK."""
    return struct.pack('<Q', number) + window + struct.pack('<QQB', at, count, flags)


def lend(number, status=0, body=None):
    """A LEND."""
    return struct.pack('<QB', number, status) + (body if body is not None else no_body())


def seal(offer, pull_id, ranges, *, read=1, again=0, opened=0, priority=0, count=None):
    """A SEAL; count lies about how many ranges there are."""
    return struct.pack('<QQIIQBB', offer, pull_id, read, again, opened, priority,
                       len(ranges) if count is None else count) + \
        b''.join(struct.pack('<QQ', at, some) for at, some in ranges)


SEALED_HEAD = struct.Struct('<QIIBQIQQ')


def sealed(pull_id, read, again, status=0, *, parcel=0, epoch=0, address=0, key=0,
           secret=bytes(32), tag=bytes(SEAL_BYTES)):
    """A SEALED."""
    return SEALED_HEAD.pack(pull_id, read, again, status, parcel, epoch, address, key) + \
        secret + tag


def units(number):
    """A number in units of seven bits."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def block_list(blocks, before=(0, 0, 0)):
    """The bytes of blocks, each of (length, place in the window, place in the body)."""
    def distance(d):
        d &= 2**64 - 1
        return units(2 * d if d < 2**63 else 2 * (2**64 - d) - 1)

    out, (length, to, at) = [], before
    for block in blocks:
        out.append(units(block[0]) + distance(block[1] - to - length) +
                   distance(block[2] - at - length))
        length, to, at = block
    return b''.join(out)


def descriptor(window, count, rights):
    """The descriptor of a window."""
    return b'tww\1' + window + struct.pack('<QB', count, rights)
