# SPDX-License-Identifier: MIT
"""The heap that upstream's host class gets."""

import gc
import unittest

import torch
import torch.distributed as dist
import triton
import triton.language as tl
from iris_c import _session
from iris_c.upstream.heap import SymmetricHeap


@triton.jit
def read_from(pointer, out, bases, me, other, SIZE: tl.constexpr):
    far = tl.load(bases + other) - tl.load(bases + me)
    there = (pointer.to(tl.int64) + far).to(pointer.dtype)
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(there + at))


class Heap(unittest.TestCase):
    def setUp(self) -> None:
        self.me, self.all = dist.get_rank(), dist.get_world_size()
        self.heap = SymmetricHeap(1 << 20, self.me, self.me, self.all)

    def tearDown(self) -> None:
        dist.barrier()
        del self.heap
        gc.collect()

    def test_kernels_read_what_each_peer_wrote(self) -> None:
        mine = self.heap.allocate(8, torch.int32)
        mine.copy_(torch.arange(8) + 100 * self.me)
        dist.barrier()
        for rank in range(self.all):
            out = torch.zeros(8, dtype=torch.int32)
            read_from[(1,)](mine, out, self.heap.heap_bases, self.me, rank, 8)
            self.assertEqual(out.tolist(), [100 * rank + i for i in range(8)])
        dist.barrier()

    def test_tensors_are_aligned_and_lie_at_one_offset(self) -> None:
        self.heap.allocate(3, torch.int8)
        second = self.heap.allocate(5, torch.float64)
        offset = second.data_ptr() - self.heap.base
        self.assertEqual(second.data_ptr() % 1024, 0)
        offsets = [None] * self.all
        dist.all_gather_object(offsets, offset)
        self.assertEqual(set(offsets), {offset})

    def test_symmetric_is_what_lies_on_this_heap(self) -> None:
        tensor = self.heap.allocate(4, torch.float32)
        self.assertTrue(self.heap.is_symmetric(tensor[2:]))
        self.assertFalse(self.heap.is_symmetric(torch.zeros(4)))
        self.assertTrue(self.heap.is_symmetric(torch.zeros(0)))
        other = SymmetricHeap(1 << 20, self.me, self.me, self.all)
        self.assertFalse(other.is_symmetric(tensor))

    def test_as_symmetric_copies(self) -> None:
        outside = torch.arange(6, device="cuda").reshape(2, 3)
        inside = self.heap.as_symmetric(outside)
        self.assertTrue(self.heap.is_symmetric(inside))
        self.assertEqual(inside.tolist(), outside.tolist())
        with self.assertRaisesRegex(RuntimeError, "CUDA tensors"):
            self.heap.as_symmetric(torch.zeros(2))
        with self.assertRaisesRegex(RuntimeError, "contiguous"):
            self.heap.as_symmetric(outside.t())

    def test_a_full_heap_is_pythons_memory_error(self) -> None:
        with self.assertRaisesRegex(MemoryError, "out of memory"):
            self.heap.allocate(1 << 24, torch.float32)

    def test_a_heap_lives_as_long_as_its_tensors(self) -> None:
        heap = SymmetricHeap(1 << 20, self.me, self.me, self.all)
        tensor = heap.allocate(4, torch.int32).fill_(self.me)
        view = tensor[1:3]
        del heap, tensor
        gc.collect()
        SymmetricHeap(1 << 20, self.me, self.me, self.all)
        self.assertEqual(view.tolist(), [self.me] * 2)

    def test_contexts_that_all_let_go_are_left(self) -> None:
        before = len(_session._joined)
        for _ in range(3):
            heap = SymmetricHeap(1 << 20, self.me, self.me, self.all)
            heap.allocate(4, torch.int32)
            del heap
            gc.collect()
        self.assertEqual(len(_session._joined), before)

    def test_a_context_stays_while_one_rank_uses_it(self) -> None:
        heap = SymmetricHeap(1 << 20, self.me, self.me, self.all)
        kept = heap.allocate(4, torch.int32).fill_(9)
        if self.me == 0:
            kept = None
        del heap
        gc.collect()
        SymmetricHeap(1 << 20, self.me, self.me, self.all)
        if kept is not None:
            self.assertEqual(kept.tolist(), [9] * 4)
        dist.barrier()
