# SPDX-License-Identifier: BSD-2-Clause
"""TensorFlow in a virtual environment, and the plug-in beside a build of weft, for tests, benchmarks
and the demo."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import wheels  # noqa: E402  beside this folder
from wheels import CACHE, TOP, Failed, Missing, last_line, sh  # noqa: E402,F401

# TensorFlow's headers lay some classes out otherwise where AddressSanitizer is known to be.
SANITIZE = '-g -fsanitize=address -fno-omit-frame-pointer -U__SANITIZE_ADDRESS__'


def environment(release=None):
    """The path of a Python with TensorFlow @release; without one, the newest of PyPI."""
    return wheels.environment('tensorflow-%s' % (release or 'newest'),
                              ['tensorflow-cpu' + ('==' + release if release else ''),
                               'setuptools', 'wheel'])


def sanitizer():
    """The environment of a process with the plug-in built so.  TensorFlow has no sanitizer, and
    frees what it takes in ways of its own."""
    return wheels.sanitizer('detect_leaks=0:detect_odr_violation=0:alloc_dealloc_mismatch=0:'
                            'new_delete_type_mismatch=0:quarantine_size_mb=1')


def plug_in(python, build, sanitize=False):
    """Build and install the plug-in, unless it is there.  Its folder, for PYTHONPATH."""
    return wheels.install(python, build, os.path.join(TOP, 'src', 'tensorflow'),
                          'tensorflow' + ('-sanitized' if sanitize else ''),
                          SANITIZE if sanitize else '')
