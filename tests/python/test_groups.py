# SPDX-License-Identifier: BSD-2-Clause
"""Groups: jobs of processes, and their collectives."""
import signal

import numpy as np
import pytest
import weft
from conftest import LIMIT, TOOL


@pytest.fixture
def groups():
    """Four groups of this process, by rank."""
    nodes = [weft.Node(provider='tcp', timeout=LIMIT) for _ in range(4)]
    addresses = [node.address for node in nodes]
    yield [node.group(rank, addresses, 7) for rank, node in enumerate(nodes)]
    for node in nodes:
        node.close()


def results(operations):
    """What all of @operations give."""
    return [operation.result(LIMIT) for operation in list(operations)]


@pytest.mark.parametrize('op, expected', [('sum', 10), ('average', 2.5), ('product', 24), ('min', 1), ('max', 4)])
def test_all_reduce_combines_in_place_or_beside(groups, op, expected):
    arrays = [np.full(1000, rank + 1.0) for rank in range(4)]
    out = [np.zeros(1000) for _ in range(4)]
    got = results(g.all_reduce(a, o, op=op) for g, a, o in zip(groups, arrays, out))
    assert all(one is o and (o == expected).all() for one, o in zip(got, out))
    assert all((a == rank + 1).all() for rank, a in enumerate(arrays))
    results(g.all_reduce(a, op=op) for g, a in zip(groups, arrays))
    assert all((a == expected).all() for a in arrays)


def test_collectives_move_parts_by_rank(groups):
    one = [np.full(3, rank) for rank in range(4)]
    everything = np.repeat(np.arange(4), 3)
    whole = [np.zeros(12, int) for _ in range(4)]
    results(g.all_gather(a, w) for g, a, w in zip(groups, one, whole))
    assert all(np.array_equal(w, everything) for w in whole)
    results(g.gather(2, a, w if g.rank == 2 else None) for g, a, w in zip(groups, one, whole))
    part = [np.zeros(3, int) for _ in range(4)]
    results(g.scatter(1, everything if g.rank == 1 else None, p) for g, p in zip(groups, part))
    assert all((p == rank).all() for rank, p in enumerate(part))
    results(g.all_to_all(everything.copy(), w) for g, w in zip(groups, whole))
    assert all((w == rank).all() for rank, w in enumerate(whole))
    results(g.reduce_scatter(everything.copy(), p) for g, p in zip(groups, part))
    assert all((p == 4 * rank).all() for rank, p in enumerate(part))
    results(g.reduce(3, p) for g, p in zip(groups, part))
    assert (part[3] == 24).all() and (part[0] == 0).all()
    part[3].flags.writeable = False
    assert results(g.broadcast(3, p) for g, p in zip(groups, part))[3] is part[3]
    assert all((p == 24).all() for p in part)
    results(g.barrier() for g in groups)


def test_a_group_tells_ranks_and_peers(groups):
    assert [g.rank for g in groups] == [0, 1, 2, 3] and groups[0].size == 4
    assert groups[0].address(9) is None
    groups[0].peer(3).ping().result(LIMIT)
    with pytest.raises(weft.InvalidArgument):
        groups[0].peer(0)
    with pytest.raises(weft.InvalidArgument, match='a reduction is'):
        groups[0].all_reduce(np.zeros(3), op='mean')


def test_a_late_process_is_named_to_all(groups):
    late = [g.barrier(timeout=0.2 if g.rank == 1 else None) for g in groups[1:]]
    for one in late:
        with pytest.raises(weft.DeadlineExceeded, match='ranks? 0'):
            one.result(LIMIT)


def test_processes_of_weft_run_join(start):
    process = start('''
        import os, numpy as np, weft
        group = weft.join(name='test')
        total = group.all_reduce(np.full(5, group.rank)).result(60)
        assert (total == 6).all()
        group.barrier().result(60)
        os.write(1, b'rank %d of %d by %s\\n' % (group.rank, group.size, group.launcher.encode()))
    ''', prefix=[TOOL, 'run', '-n', '4'])
    status, out, err = process.end()
    assert status == 0, err
    assert all('rank %d of 4 by address' % rank in out for rank in range(4))


def test_a_process_alone_is_a_group_of_one():
    with weft.Node() as node:
        group = node.join()
        assert (group.rank, group.size, group.launcher) == (0, 1, 'none')
        assert group.all_reduce(np.ones(3)).result(LIMIT).sum() == 3


def test_a_join_that_is_out_of_time_names_who_is_missing(start):
    process = start('''
        import weft
        try:
            weft.join(timeout=0.5)
        except weft.DeadlineExceeded as error:
            print(error, flush=True)
    ''', WEFT_BOOTSTRAP='127.0.0.1:25999', WEFT_RANK='0', WEFT_SIZE='3')
    assert 'ranks 1 and 2' in process.line()


def test_ctrl_c_ends_a_join(start):
    process = start("""
        import weft
        try:
            print('joins', flush=True)
            weft.join()
        except KeyboardInterrupt:
            print('interrupted', flush=True)
    """, WEFT_BOOTSTRAP='127.0.0.1:25999', WEFT_RANK='1', WEFT_SIZE='2')
    assert process.line() == 'joins'
    process.process.send_signal(signal.SIGINT)
    assert process.line() == 'interrupted'
