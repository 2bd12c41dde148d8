# SPDX-License-Identifier: BSD-2-Clause
"""Clusters in which some tasks do not speak weft, or cannot be reached over it."""
import unittest

import cluster
import graphs


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


if __name__ == '__main__':
    unittest.main()
