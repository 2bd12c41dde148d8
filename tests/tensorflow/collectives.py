# SPDX-License-Identifier: BSD-2-Clause
"""What tests have run inside the workers of a group: collectives of MultiWorkerMirroredStrategy."""
# pylint: disable=import-outside-toplevel,import-error
import os

DTYPES = ('float16', 'bfloat16', 'float32', 'float64', 'int32', 'int64')
SIZES = (1, 1000, 100003)
KEPT = {}    # the strategy, which a process makes once


def join(_server):
    """Join the group: returns when all its workers have.  The number of its replicas."""
    import tensorflow as tf
    kinds = tf.distribute.experimental
    options = kinds.CommunicationOptions(implementation=kinds.CommunicationImplementation.RING)
    KEPT['strategy'] = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    return KEPT['strategy'].num_replicas_in_sync


def join_again(_server):
    """Make the strategy a second time, as another model of the program does."""
    KEPT.clear()
    return join(_server)


def part(dtype, size, rank):
    """What the worker of that @rank adds."""
    import numpy as np
    import tensorflow as tf
    return (np.arange(size) % 7 + rank + 1).astype(tf.as_dtype(dtype).as_numpy_dtype)


def sums(_server, dtypes, sizes):
    """All workers add tensors; the names of those whose sum is wrong."""
    import numpy as np
    import tensorflow as tf
    strategy = KEPT['strategy']
    count, rank = strategy.num_replicas_in_sync, strategy.cluster_resolver.task_id

    @tf.function
    def add(value):
        def replica(value):
            # An argument has no device, by which a strategy reduces.
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM,
                                                                  tf.identity(value))
        return strategy.run(replica, args=(value,))

    wrong = []
    for dtype in dtypes:
        for size in sizes:
            expected = sum(part(dtype, size, i) for i in range(count))
            got = add(tf.constant(part(dtype, size, rank)))
            if got.dtype.name != dtype or not np.array_equal(got.numpy(), expected):
                wrong.append('%s of %d' % (dtype, size))
    return wrong


def broadcast(_server, size):
    """A variable that each worker begins with another value: the one that all have."""
    import tensorflow as tf
    strategy = KEPT['strategy']
    with strategy.scope():
        variable = tf.Variable(tf.fill([size], float(strategy.cluster_resolver.task_id + 5)))
    value = variable.read_value()
    return [float(tf.reduce_min(value)), float(tf.reduce_max(value))]


def gather(_server, size):
    """All workers gather what each has: the values that follow one another."""
    import tensorflow as tf
    strategy = KEPT['strategy']
    rank = strategy.cluster_resolver.task_id

    @tf.function
    def gathered():
        def replica():
            return tf.distribute.get_replica_context().all_gather(
                tf.fill([size], rank), axis=0)
        return strategy.run(replica)

    return [int(value) for value in gathered().numpy()[::size]]


def add_for_ever(_server, size):
    """Add until something fails."""
    import tensorflow as tf
    strategy = KEPT['strategy']

    @tf.function
    def add():
        def replica():
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM,
                                                                  tf.ones([size]))
        return strategy.run(replica)

    while True:
        add()


def broadcast_options(instance, seconds):
    """The words of the two ends of a broadcast of its own, which is out of time after @seconds."""
    return {'group_size': 2, 'group_key': 78, 'instance_key': instance,
            'communication_hint': 'ring', 'timeout_seconds': float(seconds)}


def send_ones(_server, elements, instance):
    """Give the other worker ones."""
    import tensorflow as tf
    tf.raw_ops.CollectiveBcastSendV2(input=tf.ones([elements]), **broadcast_options(instance, 0))


def receive_too_late(_server, elements, instance, seconds, sender):
    """Receive the ones, for at most @seconds, fill memory as long with twos if they have not come, and
    let the process @sender go on.  The name of the error; '': they came."""
    import signal
    import tensorflow as tf
    try:
        tf.raw_ops.CollectiveBcastRecvV2(shape=[elements], T=tf.float32,
                                         **broadcast_options(instance, seconds))
        return ''
    except tf.errors.OpError as error:
        KEPT['twos'] = tf.fill([elements], 2.0)
        return type(error).__name__
    finally:
        os.kill(sender, signal.SIGCONT)


def twos(_server):
    """The least and the greatest of the numbers that receive_too_late() has filled memory with."""
    import tensorflow as tf
    return [float(tf.reduce_min(KEPT['twos'])), float(tf.reduce_max(KEPT['twos']))]
