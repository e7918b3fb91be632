# SPDX-License-Identifier: MIT
"""Where upstream's operations act, by values that depend on the rank.

Most of upstream's own tests write the same value from every rank, so that they
pass wherever it lands. Each of these must fail in the control run of
scripts/upstream-test, which points every peer's base at the rank's own heap.
"""

import gc

import iris
import pytest
import torch
import triton
import triton.language as tl

SIZE = 16


@triton.jit
def move(own, peers, me: tl.constexpr, peer: tl.constexpr, bases,
         HOW: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    if HOW == "store":
        iris.store(peers + at, tl.load(own + at), me, peer, bases)
    elif HOW == "put":
        iris.put(own + at, peers + at, me, peer, bases)
    elif HOW == "copy":
        iris.copy(own + at, peers + at, me, peer, me, bases)
    elif HOW == "get":
        iris.get(own + at, peers + at, me, peer, bases)
    else:
        tl.store(peers + at, iris.load(own + at, me, peer, bases))


@triton.jit
def change(word, value, old, me: tl.constexpr, peer: tl.constexpr, bases,
           HOW: tl.constexpr):
    if HOW == "add":
        seen = iris.atomic_add(word, value, me, peer, bases, scope="sys")
    elif HOW == "xchg":
        seen = iris.atomic_xchg(word, value, me, peer, bases, scope="sys")
    elif HOW == "and":
        seen = iris.atomic_and(word, value, me, peer, bases, scope="sys")
    elif HOW == "or":
        seen = iris.atomic_or(word, value, me, peer, bases, scope="sys")
    elif HOW == "xor":
        seen = iris.atomic_xor(word, value, me, peer, bases, scope="sys")
    elif HOW == "min":
        seen = iris.atomic_min(word, value, me, peer, bases, scope="sys")
    elif HOW == "max":
        seen = iris.atomic_max(word, value, me, peer, bases, scope="sys")
    else:
        seen = iris.atomic_cas(word, 100 + peer, value, me, peer, bases,
                               sem="acq_rel", scope="sys")
    tl.store(old, seen)


@pytest.fixture
def ctx():
    found = iris.iris(1 << 20)
    if found.get_num_ranks() == 1:
        pytest.skip("a rank alone has no peers")
    yield found
    found.barrier()
    del found
    gc.collect()


def neighbours(ctx):
    me, ranks = ctx.get_rank(), ctx.get_num_ranks()
    return me, (me + 1) % ranks, (me - 1) % ranks


def row(rank):
    return torch.arange(SIZE, dtype=torch.float32) + 100.0 * rank


@pytest.mark.parametrize("how", ["store", "put", "copy", "get", "load"])
def test_data_moves_between_ranks(ctx, how):
    me, right, left = neighbours(ctx)
    own = ctx.zeros(SIZE, dtype=torch.float32)
    other = ctx.zeros(SIZE, dtype=torch.float32)
    own.copy_(row(me))
    ctx.barrier()
    move[(1,)](own, other, me, right, ctx.get_heap_bases(), how, SIZE)
    ctx.barrier()
    wanted = right if how in ("get", "load") else left
    assert other.tolist() == row(wanted).tolist()


#: What becomes of a word that is 100 + its rank by a peer's value.
RESULTS = {
    "add": lambda word, value: word + value,
    "xchg": lambda word, value: value,
    "and": lambda word, value: word & value,
    "or": lambda word, value: word | value,
    "xor": lambda word, value: word ^ value,
    "min": lambda word, value: min(word, value),
    "max": lambda word, value: max(word, value),
    "cas": lambda word, value: value,
}


@pytest.mark.parametrize("how", RESULTS)
def test_atomics_act_on_the_peer(ctx, how):
    me, right, left = neighbours(ctx)
    word = ctx.full((1,), 100 + me, dtype=torch.int32)
    old = ctx.zeros(1, dtype=torch.int32)
    ctx.barrier()
    # "min" and "and" shrink a word, "max" and "or" grow it, on each rank.
    value = 8 * me + (512 if how in ("max", "or") else 1)
    change[(1,)](word, value, old, me, right, ctx.get_heap_bases(), how)
    ctx.barrier()
    came = value + 8 * (left - me)
    assert old.item() == 100 + right
    assert word.item() == RESULTS[how](100 + me, came)


@triton.jit
def store_round(word, value, me: tl.constexpr, peer: tl.constexpr, bases):
    iris.store(word, value, me, peer, bases)


def test_device_barriers_wait_for_the_peer(ctx):
    me, right, left = neighbours(ctx)
    word = ctx.zeros(1, dtype=torch.int32)
    ctx.barrier()
    for count in range(1, 4):
        store_round[(1,)](word, 10 * count + me, me, right,
                          ctx.get_heap_bases())
        ctx.device_barrier()
        assert word.item() == 10 * count + left
        ctx.device_barrier()
