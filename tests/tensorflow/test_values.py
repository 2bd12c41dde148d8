# SPDX-License-Identifier: BSD-2-Clause
"""Values with edges: rare types, odd sizes, strings of any bytes, composite tensors."""
# pylint: disable=import-outside-toplevel,import-error
import unittest

import cluster
import graphs

# Sizes on both sides of 16 KiB, from which on bodies come into memory of weft's pool.
SIZES = (1, 3, 63, 4095, 16383, 16384, 16385, 65537, (4 << 20) + 1)
RARE = ('float8_e5m2', 'float8_e4m3fn', 'int4', 'uint4', 'qint8', 'quint8', 'qint16', 'quint16',
        'qint32')


def identical(server, build):
    """Fetch pairs of tensors by @build(tf); how many differ in type, shape or any bit."""
    import numpy as np
    pairs = graphs.session(server, lambda tf, _: build(tf))
    return sum(np.asarray(a).dtype != np.asarray(b).dtype or
               np.asarray(a).shape != np.asarray(b).shape or
               np.asarray(a).tobytes() != np.asarray(b).tobytes() for a, b in pairs)


def bytes_of_sizes(server, sizes):
    """Tensors of so many bytes go to the worker; how many arrive changed."""
    def build(tf):
        pairs = []
        for size in sizes:
            with tf.device(graphs.PS):
                there = tf.cast(tf.range(size) % 251, tf.uint8)
            with tf.device(graphs.WORKER):
                here = tf.identity(there)
                again = tf.cast(tf.range(size) % 251, tf.uint8)
            pairs.append((here, again))
        return pairs

    return identical(server, build)


def rare_types(server, names):
    """Tensors of types that few programs use; the names of those that arrive changed."""
    def build(tf, _):
        import numpy as np
        fetches = {}
        for name in names:
            dtype = tf.as_dtype(name)
            with tf.device(graphs.PS):
                numbers = np.arange(2049) % 7
                there = tf.constant(numbers.astype(dtype.as_numpy_dtype), dtype=dtype)
            with tf.device(graphs.WORKER):
                here = tf.raw_ops.Identity(input=there)
                fetches[name] = tf.bitcast(here, tf.as_dtype('int%d' % (8 * dtype.size))) \
                    if dtype.is_quantized else \
                    tf.cast(here, tf.int8 if dtype.is_integer else tf.float32)
        return fetches

    came = graphs.session(server, build)
    return [name for name, got in came.items()
            if got.shape != (2049,) or [int(n) for n in got] != [n % 7 for n in range(2049)]]


def strange_shapes(server):
    """Tensors of many and of huge dimensions; their shapes on arrival."""
    def build(tf, _):
        shapes = []
        for shape in ((1,) * 20, (2,) * 8, (0,), (0, 1 << 20, 1 << 20), (1 << 31, 0)):
            with tf.device(graphs.PS):
                there = tf.zeros(shape, tf.int8)
            with tf.device(graphs.WORKER):
                shapes.append(tf.shape(tf.identity(there), out_type=tf.int64))
        return shapes

    return [[int(n) for n in shape] for shape in graphs.session(server, build)]


def strings(server):
    """Strings of any bytes and lengths go to the ps and back; how many differ."""
    def build(tf):
        pairs = []
        for text in ([], [b''], [b'\0', b'a\0b', b'\xff\xfe'], [b'x' * (3 << 20), b''],
                     [b'%d' % n for n in range(20000)]):
            with tf.device(graphs.WORKER):
                here = tf.constant(text, tf.string, shape=[len(text)])
            with tf.device(graphs.PS):
                there = tf.identity(here)
            with tf.device(graphs.WORKER):
                pairs.append((tf.size(there), tf.size(here)))
                pairs.append((tf.reduce_all(tf.equal(tf.identity(there), here)),
                              tf.constant(True)))
        return pairs

    return identical(server, build)


def composites(server):
    """A ragged and a sparse tensor go to the worker; what they hold there."""
    def build(tf, _):
        with tf.device(graphs.PS):
            ragged = tf.RaggedTensor.from_row_lengths(tf.range(10), tf.constant([3, 0, 7]))
            sparse = tf.sparse.from_dense(tf.reshape(tf.range(12), [3, 4]))
        with tf.device(graphs.WORKER):
            return [tf.reduce_sum(ragged, axis=1), tf.sparse.reduce_sum(sparse, axis=1)]

    return [[int(n) for n in row] for row in graphs.session(server, build)]


def ragged_variant(server):
    """A ragged tensor goes as one variant, inside which are more tensors."""
    def build(tf, _):
        with tf.device(graphs.PS):
            ragged = tf.RaggedTensor.from_row_lengths(tf.range(10), tf.constant([3, 0, 7]))
            packed = tf.raw_ops.RaggedTensorToVariant(
                rt_nested_splits=[ragged.row_splits], rt_dense_values=ragged.flat_values,
                batched_input=True)
        with tf.device(graphs.WORKER):
            splits, values = tf.raw_ops.RaggedTensorFromVariant(
                encoded_ragged=tf.identity(packed), input_ragged_rank=0, output_ragged_rank=1,
                Tvalues=tf.int32, Tsplits=tf.int64)
            return [splits[0], values]

    return [[int(n) for n in part] for part in graphs.session(server, build)]


def dead_of_every_kind(server):
    """The dead side of conditionals whose other side is a number, a string, a list and nothing."""
    def build(tf, _):
        fetches = []
        for take in (True, False):
            for value in (tf.fill([5000], 7), tf.constant(['a', 'b']), tf.zeros([0, 3]),
                          tf.constant(1.5)):
                with tf.device(graphs.PS):
                    false, true = tf.raw_ops.Switch(data=value, pred=tf.constant(take))
                with tf.device(graphs.WORKER):
                    merged = tf.raw_ops.Merge(inputs=[tf.identity(false), tf.identity(true)])
                fetches.append(merged.value_index)
        return fetches

    return [int(n) for n in graphs.session(server, build)]


class Values(cluster.TwoTasks):
    """What holds over every provider."""

    def tearDown(self):
        for name in self.tasks.tasks:
            counters = self.tasks.counters(name)
            self.assertEqual(counters.get('received_grpc', 0), 0, name)
            self.assertEqual(counters.get('sent_held', 0), 0, name)
            self.assertEqual(counters.get('sent_waiting', 0), 0, name)

    def test_bodies_of_odd_sizes_arrive_whole(self):
        self.assertEqual(self.tasks.call('worker:0', bytes_of_sizes, SIZES), 0)

    def test_rare_types_arrive_as_they_are(self):
        self.assertEqual(self.tasks.call('worker:0', rare_types, RARE), [])

    def test_many_dimensions_and_huge_empty_ones_arrive(self):
        self.assertEqual(self.tasks.call('worker:0', strange_shapes),
                         [[1] * 20, [2] * 8, [0], [0, 1 << 20, 1 << 20], [1 << 31, 0]])

    def test_strings_of_any_bytes_come_back(self):
        self.assertEqual(self.tasks.call('worker:0', strings), 0)

    def test_ragged_and_sparse_tensors_arrive(self):
        self.assertEqual(self.tasks.call('worker:0', composites), [[3, 0, 42], [6, 22, 38]])
        self.assertEqual(self.tasks.call('worker:0', ragged_variant),
                         [[0, 3, 3, 10], list(range(10))])

    def test_a_dead_edge_of_any_type_is_dead(self):
        self.assertEqual(self.tasks.call('worker:0', dead_of_every_kind), [1] * 4 + [0] * 4)


@cluster.full
class OverShm(Values, unittest.TestCase):
    """Tasks of one host."""

    provider = 'shm'


@cluster.full
class OverTcp(Values, unittest.TestCase):
    """Tasks of any hosts."""

    provider = 'tcp'


@cluster.full
class OverNet(Values, unittest.TestCase):
    """Tasks of any hosts, by libfabric's other provider of sockets."""

    provider = 'net'


if __name__ == '__main__':
    unittest.main()
