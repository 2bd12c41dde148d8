# SPDX-License-Identifier: BSD-2-Clause
"""python_peer: what weft perf does, done by the package weft in two processes of Python.

Ways: manual, the thread that waits drives the node; asyncio, an event loop does; bulk, a threaded node
sends large tensors that are waited for one after the other."""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time

import numpy as np
import weft
import weft.aio

LIMIT = 60


def finish(operation):
    """Wait for an operation, in its own way."""
    operation.wait(LIMIT)


async def exchange(options, node, peer, here, wait):
    """Send and receive in turn, for a while.  How long each round took."""
    mine, theirs = ("ping", "pong") if here else ("pong", "ping")
    out = np.ones(options.size, np.uint8)
    back = np.zeros(options.size if options.way != "bulk" else 1, np.uint8)
    if options.way == "bulk" and not here:
        out, back = np.zeros(1, np.uint8), np.zeros(options.size, np.uint8)
    took, warm, until = [], 20, None
    while True:
        start = time.perf_counter()
        got = node.recv(1, theirs, into=back)
        if here:
            peer.send(1, mine, out)
            await wait(got)
        else:
            await wait(got)
            if back[0] == 2:
                return took
            peer.send(1, mine, out)
        took.append(time.perf_counter() - start)
        if here and len(took) == warm and not until:
            took, until = [], time.perf_counter() + options.seconds
        elif here and until and time.perf_counter() > until:
            out[0] = 2
            await wait(peer.send(1, mine, out))
            return took


async def measure(options, here):
    """One of the two processes."""
    threaded = options.way == "bulk"
    if options.way == "asyncio":
        async def wait(operation):
            await operation
    else:
        async def wait(operation):
            finish(operation)
    with weft.Node(manual=not threaded, timeout=LIMIT) as node:
        if options.way == "asyncio":
            weft.aio.attach(node)
        if here:
            with subprocess.Popen([sys.executable, *sys.argv, "--to", node.address],
                                  preexec_fn=lambda: place(1)) as other:
                place(0)
                got = node.recv(0, "address")
                await wait(got)
                took = await exchange(options, node, node.peer(got.result().tobytes().decode()),
                                      here, wait)
                finish(node.recv(0, "end"))
                other.wait(LIMIT)
            return took
        peer = node.peer(options.to)
        await wait(peer.send(0, "address", node.address.encode()))
        await exchange(options, node, peer, here, wait)
        finish(peer.send(0, "end", b"end"))
    return []


def place(which):
    """Let this process have a processor of its own, where there are two."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) > 1 and not os.environ.get("BENCH_FREE"):
        os.sched_setaffinity(0, {processors[which % len(processors)]})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", choices=("manual", "asyncio", "bulk"))
    parser.add_argument("-s", dest="size", type=int, default=8)
    parser.add_argument("-t", dest="seconds", type=float, default=1)
    parser.add_argument("--to", help="the address of the process that measures")
    options = parser.parse_args()
    took = sorted(asyncio.run(measure(options, not options.to)))
    if took:
        middle = took[len(took) // 2]
        print(json.dumps({"test": "python_peer", "bytes": options.size,
                          "latency_us": {"p50": middle * 1e6}, "messages_per_s": 1 / middle,
                          "bytes_per_s": options.size / middle}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
