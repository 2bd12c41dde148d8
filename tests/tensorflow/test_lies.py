# SPDX-License-Identifier: BSD-2-Clause
"""A task whose tensors lie: its server is as ever, but its hello names the node of liar.c."""
# pylint: disable=import-outside-toplevel,import-error
import os
import re
import subprocess
import unittest

import cluster
import graphs
import programs

LIE_S = 20


def first_words(server, lie):
    """Receive what the liar gives for the edge @lie, and fetch it as a list."""
    def build(tf, _):
        with tf.device(graphs.PS):
            there = tf.fill([4], 5.0, name=lie)
        with tf.device(graphs.WORKER):
            return tf.identity(there)

    return [float(number) for number in graphs.session(server, build)]


class Lies(unittest.TestCase):
    """What a peer says of a tensor, and does not keep."""

    fits = ('lie_other_type', 'lie_dead_with_body', 'lie_packed_variant')

    @classmethod
    def setUpClass(cls):
        liar = cluster.made(cls, lambda folder: programs.build(folder, 'liar'))
        cls.liar = subprocess.Popen([liar, '127.0.0.1:0'],  # pylint: disable=consider-using-with
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env=dict(os.environ, FI_PROVIDER='tcp'))
        cls.addClassCleanup(cls.liar.wait)
        cls.addClassCleanup(cls.liar.kill)
        address = cls.liar.stdout.readline().strip()
        cls.tasks = cluster.Cluster({'ps': 1, 'worker': 1}, provider='tcp',
                                    task_env={'ps:0': {'WEFT_ADVERTISE': address}})
        cls.tasks.__enter__()
        cls.addClassCleanup(cls.tasks.__exit__)

    @staticmethod
    def lies():
        """The names of the liar's lies."""
        with open(os.path.join(cluster.HERE, 'liar.c'), encoding='ascii') as text:
            return re.findall(r'{ "(lie_\w+)", ', text.read())

    def test_no_lie_of_a_peer_brings_a_task_down_or_passes_for_a_tensor(self):
        harmless = {'lie_none': [1.0, 2.0, 3.0, 4.0], 'lie_empty_with_body': []}
        lies = self.lies()
        self.assertGreater(len(lies), 20)
        for lie in lies:
            with self.subTest(lie):
                if lie in harmless:
                    got = self.tasks.call('worker:0', first_words, lie, seconds=LIE_S)
                    self.assertEqual(got, harmless[lie])
                    continue
                with self.assertRaises(cluster.Failed) as caught:
                    self.tasks.call('worker:0', first_words, lie, seconds=LIE_S)
                # What TensorFlow itself finds wrong with a tensor has a class of its own.
                kinds = ('InvalidArgumentError', 'InternalError') if lie in self.fits else \
                    ('DataLossError', 'InvalidArgumentError')
                self.assertIn(caught.exception.kind, kinds, caught.exception.text)
                self.assertIsNone(self.tasks.tasks['worker:0'].process.poll())
        self.assertEqual(self.tasks.call('worker:0', first_words, 'lie_none'),
                         harmless['lie_none'])
        self.assertEqual(self.tasks.counters('worker:0').get('received_grpc', 0), 0)


if __name__ == '__main__':
    unittest.main()
