# SPDX-License-Identifier: BSD-2-Clause
"""What scripts/bench and scripts/demo have done inside tasks of TensorFlow.

A step is prepared once and then measured again and again: prepare() makes its graph and a session,
and warms up; measure() runs it.  All that is called from outside gets the server and the number of
its task first, as tests/tensorflow/cluster.py calls it.  TensorFlow is imported in there alone."""
# pylint: disable=import-outside-toplevel,import-error

import statistics
import time

import collectives

WARM_STEPS = 3
LEAST_STEPS = 3
FLOAT = 4  # bytes

# The step of this task's last prepare(), and what it needs to end.
run = None
session = None

# The workers of this task's strategy, which a process can have once; 0: it has none yet.
workers = 0


def ps(index):
    return f"/job:ps/task:{index}"


def worker(index):
    return f"/job:worker/task:{index}"


def least_loaded(sizes, servers):
    """A server for each of @sizes: the largest first, each to whom has the least, as
    TensorFlow's own strategies place them."""
    loads, places = servers * [0], len(sizes) * [0]
    for i in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        places[i] = loads.index(min(loads))
        loads[places[i]] += sizes[i]
    return places


def variables(tf, v1, sizes, servers):
    """A variable for each of @sizes, in bytes."""
    made = []
    for i, (size, place) in enumerate(zip(sizes, least_loaded(sizes, servers))):
        with tf.device(ps(place)):
            made.append(v1.get_variable(f"v{i}", use_resource=True,
                                        initializer=tf.ones([max(1, size // FLOAT)])))
    return made


def pull(tf, v1, task, sizes, servers):
    """Read every variable."""
    read = []
    for v in variables(tf, v1, sizes, servers):
        with tf.device(worker(task)):
            read.append(tf.raw_ops.Identity(input=v.read_value()).op)
    return tf.group(*read)


def train(tf, v1, task, sizes, servers):
    """Read every variable, and push a gradient for each that takes no time to find."""
    pushed = []
    for v in variables(tf, v1, sizes, servers):
        with tf.device(worker(task)):
            gradient = v.read_value() * .001
        pushed.append(v.assign_sub(gradient, read_value=False))
    return tf.group(*pushed)


def call(tf, v1, task, sizes, servers, echo):
    """Send a payload of so many tensors to every server, and get it back, or one number."""
    payload, answers = [], []
    with tf.device(worker(task)):
        for i, size in enumerate(sizes):
            payload.append(v1.get_local_variable(f"p{task}.{i}", use_resource=True,
                                                 initializer=tf.ones([max(1, size // FLOAT)])))
        tensors = [p.read_value() for p in payload]
    for server in range(servers):
        with tf.device(ps(server)):
            there = [tf.raw_ops.Identity(input=t) for t in tensors]
            if not echo:
                with tf.control_dependencies(there):
                    there = [tf.random.uniform([])]
        with tf.device(worker(task)):
            answers += [tf.raw_ops.Identity(input=t).op for t in there]
    return tf.group(*answers)


STEPS = {"pull": pull, "train": train, "call": call}


def afresh(server, task):
    """TensorFlow, and its first interface; nothing is left of former steps."""
    import tensorflow as tf
    finish(server, task)
    if task == 0:
        tf.compat.v1.Session.reset(server.target)
    return tf, tf.compat.v1


def prepare(server, task, what, words):
    """Make the step @what of the worker @task, whose first one fills the variables."""
    global run, session
    tf, v1 = afresh(server, task)
    with tf.Graph().as_default():
        step = STEPS[what](tf, v1, task, **words)
        config = v1.ConfigProto()
        # Tensors that never change would become constants of their reader.
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        session = v1.Session(server.target, config=config)
        if task == 0:
            session.run(v1.global_variables_initializer())
        session.run(v1.local_variables_initializer())
        run = session.make_callable(step)
    for _ in range(WARM_STEPS):
        run()


def measure(_server, _task, seconds):
    """The median time of a step, and how many there were in how many seconds."""
    times = []
    start = last = time.perf_counter()
    while len(times) < LEAST_STEPS or last - start < seconds:
        run()
        now = time.perf_counter()
        times.append(now - last)
        last = now
    return {"p50_s": statistics.median(times), "steps": len(times), "seconds": last - start}


def finish(_server, _task):
    """Give up the step that was prepared, and what the servers keep for it."""
    global run, session
    if session:
        session.close()
    run = session = None


# Training, as S0 did: a network of 784, 100 and 10 by Adagrad, in batches of 100, each worker at
# its own pace, until all of them together have made so many steps.

PIXELS, HIDDEN, DIGITS = 784, 100, 10
BATCH, RATE = 100, .01
EXAMPLES, TESTS = 5000, 1000
NOISE = 3.  # of a pixel, beside 1 of what tells the digits apart; the accuracy ends at 97 %


def examples(count, seed):
    """Images that look like none, but can be told apart, and their digits."""
    import numpy as np
    digits = np.random.default_rng(1).standard_normal((DIGITS, PIXELS), np.float32)
    chance = np.random.default_rng(seed)
    labels = chance.integers(0, DIGITS, count)
    images = digits[labels] * .5 + NOISE * chance.standard_normal((count, PIXELS), np.float32)
    return images.astype(np.float32), labels.astype(np.int32)


def network(tf, v1, task):
    """Inputs, the loss and the answers; the variables lie on the first server."""
    def variable(name, value, **options):
        return v1.get_variable(name, initializer=value, use_resource=True, **options)

    def weights(inputs, outputs):
        return tf.random.truncated_normal([inputs, outputs], stddev=inputs ** -.5, seed=1)

    with tf.device(ps(0)):
        hidden = variable("hidden", weights(PIXELS, HIDDEN))
        hidden_bias = variable("hidden_bias", tf.zeros([HIDDEN]))
        last = variable("last", weights(HIDDEN, DIGITS))
        last_bias = variable("last_bias", tf.zeros([DIGITS]))
        made = variable("made", tf.constant(0, tf.int64), trainable=False)
    with tf.device(worker(task)):
        images = v1.placeholder(tf.float32, [None, PIXELS])
        labels = v1.placeholder(tf.int32, [None])
        inner = tf.nn.relu(tf.matmul(images, hidden) + hidden_bias)
        outputs = tf.matmul(inner, last) + last_bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=labels, logits=outputs))
        right = tf.reduce_mean(tf.cast(tf.equal(
            tf.argmax(outputs, 1, output_type=tf.int32), labels), tf.float32))
    return made, [images, labels], loss, right


class Training:
    """What a worker has of it."""

    def __init__(self, tf, v1, target, task):
        made, inputs, loss, right = network(tf, v1, task)
        update = v1.train.AdagradOptimizer(RATE).minimize(loss, global_step=made)
        with tf.control_dependencies([update]), tf.device(worker(task)):
            count = tf.identity(made.read_value())
        self.session = v1.Session(target)
        if task == 0:
            self.session.run(v1.global_variables_initializer())
        self.step = self.session.make_callable(count, feed_list=inputs)
        self.right = self.session.make_callable(right, feed_list=inputs)
        self.images, self.labels = examples(EXAMPLES, 2 + task)
        self.at = 0

    def next(self):
        """Make one step; how many have been made by all."""
        self.at = (self.at + BATCH) % EXAMPLES
        part = slice(self.at, self.at + BATCH)
        return self.step(self.images[part], self.labels[part])


def begin_training(server, task):
    """Get ready to train; the first worker fills the variables."""
    global run, session
    tf, v1 = afresh(server, task)
    with tf.Graph().as_default():
        run = Training(tf, v1, server.target, task)
    session = run.session
    run.next()


def go_on_training(_server, _task, steps):
    """Train until all workers together have made @steps; the steps of this one."""
    own = 0
    while True:
        own += 1
        if run.next() >= steps:
            return own


def accuracy(_server, _task):
    """The share of digits that the network tells, of those that it was not trained with."""
    return float(run.right(*examples(TESTS, 1000)))


# AllReduce between workers that are no servers yet: the strategy starts them.

def mirror(server, _task, count):
    """Get ready to sum @count bytes of all workers."""
    import tensorflow as tf
    global run, workers
    workers = workers or collectives.join(server)
    strategy = collectives.KEPT["strategy"]

    def summed():
        both = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, tf.ones([count // FLOAT]))
        return both[0] + both[-1]

    step = tf.function(lambda: strategy.run(summed))

    def checked():
        if float(step()) != 2. * workers:
            raise ValueError("the sum is wrong")

    for _ in range(WARM_STEPS):
        checked()
    run = checked


def mirror_steps(_server, _task, steps):
    """The median time of @steps sums, which all workers make together."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)
