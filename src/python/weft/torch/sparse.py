# SPDX-License-Identifier: BSD-2-Clause
"""Sparse tensors (COO) as they are summed up: each rank has some elements, and gets those of all."""
import torch


def parts_of(tensor):
    """The places and the values of a tensor's elements, on the host."""
    tensor = tensor.detach().coalesce().cpu()
    return tensor.indices().contiguous(), tensor.values().contiguous()


def add(tensor, parts):
    """Make a tensor the sum of all ranks' @parts, which have come as rows of elements."""
    dims, dense = tensor.sparse_dim(), tensor.shape[tensor.sparse_dim():]
    places = torch.cat([place.view(dims, place.numel() // dims) for place, _ in parts], 1)
    values = torch.cat([value.view(place.numel() // dims, *dense) for place, value in parts])
    # What detach() gives would get the elements, and not the tensor.
    with torch.no_grad():
        tensor.copy_(torch.sparse_coo_tensor(places, values, tensor.shape).coalesce())
