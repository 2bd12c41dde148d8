# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison needs, and how it says that it has not got it."""

import os
import shutil
import sys

sys.path.insert(1, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from wheels import Failed, Missing  # noqa: E402,F401  the same for all that fetch and build


def need(program, package):
    if not shutil.which(program):
        raise Missing(f"no {program}: apt-get install {package}")
