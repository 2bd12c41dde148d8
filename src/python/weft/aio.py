# SPDX-License-Identifier: BSD-2-Clause
"""Operations in asyncio: a node's queue of what has ended is one reader of the event loop.

The first await of an operation attaches its node to the running loop, for as long as that runs.  A
manual node is driven by the loop itself, without a thread, the shortest way: one whose peers are to
be heard before anything of it is awaited is attached by attach().
"""
import asyncio
import weakref
from typing import Any, Callable, Generator, Optional

from . import _weft

_drivers = weakref.WeakKeyDictionary()  # of each loop: the drivers of its nodes, by their addresses
POLLS_MAX = 64  # turns of a manual node before the loop has its own
SPINS_MAX = 16  # operations that are waited for in the node before the loop has a turn


def _weakly(method: Any) -> Callable[[], None]:
    """A function that calls @method as long as its object is there: a node does not keep drivers."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        alive = reference()
        if alive:
            alive()
    return call


class _Driver:
    """A threaded node in an event loop."""
    def __init__(self, node: Any, loop: asyncio.AbstractEventLoop):
        self.node = node
        self.find_loop = weakref.ref(loop)   # whose drivers live as long as it does
        self.fd = node._queue_fd()
        loop.add_reader(self.fd, self.ready)
        node._on_close(self, type(self).closed)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop; None when it is gone."""
        return self.find_loop()

    def ready(self) -> None:
        """Wake the tasks whose operations have ended."""
        _wake(self.node._drain())
        if self.node.closed and self.node._idle:
            self.detach()

    def closed(self) -> None:
        """The node closes, by any thread: leave the loop when nothing is under way any more."""
        _soon(self.loop, self.ready)

    def begin(self, operation: _weft.Operation) -> None:
        """An operation is awaited: nothing to do, the worker has it."""

    def detach(self) -> None:
        """Leave the loop."""
        self.loop.remove_reader(self.fd)
        _drivers.get(self.loop, {}).pop(self.node._id, None)


class _ManualDriver(_Driver):
    """A manual node, which is polled before each sleep of its loop."""
    def __init__(self, node: Any, loop: asyncio.AbstractEventLoop):
        super().__init__(node, loop)
        self.timer = lambda: None   # the loop's timer, which has the loop
        self.soon = False
        self.polling = False
        self.spins = 0
        self.own_fd = node._fd()
        loop.add_reader(self.own_fd, self.ready)
        node._set_kick(_weakly(self.kick))

    def begin(self, operation: _weft.Operation) -> None:
        """Wait for a moment in the node itself, if nothing else of the loop is ready, and the loop
        has had its turn now and then."""
        others = len(getattr(self.loop, '_ready', (None, None))) - self.soon
        self.spins += 1
        if others or self.spins % SPINS_MAX == 0 or not operation._spin():
            self.kick()

    def kick(self) -> None:
        """Something was begun, or another thread has driven the node: poll in the loop's next turn."""
        if not self.soon and not (self.polling and _running() is self.loop):
            self.soon = True
            if not _soon(self.loop, self.ready):
                self.node._set_kick(None)

    def ready(self) -> None:
        """Do the node's work until it may sleep: its arming is the last that is done with it."""
        self.soon = False
        timer = self.timer()
        if timer:
            timer.cancel()
        if self.node.closed:
            super().ready()
            return
        self.polling = True
        try:
            for _ in range(POLLS_MAX):
                self.node.poll(0)
                _wake(self.node._drain())
                wait = self.node._arm()
                if wait is not None:
                    self.timer = weakref.ref(self.loop.call_later(wait, self.ready))
                    return
        finally:
            self.polling = False
        self.kick()

    def closed(self) -> None:
        """Leave the node's descriptor, which goes with it."""
        loop = self.loop
        if loop and not loop.is_closed():
            loop.remove_reader(self.own_fd)
        super().closed()


def _driver(node: Any, loop: asyncio.AbstractEventLoop) -> _Driver:
    drivers = _drivers.setdefault(loop, {})
    driver = drivers.get(node._id)
    if driver is None:
        driver = (_ManualDriver if node.manual else _Driver)(node, loop)
        drivers[node._id] = driver
    return driver


def attach(node: _weft.Node) -> None:
    """Attach @node to the running event loop, which drives it if it is manual."""
    driver = _driver(node, asyncio.get_running_loop())
    if node.manual:
        driver.kick()


def _running() -> Optional[asyncio.AbstractEventLoop]:
    """The event loop of this thread; None: there is none."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _soon(loop: Optional[asyncio.AbstractEventLoop], function: Callable, *given: Any) -> bool:
    """Have @function called in @loop, by any thread.  False: the loop has closed, and its tasks are
    gone."""
    if loop is None or loop.is_closed():
        return False
    if loop is _running():
        loop.call_soon(function, *given)
        return True
    try:
        loop.call_soon_threadsafe(function, *given)
    except RuntimeError:
        return False   # it has closed by now
    return True


def _set(future: asyncio.Future) -> None:
    if not future.done():
        future.set_result(None)


def _wake(futures: list) -> None:
    """Set @futures, each in the thread of its loop; others than asyncio's are functions to call,
    which raise nothing and take no time."""
    here = _running()
    for future in futures:
        if not isinstance(future, asyncio.Future):
            future()
            continue
        loop = future.get_loop()
        if loop is here:
            _set(future)
        else:
            _soon(loop, _set, future)


def _await(operation: _weft.Operation) -> Generator[Any, None, Any]:
    """Wait for @operation in the running loop.  A task that is cancelled cancels it."""
    if not operation.done():
        loop = asyncio.get_running_loop()
        _driver(operation._node, loop).begin(operation)
        future = loop.create_future()
        if operation._tell(future):
            try:
                yield from future
            except asyncio.CancelledError:
                operation.cancel()
                raise
    return operation.result(0)
