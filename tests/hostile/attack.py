# SPDX-License-Identifier: BSD-2-Clause
"""An attack as a test: what surrounds it, and what is asserted of the attacked.

Stated figures, each with its reason:
"""
import os
import time

import credentials
import door
from nodes import Newcomers, Node, POOL_BYTES, Pulse, Watch
from rail import Broken

MIB = 1 << 20

# What a node keeps on behalf of one peer, WEFT_PEER_BYTES of weft_options(7).
PEER_BYTES = 64 * MIB
# What it keeps on behalf of all strangers together, WEFT_STRANGERS_BYTES: tensors that came whole
# from strangers that are gone count, and stay until their step's time is over.
STRANGERS_BYTES = 512 * MIB
# Beside the ledger: malloc's own bytes around small pieces, buffers of a connection.
SLACK = 32 * MIB
# Under ASan a freed piece stays in quarantine, and each has red zones and a shadow.
SANITIZED_RSS_FACTOR = 3

P99_MS = 50
SANITIZED_P99_FACTOR = 10
BUSY_P99_FACTOR = 5     # on a machine where the same ping is slow before the attack
BUSY_MS = 5

BACK_LIMIT = 10         # seconds until descriptors and memory are back
BACK_FILES = 3          # a newcomer that is just leaving
WARM_SECONDS = 0.6
MEASURED_SECONDS = 1    # at least so many, for a percentile of a hundred pings
SERVED_LIMIT = 4        # seconds until a new client has its answer, its start included
SLOW_SERVED_FACTOR = 2  # with sanitizers, or on a busy machine

ATTACKS = []


class Skip(Exception):
    """The attack can't be made here; the reason is its text."""


class Failure(Exception):
    """What the attack was to be withstood, and was not."""


class Attack:
    """One test: a function that attacks, and what surrounds it."""

    def __init__(self, function, sentence, **options):
        self.function, self.sentence = function, sentence
        self.seconds = options.pop('seconds', 4)
        quick = options.pop('quick', True)
        self.is_quick = bool(quick)
        self.quick_seconds = self.seconds / 2 if isinstance(quick, bool) else quick
        self.files_max = options.pop('files_max', None)
        self.quota = options.pop('quota', PEER_BYTES)
        self.left = options.pop('left', 0)
        self.pool = POOL_BYTES if options.pop('pool', False) else 0
        self.prefix = options.pop('prefix', ())
        self.newcomers = options.pop('newcomers', True)
        self.modes = options.pop('modes', credentials.MODES)
        self.why = options.pop('why', '')
        self.settings = options
        self.name = function.__name__

    def mode(self, asked):
        """The mode to make it in where this one is asked for.  Skip: it has no meaning there."""
        if asked in self.modes:
            return asked
        if asked == 'open':     # the lane without a mode has all that there is
            return self.modes[-1]
        raise Skip(self.why or 'it is made in the mode %s' % self.modes[-1])


def attack(sentence, **options):
    """Register a function as an attack.

    seconds: how long it may go on; quick: --quick makes it, for so many seconds,
    True: half as long;
    files_max: RLIMIT_NOFILE of the attacked; quota: bytes of memory that it may
    take beside the pool; left: bytes that it may keep for those that have gone,
    as it does with tensors that came whole; pool: it uses the pool, which is
    beside both and does not shrink; prefix: a command around the
    attacked; newcomers: False where no new client is expected; modes: those of
    weft_security(7) in which it has a meaning, and why: why not in the others;
    others: the environment of the attacked.
    """
    def keep(function):
        ATTACKS.append(Attack(function, sentence, **options))
        return function
    return keep


class Field:
    """What an attack sees: the attacked, the time, and places for honest bystanders."""

    def __init__(self, build, server, watch, seconds, quick):
        self.build, self.server, self.watch = build, server, watch
        self.address = server.address
        self.quick = quick
        self.until = time.monotonic() + seconds
        self.bystanders = []

    def on(self):
        """May the attack go on?"""
        return time.monotonic() < self.until and self.server.is_alive() and \
            not self.watch.is_over()

    def in_time(self):
        """Is the attack's time not over?  For those that need to go beyond the memory limit."""
        return time.monotonic() < self.until and self.server.is_alive()

    def size(self, whole, quick):
        """How much: the whole, or what fits the quick stage."""
        return quick if self.quick else whole

    def honest(self, name, **settings):
        """One more honest node."""
        node = Node(self.build, name, **settings)
        self.bystanders.append(node)
        return node

    def expect(self, holds, sentence):
        """Fail with a sentence unless it holds."""
        if not holds:
            raise Failure(sentence)


class Outcome:
    """What came of an attack: failures, and one line of figures."""

    def __init__(self):
        self.failures = []
        self.skipped = ''
        self.figures = ''


def wait_back(server, watch, left, outcome):
    """Wait until descriptors and memory are what they were; the seconds that took."""
    begun = time.monotonic()
    rss_limit = watch.rss_before + left
    while server.is_alive():
        server.ask('trim', limit=BACK_LIMIT)
        files, rss = server.files(), server.rss()
        if files <= watch.files_before + BACK_FILES and rss <= rss_limit:
            return time.monotonic() - begun
        if time.monotonic() - begun > BACK_LIMIT:
            break
        time.sleep(0.1)
    if server.files() > watch.files_before + BACK_FILES:
        outcome.failures.append('%d descriptors are not back after %d s' %
                                (server.files() - watch.files_before, BACK_LIMIT))
    if server.rss() > rss_limit:
        outcome.failures.append('%d MiB are not back after %d s' %
                                ((server.rss() - watch.rss_before) // MIB, BACK_LIMIT))
    return time.monotonic() - begun


def is_busy(calm_ms):
    """Is this machine too loaded to judge by the figure of a calm one?"""
    return calm_ms > BUSY_MS or os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)


def judge_p99(build, pulse, calm_ms, begin, end, outcome):
    """Hold the healthy client's pings against the limit; a phrase with the figures."""
    p99, most = pulse.p99_ms(begin, end)
    limit = P99_MS * (SANITIZED_P99_FACTOR if build.is_sanitized else 1) * \
        (BUSY_P99_FACTOR if is_busy(calm_ms) else 1)
    if p99 > limit:
        outcome.failures.append('p99 of the healthy client is %.0f ms, more than %d' %
                                (p99, limit))
    if pulse.failures:
        outcome.failures.append('the healthy client: ' + pulse.failures[0])
    return 'p99 %.1f ms (most %.0f)' % (p99, most)


def judge_newcomers(build, newcomers, calm_ms, outcome):
    """Hold that new clients were served; a phrase with the figures."""
    slowest = max(newcomers.times or [0])
    limit = SERVED_LIMIT * (SLOW_SERVED_FACTOR
                            if build.is_sanitized or is_busy(calm_ms) else 1)
    if slowest > limit:
        outcome.failures.append('a new client was served after %.1f s, more than %d' %
                                (slowest, limit))
    if newcomers.failures:
        outcome.failures.append('%d of %d new clients were not served: %s' % (
            len(newcomers.failures), len(newcomers.failures) + len(newcomers.times),
            newcomers.failures[0]))
    return '%d new clients (most %.1f s)' % (len(newcomers.times), slowest)


def make(a, field, outcome):
    """Run the attack's function; a phrase of what it did."""
    made = door.Door.made
    try:
        return a.function(field) or ''
    except Skip as skip:
        outcome.skipped = str(skip)
    except Failure as failure:
        outcome.failures.append(str(failure))
    except (Broken, door.Closed, OSError) as error:
        if door.Door.made == made:
            outcome.failures.append('the attack has not begun: %s: %s' %
                                    (type(error).__name__, error))
        # The node may end a link of an attacker at any time: that is its defence.
        return 'ended by %s: %s' % (type(error).__name__, error)
    return ''


def play(a, build, quick, mode):
    """Make one attack in a mode; its Outcome."""
    outcome = Outcome()
    try:
        credentials.use(a.mode(mode))
    except Skip as skip:
        outcome.skipped = str(skip)
        return outcome
    seconds = a.quick_seconds if quick else a.seconds
    factor = SANITIZED_RSS_FACTOR if build.is_sanitized else 1
    quota = (a.quota + a.pool + SLACK) * factor
    server = Node(build, 'server', a.prefix, a.files_max, **a.settings)
    if not server.address:
        outcome.failures.append('the node does not open: %s' % server.stop())
        return outcome
    shm = a.settings.get('WEFT_SHM', 'no')
    pulse = Pulse(build, server, WEFT_SHM=shm)
    newcomers = Newcomers(build, server, WEFT_SHM=shm) if a.newcomers else None
    time.sleep(WARM_SECONDS * (1.5 if build.is_sanitized else 1))
    begin = time.monotonic()
    calm_ms = pulse.p99_ms(begin - WARM_SECONDS / 2, begin)[0]
    watch = Watch(server, quota)
    cpu = server.cpu()
    field = Field(build, server, watch, seconds, quick)

    said = make(a, field, outcome)
    time.sleep(max(0, begin + MEASURED_SECONDS - time.monotonic()))
    end = time.monotonic()
    cpu = server.cpu() - cpu
    if newcomers:
        newcomers.stop()
    figures = [judge_p99(build, pulse, calm_ms, begin, end, outcome)]
    if newcomers:
        figures.append(judge_newcomers(build, newcomers, calm_ms, outcome))
    for node in field.bystanders:
        node.stop()
    back = wait_back(server, watch, (a.left + a.pool + SLACK) * factor, outcome)
    watch.stop()
    growth = watch.rss_most - watch.rss_before
    if growth > quota:
        outcome.failures.append('memory grew by %d MiB, the limit is %d' %
                                (growth // MIB, quota // MIB))
    pulse.stop()
    ended = server.stop()
    if ended:
        outcome.failures.append('the node: ' + ended)
    outcome.figures = 'RSS +%d of %d MiB, descriptors +%d, %s, processor %.1f s of %.1f, ' \
        'back in %.1f s; %s' % (growth // MIB, quota // MIB,
                                watch.files_most - watch.files_before, ', '.join(figures),
                                cpu, end - begin, back, said)
    return outcome
