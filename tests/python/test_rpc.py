# SPDX-License-Identifier: BSD-2-Clause
"""Calls and streams of protobuf services, in Python and with C on the other side."""
import asyncio
import gc
import os
import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import weft
import weft.aio
from conftest import LIMIT, TOOL

protobuf = pytest.importorskip('google.protobuf')
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402
from weft import rpc  # noqa: E402


def load(package, messages, service, methods):
    """A service, as protoc would make it.  methods: (name, asks with a stream, answers with one)."""
    file = descriptor_pb2.FileDescriptorProto(name=package + '.proto', package=package, syntax='proto3')
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            message.field.add(name=field, number=number, label=1, type=kind)
    made = file.service.add(name=service)
    for name, kinds, asks, answers in methods:
        made.method.add(name=name, input_type='.%s.%s' % (package, kinds[0]),
                        output_type='.%s.%s' % (package, kinds[1]), client_streaming=asks,
                        server_streaming=answers)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool.FindServiceByName('%s.%s' % (package, service)), {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName('%s.%s' % (package, name)))
        for name in messages}


STRING, BYTES, INT64 = 9, 12, 3
TALK, _CLASSES = load('talk', {'Text': [('text', STRING), ('number', INT64), ('data', BYTES)]}, 'Talk', [
    ('Say', ('Text', 'Text'), False, False), ('Count', ('Text', 'Text'), False, True),
    ('Sum', ('Text', 'Text'), True, False), ('Chat', ('Text', 'Text'), True, True),
    ('Fail', ('Text', 'Text'), False, False), ('Wait', ('Text', 'Text'), False, False),
    ('Plain', ('Text', 'Text'), False, False), ('Left', ('Text', 'Text'), False, False),
    ('First', ('Text', 'Text'), True, False), ('Yield', ('Text', 'Text'), False, True),
    ('Return', ('Text', 'Text'), False, True), ('Attach', ('Text', 'Text'), False, False),
    ('Absent', ('Text', 'Text'), False, False)])
Text = _CLASSES['Text']
HEALTH, ASK = load('grpc.health.v1', {'HealthCheckRequest': [('service', STRING)],
                                      'HealthCheckResponse': [('status', INT64)]}, 'Health', [
    ('Check', ('HealthCheckRequest', 'HealthCheckResponse'), False, False)])


class Talk:
    """The service."""
    def __init__(self):
        self.cancelled = asyncio.Event()
        self.waiting = asyncio.Event()
        self.seen = None
        self.stub = None

    async def Say(self, request, context):
        self.seen = context
        context.set_initial_metadata([('first', 'one')])
        context.set_trailing_metadata([('last', 'two'), ('raw-bin', b'\0\1')])
        for index, one in enumerate(context.attachments):
            tensor = await context.receive(index)
            context.attach(np.asarray(tensor) * 2)
            assert one.shape == tuple(tensor.shape)
        names = dict(context.metadata)
        return Text(text=names.get('greeting', 'hello') + ', ' + request.text, data=request.data)

    async def Count(self, request, context):
        if request.number < 0:
            context.set_trailing_metadata([('why', 'because')])
            context.abort(weft.Status.OUT_OF_RANGE, 'less than none', b'details')
        for number in range(request.number):
            yield Text(number=number)

    async def Sum(self, requests, context):
        return Text(number=sum([request.number async for request in requests]))

    def Yield(self, request, context):
        for number in range(request.number):
            yield Text(number=number)
        if request.text:
            yield None

    def Return(self, request, context):
        return [Text(number=number) for number in range(request.number)]

    async def First(self, requests, context):
        return await requests.read()

    async def Chat(self, requests, context):
        context.set_initial_metadata([('first', 'one')])
        while True:
            read = requests.read()
            request = await read
            if request is None:
                return
            beside = ' %d' % len(read.attachments) if request.text == 'b' else ''
            yield Text(text=request.text.upper() + beside)

    async def Fail(self, request, context):
        if request.text == 'raise':
            raise KeyError('no such thing')
        if request.text == 'long':
            raise ValueError('\u00e9' * 3000)
        if request.text == 'surrogate':
            raise OSError('no file \udcff')
        if request.text == 'details':
            context.abort(weft.Status.ABORTED, 'too much to say', bytes(100000))
        context.set_trailing_metadata([('why', 'because')])
        context.abort(weft.Status.FAILED_PRECONDITION, 'not now', b'details')

    async def Attach(self, request, context):
        with pytest.raises(weft.Error, match='does not fit the pool'):
            context.attach(np.ones(3), TOO_LARGE)
        return Text()

    async def Wait(self, request, context):
        self.waiting.set()
        try:
            await asyncio.sleep(LIMIT)
        finally:
            self.cancelled.set()

    async def Left(self, request, context):
        if request.number:
            return await self.stub.Left(Text(number=request.number - 1), parent=context)
        return Text(number=int(context.time_remaining() * 1000))

    def Plain(self, request, context):
        return Text(text='in a thread: ' + request.text)


def together(manual=False, **words):
    """A decorator: run a test as a task, with a stub of Talk, Talk, and its server."""
    def decorate(test):
        def run():
            async def main():
                with weft.Node(provider='tcp', timeout=LIMIT, manual=manual) as node, \
                        weft.Node(provider='tcp', timeout=LIMIT, manual=manual) as client:
                    if manual:
                        weft.aio.attach(node)
                        weft.aio.attach(client)
                    talk = Talk()
                    server = await rpc.serve(node, TALK, talk, **words)
                    server.node = node
                    await test(rpc.Stub(client.peer(node.address), TALK), talk, server)
            asyncio.run(asyncio.wait_for(main(), LIMIT))
        run.__name__ = test.__name__
        return run
    return decorate


@together()
async def test_a_call_has_a_reply_and_metadata_both_ways(stub, talk, server):
    call = stub.Say(Text(text='you', data=bytes(range(256))), metadata=[('greeting', 'good day')], timeout=LIMIT)
    reply = await call
    assert (reply.text, reply.data) == ('good day, you', bytes(range(256)))
    assert call.initial_metadata() == [('first', 'one')]
    assert call.trailing_metadata() == [('last', 'two'), ('raw-bin', b'\0\1')]
    with pytest.raises(weft.Error, match='answered'):
        talk.seen.metadata


@together(manual=True)
async def test_a_manual_node_serves_and_calls_in_the_loop(stub, talk, server):
    for number in range(100):
        assert (await stub.Say(Text(text=str(number)))).text == 'hello, %d' % number


@together()
async def test_messages_of_any_size_pass_and_empty_ones(stub, talk, server):
    assert (await stub.Plain(Text())).text == 'in a thread: '
    assert (await stub.Count(Text())) is None
    data = np.random.default_rng(1).bytes(5 << 20)
    assert (await stub.Say(Text(data=data))).data == data


@together()
async def test_arrays_go_beside_messages_and_come_back(stub, talk, server):
    sent = [np.arange(10), np.ones((1000, 1000), np.float32)]
    call = stub.Say(Text(text='arrays'), attach=sent)
    await call
    assert [one.shape for one in call.attachments] == [(10,), (1000, 1000)]
    assert call.attachments[1].dtype == 'float32'
    into = np.zeros((1000, 1000), np.float32)
    await call.receive(1, into=into)
    assert (into == 2).all()
    assert (np.asarray(await call.receive(0)) == np.arange(10) * 2).all()


def test_an_array_whose_taking_closes_the_node_receives_nothing(start):
    class Closing:
        def __init__(self, content):
            self.content = content

        def __dlpack_device__(self):
            return self.content.__dlpack_device__()

        def __dlpack__(self, **words):
            closer = threading.Thread(target=node.close)
            closer.start()
            closer.join(LIMIT)
            return self.content.__dlpack__(**words)
    server = start(SERVER)
    node = weft.Node(provider='tcp', timeout=LIMIT)
    call = rpc.Stub(node.peer(server.line()), TALK).Say(Text(), attach=[np.arange(10)])
    call.result(LIMIT)
    with pytest.raises(weft.InvalidArgument, match='the node is closed'):
        call.receive(0, into=Closing(np.zeros(10, int)))
    assert node.closed


def test_a_call_whose_node_closes_between_its_arrays_is_refused():
    with weft.Node(provider='tcp', timeout=LIMIT) as server:
        node = weft.Node(provider='tcp', timeout=LIMIT, manual=True)
        stub = rpc.Stub(node.peer(server.address), TALK)
        close = node.close   # called after each array
        node._set_kick(close)
        with pytest.raises(weft.InvalidArgument, match='the node is closed'):
            stub.Say(Text(), attach=[np.arange(10), np.arange(10)])
        assert node.closed


@together()
async def test_streams_pass_messages_in_order_either_way(stub, talk, server):
    assert [one.number async for one in stub.Count(Text(number=1000))] == list(range(1000))
    assert (await stub.Sum(Text(number=number) for number in range(200))).number == 19900

    async def words():
        for word in ('a', 'c', 'd'):
            yield Text(text=word)
    assert [one.text async for one in stub.Chat(words())] == ['A', 'C', 'D']


@together()
async def test_initial_metadata_of_a_stream_is_there_once_a_message_is_read(stub, talk, server):
    call = stub.Chat()
    await call.write(Text(text='a'))
    read = call.read()
    while not read.done():
        await asyncio.sleep(0.001)
    assert call.initial_metadata() == []   # it has come, and nobody has read it
    await read
    assert call.initial_metadata() == [('first', 'one')]
    call.done_writing()
    await call
    assert call.initial_metadata() == [('first', 'one')]


@together()
async def test_a_plain_generator_answers_with_a_stream(stub, talk, server):
    assert [one.number async for one in stub.Yield(Text(number=100))] == list(range(100))
    with pytest.raises(weft.Error, match='Yield takes a talk.Text'):
        async for _ in stub.Yield(Text(text='no message')):
            pass
    with pytest.raises(weft.Error, match='a handler of Return yields its replies'):
        await stub.Return(Text(number=100))


@together()
async def test_the_only_reply_is_everyones_who_asks_for_it(stub, talk, server):
    call = stub.Sum()
    asked = [asyncio.ensure_future(wait(call)) for _ in range(2)]
    await asyncio.sleep(0)
    await call.write(Text(number=5))
    call.done_writing()
    assert [one.number for one in await asyncio.gather(*asked)] == [5, 5]
    assert (await call).number == 5
    assert (await asyncio.to_thread(call.result, LIMIT)).number == 5


async def wait(call):
    """Await a call, in a task."""
    return await call


@together()
async def test_a_request_that_is_refused_ends_the_call(stub, talk, server):
    def refuse(*given):
        raise weft.errors._refused(-90, 'a message of 2 GiB')
    call = stub.Sum(one for one in [Text(number=1)])
    call._stream = type('Refusing', (), {'write': refuse, 'read': call._stream.read})()
    with pytest.raises(weft.Error, match='a message of 2 GiB'):
        await call


@together()
async def test_a_stream_is_written_and_read_by_turns(stub, talk, server):
    call = stub.Chat()
    for word in ('one', 'two'):
        await call.write(Text(text=word))
        assert (await call.read()).text == word.upper()
    call.done_writing()
    assert await call.read() is None
    await call


@together()
async def test_a_handlers_failure_is_its_callers(stub, talk, server):
    with pytest.raises(weft.Error, match='not now') as failure:
        await stub.Fail(Text())
    assert failure.value.status == weft.Status.FAILED_PRECONDITION
    assert failure.value.executed == weft.Executed.YES
    assert failure.value.details == b'details'
    assert failure.value.metadata == [('why', 'because')]
    with pytest.raises(weft.Error, match="KeyError: 'no such thing'") as failure:
        await stub.Fail(Text(text='raise'))
    assert failure.value.status == weft.Status.UNKNOWN
    with pytest.raises(weft.Error, match='has no Absent') as failure:
        await stub.Absent(Text())
    assert failure.value.status == weft.Status.UNIMPLEMENTED


@together()
async def test_a_handler_is_cancelled_when_its_caller_gives_up(stub, talk, server):
    call = stub.Wait(Text())
    await talk.waiting.wait()
    call.cancel()
    with pytest.raises(weft.Cancelled):
        await call
    await talk.cancelled.wait()
    talk.cancelled.clear()
    with pytest.raises(weft.DeadlineExceeded):
        await stub.Wait(Text(), timeout=2)
    await talk.cancelled.wait()


@together()
async def test_a_task_that_is_cancelled_cancels_its_call(stub, talk, server):
    async def ask():
        await stub.Wait(Text())
    task = asyncio.create_task(ask())
    await talk.waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await talk.cancelled.wait()


@together()
async def test_what_an_iterable_of_requests_raises_is_raised_to_the_caller(stub, talk, server):
    def broken():
        yield Text(number=1)
        raise KeyError('no more')

    async def slow():
        yield Text(text='a')
        raise KeyError('no more')
    with pytest.raises(KeyError, match='no more'):
        await stub.Sum(broken())
    with pytest.raises(KeyError, match='no more'):
        async for _ in stub.Chat(slow()):
            pass
    with pytest.raises(TypeError, match='Sum takes a talk.Text'):
        await stub.Sum(['text'])


@together()
async def test_a_failure_among_the_requests_is_raised_to_the_caller(stub, talk, server):
    async def asks():
        yield await stub.Fail(Text())
    with pytest.raises(weft.Error, match='not now'):
        await stub.Sum(asks())


@together()
async def test_a_call_ends_with_its_reply_though_there_is_more_to_ask(stub, talk, server):
    closed = asyncio.Event()

    async def for_ever():
        try:
            yield Text(number=1)
            await asyncio.sleep(LIMIT)
        finally:
            closed.set()
    assert (await stub.First(for_ever())).number == 1
    await closed.wait()


@together()
async def test_a_task_that_is_cancelled_cancels_its_call_with_a_stream(stub, talk, server):
    async def ask():
        await stub.Sum(for_ever())

    async def for_ever():
        talk.waiting.set()
        await asyncio.sleep(LIMIT)
        yield Text()
    task = asyncio.create_task(ask())
    await talk.waiting.wait()
    while not server._tasks:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    while server._tasks:
        await asyncio.sleep(0.001)


@together()
async def test_a_failure_of_any_text_and_details_is_told(stub, talk, server):
    for text in ('long', 'surrogate', 'details'):
        with pytest.raises(weft.Error) as failure:
            await stub.Fail(Text(text=text))
        assert failure.value.status == (weft.Status.UNKNOWN if text != 'details' else weft.Status.ABORTED)


@together()
async def test_arrays_of_a_message_that_was_refused_go_with_no_other(stub, talk, server):
    call = stub.Chat()
    with pytest.raises(weft.InvalidArgument):
        call.write(Text(text='a'), attach=[np.ones(3), object()])
    await call.write(Text(text='b'))
    read = call.read()
    assert (await read).text == 'B 0'
    call.done_writing()
    await call


# An array that no pool has room for, in the memory of one number.
TOO_LARGE = np.broadcast_to(np.float64(1), 1 << 40)


@together()
async def test_a_message_that_is_refused_with_arrays_attached_is_the_last(stub, talk, server):
    call = stub.Chat()
    with pytest.raises(weft.Error, match='does not fit the pool'):
        call.write(Text(text='a'), attach=[np.ones(3), TOO_LARGE])
    with pytest.raises(weft.InvalidArgument, match='refused with some of its arrays attached'):
        call.write(Text(text='b'))
    call.done_writing()
    assert await call.read() is None
    await call
    first = stub.Chat()
    with pytest.raises(weft.Error, match='does not fit the pool'):
        first.write(Text(text='a'), attach=[TOO_LARGE, np.ones(3)])   # nothing is attached yet
    await first.write(Text(text='b'))
    read = first.read()
    assert (await read).text == 'B 0'
    first.cancel()


@together()
async def test_a_handler_whose_arrays_are_refused_fails_its_call(stub, talk, server):
    call = stub.Attach(Text())
    with pytest.raises(weft.Error, match='refused with some of its arrays attached'):
        await call
    assert not call.attachments


@together()
async def test_a_call_of_a_handlers_has_the_time_of_the_call_it_serves(stub, talk, server):
    with weft.Node(provider='tcp', timeout=LIMIT) as other:
        await rpc.serve(other, TALK, Talk())
        talk.stub = rpc.Stub(server.node.peer(other.address), TALK)
        assert (await stub.Left(Text(number=1), timeout=LIMIT / 2)).number <= LIMIT / 2 * 1000
        await stub.Say(Text())
        with pytest.raises(weft.Error, match='answered'):
            talk.stub.Say(Text(), parent=talk.seen)


@together()
async def test_a_context_whose_call_is_answered_says_that_nobody_waits(stub, talk, server):
    await stub.Say(Text())
    assert talk.seen.cancelled() and talk.seen.time_remaining() == 0
    server.node.close()
    assert talk.seen.cancelled() and talk.seen.time_remaining() == 0


@together(calls_max=1)
async def test_calls_over_the_limit_are_refused(stub, talk, server):
    first = stub.Wait(Text())
    await talk.waiting.wait()
    with pytest.raises(weft.Error) as failure:
        await stub.Say(Text())
    assert failure.value.status == weft.Status.RESOURCE_EXHAUSTED
    first.cancel()


@pytest.mark.skipif('libasan' in os.environ.get('LD_PRELOAD', ''),
                    reason='AddressSanitizer ends a process that is out of memory')
def test_a_server_without_memory_for_a_request_refuses_it_and_goes_on(start):
    # All of the requests are kept, each in memory of its own.
    server = start('''
        import resource, select, weft
        from weft import rpc
        import sys; sys.path.insert(0, %r)
        import test_rpc
        node = weft.Node(provider='tcp')
        server = node._serve(rpc._service_of(test_rpc.TALK, rpc._methods_of(test_rpc.TALK)), [],
                             0, 0, 0, 0)
        print(node.address, flush=True)
        kept = []
        while True:
            select.select([server.fd], [], [])
            for call in server.take()[0]:
                call.reply(b'')
                kept.append(call)
            if len(kept) == 1:
                pages = int(open('/proc/self/statm').read().split()[0])
                limit = pages * resource.getpagesize() + (100 << 20)
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    ''' % os.path.dirname(os.path.abspath(__file__)), MALLOC_ARENA_MAX='1',
                   MALLOC_MMAP_THRESHOLD_='1000000')
    with weft.Node(provider='tcp', timeout=LIMIT) as node:
        stub = rpc.Stub(node.peer(server.line()), TALK)
        with pytest.raises(weft.Error, match='no memory for the request') as raised:
            for _ in range(20):
                stub.Say(Text(data=bytes(8 << 20))).result(LIMIT)
        assert raised.value.status is weft.Status.RESOURCE_EXHAUSTED
        stub.Say(Text()).result(LIMIT)


@together()
async def test_a_server_that_closes_turns_calls_away(stub, talk, server):
    running = stub.Wait(Text())
    await talk.waiting.wait()
    server.close()
    with pytest.raises(weft.Error):
        await running
    with pytest.raises(weft.Unavailable, match='closing'):
        await stub.Say(Text())


@together()
async def test_a_node_that_closes_cancels_its_handlers_and_leaves_the_loop(stub, talk, server):
    running = stub.Wait(Text())
    await talk.waiting.wait()
    server.node.close()
    await talk.cancelled.wait()
    with pytest.raises(weft.Error):
        await running
    while server._tasks:
        await asyncio.sleep(0.001)
    assert not asyncio.get_running_loop().remove_reader(server._server.fd)


@together()
async def test_a_node_tells_its_health_and_drains(stub, talk, server):
    node = server.node
    node.serve_health()
    client = weft.Node(provider='tcp', timeout=LIMIT)
    health = rpc.Stub(client.peer(node.address), HEALTH)

    async def status(service):
        return (await health.Check(ASK['HealthCheckRequest'](service=service))).status
    assert await status('talk.Talk') == 1
    node.set_health('talk.Talk', False)
    assert await status('talk.Talk') == 2 and await status('') == 1
    assert await asyncio.to_thread(node.drain, LIMIT)
    with pytest.raises(weft.Unavailable):
        await stub.Say(Text())
    client.close()


@together()
async def test_a_failed_call_is_retried_when_asked(stub, talk, server):
    server.close()
    call = stub.Say(Text(), retry=rpc.Retry(attempts=2, idempotent=True))
    with pytest.raises(weft.Unavailable):
        await call


def test_what_is_no_message_of_the_method_is_refused(pair):
    stub = rpc.Stub(pair.peer, TALK)
    with pytest.raises(TypeError, match='Say takes a talk.Text'):
        stub.Say('text')
    with pytest.raises(weft.InvalidArgument):
        stub.Say(Text(), metadata=[('Key', 'capitals')])
    with pytest.raises(weft.InvalidArgument, match='metadata is pairs'):
        stub.Say(Text(), metadata=[('key', 5)])
    with pytest.raises(RuntimeError, match='no running event loop'):
        stub.Sum([Text()])
    with pytest.raises(ValueError, match='no retry'):
        stub.Count(Text(), retry=rpc.Retry())
    raw = weft._weft._Stub(pair.peer, weft._weft._Service('a.B', [('C', 'a.D', 'a.E')]))
    for junk in (b'\xff\xff\xff\xff\xff\xff', b'\x07', b'\x00'):
        with pytest.raises(weft.InvalidArgument, match='no message'):
            raw.call(0, junk, None, [], None, None, 0, [])
    with pytest.raises(weft.InvalidArgument, match='no such method'):
        raw.call(1, b'', None, [], None, None, 0, [])


def test_a_time_limit_is_one_for_the_reply_and_the_end_of_a_stream():
    class Slow:
        def result(self, timeout):
            given.append(timeout)
            time.sleep(0.1)
            return b''
    method, given = rpc._methods_of(TALK)[TALK.methods_by_name['Sum'].index], []
    call = rpc.StreamCall(method, None, Slow())
    call._reply = Slow()
    assert call.result(LIMIT) == Text()
    assert given[0] == LIMIT and 0 < given[1] <= LIMIT - 0.1


SERVER = '''
    import asyncio, weft
    from weft import rpc
    import sys; sys.path.insert(0, %r)
    import test_rpc
    async def main():
        node = weft.Node(provider='tcp')
        await rpc.serve(node, test_rpc.TALK, test_rpc.Talk())
        print(node.address, flush=True)
        await asyncio.sleep(600)
    asyncio.run(main())
''' % os.path.dirname(os.path.abspath(__file__))


def test_a_failure_of_a_stream_has_details_and_metadata_in_a_thread(start):
    server = start(SERVER)
    with weft.Node(provider='tcp', timeout=LIMIT) as node:
        stub = rpc.Stub(node.peer(server.line()), TALK)
        for _ in range(300):
            with pytest.raises(weft.Error, match='less than none') as failure:
                stub.Count(Text(number=-1)).read().result(LIMIT)
            assert failure.value.details == b'details'
            assert failure.value.metadata == [('why', 'because')]


def test_a_write_is_described_when_its_stub_and_its_stream_are_gone(start):
    server = start(SERVER)
    with weft.Node(provider='tcp', timeout=LIMIT) as node:
        stub = rpc.Stub(node.peer(server.line()), TALK)
        stub.Say(Text()).result(LIMIT)
        call = stub.Sum()
        server.process.send_signal(signal.SIGSTOP)
        write = call.write(Text(data=bytes(8 << 20)))._operation
        del stub, call
        # What a name is read from that has been freed, AddressSanitizer says.
        for _ in range(20):
            assert write.done() or 'talk.Talk/Sum' in node.dump()
            node._drain()
            time.sleep(0.01)


def test_calls_work_without_an_event_loop(start):
    server = start(SERVER)
    with weft.Node(provider='tcp', timeout=LIMIT) as node:
        stub = rpc.Stub(node.peer(server.line()), TALK)
        assert stub.Say(Text(text='you')).result().text == 'hello, you'
        call = stub.Count(Text(number=3))
        assert [call.read().result().number for _ in range(3)] == [0, 1, 2]
        assert call.read().result() is None
        call.result()
        waiting = stub.Wait(Text())
        server.process.kill()
        with pytest.raises(weft.Unavailable):
            waiting.result(LIMIT)


@together()
async def test_calls_leave_nothing_behind(stub, talk, server):
    def objects():
        gc.collect()
        return len(gc.get_objects())

    async def round_of_calls():
        for _ in range(200):
            await stub.Say(Text(text='you'), attach=[np.ones(10)])
            assert [one.number async for one in stub.Count(Text(number=2))] == [0, 1]
    await round_of_calls()
    talk.seen = None
    before = objects()
    await round_of_calls()
    talk.seen = None
    assert objects() < before + 100


# C on the other side.

PROGRAMS = os.path.join(os.path.dirname(TOOL or ''), 'tests', 'examples')
of_c = pytest.mark.skipif(not os.path.exists(os.path.join(PROGRAMS, 'hello')),
                          reason='the build has no examples')
GREETER, HELLO = load('hello', {'Name': [('name', STRING)], 'Greeting': [('text', STRING)]}, 'Greeter',
                      [('Greet', ('Name', 'Greeting'), False, False)])
ECHO, LINES = load('echo', {'Line': [('text', STRING)]}, 'Echo', [('Repeat', ('Line', 'Line'), True, True)])


def program(name, *arguments):
    """A program of tests/examples."""
    return subprocess.Popen([os.path.join(PROGRAMS, name), *arguments], text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, env=dict(os.environ, FI_PROVIDER='tcp'))


@of_c
def test_python_calls_a_server_in_c():
    with program('hello') as server, weft.Node(provider='tcp', timeout=LIMIT) as node:
        try:
            stub = rpc.Stub(node.peer(server.stdout.readline().split()[-1]), GREETER)
            assert stub.Greet(HELLO['Name'](name='Python')).result().text == 'hello, Python'
        finally:
            server.kill()


@of_c
def test_a_client_in_c_streams_to_python():
    class Echo:
        async def Repeat(self, lines, context):
            async for line in lines:
                yield LINES['Line'](text='echo: ' + line.text)

    async def main():
        with weft.Node(provider='tcp', timeout=LIMIT) as node:
            await rpc.serve(node, ECHO, Echo())
            with program('echo_client', node.address) as client:
                said, _ = await asyncio.to_thread(client.communicate, 'one\ntwo\n', LIMIT)
            return said, client.returncode
    assert asyncio.run(main()) == ('echo: one\necho: two\n', 0)
