# SPDX-License-Identifier: MIT
"""A pipeline through all ranks, with signals both ways.

    python -m iris_c.upstream -n 4 examples/python/producer_consumer.py

Items go from rank 0 to the last one; each rank adds its number to them. Between
two ranks there are only SLOTS places, so a producer waits until the consumer
has taken an item out (back-pressure). A signal is a count that only grows:
nothing has to be reset.
"""

import iris_c
import torch
import triton
import triton.language as tl
from iris_c import triton as iris

ITEMS, SLOTS, SIZE = 12, 3, 256


@triton.jit
def wait_until(signal, count):
    while tl.atomic_add(signal, 0, sem="acquire", scope="sys") < count:
        pass


@triton.jit
def work(x, out, slots, filled, taken, me, last, bases, ITEMS: tl.constexpr,
         SLOTS: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    for item in range(ITEMS):
        slot = slots + (item % SLOTS) * SIZE + at
        if me == 0:
            value = tl.load(x + item * SIZE + at)
        else:
            wait_until(filled, item + 1)
            value = tl.load(slot, volatile=True)
            iris.atomic_add(taken, 1, me, me - 1, bases, sem="release")
        value += me
        if me == last:
            tl.store(out + item * SIZE + at, value)
        else:
            wait_until(taken, item - SLOTS + 1)
            iris.store(slot, value, me, me + 1, bases)
            iris.atomic_add(filled, 1, me, me + 1, bases, sem="release")


def main():
    ctx = iris_c.iris(1 << 22)
    me, last = ctx.get_rank(), ctx.get_num_ranks() - 1
    slots = ctx.zeros(SLOTS, SIZE, dtype=torch.int32)
    filled = ctx.zeros(1, dtype=torch.int32)
    taken = ctx.zeros(1, dtype=torch.int32)
    x = torch.arange(ITEMS * SIZE, dtype=torch.int32, device=slots.device)
    out = torch.zeros_like(x)
    ctx.barrier()
    # One instance: it takes items in order, and without a GPU instances run
    # one after another.
    work[(1,)](x, out, slots, filled, taken, me, last, ctx.get_heap_bases(),
               ITEMS, SLOTS, SIZE)
    if me == last:
        expected = x + sum(range(last + 1))
        torch.testing.assert_close(out, expected, rtol=0, atol=0)
        ctx.info(f"{ITEMS} items came through {last + 1} ranks")
    ctx.barrier()
    ctx.finalize()


if __name__ == "__main__":
    main()
