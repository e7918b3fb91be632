# SPDX-License-Identifier: MIT
"""Rank 0 puts blocks into rank 1's memory; rank 1 takes each as it comes.

    python -m iris_c.upstream -n 2 examples/python/message_passing.py

A flag beside each block says that it is there. It is set with release order,
behind the block, and read with acquire order, before the block.
"""

import iris_c
import torch
import triton
import triton.language as tl
from iris_c import triton as iris

COUNT, BLOCK = 4096, 512


@triton.jit
def produce(source, target, flags, count, me, peer, bases, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    iris.put(source + at, target + at, me, peer, bases, mask=mask)
    iris.atomic_xchg(flags + block, 1, me, peer, bases, sem="release")


@triton.jit
def consume(target, result, flags, count, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    while tl.atomic_cas(flags + block, 1, 1, sem="acquire", scope="sys") != 1:
        pass
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    value = tl.load(target + at, mask=mask)
    tl.store(result + at, 2 * value, mask=mask)


def main():
    ctx = iris_c.iris(1 << 22)
    me, bases = ctx.get_rank(), ctx.get_heap_bases()
    target = ctx.zeros(COUNT, dtype=torch.float32)
    flags = ctx.zeros(COUNT // BLOCK, dtype=torch.int32)
    source = torch.arange(COUNT, dtype=torch.float32, device=target.device)
    ctx.barrier()
    grid = (triton.cdiv(COUNT, BLOCK),)
    if me == 0:
        produce[grid](source, target, flags, COUNT, 0, 1, bases, BLOCK)
    elif me == 1:
        result = torch.empty_like(source)
        consume[grid](target, result, flags, COUNT, BLOCK)
        torch.testing.assert_close(result, 2 * source, rtol=0, atol=0)
        ctx.info(f"{grid[0]} blocks came, the last value is"
                 f" {result[-1].item():.0f}")
    ctx.barrier()
    ctx.finalize()


if __name__ == "__main__":
    main()
