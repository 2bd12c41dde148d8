# SPDX-License-Identifier: BSD-2-Clause
"""weft beside itself with one thing changed, and the published result that each
stands for.  The ratio is what the thing is worth; none has a bar.

What cannot be had here: registration that pins pages (no provider of this kind of
host does; it needs an RDMA card), networks faster or slower than each other, and
more than two processors.
"""

from programs import KIB, MIB, size_text
from rows import Row, calls, count, p50, rate, summed


def tensor(size, *options, env=None, provider="tcp"):
    return lambda p: rate(p.weft("--sizes", size_text(size), *options, provider=provider, env=env))


def registration():
    said = "AR-gRPC 2018, pinned buffer pool; pinning itself needs an RDMA card"
    for provider in ("tcp", "shm"):
        for size in (64 * KIB, MIB, 16 * MIB):
            yield Row("ablation", "memory of the pool", provider, size, "MB/s", "of the user",
                      tensor(size, "--memory", "pool", provider=provider),
                      tensor(size, "--memory", "user", provider=provider), stands_for=said)


def in_flight():
    said = "mt-verbs 2021, 40 request slots: 1.48 x; with 50 to 200 hosts there"
    for window in (2, 4, 8, 16, 40):
        yield Row("ablation", f"calls, {window} in flight", "tcp", 0, "1/s", "1 in flight",
                  calls("tcp", count, "--window", str(window)),
                  calls("tcp", count, "--window", "1"), stands_for=said)


def packing():
    said = "RDMA-TensorFlow 0.9.1, coalescing of small messages"
    for test, size in (("call", 0), ("message", 8), ("message", 512)):
        def ours(p, env, test=test, size=size):
            return count(p.weft("--test", test, "--sizes", str(size), "--window", "64",
                                provider="tcp", env=env))
        yield Row("ablation", f"{test}s packed", "tcp", size, "1/s", "each alone",
                  lambda p, ours=ours: ours(p, None),
                  lambda p, ours=ours: ours(p, {"WEFT_PACK_BYTES": "1"}), stands_for=said)


def ways():
    said = "AR-gRPC 2018, adaptive protocol: eager and rendezvous by size"
    for provider in ("tcp", "shm"):
        for size in (KIB, 16 * KIB, 64 * KIB, MIB):
            for name, env in (("eager only", {"WEFT_EAGER_BYTES": "1M"}),
                              ("pull only", {"WEFT_EAGER_BYTES": "1"})):
                def ours(p, env, provider=provider, size=size):
                    return p50(p.weft("--sizes", size_text(size), provider=provider, env=env))
                yield Row("ablation", "adaptive", provider, size, "us", name,
                          lambda p, ours=ours: ours(p, None),
                          lambda p, ours=ours, env=env: ours(p, env), more_is_better=False,
                          stands_for=said)


def chunks():
    said = "AR-gRPC 2018, chunks in a pipeline: 4 MB; its optimum is that of a card"
    for chunk, depth in (("256K", 1), ("256K", 4), ("1M", 1), ("1M", 4), ("4M", 1), ("4M", 4),
                         ("64M", 1)):
        env = {"WEFT_CHUNK_BYTES": chunk, "WEFT_DEPTH": str(depth)}
        yield Row("ablation", "the provider's own chunk", "tcp", 16 * MIB, "MB/s",
                  f"{chunk}, {depth} at once", tensor(16 * MIB, "--window", "1"),
                  tensor(16 * MIB, "--window", "1", env=env), stands_for=said)


def waiting():
    said = "gRPC over RDMA 2016, polling and events; a processor of one's own there"
    for name, spin in (("sleep", "0"), ("spin", "1s")):
        env = {"WEFT_SPIN": spin}
        yield Row("ablation", "hybrid, empty call", "tcp", 0, "us", name, calls("tcp", p50),
                  calls("tcp", p50, env=env), more_is_better=False, stands_for=said)
        yield Row("ablation", "hybrid, its processor", "tcp", 0, "us", name,
                  calls("tcp", lambda r: r["latency_us"]["cpu"]),
                  calls("tcp", lambda r: r["latency_us"]["cpu"], env=env), more_is_better=False,
                  stands_for=said)


def slots():
    """2 x 2: static registration and request slots, over the number of peers."""
    said = "mt-verbs 2021, the two apart, which its authors left open; processes of one host"
    for peers in (1, 10, 50, 200):
        def ours(p, memory, window, peers=peers):
            return summed(p.weft_crowd(1, peers, "--sizes", "64K", "--memory", memory,
                                       "--window", str(window), provider="tcp"))
        for memory, window in (("pool", 1), ("user", 40), ("pool", 40)):
            yield Row("slots", f"{peers} peers, {memory}, {window}", "tcp", 64 * KIB, "1/s",
                      "user, 1 in flight",
                      lambda p, ours=ours, memory=memory, window=window: ours(p, memory, window),
                      lambda p, ours=ours: ours(p, "user", 1), stands_for=said)


def all_ablations():
    for part in (registration, in_flight, packing, ways, chunks, waiting, slots):
        yield from part()
