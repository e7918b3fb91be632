# SPDX-License-Identifier: MIT
"""An all-reduce in one kernel: each rank loads every rank's tile and adds.

    python -m iris_c.upstream -n 4 examples/python/all_reduce.py

Nothing is sent ahead of time: the sum is made of remote loads. Each rank begins
with its neighbour, so that not all of them read the same rank at once.
"""

import iris_c
import torch
import triton
import triton.language as tl
from iris_c import triton as iris

ROWS, COLUMNS, TILE = 64, 96, 1024


@triton.jit
def reduce(x, total, count, me, world, bases, TILE: tl.constexpr):
    at = tl.program_id(0) * TILE + tl.arange(0, TILE)
    mask = at < count
    value = tl.zeros([TILE], dtype=tl.float32)
    for step in range(world):
        peer = (me + step) % world
        value += iris.load(x + at, me, peer, bases, mask=mask, other=0.0)
    tl.store(total + at, value, mask=mask)


def main():
    ctx = iris_c.iris(1 << 22)
    me, world = ctx.get_rank(), ctx.get_num_ranks()
    count = ROWS * COLUMNS
    x = ctx.zeros(ROWS, COLUMNS, dtype=torch.float32)
    x.copy_(torch.arange(count).reshape(ROWS, COLUMNS) * (me + 1))
    ctx.barrier()
    total = torch.empty_like(x)
    grid = (triton.cdiv(count, TILE),)
    reduce[grid](x, total, count, me, world, ctx.get_heap_bases(), TILE)
    weight = world * (world + 1) // 2
    expected = torch.arange(count).reshape(ROWS, COLUMNS) * float(weight)
    torch.testing.assert_close(total.cpu(), expected, rtol=0, atol=0)
    ctx.info(f"the sum of {world} ranks' {ROWS} x {COLUMNS} numbers is right")
    # No rank may change its tile while another still reads it.
    ctx.barrier()
    ctx.finalize()


if __name__ == "__main__":
    main()
