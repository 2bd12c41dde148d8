# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts within this one, which are network namespaces, with cables of limited rate
between them.  They have no name outside, and are gone when their processes are, which
end with this one, however that ends."""

import contextlib
import subprocess

from need import Missing, need

# As pairs.py has it; a namespace begins with what the first one has.
RENO = "echo reno 2>/dev/null >/proc/sys/net/ipv4/tcp_congestion_control"
CABLE = "ip link add net{n} type veth peer name net{n} netns {there}"
# A bucket of several large packets, and a queue that TCP does not overrun at once.
END = """ip address add {address}/24 dev net{n}
ip link set net{n} up
tc qdisc add dev net{n} root tbf rate {mbit}mbit burst 256kb latency 50ms"""
# Providers overlook a network without a carrier, which comes a moment later.
CARRIER = """for try in $(seq 100); do
    ip -br link show dev net{n} | grep -q " UP " && exit
    sleep .1
done
echo net{n} gets no carrier >&2
exit 1"""


def address(host, network):
    return f"10.78.{network}.{host + 1}"


def into(host):
    """What a command begins with that is to run there."""
    return ["nsenter", "-t", str(host.pid), "-n"]


def run_on(host, script, **words):
    done = subprocess.run(into(host) + ["sh", "-e", "-c", script.format(**words)],
                          capture_output=True, text=True)
    if done.returncode:
        raise Missing("no hosts of namespaces: " + " ".join(done.stderr.split()))


def start_host(stack):
    """A host; it ends when its stdin does."""
    process = stack.enter_context(subprocess.Popen(
        ["unshare", "-n", "sh", "-c", f"{RENO}; ip link set lo up && echo up && exec cat"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    if process.stdout.readline() != "up\n":
        raise Missing("no hosts of namespaces: " + " ".join(process.stderr.read().split()))
    return process


@contextlib.contextmanager
def joined(networks, mbit):
    """Both hosts, by what commands begin with there; each way of a cable carries @mbit."""
    for program, package in (("ip", "iproute2"), ("tc", "iproute2"), ("nsenter", "util-linux"),
                             ("unshare", "util-linux")):
        need(program, package)
    with contextlib.ExitStack() as stack:
        both = [start_host(stack), start_host(stack)]
        for n in range(networks):
            run_on(both[0], CABLE, n=n, there=both[1].pid)
            for i, host in enumerate(both):
                run_on(host, END, n=n, address=address(i, n), mbit=mbit)
        for n in range(networks):
            for host in both:
                run_on(host, CARRIER, n=n)
        yield [into(host) for host in both]
