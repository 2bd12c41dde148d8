# SPDX-License-Identifier: BSD-2-Clause
"""Tensors: arrays of any library go in, and come out without a copy."""
import array
import ctypes
import gc
import os
import weakref

import numpy as np
import pytest
import weft
from conftest import LIMIT

DTYPES = ['float32', 'float64', 'float16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32',
          'uint64', 'bool', 'complex64', 'complex128']


def passed(pair, tensor, **words):
    """What comes of @tensor when it is sent."""
    got = pair.far.recv(1, 'key', **words)
    pair.peer.send(1, 'key', tensor).result(LIMIT)
    return got.result(LIMIT)


@pytest.mark.parametrize('dtype', DTYPES)
@pytest.mark.parametrize('shape', [(), (1,), (5, 7), (2, 3, 4), (0,), (3, 0, 2)])
def test_arrays_of_every_dtype_and_shape_arrive_as_they_are(pair, dtype, shape):
    sent = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype).reshape(shape)
    got = passed(pair, sent)
    assert got.dtype == dtype
    assert got.shape == shape
    assert got.nbytes == sent.nbytes
    assert np.array_equal(np.asarray(got), sent)
    assert np.asarray(got).dtype == sent.dtype


def test_a_strided_array_arrives_whole(pair):
    sent = np.arange(60, dtype=np.int32).reshape(5, 12)[::2, 1::3].T
    assert np.array_equal(np.asarray(passed(pair, sent)), sent)


@pytest.mark.parametrize('tensor', [b'some bytes', bytearray(b'more'), memoryview(b'a view'),
                                    array.array('d', [1.5, 2.5])], ids=lambda t: type(t).__name__)
def test_any_buffer_can_be_sent(pair, tensor):
    assert passed(pair, tensor).tobytes() == bytes(tensor)


def test_a_receive_writes_into_an_array_and_gives_it_back(pair):
    sent, into = np.arange(1000.0), np.zeros(1000)
    assert passed(pair, sent, into=into) is into
    assert np.array_equal(into, sent)


def test_a_receive_into_a_longer_array_takes_any_shape(pair):
    into = np.zeros(10)
    passed(pair, np.ones((2, 3)), into=into, any_shape=True)
    assert into.sum() == 6


def test_a_tensor_of_another_shape_fails_the_receive_and_tells_both(pair):
    got = pair.far.recv(1, 'key', into=np.zeros(3))
    pair.peer.send(1, 'key', np.zeros(4)).result(LIMIT)
    with pytest.raises(weft.Error, match='buffer of 24 bytes') as raised:
        got.result(LIMIT)
    assert raised.value.status == weft.Status.FAILED_PRECONDITION


def test_memory_that_is_read_only_is_not_received_into(pair):
    into = np.zeros(3)
    into.flags.writeable = False
    with pytest.raises(weft.InvalidArgument, match='writable|not writable'):
        pair.far.recv(1, 'key', into=into)
    with pytest.raises(weft.InvalidArgument, match='writable'):
        pair.far.recv(1, 'key', into=b'bytes')


def test_what_is_no_array_is_refused(pair):
    for thing in (object(), [1, 2], 'text'):
        with pytest.raises(weft.InvalidArgument, match='an array is needed'):
            pair.peer.send(1, 'key', thing)


def test_a_dead_tensor_has_a_shape_and_no_content(pair):
    got = pair.far.recv(1, 'key')
    pair.peer.send(1, 'key', np.zeros((2, 3), np.float32), dead=True).result(LIMIT)
    tensor = got.result(LIMIT)
    assert tensor.dead and tensor.shape == (2, 3) and tensor.dtype == 'float32'
    with pytest.raises(BufferError, match='dead'):
        memoryview(tensor)
    with pytest.raises(BufferError, match='dead'):
        np.from_dlpack(tensor)


def test_a_receive_of_any_key_tells_key_and_peer(pair):
    got = pair.far.recv(1)
    pair.peer.send(1, 'the key', np.ones(2)).result(LIMIT)
    got.result(LIMIT)
    assert got.key == b'the key'
    pair.far.recv(2, 'answer', peer=got.peer).cancel()


def test_a_probe_describes_what_waits(pair):
    assert pair.far.probe(1, 'key') is None
    pair.peer.send(1, 'key', np.zeros((2, 3), np.int16)).result(LIMIT)
    while not (waits := pair.far.probe(1, 'key')):   # what has left is not there yet
        pass
    assert waits['shape'] == (2, 3) and waits['dtype'] == 'int16' and waits['nbytes'] == 12
    pair.far.recv(1, 'key').result(LIMIT)
    assert pair.far.probe(1, 'key') is None


# DLPack.

class OlderArray:
    """An array of a library that knows DLPack's first version alone."""
    def __init__(self, content):
        self.content = content

    def __dlpack__(self, stream=None):
        return self.content.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.content.__dlpack_device__()


class NewerArray(OlderArray):
    """An array with versioned capsules, and no buffer."""
    def __dlpack__(self, **words):
        return self.content.__dlpack__(**words)


@pytest.mark.parametrize('library', [OlderArray, NewerArray])
def test_arrays_are_taken_by_both_versions_of_dlpack(pair, library):
    sent, into = np.arange(12.0).reshape(3, 4), np.zeros((3, 4))
    assert np.array_equal(np.asarray(passed(pair, library(sent))), sent)
    passed(pair, sent, into=library(into))
    assert np.array_equal(into, sent)


def test_an_array_that_says_it_is_read_only_is_not_received_into(pair):
    into = np.zeros(3)
    into.flags.writeable = False
    with pytest.raises((weft.InvalidArgument, BufferError)):
        pair.far.recv(1, 'key', into=NewerArray(into))


def test_a_capsule_of_dlpack_is_no_capsule_twice(pair):
    class Broken(OlderArray):
        def __dlpack__(self, **words):
            return 7
    with pytest.raises(weft.InvalidArgument, match='gives no capsule'):
        pair.peer.send(1, 'key', Broken(np.zeros(3)))


def test_results_are_given_to_both_versions_of_dlpack(pair):
    got = passed(pair, np.arange(6.0))
    assert np.array_equal(np.from_dlpack(got), np.arange(6.0))
    assert 'dltensor_versioned' in repr(got.__dlpack__(max_version=(1, 0)))
    old = got.__dlpack__()
    assert '"dltensor"' in repr(old)
    del old
    assert got.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match='does not copy'):
        got.__dlpack__(copy=True)
    with pytest.raises(BufferError, match='another device'):
        got.__dlpack__(dl_device=(2, 0))


def test_numpy_is_told_why_it_can_t_have_a_tensor(pair):
    with pytest.raises(BufferError, match='no word for the tensor.s dtype'):
        np.asarray(pair.far.empty((2, 3), 'bfloat16'))
    pair.peer.send(1, 'key', np.zeros(3), dead=True)
    with pytest.raises(BufferError, match='dead'):
        np.array(pair.far.recv(1, 'key').result(LIMIT))
    got = passed(pair, np.arange(3.0))
    assert got.__array__().sum() == 3 and np.asarray(got, np.int32).dtype == np.int32


def test_bfloat16_comes_as_its_bits_for_who_knows_it(pair):
    torch = pytest.importorskip('torch')
    sent = torch.arange(10, dtype=torch.bfloat16)
    got = passed(pair, sent)
    assert got.dtype == 'bfloat16'
    assert torch.equal(torch.from_dlpack(got), sent)
    with pytest.raises(BufferError, match='use DLPack'):
        memoryview(got)


# Memory and its owners.

class Owner(np.ndarray):
    """An array that can be watched."""


def watched(length):
    """An array, and a reference that dies with it."""
    content = np.ones(length).view(Owner)
    return content, weakref.ref(content)


def test_an_array_is_kept_until_its_send_has_ended(pair):
    content, alive = watched(1 << 20)
    sent = pair.peer.send(1, 'key', content)
    del content
    gc.collect()
    assert alive() is not None   # nobody receives yet: a long tensor is still borrowed
    assert np.asarray(pair.far.recv(1, 'key').result(LIMIT)).sum() == 1 << 20
    sent.result(LIMIT)
    gc.collect()
    assert alive() is None


def test_an_array_is_kept_also_when_nobody_has_the_operation(pair):
    content, alive = watched(1 << 20)
    pair.peer.send(1, 'key', content)
    del content
    gc.collect()
    assert alive() is not None
    assert np.asarray(pair.far.recv(1, 'key').result(LIMIT)).sum() == 1 << 20
    while alive() is not None:   # the next operations see that it has ended
        pair.peer.ping().result(LIMIT)
        gc.collect()


def test_a_tensor_is_not_given_where_its_first_dimension_has_the_neighbours(pair):
    fortran, view = 0x58, ctypes.create_string_buffer(128)   # PyBUF_F_CONTIGUOUS, a Py_buffer
    with pytest.raises(BufferError, match='last dimension'):
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(passed(pair, np.ones((3, 4)))), view, fortran)
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(passed(pair, np.ones((1, 4)))), view, fortran)
    ctypes.pythonapi.PyBuffer_Release(view)


def test_a_result_outlives_its_operation_and_both_nodes(pair):
    got = passed(pair, np.arange(1 << 18))
    view = np.asarray(got)
    del got
    pair.close()
    gc.collect()
    assert np.array_equal(view, np.arange(1 << 18))
    assert pair.far.closed
    with pytest.raises(weft.InvalidArgument, match='the node is closed'):
        pair.far.recv(1, 'key')


def test_a_view_of_a_senders_memory_outlives_the_sender(start):
    sender = start('''
        import sys, numpy as np, weft
        node = weft.Node(provider='shm')
        tensor = node.empty(1 << 20, 'uint8')
        np.asarray(tensor)[:] = 7
        peer = node.peer(sys.argv[1])
        sent = peer.send(1, 'key', tensor, share=True)
        sent.result(60)
        peer.send(1, 'copied', np.full(9, 3, np.uint8)).result(60)
        print('sent', flush=True)
        sys.stdin.readline()
    ''', (node := weft.Node(provider='shm', timeout=LIMIT)).address)
    got = node.recv(1, 'key').result(LIMIT)
    copied = node.recv(1, 'copied').result(LIMIT)
    assert sender.line() == 'sent'
    view = np.asarray(got)
    assert got.readonly and not view.flags.writeable and not copied.readonly
    with pytest.raises(BufferError, match='read-only'):
        got.__dlpack__()
    assert sender.end()[0] == 0
    assert view.sum() == 7 << 20
    node.close()
    assert view.sum() == 7 << 20


def test_memory_of_the_pool_is_free_when_its_last_array_is_gone(pair):
    before = pair.far.counters()['pool_bytes_used']
    view = np.asarray(passed(pair, np.zeros(1 << 20)))
    assert pair.far.counters()['pool_bytes_used'] > before
    del view
    gc.collect()
    assert pair.far.counters()['pool_bytes_used'] == before


def resident():
    """Bytes of this process in memory."""
    with open('/proc/self/statm', encoding='ascii') as text:
        return int(text.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


def test_ten_thousand_tensors_leave_nothing_behind(pair):
    import sys
    small, large = np.ones(8), np.ones(20000)
    into = np.empty(20000)

    def some(count):
        for _ in range(count):
            got = pair.far.recv(1, 'key')
            pair.peer.send(1, 'key', small).result(LIMIT)
            got.result(LIMIT)
        for _ in range(count // 10):
            pair.peer.send(1, 'large', large)
            pair.far.recv(1, 'large', into=into).result(LIMIT)
    some(1000)
    gc.collect()
    references, bytes_before = sys.getrefcount(small), resident()
    some(9000)
    pair.peer.ping().result(LIMIT)
    gc.collect()
    assert sys.getrefcount(small) == references
    assert resident() - bytes_before < 8 << 20
