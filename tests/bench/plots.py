# SPDX-License-Identifier: BSD-2-Clause
"""Pictures of scripts/bench --plot: what each program does over a range of sizes,
of calls in flight and of peers, drawn by gnuplot as PNG and SVG."""

import os
import subprocess

from programs import KIB, MIB, Failed, Missing, need, size_text
from rows import count, p50, rate, summed

SIZES = [8, 64, 512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB]
IN_FLIGHT = [1, 2, 4, 8, 16, 40, 64, 256]
PEERS = [1, 2, 5, 10, 20, 50, 100, 200]

# A body there and the receiver's word back, in microseconds; bodies in one direction, in MB/s.
WEFT = {
    "weft": lambda p, provider, size: p.weft("--sizes", size_text(size), provider=provider),
}
RAW = {
    "raw fi_write": lambda p, provider, size: p.raw_rma(provider, size),
}
OVER_TCP = {
    "raw TCP": lambda p, provider, size: p.tcp_stream(size, 16 if size < MIB else 2),
    "gRPC unary": lambda p, provider, size: p.grpc("unary", [size]),
    "UCX tcp": lambda p, provider, size: ucx(p, "tcp", size),
    "Open MPI tcp": lambda p, provider, size: p.mpi("tcp", size),
    "ZeroMQ": lambda p, provider, size: without_latency(p.zmq(size)),
}
IN_MEMORY = {
    "UCX posix,cma": lambda p, provider, size: ucx(p, "posix,cma", size),
    "Open MPI vader": lambda p, provider, size: p.mpi("vader", size),
    "memcpy": lambda p, provider, size: p.copy("memcpy", size),
    "process_vm_readv": lambda p, provider, size: p.copy("readv", size),
}
BY_PROVIDER = {
    "tcp": {**WEFT, **RAW, **OVER_TCP},
    "net": {**WEFT, **RAW, "raw TCP": OVER_TCP["raw TCP"]},
    "shm": {**WEFT, **RAW, **IN_MEMORY},
}


def without_latency(result):
    return {**result, "latency_us": None}


def ucx(p, transports, size):
    """tag_lat is half of a round trip with the body both ways: to that the way of a word."""
    there = p50(p.ucx("tag_lat", transports, size))
    back = p50(p.ucx("tag_lat", transports, 8))
    return {**p.ucx("tag_bw", transports, size), "latency_us": {"p50": there + back}}


def tried(say, what, run):
    """What a run gave; None where it could not be made, said once."""
    try:
        return run()
    except (Missing, Failed) as why:
        say(f"  no {what}: {why}")
        return None


def over_sizes(p, provider, say):
    """Latency and bandwidth of each program: two lists of (size, value) for each."""
    latency, bandwidth = {}, {}
    for name, run in BY_PROVIDER[provider].items():
        for size in SIZES:
            result = tried(say, name, lambda: run(p, provider, size))
            if result is None:
                break
            if result["latency_us"]:
                latency.setdefault(name, []).append((size, p50(result)))
            bandwidth.setdefault(name, []).append((size, rate(result)))
    return latency, bandwidth


def over_window(p, say):
    series = {}
    runs = {
        "weft tcp": lambda w: p.weft("--test", "call", "--sizes", "0", "--window", str(w),
                                     provider="tcp"),
        "weft shm": lambda w: p.weft("--test", "call", "--sizes", "0", "--window", str(w),
                                     provider="shm"),
        "gRPC async": lambda w: p.grpc("async", [0], w),
    }
    for name, run in runs.items():
        for window in IN_FLIGHT:
            result = tried(say, name, lambda: run(window))
            if result is None:
                break
            series.setdefault(name, []).append((window, count(result)))
    return series


def over_peers(p, say):
    series = {}
    for window in (1, 40):
        name = f"weft tcp, {window} in flight"
        for peers in PEERS:
            result = tried(say, name, lambda: p.weft_crowd(
                1, peers, "--test", "call", "--sizes", "0", "--window", str(window),
                provider="tcp"))
            if result is None:
                break
            series.setdefault(name, []).append((peers, summed(result)))
    return series


def draw(directory, name, title, x, y, series):
    """@series: name to list of (x, y), both on logarithmic axes."""
    script = ["set logscale xy", "set key outside right", "set grid", f"set title '{title}'",
              f"set xlabel '{x}'", f"set ylabel '{y}'", "set format y '%g'"]
    if x == "bytes":
        ticks = ", ".join(f"'{size_text(s)}' {s}" for s in SIZES)
        script.append(f"set xtics ({ticks}) rotate by -45")
    for i, points in enumerate(series.values()):
        script += [f"$series{i} << end", *(f"{a} {b:.6g}" for a, b in points), "end"]
    lines = ", ".join(f"$series{i} using 1:2 with linespoints linewidth 2 title '{n}'"
                      for i, n in enumerate(series))
    for terminal, suffix in (("pngcairo", "png"), ("svg", "svg")):
        # Names have underscores, which would lower what follows them.
        script += [f"set terminal {terminal} noenhanced size 1000,600",
                   f"set output '{os.path.join(directory, name)}.{suffix}'", f"plot {lines}"]
    done = subprocess.run(["gnuplot"], input="\n".join(script) + "\n", capture_output=True,
                          text=True)
    if done.returncode:
        raise Failed(f"gnuplot: {done.stderr.strip()[-300:]}")


def draw_all(directory, p, say):
    """Measure and draw everything; what was measured, by picture."""
    need("gnuplot", "gnuplot-nox")
    os.makedirs(directory, exist_ok=True)
    pictures = {}
    for provider in BY_PROVIDER:
        say(f"plot: {provider} over sizes")
        latency, bandwidth = over_sizes(p, provider, say)
        pictures[f"latency-{provider}"] = (
            f"A body and the word of it, {provider}", "bytes", "microseconds", latency)
        pictures[f"bandwidth-{provider}"] = (
            f"Bodies in one direction, {provider}", "bytes", "MB/s", bandwidth)
    say("plot: calls over how many are in flight, and over peers")
    pictures["rate"] = ("Empty calls to one peer", "calls in flight", "calls per second",
                        over_window(p, say))
    pictures["peers"] = ("Empty calls of many peers to one server", "peers",
                         "calls per second", over_peers(p, say))
    for name, (title, x, y, series) in pictures.items():
        if series:
            draw(directory, name, title, x, y, series)
    return {name: series for name, (_, _, _, series) in pictures.items()}
