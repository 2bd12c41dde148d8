# SPDX-License-Identifier: BSD-2-Clause
"""Eager copies between a client and a worker."""
import unittest

import cluster
import eager

ELEMENTS = 100003
COUNT = 10


class Eager(unittest.TestCase):
    """What carries the copies."""

    def counters_after(self, send_rpc):
        """Copy, with TensorFlow's setting of how tensors are sent.  Counters of both tasks."""
        with cluster.Cluster({'worker': 1, 'client': 1}, serverless=('client',),
                             env={'TF_EAGER_REMOTE_USE_SEND_TENSOR_RPC': send_rpc}) as tasks:
            tasks.call('client:0', eager.connect)
            self.assertEqual(tasks.call('client:0', eager.there_and_back, ELEMENTS, COUNT), COUNT)
            self.assertEqual(tasks.call('client:0', eager.function_there, ELEMENTS),
                             2.0 * ELEMENTS)
            counters = [tasks.counters(name) for name in ('client:0', 'worker:0')]
            for task in counters:
                self.assertEqual(task.get('received_grpc', 0), 0)
            return counters

    def test_copies_to_the_client_come_over_weft(self):
        client, _ = self.counters_after('1')
        self.assertGreaterEqual(client.get('received_bytes', 0), COUNT * 4 * ELEMENTS)

    @cluster.full
    def test_copies_to_the_worker_go_over_weft_if_tensorflow_does_not_send_them_in_requests(self):
        _, worker = self.counters_after('0')
        self.assertGreaterEqual(worker.get('received_bytes', 0), COUNT * 4 * ELEMENTS)


if __name__ == '__main__':
    unittest.main()
