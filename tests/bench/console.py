# SPDX-License-Identifier: BSD-2-Clause
"""What a demo shows on the way, and how it gives up."""

import sys


def progress(text):
    """Rewrites one line on a terminal; nothing when piped."""
    if sys.stdout.isatty():
        print(f"\r\033[K{text}", end="", flush=True)


def fail(why):
    """Say why the demo failed, and end it."""
    progress("")
    print(f"demo: {why}")
    sys.exit(1)
