# SPDX-License-Identifier: BSD-2-Clause
"""torch_train: one process of a training by DistributedDataParallel, which torchrun starts.

usage: torch_train.py BACKEND STEPS      rank 0 prints JSON: steps_per_s, accuracy, digest of the
parameters, and what carried the gradients

Each process has images of its own, made up: the ten digits are points in space, and noise."""

import hashlib
import json
import re
import sys
import time

import torch
import torch.distributed as dist

PIXELS, WIDTH, DIGITS, BATCH = 784, 1024, 10, 32
NOISE = 6        # not all digits are told after 200 steps, nor too few
WARM_STEPS = 5   # PyTorch sorts its buckets anew after the first


def images(generator, count):
    """@count images and what they show."""
    points = torch.randn(DIGITS, PIXELS, generator=torch.Generator().manual_seed(0))
    shown = torch.randint(0, DIGITS, (count,), generator=generator)
    return points[shown] + NOISE * torch.randn(count, PIXELS, generator=generator), shown


def network():
    """The same in all processes."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(PIXELS, WIDTH), torch.nn.ReLU(),
                               torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(),
                               torch.nn.Linear(WIDTH, DIGITS))


def carried(backend):
    """By what this process's links to the others run."""
    if backend != "weft":
        return "sockets of its own"
    import weft.torch  # pylint: disable=import-outside-toplevel
    return ", ".join(sorted(set(re.findall(r": up on (\w+)", weft.torch.node().dump()))))


def main():
    backend, steps = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    dist.init_process_group(backend)
    rank = dist.get_rank()
    generator = torch.Generator().manual_seed(1 + rank)
    model = torch.nn.parallel.DistributedDataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), .02)
    for step in range(WARM_STEPS + steps):
        if step == WARM_STEPS:
            dist.barrier()
            begun = time.perf_counter()
        seen, shown = images(generator, BATCH)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(seen), shown).backward()
        optimizer.step()
    dist.barrier()
    seconds = time.perf_counter() - begun
    by = carried(backend)
    if rank == 0:
        seen, shown = images(torch.Generator().manual_seed(0), 1000)
        with torch.no_grad():
            told = model.module(seen).argmax(1)
        bits = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        print(json.dumps({"steps_per_s": steps / seconds,
                          "accuracy": (told == shown).float().mean().item(),
                          "digest": hashlib.sha256(bits).hexdigest(), "carried": by}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


main()
