# SPDX-License-Identifier: BSD-2-Clause
"""What the package for Python is built and tested with, and the package itself beside a build of weft,
for tests and benchmarks."""
import glob
import os
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import wheels  # noqa: E402  beside this folder
from wheels import TOP, Failed, Missing  # noqa: E402,F401

SANITIZE = '-O1 -g -fsanitize=address -fno-omit-frame-pointer'
NEEDED = ['nanobind', 'scikit-build-core', 'cmake', 'ninja', 'numpy', 'protobuf', 'pytest']


def environment(with_torch=False):
    """The path of a Python with what is needed, and with PyTorch if asked for."""
    if with_torch:
        return wheels.environment('python-all', NEEDED + ['torch'])
    return wheels.environment('python', NEEDED)


def install_wheel(python, build):
    """Build a wheel that has libweft in it by scripts/wheel, and install it.  Its folder, for
    PYTHONPATH."""
    work = os.path.join(os.path.abspath(build), 'tests', 'python-wheel')
    site, script = os.path.join(work, 'site'), os.path.join(TOP, 'scripts', 'wheel')
    source = os.path.join(TOP, 'src', 'python')

    def make():
        wheels.build([sys.executable, script, build, work], work, 'the wheel')
        wheels.build([python, '-m', 'pip', 'install', '--disable-pip-version-check', '--no-deps',
                      '--no-index', '--target', site, *glob.glob(os.path.join(work, '*.whl'))],
                     work, 'the wheel')
    wheels.build_once(work, wheels.digest(python, build, source), make)
    return site


def sanitizer():
    """The environment of a process with the package built so; Python itself leaks, and memory that
    is kept for a while after its end is no leak of the package."""
    return wheels.sanitizer('detect_leaks=0:quarantine_size_mb=1')


def install(python, build, sanitize=False):
    """Build and install the package, unless it is there.  Its folder, for PYTHONPATH."""
    source = os.path.join(TOP, 'src', 'python')
    if not sanitize:
        return wheels.install(python, build, source, 'python')
    # The build loads what it has built, for the stubs of types.
    return wheels.install(python, build, source, 'python-sanitized', SANITIZE, sanitizer())
