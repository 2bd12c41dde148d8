# SPDX-License-Identifier: BSD-2-Clause
"""Programs in C of this folder that speak weft.tensorflow.Tensors."""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(os.path.dirname(HERE), '..', 'src', 'tensorflow')


def build(folder, name):
    """Compile the program @name into @folder.  Its path, or None and what is missing."""
    for program in ('cc', 'protoc-c', 'pkg-config'):
        if not shutil.which(program):
            return None, 'there is no ' + program
    flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'weft'], check=False, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if flags.returncode:
        return None, flags.stderr.strip()
    flags = flags.stdout.split()
    rpath = ['-Wl,-rpath,' + flag[2:] for flag in flags if flag.startswith('-L')]
    path = os.path.join(folder, name)
    subprocess.run(['protoc-c', '-I' + SOURCES, '--c_out=' + folder,
                    os.path.join(SOURCES, 'tensors.proto')], check=True)
    subprocess.run(['cc', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-O1', '-I' + folder,
                    os.path.join(HERE, name + '.c'), os.path.join(folder, 'tensors.pb-c.c'),
                    '-o', path, *flags, *rpath], check=True)
    return path, ''
