# SPDX-License-Identifier: BSD-2-Clause
"""torch_demo: DistributedDataParallel of unmodified PyTorch trains in four processes, over gloo and
then over weft by each provider.

usage: torch_demo.py BUILD PROVIDER...      status 0 only if each network tells as many digits as
gloo's, and all providers' are the same to the bit"""

import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True

from console import fail, progress  # noqa: E402  no compiled files are left beside it
from need import Failed, Missing  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(os.path.dirname(HERE), "python"))
import package  # noqa: E402  it is found by the path above

RANKS, STEPS = 4, 200
LEAST_ACCURACY = .9   # gloo's was .978, seen
FURTHEST = .02   # from gloo's, which adds in another order
LIMIT_S = 600    # of a training, which took up to 70 s, over sockets and beside other load


def train(python, site, provider):
    """Train over weft by @provider, or over gloo.  What rank 0 printed."""
    backend = "weft" if provider else "gloo"
    progress(f"training over {provider or 'gloo'}")
    env = {**os.environ, "PYTHONPATH": site, "FI_PROVIDER": provider, "OMP_NUM_THREADS": "1",
           "GLOO_SOCKET_IFNAME": "lo"}
    if not provider:
        del env["FI_PROVIDER"]
    env.pop("WEFT_CACHE", None)   # the environments' place, and no setting of weft's
    torchrun = os.path.join(os.path.dirname(python), "torchrun")
    try:
        ran = subprocess.run([torchrun, "--standalone", "--nproc-per-node", str(RANKS),
                              os.path.join(HERE, "torch_train.py"), backend, str(STEPS)], env=env,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        fail(f"training over {provider or 'gloo'} does not end")
    lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode or not lines:
        fail(f"training over {provider or 'gloo'} failed:\n{ran.stdout}")
    return json.loads(lines[-1])


def show(provider, result):
    progress("")
    print(f"{'weft' if provider else 'gloo':<8} {provider or '-':<9} {result['steps_per_s']:>8.1f} "
          f"{result['accuracy']:>9.3f}  {result['carried']}", flush=True)


def main():
    build, *providers = sys.argv[1:]
    print("demo: PyTorch of PyPI goes into " + package.wheels.CACHE +
          ", the package weft is built for it", flush=True)
    try:
        python = package.environment(with_torch=True)
        site = package.install(python, build)
    except (Missing, Failed) as why:
        fail(why)
    print(f"\n{RANKS} processes of torchrun, {STEPS} steps of DistributedDataParallel with 1.9 million "
          f"parameters on the CPU.\n"
          f"{'backend':<8} {'provider':<9} {'steps/s':>8} {'accuracy':>9}  carried by")
    gloo = train(python, site, "")
    show("", gloo)
    if gloo["accuracy"] < LEAST_ACCURACY:
        fail(f"an accuracy of {gloo['accuracy']:.3f} is too low")
    digests = set()
    for provider in providers:
        result = train(python, site, provider)
        show(provider, result)
        if result["carried"] != provider:
            fail(f"{provider} was asked for, and {result['carried']} carried the gradients")
        digests.add(result["digest"])
        if abs(result["accuracy"] - gloo["accuracy"]) > FURTHEST:
            fail(f"over {provider} the accuracy is another than over gloo")
    if len(digests) > 1:
        fail("the parameters differ from provider to provider")


main()
