# SPDX-License-Identifier: BSD-2-Clause
"""What tests have run inside tasks: graphs whose tensors go from one task to another."""

PS = '/job:ps/task:0'
WORKER = '/job:worker/task:0'

DTYPES = ('float16', 'bfloat16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8',
          'uint16', 'uint32', 'uint64', 'bool', 'complex64', 'complex128', 'string')
SHAPES = ((), (7,), (0, 3), (3, 5, 2), (100003,))
KEPT = {}      # sessions that stay open between calls, in a task


def session(server, build, **options):
    """Build a graph by @build(tf, v1), which returns what to fetch, and run it once."""
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        # Constants are not folded into the other task's half of the graph.
        fetches = build(tf, v1)
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        with v1.Session(server.target, config=config) as run:
            return run.run(fetches, **options)


def values(dtype, shape):
    """An array of that type and shape, the same in every process."""
    import numpy as np
    import tensorflow as tf
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 100, size=shape)
    if dtype == 'string':
        return np.asarray(numbers.astype(str), dtype=object)
    return np.asarray(numbers).astype(tf.as_dtype(dtype).as_numpy_dtype)


def there_and_back(server, dtypes, shapes):
    """Send each tensor to the ps and back; the names of those that came back changed."""
    import numpy as np
    sent = {(dtype, tuple(shape)): values(dtype, tuple(shape))
            for dtype in dtypes for shape in shapes}

    def build(tf, _):
        fetches = {}
        for (dtype, shape), array in sent.items():
            with tf.device(WORKER):
                here = tf.constant(array, dtype=dtype)
            with tf.device(PS):
                there = tf.identity(here)
            with tf.device(WORKER):
                fetches['%s %s' % (dtype, shape)] = tf.identity(there)
        return fetches

    came = session(server, build)
    wrong = []
    for (dtype, shape), array in sent.items():
        got = np.asarray(came['%s %s' % (dtype, shape)])
        if dtype == 'string':
            got = np.asarray(np.vectorize(bytes.decode, otypes=[object])(got), dtype=object)
        if got.shape != array.shape or not np.array_equal(got, array):
            wrong.append('%s %s' % (dtype, shape))
    return wrong


def many_at_once(server, count):
    """@count edges in one step: their sum, and what it should be."""
    def build(tf, _):
        parts = []
        for i in range(count):
            with tf.device(PS):
                there = tf.fill([100 + i], float(i))
            with tf.device(WORKER):
                parts.append(tf.reduce_sum(there))
        with tf.device(WORKER):
            return tf.add_n(parts)

    return [float(session(server, build)), float(sum((100 + i) * i for i in range(count)))]


def list_of_tensors(server):
    """A variant: a list of tensors goes from the ps to the worker."""
    def build(tf, _):
        with tf.device(PS):
            rows = tf.fill([4, 1000], 1.5)
            there = tf.raw_ops.TensorListFromTensor(tensor=rows, element_shape=[1000])
        with tf.device(WORKER):
            return tf.reduce_sum(tf.raw_ops.TensorListStack(
                input_handle=there, element_shape=[1000], element_dtype=tf.float32,
                num_elements=4))

    return float(session(server, build))


def dead_branch(server, take):
    """One of two edges of a conditional is dead; the result tells which."""
    def build(tf, v1):
        with tf.device(PS):
            false, true = tf.raw_ops.Switch(data=tf.fill([1000], 1.0), pred=tf.constant(take))
        with tf.device(WORKER):
            merged = tf.raw_ops.Merge(inputs=[false * 2.0, true * 3.0])
            return tf.reduce_sum(merged.output)

    return float(session(server, build))


def variable(server, elements):
    """A variable on the ps is read and pushed to by the worker."""
    def build(tf, v1):
        with tf.device(PS):
            v = v1.get_variable('v', initializer=tf.ones([elements]), use_resource=True)
        with tf.device(WORKER):
            gradient = tf.ones_like(v) * 2.0
        with tf.device(PS):
            with tf.control_dependencies([v1.global_variables_initializer()]):
                pushed = v.assign_add(gradient, read_value=False)
        with tf.control_dependencies([pushed]), tf.device(WORKER):
            return tf.reduce_sum(v.read_value())

    return float(session(server, build))


def failing_op(server, good):
    """An operation of the ps fails, unless @good."""
    def build(tf, _):
        with tf.device(PS):
            with tf.control_dependencies([tf.debugging.Assert(tf.constant(good), ['ps says no'])]):
                there = tf.fill([1000], 1.0)
        with tf.device(WORKER):
            return tf.reduce_sum(there)

    return float(session(server, build))


def waiting_graph(tf, edges):
    """Tensors of the ps that never come, and their sum on the worker."""
    parts = []
    with tf.device(PS):
        queue = tf.queue.FIFOQueue(1, [tf.float32], [[]])
    for _ in range(edges):
        with tf.device(PS):
            there = queue.dequeue() + 1.0
        with tf.device(WORKER):
            parts.append(there + 1.0)
    with tf.device(WORKER):
        return tf.add_n(parts)


def wait_in_session(server, edges, timeout_ms):
    """Run a step that waits for @edges tensors that never come.  Its session stays open: to close
    one, TensorFlow waits for tasks that are dead."""
    import tensorflow as tf
    v1 = tf.compat.v1
    with tf.Graph().as_default():
        KEPT['total'] = waiting_graph(tf, edges)
        KEPT['session'] = v1.Session(server.target)
        options = v1.RunOptions(timeout_in_ms=timeout_ms) if timeout_ms else None
        return float(KEPT['session'].run(KEPT['total'], options=options))


def wait_again(_server):
    """Run the step of wait_in_session() once more, without a timeout."""
    return float(KEPT['session'].run(KEPT['total']))


def close_session(_server):
    """Close the session in which a step waits."""
    KEPT['session'].close()
    return 'closed'
