# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/bench compares: one row each, with the bar it is held to.

A row measures one thing of weft's and the same thing of a reference, under the
same discipline: as many bodies on the way, buffers used again, and a body
counted when the receiver's word of it is there, or where a row says one way,
all bodies when the receiver's word of the last is there.
"""

import dataclasses
import math
import typing

import models

from programs import KIB, MIB, size_text, ucx_env


@dataclasses.dataclass
class Row:
    group: str               # its number among the bars, or what it belongs to
    name: str
    provider: str
    bytes: int
    unit: str                # of both values
    reference_name: str
    weft: typing.Callable    # (programs) -> value
    reference: typing.Callable
    bar: float = None        # what the ratio should reach
    more_is_better: bool = True
    stands_for: str = ""     # a published result that it is to be held against
    most: float = None       # what weft's own value may be at most

    def ratio(self, weft, reference):
        """Above 1 weft is better, whatever the unit."""
        if self.more_is_better:
            return weft / reference
        return reference / weft if weft else math.inf


PEERS = 200  # processes, on this machine


def rate(result):
    return result["bytes_per_s"] / 1e6


def count(result):
    return result["messages_per_s"]


def p50(result):
    return result["latency_us"]["p50"]


def p99(result):
    return result["latency_us"]["p99"]


def p999(result):
    return result["latency_us"]["p999"]


def median_rate(result, size):
    """MB/s of the median transfer of @size bytes."""
    return size / p50(result)


def each_count(result):
    """Calls of a second of processor time, whoever's."""
    return 1e6 / result["cpu_us"]


def summed(results):
    return sum(count(r) for r in results)


def listed(sizes):
    return ",".join(map(size_text, sizes))


def tensors(provider, size, *options):
    return lambda p: rate(p.weft("--sizes", size_text(size), *options, provider=provider))


def placed(size, run):
    """Large bodies within a host may be read by two processors: neither side is pinned."""
    return (lambda p: run(p.placed_freely())) if size >= 4 * MIB else run


def raw_bodies():
    """One buffer, one body on the way, the receiver's acknowledgement."""
    bars = {("tcp", 1): .90, ("net", 1): .90, ("tcp;ofi_rxm", 1): .78,
            ("tcp", 16): .95, ("net", 16): .95, ("tcp;ofi_rxm", 16): .90,
            ("tcp", 64): .95, ("net", 64): .95, ("tcp;ofi_rxm", 64): .90,
            ("shm", 1): .85, ("shm", 16): .85, ("shm", 64): .85}
    for (provider, mib), bar in bars.items():
        group = "3" if provider == "shm" else "2" if mib == 1 else "1"
        ours = tensors(provider, mib * MIB, "--window", "1")

        def raw(p, provider=provider, mib=mib):
            return rate(p.raw_rma(provider, mib * MIB))
        if provider == "shm":
            ours, raw = placed(mib * MIB, ours), placed(mib * MIB, raw)
        yield Row(group, "tensor", provider, mib * MIB, "MB/s", "raw fi_write + ack", ours, raw,
                  bar)


def views():
    """From weft_send on, until the other process has read the first byte, and every byte."""
    def ours(part):
        return lambda p: p50(p.ours("view", "-e", part, "-s", "64M"))

    def copied(p):
        return p50(p.ours("copy", "-e", "readv", "-s", "64M", "-w", "2"))
    yield Row("4", "view, to the first byte", "shm", 64 * MIB, "us", "5 us",
              ours("first"), lambda p: 5, 1, False)
    yield Row("4", "view, to all bytes read", "shm", 64 * MIB, "us", "process_vm_readv and read",
              ours("all"), copied, 2.5, False)


def calls(provider, value, *options, env=None):
    return lambda p: value(p.weft("--test", "call", "--sizes", "0", *options,
                                  provider=provider, env=env))


def empty_calls():
    for provider, bar in (("tcp", .80), ("net", .80), ("shm", .62)):
        yield Row("5", "empty call", provider, 0, "us", "raw 8 B there and back",
                  calls(provider, p50),
                  lambda p, provider=provider: p50(p.raw_message(provider, 8)), bar, False)


def grpc_calls():
    sleeping = {"WEFT_SPIN": "0"}
    for what, mode, env, bar in (
            ("empty call, spinning", "unary", None, 10),
            ("empty call, spinning", "spin", None, None),
            ("empty call, sleeping", "unary", sleeping, 1.3)):
        yield Row("6", what, "tcp", 0, "us", f"gRPC {mode}", calls("tcp", p50, env=env),
                  lambda p, mode=mode: p50(p.grpc(mode, [0])), bar, False)
        yield Row("6", what + ", processor", "tcp", 0, "us", f"gRPC {mode}",
                  calls("tcp", lambda r: r["latency_us"]["cpu"], env=env),
                  lambda p, mode=mode: p.grpc(mode, [0])["cpu_us"], None, False)
    # What the system's own sleep and wake-up leave.
    yield Row("6", "empty call, sleeping", "tcp", 0, "us", "raw TCP, sleeping",
              calls("tcp", p50, env=sleeping), lambda p: p50(p.tcp_stream(8, 1, "sleep")),
              None, False)
    for what, value in (("calls, 64 in flight", count),
                        ("the same per CPU second", each_count)):
        yield Row("7", what, "tcp", 0, "1/s", "gRPC async",
                  calls("tcp", value, "--window", "64"),
                  lambda p, value=value: value(p.grpc("async", [0], 64)), 15)


def messages():
    def ours(p):
        return count(p.weft("--test", "message", "--sizes", "8", "--window", "1024",
                            provider="tcp"))
    yield Row("8", "messages one way", "tcp", 8, "1/s", "ZeroMQ", ours,
              lambda p: count(p.zmq(8)), 1)
    yield Row("8", "messages one way", "tcp", 8, "1/s", "raw one by one", ours,
              lambda p: count(p.raw_message("tcp", 8)), 10)


def grpc_bodies():
    for mib, mode, window, bar in ((1, "unary", 1, 5), (16, "stream", 0, 3.5),
                                   (64, "stream", 0, 8)):
        yield Row("9", "tensor", "tcp", mib * MIB, "MB/s", f"gRPC {mode}",
                  tensors("tcp", mib * MIB, *(["--window", "1"] if window else [])),
                  lambda p, mib=mib, mode=mode: rate(p.grpc(mode, [mib * MIB])), bar)


def grpc_streams():
    def stream(kib):
        return lambda p: rate(p.weft("--test", "stream", "--sizes", f"{kib}K", "--window", "32",
                                     provider="tcp"))

    for kib, bar in ((1, None), (64, 3), (1024, None)):
        yield Row("streams", "messages of a stream", "tcp", kib * KIB, "MB/s", "gRPC stream",
                  stream(kib), lambda p, kib=kib: rate(p.grpc("stream", [kib * KIB])), bar)
    # The limit: sockets without deadlines or flow control, which pack as much, or nothing.
    for name, how in (("sockets that pack", "pack"), ("sockets", "spin")):
        yield Row("streams", "messages of a stream", "tcp", 64 * KIB, "MB/s", f"plain {name}",
                  stream(64), lambda p, how=how: rate(p.tcp_stream(64 * KIB, 16, how)),
                  .9 if how == "pack" else None)


def attachments():
    yield Row("attachments", "tensor beside a call", "tcp", 16 * MIB, "MB/s", "gRPC unary",
              lambda p: rate(p.weft("--test", "attachment", "--sizes", "16M", "--window", "1",
                                    provider="tcp")),
              lambda p: rate(p.grpc("unary", [16 * MIB])), 4)


def call_costs():
    """What else an empty call may have, or have beside it."""
    for what, options, most in (("1 KiB of metadata", ("--metadata", "1024"), 1.2),
                                ("1000 idle streams", ("--idle-streams", "1000"), 1.05)):
        yield Row("calls", f"empty call, {what}", "tcp", 0, "us", "without",
                  calls("tcp", p50, *options), calls("tcp", p50), 1 / most, False)


def urgent_calls():
    """Calls of the highest priority while 1 GiB after another goes between the same two nodes."""
    for provider in ("tcp", "shm"):
        for what in ("sent", "received"):
            yield Row("urgent", f"call beside bulk {what}, p99", provider, 1024 * MIB,
                      "us", "idle", lambda p, provider=provider, what=what:
                      p99(p.beside(what, provider)),
                      lambda p, provider=provider: p99(p.beside("idle", provider)), 1 / 3, False)


IDLE = 1000      # peers, on this machine
IN_FLIGHT = 64   # calls


def tails():
    """What callers feel who know nothing of each other: calls that are due at half of the rate
    that the server reaches, timed from when they were due."""
    def half(p):
        """Of weft's rate."""
        return calls("tcp", count, "--window", str(IN_FLIGHT))(p) / 2

    def half_grpc(p):
        return count(p.grpc("async", [0], IN_FLIGHT)) / 2
    for part, value in (("p99", p99), ("p99.9", p999)):
        for what, load in (("call at half load", half),
                           ("call at half of gRPC's load", half_grpc)):
            yield Row("tail", f"{what}, {part}", "tcp", 0, "us", "gRPC async at half load",
                      lambda p, load=load, value=value:
                      value(p.longer(2).weft_paced(load(p), IN_FLIGHT)),
                      lambda p, value=value:
                      value(p.longer(2).grpc_paced(half_grpc(p), IN_FLIGHT)), 1, False)
    for part, value in (("p99", p99), ("p99.9", p999)):
        yield Row("tail", f"call at half load beside {IDLE} idle peers, {part}", "tcp", 0, "us",
                  "without them",
                  lambda p, value=value:
                  value(p.longer(2).weft_paced(half(p), IN_FLIGHT, idle=IDLE)),
                  lambda p, value=value: value(p.longer(2).weft_paced(half(p), IN_FLIGHT)),
                  1 / 1.2, False)


def shared_processors():
    """Where spinning takes the time of the one that is waited for."""
    for provider in ("tcp", "shm"):
        yield Row("shared", "empty call, both on one processor", provider, 0, "us", "gRPC unary",
                  lambda p, provider=provider: calls(provider, p50)(p.on_one()),
                  lambda p: p50(p.on_one().grpc("unary", [0])), 1, False)
        yield Row("shared", "empty call, both on one processor", provider, 0, "us",
                  "raw TCP, sleeping",
                  lambda p, provider=provider: calls(provider, p50)(p.on_one()),
                  lambda p: p50(p.on_one().tcp_stream(8, 1, "sleep")), None, False)
    yield Row("shared", "empty calls of 3 at 3, six processes", "tcp", 0, "1/s", "gRPC async",
              lambda p: summed(p.weft_crowd(3, 3, "--test", "call", "--sizes", "0", "--window",
                                            "1", provider="tcp")),
              lambda p: summed(p.grpc_crowd(3, 3, [0])), 1)


def first_contact():
    """What a job pays before its first operation."""
    yield Row("first", f"{IDLE} peers connected", "tcp", 0, "s", "1 s",
              lambda p: p.crowd("tcp", IDLE)["met_s"], lambda p: 1, 1, False)
    yield Row("first", "node open, processor time", "tcp", 0, "ms", "10 ms",
              lambda p: p50(p.opening("tcp")) / 1e3, lambda p: 10, 1, False)


def hpc_bodies():
    for group, provider, ucx, mpi in (("10", "tcp", "tcp", "tcp"),
                                      ("11", "shm", "posix,cma", "vader")):
        for mib in (1, 16, 64):
            runs = {"weft": tensors(provider, mib * MIB),
                    f"UCX {ucx} tag_bw":
                    lambda p, ucx=ucx, mib=mib: rate(p.ucx("tag_bw", ucx, mib * MIB)),
                    f"UCX {ucx}, resident":
                    lambda p, ucx=ucx, mib=mib: rate(p.ucx("tag_bw", ucx, mib * MIB, True)),
                    f"Open MPI {mpi}":
                    lambda p, mpi=mpi, mib=mib: rate(p.mpi(mpi, mib * MIB))}
            if provider == "shm":
                runs = {name: placed(mib * MIB, run) for name, run in runs.items()}
            ours = runs.pop("weft")
            for name, run in runs.items():
                yield Row(group, "tensors", provider, mib * MIB, "MB/s", name, ours, run, .95)


def middle():
    """Tensors one way from the shortest to those that are pulled, and 8 B there and back."""
    for kib in (4, 16, 64, 256):
        for name, run, bar in (
                ("UCX tcp tag_bw", lambda p, kib=kib: rate(p.ucx("tag_bw", "tcp", kib * KIB)), 1),
                ("raw TCP", lambda p, kib=kib: rate(p.tcp_stream(kib * KIB, 16)), .85)):
            yield Row("middle", "tensors", "tcp", kib * KIB, "MB/s", name,
                      tensors("tcp", kib * KIB), run, bar)
    # As tag_bw does, without a word of the receiver's for each: one of all, at the end.
    for size, bar in ((64, .5), (512, .5), (4 * KIB, .8), (16 * KIB, .8), (64 * KIB, .8)):
        yield Row("middle", "tensors one way", "shm", size, "MB/s", "UCX posix,cma tag_bw",
                  tensors("shm", size, "--test", "message"),
                  lambda p, size=size: rate(p.ucx("tag_bw", "posix,cma", size)), bar)

    def ours(p):
        return p50(p.small("manual", "shm"))
    yield Row("middle", "8 B there and back", "shm", 8, "us", "raw fi_send", ours,
              lambda p: p50(p.raw_message("shm", 8)), .75, False)
    yield Row("middle", "8 B there and back", "shm", 8, "us", "UCX posix tag_lat", ours,
              lambda p: 2 * p50(p.ucx("tag_lat", "posix", 8)), .30, False)


def rails(mib):
    """Two networks of equal rate beside one, where the rate is what limits."""
    for name, options in (("tensor", ["--window", "1"]), ("tensors", [])):
        def over(p, count, options=options):
            return rate(p.weft_rails(count, 800, "--sizes", f"{mib}M", *options))
        yield Row("rails", f"{name} by two rails", "tcp", mib * MIB, "MB/s",
                  "by one, 800 Mbit/s each", lambda p, over=over: over(p, 2),
                  lambda p, over=over: over(p, 1), 1.7)


def parameter_server(group, scheme, bar, provider="tcp"):
    sizes = models.PAYLOADS[scheme]
    return Row(group, f"PS-Throughput {scheme}", provider, sum(sizes), "1/s", "gRPC, 2 and 3",
               lambda p: summed(p.weft_crowd(2, 3, "--tensors", listed(sizes), "--window", "1",
                                             provider=provider)),
               lambda p: summed(p.grpc_crowd(2, 3, sizes)), bar)


def crowd():
    def ours(p, window):
        return summed(p.weft_crowd(1, PEERS, "--test", "call", "--sizes", "0",
                                   "--window", str(window), provider="tcp"))
    yield Row("13", "calls of 200 peers", "tcp", 0, "1/s", "1 in flight, not 40",
              lambda p: ours(p, 40), lambda p: ours(p, 1), 1.48)

    def beyond(p):
        alone = p.ours("raw_peers", "-p", "tcp", "-w", str(PEERS))["peer_bytes"]
        return (p.weft_peer_bytes("tcp", PEERS) - alone) / KIB
    yield Row("15", "idle peer, beyond raw's", "tcp", 0, "KiB", "64 KiB", beyond,
              lambda p: 64, 1, False)


SENDERS = 16  # processes, on this machine


def incast():
    """Many senders at one receiver; the system places them."""
    def rates(p):
        """For so long that a body more or less of a sender's is no tenth of its rate."""
        return [rate(r) for r in p.longer(5).weft_crowd(
            1, SENDERS, "--sizes", "16M", "--window", "1", provider="tcp")]

    def least(p):
        got = rates(p)
        return min(got) / max(got)
    yield Row("incast", f"tensors of {SENDERS} senders", "tcp", 16 * MIB, "MB/s", "one sender",
              lambda p: sum(rates(p)), lambda p: tensors("tcp", 16 * MIB, "--window", "1")(
                  p.placed_freely()), .95)
    yield Row("incast", "slowest sender", "tcp", 16 * MIB, "", f"fastest of the {SENDERS}", least,
              lambda p: 1, .9)


BLOCKS, BLOCK = 200, 64 * KIB


def windows():
    """One-sided operations: whole ranges, and blocks that lie apart."""
    for provider in ("tcp", "shm"):
        for mib in (1, 16, 64):
            for way in ("get", "put"):
                def ours(p, provider=provider, way=way, mib=mib):
                    return rate(p.window(way, provider, mib * MIB))

                def raw(p, provider=provider, mib=mib):
                    return rate(p.raw_read(provider, mib * MIB))
                if provider == "shm":
                    ours, raw = placed(mib * MIB, ours), placed(mib * MIB, raw)
                yield Row("16", way, provider, mib * MIB, "MB/s", "raw fi_read", ours, raw, .95)
    for provider, alone, apart in (("tcp", .90, 2.0), ("shm", .85, 1.5)):
        for way in ("get", "put"):
            for reference, bar in (("tensor", alone), ("tensors", apart)):
                def run(p, what, provider=provider):
                    return rate(p.window(what, provider, BLOCKS * BLOCK, BLOCKS))
                name = "one tensor" if reference == "tensor" else f"{BLOCKS} tensors"
                yield Row("17", f"{way} of {BLOCKS} blocks", provider, BLOCKS * BLOCK, "MB/s",
                          name, lambda p, run=run, way=way: run(p.placed_freely(), way),
                          lambda p, run=run, reference=reference: run(p.placed_freely(), reference),
                          bar)


NIXL_UCX = {"tcp": "tcp", "shm": "posix,sysv,cma,tcp"}  # tcp connects, cma moves the bytes


def nixl():
    """Windows beside what serving engines move their caches with; both sides spin."""
    for provider, transports in NIXL_UCX.items():
        for size, blocks in ((MIB, 1), (16 * MIB, 1), (64 * MIB, 1), (1000 * BLOCK, 1000)):
            for way, theirs in (("get", "read"), ("put", "write")):
                def ours(p, provider=provider, way=way, size=size, blocks=blocks):
                    return median_rate(p.window(way, provider, size, blocks), size)

                def other(p, transports=transports, theirs=theirs, size=size, blocks=blocks):
                    return median_rate(p.nixl(theirs, transports, size, blocks), size)
                if provider == "shm":
                    ours, other = placed(size, ours), placed(size, other)
                yield Row("nixl", way if blocks == 1 else f"{way} of {blocks} blocks", provider,
                          size, "MB/s", f"NIXL {theirs.upper()}, UCX", ours, other, 1)


def nixl_plug_in():
    """The plug-in beside NIXL's own backend, by the same program."""
    for provider, transports in NIXL_UCX.items():
        ucx = ucx_env(transports)
        for size, blocks in ((MIB, 1), (16 * MIB, 1), (64 * MIB, 1), (1000 * BLOCK, 1000)):
            for way in ("read", "write"):
                def run(p, backend, env, way=way, size=size, blocks=blocks):
                    return median_rate(p.nixl_backend(backend, way, env, size, blocks), size)
                name = f"NIXL {way.upper()}" + (f", {blocks} blocks" if blocks > 1 else "")
                yield Row("nixl-plug-in", name, provider, size, "MB/s", "UCX",
                          lambda p, run=run, provider=provider:
                          run(p, "WEFT", {"WEFT_PROVIDER": provider}),
                          lambda p, run=run, ucx=ucx: run(p, "UCX", ucx))


def collectives():
    """Sums over four processes; the system places them."""
    for provider, bar, transport in (("shm", 1.5, "vader"), ("tcp", 1, "tcp")):
        for size in (4 * KIB, 64 * KIB, MIB, 64 * MIB):
            def ours(p, provider=provider, size=size):
                return p50(p.all_reduce(provider, size))
            yield Row("all_reduce", "all_reduce, 4 ranks", provider, size, "us", "gloo", ours,
                      lambda p, size=size: p50(p.gloo_all_reduce(size)), bar, False)
            yield Row("all_reduce", "all_reduce, 4 ranks", provider, size, "us",
                      f"Open MPI {transport}", ours,
                      lambda p, size=size, transport=transport:
                      p50(p.mpi_all_reduce(transport, size)),
                      1 if provider == "shm" and size == 64 * MIB else None, False)


def python():
    """The package for Python beside the tool in C, and PyTorch over weft beside gloo."""
    for provider in ("shm", "tcp"):
        for way, bar in (("manual", 1 / 1.5), ("asyncio", 1 / 2.5)):
            yield Row("python", f"round trip in Python, {way}", provider, 8, "us", "C",
                      lambda p, way=way, provider=provider: p50(p.python_peer(way, provider, 8)),
                      lambda p, provider=provider:
                      p50(p.weft("--sizes", "8", "--window", "1", provider=provider)),
                      bar, False)
        yield Row("python", "tensor in Python", provider, 16 * MIB, "MB/s", "C",
                  lambda p, provider=provider:
                  rate(p.placed_freely().python_peer("bulk", provider, 16 * MIB)),
                  lambda p, provider=provider:
                  median_rate(p.placed_freely().weft("--sizes", "16M", "--window", "1",
                                                     provider=provider), 16 * MIB), .97)
    for provider, bar in (("shm", 1.5), ("tcp", 1)):
        for size in (4 * KIB, 64 * KIB, MIB, 64 * MIB):
            yield Row("torch", "all_reduce of torch, 4 ranks", provider, size, "us", "gloo",
                      lambda p, provider=provider, size=size:
                      p50(p.torch_job("weft", size, provider=provider)),
                      lambda p, size=size: p50(p.torch_job("gloo", size)), bar, False)
    for provider, bar in (("shm", 1.3), ("tcp", 1)):
        yield Row("torch", "step of DDP, 4 ranks", provider, 100 * MIB, "us", "gloo",
                  lambda p, provider=provider:
                  p50(p.torch_job("weft", 100 * MIB, "--train", provider=provider)),
                  lambda p: p50(p.torch_job("gloo", 100 * MIB, "--train")), bar, False)


def gpu():
    """A tensor that another process waits for, and says to have, beside a bare write of as much."""
    for size in (MIB, 16 * MIB, 64 * MIB, 256 * MIB):
        def ours(p, size=size):
            p.need_gpu()
            return p50(p.weft("--sizes", str(size), "--window", "1", "--device", "cuda:0",
                              provider="shm"))

        def other(p, size=size):
            return p50(p.nixl("write", "cuda,sm,tcp", size, device=0))
        yield Row("gpu", "tensor on cuda:0", "shm", size, "us", "NIXL WRITE, UCX", ours, other,
                  more_is_better=False)


def arenas():
    """Registrations for sends out of registered memory, where registering is dear."""
    for provider in ("tcp;ofi_rxm", "verbs"):
        def run(p, memory, provider=provider):
            result = p.arena(memory, provider, BLOCK, 1000)
            return result["registrations"]
        yield Row("arena", "registrations, 1000 sends", provider, BLOCK, "", "not registered",
                  lambda p, run=run: run(p, "registered"), lambda p, run=run: run(p, "plain"),
                  more_is_better=False, most=0)


def broadcasts():
    def time(p, receivers):
        return p50(p.broadcast(64 * MIB, receivers)) / 1e3
    yield Row("18", "64 MiB to 8 hosts", "tcp", 64 * MIB, "ms", "to one host",
              lambda p: time(p, 8), lambda p: time(p, 1), 1 / 1.5, more_is_better=False)


def waiting():
    for provider in ("tcp", "shm"):
        yield Row("19", "8 B there and back, threaded", provider, 8, "us", "manual",
                  lambda p, provider=provider: p50(p.small("threaded", provider)),
                  lambda p, provider=provider: p50(p.small("manual", provider)), .87, False)
    for threads in (4, 16):
        for provider in ("tcp", "shm"):
            yield Row("threads", f"8 B there and back by {threads} threads", provider, 8, "1/s",
                      "gRPC unary by as many",
                      lambda p, n=threads, provider=provider: count(p.threads(n, provider)),
                      lambda p, n=threads: count(p.grpc_threads(n)), 1)
    yield Row("20", "messages into a receive that stays", "tcp", 8, "1/s", "ZeroMQ",
              lambda p: count(p.small("stays", "tcp")), lambda p: count(p.zmq(8)), 1)


def packing():
    def ours(p, env):
        return p50(p.weft("--sizes", "8", provider="tcp", env=env))
    yield Row("14", "tensor on an idle link", "tcp", 8, "us", "packing off",
              lambda p: ours(p, None), lambda p: ours(p, {"WEFT_PACK_BYTES": "1"}), .97, False)


def security():
    """What a key costs, each against the same without one."""
    def added(p, mode):
        def took(security):
            return p50(p.weft_secured(security, "--sizes", "8", provider="tcp"))
        return max(0, took(mode) - took("open"))

    def moved(mode, mib):
        return lambda p: rate(p.weft_secured(mode, "--sizes", f"{mib}M", "--window", "1",
                                             provider="tcp"))
    for mode in ("keyed", "sealed"):
        yield Row("security", f"added to 8 B there and back, {mode}", "tcp", 8, "us", "1 us",
                  lambda p, mode=mode: added(p, mode), lambda p: 1, 1, False)
    for mode, mib, bar in (("keyed", 64, .98), ("sealed", 1, None), ("sealed", 16, None),
                           ("sealed", 64, .50)):
        yield Row("security", f"tensor, {mode}", "tcp", mib * MIB, "MB/s", "open",
                  moved(mode, mib), moved("open", mib), bar)

    # A side that has one processor encrypts or decrypts each byte besides moving it.
    sealed, alone = moved("sealed", 64), moved("open", 64)
    yield Row("security", "tensor, sealed", "tcp", 64 * MIB, "MB/s", "openssl speed, 1 core",
              sealed, lambda p: p.cipher(512 * KIB), .85)
    yield Row("security", "tensor, sealed", "tcp", 64 * MIB, "MB/s", "open, then openssl speed",
              sealed, lambda p: 1 / (1 / alone(p) + 1 / p.cipher(512 * KIB)))

    for what, options, mode, count_bytes, unit, value, bar in (
            ("tensor", ("--sizes", "1M", "--window", "1"), "unary", MIB, "MB/s", rate, 4),
            ("tensor", ("--sizes", "16M"), "stream", 16 * MIB, "MB/s", rate, 4),
            ("empty call", ("--test", "call", "--sizes", "0"), "unary", 0, "us", p50, 10)):
        yield Row("security", f"{what}, sealed", "tcp", count_bytes, unit, f"gRPC {mode}, TLS",
                  lambda p, options=options, value=value: value(p.weft_secured(
                      "sealed", *options, provider="tcp", certificates=True)),
                  lambda p, mode=mode, size=count_bytes, value=value: value(
                      p.grpc_secured(mode, [size])), bar, unit != "us")
    for what, certificates, bar_ms in (("a key", False, 3), ("certificates", True, 8)):
        yield Row("security", f"handshake to first answer, {what}", "tcp", 0, "us",
                  f"{bar_ms} ms", lambda p, c=certificates: p50(p.first("sealed", c)),
                  lambda p, ms=bar_ms: 1000 * ms, 1, False)
    yield Row("security", "first answer, without keys", "tcp", 0, "us", "3 ms",
              lambda p: p50(p.first("open")), lambda p: 3000, 1, False)


def tf_grpc_bench():
    """TF-gRPC-Bench's three tests (Biswas, Lu and Panda, BPOE 2018)."""
    for scheme, sizes in models.PAYLOADS.items():
        def ours(p, value, window, sizes=sizes):
            return value(p.weft("--tensors", listed(sizes), "--window", str(window),
                                provider="tcp"))
        yield Row("tf", f"P2P-Latency {scheme}", "tcp", sum(sizes), "us", "gRPC unary",
                  lambda p, ours=ours: ours(p, p50, 1),
                  lambda p, sizes=sizes: p50(p.grpc("unary", sizes)), None, False)
        yield Row("tf", f"P2P-Bandwidth {scheme}", "tcp", sum(sizes), "MB/s", "gRPC async",
                  lambda p, ours=ours: ours(p, rate, 2),
                  lambda p, sizes=sizes: rate(p.grpc("async", sizes, 2)))
        if scheme != "Uniform":
            yield parameter_server("tf", scheme, None)


def model_traces():
    for name, sizes in models.MODELS.items():
        yield Row("models", name, "tcp", sum(sizes), "MB/s", "gRPC unary",
                  lambda p, sizes=sizes: rate(p.weft("--tensors", listed(sizes), "--window", "1",
                                                     provider="tcp")),
                  lambda p, sizes=sizes: rate(p.grpc("unary", sizes)))


def bars():
    """The rows that have bars, and what belongs to them."""
    for part in (raw_bodies, views, empty_calls, grpc_calls, messages, grpc_bodies, grpc_streams,
                 attachments, call_costs, urgent_calls, tails, shared_processors, first_contact,
                 hpc_bodies, middle):
        yield from part()
    yield parameter_server("12", "Uniform", 3.3)
    yield parameter_server("12", "Uniform", 4.1, "shm")
    yield from packing()
    yield from crowd()
    yield from incast()
    yield from windows()
    yield from nixl()
    yield from collectives()
    yield from arenas()
    yield from broadcasts()
    yield from waiting()
    yield from security()
    yield from rails(16)


def all_rows():
    yield from bars()
    yield from gpu()
    yield from nixl_plug_in()
    yield from python()
    yield from rails(64)  # half a minute for each pair
    yield from tf_grpc_bench()
    yield from model_traces()
