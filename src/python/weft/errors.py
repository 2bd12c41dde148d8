# SPDX-License-Identifier: BSD-2-Clause
"""Errors: what weft's functions refuse, and how operations fail."""
import enum
import errno as _errno
import os
from typing import Optional, Sequence, Tuple, Union


class Status(enum.IntEnum):
    """Outcome of an operation; the names and numbers are gRPC's."""
    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Executed(enum.IntEnum):
    """Whether the other side acted on an operation that failed."""
    NO = 0
    MAYBE = 1
    YES = 2


class Error(Exception):
    """A failure, with weft's sentence about it.

    status: a Status.  executed: whether the other side acted, an Executed.  errno: of a function that
    refused; None: an operation failed.  details, metadata: what a server sent about a call that failed.
    """
    details = b''
    metadata: Sequence[Tuple[str, Union[str, bytes]]] = ()

    def __init__(self, sentence: str, status: Status, executed: Executed = Executed.NO,
                 errno: Optional[int] = None):
        super().__init__(sentence)
        self.status = status
        self.executed = executed
        self.errno = errno

    def __reduce__(self) -> tuple:
        return (type(self), (self.args[0], self.status, self.executed, self.errno), self.__dict__)

    def __str__(self) -> str:
        name = self.status.name if self.errno is None else os.strerror(self.errno)
        return '%s (%s)' % (self.args[0], name)


class Cancelled(Error):
    """The operation was cancelled, or its node has closed."""


class DeadlineExceeded(Error, TimeoutError):
    """The operation's time is over."""


class InvalidArgument(Error, ValueError):
    """An argument is wrong."""


class NotFound(Error, LookupError):
    """There is no such thing, or no longer."""


class Unavailable(Error, ConnectionError):
    """The peer is not there, or is lost."""


_classes = {Status.CANCELLED: Cancelled, Status.DEADLINE_EXCEEDED: DeadlineExceeded,
            Status.INVALID_ARGUMENT: InvalidArgument, Status.NOT_FOUND: NotFound,
            Status.UNAVAILABLE: Unavailable}

_statuses = {_errno.EINVAL: Status.INVALID_ARGUMENT, _errno.ENOENT: Status.NOT_FOUND,
             _errno.ETIMEDOUT: Status.DEADLINE_EXCEEDED, _errno.ECANCELED: Status.CANCELLED,
             _errno.EEXIST: Status.ALREADY_EXISTS, _errno.EACCES: Status.PERMISSION_DENIED,
             _errno.ENOMEM: Status.RESOURCE_EXHAUSTED, _errno.ENOBUFS: Status.RESOURCE_EXHAUSTED,
             _errno.EMSGSIZE: Status.RESOURCE_EXHAUSTED, _errno.ENOTSUP: Status.UNIMPLEMENTED}


def _refused(code: int, sentence: str) -> Error:
    """The error of a function that returned the negative @code."""
    status = _statuses.get(-code, Status.FAILED_PRECONDITION)
    return _classes.get(status, Error)(sentence, status, Executed.NO, -code)


def _failed(status: int, sentence: str, executed: int) -> Error:
    """The error of an operation that ended with @status."""
    status = Status(status)
    return _classes.get(status, Error)(sentence, status, Executed(executed))
