# SPDX-License-Identifier: BSD-2-Clause
"""Programs of TensorFlow 2: remote eager operations, functions, a coordinator; and two servers."""
# pylint: disable=import-outside-toplevel,import-error
import unittest

import cluster
import graphs

LOST_S = 60
KEPT = {}      # what a program keeps between calls, in a task


def spec_of(server, jobs):
    """The addresses of the tasks of @jobs."""
    import tensorflow as tf
    known = tf.train.ClusterSpec(server.server_def.cluster).as_dict()
    return tf.train.ClusterSpec({job: known[job] for job in jobs})


def eager(server):
    """Eager operations and functions on remote devices; what they return."""
    import tensorflow as tf
    tf.config.experimental_connect_to_cluster(spec_of(server, ('ps', 'worker')),
                                              protocol='grpc+weft')
    results = []
    with tf.device(graphs.PS):
        v = tf.Variable(tf.ones([1 << 16]))
        text = tf.constant(['a', 'bc'])
        resource = v.handle
    with tf.device('/job:worker/task:0'):
        results.append(float(tf.reduce_sum(v + 1.0)))
        results.append(int(tf.reduce_sum(tf.strings.length(text))))
        near = tf.fill([1 << 15], 3.0)
    with tf.device('/job:worker/task:1'):
        results.append(float(tf.reduce_sum(near)))

    @tf.function
    def step(x):
        with tf.device('/job:worker/task:1'):
            there = tf.reduce_sum(v * 2.0) + tf.reduce_sum(x)
        v.assign_add(tf.fill([1 << 16], 1.0))
        return there

    for _ in range(3):
        results.append(float(step(tf.ones([100000]))))
    with tf.device(graphs.PS):
        results.append(float(tf.raw_ops.ReadVariableOp(resource=resource, dtype=tf.float32)[0]))
    return results


def eager_failure(server):
    """An operation on a remote device fails, and the next one does not."""
    import tensorflow as tf
    tf.config.experimental_connect_to_cluster(spec_of(server, ('ps', 'worker')),
                                              protocol='grpc+weft')

    @tf.function
    def step(good):
        with tf.device(graphs.PS):
            with tf.control_dependencies([tf.debugging.Assert(good, ['ps says no'])]):
                there = tf.fill([5000], 1.0)
        with tf.device(graphs.WORKER):
            return tf.reduce_sum(there)

    results = []
    for good in (True, False, True):
        try:
            results.append(float(step(tf.constant(good))))
        except tf.errors.OpError as error:
            results.append('%s %s' % (type(error).__name__, 'ps says no' in str(error)))
    return results


def coordinate(server, steps):
    """Train by a ClusterCoordinator; the variable's sum."""
    import numpy as np
    import tensorflow as tf
    if 'coordinator' not in KEPT:
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            spec_of(server, ('ps', 'worker')), rpc_layer='grpc+weft')
        strategy = tf.distribute.ParameterServerStrategy(resolver)
        KEPT['coordinator'] = tf.distribute.coordinator.ClusterCoordinator(strategy)
        with strategy.scope():
            KEPT['v'] = tf.Variable(np.zeros((256, 256), np.float32))

        @tf.function
        def step():
            def replica():
                KEPT['v'].assign_add(KEPT['v'].read_value() * 0.0 + 1.0)
            strategy.run(replica)

        KEPT['step'] = step
    for _ in range(steps):
        KEPT['coordinator'].schedule(KEPT['step'])
    KEPT['coordinator'].join()
    return float(KEPT['v'].numpy().sum())


def coordinate_for_ever(server):
    """Train until that fails."""
    while True:
        coordinate(server, 20)


def two_servers(server):
    """Two more servers in this process; a sum that goes from one to the other."""
    import tensorflow as tf
    ports = cluster.free_ports(2)
    jobs = {'ps': ['127.0.0.1:%d' % ports[0]], 'worker': ['127.0.0.1:%d' % ports[1]]}
    pair = [tf.distribute.Server(jobs, job_name=job, task_index=0, protocol='grpc+weft')
            for job in jobs]
    KEPT['servers'] = pair
    return [float(graphs.session(pair[1], lambda tf, v1: sum_over(tf))),
            float(graphs.session(pair[0], lambda tf, v1: sum_over(tf)))]


def sum_over(tf):
    """A tensor of the ps, summed on the worker."""
    with tf.device(graphs.PS):
        there = tf.fill([100000], 2.0)
    with tf.device(graphs.WORKER):
        return tf.reduce_sum(there)


@cluster.full
class Programs(unittest.TestCase):
    """What programs of TensorFlow 2 do."""

    provider = 'shm'
    jobs = {'ps': 1, 'worker': 2, 'client': 1}

    def setUp(self):
        self.tasks = cluster.Cluster(self.jobs, provider=self.provider)
        self.tasks.__enter__()
        self.addCleanup(self.tasks.__exit__)

    def check_weft_carried(self, name):
        """Tensors have come to the task @name over weft, and none by gRPC."""
        counters = self.tasks.counters(name)
        self.assertGreater(counters.get('received_weft', 0), 0, name)
        self.assertEqual(counters.get('received_grpc', 0), 0, name)

    def test_eager_operations_and_functions_use_remote_devices(self):
        got = self.tasks.call('client:0', eager)
        both = 2.0 * (1 << 16)
        self.assertEqual(got, [both, 3, 3.0 * (1 << 15), both + 100000, 2 * both + 100000,
                               3 * both + 100000, 4.0])
        for name in ('worker:0', 'worker:1'):
            self.check_weft_carried(name)
        again = self.tasks.call('client:0', eager_failure)
        self.assertEqual(again, [5000.0, 'InvalidArgumentError True', 5000.0])

    def test_a_coordinator_outlives_a_worker_and_learns_that_its_ps_has_died(self):
        self.assertEqual(self.tasks.call('client:0', coordinate, 40), 40.0 * 256 * 256)
        for name in ('worker:0', 'worker:1'):
            self.check_weft_carried(name)
        self.tasks.restart('worker:1')
        self.assertGreaterEqual(self.tasks.call('client:0', coordinate, 40), 80.0 * 256 * 256)

        call = self.tasks.begin('client:0', coordinate_for_ever)
        before = self.tasks.counters('worker:0')['received_weft']
        cluster.until(lambda: self.tasks.counters('worker:0')['received_weft'] > before + 20,
                      'a step')
        self.tasks.kill('ps:0')
        with self.assertRaises(cluster.Failed) as caught:
            call.wait(LOST_S)
        self.assertIn(caught.exception.kind, ('UnavailableError', 'AbortedError',
                                              'PSUnavailableError'), caught.exception.text)
        self.assertIn('GRPC error information from remote target /job:ps', caught.exception.text)

    def test_two_servers_of_a_process_exchange_tensors(self):
        self.assertEqual(self.tasks.call('client:0', two_servers), [200000.0, 200000.0])
        if self.provider != 'shm':
            self.check_weft_carried('client:0')
            return
        # shm serves between processes only.
        self.assertEqual(self.tasks.counters('client:0').get('received_weft', 0), 0)
        self.assertIn('stays on gRPC', self.tasks.log('client:0'))


class ProgramsOverTcp(Programs):
    """Tasks of any hosts."""

    provider = 'tcp'


if __name__ == '__main__':
    unittest.main()
