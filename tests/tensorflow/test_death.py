# SPDX-License-Identifier: BSD-2-Clause
"""Parameter servers that are killed, frozen and restarted, and steps that are given up."""
# pylint: disable=import-outside-toplevel,import-error
import sys
import unittest

import cluster
import graphs

LOST_S = 30    # weft takes 3 s to miss a peer; the rest is TensorFlow's, and the machine is shared
LOST = ('UnavailableError', 'AbortedError', 'CancelledError')


def train(server, steps):
    """Run steps of pull and push in a session of its own; the variable's last value."""
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        with tf.device(graphs.PS):
            v = v1.get_variable('v', initializer=tf.zeros([50000]), use_resource=True)
        with tf.device(graphs.WORKER):
            gradient = tf.sign(v.read_value() + 1.0)    # 1, which TensorFlow has to compute
        with tf.device(graphs.PS):
            push = v.assign_add(gradient, read_value=False)
        session = v1.Session(server.target)
        session.run(v1.global_variables_initializer())
        for _ in range(steps):
            session.run(push)
        value = float(session.run(v)[49999])
        session.close()
        return value


def train_until_it_fails(server):
    """Run steps until one fails; its error goes up.  A new session would wait for a new ps."""
    train(server, sys.maxsize)


@cluster.full
class Death(unittest.TestCase):
    """A worker whose ps fails it."""

    provider = 'tcp'

    def setUp(self):
        self.tasks = cluster.Cluster({'ps': 1, 'worker': 1}, provider=self.provider)
        self.tasks.__enter__()
        self.addCleanup(self.tasks.__exit__)

    def fails(self, call, kinds, seconds=LOST_S):
        """@call fails as one of @kinds within @seconds."""
        with self.assertRaises(cluster.Failed) as caught:
            call.wait(seconds)
        self.assertIn(caught.exception.kind, kinds, caught.exception.text)
        return caught.exception.text

    def waits(self, edges, timeout_ms=0):
        """A step that waits for @edges tensors, when the ps knows of each."""
        call = self.tasks.begin('worker:0', graphs.wait_in_session, edges, timeout_ms)
        cluster.until(lambda: self.tasks.counters('ps:0').get('sent_waiting', 0) == edges,
                      'the calls for the tensors')
        return call

    def check_idle(self):
        """The ps waits for nothing and holds nothing."""
        for counter in ('sent_waiting', 'sent_held'):
            cluster.until(lambda name=counter: self.tasks.counters('ps:0').get(name, 0) == 0,
                          counter + ' of 0')

    def test_a_step_that_is_out_of_time_lets_go_of_what_it_waits_for(self):
        self.fails(self.waits(100, 8000), ('DeadlineExceededError',))
        self.check_idle()
        self.assertEqual(self.tasks.call('worker:0', train, 3), 3.0)

    def test_a_failure_that_two_tasks_tell_has_one_cause(self):
        for _ in range(5):
            text = self.fails(self.tasks.begin('worker:0', graphs.failing_op, False),
                              ('InvalidArgumentError',))
            self.assertIn('ps says no', text)
            self.assertNotIn('root error(s)', text)
        self.check_idle()

    def test_a_session_closes_while_receives_are_under_way(self):
        call = self.waits(20)
        self.assertEqual(self.tasks.call('worker:0', graphs.close_session), 'closed')
        self.fails(call, ('CancelledError', 'AbortedError'))
        self.check_idle()
        self.assertEqual(self.tasks.call('worker:0', train, 3), 3.0)

    def test_a_frozen_ps_is_lost_in_bounded_time_and_serves_again_when_it_thaws(self):
        self.assertEqual(self.tasks.call('worker:0', train, 3), 3.0)
        call = self.waits(20)
        self.tasks.freeze('ps:0')
        self.fails(call, LOST)
        self.tasks.thaw('ps:0')
        self.check_idle()
        self.assertEqual(self.tasks.call('worker:0', train, 3), 3.0)
        self.assertEqual(self.tasks.counters('worker:0').get('received_grpc', 0), 0)

    def test_a_later_step_fails_in_bounded_time_while_the_ps_is_frozen(self):
        call = self.waits(20)
        self.tasks.freeze('ps:0')
        self.fails(call, LOST)
        text = self.fails(self.tasks.begin('worker:0', graphs.wait_again), LOST)
        self.assertIn('the task was lost, and does not answer', text)
        self.tasks.thaw('ps:0')
        self.check_idle()
        self.assertEqual(self.tasks.call('worker:0', train, 3), 3.0)

    def test_a_ps_that_restarts_in_the_middle_of_training_is_a_new_one(self):
        for _ in range(5):
            call = self.tasks.begin('worker:0', train_until_it_fails)
            cluster.until(lambda: self.tasks.counters('ps:0').get('sent_weft', 0) > 20, 'a step')
            self.tasks.kill('ps:0')
            self.tasks.restart('ps:0')
            self.fails(call, LOST + ('FailedPreconditionError', 'NotFoundError'))
            self.assertEqual(self.tasks.call('worker:0', train, 3), 3.0)
        self.assertEqual(self.tasks.counters('worker:0').get('received_grpc', 0), 0)


class DeathOverShm(Death):
    """Tasks of one host."""

    provider = 'shm'


if __name__ == '__main__':
    unittest.main()
