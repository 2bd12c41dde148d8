# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified TensorFlow over grpc+weft beside its own gRPC, and the experiments of the systems
that did the same before: a group of rows for each.

What two processors and one machine cannot show: that more workers finish sooner, for they share
the processors; networks faster than each other, for both sides have the same loopback or cable;
pages that a card pins; and tens of hosts.  The ratio of a row says what weft is worth where all
else is equal, and the published one has a faster network in it, too."""

import models
from programs import KIB, MIB
from rows import Row
from tensorflow_tasks import Kind

GRPC = Kind()


def milliseconds(result):
    return result["p50_s"] * 1e3


def read_row(group, provider, size, reference_name, reference, bar=None, said=""):
    """A variable of the server read by a worker; times where the bytes hardly count."""
    words = {"sizes": [size], "servers": 1}

    def value(p, kind):
        seconds = p.tensorflow.step(kind, "pull", p.seconds, **words)["p50_s"]
        return size / seconds / 1e6 if size >= MIB else seconds * 1e6
    return Row(group, "variable read", provider, size, "MB/s" if size >= MIB else "us",
               reference_name, lambda p: value(p, Kind(provider)), lambda p: value(p, reference),
               bar, size >= MIB, said)


def reads():
    said = "S2: grpc+gdr 3400 MB/s and gRPC 500 between hosts (tensorflow#6116): 6.8"
    for provider, large, medium in (("shm", 8, 3), ("tcp", 3.5, 2)):
        for size, bar in ((256 * MIB, large), (16 * MIB, medium), (MIB, 1.3), (64 * KIB, 1),
                          (KIB, 1)):
            yield read_row("tensorflow", provider, size, "gRPC", GRPC, bar,
                           said if size > MIB else "")


def exchanges():
    """A step of a parameter server, whose gradients cost nothing."""
    sizes = 25 * [4 * MIB]
    for provider, bar in (("shm", 2.2), ("tcp", 1.4)):
        def run(p, kind, value):
            return value(p.tensorflow.step(kind, "train", p.seconds, sizes=sizes, servers=1))
        for name, value, least in (("25 variables, both ways", milliseconds, bar),
                                   ("processor time of that", lambda r: r["cpu_s"] * 1e3, 1)):
            yield Row("tensorflow", name, provider, sum(sizes), "ms", "gRPC",
                      lambda p, run=run, value=value, provider=provider:
                      run(p, Kind(provider), value),
                      lambda p, run=run, value=value: run(p, GRPC, value), least, False)


def sums():
    def run(p, provider):
        kind = Kind(provider, ps=0, workers=2, serve=False)
        return p.tensorflow.sum(kind, 64 * MIB, 5) * 1e3
    for provider in ("shm", "tcp"):
        yield Row("tensorflow", "AllReduce of 2 workers", provider, 64 * MIB, "ms", "gRPC",
                  lambda p, provider=provider: run(p, provider), lambda p: run(p, ""), 1.5, False)


# S0: gRPC over RDMA.  Seconds of its asynchronous training by the number of workers, all on one
# host and the server on another, by RDMA on FDR InfiniBand and by TCP on Gigabit Ethernet.
S0 = {1: (495.0, 1265.2), 2: (246.5, 631.6), 3: (146.9, 389.0), 4: (12.0, 377.1)}
S0_STEPS = 1000
CABLE_MBIT = 1000


def s0_said(workers):
    rdma, tcp = S0[workers]
    if workers == 4:
        return f"S0: {rdma} s by RDMA, which breaks its own trend, and {tcp} s by TCP"
    shared = "; here they share 2 processors" if workers > 1 else ""
    return (f"S0: {rdma} s by RDMA, {tcp} s by TCP on Gigabit Ethernet: {tcp / rdma:.2f}" + shared)


def trainings():
    """As S0 trained, fewer steps."""
    for hosts, provider, mbit in ((1, "shm", 0), (1, "tcp", 0), (2, "tcp", CABLE_MBIT)):
        def run(p, provider, workers, mbit=mbit):
            kind = Kind(provider, workers=max(S0), mbit=mbit)
            return p.tensorflow.training(kind, workers, S0_STEPS)["seconds"]
        where = f"MNIST, {hosts} host{'s' if hosts > 1 else ''}"
        for workers in S0:
            yield Row("tensorflow-s0", f"{where}, {workers} worker{'s' if workers > 1 else ''}",
                      provider, 0, "s", "gRPC",
                      lambda p, run=run, n=workers, provider=provider: run(p, provider, n),
                      lambda p, run=run, n=workers: run(p, "", n), None, False, s0_said(workers))
        for name, carrier in (("weft", provider), ("gRPC", "")):
            said = ("S0: 3.73 by RDMA and 2.18 by TCP, from 1 to 4 on each of 2 hosts; "
                    "not to be had on 2 processors")
            yield Row("tensorflow-s0", f"{where}, 4 for 1, {name}", provider, 0, "s", "1 worker",
                      lambda p, run=run, carrier=carrier: run(p, carrier, 4),
                      lambda p, run=run, carrier=carrier: run(p, carrier, 1), None, False, said)


# S1: AR-gRPC.

def payload_calls():
    """TF-gRPC-Bench's three tests, of tensors."""
    network = "AR-gRPC on InfiniBand against gRPC on its IP"
    for scheme, sizes in models.PAYLOADS.items():
        def run(p, kind, echo, sizes=sizes):
            return p.tensorflow.step(kind, "call", p.seconds, sizes=sizes, servers=1,
                                     echo=echo)["p50_s"]
        yield Row("tensorflow-s1", f"P2P-Latency {scheme}", "tcp", sum(sizes), "ms", "gRPC",
                  lambda p, run=run: run(p, Kind("tcp"), True) * 1e3,
                  lambda p, run=run: run(p, GRPC, True) * 1e3, None, False,
                  f"S1: {network}: 2.3" if scheme == "Skew" else "")
        yield Row("tensorflow-s1", f"P2P-Bandwidth {scheme}", "tcp", sum(sizes), "MB/s", "gRPC",
                  lambda p, run=run, sizes=sizes: sum(sizes) / run(p, Kind("tcp"), False) / 1e6,
                  lambda p, run=run, sizes=sizes: sum(sizes) / run(p, GRPC, False) / 1e6, None,
                  True, f"S1: {network}: 2.14" if scheme == "Skew" else "")

    def calls(p, provider):
        kind = Kind(provider, ps=2, workers=3)
        return 2 * p.tensorflow.step(kind, "call", p.seconds, workers=3, servers=2, echo=True,
                                     sizes=models.PAYLOADS["Uniform"])["steps_per_s"]
    yield Row("tensorflow-s1", "PS-Throughput Uniform", "tcp", sum(models.PAYLOADS["Uniform"]),
              "1/s", "gRPC", lambda p: calls(p, "tcp"), lambda p: calls(p, ""),
              stands_for="S1: AR-gRPC against gRPC on 40 Gbit Ethernet: 4.1, on InfiniBand's IP: "
              "3.43; other networks, and 6 hosts")


CNNS = {"ResNet-50": models.resnet50(), "VGG-16": models.vgg16(),
        "Inception v3": models.inception3(), "AlexNet": models.alexnet()}


def model_steps(p, kind, sizes):
    """Steps of both workers, each at its own pace."""
    return p.tensorflow.step(kind, "train", p.seconds, workers=2, sizes=sizes,
                             servers=1)["steps_per_s"]


def cnns():
    """1 server and 2 workers as its guide has them; gradients are made up, so that all of a step
    is communication: the most that any network can change."""
    said = {"ResNet-50": "S1: ResNet-152 1.62 on 4 hosts, up to 3 on 12, whose GPUs compute, too",
            "VGG-16": "S2: 2.43, 4 hosts with 16 GPUs, which compute, too",
            "Inception v3": "S1: Inception v4 up to 1.29 on 4 hosts and 2.44 on 12",
            "AlexNet": "S1: a picture without numbers"}
    for provider in ("shm", "tcp"):
        for name, sizes in CNNS.items():
            yield Row("tensorflow-s1", f"{name}, 2 workers", provider, sum(sizes), "1/s", "gRPC",
                      lambda p, provider=provider, sizes=sizes:
                      model_steps(p, Kind(provider, workers=2), sizes),
                      lambda p, sizes=sizes: model_steps(p, Kind(workers=2), sizes),
                      stands_for=said[name])


def settings():
    said = "S1: its settings; chunks of 4M and 8K of small ones together are its defaults"
    for name, values in (("TF_RDMA_CHUNK_SIZE", ("256K", "1M", "4M")),
                         ("TF_RDMA_ACC_SIZE", ("1", "8K", "16K"))):
        for value in values:
            kind = Kind("tcp", workers=2, env=((name, value),))
            yield Row("tensorflow-s1", "ResNet-50, no setting", "tcp", sum(CNNS["ResNet-50"]),
                      "1/s", f"{name[8:]}={value}",
                      lambda p: model_steps(p, Kind("tcp", workers=2), CNNS["ResNet-50"]),
                      lambda p, kind=kind: model_steps(p, kind, CNNS["ResNet-50"]),
                      stands_for=said)


# S2: gdr.

NO_POOL = ("TF_WEFT_POOL", "no")


def received_memory():
    """Received tensors in registered memory of the pool, and in TensorFlow's own."""
    said = "S2: 1.21, VGG-16 against private buffers and copies; no provider here pins memory"
    for provider in ("shm", "tcp"):
        for size in (KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB):
            yield read_row("tensorflow-s2", provider, size, "TensorFlow's memory",
                           Kind(provider, env=(NO_POOL,)), said=said)


# S4: mt-verbs.

S4_WORKERS, S4_SERVERS = 2, (1, 5, 10)
S4 = {1: "S4: no figure", 5: "S4: verbs' speed with 50 workers and 5 servers; here 2 workers",
      10: "S4: 1.25 of verbs' with 100 workers and 10 servers, 1.48 with 200; here 2 workers"}
FEW = ("WEFT_WINDOW", "2")  # the fewest frames of a peer under way that weft takes
ARENAS = ("TF_WEFT_REGISTER", "yes")


def dlrm_steps(p, kind, servers):
    return p.tensorflow.step(kind, "train", p.seconds, workers=S4_WORKERS, sizes=models.dlrm(),
                             servers=servers)["steps_per_s"]


def dlrm_row(provider, servers, name, ours, reference_name, reference, said):
    def kind(carrier, env):
        return Kind(carrier, ps=max(S4_SERVERS), workers=S4_WORKERS, env=env)
    return Row("tensorflow-s4", f"DLRM, {servers} ps, {name}", provider, sum(models.dlrm()), "1/s",
               reference_name, lambda p: dlrm_steps(p, kind(provider, ours), servers),
               lambda p: dlrm_steps(p, kind(*reference), servers), stands_for=said)


def dlrm():
    """Against gRPC; then registered receive memory and many requests, each and both together;
    then TensorFlow's own memory registered, too."""
    for servers, said in S4.items():
        yield dlrm_row("tcp", servers, "as it is", (), "gRPC", ("", ()), said)
    for provider in ("tcp", "tcp;ofi_rxm"):
        for name, ours in (("pool", (FEW,)), ("many", (NO_POOL,)), ("both", ())):
            for servers in S4_SERVERS:
                yield dlrm_row(provider, servers, name, ours, "own memory, 2 frames",
                               (provider, (NO_POOL, FEW)),
                               "S4: the two apart, which its authors left open; no pinning here")
    for servers in S4_SERVERS:
        yield dlrm_row("tcp;ofi_rxm", servers, "static", (ARENAS,), "registered as they come",
                       ("tcp;ofi_rxm", ()), "S4: static registration on and off; no pinning here")


def many_edges():
    """Variables that a step asks for at once, each by itself: what one more costs.  The reviewers
    of mt-verbs asked whether they should be asked for together."""
    for provider in ("shm", "tcp"):
        for count in (25, 200):
            def value(p, kind, count=count):
                return p.tensorflow.step(kind, "pull", p.seconds, sizes=count * [KIB],
                                         servers=1)["p50_s"] * 1e3
            yield Row("tensorflow-s4", f"{count} variables read at once", provider, count * KIB,
                      "ms", "gRPC", lambda p, value=value, provider=provider:
                      value(p, Kind(provider)), lambda p, value=value: value(p, GRPC), None, False,
                      "S4: fused receives, left open: each edge asks for itself here")


def bars():
    for part in (reads, exchanges, sums):
        yield from part()


def all_rows():
    yield from bars()
    for part in (trainings, payload_calls, cnns, settings, received_memory, dlrm, many_edges):
        yield from part()
