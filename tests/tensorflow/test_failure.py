# SPDX-License-Identifier: BSD-2-Clause
"""What a worker's program sees when another task fails."""
import subprocess
import unittest

import cluster
import graphs
import programs

LOST_S = 60    # weft takes 3 s to miss a peer; the rest is TensorFlow's, on a busy machine


class Failure(unittest.TestCase):
    """The classes of errors that TensorFlow's users know."""

    def fails(self, call, kind, seconds=cluster.CALL_S):
        """@call fails as @kind within @seconds."""
        with self.assertRaises(cluster.Failed) as caught:
            call.wait(seconds)
        self.assertEqual(caught.exception.kind, kind, caught.exception.text)
        return caught.exception.text

    @staticmethod
    def wait_for_ever(tasks):
        """A call whose receive has reached the ps, and waits there."""
        call = tasks.begin('worker:0', graphs.wait_in_session, 1, 0)
        cluster.until(lambda: tasks.counters('ps:0').get('sent_waiting', 0) > 0,
                      'the call for the tensor')
        return call

    def test_a_step_fails_as_over_grpc_and_a_task_that_dies_or_freezes_is_missed(self):
        with cluster.Cluster({'ps': 1, 'worker': 1}) as tasks:
            self.assertEqual(tasks.call('worker:0', graphs.failing_op, True), 1000.0)

            text = self.fails(tasks.begin('worker:0', graphs.failing_op, False),
                              'InvalidArgumentError')
            self.assertIn('ps says no', text)
            self.assertEqual(tasks.call('worker:0', graphs.failing_op, True), 1000.0)

            self.fails(tasks.begin('worker:0', graphs.wait_in_session, 1, 500),
                       'DeadlineExceededError')
            self.assertEqual(tasks.call('worker:0', graphs.failing_op, True), 1000.0)

            waits = self.wait_for_ever(tasks)
            tasks.kill('ps:0')
            self.fails(waits, 'UnavailableError', LOST_S)
            tasks.restart('ps:0')
            self.assertEqual(tasks.call('worker:0', graphs.failing_op, True), 1000.0)

            waits = self.wait_for_ever(tasks)
            tasks.freeze('ps:0')
            text = self.fails(waits, 'UnavailableError', LOST_S)
            self.assertRegex(text, 'weft: receiving edge_.* from /job:ps/replica:0/task:0 in step')
            tasks.thaw('ps:0')
            self.assertEqual(tasks.call('worker:0', graphs.failing_op, True), 1000.0)

            self.assertEqual(tasks.counters('worker:0').get('received_grpc', 0), 0)
            for name in tasks.tasks:
                for now in ('sent_waiting', 'sent_held'):
                    cluster.until(lambda name=name, now=now: not tasks.counters(name).get(now),
                                  'the end of %s of %s' % (now, name))


def incarnation(server):
    """The life of the CPU of a task."""
    import tensorflow as tf    # pylint: disable=import-outside-toplevel,import-error
    with tf.compat.v1.Session(server.target) as session:
        return session.list_devices()[0].incarnation


class GivenUp(unittest.TestCase):
    """Calls of a peer for tensors that never come, as their step never begins."""

    device = '/job:ps/replica:0/task:0/device:CPU:0'

    def setUp(self):
        self.asker = cluster.made(type(self), lambda folder: programs.build(folder, 'asker'))
        self.address = '127.0.0.1:%d' % cluster.free_ports(1)[0]
        self.tasks = cluster.Cluster({'ps': 1}, env={'WEFT_LISTEN': self.address})
        self.tasks.__enter__()
        self.addCleanup(self.tasks.__exit__)

    def ask(self, *words):
        """Begin a call that waits without a limit."""
        call = subprocess.Popen([self.asker, self.address, *map(str, words)])
        self.addCleanup(call.wait)
        self.addCleanup(call.kill)
        return call

    def waits(self, count):
        """The ps comes to know of @count calls that wait."""
        cluster.until(lambda: self.tasks.counters('ps:0').get('sent_waiting', 0) == count,
                      '%d calls that wait' % count)

    @cluster.full
    def test_a_call_whose_caller_has_gone_is_ended_though_its_step_never_begins(self):
        life = self.tasks.call('ps:0', incarnation) % (1 << 64)
        key = '%s;%016x;/job:worker/replica:0/task:0/device:CPU:0;edge;0:0' % (self.device, life)
        asked = [self.ask(7, key), self.ask(8, 'buffer', self.device, life)]
        self.waits(2)
        asked[0].kill()
        self.waits(1)
        asked[1].kill()
        self.waits(0)


if __name__ == '__main__':
    unittest.main()
