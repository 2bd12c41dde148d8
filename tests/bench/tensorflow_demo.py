# SPDX-License-Identifier: BSD-2-Clause
"""tensorflow_demo: unmodified TensorFlow trains with a parameter server and two workers, by its own
gRPC and then over weft by each provider.

usage: tensorflow_demo.py BUILD PROVIDER...       status 0 only if weft has carried every tensor
between tasks, and the network that was trained tells as many digits as by gRPC"""

import sys

sys.dont_write_bytecode = True

from console import fail, progress  # noqa: E402  no compiled files are left beside it
from need import Failed, Missing  # noqa: E402
from tensorflow_tasks import Clusters, Kind, install, steps  # noqa: E402

WORKERS, STEPS = 2, 2000
LEAST_ACCURACY = .9
FURTHEST = .03  # from gRPC's: the order of asynchronous steps is another each time


def train(clusters, provider):
    progress(f"training over {provider or 'gRPC'}")
    try:
        return clusters.training(Kind(provider, workers=WORKERS), WORKERS, STEPS)
    except (Missing, Failed) as why:
        fail(f"training over {provider or 'gRPC'} failed: {why}")


def show(provider, result):
    weft, bodies, grpc = result["carried"]
    progress("")
    print(f"{'grpc+weft' if provider else 'grpc':<10} {provider or '-':<9} "
          f"{result['steps_per_s']:>8.0f} {result['accuracy']:>9.3f}  " +
          (f"weft {weft} tensors, {bodies} of them by {provider}; gRPC {grpc}" if provider
           else "gRPC all"), flush=True)
    return bodies


def main():
    build, *providers = sys.argv[1:]
    clusters = Clusters(build)
    print("demo: TensorFlow of PyPI goes into " + install.CACHE +
          ", the plug-in is built against it", flush=True)
    try:
        clusters.find()
    except (Missing, Failed) as why:
        fail(why)
    print(f"\nOne parameter server and {WORKERS} workers, {STEPS} asynchronous steps of "
          f"{steps.BATCH} made-up images, by unmodified TensorFlow.\n"
          f"{'protocol':<10} {'provider':<9} {'steps/s':>8} {'accuracy':>9}  carried by")
    grpc = train(clusters, "")
    show("", grpc)
    if grpc["accuracy"] < LEAST_ACCURACY:
        fail(f"an accuracy of {grpc['accuracy']:.3f} is too low")
    for provider in providers:
        result = train(clusters, provider)
        if not show(provider, result):
            fail(f"no tensor has come by {provider}")
        if abs(result["accuracy"] - grpc["accuracy"]) > FURTHEST:
            fail(f"over {provider} the accuracy is another than by gRPC")


main()
