# SPDX-License-Identifier: BSD-2-Clause
"""torch.distributed over weft: the backend "weft".

    torch.distributed.init_process_group('weft')

needs no import: PyTorch finds the backend by the package's entry point; releases that do not look for
entry points, as 2.11, need `import weft.torch` before.  Addresses go through the
group's Store; which fabric is used, the environment chooses: FI_PROVIDER, WEFT_*.
"""
import torch.distributed as dist

from .backend import WeftBackend, node

__all__ = ['WeftBackend', 'node', 'register']


def _create(options, backend_options):
    """What PyTorch calls for a new group."""
    del backend_options
    backend = WeftBackend(options.store, options.group_rank, options.group_size, options.timeout,
                          options.group_id)
    if dist.get_debug_level() == dist.DebugLevel.DETAIL:
        backend.keep()   # the wrapper of that level keeps no object of Python's
    return backend


def register():
    """Make the backend known to PyTorch: its entry point."""
    if 'WEFT' not in dist.Backend._plugins:
        dist.Backend.register_backend('weft', _create, extended_api=True, devices=['cpu', 'cuda'])


register()
