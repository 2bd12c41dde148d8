# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of weft's package share: two nodes, and processes of Python."""
import os
import subprocess
import sys
import textwrap

import pytest
import weft

LIMIT = 60   # seconds for anything; nothing here takes one
ALL = bool(os.environ.get('PYTHON_TESTS_ALL'))
TOOL = os.environ.get('PYTHON_TESTS_TOOL')


class Pair:
    """Two nodes, and the second as a peer of the first."""
    def __init__(self):
        self.near = weft.Node(provider='tcp', timeout=LIMIT)
        self.far = weft.Node(provider='tcp', timeout=LIMIT)
        self.peer = self.near.peer(self.far.address)

    def close(self):
        """Close both."""
        self.near.close()
        self.far.close()


@pytest.fixture
def pair():
    """Two nodes of this process."""
    both = Pair()
    yield both
    both.close()


class Process:
    """A process of Python that runs a text."""
    def __init__(self, text, *arguments, prefix=(), **environment):
        self.process = subprocess.Popen([*prefix, sys.executable, '-c', textwrap.dedent(text),
                                         *arguments], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=dict(os.environ, **environment))

    def line(self):
        """The next line that the process prints."""
        line = self.process.stdout.readline()
        if not line:
            pytest.fail('the process has ended: ' + self.process.stderr.read())
        return line.strip()

    def end(self):
        """Wait for the end.  The status, and what was printed to both."""
        try:
            out, err = self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            pytest.fail('the process does not end: ' + out + err)
        return self.process.returncode, out, err


@pytest.fixture
def start():
    """A function that starts processes, which are gone at the end."""
    started = []

    def starter(text, *arguments, **words):
        started.append(Process(text, *arguments, **words))
        return started[-1]
    yield starter
    for one in started:
        one.process.kill()
        one.process.communicate()
