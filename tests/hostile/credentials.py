# SPDX-License-Identifier: BSD-2-Clause
"""The mode of weft_security(7) that the nodes and the attacker share, and the key for it."""
import functools
import os
import tempfile

import seals

MODES = ('open', 'keyed', 'sealed')
KEYED = MODES[1:]
SEALED = MODES[2:]
KEY_BYTES = 32

mode = 'open'


def use(name):
    """Be in this mode from now on."""
    global mode
    mode = name


def take_mode(words):
    """Take --mode and its word out of the words; the mode, or '' where that is none."""
    if '--mode' not in words:
        return mode
    at = words.index('--mode')
    found = words[at + 1] if at + 1 < len(words) else ''
    del words[at:at + 2]
    return found if found in MODES else ''


def is_keyed():
    """Does the door speak TLS, and are frames sealed?"""
    return mode != 'open'


def is_sealed():
    """Do bodies go in parcels?"""
    return mode == 'sealed'


@functools.cache
def key_folder():
    """A folder, gone with this process, with a key of the attacked and its clients."""
    folder = tempfile.TemporaryDirectory(prefix='weft-hostile.')
    with open(os.open(os.path.join(folder.name, 'key'), os.O_WRONLY | os.O_CREAT, 0o400),
              'wb') as out:
        out.write(os.urandom(KEY_BYTES))
    return folder


def key_path():
    """The key file."""
    return os.path.join(key_folder().name, 'key')


@functools.cache
def psk():
    """The identity and the secret that the key file stands for in TLS."""
    with open(key_path(), 'rb') as key:
        return seals.psk(key.read())


def settings():
    """What the environment of nodes says of the mode, where that has a key."""
    return dict(WEFT_SECURITY=mode, WEFT_KEY_FILE=key_path()) if is_keyed() else {}
