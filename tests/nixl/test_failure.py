# SPDX-License-Identifier: BSD-2-Clause
"""Agents that die, start anew, give up memory or are told nonsense."""
import ctypes
import os
import signal
import time
import unittest

import agents

ALL = os.environ.get('NIXL_TESTS_ALL')
SIZE = 32 << 20
PAGE = 4096
# A dead process of this host is known at once, one elsewhere after WEFT_LOST, 3 s: the rest is for
# a busy machine.
SOON_S = 30
# Statuses of NIXL as its Python has them, of a peer that is gone, and of memory that is.
DEAD = ('nixlRemoteDisconnectError',)
GONE = ('nixlNotFoundError', 'nixlBackendError', 'nixlCancelledError', 'nixlCanceledError', 'ERR')


class Tensor(ctypes.Structure):
    """struct weft_tensor, of bytes in the host's memory."""
    _fields_ = [('data', ctypes.c_char_p), ('device_type', ctypes.c_int32),
                ('device', ctypes.c_int32), ('ndim', ctypes.c_int32), ('code', ctypes.c_uint8),
                ('bits', ctypes.c_uint8), ('lanes', ctypes.c_uint16),
                ('shape', ctypes.POINTER(ctypes.c_int64)), ('strides', ctypes.c_void_p),
                ('offset', ctypes.c_uint64)]


class Rogue:
    """A node of weft that is no agent."""

    def __init__(self, library):
        self.weft = ctypes.CDLL(library)
        self.node = ctypes.c_void_p()
        self.call('weft_node_open', None, ctypes.byref(self.node))

    def address(self):
        """The address of the node."""
        self.weft.weft_node_address.restype = ctypes.c_char_p
        return self.weft.weft_node_address(self.node)

    def call(self, function, *arguments):
        """Call a function of weft."""
        code = getattr(self.weft, function)(*arguments)
        if code:
            raise OSError('%s says %d' % (function, code))

    def abort(self, address, step):
        """Send a tensor of a step to the node at an address, and abort the step."""
        peer = ctypes.c_void_p()
        tensor = Tensor(b'x', 1, 0, 1, 1, 8, 1, (ctypes.c_int64 * 1)(1), None, 0)
        step = ctypes.c_uint64(step)
        self.call('weft_peer_open', self.node, address, ctypes.byref(peer))
        self.call('weft_send', peer, step, b'key', ctypes.c_size_t(3), ctypes.byref(tensor), None,
                  None)
        self.ping(peer)
        self.call('weft_step_abort', self.node, step, 10, b'')
        self.ping(peer)

    def ping(self, peer):
        """Wait until the peer has heard all that was said before."""
        op, status = ctypes.c_void_p(), ctypes.c_int()
        self.call('weft_ping', peer, None, ctypes.byref(op))
        self.call('weft_finish', op, ctypes.byref(status))


def address(metadata):
    """The address in metadata of an agent: the second line of what the plug-in says."""
    return metadata[metadata.index(b'weft '):].split(b'\n')[1]


class Two:
    """Two agents, which know each other."""
    environment = {}

    def agent(self, name, **more):
        """A new agent, which ends with the test."""
        agent = agents.Process(name, size=SIZE, environment=self.environment, **more)
        self.addCleanup(agent.end)
        return agent.ready()

    def setUp(self):
        self.here, self.there = self.agent('here'), self.agent('there')
        self.meet()

    def meet(self):
        """Let both agents know each other."""
        metadata, self.base = self.there.describe()
        self.here.meet(metadata)
        own, self.own_base = self.here.describe()
        self.there.meet(own)


class Failures(Two):
    """What holds over every provider."""

    def move_until_it_fails(self, operation):
        """Let transfers of the whole buffer go on, and return when some have ended."""
        self.here.move(operation, 'there', self.base, [[(0, 0, SIZE)]])
        self.here.start('move_on', operation, 'there', self.base, [(0, 0, SIZE)])
        time.sleep(0.3)

    def check_killed(self, operation):
        """A transfer to an agent that is killed fails soon, and touches nothing after that."""
        self.move_until_it_fails(operation)
        self.there.kill()
        killed = time.monotonic()
        state, _, _ = self.here.result()
        self.assertIn(state, DEAD, self.here.printed())
        self.assertLess(time.monotonic() - killed, SOON_S)
        self.here.fill(7)
        content = self.here.content()
        time.sleep(1)
        self.assertEqual(self.here.content(), content)

    def test_a_write_to_a_killed_agent_fails_soon(self):
        self.check_killed('WRITE')

    def test_a_read_of_a_killed_agent_fails_soon_and_its_memory_is_quiet(self):
        self.check_killed('READ')

    def test_a_writer_that_is_killed_leaves_memory_quiet(self):
        self.there.start('move_on', 'WRITE', 'here', self.own_base, [(0, 0, SIZE)])
        time.sleep(1)
        self.there.kill()
        time.sleep(2)  # a read of what it offered that goes on, if one did, would be seen below
        self.here.fill(7)
        content = self.here.content()
        time.sleep(1)
        self.assertEqual(self.here.content(), content)
        self.assertLess(self.here.deregister(), SOON_S)

    @unittest.skipUnless(ALL, 'with --all')
    def test_a_transfer_to_an_agent_that_is_stopped_fails_in_its_time(self):
        self.there = self.agent('slow')
        metadata, base = self.there.describe()
        hurried = self.agent('hurried', parameters={'timeout_ms': '2000'})
        hurried.meet(metadata)
        self.assertEqual(hurried.move('READ', 'slow', base, [[(0, 0, 1000)]]), ['DONE'])
        os.kill(self.there.process.pid, signal.SIGSTOP)
        try:
            begun = time.monotonic()
            state, = hurried.move('WRITE', 'slow', base, [[(0, 0, SIZE)]])
            self.assertNotIn(state, ('DONE', 'PROC'))
            self.assertLess(time.monotonic() - begun, SOON_S)
        finally:
            os.kill(self.there.process.pid, signal.SIGCONT)

    def test_an_agent_that_starts_anew_is_reached_again(self):
        self.assertEqual(self.here.move('WRITE', 'there', self.base, [[(0, 0, 1000)]]), ['DONE'])
        self.there.kill()
        state, _, _ = self.here.move_on('WRITE', 'there', self.base, [(0, 0, 1000)])
        self.assertIn(state, DEAD)
        self.here.forget_what_is_left('there')
        self.there = self.agent('there')
        self.there.fill(3)
        self.meet()
        self.here.fill(4)
        self.assertEqual(self.here.move('WRITE', 'there', self.base, [[(0, 0, SIZE)]], [b'again']),
                         ['DONE'])
        self.assertEqual(self.there.notified(1), [('here', b'again')])
        self.assertEqual(self.there.content(), self.here.content())

    def test_memory_that_its_owner_deregisters_fails_transfers_and_is_quiet(self):
        self.move_until_it_fails('WRITE')
        self.assertLess(self.there.deregister(), SOON_S)
        self.there.fill(5)
        content = self.there.content()
        state, _, took = self.here.result()
        self.assertIn(state, GONE, self.here.printed())
        self.assertLess(took, SOON_S)
        time.sleep(1)
        self.assertEqual(self.there.content(), content)

    def test_notifications_that_came_before_their_memory_is_deregistered_are_not_lost(self):
        # An agent whose own notifications fill what it keeps takes no more from its windows.
        self.there.notify('there', [bytes(15 << 20)] * 5)
        notes = [b'%d' % n for n in range(20)]
        self.assertEqual(self.here.move('WRITE', 'there', self.base, [[(0, 0, 1)]] * len(notes),
                                        notes), ['DONE'] * len(notes))
        self.there.deregister()
        found = self.there.notified(5 + len(notes))
        self.assertEqual(sorted(text for name, text in found if name == 'here'), sorted(notes))

    def test_memory_that_a_transfer_reads_into_is_deregistered_when_it_has_ended(self):
        self.here.deregister_under_way('READ', 'there', self.base, [(0, 0, SIZE)])
        self.here.fill(6)
        content = self.here.content()
        time.sleep(1)
        self.assertEqual(self.here.content(), content)

    def test_a_transfer_is_given_up_while_it_runs(self):
        self.there.fill(1)
        for _ in range(5):
            self.here.give_up('READ', 'there', self.base, [(0, 0, SIZE)])
        self.here.deregister()
        self.here.register()
        self.assertEqual(self.here.move('READ', 'there', self.base, [[(0, 0, SIZE)]]), ['DONE'])
        self.assertEqual(self.here.content(), self.there.content())

    def test_a_write_to_an_agent_that_is_stopped_is_given_up_and_moves_nothing_after_that(self):
        self.assertEqual(self.here.move('WRITE', 'there', self.base, [[(0, 0, SIZE)]]), ['DONE'])
        self.there.fill(1)
        self.here.fill(2)
        before, written = self.there.content(), self.here.content()
        os.kill(self.there.process.pid, signal.SIGSTOP)
        try:
            refused, took = self.here.give_up('WRITE', 'there', self.base, [(0, 0, SIZE)])
            self.assertLessEqual(refused, 1)
            self.assertLess(took, SOON_S)
            self.here.fill(3)
        finally:
            os.kill(self.there.process.pid, signal.SIGCONT)
        time.sleep(1)  # a read that goes on, if one did, would be seen below
        now = self.there.content()
        for at in range(0, SIZE, PAGE):
            page = slice(at, at + PAGE)
            if now[page] not in (before[page], written[page]):
                self.assertTrue(all(byte in either for byte, either in
                                    zip(now[page], zip(before[page], written[page]))))

    def test_a_read_that_is_given_up_and_posted_again_writes_nothing_after_its_release(self):
        self.there.fill(1)
        self.assertEqual(self.here.move('READ', 'there', self.base, [[(0, 0, SIZE)]]), ['DONE'])
        os.kill(self.there.process.pid, signal.SIGSTOP)
        try:
            self.assertIn(self.here.give_up_posted_again('READ', 'there', self.base,
                                                         [(0, 0, SIZE)]),
                          (None, 'nixlRepostActiveError'))
            self.here.fill(3)
            content = self.here.content()
        finally:
            os.kill(self.there.process.pid, signal.SIGCONT)
        time.sleep(1)
        self.assertEqual(self.here.content(), content)


class Descriptions(Two, unittest.TestCase):
    """What no provider changes."""

    def test_a_description_that_was_changed_on_its_way_harms_nobody(self):
        metadata, _ = self.there.describe()
        self.here.forget('there')
        # The plug-in's own bytes: of the agent up to NIXL's next word, and of memory at the end.
        begin = metadata.index(b'weft 2\n')
        own = [*range(begin, metadata.index(b'MemSection', begin) - 9),
               *range(metadata.rindex(b'tww'), len(metadata) - 1)]
        for i in own[::1 if ALL else 7]:
            self.here.meet_nonsense(metadata[:i] + bytes([metadata[i] ^ 0x5a]) + metadata[i + 1:])
        self.here.meet(metadata)
        self.assertEqual(self.here.move('WRITE', 'there', self.base, [[(0, 0, SIZE)]]), ['DONE'])

    def test_an_agent_that_gets_a_long_notification_cannot_stop_those_to_its_sender(self):
        library = os.path.join(os.environ['NIXL_TESTS_BUILD'], '.libs', 'libweft.so')
        rogue = agents.Process('rogue', library, end=Rogue).ready()
        self.addCleanup(rogue.end)
        sender = self.agent('sender')
        metadata, _ = sender.describe()
        self.here.meet(metadata)
        # The sender takes the node for the other agent.
        theirs, _ = self.there.describe()
        sender.meet(theirs.replace(address(theirs), rogue.address()))
        note = bytes(20000)
        sender.notify('there', [note])
        rogue.abort(address(metadata), 0)
        self.here.notify('sender', [note])
        self.assertEqual(sender.notified(1), [('here', note)])

    def test_parameters_make_the_node_and_wrong_ones_make_none(self):
        chosen = self.agent('chosen', parameters={'listen': '127.0.0.1:0', 'provider': 'tcp',
                                                  'timeout_ms': '30000', 'no_such': '1'})
        self.assertIn('no parameter no_such', chosen.printed())
        self.assertIn('timeout_ms', chosen.parameters())
        for name, text in (('timeout_ms', 'soon'), ('security', 'none at all'), ('workers', '99'),
                           ('listen', 'nowhere at all')):
            with self.assertRaises(agents.Refused, msg=name):
                self.agent('wrong', parameters={name: text})


class OverShm(Failures, unittest.TestCase):
    """WEFT over shared memory."""
    environment = {'WEFT_PROVIDER': 'shm'}


class OverTcp(Failures, unittest.TestCase):
    """WEFT over tcp; by --all all of it."""
    environment = {'WEFT_PROVIDER': 'tcp'}

    if not ALL:
        test_a_transfer_is_given_up_while_it_runs = None
        test_an_agent_that_starts_anew_is_reached_again = None
        test_a_writer_that_is_killed_leaves_memory_quiet = None


if __name__ == '__main__':
    unittest.main()
