# SPDX-License-Identifier: BSD-2-Clause
"""A peer that dials: greeting, rail, frames in order, credits, and nothing that it must say.

In the modes keyed and sealed it seals its frames, and in the mode sealed it answers
SEAL with parcels of what it has offered.
"""
import itertools
import struct
import time

import credentials
import door
import frames
import parcels
import rail
import seals
from rail import Broken

PING_PAUSE = 0.1
NAP = 0.0005
UP_LIMIT = 8
PATIENCE = 3


class Peer:
    """A link to a node, over tcp, that is up when the constructor returns."""

    def __init__(self, node, up=True, credit=rail.RECEIVES - 8, room=1 << 40, **hello):
        self.node = node
        self.door = door.Door(node)
        self.rail = None
        self.epoch = 1
        self.sent = self.received = self.control_sent = 0
        self.credit_in = self.credit_out = 0
        self.acked = 0
        self.control_acked = 0
        self.room_in, self.room_out = 0, room
        self.credit_out = credit
        self.renews = True      # credit is promised anew for each data frame that comes
        self.keeps = True       # records that come are kept in self.records
        self.records = []
        self.part = b''         # of a record that goes on in the next data frame
        self.heard = []         # door messages other than beats
        self.sending = self.receiving = None    # keys of frames
        self.number = 0         # of the next sealed frame
        self.unverified = 0     # frames of the node whose seal is wrong
        self.owner = parcels.Owner() if credentials.is_sealed() else None
        self.answers = True     # each SEAL is answered
        self.owed = []          # records that wait for credit
        self.gives_back = False     # credits that are asked back are given
        self.given_back = 0
        self.returning = None   # the last RETURN's seq, and whether its answer is due
        self.reads = itertools.count(1)
        self.said = dict(link=1, token=2)
        self.said.update(hello)
        self.said.setdefault('rails', [door.rail(**rail.facts())])
        self.said.setdefault('incarnation', door.os.urandom(16))
        try:
            self.hello = self.door.greet(**self.said)
            self.version = min(self.said.get('wire_max', door.WIRE_MAX), self.hello['wire_max'])
            if up:
                self.come_up()
        except (Broken, door.Closed):
            self.close()
            raise

    def redial(self):
        """Go on through another connection to the door, as after the end of the first."""
        fresh = door.Door(self.node)
        try:
            self.hello = fresh.greet(**dict(self.said, resume_link=self.hello['link'],
                                            resume_token=self.hello['token']))
        except door.Closed:
            fresh.close()
            raise
        self.door.close()
        self.door = fresh

    def renew_rail(self, epoch=None):
        """Give up the rail in use for another one, of the next epoch or of another."""
        self.rail.close()
        self.epoch = self.epoch + 1 if epoch is None else epoch
        self.come_up()

    def place(self):
        """The index and the fields of the peer's rail over tcp."""
        for index, facts in enumerate(self.hello['rails']):
            if facts['provider'] == b'tcp' and facts['connected']:
                return index, facts
        raise Broken('it has no rail over tcp')

    def connect(self):
        """Try the rail: the message, and the connection with its connect data."""
        index, facts = self.place()
        self.door.send('try', epoch=self.epoch, mine=0, yours=index)
        if credentials.is_keyed():
            self.take_keys()
        self.rail = rail.Rail(facts['address'], self.request(facts['address']))

    def cipher(self):
        """The cipher that both sides use."""
        return max(self.said.get('cipher', 0), self.hello['cipher'])

    def take_keys(self):
        """Begin with the keys of this epoch."""
        secret = self.door.secret()
        self.sending, self.receiving = (
            seals.Direction(secret, self.epoch, side, self.cipher())
            for side in (seals.DIALLER, seals.ACCEPTOR))
        self.number = 0

    def request(self, address):
        """The connect data for the rail at an address."""
        if not credentials.is_keyed():
            return struct.pack('<QQI', self.hello['link'], self.hello['token'], self.epoch)
        data = struct.pack('<QII', self.hello['link'], self.epoch, 0)
        return data + seals.proof(self.door.secret(), data, address)

    def come_up(self):
        """Connect, ask until the acceptor answers, and say that this side is ready."""
        self.connect()
        end, asked = time.monotonic() + UP_LIMIT, 0
        while time.monotonic() < end:
            if time.monotonic() - asked > PING_PAUSE:
                asked = time.monotonic()
                self.say(frames.PING)
            if any(f['kind'] == frames.PONG for f in self.take_frames()):
                self.say(frames.READY)
                return
            time.sleep(NAP)
        raise Broken('no pong')

    def frame(self, kind, records=(), **changes):
        """The bytes of a frame as this link would send it now, but for the changes.

        keys: those of another direction or epoch to seal it with.
        """
        keys = changes.pop('keys', self.sending)
        values = dict(link=self.hello['link'], token=self.hello['token'], epoch=self.epoch,
                      version=self.version, ack=self.received, credit=self.credit_out,
                      room=self.room_out, records=records)
        if self.sending:
            values.update(token=0, flags=frames.SEALED_FRAME, number=self.number)
            self.number += 1
        values.update(changes)
        header, body = frames.frame(kind, **values)
        return keys.seal(header, body, values['number']) if keys else header + body

    def post(self, data, limit=5):
        """Hand bytes to the rail, however long it is full."""
        end = time.monotonic() + limit
        while not self.rail.send(data):
            self.pump()
            if time.monotonic() > end:
                raise Broken('the rail stays full')

    def say(self, kind, records=(), **changes):
        """Send a frame that needs no credit."""
        self.post(self.frame(kind, records, **changes))

    def take_frames(self):
        """Hear what has come over the rail; the frames, when everything is noted."""
        out = []
        while True:
            data = self.rail.receive()
            if data is None:
                self.pay()
                return out
            f = frames.parse(data, self.receiving and self.receiving.open)
            if not f:
                self.unverified += 1
                continue
            out.append(f)
            if frames.older(self.credit_in, f['credit']):
                self.credit_in = f['credit']
            if frames.older(self.acked, f['ack']):
                self.acked = f['ack']
            self.room_in = max(self.room_in, f['room'])
            if f['kind'] == frames.ANSWER:
                self.control_acked = f['seq']
            fresh = f['kind'] == frames.DATA and f['seq'] == self.received
            if fresh:
                self.received = (self.received + 1) & frames.U32
                self.credit_out += 1 if self.renews else 0
                f['records'] = self.joined(f['records'])
            if fresh and self.owner:
                self.own(f['records'])
            if self.keeps and (fresh or f['kind'] == frames.CONTROL):
                self.records += f['records']
            if f['kind'] == frames.CONTROL and self.gives_back:
                self.give_back(f)
            if f['kind'] == frames.CONTROL:
                self.rail.send(self.frame(frames.ANSWER, seq=f['seq']))

    def joined(self, records):
        """The records that are whole, those that came in parts put together."""
        whole = []
        for kind, flags, data in records:
            self.part += data
            if not flags & frames.MORE:
                whole.append((kind, flags & ~frames.CONTINUED, self.part))
                self.part = b''
        return whole

    def own(self, records):
        """Do what the owner of bodies must when these records have come."""
        for kind, _, data in records:
            if kind == frames.SEAL and self.answers:
                answer = self.owner.parcel(data, self.cipher(), self.epoch)
                self.owed += [frames.record(frames.SEALED, answer)] if answer else []
            elif kind == frames.OPENED:
                self.owner.opened(*struct.unpack_from('<QQ', data))

    def give_back(self, f):
        """Give the credits back that a control frame asks for, once."""
        asked = [struct.unpack_from('<Q', data)[0] for kind, _, data in f['records']
                 if kind == frames.RETURN]
        if asked and (self.returning or (None,))[0] != f['seq']:
            count = min(self.credits(), sum(asked))
            self.credit_in = (self.credit_in - count) & frames.U32
            self.given_back += count
            self.returning = f['seq'], True

    def pay(self):
        """Send what is owed, as far as there is credit."""
        if self.returning and self.returning[1] and self.control_acked == self.control_sent:
            self.returning = self.returning[0], False
            self.control_sent += 1
            self.rail.send(self.frame(frames.CONTROL, [frames.record(
                frames.RETURNED, frames.small(self.given_back, self.sent))],
                                      seq=self.control_sent))
        while self.owed and self.credits():
            if not self.rail.send(self.frame(frames.DATA, self.owed[:1], seq=self.sent)):
                return
            self.sent = (self.sent + 1) & frames.U32
            self.owed.pop(0)

    def hear_door(self):
        """Answer beats and keep what else comes through the door."""
        while True:
            found = self.door.receive(0)
            if not found:
                return
            kind, values = found
            if kind == 'beat' and not values['answer']:
                self.door.send('beat', number=values['number'], answer=1)
            elif kind != 'beat':
                self.heard.append(found)

    def pump(self):
        """Do what a peer does all the time: hear both ways and answer."""
        if self.rail:
            self.take_frames()
        self.hear_door()

    def credits(self):
        """Data frames that may be sent now."""
        left = (self.credit_in - self.sent) & frames.U32
        return left if left < 1 << 31 else 0

    def send_data(self, records, limit=10, on=lambda: True):
        """Send one data frame.  False: no credit came in time."""
        end, turns = time.monotonic() + limit, 0
        while not self.credits():
            if turns % 50 == 0:
                self.hear_door()
            turns += 1
            self.take_frames()
            if time.monotonic() > end or not on():
                return False
            time.sleep(NAP if turns > 4 else 0)
        if self.owner:
            records = [self.owner.offered(record) for record in records]
        number = self.sent
        self.sent = (self.sent + 1) & frames.U32
        self.post(self.frame(frames.DATA, records, seq=number))
        return True

    def flood(self, records, on, limit=PATIENCE):
        """Send short records, filled into frames, while on() holds; how many of them left.

        A node that gives no credit for so long has stopped the flood.
        """
        count = 0
        for number, some in enumerate(frames.fill(records)):
            if not on() or not self.send_data(some, limit, on):
                break
            count += len(some)
            if number % 64 == 0:
                self.pump()
        return count

    def flood_long(self, kind, bodies, on, limit=PATIENCE):
        """Send records that need several frames while on() holds; how many of them left."""
        count = 0
        for data in bodies:
            for part in frames.parts(kind, data):
                if not on() or not self.send_data([part], limit, on):
                    return count
            count += 1
            if count % 16 == 0:
                self.pump()
        return count

    def send_control(self, records, limit=30):
        """Send a control frame and wait for its answer; the seconds that took, or None."""
        self.control_sent = (self.control_sent + 1) & frames.U32
        begun = time.monotonic()
        self.say(frames.CONTROL, records, seq=self.control_sent)
        while self.control_acked != self.control_sent:
            if time.monotonic() - begun > limit:
                return None
            self.pump()
            time.sleep(NAP)
        return time.monotonic() - begun

    def echo(self, limit=10):
        """Seconds until the node has handled everything that was sent before, or None."""
        begun, number = time.monotonic(), 0x6563686f
        if not self.send_data([frames.record(frames.ECHO, frames.small(number))], limit):
            return None
        answer = (frames.ECHOED, 0, frames.small(number))
        while answer not in self.records:
            if time.monotonic() - begun > limit:
                return None
            self.pump()
            time.sleep(NAP)
        return time.monotonic() - begun

    def await_record(self, kind, wanted, limit=10):
        """The bytes of the first record of a type of which wanted() holds, or None."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            for found, _, data in self.records:
                if found == kind and wanted(data):
                    return data
            self.pump()
            time.sleep(NAP)
        return None

    def ask_parcel(self, offer, pull, ranges, limit=10):
        """Ask for a parcel; what SEALED says, or None: nothing in time."""
        read = next(self.reads)
        self.send_data([frames.record(frames.SEAL, frames.seal(offer, pull, ranges, read=read))])
        data = self.await_record(frames.SEALED, lambda data: parcels.Sealed(data).read == read,
                                 limit)
        return parcels.Sealed(data) if data else None

    def open_parcel(self, said, count):
        """Read a parcel and open it; None: it can't be read, or its tag is another."""
        data = self.rail.read(count, said.address, said.key)
        return data and seals.open_parcel(self.cipher(), data, said.secret, said.tag)

    def fetch(self, count, offer, address, key):
        """The first bytes of what the node offers, or None: it does not let this side read."""
        if not self.owner:
            return self.rail.read(count, address, key)
        pull = offer ^ 1 << 63
        said = self.ask_parcel(offer, pull, [(0, count)])
        if not said or said.status:
            return None
        plain = self.open_parcel(said, count)
        self.send_data([frames.record(frames.OPENED, frames.small(pull, said.parcel))])
        return plain

    def stay(self, seconds, on=lambda: True):
        """Live on for a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and on():
            self.pump()
            time.sleep(0.002)

    def is_alive(self, seconds=1):
        """Does the node still take this peer for one?"""
        try:
            self.stay(seconds)
            return not any(kind in ('goodbye', 'refuse') for kind, _ in self.heard)
        except (Broken, door.Closed):
            return False

    def close(self, goodbye=False):
        """End the link, by a word or without."""
        if goodbye:
            try:
                self.door.send('goodbye', text='done')
            except door.Closed:
                pass
        if self.rail:
            self.rail.close()
        self.rail = None
        if self.owner:
            self.owner.close()
        self.door.close()
