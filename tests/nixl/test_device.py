# SPDX-License-Identifier: BSD-2-Clause
"""Memory of a GPU: by a driver of CUDA in software, which the build of weft has for its tests, and by
the machine's own where it has a GPU."""
import os
import unittest

import agents
from test_transfers import ALL, SIZE, moved, pieces

DRIVER = os.path.join(os.environ.get('NIXL_TESTS_BUILD', ''), 'tests', 'cuda', 'fake', '.libs',
                      'libcuda.so.1')
in_software = unittest.skipUnless(os.path.exists(DRIVER), 'make check has not built the driver')
on_a_gpu = unittest.skipUnless(os.path.exists('/dev/nvidia0'), 'this machine has no GPU')


class Devices:
    """What holds over every provider."""
    provider = ''
    driver = {'WEFT_CUDA': DRIVER, 'NIXL_TESTS_DEVICE': '1'}

    def agent(self, name, memory):
        """A new agent with @memory, which ends with the test."""
        environment = {'WEFT_PROVIDER': self.provider, **self.driver}
        agent = agents.Process(name, size=SIZE, environment=environment, memory=memory)
        self.addCleanup(agent.end)
        return agent.ready()

    def check(self, here, there):
        """Blocks get from memory of one class to that of another, and back."""
        mover, owner = self.agent('mover', here), self.agent('owner', there)
        metadata, base = owner.describe()
        mover.meet(metadata)
        mover.facing(there)
        for operation in ('WRITE', 'READ'):
            for blocks in ([(0, 0, SIZE)], pieces(30, 100000, 1)):
                mover.fill(1)
                owner.fill(2)
                mine, theirs = mover.content(), owner.content()
                self.assertEqual(mover.move(operation, 'owner', base, [blocks], [b'moved']),
                                 ['DONE'], mover.printed())
                self.assertEqual(owner.notified(1), [('mover', b'moved')])
                if operation == 'READ':
                    self.assertEqual(mover.content(), moved(mine, theirs, blocks))
                else:
                    back = [(there, here, length) for here, there, length in blocks]
                    self.assertEqual(owner.content(), moved(theirs, mine, back))
        return mover

    def test_blocks_get_from_device_to_device(self):
        mover = self.check(agents.DeviceMemory, agents.DeviceMemory)
        _, base = mover.describe()
        with self.assertRaises(agents.Refused):
            mover.move('WRITE', 'mover', base, [[(0, SIZE // 2, 1000)]])
        self.assertIn('not copied within one agent', mover.printed())

    def test_managed_memory_is_refused_as_a_gpu_s(self):
        agent = agents.Process('managed', memory=Managed, environment=self.driver)
        self.addCleanup(agent.end)
        with self.assertRaises(agents.Refused) as refused:
            agent.ready()
        self.assertIn("is no GPU's, CUDA says", str(refused.exception))

    def test_blocks_get_from_device_to_host(self):
        self.check(agents.DeviceMemory, agents.HostMemory)

    def test_blocks_get_from_host_to_device(self):
        self.check(agents.HostMemory, agents.DeviceMemory)


@in_software
class OverShm(Devices, unittest.TestCase):
    """WEFT over shared memory."""
    provider = 'shm'


@in_software
@unittest.skipUnless(ALL, 'with --all')
class OverTcp(Devices, unittest.TestCase):
    """WEFT over tcp."""
    provider = 'tcp'


@on_a_gpu
class OfTheMachineOverShm(Devices, unittest.TestCase):
    """A GPU of the machine, over shared memory."""
    provider = 'shm'
    driver = {}


@on_a_gpu
class OfTheMachineOverTcp(Devices, unittest.TestCase):
    """A GPU of the machine, over tcp."""
    provider = 'tcp'
    driver = {}


class NoDevice(unittest.TestCase):
    """A process without CUDA."""

    def test_memory_of_a_gpu_is_refused(self):
        agent = agents.Process('without', memory=NoMemory)
        self.addCleanup(agent.end)
        with self.assertRaises(agents.Refused) as refused:
            agent.ready()
        self.assertIn('no CUDA in this process', str(refused.exception))


class Managed(agents.DeviceMemory):
    """A buffer that CUDA moves between the host and a device."""

    def __init__(self, size):
        super().__init__(size, ('cuMemAllocManaged', 1))   # CU_MEM_ATTACH_GLOBAL


class NoMemory(agents.HostMemory):
    """A buffer of the host that is said to be a GPU's."""
    kind = 'VRAM'


if __name__ == '__main__':
    unittest.main()
