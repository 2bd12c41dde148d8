# SPDX-License-Identifier: BSD-2-Clause
"""gloo_peer: what all_reduce does by weft, done by torch.distributed over gloo or another backend.

It starts RANKS processes, each with one thread; rank 0 prints how long each sum took there, or each
step of a training."""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time

WARM_COUNT = 10


def summing(torch, dist, size):
    """A sum of @size bytes."""
    numbers = torch.zeros(size // 4, dtype=torch.float32)
    return lambda: dist.all_reduce(numbers)


def training(torch, size):
    """A step of a model with @size bytes of parameters, and few numbers to compute with."""
    width = int((size / 4 / 4) ** .5)
    model = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Sequential(*[torch.nn.Linear(width, width, bias=False) for _ in range(4)]))
    optimizer = torch.optim.SGD(model.parameters(), .1)
    batch = torch.ones(1, width)

    def step():
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return step


def measure(options):
    """One process of the group."""
    import torch  # pylint: disable=import-outside-toplevel
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    dist.init_process_group(options.backend, timeout=datetime.timedelta(seconds=60))
    step = training(torch, options.size) if options.train else summing(torch, dist, options.size)

    def timed_step():
        start = time.perf_counter()
        step()
        return time.perf_counter() - start

    for _ in range(WARM_COUNT):
        warm = timed_step()
    rounds = torch.tensor([int(options.seconds / warm) + 5])
    dist.broadcast(rounds, 0)
    start = time.perf_counter()
    took = sorted(timed_step() for _ in range(int(rounds)))
    seconds = time.perf_counter() - start
    if dist.get_rank() == 0:
        print(json.dumps({"test": "gloo_peer", "bytes": options.size,
                          "latency_us": {"p50": took[len(took) // 2] * 1e6},
                          "messages_per_s": len(took) / seconds}))
    dist.barrier()
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-n", dest="ranks", type=int, default=4)
    parser.add_argument("-s", dest="size", type=int, default=4096)
    parser.add_argument("-t", dest="seconds", type=float, default=1)
    parser.add_argument("-b", dest="backend", default="gloo")
    parser.add_argument("--train", action="store_true")
    options = parser.parse_args()
    if "RANK" in os.environ:
        measure(options)
        return 0
    env = {"WORLD_SIZE": str(options.ranks), "MASTER_ADDR": "127.0.0.1",
           "MASTER_PORT": os.environ.get("BENCH_PORT", "29512"), "GLOO_SOCKET_IFNAME": "lo",
           "OMP_NUM_THREADS": "1"}
    members = [subprocess.Popen([sys.executable, *sys.argv],
                                env={**os.environ, **env, "RANK": str(rank)})
               for rank in range(options.ranks)]
    return max(member.wait() for member in members)


if __name__ == "__main__":
    sys.exit(main())
