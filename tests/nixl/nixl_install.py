# SPDX-License-Identifier: BSD-2-Clause
"""NIXL in a virtual environment, and the plug-in beside a build of weft, for tests and benchmarks."""
import os
import subprocess
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import wheels  # noqa: E402  beside this folder
from wheels import TOP, Failed, Missing  # noqa: E402,F401

SOURCES = os.path.join(TOP, 'src', 'nixl')
# The packages differ in the CUDA that their UCX knows; without a GPU either will do.  What they
# depend on, PyTorch, is not needed for what the tests do.
PACKAGE = 'nixl-cu13'
MODULE = PACKAGE.replace('-', '_')
PLAIN = '-O2 -g'
SANITIZE = '-O1 -g -fsanitize=address -fno-omit-frame-pointer'


def environment(release=None):
    """The path of a Python with NIXL @release; without one, the newest of PyPI."""
    python = wheels.environment('nixl-%s' % (release or 'newest'),
                                [PACKAGE + ('==' + release if release else ''), 'numpy',
                                 '--no-deps'])
    loaded = subprocess.run([python, '-c', 'import ' + MODULE], check=False, text=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if loaded.returncode:
        raise Missing('%s cannot be loaded: %s' %
                      (PACKAGE, (loaded.stderr.strip() or 'no reason given').splitlines()[-1]))
    return python


def sanitizer():
    """The environment of a process with the plug-in built so; Python itself leaks."""
    return wheels.sanitizer('detect_leaks=0')


def plug_in(python, build, sanitize=False):
    """Build the plug-in, unless it is there.  Its folder, for NIXL_PLUGIN_DIR."""
    work = os.path.join(os.path.abspath(build), 'tests', 'nixl' + ('-sanitized' if sanitize else ''))

    def make():
        wheels.build(['make', '-C', SOURCES, 'O=' + work,
                      'CXXFLAGS=-Werror ' + (SANITIZE if sanitize else PLAIN)], work, 'the plug-in',
                     env=dict(os.environ, PKG_CONFIG_PATH=wheels.package(build, work)))
    wheels.build_once(work, wheels.digest(python, build, SOURCES), make)
    return work
