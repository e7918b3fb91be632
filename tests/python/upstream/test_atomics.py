# SPDX-License-Identifier: MIT
"""Atomics between ranks that the interpreter does not have."""

import gc
import unittest
from unittest import mock

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from iris_c.upstream.heap import SymmetricHeap
from triton.runtime import interpreter

ROUNDS = 100


@triton.jit
def add_to(pointer, bases, me, other, ROUNDS: tl.constexpr,
           SIZE: tl.constexpr):
    far = tl.load(bases + other) - tl.load(bases + me)
    there = (pointer.to(tl.int64) + far).to(pointer.dtype)
    at = there + tl.arange(0, SIZE) // 2
    for _ in range(ROUNDS):
        tl.atomic_add(at, tl.full([SIZE], 1, pointer.dtype.element_ty),
                      sem="release", scope="sys")


@triton.jit
def exchange(pointer, out, value):
    tl.store(out, tl.atomic_xchg(pointer, value))


@triton.jit
def add_one(pointer, out):
    tl.store(out, tl.atomic_add(pointer, 1.0))


class AnotherRank:
    """The interpreter's calls, with another rank's addition before the first
    compare-and-swap."""

    def __init__(self, calls, word) -> None:
        self._calls, self._word = calls, word
        self.came = False

    def __getattr__(self, name):
        return getattr(self._calls, name)

    def atomic_cas(self, *args):
        if not self.came:
            self._word.add_(4)
        self.came = True
        return self._calls.atomic_cas(*args)


class Atomics(unittest.TestCase):
    def setUp(self) -> None:
        self.me, self.all = dist.get_rank(), dist.get_world_size()
        self.heap = SymmetricHeap(1 << 20, self.me, self.me, self.all)

    def tearDown(self) -> None:
        dist.barrier()
        del self.heap
        gc.collect()

    def test_no_addition_is_lost(self) -> None:
        for kind in (torch.bfloat16, torch.float16, torch.float32,
                     torch.float64, torch.int32):
            self.check_sums(kind)

    def test_an_addition_of_16_bits_begins_anew_if_another_came(self) -> None:
        for kind in (torch.bfloat16, torch.float16):
            word = torch.ones(1, dtype=kind)
            old = torch.zeros(1, dtype=kind)
            other = AnotherRank(interpreter._interpreter, word)
            with mock.patch.object(interpreter, "_interpreter", other):
                add_one[(1,)](word, old)
            self.assertTrue(other.came, f"{kind}")
            self.assertEqual((old.item(), word.item()), (5, 6), f"{kind}")

    def check_sums(self, kind) -> None:
        sums = self.heap.allocate(1024, kind).zero_()
        # Sums stay where bfloat16 has every integer.
        for _ in range(ROUNDS // 25):
            dist.barrier()
            add_to[(1,)](sums, self.heap.heap_bases, self.me, 0, 25, 2048)
            dist.barrier()
            if self.me == 0:
                # Each word has two lanes of each rank.
                wrong = (sums != 50.0 * self.all).sum().item()
                self.assertEqual(wrong, 0, f"{kind}")
                sums.zero_()

    def test_exchanges_of_floats_give_the_old_value(self) -> None:
        for kind in (torch.float32, torch.float64):
            word = torch.full((1,), 2.5, dtype=kind)
            old = torch.zeros(1, dtype=kind)
            exchange[(1,)](word, old, 7.25)
            self.assertEqual((old.item(), word.item()), (2.5, 7.25))
