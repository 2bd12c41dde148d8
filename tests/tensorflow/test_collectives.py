# SPDX-License-Identifier: BSD-2-Clause
"""Collectives of MultiWorkerMirroredStrategy between workers."""
import unittest

import cluster
import collectives

JOIN_S = 120   # the first worker waits for the last, whose TensorFlow starts beside others
LONG = 100 << 20   # elements that take half a second
LATE_S = 6     # a group of two, which comes together in less, has as long for a broadcast
LOST_S = 30    # weft takes 3 s to miss a peer; the rest is TensorFlow's


class Group(cluster.Cluster):
    """Workers that are one group."""

    def __init__(self, count, **options):
        super().__init__({'worker': count}, serverless=('worker',), **options)

    def __enter__(self):
        super().__enter__()
        self.all(collectives.join, seconds=JOIN_S)
        return self

    def all(self, function, *words, seconds=cluster.CALL_S):
        """Run a function inside all workers at once; their results."""
        calls = [self.begin(name, function, *words) for name in self.tasks]
        return [call.wait(seconds) for call in calls]


class Collectives(unittest.TestCase):
    """Values, and what carries them."""

    def check(self, group):
        """All kinds of collectives give what they should."""
        count = len(group.tasks)
        self.assertEqual(group.all(collectives.sums, collectives.DTYPES, collectives.SIZES),
                         [[]] * count)
        self.assertEqual(group.all(collectives.broadcast, 5000), [[5.0, 5.0]] * count)
        self.assertEqual(group.all(collectives.gather, 1000), [list(range(count))] * count)

    def check_weft_carries_all(self, count, provider):
        """The same, over @provider alone and without a copy of our own."""
        with Group(count, provider=provider) as group:
            self.check(group)
            for name in group.tasks:
                counters = group.counters(name)
                self.assertGreater(counters.get('buffers_weft', 0), 0, name)
                self.assertEqual(counters.get('buffers_grpc', 0), 0, name)
                for counter in counters:
                    self.assertFalse(counter.endswith('_staged'), (name, counter))
                    self.assertIn(counter.partition('_over_')[2], ('', provider), name)
                cluster.until(lambda name=name: not group.counters(name).get('sent_held'),
                              'the end of what was sent')

    @cluster.full
    def test_collectives_of_two_workers_go_over_shm_alone(self):
        self.check_weft_carries_all(2, 'shm')

    @cluster.full
    def test_collectives_of_three_workers_go_over_shm_alone(self):
        self.check_weft_carries_all(3, 'shm')

    @cluster.full
    def test_collectives_of_two_workers_go_over_tcp_alone(self):
        self.check_weft_carries_all(2, 'tcp')

    def test_collectives_of_three_workers_go_over_tcp_alone(self):
        self.check_weft_carries_all(3, 'tcp')

    @cluster.full
    def test_a_strategy_that_is_made_again_uses_weft_as_well(self):
        with Group(2, provider='tcp') as group:
            group.all(collectives.sums, ('float32',), (1000,))
            group.all(collectives.join_again, seconds=JOIN_S)
            before = {name: group.counters(name).get('buffers_weft', 0) for name in group.tasks}
            self.check(group)
            for name in group.tasks:
                self.assertGreater(group.counters(name).get('buffers_weft', 0), before[name], name)

    @cluster.full
    def test_a_worker_without_the_plug_in_gets_and_gives_its_buffers_by_grpc(self):
        with Group(3, protocols={'worker:2': 'grpc'}) as group:
            self.check(group)
            counters = [group.counters(name) for name in ('worker:0', 'worker:1')]
            for carrier in ('buffers_weft', 'buffers_grpc'):
                self.assertGreater(sum(c.get(carrier, 0) for c in counters), 0, carrier)
            logs = group.log('worker:0') + group.log('worker:1')
            self.assertIn('/job:worker/replica:0/task:2 does not speak weft', logs)

    def time_out(self, group, instance):
        """Freeze worker:0 while its buffer goes to worker:1, until that is out of time.  The name of
        worker:1's error; '': the buffer was there before."""
        group.begin('worker:0', collectives.send_ones, LONG, instance)
        receives = group.begin('worker:1', collectives.receive_too_late, LONG, instance, LATE_S,
                               group.pid('worker:0'))
        cluster.until(lambda: group.counters('worker:0').get('sent_held'), 'the buffer')
        group.freeze('worker:0')
        kind = receives.wait()
        group.thaw('worker:0')
        cluster.until(lambda: not group.counters('worker:0').get('sent_held'),
                      'the end of the buffer')
        return kind

    @cluster.full
    def test_a_buffer_that_comes_after_its_collective_is_out_of_time_overwrites_nothing(self):
        # A frozen worker is not taken for dead before the collective ends.
        with Group(2, provider='tcp', env={'WEFT_LOST': '60s'}) as group:
            kinds = (self.time_out(group, instance) for instance in range(1, 10))
            self.assertEqual(next(filter(None, kinds)), 'DeadlineExceededError')
            self.assertEqual(group.call('worker:1', collectives.twos), [2.0, 2.0])

    def test_a_worker_that_dies_in_a_collective_ends_it_for_all(self):
        with Group(3) as group:
            calls = {name: group.begin(name, collectives.add_for_ever, 1000003)
                     for name in group.tasks}
            cluster.until(lambda: group.counters('worker:1').get('buffers_weft', 0) > 20,
                          'a collective')
            group.kill('worker:1')
            for name in ('worker:0', 'worker:2'):
                with self.assertRaises(cluster.Failed) as caught:
                    calls[name].wait(LOST_S)
                self.assertEqual(caught.exception.kind, 'UnavailableError',
                                 caught.exception.text)
                self.assertIn('worker/replica:0/task:1', caught.exception.text)
                cluster.until(lambda name=name: not group.counters(name).get('sent_waiting') and
                              not group.counters(name).get('sent_held'),
                              'the end of what was to be sent')


if __name__ == '__main__':
    unittest.main()
