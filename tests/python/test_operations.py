# SPDX-License-Identifier: BSD-2-Clause
"""Operations: waiting for them, how they fail, and what they tell."""
import pickle
import threading
import time

import numpy as np
import pytest
import weft
from conftest import LIMIT


def test_a_failure_has_weft_s_sentence_and_what_became_of_it(pair):
    with pytest.raises(weft.DeadlineExceeded, match='before any peer sent step 1') as raised:
        pair.far.recv(1, 'key', timeout=0.01).result(LIMIT)
    error = raised.value
    assert isinstance(error, weft.Error) and isinstance(error, TimeoutError)
    assert error.status is weft.Status.DEADLINE_EXCEEDED and error.executed is weft.Executed.NO
    assert error.errno is None and 'DEADLINE_EXCEEDED' in str(error)


def test_a_refusal_has_its_errno(pair):
    with pytest.raises(ValueError, match='no address|host:port|address') as raised:
        pair.near.peer('nowhere')
    assert isinstance(raised.value, weft.InvalidArgument) and raised.value.errno == 22
    with pytest.raises(weft.InvalidArgument, match='a key is'):
        pair.near.recv(1, 7)
    with pytest.raises(weft.InvalidArgument, match='seconds'):
        pair.near.recv(1, 'key', timeout=-1)
    with pytest.raises(weft.Error):
        weft.Node(provider='nothing of that name')


def test_result_gives_up_waiting_and_the_operation_goes_on(pair):
    got = pair.far.recv(1, 'key')
    with pytest.raises(TimeoutError, match='has not ended') as raised:
        got.result(0.01)
    assert not isinstance(raised.value, weft.Error)
    assert got.wait(0) is False and got.status is None and not got.done()
    pair.peer.send(1, 'key', b'x')
    assert got.result(LIMIT).tobytes() == b'x'
    assert got.status is weft.Status.OK and got.done()
    assert got.exception() is None
    assert got.result() is got.result()


def test_a_cancelled_operation_says_so(pair):
    got = pair.far.recv(1, 'key')
    got.cancel()
    with pytest.raises(weft.Cancelled):
        got.result(LIMIT)
    assert isinstance(got.exception(), weft.Cancelled)


def test_the_first_and_all_of_several_are_waited_for(pair):
    first, second = pair.far.recv(1, 'first'), pair.far.recv(1, 'second')
    with pytest.raises(TimeoutError):
        weft.wait_any([first, second], 0.01)
    assert weft.wait_all([first, second], 0.01) is False
    pair.peer.send(1, 'second', b'x')
    assert weft.wait_any([first, second], LIMIT) == 1
    pair.peer.send(1, 'first', b'x')
    assert weft.wait_all([first, second], LIMIT) is True


def test_an_array_is_given_back_by_whatever_says_that_its_operation_has_ended(pair):
    def look(sent):
        while not sent.done():
            time.sleep(0.001)
    for see in (look, lambda sent: weft.wait_any([sent], LIMIT), lambda sent: sent.wait(LIMIT)):
        array = bytearray(9)
        sent = pair.peer.send(1, 'key', array)
        see(sent)
        array.append(0)   # BufferError: the array is still borrowed


def test_other_threads_run_while_one_waits(pair):
    got = pair.far.recv(1, 'key')
    ran = threading.Event()
    waiter = threading.Thread(target=lambda: (ran.set(), got.result(LIMIT)))
    waiter.start()
    assert ran.wait(LIMIT)
    pair.peer.send(1, 'key', b'x').result(LIMIT)
    waiter.join(LIMIT)
    assert not waiter.is_alive()


def test_many_threads_send_and_receive(pair):
    def exchange(which):
        for i in range(200):
            got = pair.far.recv(which, str(i))
            pair.peer.send(which, str(i), np.full(5, i)).result(LIMIT)
            assert np.asarray(got.result(LIMIT))[4] == i
        done.append(which)
    done = []
    threads = [threading.Thread(target=exchange, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(done) == [0, 1, 2, 3]


def test_a_lost_peer_is_unavailable_in_bounded_time(pair, start):
    other = start('''
        import sys, weft
        node = weft.Node(provider='tcp')
        print(node.address, flush=True)
        sys.stdin.readline()
    ''')
    peer = pair.near.peer(other.line())
    peer.ping().result(LIMIT)
    got = pair.near.recv(1, 'key', peer=peer)
    other.process.kill()
    begun = time.monotonic()
    with pytest.raises(weft.Unavailable) as raised:
        got.result(LIMIT)
    assert isinstance(raised.value, ConnectionError)
    assert time.monotonic() - begun < 10


def test_closing_a_node_ends_what_is_under_way(pair):
    got = pair.far.recv(1, 'key')
    pair.far.close()
    pair.far.close()
    with pytest.raises(weft.Cancelled):
        got.result(LIMIT)
    with pytest.raises(weft.InvalidArgument, match='closed'):
        pair.far.address


def test_an_aborted_step_ends_with_the_word_given(pair):
    got = pair.far.recv(5, 'key')
    pair.far.abort_step(5, weft.Status.ABORTED, 'no more')
    with pytest.raises(weft.Error, match='no more') as raised:
        got.result(LIMIT)
    assert raised.value.status is weft.Status.ABORTED
    pair.far.end_step(6)


def test_a_broadcast_reaches_all(pair):
    with weft.Node(provider='tcp') as third:
        peers = [pair.peer, pair.near.peer(third.address)]
        got = [pair.far.recv(1, 'key'), third.recv(1, 'key')]
        pair.near.broadcast(peers, 1, 'key', np.arange(100)).result(LIMIT)
        assert all(np.asarray(one.result(LIMIT)).sum() == 4950 for one in got)
        del got


def test_path_counters_and_dump_tell_what_happened(pair):
    sent = pair.peer.send(1, 'key', np.zeros(1 << 18))
    got = pair.far.recv(1, 'key')
    assert got.result(LIMIT).nbytes == 1 << 21
    sent.result(LIMIT)
    path = got.path()
    assert path['provider'].startswith('tcp') and path['bytes'] == 1 << 21 and path['done_ns'] > 0
    assert pair.far.counters()['bytes_pulled'] >= 1 << 21
    assert len(pair.far.counters()['calls_ended']) == len(weft.Status)
    assert pair.far.address in pair.far.dump()


def test_a_manual_node_is_driven_by_who_waits():
    with weft.Node(provider='tcp', manual=True) as near, weft.Node(provider='tcp') as far:
        got = far.recv(1, 'key')
        near.peer(far.address).send(1, 'key', b'x').result(LIMIT)
        assert got.result(LIMIT).tobytes() == b'x'
        assert near.poll() >= 0
        with pytest.raises(weft.InvalidArgument):
            far.poll()


def in_threads(*functions):
    """Run functions in threads.  A function that waits for all, and returns what they raised."""
    raised, begun = {}, [threading.Event() for _ in functions]

    def run(number, function):
        begun[number].set()
        try:
            function()
        except Exception as error:
            raised[number] = error
    threads = [threading.Thread(target=run, args=one) for one in enumerate(functions)]
    for thread, event in zip(threads, begun):
        thread.start()
        event.wait(LIMIT)

    def ended():
        for thread in threads:
            thread.join(LIMIT)
            assert not thread.is_alive()
        return raised
    return ended


def test_a_node_closes_while_threads_wait_on_it(pair):
    node = weft.Node(provider='tcp', timeout=LIMIT)
    window, got = node.window(np.zeros(10)), [node.recv(1, key) for key in 'abc']
    ended = in_threads(lambda: window.wait(10 ** 9), lambda: got[0].result(), lambda: weft.wait_any(got[1:]),
                       lambda: weft.wait_all(got), lambda: node.close(), lambda: node.close())
    node.close()
    raised = ended()
    assert isinstance(raised[0], weft.InvalidArgument)
    assert isinstance(raised[1], weft.Cancelled)
    assert all(isinstance(one.exception(), weft.Cancelled) for one in got)
    with pytest.raises(weft.InvalidArgument, match='the node is closed'):
        node.recv(1, 'key')


def test_a_result_that_is_asked_for_after_the_node_has_closed_is_refused(pair):
    got, into = pair.far.recv(1, 'w'), np.zeros(100000)
    written = pair.far.recv(1, 'into', into=into)
    for key in ('w', 'into'):
        pair.peer.send(1, key, np.ones(100000)).result(LIMIT)
    assert weft.wait_all([got, written], LIMIT)
    pair.far.close()
    with pytest.raises(weft.InvalidArgument, match='the node has closed'):
        got.result()
    assert written.result() is into and into.sum() == 100000


def test_threads_drive_a_manual_node_by_turns():
    with weft.Node(provider='tcp', manual=True) as node, weft.Node(provider='tcp') as far:
        peer, back = node.peer(far.address), far.peer(node.address)
        window = node.window(np.zeros(10))

        def pass_on(step):
            for i in range(50):
                got = node.recv(step, str(i))
                back.send(step, str(i), b'x')
                peer.send(step, str(i), b'y').result(LIMIT)
                assert got.result(LIMIT).tobytes() == b'x'
                node.poll()
        ended = in_threads(*(lambda step=step: pass_on(step) for step in range(3)),
                           lambda: weft.wait_any([node.recv(9, 'last')], LIMIT),
                           lambda: window.wait(1, LIMIT), lambda: node.poll(LIMIT))
        pass_on(3)
        back.send(9, 'last', b'x')
        back.window(window.descriptor).put(np.ones(10)).result(LIMIT)
        assert not ended()
        ended = in_threads(lambda: window.close())
        assert not ended()


def test_a_wait_hears_of_an_end_that_another_thread_brings_about():
    with weft.Node(provider='tcp', manual=True) as node, weft.Node(provider='tcp') as far:
        got, never = node.recv(1, 'key'), node.recv(1, 'never')
        ended = in_threads(lambda: never.result())
        far.peer(node.address).send(1, 'key', b'x').result(LIMIT)
        assert got.result(LIMIT).tobytes() == b'x'
        assert got.wait(0) and got.exception(0) is None and weft.wait_any([never, got], 0) == 1
        never.cancel()
        assert isinstance(ended()[0], weft.Cancelled)


def test_a_handler_of_a_signal_closes_the_node_that_its_thread_waits_on(start):
    process = start('''
        import signal, threading, time, weft
        node = weft.Node(provider='tcp', manual=True)
        got, raised = [node.recv(1, str(i)) for i in range(3)], []

        def wait(one):
            try:
                one.result()
            except weft.Cancelled:
                raised.append(one)
        threads = [threading.Thread(target=wait, args=(one,)) for one in got[1:]]
        threads += [threading.Thread(target=lambda: [node.dump() for _ in range(1000)])]
        for thread in threads:
            thread.start()
        signal.signal(signal.SIGALRM, lambda *_: node.close())
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        wait(got[0])
        for thread in threads:
            thread.join(30)
        print(len(raised), flush=True)
    ''')
    assert process.line() == '3'
    assert process.end()[0] == 0


def test_a_failure_of_what_is_told_of_the_end_leaves_the_node_closed():
    node = weft.Node(provider='tcp')
    got, told = node.recv(1, 'key'), []

    class Owner:
        pass

    def fails(owner):
        raise KeyboardInterrupt
    first, second = Owner(), Owner()
    node._on_close(first, fails)
    node._on_close(second, told.append)
    with pytest.raises(KeyboardInterrupt):
        node.close()
    assert told == [second] and isinstance(got.exception(LIMIT), weft.Cancelled)


def test_a_window_closes_while_a_thread_waits_for_it(pair):
    window = pair.far.window(np.zeros(10))
    ended = in_threads(lambda: window.wait(10 ** 9), lambda: window.wait(10 ** 9))
    window.close()
    assert all('the window is closed' in str(error) for error in ended().values())


def test_an_error_survives_a_pickle():
    error = weft.errors._failed(14, 'it is gone', 1)
    error.details = b'more'
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is weft.Unavailable and str(again) == str(error)
    assert (again.status, again.executed, again.details) == (error.status, error.executed, b'more')
