# SPDX-License-Identifier: BSD-2-Clause
"""Attacks by the host itself and by its other users: /dev/shm, /proc, uids, what is missing."""
import os
import subprocess

from attack import Failure, Skip, attack
from nodes import Node

# A mount namespace of its own, in which $1 is done before the rest is executed.
OWN_MOUNTS = ('unshare', '-m', 'sh', '-c', 'eval "$0" || exit 99; exec "$@"')
OWN_NET = ('unshare', '-n', 'sh', '-c', 'eval "$0" || exit 99; exec "$@"')
NOBODY = 65534
BIG = '@3000000'
KEYLESS = dict(modes=('open',), why='with a key the kernel is not asked whose process dials')


def need(*command):
    """Skip where a command does not work, as where namespaces may not be made."""
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)
    except OSError as error:
        raise Skip(str(error)) from error
    if result.returncode:
        raise Skip('%s: %s' % (command[0], result.stdout.strip()[-100:]))


def inside(node, *kinds):
    """What runs a command in a node's namespaces."""
    return ('nsenter', '-t', str(node.pid)) + kinds


def served(field, first, second):
    """A big tensor from the second node to the first arrives."""
    for node in (first, second):
        if not node.address:
            raise Failure('a node does not open: ' + node.stop())
    second.tell('send', first.address, 3, 'big', BIG)
    first.ask('expect', 3, 'big')
    taken, sent = first.ask('take'), second.hear()
    for node in (first, second):
        if not node.is_alive():
            raise Failure('a node died: ' + node.stop())
    field.expect('take OK' in taken and sent.startswith('send OK'),
                 'a tensor: %r, %r' % (sent, taken))


@attack('a node that opens beside a full /dev/shm serves', seconds=20, newcomers=False)
def full_shm(field):
    need('unshare', '-m', 'true')
    for limit in ('4k', '300k', '4m', '64k', '1m')[:field.size(5, 3)]:
        prefix = OWN_MOUNTS + ('mount -t tmpfs -o size=%s none /dev/shm' % limit,)
        first = field.honest('first', prefix=prefix, WEFT_SHM='yes')
        second = field.honest('second', prefix=inside(first, '-m'), WEFT_SHM='yes')
        served(field, first, second)
        for node in (second, first):
            field.expect(not node.stop(), 'a node ends badly with %s' % limit)


@attack('a node goes on when /dev/shm fills up beneath it', seconds=20, newcomers=False)
def filling_shm(field):
    need('unshare', '-m', 'true')
    for kilobytes in (2048, 65536, 8192)[:field.size(3, 2)]:
        prefix = OWN_MOUNTS + ('mount -t tmpfs -o size=%dk none /dev/shm' % kilobytes,)
        first = field.honest('first', prefix=prefix, WEFT_SHM='yes')
        subprocess.run(inside(first, '-m') + ('sh', '-c', 'cat /dev/zero >/dev/shm/full'),
                       stderr=subprocess.DEVNULL)
        second = field.honest('second', prefix=inside(first, '-m'), WEFT_SHM='yes')
        served(field, first, second)
        for node in (second, first):
            field.expect(not node.stop(), 'a node ends badly with %d KiB' % kilobytes)


@attack('a read-only /dev/shm keeps no node from opening', seconds=20, newcomers=False)
def readonly_shm(field):
    need('unshare', '-m', 'true')
    prefix = OWN_MOUNTS + ('mount -t tmpfs -o ro none /dev/shm',)
    first = field.honest('first', prefix=prefix, WEFT_SHM='yes')
    served(field, first, field.honest('second', prefix=inside(first, '-m'), WEFT_SHM='yes'))


@attack('a host without /proc keeps no node from opening', seconds=20, newcomers=False)
def no_proc(field):
    need('unshare', '-m', 'true')
    prefix = OWN_MOUNTS + ('mount -t tmpfs none /proc',)
    first = field.honest('first', prefix=prefix, WEFT_SHM='yes')
    served(field, first, field.honest('second', prefix=inside(first, '-m'), WEFT_SHM='yes'))


@attack('a host that has no IPv4 keeps no node from opening', seconds=20, newcomers=False)
def only_ipv6(field):
    need('unshare', '-n', 'ip', 'link', 'set', 'lo', 'up')
    prefix = OWN_NET + ('ip link set lo up && ip -4 addr flush dev lo',)
    first = field.honest('first', prefix=prefix)
    served(field, first, field.honest('second', prefix=inside(first, '-n')))


def ping_as(build, uid, address, security=''):
    """What becomes of a ping by a user over loopback, in the mode that is given."""
    return subprocess.run(
        [build.program('weft'), 'ping', '-c', '1', address],
        env=dict(build.environment, WEFT_CONNECT_TIMEOUT='3s',
                 WEFT_SECURITY=security), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=60,
        preexec_fn=lambda: os.setresuid(uid, uid, uid) if uid else None)


@attack('a node on loopback takes none but its own user, unless it is open', seconds=20,
        newcomers=False, **KEYLESS)
def other_user(field):
    if os.geteuid():
        raise Skip('only root has other users')
    closed = field.honest('closed', WEFT_SECURITY='')
    mine = ping_as(field.build, 0, closed.address)
    field.expect(not mine.returncode, 'its own user is refused: ' + mine.stdout.strip()[-200:])
    try:
        other = ping_as(field.build, NOBODY, closed.address)
    except OSError as error:
        raise Skip('another user can not run the build: %s' % error) from error
    field.expect(other.returncode, 'another user is served')
    opened = field.honest('open')
    other = ping_as(field.build, NOBODY, opened.address, 'open')
    field.expect(not other.returncode, 'with open another user is refused: ' +
                 other.stdout.strip()[-200:])


@attack('a node on loopback dials no node of another user, unless it is open', seconds=20,
        newcomers=False, **KEYLESS)
def other_server(field):
    if os.geteuid():
        raise Skip('only root has other users')
    need('setpriv', '--reuid', str(NOBODY), '--clear-groups', 'true')
    prefix = ('setpriv', '--reuid', str(NOBODY), '--clear-groups')
    foreign = Node(field.build, 'foreign', prefix)
    try:
        if not foreign.address:
            raise Skip('another user can not run the build: ' + foreign.stop())
        result = ping_as(field.build, 0, foreign.address)
        field.expect(result.returncode, "another user's node is taken for a peer")
    finally:
        foreign.stop()
