# SPDX-License-Identifier: MIT
"""Captured graphs as recorded launches."""

import unittest

import torch
import triton
import triton.language as tl


@triton.jit
def increase(x, by):
    tl.store(x, tl.load(x) + by)


class Graphs(unittest.TestCase):
    def setUp(self) -> None:
        self.x = torch.zeros(1, dtype=torch.int32, device="cuda")

    def test_a_capture_runs_nothing_and_a_replay_everything(self) -> None:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            increase[(1,)](self.x, 5)
            self.x.mul_(10)
            increase[(1,)](self.x, 1)
        self.assertEqual(self.x.item(), 0)
        graph.replay()
        self.assertEqual(self.x.item(), 51)
        graph.replay()
        self.assertEqual(self.x.item(), 561)

    def test_what_cannot_be_repeated_is_refused(self) -> None:
        graph = torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(RuntimeError, "while a graph"):
            with torch.cuda.graph(graph):
                self.x + 1
        increase[(1,)](self.x, 2)
        self.assertEqual(self.x.item(), 2)
