# SPDX-License-Identifier: BSD-2-Clause
"""The programs that scripts/bench holds against each other: how each is built,
started and read.  Every run returns what one measurement printed, as a dict."""

import concurrent.futures
import contextlib
import copy
import functools
import importlib.util
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import hosts
import tensorflow_tasks

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "nixl"))
import nixl_install  # noqa: E402  it is found by the path above

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python"))
import package  # noqa: E402  so is that of Python
from need import Failed, Missing, need

KIB, MIB = 1 << 10, 1 << 20

# Processes started at once.
BATCH = 8

# Descriptors of a node over tcp for a peer of the same host, as weft(7) has it, and for itself.
PEER_DESCRIPTORS, NODE_DESCRIPTORS = 8, 100

# The exit status of a program that lacks something.
LACKS = 77

# A run that takes longer than its seconds and this has failed.
PATIENCE_S = 60


def size_text(count):
    for unit, letter in ((MIB, "M"), (KIB, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{letter}"
    return str(count)


def endpoint_of(provider):
    """Connected endpoints where weft uses them too."""
    shared = provider in ("shm", "sockets") or "rxm" in provider
    return "rdm" if shared else "msg"


def first_line(process, errors):
    """That of a server, which says in the file @errors why it has none."""
    line = process.stdout.readline().strip()
    if not line:
        errors.seek(0)
        why = errors.read().strip()[-300:]
        raise Failed(f"{shlex.join(process.args)}: printed no address: {why}")
    return line


def wait_for_connections(address, count):
    """Until so many are open to the port of @address."""
    need("ss", "iproute2")
    port = address.rpartition(":")[2]
    until = time.monotonic() + PATIENCE_S
    while True:
        shown = subprocess.run(["ss", "-Htn", "state", "established", "sport", "=", ":" + port],
                               capture_output=True, text=True).stdout
        if len(shown.splitlines()) >= count:
            return
        if time.monotonic() > until:
            raise Failed(f"only {len(shown.splitlines())} of {count} peers have come")
        time.sleep(.05)


@contextlib.contextmanager
def room_for(peers):
    """Each process that is started inside may have the descriptors of a node with so many."""
    limits = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = PEER_DESCRIPTORS * peers + NODE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < count:
        raise Missing(f"{peers} peers take {count} descriptors, and the hard limit is {hard}")
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def mpirun():
    """What a command of Open MPI begins with."""
    return ["mpirun"] + (["--allow-run-as-root"] if os.geteuid() == 0 else [])


def ucx_env(transports, devices="lo"):
    """The settings for UCX over these transports."""
    return {"UCX_TLS": transports + ",self", "UCX_NET_DEVICES": devices,
            "UCX_WARN_UNUSED_ENV_VARS": "n"}


def crowd_env(provider):
    """The settings for hundreds of peers, as weft_options(7) advises."""
    return {"WEFT_PROVIDER": provider, "WEFT_SLOTS": "1024"}


class Programs:
    """Where everything is, and how long one measurement takes."""

    def __init__(self, source, build, seconds):
        self.source, self.build, self.seconds = source, build, seconds
        self.peers = os.path.join(build, "bench-peers")
        self.processors = sorted(os.sched_getaffinity(0))
        self.ready = set()
        self.free = False  # the system places processes, and threads of theirs

    @functools.cached_property
    def tensorflow(self):
        return tensorflow_tasks.Clusters(self.build)

    def placed_freely(self):
        """The same without pinning: for what may use a second processor, on both sides
        of a comparison."""
        other = copy.copy(self)
        other.free = True
        return other

    def on_one(self):
        """The same with both sides on one processor."""
        other = copy.copy(self)
        other.processors = self.processors[:1]
        return other

    def longer(self, times):
        """The same with longer measurements: for what is rare."""
        other = copy.copy(self)
        other.seconds *= times
        return other

    # Starting

    def pinned(self, place):
        """Processor @place of ours; both sides share one where there is no second."""
        if self.free:
            return []
        return ["taskset", "-c", str(self.processors[place % len(self.processors)])]

    def run(self, command, env=None):
        shown = shlex.join(command)
        try:
            done = subprocess.run(
                command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=self.seconds * 4 + PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{shown}: no end after {self.seconds * 4 + PATIENCE_S:.0f} s")
        if done.returncode == LACKS:
            raise Missing(f"{shown}: {done.stderr.strip()[-300:]}")
        if done.returncode:
            raise Failed(f"{shown}: status {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def result(self, command, env=None):
        lines = [x for x in self.run(command, env).splitlines() if x.startswith("{")]
        if not lines:
            raise Failed(f"{shlex.join(command)}: printed no result")
        return json.loads(lines[-1])

    def results(self, commands, env=None, address=None):
        """Those of several programs that run at once.  With @address they are started
        few at a time: hundreds that open a fabric together would starve each other."""
        with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
            runs = []
            for command in commands:
                runs.append(pool.submit(self.result, command, env))
                if address and len(runs) % BATCH == 0:
                    wait_for_connections(address, len(runs))
            return [r.result() for r in runs]

    @contextlib.contextmanager
    def server(self, command, env=None):
        """A server, whose first line is its address, and which is ended when we are done."""
        with tempfile.TemporaryFile("w+") as errors:
            process = subprocess.Popen(
                command, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors, text=True)
            try:
                yield first_line(process, errors)
            finally:
                process.terminate()
                process.wait()
                process.stdout.close()

    # weft and the plain references, all built by `make bench`

    def perf(self, options, addresses):
        """What measures as a user would, without the comparison of bytes."""
        return [os.path.join(self.build, "weft"), "perf", "--json", "--no-validate",
                # one half for latency, one for bandwidth
                "--time", f"{2 * self.seconds:g}", *options, *addresses]

    @functools.cached_property
    def info(self):
        """What weft finds here."""
        return self.result([os.path.join(self.build, "weft"), "info", "--json"])

    def need_provider(self, name):
        """Not every libfabric has them all."""
        if all(f["provider"] != name for f in self.info["fabrics"]):
            raise Missing(f"libfabric {self.info['libfabric']} has no {name}")

    def need_gpu(self):
        if not self.info["cuda"]["devices"]:
            raise Missing(f"no GPU: {self.info['cuda']['sentence']}")

    def weft(self, *options, provider, env=None, idle=0):
        """By one client, beside so many idle peers."""
        self.need_provider(provider)
        env = {"WEFT_PROVIDER": provider, **(env or {})}
        serve = self.pinned(1) + [os.path.join(self.build, "weft"), "serve"]
        with room_for(idle), self.server(serve, env) as address, \
                self.idle_peers(address, provider, idle):
            return self.result(self.pinned(0) + self.perf(options, [address]), env)

    def weft_paced(self, rate, window, idle=0):
        """Empty calls over tcp, @rate of them due in a second, beside idle peers."""
        return self.weft("--test", "call", "--sizes", "0", "--window", str(window), "--rate",
                         str(int(rate)), provider="tcp", idle=idle)

    def crowd_command(self, provider, peers):
        return [os.path.join(self.build, "tests", "bench", "crowd"), "-p", provider,
                "-w", str(peers)]

    def crowd(self, provider, peers):
        """So many nodes of this host meet one.  They are few in a process: a node looks after the
        descriptors of all of them."""
        with room_for(peers):
            return self.result([*self.crowd_command(provider, peers), "-n", "50"])

    @contextlib.contextmanager
    def idle_peers(self, address, provider, peers):
        """So many nodes of this host, placed by the system, have met the one at @address."""
        if not peers:
            yield
            return
        command = [*self.crowd_command(provider, peers), "-e", address]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            if not process.stdout.readline():
                why = f"{shlex.join(command)}: {process.communicate()[1].strip()[-300:]}"
                raise Missing(why) if process.returncode == LACKS else Failed(why)
            yield
        finally:
            process.communicate()

    @contextlib.contextmanager
    def secured(self, security, certificates=False):
        """The environment of nodes in a mode of security, with one key, or of one authority."""
        with tempfile.TemporaryDirectory() as folder:
            env = {"WEFT_SECURITY": security}
            if certificates:
                env.update(self.certificates(folder))
            elif security != "open":
                env["WEFT_KEY_FILE"] = os.path.join(folder, "key")
                self.run([os.path.join(self.build, "weft"), "key", "new", env["WEFT_KEY_FILE"]])
            yield env

    def certificates(self, folder):
        """An authority, and a certificate of it: P-256, for 127.0.0.1."""
        def at(name):
            return os.path.join(folder, name)
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-batch"]
        self.run(["openssl", "req", "-x509", *curve, "-subj", "/CN=authority", "-days", "2",
                  "-keyout", at("ca.key"), "-out", at("ca")])
        self.run(["openssl", "req", "-x509", *curve, "-subj", "/CN=node", "-days", "2",
                  "-CA", at("ca"), "-CAkey", at("ca.key"), "-addext", "basicConstraints=CA:false",
                  "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", at("key"), "-out", at("cert")])
        os.chmod(at("key"), 0o400)
        return {"WEFT_CERT": at("cert"), "WEFT_KEY": at("key"), "WEFT_CA": at("ca")}

    def weft_secured(self, security, *options, provider, certificates=False):
        """As weft(), in a mode of security: both sides have one key, or certificates."""
        with self.secured(security, certificates) as env:
            return self.weft(*options, provider=provider, env=env)

    def first(self, security, certificates=False):
        """How long a fresh node takes to the first answer of another."""
        with self.secured(security, certificates) as env:
            command = [os.path.join(self.build, "tests/bench/first"), "-p", "tcp",
                       "-t", f"{8 * self.seconds:g}"]
            return self.result(command, env)

    def opening(self, provider):
        """Processor time of opening a process's first node."""
        return self.ours("first", "-e", "open", "-p", provider, seconds=4 * self.seconds)

    def cipher(self, count):
        """MB/s at which one processor seals @count bytes at a time, as openssl measures it."""
        command = self.pinned(0) + ["openssl", "speed", "-mr", "-seconds", "1", "-bytes",
                                    str(count), "-evp", "aes-128-gcm"]
        return float(self.run(command).splitlines()[-1].split(":")[-1]) / 1e6

    def weft_crowd(self, servers, workers, *options, provider):
        """All workers at all servers at once, and the system places them."""
        self.need_provider(provider)
        env = crowd_env(provider)
        with contextlib.ExitStack() as stack:
            serve = [os.path.join(self.build, "weft"), "serve", "--callers", str(workers)]
            addresses = [stack.enter_context(self.server(serve, env)) for _ in range(servers)]
            return self.results(workers * [self.perf(options, addresses)], env, addresses[0])

    def weft_rails(self, rails, mbit, *options):
        """Between two hosts, by so many networks that carry @mbit each."""
        self.need_provider("tcp")
        env = {"WEFT_PROVIDER": "tcp", "WEFT_SECURITY": "open",
               "WEFT_DEVICE": ",".join(f"net{n}" for n in range(rails))}
        with hosts.joined(rails, mbit) as (here, there):
            serve = there + self.pinned(1) + [os.path.join(self.build, "weft"), "serve"]
            with self.server(serve, {**env, "WEFT_LISTEN": hosts.address(1, 0) + ":0"}) as address:
                result = self.result(here + self.pinned(0) + self.perf(options, [address]),
                                     {**env, "WEFT_LISTEN": hosts.address(0, 0) + ":0"})
        if result["path"]["rails"] != rails:
            raise Failed(f"{result['path']['rails']} of {rails} rails carried the last body")
        return result

    def weft_peer_bytes(self, provider, peers):
        """Private memory of a node for one more idle peer."""
        self.need_provider(provider)
        return self.result([os.path.join(self.build, "tests", "bench", "peers"), "-e", "idle",
                            "-p", provider, "-w", str(peers)], crowd_env(provider))["peer_bytes"]

    def ours(self, name, *options, seconds=None):
        confined = self.pinned(0) if len(self.processors) == 1 else []
        return self.result([*confined, os.path.join(self.build, "tests", "bench", name),
                            "-t", f"{seconds or self.seconds:g}", *options],
                           {"BENCH_FREE": "yes"} if self.free else None)

    def raw_rma(self, provider, count):
        return self.ours("raw_rma", "-p", provider, "-e", endpoint_of(provider),
                         "-s", size_text(count))

    def raw_read(self, provider, count):
        return self.ours("raw_read", "-p", provider, "-e", endpoint_of(provider),
                         "-s", size_text(count))

    def window(self, what, provider, count, blocks=1):
        return self.ours("window", "-p", provider, "-e", what, "-s", size_text(count),
                         "-w", str(blocks))

    def arena(self, memory, provider, count, sends):
        self.need_provider(provider)
        return self.ours("arena", "-p", provider, "-e", memory, "-s", size_text(count),
                         "-w", str(sends))

    def small(self, how, provider):
        return self.ours("small", "-p", provider, "-e", how)

    def threads(self, count, provider):
        return self.placed_freely().ours("small", "-p", provider, "-e", "threads",
                                         "-w", str(count))

    def grpc_threads(self, count):
        return self.placed_freely().grpc("threads", [0], count)

    def beside(self, what, provider):
        return self.placed_freely().ours("beside", "-p", provider, "-e", what,
                                         seconds=2 * self.seconds)

    def broadcast(self, count, receivers):
        return self.ours("broadcast", "-p", "tcp", "-s", size_text(count), "-w", str(receivers),
                         seconds=5 * self.seconds)

    def all_reduce(self, provider, count, ranks=4):
        self.need_provider(provider)
        return self.result([os.path.join(self.build, "weft"), "run", "-n", str(ranks),
                            os.path.join(self.build, "tests", "bench", "all_reduce"),
                            "-p", provider, "-s", size_text(count), "-t", f"{self.seconds:g}"])

    def raw_message(self, provider, count):
        return self.ours("raw_message", "-p", provider, "-e", endpoint_of(provider),
                         "-s", size_text(count), "-w", "16", seconds=2 * self.seconds)

    def tcp_stream(self, count, window, how="spin"):
        return self.ours("tcp_stream", "-e", how, "-s", size_text(count), "-w", str(window),
                         seconds=2 * self.seconds)

    def copy(self, how, count):
        return self.ours("copy", "-e", how, "-s", size_text(count))

    # Peers.  Each is built once, when it is first asked for.

    def peer(self, name, build):
        path = os.path.join(self.peers, name)
        if name not in self.ready:
            os.makedirs(self.peers, exist_ok=True)
            build(path)
            self.ready.add(name)
        return path

    def compile(self, command):
        done = subprocess.run(command, cwd=self.peers, capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"{shlex.join(command)}: {done.stderr.strip()[-600:]}")

    def flags(self, *modules):
        done = subprocess.run(["pkg-config", "--cflags", "--libs", *modules],
                              capture_output=True, text=True)
        return done.stdout.split() if done.returncode == 0 else None

    def sources(self, *names):
        return [os.path.join(self.source, "tests", "bench", n) for n in names]

    def build_c(self, path, compiler, libraries):
        self.compile([compiler, "-O2", "-D_GNU_SOURCE", "-I", self.source, "-o", path,
                      *self.sources(os.path.basename(path) + ".c", "bench.c"), *libraries])

    def build_grpc(self, path):
        packages = "libgrpc++-dev libprotobuf-dev protobuf-compiler-grpc protobuf-compiler g++"
        for program in ("g++", "protoc", "grpc_cpp_plugin"):
            need(program, packages)
        libraries = self.flags("grpc++", "protobuf")
        if libraries is None:
            raise Missing(f"no gRPC for C++: apt-get install {packages}")
        source, messages = self.sources("grpc_peer.cc", "peer.proto")
        if os.path.exists(path) and os.path.getmtime(path) > max(
                os.path.getmtime(source), os.path.getmtime(messages)):
            return  # it takes ten seconds
        self.compile(["protoc", "-I", os.path.dirname(source), "--cpp_out=.", "--grpc_out=.",
                      "--plugin=protoc-gen-grpc=" + shutil.which("grpc_cpp_plugin"),
                      "peer.proto"])
        self.compile(["g++", "-O2", "-I.", "-o", path, source, "peer.pb.cc",
                      "peer.grpc.pb.cc", *libraries])

    def grpc_client(self, path, mode, sizes, window, addresses, *options):
        return [path, mode, "-s", ",".join(map(size_text, sizes)), "-t", f"{self.seconds:g}",
                "-w", str(window), *options, *addresses]

    def grpc(self, mode, sizes, window=1, env=None, options=()):
        path = self.peer("grpc_peer", self.build_grpc)
        kind = {"spin": "spin", "async": "async", "paced": "async"}.get(mode, "sync")
        with self.server(self.pinned(1) + [path, "serve", kind], env) as address:
            return self.result(self.pinned(0) +
                               self.grpc_client(path, mode, sizes, window, [address], *options),
                               env)

    def grpc_paced(self, rate, window):
        """Empty calls, @rate of them due in a second."""
        return self.grpc("paced", [0], window, options=["-r", str(rate)])

    def grpc_secured(self, mode, sizes):
        """As grpc(), by TLS with a certificate of each side."""
        with self.secured("sealed", certificates=True) as env:
            return self.grpc(mode, sizes, env=env)

    def grpc_crowd(self, servers, workers, sizes):
        path = self.peer("grpc_peer", self.build_grpc)
        with contextlib.ExitStack() as stack:
            addresses = [stack.enter_context(self.server([path, "serve", "async"]))
                         for _ in range(servers)]
            return self.results(
                workers * [self.grpc_client(path, "async", sizes, 1, addresses)])

    def build_zmq(self, path):
        libraries = self.flags("libzmq")
        if libraries is None:
            raise Missing("no ZeroMQ: apt-get install libzmq3-dev")
        self.build_c(path, "cc", libraries)

    def zmq(self, count):
        return self.result([self.peer("zmq_peer", self.build_zmq), "-s", size_text(count),
                            "-t", f"{self.seconds:g}"])

    def build_mpi(self, path):
        need("mpicc", "libopenmpi-dev openmpi-bin")
        need("mpirun", "openmpi-bin")
        self.build_c(path, "mpicc", [])

    def mpi(self, transport, count, window=16):
        path = self.peer("mpi_peer", self.build_mpi)
        return self.result([
            *mpirun(), "--bind-to", "none" if self.free else "core", "-np", "2",
            "--mca", "pml", "ob1", "--mca", "btl", "self," + transport,
            "--mca", "btl_tcp_if_include", "lo",
            path, "-s", size_text(count), "-t", f"{2 * self.seconds:g}", "-w", str(window)])

    def mpi_all_reduce(self, transport, count, ranks=4):
        path = self.peer("mpi_all_reduce", self.build_mpi)
        return self.result([
            *mpirun(), "--bind-to", "none", "--oversubscribe", "-np", str(ranks),
            "--mca", "pml", "ob1", "--mca", "btl", "self," + transport,
            "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1",
            path, "-s", size_text(count), "-t", f"{self.seconds:g}"])

    def python_found(self, with_torch=False):
        """An interpreter with the package for Python, and what it needs to find that."""
        python = package.environment(with_torch)
        return python, {"PYTHONPATH": package.install(python, self.build)}

    def python_peer(self, way, provider, count):
        """By the package for Python."""
        python, env = self.python_found()
        return self.result([python, *self.sources("python_peer.py"), way, "-s", str(count), "-t",
                            f"{self.seconds:g}"],
                           {**env, "WEFT_PROVIDER": provider, **({"BENCH_FREE": "yes"} if self.free else {})})

    def torch_job(self, backend, count, *options, provider=""):
        """By torch.distributed over @backend, in four processes."""
        python, env = self.python_found(True)
        return self.result([python, *self.sources("gloo_peer.py"), "-b", backend, "-s", str(count),
                            "-t", f"{self.seconds:g}", *options], {**env, "WEFT_PROVIDER": provider})

    def gloo_all_reduce(self, count, ranks=4):
        """By the torch that pip has installed for this interpreter."""
        if not importlib.util.find_spec("torch"):
            raise Missing(f"no PyTorch for {sys.executable}: pip install torch")
        return self.result([sys.executable, *self.sources("gloo_peer.py"), "-n", str(ranks),
                            "-s", str(count), "-t", f"{self.seconds:g}"])

    def build_resident(self, path):
        self.compile(["cc", "-O2", "-shared", "-fPIC", "-o", path, *self.sources("resident.c")])

    def ucx(self, test, transports, count, resident=False):
        """ucx_perftest's @test; its MB are MiB.  It counts messages, not seconds."""
        need("ucx_perftest", "ucx-utils")
        rate = 5e9 if count >= 64 * KIB else 3e5 * count
        iterations = max(8, int(self.seconds * rate / max(count, 1)))
        env = {**os.environ, **ucx_env(transports, "lo" if "tcp" in transports else "all")}
        if resident:
            env["LD_PRELOAD"] = self.peer("resident", self.build_resident)
        server = subprocess.Popen(self.pinned(1) + ["ucx_perftest"], env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            command = self.pinned(0) + ["ucx_perftest", "127.0.0.1", "-t", test, "-s", str(count),
                                        "-n", str(iterations), "-w", "8", "-f", "-v"]
            subprocess.run(["sh", "-c", "for i in $(seq 50); do ss -Hltn sport = :13337 | "
                            "grep -q . && exit; sleep 0.1; done"], check=False)
            words = self.run(command, env).splitlines()[-1].split(",")
        finally:
            server.terminate()
            server.wait()
        if not re.fullmatch(r"[\d.]+", words[-1]):
            raise Failed(f"{shlex.join(command)}: printed no result")
        return {"latency_us": {"p50": float(words[1])}, "bytes_per_s": float(words[5]) * MIB,
                "messages_per_s": float(words[7])}

    @functools.cached_property
    def nixl_found(self):
        """The interpreter with NIXL that the plug-in's tests use, and the plug-in's folder."""
        python = nixl_install.environment()
        return python, nixl_install.plug_in(python, self.build)

    def nixl_backend(self, backend, way, env, count, blocks):
        """By the plug-in, or by what NIXL brings itself; the system places all threads."""
        python, plug_in = self.nixl_found
        env = {**env, "NIXL_LOG_LEVEL": "ERROR", "BENCH_FREE": "yes"}
        if backend == "WEFT":
            env["NIXL_PLUGIN_DIR"] = plug_in
        return self.result([python, *self.sources("nixl_peer.py"), way, "-s", str(count), "-w",
                            str(blocks), "-t", f"{self.seconds:g}", "-b", backend], env)

    def nixl(self, way, transports, count, blocks=1, device=None):
        """By the NIXL that pip has installed for this interpreter, with the UCX in it."""
        if not importlib.util.find_spec("nixl"):
            raise Missing(f"no NIXL for {sys.executable}: pip install nixl")
        env = {**ucx_env(transports), "NIXL_LOG_LEVEL": "ERROR"}
        if self.free:
            env["BENCH_FREE"] = "yes"
        return self.result([sys.executable, *self.sources("nixl_peer.py"), way, "-s", str(count),
                            "-w", str(blocks), "-t", f"{self.seconds:g}",
                            *([] if device is None else ["-d", str(device)])], env)
