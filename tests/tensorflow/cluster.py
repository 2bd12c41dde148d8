# SPDX-License-Identifier: BSD-2-Clause
"""Clusters of TensorFlow tasks for tests: each task is a process with a server.

A test starts a cluster, has a function of its own module run inside one of the tasks, and reads
what the tasks have counted:

    with cluster.Cluster({'ps': 1, 'worker': 1}, provider='tcp') as tasks:
        sums = tasks.call('worker:0', some_function, 1000)
        counts = tasks.counters('worker:0')

The function gets the task's tf.distribute.Server, if it has one, and the words given; words and
result are what JSON can say.  It imports TensorFlow itself: the process of the tests has none.
Every wait is bounded, and a wait that ends in vain shows what the task has logged.

A task's process is this file, too: it answers a line of JSON for each that it is given.
"""
import importlib
import itertools
import json
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
START_S = 180  # importing TensorFlow takes seconds, on a busy machine many
CALL_S = 180
ANSWER = '@answer '
NUMBERS = itertools.count(1)   # of calls; 0: the start of a task

# Tests that only `run --all` makes.
full = unittest.skipUnless(os.environ.get('TENSORFLOW_TESTS_ALL'), 'only with --all')


class Failed(Exception):
    """A function failed inside a task: @kind is the name of its exception."""

    def __init__(self, kind, text):
        super().__init__('%s: %s' % (kind, text))
        self.kind = kind
        self.text = text


def free_ports(count):
    """Ports that nobody has now, and that nobody is given who asks for any: tasks start slowly."""
    with open('/proc/sys/net/ipv4/ip_local_port_range', encoding='ascii') as text:
        first = int(text.read().split()[0])
    sockets = []
    while len(sockets) < count:
        one = socket.socket()
        try:
            one.bind(('127.0.0.1', random.randrange(first // 2, first)))
            sockets.append(one)
        except OSError:
            one.close()
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def until(condition, what, seconds=CALL_S):
    """Wait until @condition holds, which comes soon."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError('%s has not come within %d s' % (what, seconds))
        time.sleep(0.02)


class Call:
    """A function that runs inside a task."""

    def __init__(self, task):
        self.task = task
        self.answers = queue.Queue()

    def wait(self, seconds=CALL_S):
        """The function's result.  Failed: it raised, or has not ended within @seconds."""
        try:
            kind, value = self.answers.get(timeout=seconds)
        except queue.Empty:
            kind, value = 'late', 'nothing came for %d s' % seconds
        if kind != 'ok':
            raise Failed(kind, '%s says %s; its log ends:\n%s' %
                         (self.task.name, value, self.task.log()[-3000:]))
        return value


class Task:
    """A process with one server."""

    def __init__(self, name, spec, env, log, command):
        self.name = name
        self.command = command
        self.spec = spec
        self.env = env
        self.log_path = log
        self.process = None
        self.calls = {}

    def start(self):
        """Start the process.  Returns the call that ends when its server is there."""
        log = open(self.log_path, 'ab')
        self.process = subprocess.Popen(
            [*self.command, os.path.join(HERE, 'cluster.py'), json.dumps(self.spec)],
            env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, bufsize=0)
        log.close()
        begun = Call(self)
        self.calls = {0: begun}
        threading.Thread(target=self.read, args=(self.process.stdout, self.calls),
                         daemon=True).start()
        return begun

    @staticmethod
    def read(lines, calls):
        """Give each call its answer, and those that are left none."""
        with lines:
            for line in lines:
                text = line.decode('utf-8', 'replace')
                if text.startswith(ANSWER):
                    number, kind, value = json.loads(text[len(ANSWER):])
                    calls.pop(number).answers.put((kind, value))
        for call in list(calls.values()):
            call.answers.put(('gone', 'its process has ended'))

    def log(self):
        """What the task has logged so far."""
        with open(self.log_path, encoding='utf-8', errors='replace') as text:
            return text.read()

    def begin(self, module, function, words):
        """Begin a function inside the task."""
        call = Call(self)
        number = next(NUMBERS)
        self.calls[number] = call
        self.process.stdin.write(json.dumps([number, module, function, words]).encode() + b'\n')
        return call

    def end(self):
        """Kill the process, and wait until it is gone."""
        if not self.process:
            return
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process = None


class Cluster:
    """Tasks by job: @jobs has their numbers.

    @provider is what FI_PROVIDER says.  @protocols has the protocol of jobs and tasks that have
    another than grpc+weft, @env more environment for all tasks, and @task_env for some, by name:
    'ps:0'.  The tasks of @serverless jobs have no server, but TF_CONFIG, by which a strategy makes
    one; their functions get None for it.  @python is the interpreter that has TensorFlow.  @hosts
    has the host of jobs that run on another, as its address and what a command begins with that is
    to run there.  All must have started within @start_s.
    """

    def __init__(self, jobs, provider=None, protocols=None, env=None, task_env=None, serverless=(),
                 python=sys.executable, hosts=None, start_s=START_S):
        self.start_s = start_s
        self.folder = tempfile.TemporaryDirectory()
        ports = iter(free_ports(sum(jobs.values())))
        places = {job: (hosts or {}).get(job, ('127.0.0.1', [])) for job in jobs}
        self.addresses = {job: ['%s:%d' % (places[job][0], next(ports)) for _ in range(count)]
                          for job, count in jobs.items()}
        common = dict(os.environ, TF_CPP_MIN_LOG_LEVEL='0', TF_ENABLE_ONEDNN_OPTS='0',
                      CUDA_VISIBLE_DEVICES='', **(env or {}))
        if provider:
            common['FI_PROVIDER'] = provider
        self.tasks = {}
        for job, count in jobs.items():
            for index in range(count):
                name = '%s:%d' % (job, index)
                protocol = {job: 'grpc+weft', **(protocols or {})}
                spec = {'cluster': self.addresses, 'job': job, 'index': index,
                        'server': job not in serverless,
                        'protocol': protocol.get(name, protocol[job])}
                own = dict(common, **(task_env or {}).get(name, {}))
                if job in serverless:
                    own['TF_CONFIG'] = json.dumps({'cluster': self.addresses,
                                                   'task': {'type': job, 'index': index},
                                                   'rpc_layer': spec['protocol']})
                self.tasks[name] = Task(name, spec, own, os.path.join(self.folder.name, name),
                                        [*places[job][1], python])

    def __enter__(self):
        try:
            for begun in [task.start() for task in self.tasks.values()]:
                begun.wait(self.start_s)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for task in self.tasks.values():
            task.end()
        self.folder.cleanup()

    def begin(self, name, function, *words):
        """Begin a function, of the module of a test, inside the task @name."""
        module = sys.modules[function.__module__].__file__
        return self.tasks[name].begin(os.path.splitext(os.path.basename(module))[0],
                                      function.__name__, words)

    def call(self, name, function, *words, seconds=CALL_S):
        """Run a function inside the task @name, and return its result."""
        return self.begin(name, function, *words).wait(seconds)

    def counters(self, name):
        """weft_tensorflow.counters() of the task @name."""
        return self.call(name, counters)

    def log(self, name):
        """What the task @name has logged so far."""
        return self.tasks[name].log()

    def kill(self, name):
        """Kill a task, and wait until it is gone."""
        self.tasks[name].end()

    def freeze(self, name):
        """Stop a task in the middle of whatever it does."""
        self.tasks[name].process.send_signal(signal.SIGSTOP)

    def thaw(self, name):
        """Let a frozen task go on."""
        self.tasks[name].process.send_signal(signal.SIGCONT)

    def restart(self, name):
        """Kill a task and start it anew at its address."""
        self.kill(name)
        self.tasks[name].start().wait(START_S)

    def pid(self, name):
        """The process of the task @name."""
        return self.tasks[name].process.pid


def made(cls, make):
    """Have @make(folder) compile what the tests of the class @cls need: the path, or None and what
    is missing, without which they are left out.  The folder goes with the class."""
    folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
    cls.addClassCleanup(folder.cleanup)
    path, reason = make(folder.name)
    if not path:
        raise unittest.SkipTest(reason)
    return path


class TwoTasks:
    """For tests of a class that share a parameter server and a worker over one provider."""

    provider = None

    @classmethod
    def setUpClass(cls):
        cls.tasks = Cluster({'ps': 1, 'worker': 1}, provider=cls.provider)
        cls.tasks.__enter__()
        cls.addClassCleanup(cls.tasks.__exit__)


def counters(_server):
    """What the task's process has counted."""
    import weft_tensorflow
    return weft_tensorflow.counters()


def say(number, kind, value):
    """Answer the process of the tests."""
    os.write(1, (ANSWER + json.dumps([number, kind, value]) + '\n').encode())


def run(server, number, module, function, words):
    """Run a function, and answer with what it returns or raises."""
    try:
        say(number, 'ok', getattr(importlib.import_module(module), function)(server, *words))
    except Exception as error:
        traceback.print_exc()
        say(number, type(error).__name__, str(error))


def serve(spec):
    """Be a task, until the standard input ends.  Each function runs in a thread of its own."""
    import tensorflow as tf
    if spec['protocol'] != 'grpc':
        import weft_tensorflow
    sys.modules['cluster'] = sys.modules['__main__']
    server = None
    if spec['server']:
        server = tf.distribute.Server(spec['cluster'], job_name=spec['job'],
                                      task_index=spec['index'], protocol=spec['protocol'])
    say(0, 'ok', spec['job'])
    for line in sys.stdin:
        threading.Thread(target=run, args=(server, *json.loads(line)), daemon=True).start()
    os._exit(0)


if __name__ == '__main__':
    serve(json.loads(sys.argv[1]))
