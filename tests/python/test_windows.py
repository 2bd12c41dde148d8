# SPDX-License-Identifier: BSD-2-Clause
"""Windows: memory that peers read and write by themselves."""
import gc
import weakref

import numpy as np
import pytest
import weft
from conftest import LIMIT


@pytest.fixture
def window(pair):
    """A window of a thousand bytes, with the array and the remote end."""
    memory = np.arange(1000, dtype=np.uint16).astype(np.uint8)
    opened = pair.far.window(memory)
    return opened, memory, pair.peer.window(opened.descriptor)


def test_puts_and_gets_move_an_array_or_its_blocks(window):
    _, memory, remote = window
    assert remote.nbytes == 1000 and remote.rights == 'rw'
    got = np.zeros(10, np.uint8)
    remote.get(got, offset=20).result(LIMIT)
    assert np.array_equal(got, np.arange(20, 30))
    remote.put(np.full(5, 7, np.uint8), offset=990).result(LIMIT)
    assert memory[989] != 7 and list(memory[990:995]) == [7] * 5 and memory[995] != 7
    remote.get(got, [(0, 100, 3), (5, 50, 2)]).result(LIMIT)
    assert list(got[:3]) == [100, 101, 102] and list(got[5:7]) == [50, 51]


@pytest.mark.parametrize('dtype', [np.int64, np.uint64])
def test_blocks_may_be_a_table(window, dtype):
    _, memory, remote = window
    table = np.array([[i * 2, 999 - i, 1] for i in range(300)], dtype)
    got = np.zeros(600, np.uint8)
    remote.get(got, table).result(LIMIT)
    assert np.array_equal(got[::2], memory[::-1][:300])
    remote.get(got, np.asfortranarray(table)).result(LIMIT)
    assert np.array_equal(got[::2], memory[::-1][:300])


def test_blocks_beyond_the_array_or_the_window_are_refused(window):
    _, _, remote = window
    got = np.zeros(10, np.uint8)
    for blocks in ([(5, 0, 6)], [(11, 0, 0)], np.array([[2 ** 62, 0, 2 ** 62]])):
        with pytest.raises(weft.InvalidArgument, match='beyond its array'):
            remote.get(got, blocks)
    with pytest.raises(weft.InvalidArgument):
        remote.get(got, offset=995)
    for table in (np.zeros((2, 4), np.int64), np.zeros(7, np.int64)[::2], np.zeros((), np.int64)):
        with pytest.raises(weft.InvalidArgument, match='three columns'):
            remote.get(got, table)
    with pytest.raises(weft.InvalidArgument, match='not contiguous'):
        remote.get(got[::2])
    with pytest.raises(weft.InvalidArgument, match='writable'):
        remote.get(b'bytes')


def test_a_note_comes_after_the_bytes(window):
    opened, memory, remote = window
    note = opened.next()
    remote.put(np.full(1000, 9, np.uint8), note=b'all nines', number=77).result(LIMIT)
    got = note.result(LIMIT)
    assert (got.number, got.data, got.of_get) == (77, b'all nines', False)
    assert isinstance(got.peer, weft.Peer) and (memory == 9).all()
    remote.put(None, number=5).result(LIMIT)
    assert opened.next().result(LIMIT)[:3] == (5, b'', False)
    assert opened.puts == 2 and opened.wait(2, LIMIT) and not opened.wait(3, 0.01)


def test_a_window_is_found_by_its_key(pair, window):
    opened, _, _ = window
    found = pair.peer.find_window('cache')
    opened.publish('cache')
    assert found.result(LIMIT).nbytes == 1000
    with pytest.raises(weft.NotFound):
        pair.peer.find_window('nothing', timeout=1).result(LIMIT)


def test_rights_are_kept(pair):
    memory = np.zeros(10, np.uint8)
    remote = pair.peer.window(pair.far.window(memory, 'r').descriptor)
    with pytest.raises(weft.Error) as raised:
        remote.put(np.ones(10, np.uint8))
    assert raised.value.status is weft.Status.PERMISSION_DENIED
    with pytest.raises(weft.InvalidArgument, match='"rw"'):
        pair.far.window(memory, 'x')
    memory.flags.writeable = False
    pair.far.window(memory, 'r')
    with pytest.raises(weft.InvalidArgument, match='writable'):
        pair.far.window(memory, 'rw')


def test_a_closed_window_is_not_found_and_its_memory_is_free(pair):
    memory = np.zeros(1000, np.uint8).view(type('Watched', (np.ndarray,), {}))
    alive = weakref.ref(memory)
    opened = pair.far.window(memory)
    remote = pair.peer.window(opened.descriptor)
    del memory
    gc.collect()
    assert alive() is not None
    opened.close()
    opened.close()
    gc.collect()
    assert alive() is None
    with pytest.raises(weft.NotFound, match='it is closed'):
        remote.get(np.zeros(5, np.uint8)).result(LIMIT)
    with pytest.raises(weft.InvalidArgument, match='the window is closed'):
        opened.publish('key')
    remote.close()
    with pytest.raises(weft.InvalidArgument, match='the remote window is closed'):
        remote.get(np.zeros(5, np.uint8))


def test_rubbish_is_no_descriptor(pair):
    for descriptor in (b'', b'rubbish', bytes(300)):
        with pytest.raises(weft.Error):
            pair.peer.window(descriptor)


def test_a_region_stays_registered_until_it_is_closed(pair):
    memory = np.zeros(1 << 20, np.uint8)
    region = pair.far.register(memory)
    got = pair.far.recv(1, 'key', into=memory[:100])
    pair.peer.send(1, 'key', np.ones(100, np.uint8)).result(LIMIT)
    got.result(LIMIT)
    region.close()
    region.close()
    assert memory.sum() == 100
