# SPDX-License-Identifier: BSD-2-Clause
"""What tests have run inside a client: eager copies between it and a worker."""
# pylint: disable=import-outside-toplevel,import-error

WORKER = '/job:worker/replica:0/task:0/device:CPU:0'


def connect(_server):
    """Reach the workers of TF_CONFIG.  The client has a server of its own for that."""
    import json
    import os
    import tensorflow as tf
    known = json.loads(os.environ['TF_CONFIG'])
    tf.config.experimental_connect_to_cluster(
        tf.train.ClusterSpec({'worker': known['cluster']['worker']}), protocol=known['rpc_layer'])


def there_and_back(_server, elements, count):
    """Copy tensors to the worker and back; how many came back as they went."""
    import numpy as np
    import tensorflow as tf
    same = 0
    for i in range(count):
        here = np.arange(elements, dtype=np.float32) + i
        with tf.device(WORKER):
            there = tf.identity(tf.constant(here))
        same += np.array_equal(there.numpy(), here)
    return int(same)


def function_there(_server, elements):
    """A function of the worker's takes a tensor of the client's and gives another."""
    import tensorflow as tf

    @tf.function
    def double(value):
        return value * 2.0

    with tf.device('/job:localhost/replica:0/task:0/device:CPU:0'):
        here = tf.ones([elements])
    with tf.device(WORKER):
        there = double(here)
    return float(tf.reduce_sum(there.numpy()))
