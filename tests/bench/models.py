# SPDX-License-Identifier: BSD-2-Clause
"""Bodies as real programs send them: sizes of tensors in bytes, computed from
published architectures, and the payloads of TF-gRPC-Bench."""

import random

from programs import KIB, MIB

FLOAT = 4  # bytes


def resnet50():
    """Gradients of one training step: He et al., "Deep residual learning", 224 x 224."""
    sizes = [7 * 7 * 3 * 64] + 2 * [64]
    inputs = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            for weights, outputs in ((inputs * width, width), (9 * width * width, width),
                                     (width * 4 * width, 4 * width)):
                sizes += [weights, outputs, outputs]  # and scale and shift of its norm
            if block == 0:
                sizes += [inputs * 4 * width] + 2 * [4 * width]
            inputs = 4 * width
    sizes += [2048 * 1000, 1000]
    return [FLOAT * s for s in sizes]


def vgg16():
    """Gradients of one training step: Simonyan and Zisserman, configuration D."""
    sizes, inputs = [], 3
    for outputs in (64, 64, 128, 128, 256, 256, 256, 512, 512, 512, 512, 512, 512):
        sizes += [9 * inputs * outputs, outputs]
        inputs = outputs
    for inputs, outputs in ((512 * 7 * 7, 4096), (4096, 4096), (4096, 1000)):
        sizes += [inputs * outputs, outputs]
    return [FLOAT * s for s in sizes]


def alexnet():
    """Krizhevsky, "One weird trick for parallelizing convolutional neural networks"."""
    sizes = []
    for weights, outputs in ((11 * 11 * 3, 64), (5 * 5 * 64, 192), (9 * 192, 384), (9 * 384, 256),
                             (9 * 256, 256), (256 * 6 * 6, 4096), (4096, 4096), (4096, 1000)):
        sizes += [weights * outputs, outputs]
    return [FLOAT * s for s in sizes]


def chain(inputs, *layers):
    """Convolutions one after the other, each by its window and outputs."""
    for window, outputs in layers:
        yield window * inputs * outputs
        yield outputs  # shift of its norm
        inputs = outputs


def inception3():
    """Szegedy et al., "Rethinking the Inception architecture", without the second classifier."""
    sizes = [*chain(3, (9, 32), (9, 32), (9, 64), (1, 80), (9, 192))]
    inputs = 192
    for pooled in (32, 64, 64):
        for branch in (((1, 64),), ((1, 48), (25, 64)), ((1, 64), (9, 96), (9, 96)),
                       ((1, pooled),)):
            sizes += chain(inputs, *branch)
        inputs = 224 + pooled
    sizes += [*chain(inputs, (9, 384)), *chain(inputs, (1, 64), (9, 96), (9, 96))]
    inputs = 768
    for width in (128, 160, 160, 192):
        for branch in (((1, 192),), ((1, width), (7, width), (7, 192)),
                       ((1, width), (7, width), (7, width), (7, width), (7, 192)), ((1, 192),)):
            sizes += chain(inputs, *branch)
    sizes += [*chain(inputs, (1, 192), (9, 320)),
              *chain(inputs, (1, 192), (7, 192), (7, 192), (9, 192))]
    for inputs in (1280, 2048):
        sizes += [*chain(inputs, (1, 320)), *chain(inputs, (1, 384)),
                  *chain(inputs, (1, 448), (9, 384)), *chain(inputs, (1, 192))]
        sizes += 2 * [*chain(384, (3, 384)), *chain(384, (3, 384))]
    sizes += [2048 * 1000, 1000]
    return [FLOAT * s for s in sizes]


def dlrm(batch=2048, tables=26, width=16):
    """Naumov et al., the Criteo configuration: the gradients of both networks, and
    for each table those of the rows that one batch has looked up."""
    sizes = []
    pairs = (tables + 1) * tables // 2
    for layers in ((13, 512, 256, 64, width), (width + pairs, 512, 256, 1)):
        for inputs, outputs in zip(layers, layers[1:]):
            sizes += [inputs * outputs, outputs]
    sizes += tables * [batch * width]
    return [FLOAT * s for s in sizes]


def llama_cache(tokens=512, layers=32, heads=8, head=128, block=16):
    """The keys and values of a prefill of Llama 3 8B in bfloat16, as blocks of 16
    tokens for each layer."""
    return tokens // block * layers * [2 * block * heads * head * 2]


def uniform():
    """Ten buffers of 10 B, 10 KiB and 1 MiB in turn."""
    return [(10, 10 * KIB, MIB)[i % 3] for i in range(10)]


def random_ten():
    """Ten of the three sizes by chance: the same ones each time."""
    chance = random.Random(1)
    return [chance.choice((10, 10 * KIB, MIB)) for _ in range(10)]


def skew():
    """Six large, three medium and one small, as its authors have it."""
    return 6 * [MIB] + 3 * [10 * KIB] + [10]


PAYLOADS = {"Uniform": uniform(), "Random": random_ten(), "Skew": skew()}
MODELS = {"ResNet-50": resnet50(), "VGG-16": vgg16(), "DLRM": dlrm(),
          "Llama KV cache": llama_cache()}
