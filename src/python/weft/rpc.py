# SPDX-License-Identifier: BSD-2-Clause
"""Calls of protobuf services, as of grpc.aio.

    stub = rpc.Stub(node.peer(address), hello_pb2.DESCRIPTOR.services_by_name['Hello'])
    reply = await stub.Greet(hello_pb2.Request(name='you'), timeout=1)
    async for news in stub.Watch(request): ...

    class Hello:
        async def Greet(self, request, context):
            return hello_pb2.Reply(text='hello, ' + request.name)
    await rpc.serve(node, hello_pb2.DESCRIPTOR.services_by_name['Hello'], Hello())

Messages are those that protoc generates for Python; the other side may be C.  Without an event loop
result() waits for what a client has begun.  Failures are weft.Error, with the server's details and
metadata.  Arrays go beside messages, and never into them.
"""
import asyncio
import inspect
import time
from typing import Any, AsyncIterator, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from google.protobuf import message_factory

from . import _weft, aio
from .errors import DeadlineExceeded, Error, Status

Metadata = Iterable[Tuple[str, Any]]

# Seconds in which a call ends after its reads and writes have: a turn of its worker, not tuned yet.
TURN_S = 0.1


class Retry(NamedTuple):
    """When a call that failed is made again: attempts at most, the first included; after which
    statuses; and whether handling it twice is as good as once."""
    attempts: int = 3
    statuses: Iterable[Status] = (Status.UNAVAILABLE,)
    idempotent: bool = False


class Attachment(NamedTuple):
    """What is known of an array beside a message before it is received."""
    shape: Tuple[int, ...]
    dtype: str
    dead: bool


class _Method:
    """A method of a service, by its descriptor."""
    def __init__(self, descriptor: Any):
        self.name = descriptor.name
        self.index = descriptor.index
        self.asks = descriptor.client_streaming
        self.answers = descriptor.server_streaming
        self.request = message_factory.GetMessageClass(descriptor.input_type)
        self.reply = message_factory.GetMessageClass(descriptor.output_type)
        self.names = (descriptor.name, descriptor.input_type.full_name,
                      descriptor.output_type.full_name)

    @property
    def streams(self) -> bool:
        """Whether one side sends any number of messages."""
        return self.asks or self.answers

    def pack(self, message: Any, kind: Any) -> bytes:
        """The bytes of @message, which must be of the class @kind."""
        if not isinstance(message, kind):
            raise TypeError('%s takes a %s, and not a %s' %
                            (self.name, kind.DESCRIPTOR.full_name, type(message).__name__))
        return message.SerializeToString()


def _methods_of(descriptor: Any) -> List[_Method]:
    return [_Method(method) for method in descriptor.methods]


def _service_of(descriptor: Any, methods: List[_Method]) -> Any:
    return _weft._Service(descriptor.full_name, [method.names for method in methods])


class Pending:
    """Something that has been begun: to be awaited, or waited for by result()."""
    def __init__(self, operation: _weft.Operation, convert: Any = None,
                 stream: Optional['StreamCall'] = None):
        self._operation = operation
        self._convert = convert
        self._stream = stream

    def _cause(self, error: Error) -> BaseException:
        """What is raised for @error, with what the server sent about it."""
        call = self._stream._operation if self._stream else self._operation
        if error.errno is None and error.status not in (Status.CANCELLED, Status.DEADLINE_EXCEEDED):
            call.wait(TURN_S)   # what the server sent is there with the call's own end
        error.details = _weft._details(call)
        error.metadata = _weft._trailing(call)
        return self._stream and self._stream._broken() or error

    def _outcome(self, value: Any) -> Any:
        return self._convert(value) if self._convert else value

    def result(self, timeout: Optional[float] = None) -> Any:
        """Wait for at most so many seconds; None: for ever.  Raises how it failed."""
        try:
            return self._outcome(self._operation.result(timeout))
        except Error as error:
            raise self._cause(error) from None

    def __await__(self):
        try:
            value = yield from self._operation.__await__()
        except Error as error:
            raise self._cause(error) from None
        except asyncio.CancelledError:
            if self._stream:
                self._stream.cancel()
            raise
        return self._outcome(value)

    def done(self) -> bool:
        """Whether it has ended."""
        return self._operation.done()

    def cancel(self) -> None:
        """Ask for an early end."""
        self._operation.cancel()

    @property
    def attachments(self) -> List[Attachment]:
        """The arrays beside the message that came."""
        return [Attachment(*one) for one in _weft._attachments(self._operation)]

    def receive(self, index: int, into: Any = None, timeout: Optional[float] = None) -> _weft.Operation:
        """Receive one of these, once: into an array, or as a weft.Tensor."""
        return _weft._receive(self._operation, index, into, timeout)


class _Told:
    """What a caller is told beside messages."""
    _operation: _weft.Operation

    def initial_metadata(self) -> list:
        """What the server sent before its reply, once that is there: what came before it may be of an
        attempt that failed."""
        return _weft._initial(self._operation) if self._operation.done() else []

    def trailing_metadata(self) -> list:
        """What the server sent at the end."""
        return _weft._trailing(self._operation)


class Call(Pending, _Told):
    """A call of one message and one reply."""


class _Reader:
    """The messages of a stream, one after the other: async for."""
    def read(self, timeout: Optional[float] = None) -> Pending:
        """Read the next message: a Pending, whose result is None after the last."""
        raise NotImplementedError

    def __aiter__(self) -> AsyncIterator:
        return self

    async def __anext__(self) -> Any:
        message = await self.read()
        if message is None:
            raise StopAsyncIteration
        return message


class StreamCall(_Reader, _Told):
    """A call with a stream: messages are written and read one after the other, or iterated over.

    Awaited, it is the only reply of a call whose server sends one, and else nothing: how it ended.
    What an iterable of requests raises cancels the call, and is raised to whoever waits for it.  A task
    that is cancelled while it waits for any of this cancels the call.
    """
    def __init__(self, method: _Method, stream: Any, operation: _weft.Operation):
        self._method = method
        self._stream = stream
        self._operation = operation
        self._writer = None
        self._reply = None   # operation that reads the only reply, for all who ask for it
        self._heard = False   # a read has ended well: the initial metadata is there

    def initial_metadata(self) -> list:
        """What the server sent before the first message, once one is read or the call is over."""
        return _weft._initial(self._operation) if self._heard else super().initial_metadata()

    def write(self, message: Any, attach: Iterable = (), timeout: Optional[float] = None) -> Pending:
        """Write a message, with arrays beside it, which are borrowed until they are sent."""
        return Pending(self._stream.write(self._method.pack(message, self._method.request), timeout,
                                          list(attach)), stream=self)

    def done_writing(self) -> None:
        """Say that there is no more to write."""
        self._stream.half_close()

    def read(self, timeout: Optional[float] = None) -> Pending:
        return self._message_of(self._stream.read(timeout))

    def _message_of(self, operation: _weft.Operation) -> Pending:
        return Pending(operation, self._message, self)

    def _message(self, packed: Optional[bytes]) -> Any:
        self._heard = True
        return None if packed is None else self._method.reply.FromString(packed)

    def write_all(self, messages: Any) -> 'StreamCall':
        """Write @messages, iterable or async iterable, in a task of the running loop, and no more."""
        self._writer = asyncio.ensure_future(self._write_all(messages))
        return self

    async def _write_all(self, messages: Any) -> None:
        try:
            if hasattr(messages, '__aiter__'):
                async for message in messages:
                    if not await self._written(message):
                        return
            else:
                for message in messages:
                    if not await self._written(message):
                        return
        except BaseException:
            self.cancel()   # the program's own: of its messages the rest is not there
            raise
        try:
            self.done_writing()
        except Error:
            pass   # the call has ended

    async def _written(self, message: Any) -> bool:
        """Write a message.  False: the call is over, and says why."""
        try:
            await self.write(message)
        except DeadlineExceeded:
            self.cancel()
            return False
        except Error as error:
            if error.errno is not None and not self._operation.done():
                raise   # it was refused, and the call lives
            return False
        return True

    def _stop_writing(self) -> None:
        """Let nobody write any more: the call has ended."""
        if self._writer and not self._writer.done():
            self._writer.cancel()

    def _broken(self) -> Optional[BaseException]:
        """What the program's own requests raised, for which the call was cancelled."""
        writer = self._writer
        return writer.exception() if writer and writer.done() and not writer.cancelled() else None

    async def __anext__(self) -> Any:
        try:
            return await super().__anext__()
        except BaseException:
            self._stop_writing()
            raise

    def _only_reply(self) -> Pending:
        if not self._reply:
            self._reply = self._stream.read(None)
        return self._message_of(self._reply)

    async def _end(self) -> Any:
        reply = None
        try:
            if not self._method.answers:
                reply = await self._only_reply()
            await Pending(self._operation, stream=self)
        finally:
            self._stop_writing()
        broken = self._broken()
        if broken:
            raise broken
        return reply

    def __await__(self):
        return self._end().__await__()

    def result(self, timeout: Optional[float] = None) -> Any:
        """Wait for the end, as await does."""
        limit = None if timeout is None else time.monotonic() + timeout
        reply = None if self._method.answers else self._only_reply().result(timeout)
        left = None if limit is None else max(limit - time.monotonic(), 0)
        Pending(self._operation, stream=self).result(left)
        return reply

    def cancel(self) -> None:
        """Cancel the call."""
        self._operation.cancel()


class _Callable:
    """A method of a stub."""
    def __init__(self, stub: Any, method: _Method):
        self._stub = stub
        self._method = method

    def __call__(self, request: Any = None, *, timeout: Optional[float] = None, metadata: Metadata = (),
                 parent: Optional['Context'] = None, retry: Optional[Retry] = None, attach: Iterable = (),
                 message_bytes_max: int = 0) -> Any:
        method = self._method
        served = parent and parent._call
        if method.streams:
            if retry or attach:
                raise ValueError('a call with a stream takes no retry, and arrays with write()')
            if method.asks and request is not None:
                asyncio.get_running_loop()   # raises where no task can write
            call = StreamCall(method, *self._stub.stream(method.index, timeout, list(metadata),
                                                         served, message_bytes_max))
            if method.asks:
                return call if request is None else call.write_all(request)
            call.write(request)
            call.done_writing()
            return call
        if retry:
            retry = (retry.attempts, sum(1 << status for status in set(retry.statuses)),
                     retry.idempotent)
        return Call(self._stub.call(method.index, method.pack(request, method.request), timeout,
                                    list(metadata), served, retry, message_bytes_max, list(attach)),
                    method.reply.FromString)


class Stub:
    """The client of a service at a peer: each method is an attribute, a function to call.

    service: a descriptor, as DESCRIPTOR.services_by_name of a generated module has it.

    A method takes the request, or an iterable of requests, which a task of the running event loop
    writes, or None to write them later; timeout in seconds, None: the node's; metadata, a list of
    pairs; parent, the Context of the call that this one helps to serve, of the same node: it has no more
    time than that has left, and is cancelled with it; retry, a Retry; attach, arrays that go beside
    the request, borrowed until the call ends; message_bytes_max of a reply, 0: 64 MiB.  A method
    with a stream takes neither retry nor attach: arrays go with write().  What it returns is a Call,
    or a StreamCall.
    """
    def __init__(self, peer: _weft.Peer, service: Any):
        methods = _methods_of(service)
        stub = _weft._Stub(peer, _service_of(service, methods))
        for method in methods:
            setattr(self, method.name, _Callable(stub, method))


# The server.

class Context(_Reader):
    """A call that is served, for its handler."""
    def __init__(self, call: Any, method: _Method):
        self._call = call
        self._method = method

    @property
    def peer(self) -> _weft.Peer:
        """Who calls."""
        return self._call.peer

    @property
    def metadata(self) -> list:
        """What the caller sent beside its request, pairs."""
        return self._call.metadata

    def time_remaining(self) -> Optional[float]:
        """Seconds until the caller's deadline; None: there is none; 0: the call is answered."""
        left = self._call.left
        return None if left < 0 else left

    def cancelled(self) -> bool:
        """Whether nobody waits for the reply any more, also because it is given."""
        return self._call.cancelled

    def set_initial_metadata(self, metadata: Metadata) -> None:
        """Set what goes before the reply, or with the first message of a stream."""
        self._call.set_initial(list(metadata))

    def set_trailing_metadata(self, metadata: Metadata) -> None:
        """Set what goes with the reply."""
        self._call.set_trailing(list(metadata))

    def abort(self, status: Status, sentence: str, details: bytes = b'') -> None:
        """End the call with a failure: raises what the handler lets through."""
        raise Abort(status, sentence, details)

    @property
    def attachments(self) -> List[Attachment]:
        """The arrays beside the request; those of a stream's messages are with read()."""
        return [Attachment(*one) for one in self._call.attachments]

    def receive(self, index: int, into: Any = None, timeout: Optional[float] = None) -> _weft.Operation:
        """Receive one of these, once: into an array, or as a weft.Tensor."""
        return self._call.receive(index, into, timeout)

    def attach(self, *arrays: Any) -> None:
        """Attach arrays to the reply; they are borrowed until they are sent."""
        self._call.attach(list(arrays))

    def read(self, timeout: Optional[float] = None) -> Pending:
        request = self._method.request
        return Pending(self._call.read(timeout),
                       lambda packed: None if packed is None else request.FromString(packed))

    def write(self, message: Any, attach: Iterable = (), timeout: Optional[float] = None) -> Pending:
        """Write a message of a stream, with arrays beside it."""
        return Pending(self._call.write(self._method.pack(message, self._method.reply), timeout,
                                        list(attach)))


class Abort(Exception):
    """A handler's failure, which its caller gets."""
    def __init__(self, status: Status, sentence: str, details: bytes = b''):
        super().__init__(sentence)
        self.status = Status(status)
        self.details = details

    def __reduce__(self) -> tuple:
        return (type(self), (self.args[0], self.status, self.details))


def _failure_of(error: BaseException) -> Tuple[int, str, bytes]:
    """What the caller hears of an exception of a handler's."""
    if isinstance(error, Abort):
        return int(error.status), str(error), error.details
    if isinstance(error, Error):
        return int(error.status), error.args[0], b''
    if isinstance(error, asyncio.CancelledError):
        return int(Status.CANCELLED), 'the handler was cancelled', b''
    return int(Status.UNKNOWN), '%s: %s' % (type(error).__name__, error), b''


def _fail(call: Any, status: int, sentence: str, details: bytes) -> None:
    """End a call as failed, without @details if they are too many."""
    for given in (details, b''):
        try:
            call.fail(status, sentence.encode('utf-8', 'replace').decode(), given)
            return
        except Error:
            pass   # of the second: the call was answered, or its node has closed


_END = object()   # after the last reply of a generator


class Server:
    """A service that is served, by tasks of the event loop in which serve() was called."""
    def __init__(self, node: _weft.Node, server: Any, methods: List[_Method], handlers: Any):
        self._server = server
        self._methods = methods
        self._handlers = handlers
        self._tasks: Dict[int, asyncio.Task] = {}
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(server.fd, self._arrived)
        node._on_close(self, Server._node_closes)

    def _node_closes(self) -> None:
        """The node closes, by any thread, and has turned the calls away."""
        aio._soon(self._loop, self.close)

    def close(self) -> None:
        """Cancel what runs, and turn calls away from now on; the node has the service still."""
        if self._closed:
            return
        self._closed = True
        if not self._loop.is_closed():
            self._loop.remove_reader(self._server.fd)
        self._server.close()
        for task in list(self._tasks.values()):
            task.cancel()

    def _arrived(self) -> None:
        calls, given_up = self._server.take()
        for call in calls:
            number = call.number
            task = self._loop.create_task(self._serve(call))
            self._tasks[number] = task
            task.add_done_callback(lambda _, number=number: self._tasks.pop(number, None))
        for number in given_up:
            if number in self._tasks:
                self._tasks[number].cancel()

    async def _serve(self, call: Any) -> None:
        method = self._methods[call.method]
        try:
            packed = await self._handle(call, method)
            if method.streams:
                call.fail(int(Status.OK), '', b'')
            else:
                call.reply(packed)
        except BaseException as error:
            _fail(call, *_failure_of(error))
            if not isinstance(error, (Exception, asyncio.CancelledError)):
                raise

    async def _write_all(self, context: 'Context', replies: Iterator) -> None:
        """Write what a plain generator yields, which runs in a thread of the loop's."""
        while True:
            reply = await self._loop.run_in_executor(None, next, replies, _END)
            if reply is _END:
                return
            await context.write(reply)

    async def _handle(self, call: Any, method: _Method) -> Optional[bytes]:
        """Run the handler.  The reply's bytes, of a call that has one and no stream."""
        handler = getattr(self._handlers, method.name, None)
        if handler is None:
            raise Abort(Status.UNIMPLEMENTED, 'the service has no %s' % method.name)
        context = Context(call, method)
        if method.asks:
            request = context
        elif method.answers:
            request = await context.read()
        else:
            request = method.request.FromString(call.request)
        if inspect.isasyncgenfunction(handler):
            async for reply in handler(request, context):
                await context.write(reply)
            return None
        if inspect.isgeneratorfunction(handler):
            await self._write_all(context, handler(request, context))
            return None
        if inspect.iscoroutinefunction(handler):
            reply = await handler(request, context)
        else:
            reply = await self._loop.run_in_executor(None, handler, request, context)
        if method.answers:
            if reply is not None:
                raise TypeError('a handler of %s yields its replies, or writes them' % method.name)
            return None
        if method.streams:
            await context.write(reply)
            return None
        return method.pack(reply, method.reply)


async def serve(node: _weft.Node, service: Any, handlers: Any, *, calls_max: int = 0,
                calls_per_peer: int = 0, queue_max: int = 0, message_bytes_max: int = 0) -> Server:
    """Serve @service to every peer by the methods of @handlers, in the running event loop.

    A handler takes the request, or what it reads requests from by async for, and a Context.  It is a
    coroutine that returns the reply, or an async generator of replies; a plain function, or generator,
    runs in a thread of the loop's.  Whoever gave up has the handler cancelled.  Limits are those of
    weft_serve_with(3).  calls_max, calls_per_peer: 0: any number.  queue_max: calls that may wait
    beyond these, 0: none may.  message_bytes_max: 0: 64 MiB.
    """
    methods = _methods_of(service)
    server = node._serve(_service_of(service, methods),
                         [method.index for method in methods if method.streams], calls_max,
                         calls_per_peer, queue_max, message_bytes_max)
    aio.attach(node)
    return Server(node, server, methods, handlers)
