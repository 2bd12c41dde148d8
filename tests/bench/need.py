# SPDX-License-Identifier: BSD-2-Clause
"""What a comparison needs, and how it says that it has not got it."""

import shutil


class Missing(Exception):
    """Something is not here; the message says what, and what to install if that helps."""


class Failed(Exception):
    """A run went wrong; the message has the command and what it said."""


def need(program, package):
    if not shutil.which(program):
        raise Missing(f"no {program}: apt-get install {package}")
