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
        plain = dist.new_group(ranks, backend="gloo")
        self.assertEqual(dist.get_backend(plain), "gloo")
        self.assertIsNotNone(dist.new_group([0]))
