# SPDX-License-Identifier: BSD-2-Clause
"""Clusters of unmodified TensorFlow that scripts/bench and scripts/demo measure.

A cluster lives on after a measurement, for TensorFlow takes seconds to start: the sides of a pair
each have one, and it goes when others are wanted."""

import atexit
import contextlib
import dataclasses
import os
import sys
import time

import hosts
from need import Failed, Missing

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tensorflow"))

import cluster  # noqa: E402  they are found by the path above
import install  # noqa: E402
import tensorflow_steps as steps  # noqa: E402

KEPT = 2  # clusters: those of a pair

# How long tasks may take to start, and a step of some seconds, beside other load.
PATIENCE_S = 300


@dataclasses.dataclass(frozen=True)
class Kind:
    """What a cluster is like."""
    provider: str = ""   # that weft is held to; "": TensorFlow's own gRPC carries everything
    ps: int = 1
    workers: int = 1
    env: tuple = ()      # settings: pairs of name and text
    mbit: int = 0        # of the cable between the servers' host and the workers'; 0: one host
    serve: bool = True   # each task has a server from the start

    @property
    def protocol(self):
        return "grpc+weft" if self.provider else "grpc"

    def environment(self):
        own = {"WEFT_PROVIDER": self.provider} if self.provider else {}
        if self.mbit and self.provider:
            own["WEFT_SECURITY"] = "open"  # nobody else is on the cable
        return {**own, **dict(self.env)}


def cpu_s(pid):
    """Processor time that a process has taken."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Tasks:
    """The tasks of one cluster."""

    def __init__(self, kind, python, site):
        self.kind = kind
        self.stack = contextlib.ExitStack()
        jobs = {job: n for job, n in (("ps", kind.ps), ("worker", kind.workers)) if n}
        env = {**kind.environment(), "PYTHONPATH": os.pathsep.join((site, HERE)),
               "PYTHONDONTWRITEBYTECODE": "yes"}
        places = None
        with contextlib.ExitStack() as stack:
            if kind.mbit:
                there = stack.enter_context(hosts.joined(1, kind.mbit))
                places = {job: (hosts.address(i, 0), there[i]) for i, job in enumerate(jobs)}
            self.cluster = stack.enter_context(cluster.Cluster(
                jobs, protocols={job: kind.protocol for job in jobs}, env=env, python=python,
                hosts=places, serverless=() if kind.serve else tuple(jobs),
                start_s=PATIENCE_S))
            self.stack = stack.pop_all()

    def all(self, workers, function, *words):
        """Run a function, which gets its task's number first, in so many workers at once."""
        calls = [self.cluster.begin(f"worker:{i}", function, i, *words) for i in range(workers)]
        return [c.wait(PATIENCE_S) for c in calls]

    def in_turn(self, workers, function, *words):
        """The same, one after the other."""
        return [self.cluster.call(f"worker:{i}", function, i, *words, seconds=PATIENCE_S)
                for i in range(workers)]

    def cpu_s(self):
        return sum(cpu_s(self.cluster.pid(name)) for name in self.cluster.tasks)

    def carried(self, what="received"):
        """Tensors that have come to all tasks: by weft, those of them that the provider moved
        as a body, and by gRPC.  Nobody counts where there is no plug-in."""
        every = []
        if self.kind.provider:
            every = [self.cluster.counters(name) for name in self.cluster.tasks]
        return [sum(counters.get(which, 0) for counters in every)
                for which in (what + "_weft", "received_over_" + self.kind.provider,
                              what + "_grpc")]

    @contextlib.contextmanager
    def checked(self, what="received"):
        """Whatever is measured inside must be carried by what is said to carry it."""
        before = self.carried(what)
        yield
        weft, _, grpc = (a - b for a, b in zip(self.carried(what), before))
        if self.kind.provider and not weft + grpc:
            raise Missing("this plug-in does not count what it moves there")
        if self.kind.provider and (grpc or not weft):
            raise Failed(f"gRPC carried {grpc} tensors, and weft {weft}")


class Clusters:
    """Those of one build of weft."""

    def __init__(self, build):
        self.build = build
        self.found = None    # the interpreter and the plug-in's folder
        self.missing = None  # or why there are none
        self.kept = {}       # the one that was used last is the last
        atexit.register(self.close)

    def close(self):
        for tasks in self.kept.values():
            tasks.stack.close()
        self.kept.clear()

    def find(self):
        if self.missing:
            raise self.missing
        if not self.found:
            try:
                python = install.environment()
                self.found = python, install.plug_in(python, self.build)
                # weft would warn of it, as of every WEFT_ that is no setting.
                os.environ.pop("WEFT_CACHE", None)
            except (Missing, Failed) as why:
                self.missing = type(why)(str(why).splitlines()[-1])
                raise self.missing from why
        return self.found

    @contextlib.contextmanager
    def tasks(self, kind):
        """A cluster of that @kind.  It does not outlive a failure."""
        tasks = self.kept.pop(kind, None)
        try:
            if not tasks:
                found = self.find()
                while len(self.kept) >= KEPT:
                    self.kept.pop(next(iter(self.kept))).stack.close()
                tasks = Tasks(kind, *found)
            yield tasks
            self.kept[kind] = tasks
            tasks = None
        except cluster.Failed as why:
            text = " ".join(str(why).split())
            raise Failed(text if len(text) < 1000 else text[:500] + " ... " + text[-500:]) from why
        finally:
            if tasks:
                tasks.stack.close()

    def step(self, kind, what, seconds, workers=1, **words):
        """Measure the step @what of so many workers: see tensorflow_steps.py."""
        with self.tasks(kind) as tasks, tasks.checked():
            tasks.in_turn(workers, steps.prepare, what, words)
            before = tasks.cpu_s()
            each = tasks.all(workers, steps.measure, seconds)
            spent = tasks.cpu_s() - before
            tasks.all(workers, steps.finish)
            return {"p50_s": each[0]["p50_s"], "cpu_s": spent / sum(e["steps"] for e in each),
                    "steps_per_s": sum(e["steps"] / e["seconds"] for e in each)}

    def training(self, kind, workers, count):
        """Train by so many workers until they have made @count steps."""
        with self.tasks(kind) as tasks, tasks.checked():
            tasks.in_turn(workers, steps.begin_training)
            start = time.perf_counter()
            made = sum(tasks.all(workers, steps.go_on_training, count))
            took = time.perf_counter() - start
            result = {"seconds": took, "steps_per_s": made / took,
                      "accuracy": tasks.in_turn(1, steps.accuracy)[0],
                      "carried": tasks.carried()}
            tasks.all(workers, steps.finish)
            return result

    def sum(self, kind, count, rounds):
        """Seconds of an AllReduce of @count bytes by MultiWorkerMirroredStrategy."""
        with self.tasks(kind) as tasks, tasks.checked("buffers"):
            tasks.all(kind.workers, steps.mirror, count)
            return tasks.all(kind.workers, steps.mirror_steps, rounds)[0]
