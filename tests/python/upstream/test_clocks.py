# SPDX-License-Identifier: MIT
"""The clock that tracing reads in kernels."""

import types
import unittest

import torch
import triton
import triton.language as tl
from iris_c.upstream import clocks

gpu = types.SimpleNamespace()
clocks.apply(gpu)


@triton.jit
def look(times, places):
    tl.store(times, gpu.read_realtime())
    tl.store(places, gpu.get_xcc_id())
    tl.store(places + 1, gpu.get_cu_id())
    tl.store(times + 1, gpu.read_realtime())


class Clocks(unittest.TestCase):
    def test_the_clock_goes_forward(self) -> None:
        times = torch.zeros(2, dtype=torch.int64)
        places = torch.full((2,), -1, dtype=torch.int32)
        look[(1,)](times, places)
        self.assertGreater(times[0].item(), 0)
        self.assertGreater(times[1].item(), times[0].item())
        self.assertEqual(places.tolist(), [0, 0])
