# SPDX-License-Identifier: BSD-2-Clause
"""Pairs of measurements of the same minute, and the place where they run."""

import dataclasses
import os
import platform
import statistics
import subprocess
import sys

CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
INSIDE = "WEFT_BENCH_INSIDE"  # set for the program that is started in a namespace


def inside():
    return INSIDE in os.environ


def enter_namespace():
    """Start this program again in a network namespace of its own under reno, where
    that is allowed: loopback under bbr is paced, and which program that hits depends
    on how much it has on the way."""
    if os.environ.pop(INSIDE, None):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
        try:
            with open(CONTROL, "w") as f:
                f.write("reno")
        except OSError:
            pass
        return
    for how in (["unshare", "-n"], ["unshare", "-rn"]):
        if not subprocess.run([*how, "true"], stderr=subprocess.DEVNULL).returncode:
            os.environ[INSIDE] = "yes"
            os.execvp("unshare", [*how, sys.executable, *sys.argv])


def control():
    with open(CONTROL) as f:
        return f.read().strip()


def text_of(command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def about(source):
    """Where and with what the figures were measured."""
    return {
        "commit": text_of(["git", "-C", source, "describe", "--always", "--dirty"]),
        "kernel": platform.release(),
        "processors": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "congestion_control": control(),
        "libfabric": text_of(["pkg-config", "--modversion", "libfabric"]),
    }


@dataclasses.dataclass
class Compared:
    ours: float    # medians
    theirs: float
    ratio: float   # median of those of the pairs, as low and high are the ends
    low: float
    high: float


def measure(ours, theirs, ratio, pairs, each=None):
    """Run both @pairs times.  Every second pair begins with the other, for the second
    of two runs finds warmer caches.  @each hears of every pair."""
    values = ([], [])
    for i in range(pairs):
        sides = [(values[0], ours), (values[1], theirs)]
        for into, run in sides if i % 2 == 0 else reversed(sides):
            into.append(run())
        if each:
            each(i + 1, values[0][-1], values[1][-1])
    ratios = sorted(ratio(a, b) for a, b in zip(*values))
    return Compared(statistics.median(values[0]), statistics.median(values[1]),
                    statistics.median(ratios), ratios[0], ratios[-1])
