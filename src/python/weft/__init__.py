# SPDX-License-Identifier: BSD-2-Clause
"""Tensors and calls over any fabric.

    with weft.Node() as node:
        peer = node.peer('10.0.0.2:7000')
        peer.send(1, 'gradients', array).result()
        tensor = node.recv(1, 'weights').result()

What is begun is a weft.Operation: result() waits for it, await does so in a task, and without either
it goes on.  Arrays are anything with __dlpack__ or a buffer: NumPy's, PyTorch's, bytes.  Names of
providers and settings come from the environment: FI_PROVIDER, WEFT_*; see weft_options(7).
"""
import atexit
from typing import Any, NamedTuple, Optional

from ._weft import (Group, Node, Operation, Peer, Region, Remote, Tensor, Window, version, wait_all,
                    wait_any)
from . import _weft
from .errors import (Cancelled, DeadlineExceeded, Error, Executed, InvalidArgument, NotFound, Status,
                     Unavailable)

__all__ = ['Cancelled', 'DeadlineExceeded', 'Error', 'Executed', 'Group', 'InvalidArgument', 'Node',
           'NotFound', 'Note', 'Operation', 'Peer', 'Region', 'Remote', 'Status', 'Tensor',
           'Unavailable', 'Window', 'join', 'version', 'wait_all', 'wait_any']
__version__ = version()


class Note(NamedTuple):
    """What came with a put or get, whose bytes have moved before."""
    number: int
    data: bytes
    of_get: bool
    peer: Optional[Peer]


def join(**options: Any) -> Group:
    """Open a node, and join the job of this process with it.

    options: bootstrap, name and timeout are those of Node.join(), all others those of Node.  A node
    with a name or timeout of its own is opened first, and joins by Node.join().  The node lives as
    long as the group.
    """
    words = {word: options.pop(word) for word in ('bootstrap', 'name', 'timeout') if word in options}
    return Node(**options).join(**words)


# Operations that are under way hold objects of Python's, which the interpreter's end takes away.
atexit.register(_weft._close_all_nodes)
