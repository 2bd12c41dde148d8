# SPDX-License-Identifier: BSD-2-Clause
"""Thousands of steps, good and bad ones: nothing grows."""
# pylint: disable=import-outside-toplevel,import-error
import os
import unittest

import cluster
import graphs

ALL = bool(os.environ.get('TENSORFLOW_TESTS_ALL'))
STEPS = 10000 if ALL else 500
RSS_MORE_KIB = 24 << 10   # a leak of 4 KiB a step would take 32 MiB in 8000 steps
# TensorFlow and gRPC start threads of their own when they are busy, with descriptors: a leak of one
# each failing step would be 160 in 8000 steps, and one each step 400 in the quick run.
THREADS_MORE = 64
DESCRIPTORS_MORE = 32
KEPT = {}                 # the graph and session of a task


def prepare(server, elements):
    """Make a session with a step of each kind: pull and push, strings, dead, and one that fails."""
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        with tf.device(graphs.PS):
            v = v1.get_variable('v', initializer=tf.zeros([elements]), use_resource=True)
            text = tf.strings.as_string(v.read_value()[:100])
            take = v1.placeholder(tf.bool, [])
            false, true = tf.raw_ops.Switch(data=v.read_value()[0], pred=take)
            good = v1.placeholder(tf.bool, [])
            with tf.control_dependencies([tf.debugging.Assert(good, ['ps says no'])]):
                checked = v.read_value() + 0.0
        with tf.device(graphs.WORKER):
            gradient = v.read_value() * 0.0 + 1.0
            length = tf.reduce_sum(tf.strings.length(text))
            merged = tf.raw_ops.Merge(inputs=[false * 1.0, true * 1.0]).output
            total = tf.reduce_sum(checked)
        with tf.device(graphs.PS):
            push = v.assign_add(gradient, read_value=False)
        session = v1.Session(server.target)
        session.run(v1.global_variables_initializer())
        KEPT.update(session=session, good=good, take=take,
                    fetches=[push, length, merged, total], error=tf.errors.InvalidArgumentError,
                    aborted=tf.errors.AbortedError)


def run_step(feeds):
    """Run a step, and again where TensorFlow has given it the id of an earlier one.

    TensorFlow draws the ids of a step's requests in a new thread each, whose generator it seeds with
    32 bits: of 10,000 steps over any protocol one in a hundred times two get the same id, and the
    later is refused.
    """
    for last in (False, True):
        try:
            return KEPT['session'].run(KEPT['fetches'], feed_dict=feeds)
        except KEPT['aborted'] as error:
            if last or 'request was received twice' not in error.message:
                raise


def steps(_server, count, bad_each):
    """Run @count steps, each @bad_each of which fails; how many did."""
    failed = 0
    for number in range(count):
        bad = bad_each and number % bad_each == 0
        try:
            run_step({KEPT['good']: not bad, KEPT['take']: number % 2 == 0})
        except KEPT['error']:
            failed += 1
    return failed


def descriptors(pid):
    """How many descriptors a process has."""
    return len(os.listdir('/proc/%d/fd' % pid))


def rss_kib(pid):
    """Memory of a process."""
    with open('/proc/%d/status' % pid, encoding='ascii') as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith('VmRSS:'))


def threads(pid):
    """How many threads a process has."""
    return len(os.listdir('/proc/%d/task' % pid))


class Endurance(unittest.TestCase):
    """A ps and a worker, looked at from outside."""

    provider = 'shm'

    def figures(self, tasks, measure):
        """@measure of each task's process."""
        return {name: measure(tasks.pid(name)) for name in tasks.tasks}

    def test_nothing_grows_over_thousands_of_steps(self):
        with cluster.Cluster({'ps': 1, 'worker': 1}, provider=self.provider) as tasks:
            tasks.call('worker:0', prepare, 20000)
            tasks.call('worker:0', steps, STEPS // 5, 50, seconds=600)
            before = [self.figures(tasks, f) for f in (descriptors, threads, rss_kib)]
            failed = tasks.call('worker:0', steps, STEPS * 4 // 5, 50, seconds=1800)
            self.assertEqual(failed, STEPS * 4 // 5 // 50)
            after = [self.figures(tasks, f) for f in (descriptors, threads, rss_kib)]
            for name in tasks.tasks:
                self.assertLessEqual(after[0][name], before[0][name] + DESCRIPTORS_MORE,
                                     'descriptors of ' + name)
                self.assertLessEqual(after[1][name], before[1][name] + THREADS_MORE,
                                     'threads of ' + name)
                self.assertLess(after[2][name], before[2][name] + RSS_MORE_KIB, 'KiB of ' + name)
                for counter in ('sent_held', 'sent_waiting'):
                    cluster.until(lambda n=name, c=counter: tasks.counters(n).get(c, 0) == 0,
                                  counter + ' of 0')
                self.assertEqual(tasks.counters(name).get('received_grpc', 0), 0)


@cluster.full
class EnduranceOverTcp(Endurance):
    """Tasks of any hosts."""

    provider = 'tcp'


if __name__ == '__main__':
    unittest.main()
