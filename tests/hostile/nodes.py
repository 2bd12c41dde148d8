# SPDX-License-Identifier: BSD-2-Clause
"""The nodes that are attacked and those that mean well, each a process of the build."""
import os
import queue
import resource
import signal
import subprocess
import tempfile
import threading
import time

import credentials

ANSWER_LIMIT = 60   # a victim's operations end by themselves within 15 s
PULSE_MS = 10
NEW_LIMIT = 15

# Pool memory of the attacked: small, so that what lies beside it shows.
POOL_BYTES = 64 << 20


class Build:
    """A build folder: its programs, and what they need to run."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.is_sanitized = False
        with open(os.path.join(self.folder, 'Makefile')) as makefile:
            for line in makefile:
                if line.startswith('SANITIZE_FLAGS = -fsanitize'):
                    self.is_sanitized = True
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(('WEFT_', 'TF_RDMA_', 'FI_'))}
        self.environment = dict(kept, LD_LIBRARY_PATH=os.path.join(self.folder, '.libs'))
        if self.is_sanitized:
            # Freed memory is kept for a while to find its late users; not for ever, for RSS counts.
            self.environment['ASAN_OPTIONS'] = \
                'quarantine_size_mb=32:allocator_release_to_os_interval_ms=500'

    def program(self, name):
        """The path of a program, not of libtool's script around it."""
        folder, base = os.path.split(os.path.join(self.folder, name))
        inner = os.path.join(folder, '.libs', base)
        return inner if os.path.exists(inner) else os.path.join(folder, base)

    def make(self):
        """Build what the lane needs, where that is missing."""
        goals = ['weft', 'tests/hostile/victim', 'tests/hostile/rail.la']
        if not all(os.path.exists(os.path.join(self.folder, goal)) for goal in goals):
            subprocess.run(['make', '-s', '-C', self.folder, 'generated'] + goals, check=True,
                           stdout=subprocess.DEVNULL)


class Node:
    """A process of tests/hostile/victim, and what its standard input has it do."""

    def __init__(self, build, name='node', prefix=(), files_max=None, **settings):
        def limit():
            if files_max:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))

        environment = dict(build.environment, WEFT_SHM='no', WEFT_SECURITY='open',
                           WEFT_POOL_BYTES=str(POOL_BYTES), WEFT_STALL='0')
        environment.update(credentials.settings(), **settings)
        self.errors = tempfile.TemporaryFile('w+', errors='replace')
        self.process = subprocess.Popen(
            list(prefix) + [build.program('tests/hostile/victim'), name], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
            preexec_fn=limit, text=True, errors='replace')
        self.lines = queue.Queue()
        self.exit = None
        threading.Thread(target=self.read, daemon=True).start()
        self.address = self.hear(30)
        self.pid = self.process.pid

    def read(self):
        """Take what the process prints, in a thread of its own."""
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def hear(self, limit=ANSWER_LIMIT):
        """The next line it prints, or '' when there is none in time."""
        try:
            return self.lines.get(timeout=limit) or ''
        except queue.Empty:
            return ''

    def tell(self, *words):
        """Give it a command whose answer is heard later."""
        try:
            self.process.stdin.write(' '.join(str(word) for word in words) + '\n')
            self.process.stdin.flush()
        except (OSError, ValueError):   # it has ended, or was stopped
            pass

    def ask(self, *words, limit=ANSWER_LIMIT):
        """Give it a command; its answer."""
        self.tell(*words)
        return self.hear(limit)

    def is_alive(self):
        """Does the process run?"""
        return self.process.poll() is None

    def rss(self):
        """Bytes of memory that are resident."""
        try:
            with open('/proc/%d/statm' % self.pid) as statm:
                return int(statm.read().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def files(self):
        """Descriptors that are open."""
        try:
            return len(os.listdir('/proc/%d/fd' % self.pid))
        except OSError:
            return 0

    def cpu(self):
        """Seconds of processor time."""
        try:
            with open('/proc/%d/stat' % self.pid) as stat:
                words = stat.read().rsplit(')', 1)[1].split()
            return (int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK')
        except (OSError, IndexError):
            return 0.0

    def stop(self, limit=30):
        """End it as a program ends; why that was no good end, or ''."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.exit = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            return 'it did not close within %d s' % limit
        if not self.exit:
            return ''
        return 'it ended with %s%s' % (self.exit, self.report())

    def report(self):
        """The line of a sanitizer's report that says what it found, else the last one."""
        self.errors.seek(0)
        line = ''
        for line in self.errors:
            if 'ERROR: ' in line or 'runtime error' in line:
                break
        return ': ' + line.strip()[:200]


class Pulse:
    """The healthy client: connected before the attack, it pings all the time."""

    def __init__(self, build, server, **settings):
        self.node = Node(build, 'healthy', **settings)
        self.samples = []   # of (when, microseconds)
        self.failures = []
        self.node.tell('pulse', server.address, PULSE_MS)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        """Note each ping's time, in a thread of its own."""
        while True:
            line = self.node.hear(3600)
            words = line.split(None, 3)
            if not line:
                return
            if len(words) >= 3 and words[1] == 'OK':
                self.samples.append((time.monotonic(), float(words[2])))
            else:
                self.failures.append(line)

    def p99_ms(self, begin, end):
        """The 99th percentile and the most, in ms.

        A ping that takes long stands for all those that were due meanwhile.
        """
        found = []
        for when, us in list(self.samples):
            if begin <= when <= end:
                found += [us / 1e3] * max(1, int(us / 1e3 / PULSE_MS))
        last = max([when for when, _ in self.samples] or [begin])
        silent = (end - last) * 1e3
        if silent > 2 * PULSE_MS:
            found += [silent] * int(silent / PULSE_MS)
        found.sort()
        return (found[len(found) * 99 // 100], found[-1]) if found else (float('inf'),) * 2

    def stop(self):
        """End the client."""
        return self.node.stop()


class Newcomers:
    """A new honest client each second, until it is stopped."""

    def __init__(self, build, server, **settings):
        self.build, self.address = build, server.address
        self.settings = dict(WEFT_SHM='no', WEFT_CONNECT_TIMEOUT='%ds' % NEW_LIMIT)
        self.settings.update(credentials.settings(), **settings)
        self.times = []     # seconds that each took, those that were served
        self.failures = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def come(self):
        """One client: it connects, pings and leaves."""
        begun = time.monotonic()
        process = subprocess.Popen(
            [self.build.program('weft'), 'ping', '-c', '1', self.address],
            env=dict(self.build.environment, **self.settings), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors='replace')
        try:
            text, _ = process.communicate(timeout=2 * NEW_LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            text, _ = process.communicate()
        if process.returncode:
            self.failures.append('after %.1f s: %s' % (time.monotonic() - begun,
                                                       text.strip()[-150:]))
        else:
            self.times.append(time.monotonic() - begun)

    def run(self):
        """Send one each second, in a thread of its own."""
        while not self.ended.is_set():
            begun = time.monotonic()
            self.come()
            self.ended.wait(max(0, begun + 1 - time.monotonic()))

    def stop(self):
        """Wait for the last one."""
        self.ended.set()
        self.thread.join(3 * NEW_LIMIT)


class Watch:
    """The attacked node's memory and descriptors, looked at all the time."""

    PAUSE = 0.05

    def __init__(self, server, rss_limit):
        self.server, self.rss_limit = server, rss_limit
        self.rss_before, self.files_before = server.rss(), server.files()
        self.rss_most, self.files_most = self.rss_before, self.files_before
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """Look, in a thread of its own."""
        while not self.ended.wait(self.PAUSE):
            self.rss_most = max(self.rss_most, self.server.rss())
            self.files_most = max(self.files_most, self.server.files())

    def is_over(self):
        """Has the node taken far more memory than it may?  Then the attack has shown enough."""
        return self.rss_most > self.rss_before + 3 * self.rss_limit

    def stop(self):
        """Look no more."""
        self.ended.set()
        self.thread.join()
