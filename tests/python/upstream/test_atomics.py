# SPDX-License-Identifier: MIT
"""Atomics between ranks that the interpreter does not have."""

import gc
import unittest

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from iris_c.upstream.heap import SymmetricHeap

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
