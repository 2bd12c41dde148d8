# SPDX-License-Identifier: BSD-2-Clause
"""What the package for Python is built and tested with, and the package itself beside a build of weft,
for tests and benchmarks."""
import os
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import wheels  # noqa: E402  beside this folder
from wheels import TOP, Failed, Missing  # noqa: E402,F401

NEEDED = ['nanobind', 'scikit-build-core', 'cmake', 'ninja', 'numpy', 'protobuf', 'pytest']


def environment(with_torch=False):
    """The path of a Python with what is needed, and with PyTorch if asked for."""
    if with_torch:
        return wheels.environment('python-all', NEEDED + ['torch'])
    return wheels.environment('python', NEEDED)


def install(python, build):
    """Build and install the package, unless it is there.  Its folder, for PYTHONPATH."""
    return wheels.install(python, build, os.path.join(TOP, 'src', 'python'), 'python')
