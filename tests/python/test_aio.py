# SPDX-License-Identifier: BSD-2-Clause
"""Operations in asyncio."""
import asyncio
import gc
import random
import threading
import weakref

import numpy as np
import pytest
import weft
import weft.aio
from conftest import ALL, LIMIT


def run(main):
    """Run a coroutine, in bounded time."""
    return asyncio.run(asyncio.wait_for(main, LIMIT * (10 if ALL else 1)))


@pytest.mark.parametrize('manual', [False, True], ids=['threaded', 'manual'])
def test_await_gives_what_result_gives(manual):
    async def main():
        with weft.Node(provider='tcp', manual=manual) as near, \
                weft.Node(provider='tcp', manual=manual) as far:
            weft.aio.attach(far)
            peer = near.peer(far.address)
            for i in range(20):
                got = far.recv(1, 'key')
                await peer.send(1, 'key', np.full(1000, i))
                assert np.asarray(await got)[999] == i
                assert (await got).shape == (1000,)   # again, at once
            with pytest.raises(weft.DeadlineExceeded):
                await far.recv(1, 'key', timeout=0.01)
            got = await asyncio.gather(*[far.recv(2, str(i)) for i in range(50)],
                                       *[peer.send(2, str(i), b'x') for i in range(50)])
            assert all(one.tobytes() == b'x' for one in got[:50])
            del got
    run(main())


def test_a_manual_node_sends_what_nobody_awaits():
    async def main():
        with weft.Node(provider='tcp', manual=True) as near, weft.Node(provider='tcp') as far:
            weft.aio.attach(near)
            got = far.recv(1, 'key')
            near.peer(far.address).send(1, 'key', b'x')
            assert (await got).tobytes() == b'x'
    run(main())


@pytest.mark.parametrize('provider', ['shm', 'tcp'])
def test_a_manual_node_in_a_loop_is_woken_by_its_peers(start, provider):
    text = """
        import asyncio, sys, time, weft, weft.aio
        async def main():
            node = weft.Node(provider='%s', manual=True, timeout=60)
            weft.aio.attach(node)
            if len(sys.argv) > 1:
                peer = node.peer(sys.argv[1])
                await peer.send(0, 'address', node.address.encode())
            else:
                print(node.address, flush=True)
                peer = node.peer((await node.recv(0, 'address')).tobytes().decode())
            took = []
            for i in range(300):
                begun = time.monotonic()
                got = node.recv(1, str(i))
                if len(sys.argv) > 1:
                    await got
                peer.send(1, str(i), b'x')
                if len(sys.argv) == 1:
                    await got
                took.append(time.monotonic() - begun)
            # Without being woken each takes a timer of weft's, 10 ms or more.
            quartile = sorted(took)[len(took) // 4]
            print('in time' if quartile < 0.008 else quartile, flush=True)
            await peer.send(2, 'end', b'x')
            await node.recv(2, 'end')
        asyncio.run(main())
    """ % provider
    first = start(text)
    second = start(text, first.line())
    assert first.line() == 'in time' and second.line() == 'in time'
    assert first.end()[0] == 0 and second.end()[0] == 0


def test_two_tasks_may_await_one_operation(pair):
    async def main():
        got = pair.far.recv(1, 'key')

        async def wait():
            return (await got).tobytes()
        tasks = [asyncio.ensure_future(wait()) for _ in range(2)]
        await asyncio.sleep(0)
        pair.peer.send(1, 'key', b'x')
        assert await asyncio.gather(*tasks) == [b'x', b'x']
    run(main())


def test_a_cancelled_task_cancels_its_operation(pair):
    async def main():
        got = pair.far.recv(1, 'key')

        async def wait():
            await got
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(weft.Cancelled):
            await got
        # The tensor is there for the next one.
        pair.peer.send(1, 'key', b'x')
        assert (await pair.far.recv(1, 'key')).tobytes() == b'x'
    run(main())


def test_a_task_that_nobody_cancelled_hears_how_its_operation_ended(pair):
    async def main():
        got = pair.far.recv(1, 'key')

        async def wait():
            await got
        cancelled, other = (asyncio.ensure_future(wait()) for _ in range(2))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        with pytest.raises(weft.Cancelled):
            await other
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    run(main())


def test_loops_of_two_threads_await_one_operation(pair):
    got, begun = pair.far.recv(1, 'key'), threading.Barrier(3)

    async def main():
        asyncio.get_running_loop().call_later(0.01, begun.wait, LIMIT)
        return (await got).tobytes()
    came = []
    threads = [threading.Thread(target=lambda: came.append(run(main()))) for _ in range(2)]
    for thread in threads:
        thread.start()
    begun.wait(LIMIT)
    pair.peer.send(1, 'key', b'x')
    for thread in threads:
        thread.join(LIMIT)
    assert came == [b'x', b'x']


async def closed_under_a_result(pair):
    """Close a node while tasks await it.  A result, which keeps it underneath, and the tasks."""
    pair.peer.send(1, 'kept', np.ones(1000))
    kept = await pair.far.recv(1, 'kept')

    async def wait():
        await pair.far.recv(1, 'key')
    tasks = [asyncio.ensure_future(wait()) for _ in range(100)]
    await asyncio.sleep(0.01)
    pair.far.close()
    return kept, tasks


async def all_are_cancelled(tasks):
    """Wait for all of @tasks, whose operations were cancelled."""
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(ended, weft.Cancelled)


def test_a_task_ends_when_the_last_result_of_its_closed_node_goes(pair):
    async def main():
        kept, tasks = await closed_under_a_result(pair)
        del kept
        await all_are_cancelled(tasks)
    run(main())


def test_what_another_thread_begins_on_a_manual_node_is_driven_by_its_loop():
    with weft.Node(provider='tcp', manual=True) as node, weft.Node(provider='tcp') as far:
        got = far.recv(1, 'key')

        async def main():
            weft.aio.attach(node)
            await asyncio.sleep(0.01)
            send = await asyncio.to_thread(node.peer(far.address).send, 1, 'key', b'x')
            await send
            await asyncio.to_thread(node.peer(far.address).ping().result, LIMIT)
        asyncio.run(asyncio.wait_for(main(), LIMIT), debug=True)
        assert got.result(LIMIT).tobytes() == b'x'


def test_a_task_ends_when_its_node_closes(pair):
    async def main():
        async def wait():
            await pair.far.recv(1, 'key')
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0.01)
        pair.far.close()
        with pytest.raises(weft.Cancelled):
            await task
    run(main())


def test_a_task_ends_when_its_node_closes_under_a_result(pair):
    async def main():
        kept, tasks = await closed_under_a_result(pair)
        await all_are_cancelled(tasks)
        assert np.asarray(kept).sum() == 1000
    run(main())


def test_a_loop_keeps_nothing_of_nodes_that_are_closed():
    async def main():
        with weft.Node(provider='tcp') as far:
            for _ in range(20):
                for manual in (False, True):
                    with weft.Node(provider='tcp', manual=manual) as node:
                        await node.peer(far.address).ping()
            await asyncio.sleep(0.01)
            assert not weft.aio._drivers[asyncio.get_running_loop()]
    run(main())


def test_a_node_that_nobody_has_any_more_goes_with_its_loop(pair):
    for manual in (False, True):
        async def main():
            node = weft.Node(provider='tcp', manual=manual)
            await node.peer(pair.far.address).ping()
            return node.address
        address = run(main())
        gc.collect()
        with pytest.raises(weft.Error):
            pair.near.peer(address).ping(timeout=0.2).result(LIMIT)


def test_a_node_serves_one_loop_after_another(pair):
    async def main():
        got = pair.far.recv(1, 'key')
        await pair.peer.send(1, 'key', b'x')
        assert (await got).tobytes() == b'x'
    run(main())
    run(main())
    # And afterwards none.
    got = pair.far.recv(1, 'key')
    pair.peer.send(1, 'key', b'x').result(LIMIT)
    assert got.result(LIMIT).tobytes() == b'x'


@pytest.mark.parametrize('manual', [False, True], ids=['threaded', 'manual'])
def test_a_loop_that_has_ended_is_not_kept(pair, manual):
    async def main():
        await node.peer(pair.far.address).ping()
        return weakref.ref(asyncio.get_running_loop())
    with weft.Node(provider='tcp', manual=manual) as node:
        gone = run(main())
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize('manual', [False, True], ids=['threaded', 'manual'])
def test_a_node_keeps_nothing_of_loops_that_are_gone(pair, manual):
    async def main():
        await node.peer(pair.far.address).ping()

    def objects():
        gc.collect()
        return len(gc.get_objects())
    with weft.Node(provider='tcp', manual=manual) as node:
        for _ in range(10):
            run(main())
        before = objects()
        for _ in range(100):
            run(main())
        assert objects() < before + 50


def test_a_manual_node_is_driven_by_who_waits_after_its_loop_has_closed():
    with weft.Node(provider='tcp', manual=True) as node, weft.Node(provider='tcp') as far:
        async def main():
            await node.peer(far.address).ping()
        run(main())
        run(main())
        node.peer(far.address).ping().result(LIMIT)


def test_loops_of_two_threads_await_operations_of_one_node(pair):
    failed = []

    def thread(which):
        async def main():
            for i in range(100):
                got = pair.far.recv(which, str(i))
                await pair.peer.send(which, str(i), b'x')
                await got
        try:
            run(main())
        except BaseException as error:   # of a thread: told below
            failed.append(error)
    threads = [threading.Thread(target=thread, args=(i,)) for i in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(LIMIT)
    assert not failed and not any(one.is_alive() for one in threads)


def test_sends_with_cancels_at_random_lose_nothing(pair):
    count = 10000 if ALL else 1000
    rng = random.Random(1)
    alive = np.ones(100)

    async def main():
        async def one(i):
            got = pair.far.recv(1, str(i), timeout=LIMIT)
            sent = pair.peer.send(1, str(i), alive)
            for operation in (got, sent):
                if rng.random() < 0.2:
                    operation.cancel()
            outcomes = []
            for operation in (sent, got):
                if operation is got and outcomes[0] is not weft.Status.OK:
                    got.cancel()
                try:
                    await operation
                except weft.Cancelled:
                    pass
                outcomes.append(operation.status)
            return outcomes
        for begun in range(0, count, 100):
            for outcomes in await asyncio.gather(*[one(i) for i in range(begun, begun + 100)]):
                assert set(outcomes) <= {weft.Status.OK, weft.Status.CANCELLED}
    run(main())
    pair.peer.ping().result(LIMIT)
    gc.collect()
    with_pair = np.asarray(alive)
    assert with_pair.sum() == 100


def test_what_nobody_awaits_goes_also_after_the_loop(pair):
    class Kept(np.ndarray):
        """An array that can be watched."""
    async def main():
        got = pair.far.recv(1, 'first')
        pair.peer.send(1, 'first', np.ones(3))
        await got
        await pair.peer.send(2, 'first', np.ones(3), dead=True)
    asyncio.run(main())
    array = np.ones(3).view(Kept)
    gone = weakref.ref(array)
    pair.peer.send(1, 'second', array)
    del array
    pair.far.recv(1, 'second').result(LIMIT)
    for key in range(1000):
        if gone() is None:
            return
        pair.peer.send(3, str(key), b'x').result(LIMIT)
    pytest.fail('the array is kept')
