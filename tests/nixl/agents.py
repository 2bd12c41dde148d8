# SPDX-License-Identifier: BSD-2-Clause
"""Agents of NIXL, each in a process of its own, that a test tells what to do."""
import ctypes
import importlib
import itertools
import multiprocessing
import os
import signal
import tempfile
import time
import traceback

MODULE = os.environ.get('NIXL_TESTS_MODULE', 'nixl_cu13')
# A limit of what should take no time: whoever waits so long waits for ever.
LIMIT_S = 60


class Lost(Exception):
    """The process of an agent is gone."""


class Refused(Exception):
    """An agent could not do what it was told; the message has its exception."""


class HostMemory:
    """A buffer of the host."""
    kind = 'DRAM'
    device = 0

    def __init__(self, size):
        numpy = importlib.import_module('numpy')
        self.buffer = numpy.zeros(size, numpy.uint8)
        self.base = self.buffer.ctypes.data

    def set(self, content):
        """Write the whole buffer."""
        self.buffer[:] = content

    def get(self):
        """Read the whole buffer."""
        return self.buffer.tobytes()


class DeviceMemory:
    """A buffer of a CUDA device, by the driver that WEFT_CUDA names, else the machine's own."""
    kind = 'VRAM'
    device = int(os.environ.get('NIXL_TESTS_DEVICE', '0'))

    def __init__(self, size, allocate=('cuMemAlloc_v2',)):
        self.driver = ctypes.CDLL(os.environ.get('WEFT_CUDA', 'libcuda.so.1'))
        self.size = size
        context, memory = ctypes.c_void_p(), ctypes.c_void_p()
        self.call('cuInit', 0)
        self.call('cuDevicePrimaryCtxRetain', ctypes.byref(context), self.device)
        self.call('cuCtxSetCurrent', context)
        self.call(allocate[0], ctypes.byref(memory), ctypes.c_size_t(size), *allocate[1:])
        self.base = memory.value

    def call(self, function, *arguments):
        """Call the driver."""
        code = getattr(self.driver, function)(*arguments)
        if code:
            raise OSError('%s says %d' % (function, code))

    def set(self, content):
        """Write the whole buffer."""
        self.call('cuMemcpyHtoD_v2', ctypes.c_void_p(self.base), content.tobytes(),
                  ctypes.c_size_t(self.size))

    def get(self):
        """Read the whole buffer."""
        content = ctypes.create_string_buffer(self.size)
        self.call('cuMemcpyDtoH_v2', content, ctypes.c_void_p(self.base),
                  ctypes.c_size_t(self.size))
        return content.raw


class Agent:
    """What an agent's process does: one agent, and one buffer that is registered."""

    def __init__(self, name, backend, parameters, size, memory):
        self.nixl = importlib.import_module(MODULE + '._api')
        self.numpy = importlib.import_module('numpy')
        config = self.nixl.nixl_agent_config(
            backends=[], sync_mode=self.nixl.nixl_thread_sync_t.NIXL_THREAD_SYNC_RW)
        self.agent = self.nixl.nixl_agent(name, config)
        self.agent.create_backend(backend, parameters)
        self.backend = backend
        self.size = size
        self.memory = memory(size)
        self.base = self.memory.base
        self.there = self.memory
        self.registered = None
        self.register()

    def facing(self, memory):
        """Say of what class memory of other agents is, if not of the same."""
        self.there = memory

    def register(self, count=1):
        """Register the buffer, in @count pieces."""
        piece = self.size // count
        self.registered = self.agent.register_memory(
            [(self.base + i * piece, piece, self.memory.device, '') for i in range(count)],
            self.memory.kind)

    def deregister(self):
        """Deregister it; how long that took."""
        begun = time.monotonic()
        self.agent.deregister_memory(self.registered)
        return time.monotonic() - begun

    def describe(self):
        """What other agents need: metadata, and where the buffer is."""
        return bytes(self.agent.get_agent_metadata()), self.base

    def meet(self, metadata):
        """Load another agent.  Its name."""
        name = self.agent.add_remote_agent(metadata)
        return name.decode() if isinstance(name, bytes) else name

    def forget(self, name):
        """Unload another agent."""
        self.agent.remove_remote_agent(name)

    def forget_what_is_left(self, name):
        """Unload an agent that NIXL itself may have unloaded, when it was found gone."""
        try:
            self.forget(name)
        except Exception:  # nothing is left
            pass

    def connect(self, name):
        """Meet the other agent before the first transfer."""
        self.agent.make_connection(name)

    def fill(self, seed):
        """Fill the buffer with what only @seed says."""
        self.memory.set(self.numpy.random.default_rng(seed).integers(
            0, 256, self.size, self.numpy.uint8))

    def content(self):
        """The bytes of the buffer."""
        return self.memory.get()

    def begin(self, operation, to, base, blocks, note=None):
        """Begin a transfer of @blocks, (here, there, bytes) each.  Its handle."""
        here = self.agent.get_xfer_descs([(self.base + b[0], b[2], self.memory.device)
                                          for b in blocks], self.memory.kind)
        there = self.agent.get_xfer_descs([(base + b[1], b[2], self.there.device)
                                           for b in blocks], self.there.kind)
        return self.agent.initialize_xfer(operation, here, there, to,
                                          *([] if note is None else [note]))

    def finish(self, handles):
        """Post transfers, and wait for their ends.  How each ended: DONE, ERR or an exception."""
        states = [self.state(self.agent.transfer, handle) for handle in handles]
        until = time.monotonic() + LIMIT_S
        while 'PROC' in states and time.monotonic() < until:
            states = [self.state(self.agent.check_xfer_state, handle) if state == 'PROC' else state
                      for handle, state in zip(handles, states)]
        for handle in handles:
            try:
                handle.release()
            except Exception:  # it is under way, and goes on by itself
                pass
        return states

    @staticmethod
    def state(ask, handle):
        """The state of a transfer that @ask tells, or the name of its exception."""
        try:
            return ask(handle)
        except Exception as error:
            return type(error).__name__

    def move(self, operation, to, base, lists, notes=()):
        """Make a transfer of each of @lists, all at once.  How each ended."""
        notes = list(notes) + [None] * (len(lists) - len(notes))
        return self.finish([self.begin(operation, to, base, blocks, note)
                            for blocks, note in zip(lists, notes)])

    def read_all(self, transfers):
        """Read of several agents at once.  How each of @transfers, (to, base, blocks), ended."""
        return self.finish([self.begin('READ', *transfer) for transfer in transfers])

    def move_on(self, operation, to, base, blocks, again=1000000):
        """Make a transfer again and again until one fails.  How it failed, how many there were,
        and how long the last one took."""
        for count in range(again):
            begun = time.monotonic()
            state, = self.move(operation, to, base, [blocks])
            if state != 'DONE':
                return state, count, time.monotonic() - begun
        return 'DONE', again, 0.0

    def deregister_under_way(self, operation, to, base, blocks):
        """Begin a transfer, and deregister the memory here.  How the transfer ended."""
        handle = self.begin(operation, to, base, blocks)
        self.agent.transfer(handle)
        self.deregister()
        return self.state(self.agent.check_xfer_state, handle)

    def give_up(self, operation, to, base, blocks):
        """Begin a transfer, and release it.  How often that was refused, and how long it took."""
        handle = self.begin(operation, to, base, blocks)
        self.agent.transfer(handle)
        begun = time.monotonic()
        for refused in itertools.count():
            try:
                handle.release()
                return refused, time.monotonic() - begun
            except Exception:  # it can't be given up yet
                time.sleep(0.001)

    def give_up_posted_again(self, operation, to, base, blocks):
        """Begin a transfer, release it, and if that is refused post it again and release it once
        more.  What the second post said; None: there was none."""
        handle = self.begin(operation, to, base, blocks)
        self.agent.transfer(handle)
        try:
            handle.release()
            return None
        except Exception:  # it can't be given up yet
            said = self.state(self.agent.transfer, handle)
        handle.release()
        return said

    def meet_nonsense(self, metadata):
        """Load what may be no agent's metadata.  Whether that was refused."""
        try:
            self.forget(self.meet(metadata))
            return False
        except Exception:  # as it should be
            return True

    def parameters(self):
        """The parameters that the plug-in says it has."""
        return self.agent.get_plugin_params(self.backend)

    def notify(self, to, notes):
        """Send notifications that are bound to no transfer."""
        for note in notes:
            self.agent.send_notif(to, note)

    def notified(self, count):
        """Wait for @count notifications.  All that have come, as pairs of agent and text."""
        found = []
        until = time.monotonic() + LIMIT_S
        while len(found) < count and time.monotonic() < until:
            for name, texts in self.agent.get_new_notifs().items():
                found += [(name if isinstance(name, str) else name.decode(), text)
                          for text in texts]
            time.sleep(0.001)
        return found


def serve(pipe, log, end, *given):
    """Make @end of what is given, and do what comes by the pipe, as long as it is there; what is printed goes to @log."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    agent = None
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            if agent is None:
                agent = end(*given)
            pipe.send((True, getattr(agent, method)(*arguments) if method else None))
        except Exception:
            pipe.send((False, traceback.format_exc()))


class Process:
    """An agent's process, as a test sees it; or that of another @end, which is made of the backend."""

    def __init__(self, name, backend='WEFT', parameters=None, size=1 << 20, environment=None,
                 memory=HostMemory, end=None):
        made = (end, backend) if end else (Agent, name, backend, parameters or {}, size, memory)
        before = dict(os.environ)
        self.folder = tempfile.TemporaryDirectory(prefix='nixl-tests-')
        self.log = os.path.join(self.folder.name, 'log')
        context = multiprocessing.get_context('spawn')
        os.environ.update(environment or {})
        if backend != 'WEFT':
            # A backend of NIXL's own is found beside NIXL alone: it looks for libraries from there.
            os.environ.pop('NIXL_PLUGIN_DIR', None)
        try:
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=serve, daemon=True,
                                           args=(other, self.log, *made))
            self.process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
        other.close()
        self.name = name
        self.start('')

    def start(self, method, *arguments):
        """Tell the agent to do something."""
        try:
            self.pipe.send((method, arguments))
        except OSError as error:
            raise Lost(self.name) from error

    def result(self):
        """Wait until the agent has done it.  What it says."""
        if not self.pipe.poll(2 * LIMIT_S):
            raise TimeoutError('agent %s does not answer\n%s' % (self.name, self.printed()))
        try:
            good, said = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise Lost(self.name) from error
        if not good:
            raise Refused(said + self.printed())
        return said

    def printed(self):
        """What the process has printed."""
        try:
            with open(self.log, encoding='utf-8', errors='replace') as text:
                return text.read()
        except FileNotFoundError:
            return ''

    def ready(self):
        """Wait until the agent is there."""
        self.result()
        return self

    def __getattr__(self, method):
        def call(*arguments):
            self.start(method, *arguments)
            return self.result()
        return call

    def kill(self):
        """End the process as a crash does."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join(LIMIT_S)

    def end(self):
        """End the process."""
        self.pipe.close()
        self.process.join(2)
        if self.process.is_alive():
            self.kill()
        self.folder.cleanup()
