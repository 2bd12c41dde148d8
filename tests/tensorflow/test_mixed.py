# SPDX-License-Identifier: BSD-2-Clause
"""Clusters in which some tasks do not speak weft, or cannot be reached over it."""
# pylint: disable=import-outside-toplevel,import-error
import unittest

import cluster
import graphs

STEP_MS = 2000   # less than it takes to find out that nobody answers
GRPC_S = 60      # weft gives a peer up after 10 s; the rest is TensorFlow's, on a busy machine


def short_step(server, limit_ms):
    """Pull a tensor of the ps in a step of at most so long; the sum of its numbers."""
    import tensorflow as tf

    def build(_tf, _v1):
        with tf.device(graphs.PS):
            there = tf.fill([1000], 1.0)
        with tf.device(graphs.WORKER):
            return tf.reduce_sum(there)

    options = tf.compat.v1.RunOptions(timeout_in_ms=limit_ms)
    return float(graphs.session(server, build, options=options))


class Mixed(unittest.TestCase):
    """What goes on by gRPC."""

    def check_grpc_carried(self, tasks, line):
        """A variable is pulled and pushed by gRPC, and the worker's log says @line once."""
        for _ in range(2):
            self.assertEqual(tasks.call('worker:0', graphs.variable, 100003), 3.0 * 100003)
        counters = tasks.counters('worker:0')
        self.assertGreater(counters.get('received_grpc', 0), 0)
        self.assertEqual(counters.get('received_weft', 0), 0)
        self.assertEqual(tasks.log('worker:0').count(line), 1)

    def test_a_peer_without_the_plug_in_stays_on_grpc(self):
        with cluster.Cluster({'ps': 1, 'worker': 1}, protocols={'ps': 'grpc'}) as tasks:
            self.check_grpc_carried(tasks, '/job:ps/replica:0/task:0 does not speak weft')

    @cluster.full
    def test_a_peer_whose_settings_say_no_stays_on_grpc(self):
        with cluster.Cluster({'ps': 1, 'worker': 1},
                             task_env={'ps:0': {'TF_RDMA_ENABLED': 'false'}}) as tasks:
            self.assertIn('TF_RDMA_ENABLED says no', tasks.log('ps:0'))
            self.check_grpc_carried(tasks, '/job:ps/replica:0/task:0 does not speak weft')

    @cluster.full
    def test_a_peer_without_a_common_fabric_stays_on_grpc(self):
        with cluster.Cluster({'ps': 1, 'worker': 1},
                             task_env={'ps:0': {'FI_PROVIDER': 'shm'},
                                       'worker:0': {'FI_PROVIDER': 'tcp'}}) as tasks:
            self.check_grpc_carried(tasks, "can't be reached over weft and stays on gRPC")

    @cluster.full
    def test_a_peer_whose_port_nobody_serves_comes_to_grpc_though_every_step_is_short(self):
        nobody = '127.0.0.1:%d' % cluster.free_ports(1)[0]
        with cluster.Cluster({'ps': 1, 'worker': 1}, provider='tcp',
                             task_env={'ps:0': {'WEFT_ADVERTISE': nobody}}) as tasks:
            def goes():
                try:
                    return tasks.call('worker:0', short_step, STEP_MS) == 1000.0
                except cluster.Failed as late:
                    self.assertEqual(late.kind, 'DeadlineExceededError', late.text)
                    return False

            self.assertFalse(goes())
            cluster.until(goes, 'a step that ends in time', GRPC_S)
            self.check_grpc_carried(tasks, "can't be reached over weft and stays on gRPC")


if __name__ == '__main__':
    unittest.main()
