# SPDX-License-Identifier: BSD-2-Clause
"""Tensors of a device whose memory the host can't read, as a GPU's: gpu_like.c is such a device."""
# pylint: disable=import-outside-toplevel,import-error
import importlib.util
import os
import shutil
import subprocess
import unittest

import cluster
import collectives
import graphs

NUMBERS = [dtype for dtype in graphs.DTYPES if dtype != 'string']
DEVICE = '/device:GPU_LIKE:0'
HOST = '/device:CPU:0'
ROOT = 7.0


def round_trip(server, dtypes, shapes):
    """Send tensors from host to device, device to device, and device to host; what changed."""
    import numpy as np
    sent = {(dtype, tuple(shape)): graphs.values(dtype, tuple(shape))
            for dtype in dtypes for shape in shapes}

    def build(tf, _):
        fetches = {}
        for (dtype, shape), array in sent.items():
            with tf.device(graphs.WORKER + HOST):
                tensor = tf.constant(array, dtype=dtype)
            for place in (graphs.PS + DEVICE, graphs.WORKER + DEVICE, graphs.PS + HOST,
                          graphs.WORKER + HOST):
                with tf.device(place):
                    tensor = tf.identity(tensor)
            fetches['%s %s' % (dtype, shape)] = tensor
        return fetches

    came = graphs.session(server, build)
    return [name for (dtype, shape), array in sent.items()
            for name in ['%s %s' % (dtype, shape)]
            if came[name].shape != array.shape or not np.array_equal(came[name], array)]


def dead_on_device(server, take):
    """One of two edges to a device is dead; the sum tells which."""
    def build(tf, _):
        with tf.device(graphs.PS):
            false, true = tf.raw_ops.Switch(data=tf.fill([1000], 1.0), pred=tf.constant(take))
            two, three = false * 2.0, true * 3.0
        with tf.device(graphs.WORKER + DEVICE):
            merged = tf.raw_ops.Merge(inputs=[tf.identity(two), tf.identity(three)]).output
        with tf.device(graphs.WORKER + HOST):
            return tf.reduce_sum(merged)

    return float(graphs.session(server, build))


def list_through_devices(server):
    """A variant, which is a list of tensors, goes to a device, to another, and to the host."""
    def build(tf, _):
        with tf.device(graphs.WORKER + HOST):
            rows = tf.fill([4, 1000], 1.5)
            there = tf.raw_ops.TensorListFromTensor(tensor=rows, element_shape=[1000])
        for place in (graphs.PS + DEVICE, graphs.WORKER + DEVICE, graphs.PS + HOST):
            with tf.device(place):
                there = tf.identity(there)
        with tf.device(graphs.WORKER + HOST):
            return tf.reduce_sum(tf.raw_ops.TensorListStack(
                input_handle=there, element_shape=[1000], element_dtype=tf.float32,
                num_elements=4))

    return float(graphs.session(server, build))


def broadcast(_server, elements):
    """The first worker's tensor goes to the device of the other: what both have then."""
    import tensorflow as tf
    strategy = collectives.KEPT['strategy']
    rank = strategy.cluster_resolver.task_id
    words = {'group_size': strategy.cluster_resolver.cluster_spec().num_tasks('worker'),
             'group_key': 77, 'instance_key': 1, 'communication_hint': 'ring',
             'timeout_seconds': 0.0}
    with tf.device('/job:worker/task:%d' % rank + DEVICE):
        if rank:
            got = tf.raw_ops.CollectiveBcastRecvV2(shape=[elements], T=tf.float32, **words)
        else:
            got = tf.raw_ops.CollectiveBcastSendV2(input=tf.identity(tf.fill([elements], ROOT)),
                                                   **words)
    return [float(tf.reduce_min(got.cpu())), float(tf.reduce_max(got.cpu()))]


def build_device(folder):
    """Compile gpu_like.c.  The plug-in's path, or None and what is missing."""
    if not shutil.which('cc'):
        return None, 'there is no C compiler'
    # TensorFlow is found, and not imported.
    package = importlib.util.find_spec('tensorflow').submodule_search_locations[0]
    made = os.path.join(folder, 'libgpu_like.so')
    subprocess.run(['cc', '-shared', '-fPIC', '-fvisibility=hidden', '-Wall', '-Wextra', '-O1',
                    '-isystem', os.path.join(package, 'include'),
                    os.path.join(cluster.HERE, 'gpu_like.c'), '-o', made, '-L' + package,
                    '-l:libtensorflow_framework.so.2'], check=True)
    return made, ''


class Device:
    """What holds over every provider."""

    provider = None

    @classmethod
    def setUpClass(cls):
        cls.env = {'TF_PLUGGABLE_DEVICE_LIBRARY_PATH': cluster.made(cls, build_device)}

    def two_tasks(self, **options):
        """A parameter server and a worker with such a device each."""
        tasks = cluster.Cluster({'ps': 1, 'worker': 1}, provider=self.provider, env=self.env,
                                **options)
        tasks.__enter__()
        self.addCleanup(tasks.__exit__)
        return tasks

    def check_weft_carried(self, tasks, name):
        """Tensors have come to the device of @name over weft, and none by gRPC."""
        counters = tasks.counters(name)
        self.assertGreater(counters.get('received_copied', 0), 0, name)
        self.assertEqual(counters.get('received_grpc', 0), 0, name)
        self.assertEqual(counters.get('sent_held', 0), 0, name)

    def test_tensors_go_to_and_from_devices_over_weft(self):
        tasks = self.two_tasks()
        self.assertEqual(tasks.call('worker:0', round_trip, NUMBERS, graphs.SHAPES), [])
        self.assertEqual(tasks.call('worker:0', dead_on_device, True), 3000.0)
        self.assertEqual(tasks.call('worker:0', dead_on_device, False), 2000.0)
        self.assertEqual(tasks.call('worker:0', list_through_devices), 6000.0)
        for name in tasks.tasks:
            self.check_weft_carried(tasks, name)
            self.assertRegex(tasks.log(name), 'weft: tensors of .*/device:GPU_LIKE:0 go by way of')

    @cluster.full
    def test_a_device_is_served_by_grpc_where_the_other_task_has_nothing_else(self):
        tasks = self.two_tasks(protocols={'ps': 'grpc'})
        self.assertEqual(tasks.call('worker:0', round_trip, ('float32',), graphs.SHAPES), [])
        counters = tasks.counters('worker:0')
        self.assertGreater(counters['received_grpc'], 0)
        self.assertEqual(counters.get('received_weft', 0), 0)

    @cluster.full
    def test_a_buffer_of_a_collective_goes_from_device_to_device_over_weft(self):
        tasks = cluster.Cluster({'worker': 2}, provider=self.provider, env=self.env,
                                serverless=('worker',))
        tasks.__enter__()
        self.addCleanup(tasks.__exit__)
        for call in [tasks.begin(name, collectives.join) for name in tasks.tasks]:
            call.wait()
        calls = [tasks.begin(name, broadcast, 100003) for name in tasks.tasks]
        self.assertEqual([call.wait() for call in calls], [[ROOT, ROOT]] * 2)
        self.assertGreater(tasks.counters('worker:1').get('received_copied', 0), 0)
        self.assertEqual(tasks.counters('worker:1').get('buffers_grpc', 0), 0)


class OverTcp(Device, unittest.TestCase):
    """Tasks of any hosts."""

    provider = 'tcp'


@cluster.full
class OverShm(Device, unittest.TestCase):
    """Tasks of one host."""

    provider = 'shm'


if __name__ == '__main__':
    unittest.main()
