# SPDX-License-Identifier: MIT
"""Groups of NCCL without a GPU."""

import unittest

import torch
import torch.distributed as dist


class ProcessGroups(unittest.TestCase):
    def test_nccl_moves_tensors_of_the_cpu(self) -> None:
        x = torch.full((3,), dist.get_rank() + 1.0, device="cuda")
        dist.all_reduce(x)
        world = dist.get_world_size()
        self.assertEqual(x.tolist(), [world * (world + 1) / 2] * 3)

    def test_a_program_sees_what_it_asked_for(self) -> None:
        self.assertEqual(dist.get_backend(), "nccl")
        ranks = list(range(dist.get_world_size()))
        self.assertEqual(dist.get_backend(dist.new_group(ranks)), "nccl")
        asked = dist.new_group(ranks, backend="nccl")
        self.assertEqual(dist.get_backend(asked), "nccl")
        x = torch.ones(2, device="cuda")
        dist.all_reduce(x, group=asked)
        self.assertEqual(x.tolist(), [len(ranks)] * 2)
        plain = dist.new_group(ranks, backend="gloo")
        self.assertEqual(dist.get_backend(plain), "gloo")
        self.assertIsNotNone(dist.new_group([0]))

    def test_all_to_all_brings_each_its_part(self) -> None:
        me, world = dist.get_rank(), dist.get_world_size()
        inputs = [torch.full((2,), 10.0 * me + to) for to in range(world)]
        outputs = [torch.zeros(2) for _ in range(world)]
        dist.all_to_all(outputs, inputs)
        self.assertEqual([out[0].item() for out in outputs],
                         [10.0 * rank + me for rank in range(world)])
