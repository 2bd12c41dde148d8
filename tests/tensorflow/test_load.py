# SPDX-License-Identifier: BSD-2-Clause
"""Many edges at once, and kernels that take their time: weft's thread stays free."""
# pylint: disable=import-outside-toplevel,import-error
import unittest

import cluster
import graphs


def threads_of_kernels(server, edges, sleep_s):
    """Receive @edges at once while kernels sleep; their sum, and names of threads that ran one."""
    import threading
    import time
    names = set()

    def here(number):
        with open('/proc/self/task/%d/comm' % threading.get_native_id(), encoding='ascii') as comm:
            names.add(comm.read().strip())
        return number

    def sleep(number):
        time.sleep(sleep_s)
        return here(number)

    def build(tf, v1):
        parts = []
        for i in range(edges):
            with tf.device(graphs.PS):
                there = tf.fill([2], float(i))
            with tf.device(graphs.WORKER):
                kernel = sleep if i < 8 else here
                parts.append(v1.py_func(kernel, [there], tf.float32, stateful=True))
        with tf.device(graphs.WORKER):
            return tf.add_n([part[0] for part in parts])

    total = float(graphs.session(server, build))
    return [total, sorted(names)]


def long_strings(server, count, bytes_each):
    """Strings of many bytes go to the worker; their length altogether."""
    def build(tf, _):
        with tf.device(graphs.PS):
            there = tf.strings.reduce_join(tf.fill([count, bytes_each // 1024], 'x' * 1024), axis=1)
        with tf.device(graphs.WORKER):
            return tf.reduce_sum(tf.strings.length(there))

    return int(graphs.session(server, build))


@cluster.full
class Load(unittest.TestCase):
    """A worker that is busy."""

    def test_no_kernel_runs_on_the_thread_of_weft_however_many_edges_wait(self):
        with cluster.Cluster({'ps': 1, 'worker': 1}, provider='shm') as tasks:
            total, names = tasks.call('worker:0', threads_of_kernels, 4000, 1.0, seconds=300)
            self.assertEqual(total, 4000 * 3999 / 2)
            # TensorFlow's threads outside its pools have the process's name.
            self.assertEqual(set(names) - {'tf_Compute', 'weft_overflow', 'python'}, set())
            self.assertEqual(tasks.counters('worker:0').get('received_weft'), 4000)

    def test_strings_of_a_quarter_of_a_gibibyte_arrive(self):
        with cluster.Cluster({'ps': 1, 'worker': 1}, provider='shm') as tasks:
            self.assertEqual(tasks.call('worker:0', long_strings, 64, 4 << 20), 256 << 20)


if __name__ == '__main__':
    unittest.main()
