# SPDX-License-Identifier: BSD-2-Clause
"""Transfers between agents: their contents and their notifications, by UCX and by WEFT over each
provider, in the same way."""
import os
import random
import time
import unittest

import agents

ALL = os.environ.get('NIXL_TESTS_ALL')
SIZE = 4 << 20
BLOCKS_MAX = 65536  # WEFT_BLOCKS_MAX


def pieces(count, most, seed):
    """@count blocks of lengths up to @most, at places by chance that overlap at neither end."""
    chance = random.Random(seed)
    slot = SIZE // count
    here, there = list(range(count)), list(range(count))
    chance.shuffle(here)
    chance.shuffle(there)
    blocks = []
    for mine, theirs in zip(here, there):
        length = chance.randrange(1, min(most, slot) + 1)
        blocks.append((mine * slot + chance.randrange(slot - length + 1),
                       theirs * slot + chance.randrange(slot - length + 1), length))
    return blocks


def moved(into, out_of, blocks):
    """@into after @blocks, (place in it, place in @out_of, bytes) each, were copied there."""
    result = bytearray(into)
    for to, place, length in blocks:
        result[to:to + length] = out_of[place:place + length]
    return bytes(result)


class Agents:
    """Some agents of one backend, which know each other."""
    backend = 'WEFT'
    environment = {}
    count = 2

    @classmethod
    def setUpClass(cls):
        cls.agents = [agents.Process('agent %d' % i, cls.backend, size=SIZE,
                                     environment=cls.environment) for i in range(cls.count)]
        for agent in cls.agents:
            agent.ready()
        described = [agent.describe() for agent in cls.agents]
        cls.base = [base for _, base in described]
        for i, agent in enumerate(cls.agents):
            for j, (metadata, _) in enumerate(described):
                if i != j:
                    agent.meet(metadata)

    @classmethod
    def tearDownClass(cls):
        for agent in cls.agents:
            agent.end()

    def setUp(self):
        for i, agent in enumerate(self.agents):
            agent.fill(i)
        self.content = [agent.content() for agent in self.agents]

    def name(self, i):
        """The name of agent @i."""
        return self.agents[i].name


class Transfers(Agents):
    """What holds for every backend."""

    def check_write(self, blocks):
        """Agent 0 writes @blocks to agent 1, where they arrive and nothing else changes."""
        state, = self.agents[0].move('WRITE', self.name(1), self.base[1], [blocks])
        self.assertEqual(state, 'DONE', self.agents[0].printed())
        self.assertEqual(self.agents[1].content(),
                         moved(self.content[1], self.content[0],
                               [(there, here, length) for here, there, length in blocks]))
        self.assertEqual(self.agents[0].content(), self.content[0])

    def check_read(self, blocks):
        """Agent 0 reads @blocks of agent 1."""
        state, = self.agents[0].move('READ', self.name(1), self.base[1], [blocks])
        self.assertEqual(state, 'DONE', self.agents[0].printed())
        self.assertEqual(self.agents[0].content(),
                         moved(self.content[0], self.content[1], blocks))
        self.assertEqual(self.agents[1].content(), self.content[1])

    def test_one_block_of_any_length_is_written(self):
        for length in (1, 17, 4096, 65537, SIZE):
            self.setUp()
            self.check_write([(0, SIZE - length, length)])

    def test_one_block_of_any_length_is_read(self):
        for length in (1, 17, 4096, 65537, SIZE):
            self.setUp()
            self.check_read([(SIZE - length, 0, length)])

    def test_lists_of_blocks_are_written_to_their_places(self):
        for count in (2, 100, 1000):
            self.setUp()
            self.check_write(pieces(count, 20000, count))

    def test_lists_of_blocks_are_read_into_their_places(self):
        for count in (2, 100, 1000):
            self.setUp()
            self.check_read(pieces(count, 20000, count))

    def test_the_same_transfer_is_posted_again(self):
        blocks = pieces(50, 1000, 1)
        self.assertEqual(self.agents[0].move_on('WRITE', self.name(1), self.base[1], blocks, 20)[0],
                         'DONE')
        self.check_write(blocks)

    def test_a_notification_comes_with_the_bytes_of_its_transfer(self):
        blocks = [(0, 0, SIZE)]
        self.agents[0].start('move', 'WRITE', self.name(1), self.base[1], [blocks], [b'written'])
        self.assertEqual(self.agents[1].notified(1), [(self.name(0), b'written')])
        self.assertEqual(self.agents[1].content(), self.content[0])
        self.assertEqual(self.agents[0].result(), ['DONE'])
        self.assertEqual(self.agents[0].move('READ', self.name(1), self.base[1], [blocks],
                                             [b'read']), ['DONE'])
        self.assertEqual(self.agents[1].notified(1), [(self.name(0), b'read')])

    def test_notifications_of_many_transfers_at_once_come_once_each(self):
        count = 200 if ALL else 40
        lists = [[block] for block in pieces(count, 20000, 3)]
        notes = [[b'%d of %d' % (n, i) for n in range(count)] for i in range(2)]
        for i in range(2):
            self.agents[i].start('move', 'READ', self.name(1 - i), self.base[1 - i], lists,
                                 notes[i])
        for i in range(2):
            self.assertEqual(self.agents[i].result(), ['DONE'] * count)
        for i in range(2):
            self.assertEqual(sorted(self.agents[i].notified(count)),
                             sorted((self.name(1 - i), note) for note in notes[1 - i]))

    def test_notifications_of_any_length_come_without_a_transfer(self):
        notes = [bytes([n % 251]) * n for n in (0, 1, 4000, 4096, 5000, 300000)]
        self.agents[0].notify(self.name(1), notes)
        self.assertEqual(sorted(self.agents[1].notified(len(notes))),
                         sorted((self.name(0), note) for note in notes))

    @unittest.skipUnless(ALL, 'with --all')
    def test_notifications_that_nobody_takes_yet_all_come_in_the_end(self):
        # More than the plug-in keeps for a program that does not ask.
        notes = [bytes([n % 251]) * 300000 for n in range(300)]
        self.agents[0].notify(self.name(1), notes)
        self.agents[0].notify(self.name(1), [b'%d' % n for n in range(3000)])
        time.sleep(3)
        found = self.agents[1].notified(len(notes) + 3000)
        self.assertEqual(sorted(text for _, text in found),
                         sorted(notes + [b'%d' % n for n in range(3000)]))

    def test_a_long_notification_comes_with_its_transfer(self):
        note = os.urandom(20000)
        self.assertEqual(self.agents[0].move('WRITE', self.name(1), self.base[1],
                                             [[(0, 0, 100000)]], [note]), ['DONE'])
        self.assertEqual(self.agents[1].notified(1), [(self.name(0), note)])

    def test_an_agent_moves_bytes_within_itself(self):
        for operation, length in (('WRITE', 1000), ('READ', 1000), ('WRITE', SIZE // 2)):
            self.setUp()
            own = self.content[0]
            self.assertEqual(self.agents[0].move(operation, self.name(0), self.base[0],
                                                 [[(0, SIZE // 2, length)]], [b'own']), ['DONE'])
            copied = (SIZE // 2, 0, length) if operation == 'WRITE' else (0, SIZE // 2, length)
            self.assertEqual(self.agents[0].content(), moved(own, own, [copied]))
            self.assertEqual(self.agents[0].notified(1), [(self.name(0), b'own')])

    @unittest.skipUnless(ALL, 'with --all')
    def test_more_blocks_than_one_operation_takes_are_moved(self):
        self.check_write(pieces(BLOCKS_MAX + 1000, 40, 5))
        self.setUp()
        self.check_read(pieces(2 * BLOCKS_MAX + 1, 20, 6))


class OverShm(Transfers, unittest.TestCase):
    """WEFT over shared memory."""
    environment = {'WEFT_PROVIDER': 'shm'}


class OverTcp(Transfers, unittest.TestCase):
    """WEFT over tcp."""
    environment = {'WEFT_PROVIDER': 'tcp'}


class ByUcx(Transfers, unittest.TestCase):
    """NIXL's own backend: what the same script makes of it."""
    backend = 'UCX'


class Four(Agents):
    """Four agents, each with all others."""
    count = 4

    def gathered(self):
        """What each has when it has the part of each."""
        part = SIZE // self.count
        return b''.join(content[i * part:(i + 1) * part] for i, content in enumerate(self.content))

    def test_all_write_to_all_and_are_told(self):
        part = SIZE // self.count
        for j in range(1, self.count):
            for i in range(self.count):
                to = (i + j) % self.count
                self.agents[i].start('move', 'WRITE', self.name(to), self.base[to],
                                     [[(i * part, i * part, part)]], [b'part %d' % i])
            for agent in self.agents:
                self.assertEqual(agent.result(), ['DONE'])
        for j, agent in enumerate(self.agents):
            others = [i for i in range(self.count) if i != j]
            self.assertEqual(sorted(agent.notified(len(others))),
                             sorted((self.name(i), b'part %d' % i) for i in others))
            self.assertEqual(agent.content(), self.gathered())

    def test_all_read_from_all_at_once(self):
        part = SIZE // self.count
        for i in range(self.count):
            self.agents[i].start('read_all', [
                (self.name(j), self.base[j], [(j * part, j * part, part)])
                for j in range(self.count) if j != i])
        for i in range(self.count):
            self.assertEqual(self.agents[i].result(), ['DONE'] * (self.count - 1))
            self.assertEqual(self.agents[i].content(), self.gathered())


class FourOverShm(Four, unittest.TestCase):
    """WEFT over shared memory."""
    environment = {'WEFT_PROVIDER': 'shm'}


@unittest.skipUnless(ALL, 'with --all')
class FourOverTcp(Four, unittest.TestCase):
    """WEFT over tcp."""
    environment = {'WEFT_PROVIDER': 'tcp'}


if __name__ == '__main__':
    unittest.main()
