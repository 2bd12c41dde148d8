# SPDX-License-Identifier: BSD-2-Clause
"""Processes: Ctrl-C, fork, and the interpreter's end while operations are under way."""
import signal


import pytest
from conftest import ALL


def test_ctrl_c_ends_a_wait(start):
    process = start('''
        import weft
        node = weft.Node(provider='tcp')
        try:
            print('waits', flush=True)
            node.recv(1, 'never').result()
        except KeyboardInterrupt:
            print('interrupted', flush=True)
    ''')
    assert process.line() == 'waits'
    process.process.send_signal(signal.SIGINT)
    assert process.line() == 'interrupted'
    assert process.end()[0] == 0


def test_ctrl_c_ends_an_event_loop(start):
    process = start('''
        import asyncio, weft
        async def main():
            node = weft.Node(provider='tcp')
            got = node.recv(1, 'never')
            asyncio.get_running_loop().call_soon(lambda: print('waits', flush=True))
            await got
        asyncio.run(main())
    ''')
    assert process.line() == 'waits'
    process.process.send_signal(signal.SIGINT)
    status, _, err = process.end()
    assert status != 0 and 'KeyboardInterrupt' in err


def test_handles_are_dropped_while_another_thread_gives_their_buffers_back(start):
    process = start('''
        import threading, time, numpy as np, weft
        begun, dropped = threading.Event(), threading.Event()
        class Slow(np.ndarray):
            def __del__(self):
                if threading.current_thread() is not threading.main_thread():
                    begun.set()
                    dropped.wait(60)   # without the GIL
        node, other = weft.Node(provider='tcp'), weft.Node(provider='tcp')
        peer = node.peer(other.address)
        sent = [peer.send(1, key, np.ones(3).view(Slow)) for key in 'abc']
        for key in 'abc':
            other.recv(1, key).result(60)
        while any(operation.status is None for operation in sent):   # done() gives them back
            time.sleep(0.001)
        thread = threading.Thread(target=node._drain)
        thread.start()
        begun.wait(60)
        sent.clear()
        dropped.set()
        thread.join()
        print('all are gone', flush=True)
    ''', MALLOC_PERTURB_='165', GLIBC_TUNABLES='glibc.malloc.tcache_count=0')   # freed memory has other bytes
    assert process.line() == 'all are gone'
    assert process.end()[0] == 0


def test_a_forked_child_is_told_and_the_parent_goes_on(start):
    process = start('''
        import os, sys, numpy as np, weft
        node, other = weft.Node(provider='tcp'), weft.Node(provider='tcp')
        peer = node.peer(other.address)
        got = other.recv(1, 'key')
        child = os.fork()
        if not child:
            try:
                peer.send(1, 'key', np.ones(3))
            except weft.Error as error:
                print('child:', error, flush=True)
            for refused in (lambda: weft.wait_any([got], 1), lambda: other.poll(), lambda: other.drain(0)):
                try:
                    refused()
                except weft.Error as error:
                    print('child:', error, flush=True)
            sys.exit(0)
        print('status', os.waitpid(child, 0)[1], flush=True)
        peer.send(1, 'key', np.ones(3)).result(60)
        print('sum', np.asarray(got.result(60)).sum(), flush=True)
    ''')
    said = [process.line() for _ in range(6)]
    assert all(line.startswith('child:') and 'fork' in line for line in said[:4])
    assert said[4:] == ['status 0', 'sum 3.0']
    assert process.end()[0] == 0


def test_multiprocessing_gives_its_workers_nodes_of_their_own(start):
    process = start('''
        import multiprocessing, numpy as np, weft
        def work(address):
            with weft.Node(provider='tcp') as node:
                node.peer(address).send(1, 'key', np.ones(3)).result(60)
        node = weft.Node(provider='tcp')
        got = [node.recv(1, 'key') for _ in range(2)]
        with multiprocessing.get_context('fork').Pool(2) as pool:
            pool.map(work, [node.address] * 2)
        print(sum(np.asarray(one.result(60)).sum() for one in got), flush=True)
    ''')
    assert process.line() == '6.0'
    assert process.end()[0] == 0


# How a program may end: each leaves operations under way.
ENDS = {
    'at the last line': '',
    'by sys.exit': 'import sys; sys.exit(0)',
    'with a thread that waits': '''
import threading
threading.Thread(target=lambda: got.wait(), daemon=True).start()
''',
    'with an array of a result': 'view = np.asarray(kept)',
    'with a closed node and an array': 'view = np.asarray(kept); other.close()',
    'inside an event loop': '''
import asyncio
async def main():
    asyncio.ensure_future(wait())
    await asyncio.sleep(0)
async def wait():
    await got
asyncio.run(main())
''',
}


@pytest.mark.parametrize('end', ENDS)
def test_the_interpreter_ends_cleanly_with_operations_under_way(start, end):
    for _ in range(170 if ALL else 2):
        process = start('''
            import sys, numpy as np, weft
            node, other = weft.Node(provider='tcp'), weft.Node(provider='tcp')
            peer = node.peer(other.address)
            peer.send(1, 'kept', np.ones(100))
            kept = other.recv(1, 'kept').result(60)
            sent, got = peer.send(1, 'key', np.ones(1 << 20)), other.recv(1, 'never')
            peer.send(1, 'nobody has this', np.ones(1 << 20))
            window = other.window(bytearray(1000))
            exec(sys.argv[1])
        ''', ENDS[end])
        status, out, err = process.end()
        assert (status, out, err) == (0, '', '')



