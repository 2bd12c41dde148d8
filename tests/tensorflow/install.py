# SPDX-License-Identifier: BSD-2-Clause
"""TensorFlow in a virtual environment that is kept, and the plug-in beside a build of weft, for
tests, benchmarks and the demo."""
import contextlib
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.environ.get('WEFT_CACHE') or os.path.expanduser('~/.cache/weft')


# TensorFlow's headers lay some classes out otherwise where AddressSanitizer is known to be.
SANITIZE = '-g -fsanitize=address -fno-omit-frame-pointer -U__SANITIZE_ADDRESS__'


class Missing(Exception):
    """TensorFlow cannot be had here; the message says why."""


class Failed(Exception):
    """The plug-in does not build; the message has the end of what was said."""


def sh(command, log, **options):
    """Run @command, whose output goes to @log.  Returns whether it ended well."""
    with open(log, 'ab') as out:
        return not subprocess.run(command, check=False, stdin=subprocess.DEVNULL, stdout=out,
                                  stderr=subprocess.STDOUT, **options).returncode


def last_line(log):
    """The last line of a log that says something."""
    with open(log, encoding='utf-8', errors='replace') as text:
        lines = [line.strip() for line in text if line.strip()]
    return lines[-1] if lines else 'it says nothing'


@contextlib.contextmanager
def alone(folder):
    """One process at a time makes what is in @folder."""
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with open(folder + '.lock', 'wb') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def environment(release=None):
    """The path of a Python with TensorFlow @release; without one, the newest of PyPI."""
    folder = os.path.join(CACHE, 'tensorflow-%s-python%d.%d' % (release or 'newest',
                                                                *sys.version_info[:2]))
    python = os.path.join(folder, 'bin', 'python')
    with alone(folder):
        if os.path.exists(os.path.join(folder, 'complete')):
            return python
        log = folder + '.log'
        shutil.rmtree(folder, ignore_errors=True)
        open(log, 'wb').close()
        try:
            venv.create(folder, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing('no virtual environment can be made (Debian: apt-get install '
                          'python3-venv): %s' % error) from error
        what = 'tensorflow-cpu' + ('==' + release if release else '')
        if not sh([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', what,
                   'setuptools', 'wheel'], log):
            raise Missing('%s cannot be installed: %s' % (what, last_line(log)))
        open(os.path.join(folder, 'complete'), 'wb').close()
        return python


def package(build, folder):
    """A pkg-config file for the libweft of @build, which need not be installed.  Its folder."""
    with open(os.path.join(build, 'src', 'weft.pc'), encoding='ascii') as text:
        version = re.search(r'^Version: (.*)$', text.read(), re.MULTILINE).group(1)
    library = os.path.join(os.path.abspath(build), '.libs')
    with open(os.path.join(folder, 'weft.pc'), 'w', encoding='ascii') as out:
        out.write('libdir=%s\nName: weft\nDescription: a build of weft\nVersion: %s\n'
                  'Requires: libprotobuf-c\nLibs: -L${libdir} -lweft\nCflags: -I%s\n' %
                  (library, version, os.path.join(TOP, 'include')))
    return folder


def sanitizer():
    """The environment of a process that loads a plug-in with AddressSanitizer.  TensorFlow has
    none, and frees what it takes in ways of its own."""
    compiler = os.environ.get('CXX') or 'g++'
    libraries = [subprocess.check_output([compiler, '-print-file-name=' + name], text=True).strip()
                 for name in ('libasan.so', 'libstdc++.so.6')]
    return {'LD_PRELOAD': ' '.join(libraries),
            'ASAN_OPTIONS': 'detect_leaks=0:detect_odr_violation=0:alloc_dealloc_mismatch=0:'
                            'new_delete_type_mismatch=0:quarantine_size_mb=1'}


def digest(python, build):
    """A number that changes with the plug-in's sources, what they include, and TensorFlow."""
    files = glob.glob(os.path.join(TOP, 'src', 'tensorflow', '**'), recursive=True)
    files += glob.glob(os.path.join(TOP, 'include', 'weft', '*.h'))
    made = hashlib.sha256((python + os.path.abspath(build)).encode())
    for path in sorted(path for path in files if os.path.isfile(path)):
        with open(path, 'rb') as content:
            made.update(path.encode() + content.read())
    return made.hexdigest()


def plug_in(python, build, sanitize=False):
    """Build and install the plug-in, unless it is there.  Its folder, for PYTHONPATH."""
    work = os.path.join(os.path.abspath(build), 'tests',
                        'tensorflow' + ('-sanitized' if sanitize else ''))
    with alone(work):
        stamp, now = os.path.join(work, 'built'), digest(python, build)
        if os.path.exists(stamp):
            with open(stamp, encoding='ascii') as text:
                if text.read() == now:
                    return os.path.join(work, 'site')
        shutil.rmtree(work, ignore_errors=True)
        os.makedirs(work)
        build_plug_in(python, build, work, SANITIZE if sanitize else '')
        with open(stamp, 'w', encoding='ascii') as out:
            out.write(now)
        return os.path.join(work, 'site')


def build_plug_in(python, build, work, flags):
    """Build the plug-in from a copy of its sources, which may be read-only, as pip needs it."""
    copy, log = os.path.join(work, 'source'), os.path.join(work, 'build.log')
    shutil.copytree(os.path.join(TOP, 'src', 'tensorflow'), copy)
    for folder, _, _ in os.walk(copy):
        os.chmod(folder, 0o755)
    env = dict(os.environ, PKG_CONFIG_PATH=package(build, work), CXXFLAGS=flags, LDFLAGS=flags)
    if not sh([python, '-m', 'pip', 'install', '-v', '--disable-pip-version-check', '--no-deps',
               '--no-build-isolation', '--no-index', '--target', os.path.join(work, 'site'),
               copy], log, env=env):
        with open(log, encoding='utf-8', errors='replace') as text:
            last = ''.join(text.readlines()[-40:])
        raise Failed('%sthe plug-in cannot be built, see %s' % (last, log))
