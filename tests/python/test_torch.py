# SPDX-License-Identifier: BSD-2-Clause
"""The backend "weft" of torch.distributed, in jobs of torchrun."""
import os
import re
import subprocess
import sys
import textwrap

import pytest
from conftest import LIMIT

torch = pytest.importorskip('torch')
TORCHRUN = os.path.join(os.path.dirname(sys.executable), 'torchrun')
BEGIN = '''
import os, signal, sys, threading, time
import torch, torch.distributed as dist
if not hasattr(dist.Backend, '_ensure_backend_registered'):
    import weft.torch
torch.set_num_threads(1)
dist.init_process_group('weft')
rank, size = dist.get_rank(), dist.get_world_size()
everyone = range(size)
device = os.environ['TORCH_TESTS_DEVICE']
torch.set_default_device(device)
'''
END = '''
dist.barrier()
dist.destroy_process_group()
os.write(1, b'rank %d is done\\n' % rank)   # in one piece
'''


DEVICES = ['cpu', pytest.param('cuda', marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason='this machine has no GPU'))]


def job(tmp_path, text, ranks=3, provider='tcp', device='cpu', end=END):
    """Run @text in a job of @ranks processes, whose tensors are on @device.  What was printed."""
    script = tmp_path / 'job.py'
    script.write_text(BEGIN + textwrap.dedent(text) + end)
    env = dict(os.environ, FI_PROVIDER=provider, OMP_NUM_THREADS='1', TORCH_TESTS_DEVICE=device)
    ran = subprocess.run([TORCHRUN, '--standalone', '--nproc-per-node', str(ranks), str(script)],
                         env=env, check=False, text=True, timeout=5 * LIMIT, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ran.stdout


def ends_well(tmp_path, text, **words):
    """Run a job whose processes all come to their end."""
    said = job(tmp_path, text, **words)
    done = re.findall(r'rank (\d+) is done', said)
    assert len(done) == words.get('ranks', 3), said


@pytest.mark.parametrize('ranks', [2, 4])
@pytest.mark.parametrize('provider', ['shm', 'tcp'])
@pytest.mark.parametrize('device', DEVICES)
def test_collectives_give_what_pytorch_says(tmp_path, ranks, provider, device):
    ends_well(tmp_path, '''
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64,
                      torch.uint8, torch.int8, torch.int16):
            for length in (1, 1000, 300000):
                x = torch.full((length,), rank + 1).to(dtype)
                dist.all_reduce(x)
                assert (x == sum(everyone) + size).all(), (dtype, x)
        for op, expected in ((dist.ReduceOp.MAX, size), (dist.ReduceOp.MIN, 1), (dist.ReduceOp.AVG, (size + 1) / 2)):
            x = torch.full((5,), rank + 1.0)
            dist.all_reduce(x, op)
            assert (x == expected).all(), (op, x)
        for op, expected in ((dist.ReduceOp.BOR, 2 ** size - 1), (dist.ReduceOp.BAND, 0), (dist.ReduceOp.BXOR, 2 ** size - 1)):
            x = torch.tensor([1 << rank])
            dist.all_reduce(x, op)
            assert x.item() == expected, (op, x)
        x = torch.full((4,), float(rank)) if rank == 1 else torch.zeros(4)
        dist.broadcast(x, 1)
        assert (x == 1).all()
        x = torch.ones(4)
        dist.reduce(x, size - 1)
        assert rank < size - 1 or (x == size).all()
        out = [torch.zeros(2, 3) for _ in everyone]
        dist.all_gather(out, torch.full((2, 3), float(rank)))
        assert all((one == i).all() for i, one in enumerate(out))
        out = torch.zeros(size * 2)
        dist.all_gather_into_tensor(out, torch.full((2,), float(rank)))
        assert torch.equal(out, torch.arange(float(size)).repeat_interleave(2))
        out = torch.zeros(3)
        dist.reduce_scatter(out, [torch.full((3,), float(i)) for i in everyone])
        assert (out == rank * size).all()
        dist.reduce_scatter_tensor(out, torch.arange(float(size)).repeat_interleave(3))
        assert (out == rank * size).all()
        out = [torch.zeros(2) for _ in everyone] if rank == 0 else None
        dist.gather(torch.full((2,), float(rank)), out)
        assert rank or all((one == i).all() for i, one in enumerate(out))
        out = torch.zeros(2)
        dist.scatter(out, [torch.full((2,), float(i)) for i in everyone] if rank == 0 else None)
        assert (out == rank).all()
        out = torch.zeros(size)
        dist.all_to_all_single(out, torch.full((size,), float(rank)))
        assert torch.equal(out, torch.arange(float(size)))
        sizes = [i + 1 for i in everyone]
        out = torch.zeros(size * (rank + 1))
        dist.all_to_all_single(out, torch.full((sum(sizes),), float(rank)), [rank + 1] * size, sizes)
        assert torch.equal(out, torch.arange(float(size)).repeat_interleave(rank + 1))
        out = [torch.zeros(i + 1) for i in everyone]
        dist.all_to_all(out, [torch.full((rank + 1,), float(rank)) for _ in everyone])
        assert all((one == i).all() for i, one in enumerate(out))
        out = [None] * size
        dist.all_gather_object(out, {'rank': rank})
        assert [one['rank'] for one in out] == list(everyone)
    ''', ranks=ranks, provider=provider, device=device)


@pytest.mark.parametrize('device', DEVICES)
def test_tensors_of_several_sizes_are_gathered_by_all(tmp_path, device):
    ends_well(tmp_path, '''
        for first in (0, 1):   # rank 0 has no element, or one row
            out = [torch.zeros(i + first, 2) for i in everyone]
            dist.all_gather(out, torch.full((rank + first, 2), float(rank)))
            assert all((one == i).all() for i, one in enumerate(out)), out
        outs = [[torch.zeros(i + 1), torch.zeros(3 * i + 1)] for i in everyone]
        dist.all_gather_coalesced(outs, [torch.full((rank + 1,), 5.),
                                         torch.full((3 * rank + 1,), 7.)])
        assert all((one == 5).all() and (other == 7).all() for one, other in outs), outs
    ''', device=device)


@pytest.mark.parametrize('device', DEVICES)
def test_ranks_that_give_sizes_exchange_with_those_that_do_not(tmp_path, device):
    ends_well(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        sizes, out = [2] * size if rank else None, torch.zeros(2 * size)
        dist.all_to_all_single(out, torch.full((2 * size,), float(rank)), sizes, sizes)
        assert torch.equal(out, torch.arange(float(size)).repeat_interleave(2)), out
    ''', device=device)


@pytest.mark.parametrize('device', DEVICES)
def test_sparse_tensors_are_summed_up(tmp_path, device):
    ends_well(tmp_path, '''
        # Rank 1 has no element; the others have one each, and share the last.
        places = [[]] if rank == 1 else [[rank, size]]
        values = torch.zeros(0, 2) if rank == 1 else torch.tensor([[1.0, 2.0], [rank + 3.0, 5.0]])
        x = torch.sparse_coo_tensor(torch.tensor(places, dtype=torch.int64), values, (size + 1, 2))
        dist.all_reduce(x)
        assert x.is_sparse and x.device.type == device
        expected = torch.tensor([[1.0, 2.0]] * size + [[sum(everyone) - 1 + 3.0 * (size - 1), 5.0 * (size - 1)]])
        expected[1] = 0
        assert torch.equal(x.to_dense(), expected), x.to_dense()
        try:
            dist.all_reduce(x, dist.ReduceOp.MAX)
        except RuntimeError as error:
            assert 'summed up' in str(error), error
        else:
            raise AssertionError('a maximum of sparse tensors')
    ''', device=device)


def test_groups_work_with_pytorch_s_checks_of_the_level_detail(tmp_path, monkeypatch):
    monkeypatch.setenv('TORCH_DISTRIBUTED_DEBUG', 'DETAIL')
    ends_well(tmp_path, '''
        group = dist.new_group(everyone)
        out = [None] * size
        dist.all_gather_object(out, rank, group=group)
        assert out == list(everyone)
    ''')


@pytest.mark.parametrize('device', DEVICES)
def test_tensors_pass_between_two_ranks_by_tag(tmp_path, device):
    ends_well(tmp_path, '''
        right, left = (rank + 1) % size, (rank - 1) % size
        works = [dist.isend(torch.full((1000,), float(tag)), right, tag=tag) for tag in (1, 2)]
        for tag in (2, 1):
            x = torch.zeros(1000)
            dist.recv(x, left, tag=tag)
            assert (x == tag).all()
        for work in works:
            work.wait()
        x, y = torch.full((9,), float(rank)), torch.zeros(9)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, right), dist.P2POp(dist.irecv, y, left)]):
            work.wait()
        assert (y == left).all()
    ''', device=device)


@pytest.mark.parametrize('device', DEVICES[1:])
@pytest.mark.parametrize('provider', ['shm', 'tcp'])
def test_tensors_of_a_device_are_ready_when_the_callers_stream_is(tmp_path, provider, device):
    ends_well(tmp_path, '''
        work, heavy = torch.cuda.Stream(), torch.ones(4096, 4096)
        def late(value):
            """A tensor whose content is there long after the call, on the stream @work."""
            x = heavy
            for _ in range(30):
                x = (x @ heavy).clamp(0, 1)
            return x.mean() * value + torch.zeros(1 << 20)
        work.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(work):
            for _ in range(3):
                sent, received, summed = late(rank), torch.zeros(1 << 20), late(rank + 1)
                received += late(77)   # must be over before the receive writes
                works = [dist.isend(sent, (rank + 1) % size), dist.irecv(received, (rank - 1) % size)]
                future = dist.all_reduce(summed, async_op=True).get_future()
                for one in works:
                    one.wait()
                assert (received == (rank - 1) % size).all()
                future.wait()
                assert (summed == sum(everyone) + size).all()
    ''', provider=provider, device=device)


def test_groups_of_some_ranks_and_several_at_once(tmp_path):
    ends_well(tmp_path, '''
        first, last = dist.new_group([0, 1]), dist.new_group([1, 2])
        if rank < 2:
            x = torch.ones(5)
            dist.all_reduce(x, group=first)
            assert (x == 2).all()
        if rank:
            x = torch.full((5,), float(rank))
            dist.all_reduce(x, group=last)
            assert (x == 3).all()
        works = [dist.all_reduce(torch.ones(100), async_op=True) for _ in range(50)]
        for work in reversed(works):
            work.wait()
    ''')


def test_a_future_is_told_when_a_collective_has_ended(tmp_path):
    ends_well(tmp_path, '''
        x = torch.ones(100000)
        future = dist.all_reduce(x, async_op=True).get_future().then(lambda done: done.value()[0] / size)
        assert (future.wait() == 1).all()
        again = dist.all_reduce(x, async_op=True)
        again.wait()
        assert (again.get_future().value()[0] == size ** 2).all()
    ''')


def test_a_future_is_told_though_somebody_waits_for_its_work_first(tmp_path):
    ends_well(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        for _ in range(500):
            work = dist.all_reduce(torch.ones(3), async_op=True)
            future = work.get_future()
            work.wait()
            assert (future.wait()[0] == size).all()
    ''')


def test_what_hangs_on_a_future_may_wait_for_others(tmp_path):
    # Each in a group of its own: the collectives of one group must begin in one order at all ranks.
    ends_well(tmp_path, '''
        def after(group):
            def next_one(done):
                x = done.value()[0] / size
                return dist.all_reduce(x, group=group, async_op=True).get_future().wait()[0]
            first = dist.all_reduce(torch.ones(100000), group=group, async_op=True).get_future()
            return first.then(next_one).then(next_one)
        for future in [after(dist.new_group(everyone)) for _ in range(3)]:
            assert (future.wait() == size).all()
    ''')


def test_futures_are_told_though_the_system_has_once_no_thread_to_give(tmp_path):
    ends_well(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(40, exit=True)
        store, refused = dist.distributed_c10d._get_default_store(), []
        start = threading.Thread.start
        def start_but_once(thread):
            if thread.name == 'weft futures' and not refused:
                refused.append(thread)
                raise RuntimeError("can't start new thread")
            start(thread)
        threading.Thread.start = start_but_once
        if rank:
            store.wait(['hung'])
        futures = [dist.all_reduce(torch.ones(3), async_op=True).get_future() for _ in range(2)]
        if rank == 0:
            store.set('hung', '1')   # the reaper hears of the ends, for the others begin now
        for future in futures:
            assert (future.wait()[0] == size).all()
        assert rank or refused
    ''')


def test_a_future_is_told_of_results_that_do_not_fit(tmp_path):
    ends_well(tmp_path, '''
        work = dist.all_gather([torch.zeros(3)] * size, torch.ones(4), async_op=True)
        future = work.get_future()
        try:
            future.wait()
        except RuntimeError as told:
            assert 'shape' in str(told) or 'size' in str(told) or 'expand' in str(told), told
        else:
            assert False, 'it was not told'
        dist.all_reduce(torch.ones(3))
    ''')


@pytest.mark.parametrize('rank', [None, '0'])
def test_nodes_of_equal_ranks_or_process_ids_have_names_of_their_own(pair, monkeypatch, rank):
    from weft.torch import backend
    monkeypatch.setenv('FI_PROVIDER', 'tcp')
    monkeypatch.delenv('RANK', raising=False)
    if rank:
        monkeypatch.setenv('RANK', rank)
    nodes = []
    for _ in range(2):
        backend._open.clear()
        nodes.append(backend.node())
    peers = [pair.near.peer(node.address) for node in nodes]
    for peer in peers:
        peer.ping().result(LIMIT)
    names = [peer.name for peer in peers]
    for node in nodes:
        node.close()
    backend._open.clear()
    assert len(set(names)) == 2, names
    assert all(name.startswith('rank %s ' % (rank or os.getpid())) for name in names), names


def test_tensors_pass_between_two_ranks_in_any_shape(tmp_path):
    ends_well(tmp_path, '''
        if rank == 0:
            dist.send(torch.arange(6.), 1)
            dist.send(torch.tensor(5.), 1)
        elif rank == 1:
            x, y = torch.zeros(2, 3), torch.zeros(1)
            dist.recv(x, 0)
            dist.recv(y, 0)
            assert x[1, 2] == 5 and y[0] == 5
    ''')


def test_a_job_joins_again_and_so_do_its_forked_children(tmp_path):
    ends_well(tmp_path, '''
        for i in range(3):
            dist.barrier()
            dist.destroy_process_group()
            dist.init_process_group('weft')
            x = torch.ones(3)
            dist.all_reduce(x)
            assert (x == size).all()
        dist.barrier()
        dist.destroy_process_group()
        child = os.fork()
        if not child:
            dist.init_process_group('weft')
            dist.all_reduce(x)
            dist.barrier()
            store = dist.distributed_c10d._get_default_store()
            store.set('over %d' % rank, '1')
            store.wait(['over %d' % other for other in range(size)])   # for their barrier, too
            os._exit(0 if (x == size ** 2).all() else 1)
        assert os.waitpid(child, 0)[1] == 0
        dist.init_process_group('weft')
    ''')


def test_a_future_is_told_in_a_child_of_a_process_that_has_told_one(tmp_path):
    ends_well(tmp_path, '''
        import faulthandler
        for _ in range(20):
            dist.all_reduce(torch.ones(100000), async_op=True).get_future().wait()
        dist.barrier()
        dist.destroy_process_group()
        child = os.fork()
        if not child:
            faulthandler.dump_traceback_later(60, exit=True)
            dist.init_process_group('weft')
            for _ in range(20):
                dist.all_reduce(torch.ones(100000), async_op=True).get_future().wait()
            dist.barrier()
            store = dist.distributed_c10d._get_default_store()
            store.set('over %d' % rank, '1')
            store.wait(['over %d' % other for other in range(size)])   # for their barrier, too
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        dist.init_process_group('weft')
    ''')


@pytest.mark.parametrize('device', DEVICES)
def test_models_train_as_in_one_process(tmp_path, device):
    ends_well(tmp_path, '''
        from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
        def model():
            torch.manual_seed(0)
            return torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
        alone, shared = model(), torch.nn.parallel.DistributedDataParallel(model())
        x, y = torch.randn(60, 64), torch.randint(0, 10, (60,))
        for m, part in ((alone, slice(None)), (shared, slice(rank, None, size))):
            optimizer = torch.optim.SGD(m.parameters(), 0.1)
            for _ in range(10):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(m(x[part]), y[part]).backward()
                optimizer.step()
        for a, b in zip(alone.parameters(), shared.parameters()):
            assert torch.allclose(a, b, atol=1e-5)
        shared.register_comm_hook(None, default_hooks.bf16_compress_hook)
        shared(x).sum().backward()
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh, m = init_device_mesh(device, (size,)), model()
        for layer in (m[0], m[2], m):
            fully_shard(layer, mesh=mesh)
        optimizer = torch.optim.SGD(m.parameters(), 0.1)
        for _ in range(10):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(m(x[rank::size]), y[rank::size]).backward()
            optimizer.step()
        for a, b in zip(alone.parameters(), m.parameters()):
            assert torch.allclose(a, b.full_tensor(), atol=1e-5)
    ''', device=device)


def test_functional_collectives_and_checkpoints_work(tmp_path):
    ends_well(tmp_path, '''
        import torch.distributed._functional_collectives as functional
        import torch.distributed.checkpoint as checkpoint
        assert (functional.all_reduce(torch.ones(10), 'sum', dist.group.WORLD) + 0 == size).all()
        state, where = {'x': torch.full((3,), 7.0)}, os.path.join(os.path.dirname(sys.argv[0]), 'state')
        checkpoint.save(state, checkpoint_id=where)
        state['x'].zero_()
        checkpoint.load(state, checkpoint_id=where)
        assert (state['x'] == 7).all()
    ''')


# Failures.

# What a job does with x, a tensor of 1000 numbers, and with y, which is as long for each rank.
COLLECTIVES = {
    'all_reduce': 'dist.all_reduce(x)',
    'reduce': 'dist.reduce(x, 0)',
    'broadcast': 'dist.broadcast(x, 0)',
    'all_gather': 'dist.all_gather_into_tensor(y, x)',
    'reduce_scatter': 'dist.reduce_scatter_tensor(x, y)',
    'all_to_all': 'dist.all_to_all_single(y, y.clone())',
    'gather': 'dist.gather(x, list(y.view(size, -1)) if rank == 0 else None)',
    'scatter': 'dist.scatter(x, list(y.view(size, -1)) if rank == 0 else None)',
    'barrier': 'dist.barrier()',
    'send and recv': '''[work.wait() for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, (rank + 1) % size),
         dist.P2POp(dist.irecv, y[:1000], (rank - 1) % size)])]''',
}


@pytest.mark.parametrize('how, seconds', [('SIGKILL', 5), ('SIGSTOP', 15)])
@pytest.mark.parametrize('what', COLLECTIVES)
def test_survivors_hear_of_a_rank_that_is_gone_in_bounded_time(tmp_path, what, how, seconds):
    said = job(tmp_path, '''
        x, y = torch.ones(1000), torch.ones(1000 * size)
        ended = threading.Event()   # torchrun sends SIGTERM as soon as one process has died
        signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
        dist.barrier()
        if rank == 1:
            how = signal.%s
            if how == signal.SIGSTOP and not os.fork():
                time.sleep(20)   # this child ends the stopped process, which torchrun can't
                os.kill(os.getppid(), signal.SIGKILL)
                os._exit(0)
            os.kill(os.getpid(), how)
        begun = time.monotonic()
        try:
            while True:
                %s
        except dist.DistBackendError as error:
            os.write(1, b'rank %%d: after %%.1f s: %%s\\n' %% (
                rank, time.monotonic() - begun, str(error).encode()))
        ended.wait(30)
    ''' % (how, COLLECTIVES[what]), end='')
    heard = dict(re.findall(r'rank (\d): after ([\d.]+) s: weft: ', said))
    # Rank 0 waits for what rank 2 sends, who hears and sends no more, where pairs are by themselves.
    told = '2' if what == 'send and recv' else '02'
    assert all(float(heard.get(rank, 'inf')) < seconds for rank in told), said


# What ranks exchange by pairs, where one waits for each of the others.
EXCHANGES = {
    'all_to_all': 'dist.all_to_all(y, x)',
    'all_to_all_single': """dist.all_to_all_single(torch.zeros(6), torch.ones(6), [1, 2, 3],
                                                   [1, 2, 3])""",
    'all_reduce of sparse': 'dist.all_reduce(torch.eye(3).to_sparse())',
    'future': 'dist.all_to_all(y, x, async_op=True).get_future().wait()',
}


@pytest.mark.parametrize('what', EXCHANGES)
def test_an_exchange_with_a_rank_that_is_gone_waits_for_no_other(tmp_path, what):
    said = job(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        store = dist.distributed_c10d._get_default_store()
        dist.barrier()
        if rank == 2:
            os._exit(0)
        if rank == 1:
            store.wait(['over'])   # it is there, and late
        x, y = [torch.ones(1000) for _ in everyone], [torch.zeros(1000) for _ in everyone]
        try:
            %s
        except RuntimeError as error:
            os.write(1, b'rank %%d: %%s\\n' %% (rank, str(error).encode()))
        store.set('over', '1')
        os._exit(0)
    ''' % EXCHANGES[what], end='')
    assert len(re.findall(r'rank \d: .*weft: ', said)) == 2, said


@pytest.mark.parametrize('how', ['dist.group.WORLD.abort()', 'dist.destroy_process_group()'])
def test_a_group_that_is_given_up_ends_what_is_under_way(tmp_path, how):
    said = job(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(60, exit=True)
        store = dist.distributed_c10d._get_default_store()
        if rank:
            store.wait(['over'])
            os._exit(0)
        works = [dist.all_reduce(torch.ones(3), async_op=True), dist.irecv(torch.zeros(3), 1),
                 dist.isend(torch.ones(1 << 20), 1)]
        def wait(work):
            try:
                work.wait()
            except dist.DistBackendError as error:
                os.write(1, b'ended: %%s\\n' %% str(error).encode())
        threads = [threading.Thread(target=wait, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        %s
        for thread in threads:
            thread.join()
        store.set('over', '1')
        os._exit(0)
    ''' % how, end='')
    assert len(re.findall('ended: weft: ', said)) == 3, said


def test_a_rank_that_is_late_is_waited_for_by_every_collective(tmp_path):
    ends_well(tmp_path, ''.join('''
        x, y = torch.full((1000,), float(rank)), torch.full((1000 * size,), float(rank))
        time.sleep(0.5 * (rank == 1))
        %s
        late = torch.tensor([rank + 1.0])
        dist.all_reduce(late)
        assert late.item() == 6, late
    ''' % what for what in COLLECTIVES.values()))


def test_a_rank_may_be_later_than_tensors_are_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv('WEFT_STEP_TIMEOUT', '300ms')
    ends_well(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(40, exit=True)
        store, x, y = dist.distributed_c10d._get_default_store(), torch.ones(3), torch.zeros(3)
        dist.barrier()
        if rank == 1:
            store.wait(['begun 0', 'begun 2'])
            time.sleep(1)
        work = dist.all_reduce(x, async_op=True)
        if rank == 0:
            dist.isend(torch.full((3,), 7.0), 1).wait()
        store.set('begun %d' % rank, '1')
        work.wait()
        assert (x == size).all(), x
        if rank == 1:
            dist.irecv(y, 0).wait()
            assert (y == 7).all(), y
    ''')


def test_tensors_of_two_sizes_are_an_error_and_no_abort(tmp_path):
    said = job(tmp_path, '''
        try:
            dist.all_reduce(torch.ones(1000 + rank))
        except dist.DistBackendError as error:
            os.write(1, ('rank %d %s\\n' % (rank, error)).encode())
        time.sleep(1)
        os._exit(0)
    ''', end='')
    assert len(re.findall(r'rank \d weft: .*another size', said)) == 3, said


def test_an_exchange_that_is_refused_has_begun_nothing(tmp_path):
    ends_well(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(40, exit=True)
        store = dist.distributed_c10d._get_default_store()
        parts, outs = ([make(2, 2) for _ in everyone] for make in (torch.ones, torch.zeros))
        dist.barrier()
        if rank:
            work = dist.all_to_all(outs, parts, async_op=True)
            store.set('begun %d' % rank, '1')
            work.wait()
        else:
            try:
                dist.all_to_all(outs[:-1] + [torch.zeros(4, 2).T[:, ::2]], parts)
            except ValueError as error:
                assert 'contiguous' in str(error), error
            else:
                raise AssertionError('nothing was refused')
            store.wait(['begun %d' % other for other in everyone[1:]])
            time.sleep(0.5)   # for what might come
            assert not any(out.any() for out in outs), outs
            dist.all_to_all(outs, parts)
        assert all((out == 1).all() for out in outs), outs
    ''')


def test_ranks_exchange_also_after_one_was_refused_a_collective(tmp_path):
    ends_well(tmp_path, '''
        import faulthandler
        faulthandler.dump_traceback_later(40, exit=True)
        if rank == 0:
            try:
                dist.all_reduce(torch.ones(4, 4).T[1:])
            except ValueError:
                pass
            else:
                raise AssertionError('nothing was refused')
        parts, outs = ([make(2, 2) for _ in everyone] for make in (torch.ones, torch.zeros))
        dist.all_to_all(outs, parts)
        assert all((out == 1).all() for out in outs), outs
    ''')


def test_what_weft_does_not_do_is_said(tmp_path):
    ends_well(tmp_path, '''
        def refused(call, *words):
            try:
                call(*words)
            except (RuntimeError, ValueError) as error:
                return str(error)
            raise AssertionError('nothing was refused')
        assert 'contiguous' in refused(dist.all_reduce, torch.ones(4, 4).T[1:])
        assert 'not combined' in refused(dist.all_reduce, torch.ones(4), dist.ReduceOp.BAND)
    ''')
