# SPDX-License-Identifier: BSD-2-Clause
"""Tensors between two tasks, over each provider."""
import unittest

import cluster
import graphs


class Transfers(cluster.TwoTasks):
    """What holds over every provider."""

    def setUp(self):
        self.before = self.both()

    def both(self):
        """The counters of both tasks."""
        return {name: self.tasks.counters(name) for name in self.tasks.tasks}

    def gained(self, name, counter):
        """What a counter of a task has gained in this test."""
        return self.tasks.counters(name).get(counter, 0) - self.before[name].get(counter, 0)

    def check_weft_carried(self, edges):
        """At least @edges edges have come to the worker over weft, none by gRPC, none staged."""
        self.assertGreaterEqual(self.gained('worker:0', 'received_weft'), edges)
        for name, counters in self.both().items():
            self.assertEqual(counters.get('received_grpc', 0), 0, name)
            for counter in counters:
                self.assertFalse(counter.endswith('_staged'), (name, counter))
                self.assertIn(counter.partition('_over_')[2], ('', self.provider), name)

    def test_every_type_and_shape_comes_back_as_it_went(self):
        wrong = self.tasks.call('worker:0', graphs.there_and_back, graphs.DTYPES, graphs.SHAPES)
        self.assertEqual(wrong, [])
        self.check_weft_carried(len(graphs.DTYPES) * len(graphs.SHAPES))
        self.assertGreater(self.gained('worker:0', 'received_over_' + self.provider), 0)
        self.assertGreater(self.gained('ps:0', 'received_over_' + self.provider), 0)

    def test_a_list_of_tensors_is_a_variant_and_arrives(self):
        self.assertEqual(self.tasks.call('worker:0', graphs.list_of_tensors), 6000.0)
        self.check_weft_carried(1)

    def test_a_dead_edge_arrives_as_dead(self):
        self.assertEqual(self.tasks.call('worker:0', graphs.dead_branch, True), 3000.0)
        self.assertEqual(self.tasks.call('worker:0', graphs.dead_branch, False), 2000.0)
        self.check_weft_carried(4)

    def test_two_hundred_edges_of_a_step_arrive_together(self):
        got, want = self.tasks.call('worker:0', graphs.many_at_once, 200)
        self.assertAlmostEqual(got, want, delta=want / 1e6)
        self.check_weft_carried(200)

    def test_a_variable_of_32_mib_is_pulled_and_pushed_without_a_copy(self):
        self.assertEqual(self.tasks.call('worker:0', graphs.variable, 8 << 20), 3.0 * (8 << 20))
        self.check_weft_carried(1)
        self.assertGreaterEqual(self.gained('worker:0', 'received_bytes'), 32 << 20)

    def test_a_sender_lets_go_of_what_it_has_sent(self):
        self.tasks.call('worker:0', graphs.variable, 1 << 20)
        for name in self.tasks.tasks:
            cluster.until(lambda name=name: not self.tasks.counters(name).get('sent_held'),
                          'the end of what %s sends' % name)

    def test_the_log_names_the_fabric_of_the_server_and_of_its_peer(self):
        self.tasks.call('worker:0', graphs.many_at_once, 1)
        log = self.tasks.log('worker:0')
        self.assertIn('offers its tensors at 127.0.0.1:', log)
        self.assertRegex(log, 'tensors of /job:ps/replica:0/task:0 at .* come over %s' %
                         self.provider)


class OverShm(Transfers, unittest.TestCase):
    """Tasks of one host."""

    provider = 'shm'


class OverTcp(Transfers, unittest.TestCase):
    """Tasks of any hosts."""

    provider = 'tcp'


if __name__ == '__main__':
    unittest.main()
