# SPDX-License-Identifier: BSD-2-Clause
"""More transfers and notifications than an agent has room for at once."""
import os
import signal
import time
import unittest

import agents
from test_device import DRIVER, in_software
from test_transfers import SIZE, moved, pieces

# What an agent keeps for another one: lists of some 18000 blocks at once, or some 110 bodies.
BYTES = {'WEFT_PEER_BYTES': '1M'}
# Longer than an agent is stopped here.
LOST = {'WEFT_LOST': '60s'}
# So many that no pause makes room for them.
TOO_MANY = [(2 * i, 2 * i, 1) for i in range(60000)]


class Load:
    """What holds over every provider."""
    provider = ''

    def agent(self, name, memory=agents.HostMemory, **parameters):
        """A new agent, which ends with the test."""
        agent = agents.Process(name, parameters=parameters, size=SIZE, memory=memory,
                               environment={'WEFT_PROVIDER': self.provider, 'WEFT_CUDA': DRIVER,
                                            **BYTES, **LOST})
        self.addCleanup(agent.end)
        return agent.ready()

    def setUp(self):
        self.there = self.agent('there')
        self.metadata, self.base = self.there.describe()

    def meeting(self, name, memory=agents.HostMemory, **parameters):
        """A new agent that has met the other one."""
        agent = self.agent(name, memory, **parameters)
        agent.facing(agents.HostMemory)
        agent.meet(self.metadata)
        self.assertEqual(agent.move('WRITE', 'there', self.base, [[(0, 0, 1)]], [b'met']), ['DONE'])
        self.assertEqual(self.there.notified(1), [(name, b'met')])
        return agent

    def check_writes(self, here, count, blocks):
        """All of @count writes of @blocks at once arrive, with their notifications."""
        here.fill(1)
        self.there.fill(2)
        before, written = self.there.content(), here.content()
        notes = [b'%d' % n for n in range(count)]
        self.assertEqual(here.move('WRITE', 'there', self.base, [blocks] * count, notes),
                         ['DONE'] * count, here.printed())
        self.assertEqual(sorted(self.there.notified(count)), sorted(('here', n) for n in notes))
        self.assertEqual(self.there.content(),
                         moved(before, written, [(there, mine, n) for mine, there, n in blocks]))

    def test_writes_of_more_blocks_than_the_owner_has_room_for_all_arrive(self):
        self.check_writes(self.meeting('here'), 40, pieces(2000, 2000, 9))

    @in_software
    def test_a_write_of_many_pieces_of_memory_arrives_where_there_is_room_for_few(self):
        self.there.deregister()
        self.there.register(64)
        self.metadata, self.base = self.there.describe()
        # None of the blocks lies in two pieces.
        self.check_writes(self.meeting('here', agents.DeviceMemory), 2, pieces(2048, 2000, 9))

    @in_software
    def test_writes_of_more_bodies_than_the_owner_has_room_for_all_arrive(self):
        self.check_writes(self.meeting('here', agents.DeviceMemory), 40, pieces(100, 2000, 9))

    def test_notifications_that_outrun_an_agent_come_once_each(self):
        here = self.meeting('here')
        notes = [b'%d' % n for n in range(20000)]
        os.kill(self.there.process.pid, signal.SIGSTOP)
        try:
            here.notify('there', notes)
        finally:
            os.kill(self.there.process.pid, signal.SIGCONT)
        self.assertEqual(sorted(self.there.notified(len(notes))),
                         sorted(('here', note) for note in notes))
        self.assertNotIn('notification fails', here.printed())

    def test_a_write_that_is_always_refused_fails_in_its_time_and_holds_up_no_other(self):
        hurried = self.meeting('hurried', timeout_ms='15000')
        # So many others that some of them are posted after the first refusal.
        others = [[(0, 0, 1)]] * 300
        begun = time.monotonic()
        states = hurried.move('WRITE', 'there', self.base, [TOO_MANY] + others)
        self.assertEqual(states, ['nixlBackendError'] + ['DONE'] * len(others))
        self.assertLess(time.monotonic() - begun, agents.LIMIT_S)
        self.assertIn('RESOURCE_EXHAUSTED', hurried.printed())

    def test_a_write_that_is_always_refused_is_given_up(self):
        here = self.meeting('here')
        refused, _ = here.give_up('WRITE', 'there', self.base, TOO_MANY)
        self.assertLessEqual(refused, 1)
        self.assertLess(here.deregister(), agents.LIMIT_S)


class OverShm(Load, unittest.TestCase):
    """WEFT over shared memory."""
    provider = 'shm'


class OverTcp(Load, unittest.TestCase):
    """WEFT over tcp."""
    provider = 'tcp'


if __name__ == '__main__':
    unittest.main()
