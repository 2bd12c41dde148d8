# SPDX-License-Identifier: BSD-2-Clause
"""The backend "weft" of torch.distributed: point to point by tensors of weft, collectives by its
groups.

Collectives of a group are numbered as they are begun, the same in all its processes, as PyTorch asks of
a program anyway.  Where PyTorch's tensors do not lie as a collective of weft has them, one after the
other on the host, they are copied from or to such memory.  Tensors that pass between two ranks do so
from and to the memory of CUDA devices itself.
"""
import contextlib
import os
import threading

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Backend as C10dBackend
from torch._C._distributed_c10d import ReduceOp

import weft
from . import sparse
from .host import Host, flat, row
from .work import ReceiveWork, Reaper, Work, error_of

REDUCTIONS = ((ReduceOp.SUM, 'sum'), (ReduceOp.AVG, 'average'), (ReduceOp.PRODUCT, 'product'),
              (ReduceOp.MIN, 'min'), (ReduceOp.MAX, 'max'), (ReduceOp.BAND, 'band'),
              (ReduceOp.BOR, 'bor'), (ReduceOp.BXOR, 'bxor'))

# PyTorch 2.11 has no Backend that is written in Python, but whole process groups.
Base = C10dBackend if hasattr(C10dBackend, 'all_gather_single') else dist.ProcessGroup

_lock = threading.Lock()
_open = []   # the process's node and its reaper, once a group needs them
_kept = set()   # backends that only C++ has otherwise


def _forget():
    """In a child: the node is its parent's, whose threads may have had the lock."""
    global _lock
    _lock = threading.Lock()
    _open.clear()


os.register_at_fork(after_in_child=_forget)


def node():
    """The node of this process, which all groups share."""
    with _lock:
        if not _open or _open[0].closed:
            # Peers are told apart by their names.  RANK may be a host's, which its processes share,
            # and ids of processes may be equal in several containers.
            name = 'rank %s (%s)' % (os.environ.get('RANK', os.getpid()), os.urandom(4).hex())
            # PyTorch's timeout alone says how late a rank may be: what others have sent it waits
            # until then, and shutdown() drops what is left.
            fresh = weft.Node(name=name, settings={'WEFT_STEP_TIMEOUT': '0'})
            _open[:] = [fresh, Reaper(fresh)]
        return _open[0]


def reduction_of(op):
    """weft's word for a ReduceOp."""
    for known, word in REDUCTIONS:
        if op == known:
            return word
    raise RuntimeError('weft: there is no reduction %s' % op)


def stream_of(tensor):
    """The stream that a tensor's content is written and read on, as DLPack counts streams."""
    return torch.cuda.current_stream(tensor.device).cuda_stream or 1 if tensor.is_cuda else None


def on_device_of(tensor):
    """A context in which a tensor's device is the current one: PyTorch lends no memory of others."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else contextlib.nullcontext()


def one_of(tensors):
    """The only tensor of a list."""
    if len(tensors) != 1:
        raise ValueError('weft: one tensor is expected, and not %d' % len(tensors))
    return tensors[0]


class WeftBackend(Base):
    """One group of torch.distributed in one process."""
    def __init__(self, store, rank, size, timeout, name=''):
        super().__init__(rank, size)
        self._name = name
        self._me, self._size = rank, size
        self._timeout = timeout.total_seconds()
        self._options = C10dBackend.Options('weft', timeout=timeout)
        self._lock = threading.Lock()   # collectives begin one after the other
        self._sequence = 0
        self._exchanges = 0   # that have begun: a collective that is refused counts at no other rank
        self._node = node()
        self._meet(store)

    def _meet(self, store):
        """Learn all addresses, and the numbers of the group, from rank 0."""
        # A store may have what an earlier group of its name has left.
        here = 'weft/%d' % store.add('weft/times/%d' % self._me, 1)
        if not self._me:
            store.set(here + '/numbers', '%d %d' % tuple(int.from_bytes(os.urandom(7), 'little') | 1
                                                         for _ in range(2)))
        store.set('%s/%d' % (here, self._me), self._node.address)
        addresses = [store.get('%s/%d' % (here, rank)).decode() for rank in range(self._size)]
        # Collectives have a step, the group's number, and what passes between two ranks another.
        self._number, self._step = map(int, store.get(here + '/numbers').decode().split())
        self._group = self._node.group(self._me, addresses, self._number)
        self._peers = [None if rank == self._me else self._group.peer(rank)
                       for rank in range(self._size)]

    # What PyTorch asks of a backend.

    @property
    def options(self):
        return self._options

    @property
    def supports_splitting(self):
        return False

    @property
    def supports_coalescing(self):
        return False

    @property
    def _supports_time_estimate(self):
        return False

    def getBackendName(self):
        return 'weft'

    # Of a whole process group.

    @property
    def group_name(self):
        return self._name

    def getGroupName(self):
        return self._name

    def _set_sequence_number_for_group(self):
        pass

    def getSequenceNumberForGroup(self):
        return self._sequence

    _get_sequence_number_for_group = getSequenceNumberForGroup

    def set_timeout(self, timeout):
        self._timeout = timeout.total_seconds()

    _set_default_timeout = set_timeout

    def keep(self):
        """Live until shutdown(), whoever else needs the object."""
        _kept.add(self)

    def shutdown(self):
        """End what is under way, and let go of the group."""
        for step in (self._number, self._step):
            with contextlib.suppress(weft.Error):   # the node has closed, or is the parent's
                self._node.end_step(step)
        self._group.close()
        _kept.discard(self)

    abort = shutdown

    # Point to point.

    def _send(self, tensor, rank, key):
        with on_device_of(tensor):
            return self._peers[rank].send(self._step, key, row(tensor), timeout=self._timeout,
                                          stream=stream_of(tensor))

    def _recv(self, tensor, rank, key):
        peer = None if rank is None else self._peers[rank]
        with on_device_of(tensor):
            return self._node.recv(self._step, key, into=row(tensor), peer=peer,
                                   timeout=self._timeout, stream=stream_of(tensor))

    def _to_self(self, rank):
        if rank == self._me:
            raise ValueError('weft: rank %d sends to itself' % rank)

    def send(self, tensors, rank, tag=0):
        self._to_self(rank)
        return self._begun(tensors, lambda: [self._send(one_of(tensors), rank, 'tag %d' % tag)])

    def recv(self, tensors, rank, tag=0):
        self._to_self(rank)
        return self._begun(tensors, lambda: [self._recv(one_of(tensors), rank, 'tag %d' % tag)])

    def recv_anysource(self, tensors, tag=0):
        return self._begun(tensors, lambda: [self._recv(one_of(tensors), None, 'tag %d' % tag)],
                           work=lambda *begun: ReceiveWork(*begun, self._rank_of))

    def _rank_of(self, peer):
        """The rank of a peer that has been met, whose name is its own by then."""
        return next((rank for rank, other in enumerate(self._peers)
                     if other and other.name == peer.name), -1)

    def _abort(self, failure):
        """End all that passes between two ranks of the group, here and at the others."""
        with contextlib.suppress(weft.Error):   # the node has closed, and its operations have ended
            self._node.abort_step(self._step, failure.status, failure.args[0])

    def _begun(self, tensors, begin, after=None, work=Work):
        """The work of the operations that @begin begins."""
        try:
            return work(list(tensors), begin(), after)
        except weft.Error as failure:
            raise error_of(failure) from None

    # Collectives.

    def _collective(self, tensors, begin, after=None, work=Work):
        """The work of a collective, or of several that begin one after the other.

        begin: called with a Host, which has memory of the host for every tensor.
        """
        host = Host(tensors)
        with self._lock:
            self._sequence += 1
            return self._begun(tensors, lambda: begin(host), host.then(after), work)

    def _by_pairs(self, tensors, begin, after=None):
        """The work of sends and receives of all ranks, which fail together as a collective does."""
        def begin_all(host):
            self._exchanges += 1
            try:
                return begin(host)
            except weft.Error as failure:   # what has begun ends with the rest
                self._abort(failure)
                raise
        return self._collective(tensors, begin_all, after,
                                lambda *begun: Work(*begun, self._abort))

    def allreduce(self, tensors, options):
        word = reduction_of(options.reduceOp)
        if any(tensor.is_sparse for tensor in tensors):
            return self._allreduce_sparse(one_of(tensors), word)
        return self._collective(tensors, lambda host: [
            self._group.all_reduce(host.both(tensor), op=word, timeout=self._timeout)
            for tensor in tensors])

    allreduce_coalesced = allreduce

    def _allreduce_sparse(self, tensor, word):
        """All ranks' elements come to each, which adds them up: as gloo does."""
        if word != 'sum':
            raise RuntimeError('weft: sparse tensors are summed up, and not combined by %s' % word)
        own, came = sparse.parts_of(tensor), []

        def begin(host):
            del host
            keys = ['sparse %d, %s' % (self._exchanges, what) for what in ('places', 'values')]
            others = [rank for rank in range(self._size) if rank != self._me]
            came[:] = [[self._node.recv(self._step, key, peer=self._peers[rank],
                                        timeout=self._timeout) for key in keys] for rank in others]
            return [one for pair in came for one in pair] + [
                self._send(part, rank, key) for rank in others for part, key in zip(own, keys)]

        def add():
            sparse.add(tensor, [own] + [[torch.from_dlpack(part.result(0)) for part in pair]
                                        for pair in came])
        return self._by_pairs([tensor], begin, add)

    def reduce(self, tensors, options):
        word, root = reduction_of(options.reduceOp), options.rootRank == self._me
        return self._collective(tensors, lambda host: [
            self._group.reduce(options.rootRank, (host.both if root else host.read)(tensor), op=word,
                               timeout=self._timeout) for tensor in tensors])

    def broadcast(self, tensors, options):
        root = options.rootRank == self._me
        return self._collective(tensors, lambda host: [
            self._group.broadcast(options.rootRank, (host.read if root else host.written)(tensor),
                                  timeout=self._timeout) for tensor in tensors])

    def barrier(self, opts):
        del opts
        return self._collective([], lambda host: [self._group.barrier(timeout=self._timeout)])

    def all_gather_single(self, out, tensor, options):
        return self.all_gather_single_coalesced([out], [tensor], options)

    def all_gather_single_coalesced(self, outs, tensors, options):
        del options
        return self._collective(outs, lambda host: [
            self._group.all_gather(host.read(tensor), host.written(out), timeout=self._timeout)
            for out, tensor in zip(outs, tensors)])

    def allgather(self, outs, tensors, options):
        del options
        parts = [part for out in outs for part in out]
        if any(len({part.numel() for part in out}) > 1 for out in outs):
            return self._exchange(parts, [(out, [tensor.contiguous()] * self._size)
                                          for out, tensor in zip(outs, tensors)])
        wholes = [torch.empty((self._size, *tensor.shape), dtype=tensor.dtype, device='cpu')
                  for tensor in tensors]

        def spread():
            for out, whole in zip(outs, wholes):
                for rank, part in enumerate(out):
                    part.copy_(whole[rank].view(part.shape))
        return self._collective(parts, lambda host: [
            self._group.all_gather(host.read(tensor.contiguous()), whole, timeout=self._timeout)
            for tensor, whole in zip(tensors, wholes)], spread)

    def allgather_coalesced(self, outs, tensors, options):
        return self.allgather([[out[i] for out in outs] for i in range(len(tensors))], tensors, options)

    def gather(self, outs, tensors, options):
        tensor, root = one_of(tensors), options.rootRank == self._me
        whole = torch.empty((self._size, *tensor.shape), dtype=tensor.dtype,
                            device='cpu') if root else None

        def spread():
            for rank, part in enumerate(outs[0]):
                part.copy_(whole[rank])
        return self._collective(outs[0] if root else tensors, lambda host: [
            self._group.gather(options.rootRank, host.read(tensor), whole, timeout=self._timeout)],
            spread if root else None)

    def scatter(self, outs, tensors, options):
        out, root = one_of(outs), options.rootRank == self._me
        whole = torch.stack([flat(part) for part in tensors[0]]) if root else None
        return self._collective(outs, lambda host: [
            self._group.scatter(options.rootRank, host.read(whole) if root else None,
                                host.written(out), timeout=self._timeout)])

    def reduce_scatter_single(self, out, tensor, options):
        return self.reduce_scatter_single_coalesced([out], [tensor], options)

    def reduce_scatter_single_coalesced(self, outs, tensors, options):
        word = reduction_of(options.reduceOp)
        return self._collective(outs, lambda host: [
            self._group.reduce_scatter(host.read(tensor), host.written(out), op=word,
                                       timeout=self._timeout)
            for out, tensor in zip(outs, tensors)])

    def reduce_scatter(self, outs, tensors, options):
        return self.reduce_scatter_single_coalesced(
            outs, [torch.stack([part.detach() for part in parts]) for parts in tensors], options)

    def alltoall(self, outs, tensors, options):
        del options
        return self._exchange(outs, [(outs, tensors)])

    def all_to_all_single(self, out, tensor, out_sizes, sizes, options):
        del options

        def parts(whole, lengths):
            return whole.split(lengths or [len(whole) // self._size] * self._size)
        # Ranks that give no sizes meet those that do, as each rank chooses for itself.
        return self._exchange([out], [(parts(flat(out), out_sizes), parts(flat(tensor), sizes))])

    def _exchange(self, tensors, exchanges):
        """Parts of any lengths, each pair of ranks by itself.

        exchanges: what comes and what goes, both by rank, of each.
        """
        everyone = range(self._size)
        others = [(self._me + i) % self._size for i in range(1, self._size)]
        # A tensor that is no row is refused before anything has begun: the call may be made again.
        rows = [([row(outs[rank]) for rank in everyone], [row(parts[rank]) for rank in everyone])
                for outs, parts in exchanges]

        def begin_one(outs, parts, key):
            outs[self._me].copy_(parts[self._me])
            return [self._recv(outs[rank], rank, key) for rank in others if outs[rank].numel()] + \
                [self._send(parts[rank], rank, key) for rank in others if parts[rank].numel()]

        def begin(host):
            del host   # pairs of ranks take devices' memory as it is
            begun = []
            for number, (outs, parts) in enumerate(rows):
                begun += begin_one(outs, parts, 'exchange %d, %d' % (self._exchanges, number))
            return begun
        return self._by_pairs(tensors, begin)

    # Older names of the same.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single
