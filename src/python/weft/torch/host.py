# SPDX-License-Identifier: BSD-2-Clause
"""Memory of the host for collectives of tensors that are on CUDA devices.

Groups of weft combine what lies on the host.  A tensor of a device is copied to page-locked memory when
its collective begins, after all that its stream has to do, and back when the collective has ended.
"""
import torch


def flat(tensor):
    """A tensor as weft takes it: without gradient, and one piece of memory."""
    if tensor.is_sparse:
        raise RuntimeError('weft: sparse tensors are not sent')
    if not tensor.is_contiguous():
        raise ValueError('Tensors must be contiguous')
    return tensor.detach()


def row(tensor):
    """A tensor as it passes between two ranks, who may see it in different shapes."""
    return flat(tensor).view(-1)


class Host:
    """What the tensors of one collective have on the host.

    tensors: what the collective gives its caller; the first on a device says whose current stream that
    caller works on.
    """
    def __init__(self, tensors):
        device = next((tensor.device for tensor in tensors if tensor.is_cuda), None)
        self.stream = device and torch.cuda.current_stream(device)
        self.returning = []   # (tensor of a device, memory with its result)

    def _twin(self, tensor):
        """Page-locked memory in the place of a tensor's."""
        return torch.empty_like(tensor, device='cpu', pin_memory=True)

    def read(self, tensor):
        """Memory of the host with a tensor's content."""
        tensor = flat(tensor)
        # The copy to the host ends before it returns, after what the current stream had to do.
        return self._twin(tensor).copy_(tensor) if tensor.is_cuda else tensor

    def written(self, tensor):
        """Memory of the host whose content a tensor has in the end."""
        tensor = flat(tensor)
        if not tensor.is_cuda:
            return tensor
        self.returning.append((tensor, self._twin(tensor)))
        return self.returning[-1][1]

    def both(self, tensor):
        """Memory of the host with a tensor's content, and in the end its result."""
        host = self.written(tensor)
        if tensor.is_cuda:
            host.copy_(tensor)
        return host

    def then(self, after):
        """What is left to do when the collective has ended: results go back, and then @after."""
        if not self.stream:
            return after

        def back():
            # On the caller's stream, whichever thread this is: after what it still does there.
            with torch.cuda.stream(self.stream):
                for tensor, host in self.returning:
                    tensor.copy_(host)
                if after:
                    after()
        return back
