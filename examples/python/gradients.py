# SPDX-License-Identifier: MIT
"""The mean of all ranks' gradients, by one collective on the heap.

    python examples/python/gradients.py              4 processes of its own
    mpirun -n 2 python examples/python/gradients.py  any launcher's ranks

Tensors are torch's, or NumPy's where torch is not installed.
"""

import os

import iris_c
from iris_c.ccl import Config

LAYERS = ((64, 32), (32, 8), (8,))


def main(rank=0):
    ctx = iris_c.iris(heap_size=1 << 24)
    me, ranks = ctx.get_rank(), ctx.get_num_ranks()

    # All layers in one tensor of the heap, so that one call reduces them where
    # they are; each layer is a view of its part.
    sizes = [rows * (columns[0] if columns else 1) for rows, *columns in LAYERS]
    gradients = ctx.zeros(sum(sizes))
    ends = [sum(sizes[: layer + 1]) for layer in range(len(sizes))]
    layers = [
        gradients[end - size : end].reshape(shape)
        for shape, size, end in zip(LAYERS, sizes, ends)
    ]
    for step in range(3):
        for number, layer in enumerate(layers):
            layer[...] = step + number + me
        ctx.ccl.all_reduce(gradients, gradients)
        gradients /= ranks
        for number, layer in enumerate(layers):
            mean = step + number + (ranks - 1) / 2
            assert float(layer.min()) == float(layer.max()) == mean

    # The order of additions is the group's, whatever the way: the same bits.
    each = ctx.rand(1000, generator=iris_c.Generator(7, me))
    sums = [ctx.zeros(1000), ctx.zeros(1000)]
    for total, variant in zip(sums, ("two_shot", "one_shot_packet")):
        config = Config(all_reduce_variant=variant)
        ctx.ccl.all_reduce(total, each, config=config)
    assert bool((sums[0] == sums[1]).all())
    ctx.info(f"the mean of {ranks} ranks' gradients is right")
    ctx.barrier()


if __name__ == "__main__":
    launched = ("IRIS_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    if any(name in os.environ for name in launched):
        main()
    else:
        iris_c.spawn(main, 4)
