# SPDX-License-Identifier: MIT
"""A creation call returns when every rank's memory is filled."""

import gc
import types
import unittest
from unittest import mock

import torch
import torch.distributed as dist
import triton
from iris_c import triton as iris
from iris_c.upstream import creation
from iris_c.upstream.heap import SymmetricHeap


@triton.jit
def put_to_peer(word, value, me, peer, bases):
    iris.store(word, value, me, peer, bases)


def zeros(heap, out=None):
    """As upstream's: memory, then this rank's zeros. Rank 1 takes its time,
    so that without a barrier rank 0's value is there before them."""
    word = heap.allocate(1, torch.int32)
    if heap.cur_rank == 1:
        for _ in range(200_000):
            pass
    return word.zero_()


class Creation(unittest.TestCase):
    def test_a_tensor_that_is_there_is_filled_by_its_rank_alone(self) -> None:
        module = types.SimpleNamespace(**{
            name: mock.Mock() for name in creation._FILLING})
        creation.apply(module)
        heap = mock.Mock()
        module.zeros(heap, 3, out=torch.ones(3))
        heap.barrier.assert_not_called()
        module.zeros(heap, 3)
        heap.barrier.assert_called_once()

    def test_a_peers_first_put_is_not_lost(self) -> None:
        module = types.SimpleNamespace(**{
            name: zeros for name in creation._FILLING})
        creation.apply(module)
        me = dist.get_rank()
        heap = SymmetricHeap(1 << 20, me, me, dist.get_world_size())
        for _ in range(20):
            word = module.zeros(heap)
            if me == 0:
                put_to_peer[(1,)](word, 7, 0, 1, heap.heap_bases)
            dist.barrier()
            self.assertEqual(word.item(), 7 * (me == 1))
            dist.barrier()
        del heap, word
        gc.collect()
