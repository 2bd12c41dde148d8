# SPDX-License-Identifier: BSD-2-Clause
"""Works: operations of weft as PyTorch waits for them."""
import select
import threading

import torch
import torch.distributed as dist

from ..errors import Error


class Reaper:
    """A thread that tells futures of operations that have ended, for as long as the node is open."""
    def __init__(self, node):
        self.node = node
        self.fd = node._queue_fd()
        threading.Thread(target=self.run, name='weft futures', daemon=True).start()

    def run(self):
        """Sleep until something has ended, without the GIL."""
        while not self.node.closed:
            select.select([self.fd], [], [], 1)
            for tell in self.node._drain():
                tell()


def error_of(failure):
    """What PyTorch raises for an error of weft's."""
    return dist.DistBackendError('weft: %s' % failure)


class Work(dist._Work):
    """Operations that one call has begun, and what is left to do when all have ended.

    after: a function that puts results where the caller wants them; it runs once, in the thread that
    waits, or the reaper's.
    """
    def __init__(self, tensors, operations, after=None):
        super().__init__()
        self.tensors = tensors
        self.operations = operations
        self.after = after
        self.lock = threading.Lock()
        self.future = None
        self.failure = None
        self.finished = False

    def finish(self, seconds=None):
        """Wait for all, and do what is left.  Raises how the first has failed."""
        for operation in self.operations:
            operation.wait(seconds)
        with self.lock:
            if not self.finished:
                try:
                    for operation in self.operations:
                        operation.result(0)
                    if self.after:
                        self.after()
                except Error as failure:
                    self.failure = error_of(failure)
                self.operations = self.operations if self.failure else []
                self.after = None
                self.finished = True
        if self.failure:
            raise self.failure

    def wait(self, timeout=None):
        seconds = timeout.total_seconds() if timeout else 0
        try:
            self.finish(seconds if seconds > 0 else None)
        except TimeoutError as late:
            raise RuntimeError('weft: %s' % late) from None
        return True

    def synchronize(self):
        self.wait()

    def is_completed(self):
        return self.finished or all(operation.done() for operation in self.operations)

    def is_success(self):
        return self.is_completed() and self.exception() is None

    def exception(self):
        if self.is_completed() and not self.finished:
            try:
                self.finish()
            except dist.DistBackendError:
                pass
        return self.failure

    def result(self):
        self.wait()
        return self.tensors

    def source_rank(self):
        return -1

    _source_rank = source_rank

    def get_future(self):
        with self.lock:
            if self.future:
                return self.future
            self.future = torch.futures.Future()
        waiting = [operation for operation in self.operations if operation._tell(self.tell)]
        if not waiting:
            self.tell()
        return self.future

    def tell(self):
        """An operation has ended: with the last of them the future is told."""
        if not self.is_completed():
            return
        try:
            self.finish()
            outcome = None
        except dist.DistBackendError as failure:
            outcome = failure
        if not self.future.done():
            if outcome:
                self.future.set_exception(outcome)
            else:
                self.future.set_result(self.tensors)


class ReceiveWork(Work):
    """A receive from any rank, which tells whose tensor came."""
    def __init__(self, tensors, operation, rank_of):
        super().__init__(tensors, [operation])
        self.operation = operation
        self.rank_of = rank_of

    def source_rank(self):
        return self.rank_of(self.operation.peer.name) if self.operation.done() else -1

    _source_rank = source_rank
