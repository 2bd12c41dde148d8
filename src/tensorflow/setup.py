# SPDX-License-Identifier: BSD-2-Clause
"""Build the plug-in for the TensorFlow that is installed in this Python.

libweft and protobuf-c are found by pkg-config, protoc-c makes the service's code.  The compiler is
$CXX, else g++ or c++.
"""
import json
import os
import shutil
import subprocess
import sys

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = 'libweft_tensorflow.so'
NEED = 'weft-tensorflow needs %s'

# TensorFlow is asked in a process of its own: pip's build isolation hides what is installed.
ASK = '''
import json, tensorflow
print(json.dumps({'version': tensorflow.__version__, 'lib': tensorflow.sysconfig.get_lib(),
                  'include': tensorflow.sysconfig.get_include(),
                  'compile': tensorflow.sysconfig.get_compile_flags()}))
'''


def need(what):
    """End the build: it needs @what."""
    sys.exit(NEED % what)


def tensorflow():
    """What the installed TensorFlow says of itself."""
    env = {k: v for k, v in os.environ.items() if k not in ('PYTHONPATH', 'PYTHONNOUSERSITE')}
    env.update(TF_CPP_MIN_LOG_LEVEL='3', CUDA_VISIBLE_DEVICES='')
    asked = subprocess.run([sys.executable, '-c', ASK], env=env, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, universal_newlines=True, check=False)
    if asked.returncode:
        need('TensorFlow to be installed first, in %s (pip install tensorflow): %s' %
             (sys.prefix, (asked.stderr.strip() or 'no reason given').splitlines()[-1]))
    return json.loads(asked.stdout.splitlines()[-1])


def package(*options):
    """Words that pkg-config gives for libweft."""
    try:
        return subprocess.check_output(['pkg-config', *options, 'weft'], stderr=subprocess.STDOUT,
                                       universal_newlines=True).split()
    except FileNotFoundError:
        return need('pkg-config')
    except subprocess.CalledProcessError:
        return need('weft to be installed: pkg-config does not find weft.pc '
                    '(PKG_CONFIG_PATH=PREFIX/lib/pkgconfig)')


def program(names, what):
    """The path of the first program of @names that there is."""
    for name in names:
        if name and shutil.which(name):
            return shutil.which(name)
    return need(what)


def run(command, **options):
    """Run @command, or end the build."""
    print(' '.join(command), flush=True)
    if subprocess.run(command, check=False, **options).returncode:
        sys.exit('weft-tensorflow: %s failed' % os.path.basename(command[0]))


def version():
    """The version of weft, which is the plug-in's."""
    return package('--modversion')[0]


def system_folders():
    """Folders where the dynamic loader looks by itself."""
    return ('/lib', '/usr/lib', '/lib64', '/usr/lib64')


def link_flags(tf):
    """What to link with, in the order in which the dynamic loader is to look for symbols."""
    libdir = package('--variable=libdir')[0]
    rpath = [] if libdir in system_folders() else ['-Wl,-rpath,' + libdir]
    # TensorFlow exports a zstd of its own, which libweft's calls must not be bound to; and the
    # framework's library comes before the other one, which has some of its functions again.
    zstd = ['-Wl,--no-as-needed', '-l:libzstd.so.1', '-Wl,--as-needed']
    names = sorted(name for name in os.listdir(tf['lib'])
                   if name.startswith(('libtensorflow_framework.so.', 'libtensorflow_cc.so.')) and
                   name.count('.') == 2)
    own = ['-l:' + name for name in reversed(names)]
    if len(own) != 2:
        need('a TensorFlow with libtensorflow_framework.so and libtensorflow_cc.so in %s' %
             tf['lib'])
    return package('--libs') + rpath + zstd + ['-L' + tf['lib']] + own


def compile_flags(tf):
    """Flags that TensorFlow's headers and ABI ask for; --std and the ABI are among them."""
    include = [flag for flag in tf['compile'] if not flag.startswith('-I')]
    folders = ['', 'external/com_github_grpc_grpc/include', 'external/farmhash_archive/src']
    for folder in folders:
        include += ['-isystem', os.path.join(tf['include'], folder)]
    return ['-O2', '-DNDEBUG', '-fPIC', '-fvisibility=hidden', '-Wall',
            '-Wno-deprecated-declarations', '-Wno-sign-compare', *include, *package('--cflags')]


class Build(build_py):
    """Python's files, and beside them the library and what it was built against."""

    def run(self):
        super().run()
        made = os.path.join(self.build_lib, 'weft_tensorflow')
        os.makedirs(made, exist_ok=True)
        tf = tensorflow()
        self.build_library(tf, os.path.join(made, LIBRARY))
        with open(os.path.join(made, '_built.py'), 'w', encoding='ascii') as out:
            out.write('# Written by setup.py.\nTENSORFLOW = %r\nVERSION = %r\nLIBWEFT = %r\n' %
                      (tf['version'], version(),
                       os.path.join(package('--variable=libdir')[0], 'libweft.so.0')))

    def build_library(self, tf, library):
        """Compile and link @library."""
        cc = program([os.environ.get('CC'), 'gcc', 'cc'], 'a C compiler')
        cxx = program([os.environ.get('CXX'), 'g++', 'c++'], 'a C++ compiler')
        protoc = program(['protoc-c'], 'protoc-c (Debian: protobuf-c-compiler)')
        work = os.path.join(os.path.abspath(self.get_finalized_command('build').build_temp),
                            'objects')
        os.makedirs(work, exist_ok=True)
        run([protoc, '-I' + HERE, '--c_out=' + work, os.path.join(HERE, 'tensors.proto')])
        objects = [os.path.join(work, 'tensors.pb-c.o')]
        run([cc, '-O2', '-fPIC', '-fvisibility=hidden', *package('--cflags'), '-c',
             os.path.join(work, 'tensors.pb-c.c'), '-o', objects[0]])
        # TensorFlow's headers take most of the time: as one unit they are read once, not once for each file.
        unit = os.path.join(work, 'plug_in')
        with open(unit + '.cc', 'w', encoding='utf-8') as out:
            for name in sorted(os.listdir(HERE)):
                if name.endswith('.cc'):
                    out.write('#include "%s"\n' % os.path.join(HERE, name))
        objects.append(unit + '.o')
        run([cxx, *compile_flags(tf), *os.environ.get('CXXFLAGS', '').split(), '-I' + work,
             '-c', unit + '.cc', '-o', unit + '.o'])
        run([cxx, '-shared', '-Wl,-z,defs', *objects, '-o', library, *link_flags(tf),
             *os.environ.get('LDFLAGS', '').split()])


class Binary(Distribution):
    """A distribution whose wheel is for this Python and machine alone."""

    def has_ext_modules(self):
        return True


setup(version=version(), cmdclass={'build_py': Build}, distclass=Binary)
