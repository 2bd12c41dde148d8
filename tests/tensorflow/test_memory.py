# SPDX-License-Identifier: BSD-2-Clause
"""TensorFlow's own memory, registered once, over a provider that has each body registered."""
# pylint: disable=import-outside-toplevel,import-error
import unittest

import cluster
import graphs

STEPS = 20


def pulls(server, steps):
    """Pull fresh tensors of the ps in one session, step by step; the sum of all."""
    import tensorflow as tf
    v1 = tf.compat.v1
    total = 0.0
    with tf.Graph().as_default():
        with tf.device(graphs.PS):
            there = [tf.random.uniform([250000], 1.0, 1.0 + 1e-6) for _ in range(4)]
        with tf.device(graphs.WORKER):
            here = tf.add_n([tf.reduce_sum(tensor) for tensor in there])
        with v1.Session(server.target) as run:
            for _ in range(steps):
                total += float(run.run(here))
    return total


def late(_server):
    """Import the plug-in when TensorFlow has memory already, as a process of its own; its log."""
    import subprocess
    import sys
    return subprocess.run([sys.executable, '-c', 'import tensorflow as tf\n'
                           'tf.zeros([1000]) + 1.0\nimport weft_tensorflow\n'],
                          check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT).stdout


@cluster.full
class Memory(unittest.TestCase):
    """tcp;ofi_rxm, which weft takes for a provider that pins."""

    @staticmethod
    def tasks(register):
        """A cluster that does, or does not, register TensorFlow's memory."""
        return cluster.Cluster({'ps': 1, 'worker': 1}, env={
            'WEFT_PROVIDER': 'tcp;ofi_rxm', 'TF_WEFT_REGISTER': register})

    def registered_by_pulls(self, tasks):
        """How many tensors the ps registered by themselves while as many steps pulled some."""
        before = tasks.counters('ps:0')
        total = tasks.call('worker:0', pulls, STEPS)
        self.assertAlmostEqual(total, STEPS * 1e6, delta=STEPS * 10)
        after = tasks.counters('ps:0')
        sent, registered = (after.get(name, 0) - before.get(name, 0)
                            for name in ('sent_over_tcp;ofi_rxm', 'sent_registered'))
        self.assertGreater(sent, 4 * STEPS - 1)
        return registered

    def test_what_a_task_sends_is_registered_with_its_arena_and_not_by_itself(self):
        with self.tasks('yes') as tasks:
            # A fresh arena is registered in a thread of its own: some tensor may be sent before.
            cluster.until(lambda: self.registered_by_pulls(tasks) == 0, 'steps that register nothing')
            self.assertGreater(tasks.counters('ps:0').get('registered_bytes', 0), 1 << 20)
            self.assertIn('comes too late', tasks.call('worker:0', late))

    def test_without_that_setting_each_tensor_is_registered(self):
        with self.tasks('no') as tasks:
            self.assertGreater(self.registered_by_pulls(tasks), 0)
            self.assertEqual(tasks.counters('ps:0').get('registered_bytes', 0), 0)


if __name__ == '__main__':
    unittest.main()
