# SPDX-License-Identifier: BSD-2-Clause
"""nixl_peer: what `window -e get` and `window -e put` do by weft, done by NIXL with UCX, or with
another backend: one process reads bytes out of another's memory, or writes them there, in one
transfer at a time.

The memory, its blocks and the rounds that warm up are as in window.c, or it is memory of a CUDA
device.  A transfer is prepared once and posted again and again.  Both sides spin, each on a processor of its own unless
BENCH_FREE is set: one polls for completion, the other lets NIXL make progress.  The bytes are
compared once, after what is measured."""

import argparse
import base64
import ctypes
import json
import os
import subprocess
import sys
import time

try:
    from nixl._api import nixl_agent, nixl_agent_config
except ImportError:  # the wheel without the package that chooses one
    from nixl_cu13._api import nixl_agent, nixl_agent_config

WARM_COUNT = 8
APART = 2       # the owner's memory has so many times the bytes
PATTERN = 0x5a  # of the owner's bytes
OURS = 1        # of those that are written

# Calls between two looks whether the owner is still wanted.
PROGRESS_COUNT = 1000

libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


class Host:
    """Memory of the host."""
    kind = "DRAM"
    device = 0
    arguments = []  # of the other process, for memory of the same kind

    def memory(self, count, byte):
        """The address of @count bytes, whose pages have been touched."""
        at = libc.aligned_alloc(4096, (count // 4096 + 1) * 4096)
        if not at:
            sys.exit(f"nixl_peer: no memory for {count} bytes")
        self.fill(at, byte, count)
        return at

    def fill(self, at, byte, count):
        ctypes.memset(at, byte, count)

    def bytes(self, at, count):
        return ctypes.string_at(at, count)


class Device:
    """Memory of a CUDA device, by the driver alone."""
    kind = "VRAM"

    def __init__(self, number):
        self.device = number
        self.arguments = ["-d", str(number)]
        self.driver = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self.call("cuCtxSetCurrent", context)

    def call(self, function, *arguments):
        code = getattr(self.driver, function)(*arguments)
        if code:
            sys.exit(f"nixl_peer: {function} says {code}")

    def memory(self, count, byte):
        at = ctypes.c_void_p()
        self.call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(count))
        self.fill(at.value, byte, count)
        return at.value

    def fill(self, at, byte, count):
        self.call("cuMemsetD8_v2", ctypes.c_void_p(at), ctypes.c_ubyte(byte),
                  ctypes.c_size_t(count))
        self.call("cuCtxSynchronize")

    def bytes(self, at, count):
        copy = ctypes.create_string_buffer(count)
        self.call("cuMemcpyDtoH_v2", copy, ctypes.c_void_p(at), ctypes.c_size_t(count))
        return copy.raw


def pin(processors, place):
    if "BENCH_FREE" not in os.environ and place < len(processors):
        os.sched_setaffinity(0, [processors[place]])


def agent(name, backend):
    return nixl_agent(name, nixl_agent_config(enable_prog_thread=False, backends=[backend]))


def own(place, backend, count):
    """Own @count bytes of memory until the other process closes the pipe."""
    at = place.memory(count, PATTERN)
    me = agent("owner", backend)
    me.register_memory([(at, count, place.device, "")], place.kind)
    print(base64.b64encode(me.get_agent_metadata()).decode(), at, flush=True)
    if backend == "WEFT":  # which makes progress by itself
        sys.stdin.buffer.raw.read(1)
        return
    os.set_blocking(0, False)
    while sys.stdin.buffer.raw.read(1) is None:
        for _ in range(PROGRESS_COUNT):
            me.get_new_notifs()


class Side:
    """The process that moves the bytes: @blocks of them lie apart there, in reverse order."""

    def __init__(self, place, backend, metadata, there, count, blocks):
        self.place = place
        self.agent = agent("mover", backend)
        self.memory = place.memory(count, OURS)
        self.agent.register_memory([(self.memory, count, place.device, "")], place.kind)
        self.name = self.agent.add_remote_agent(base64.b64decode(metadata))
        each = count // blocks
        self.here = self.descriptors(each, [self.memory + i * each for i in range(blocks)])
        self.there = self.descriptors(each, [there + (blocks - 1 - i) * APART * each
                                             for i in range(blocks)])

    def descriptors(self, each, starts):
        return self.agent.get_xfer_descs([(at, each, self.place.device) for at in starts],
                                         self.place.kind)

    def prepared(self, way):
        return self.agent.initialize_xfer(way, self.here, self.there, self.name)

    def complete(self, transfer):
        state = self.agent.transfer(transfer)
        while state == "PROC":
            state = self.agent.check_xfer_state(transfer)
        if state != "DONE":
            sys.exit(f"nixl_peer: a transfer ended as {state}")


def compare(side, way, count):
    """End unless the bytes that moved are here, or, of a write, come back."""
    if way == "WRITE":
        side.place.fill(side.memory, 0, count)
        side.complete(side.prepared("READ"))
    expected = bytes([OURS if way == "WRITE" else PATTERN]) * count
    if side.place.bytes(side.memory, count) != expected:
        sys.exit("nixl_peer: bytes are wrong")


def measured(side, way, seconds):
    """Microseconds of each transfer."""
    transfer = side.prepared(way)
    for _ in range(WARM_COUNT):
        side.complete(transfer)
    us = []
    start = last = time.perf_counter()
    while last - start < seconds:
        side.complete(transfer)
        now = time.perf_counter()
        us.append((now - last) * 1e6)
        last = now
    return us


def move(place, backend, way, count, blocks, seconds):
    processors = sorted(os.sched_getaffinity(0))
    owner = subprocess.Popen([sys.executable, __file__, "own", "-s", str(APART * count),
                              "-b", backend, *place.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             preexec_fn=lambda: pin(processors, 1))
    pin(processors, 0)
    metadata, there = owner.stdout.readline().split()
    side = Side(place, backend, metadata, int(there), count, blocks)
    us = measured(side, way, seconds)
    compare(side, way, count)
    owner.stdin.close()
    owner.wait()
    us.sort()
    print(json.dumps({"test": "nixl", "way": way, "bytes": count, "count": len(us),
                      "latency_us": {"p50": us[(len(us) - 1) // 2]},
                      "bytes_per_s": len(us) * count / sum(us) * 1e6}))


def main():
    parser = argparse.ArgumentParser(prog="nixl_peer", description=__doc__)
    parser.add_argument("what", choices=["read", "write", "own"])
    parser.add_argument("-s", metavar="BYTES", type=int, default=1 << 20)
    parser.add_argument("-w", metavar="BLOCKS", type=int, default=1)
    parser.add_argument("-t", metavar="SECONDS", type=float, default=1)
    parser.add_argument("-b", metavar="BACKEND", default="UCX")
    parser.add_argument("-d", metavar="DEVICE", type=int, help="memory of that CUDA device")
    a = parser.parse_args()
    place = Host() if a.d is None else Device(a.d)
    if a.what == "own":
        own(place, a.b, a.s)
    else:
        move(place, a.b, a.what.upper(), a.s, a.w, a.t)
    sys.stdout.flush()
    os._exit(0)  # NIXL 1.5.1 crashes when the interpreter takes its objects apart


main()
