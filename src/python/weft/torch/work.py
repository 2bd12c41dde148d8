# SPDX-License-Identifier: BSD-2-Clause
"""Works: operations of weft as PyTorch waits for them."""
import os
import queue
import select
import threading
import time

import torch
import torch.distributed as dist

from .. import aio, wait_any
from ..errors import Error, Status


class Reaper:
    """A thread that hears which operations have ended, for as long as the node is open."""
    def __init__(self, node):
        self.node = node
        self.fd = node._queue_fd()
        threading.Thread(target=self.run, name='weft reaper', daemon=True).start()

    def run(self):
        """Sleep until something has ended, without the GIL."""
        poll = select.poll()
        poll.register(self.fd, select.POLLIN)
        while not self.node.closed:
            poll.poll(1000)
            aio._wake(self.node._drain())


class Tellers:
    """Threads that tell futures.  What a program has hung on a future runs in one of them, and may wait
    for other futures: there is always a thread for the next."""
    def __init__(self):
        self.tells = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.free = 0   # threads that have nothing to tell, and tells that wait taken off

    def add(self, tell):
        """Have @tell called, which raises nothing, soon."""
        with self.lock:
            idle = self.free > 0
            if idle:
                self.free -= 1
        if not idle:
            try:
                threading.Thread(target=self.run, name='weft futures', daemon=True).start()
            except RuntimeError:   # the system has no thread to give: this one tells instead
                tell()
                return
        self.tells.put(tell)

    def run(self):
        """Tell one after the other."""
        while True:
            self.tells.get()()
            with self.lock:
                self.free += 1


_tellers = Tellers()


def _forget():
    """In a child: its parent's threads tell nobody here."""
    global _tellers
    _tellers = Tellers()


os.register_at_fork(after_in_child=_forget)


def error_of(failure):
    """What PyTorch raises for an error of weft's."""
    return dist.DistBackendError('weft: %s' % failure)


class Work(dist._Work):
    """Operations that one call has begun, and what is left to do when all have ended.

    after: a function that puts results where the caller wants them; it runs once, in the thread
    that waits, or the one that tells the future: a teller's, or that of get_future() if all have
    ended by then.  stop: a function that ends the operations that are left, called with the error
    of one that has failed; None: they end anyway.
    """
    def __init__(self, tensors, operations, after=None, stop=None):
        super().__init__()
        self.tensors = tensors
        self.operations = operations
        self.after = after
        self.stop = stop
        self.lock = threading.Lock()
        self.root = self.future = None
        self.told = False   # the future is, or is about to be
        self.failure = None
        self.finished = False

    def stop_after(self, operation):
        """End the operations that are left if @operation, which has ended, has failed."""
        stop = self.stop
        if stop and operation.status != Status.OK:
            self.stop = None
            stop(operation.exception(0))

    def wait_for_all(self, seconds):
        """Wait until all have ended, for at most so many seconds; None: for ever.  TimeoutError."""
        limit = None if seconds is None else time.monotonic() + seconds
        left = list(self.operations)
        while left:
            try:
                wait_any(left, None if limit is None else max(limit - time.monotonic(), 0))
            except TimeoutError:
                raise TimeoutError('the operation has not ended yet') from None
            under_way = []
            for operation in left:
                if operation.done():
                    self.stop_after(operation)
                else:
                    under_way.append(operation)
            left = under_way

    def finish(self, seconds=None):
        """Wait for all, and do what is left.  Raises how the first has failed."""
        self.wait_for_all(seconds)
        with self.lock:
            if not self.finished:
                try:
                    for operation in self.operations:
                        operation.result(0)
                    if self.after:
                        self.after()
                except Error as failure:
                    self.failure = error_of(failure)
                except Exception as failure:   # pylint: disable=broad-exception-caught
                    self.failure = failure   # tensors do not take what came
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
            except Exception:   # pylint: disable=broad-exception-caught
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
            self.root = torch.futures.Future()
            # A future whose callback raises has failed; set_exception() would make a value of it.
            self.future = self.root.then(self.outcome)
        for operation in self.operations:
            if not operation._tell(lambda one=operation: self.ended(one)):
                self.stop_after(operation)
        if self.is_first_to_tell():   # nothing hangs on the future yet
            self.tell()
        return self.future

    def is_first_to_tell(self):
        """Whether all have ended, which nobody has seen before."""
        with self.lock:
            first = not self.told and self.is_completed()
            self.told |= first
        return first

    def ended(self, operation):
        """@operation has ended: with the last of them the future is told."""
        self.stop_after(operation)
        if self.is_first_to_tell():
            _tellers.add(self.tell)

    def tell(self):
        """Let the future have its outcome: all operations have ended."""
        self.root.set_result(None)

    def outcome(self, _root):
        """What the future gives, or raises."""
        self.finish()
        return self.tensors


class ReceiveWork(Work):
    """A receive from any rank, which tells whose tensor came."""
    def __init__(self, tensors, operations, after, rank_of):
        super().__init__(tensors, operations, after)
        self.operation, = operations
        self.rank_of = rank_of

    def source_rank(self):
        peer = self.operation.peer if self.operation.done() else None
        return self.rank_of(peer) if peer else -1

    _source_rank = source_rank
