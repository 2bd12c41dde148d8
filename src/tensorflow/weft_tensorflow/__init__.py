# SPDX-License-Identifier: BSD-2-Clause
"""TensorFlow over weft: after `import weft_tensorflow` there is the protocol "grpc+weft".

    server = tf.distribute.Server(cluster, job_name='ps', task_index=0, protocol='grpc+weft')

or rpc_layer='grpc+weft' of a cluster resolver.  Tensors between tasks that both have the plug-in go
over weft; all else, and other tasks, by gRPC.  See weft_tensorflow(7).
"""
import ctypes
import os

import tensorflow as _tf

from weft_tensorflow import _built

__version__ = _built.VERSION

LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libweft_tensorflow.so')


def _address(library, function):
    """Where a function is that @library finds by its name."""
    return ctypes.cast(getattr(library, function), ctypes.c_void_p).value


def _libweft():
    """Where libweft is: as the linker looks for it, but for the cache of the system, which is last."""
    for folder in os.environ.get('LD_LIBRARY_PATH', '').split(':'):
        path = os.path.join(folder, os.path.basename(_built.LIBWEFT))
        if folder and os.path.exists(path):
            return path
    return _built.LIBWEFT if os.path.exists(_built.LIBWEFT) else os.path.basename(_built.LIBWEFT)


def _is_loaded(library):
    """Whether this process has the library already."""
    try:
        ctypes.CDLL(os.path.basename(library), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _load_libweft():
    """Load libweft, so that it looks for OpenSSL and zstd in its own libraries before TensorFlow's,
    which export others by the same names.  It would find libc's free() before that of a preloaded
    malloc, too, whose memory libc gives it: such a process has to do without, and so has one that
    has loaded libweft in another way."""
    hindrance = None
    if _address(ctypes.CDLL(None), 'malloc') != _address(ctypes.CDLL('libc.so.6'), 'malloc'):
        hindrance = 'need the malloc of libc, and another is preloaded'
    elif _is_loaded(_built.LIBWEFT):
        hindrance = 'need weft_tensorflow to load libweft, which is loaded: import it before weft'
    else:
        ctypes.CDLL(_libweft(), mode=os.RTLD_NOW | os.RTLD_DEEPBIND)
    if hindrance and (os.environ.get('WEFT_KEY_FILE') or os.environ.get('WEFT_CERT')):
        raise OSError('WEFT_KEY_FILE and WEFT_CERT ' + hindrance)


def _load():
    """Load the library, which fits one release of TensorFlow."""
    if _tf.__version__ != _built.TENSORFLOW:
        raise ImportError(
            'weft_tensorflow %s was built for TensorFlow %s, and this is TensorFlow %s: install '
            'weft_tensorflow again (pip install --force-reinstall --no-deps src/tensorflow)' %
            (__version__, _built.TENSORFLOW, _tf.__version__))
    try:
        _load_libweft()
        _tf.load_library(LIBRARY)
    except (_tf.errors.OpError, OSError) as error:
        raise ImportError('weft_tensorflow %s cannot be loaded: %s' %
                          (__version__, error)) from error
    return ctypes.CDLL(LIBRARY)


_library = _load()
_library.weft_tensorflow_counters.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
_library.weft_tensorflow_counters.restype = ctypes.c_size_t


def counters():
    """What this process has moved, by name, since it began; counters.h tells the names."""
    size = 4096
    while True:
        text = ctypes.create_string_buffer(size)
        need = _library.weft_tensorflow_counters(text, size)
        if need <= size:
            break
        size = 2 * need
    lines = (line.rsplit(' ', 1) for line in text.value.decode('ascii').splitlines())
    return {name: int(value) for name, value in lines}
