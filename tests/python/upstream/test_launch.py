# SPDX-License-Identifier: MIT
"""What a launch of an interpreted kernel gives, and what it does not check."""

import unittest

import torch
import triton
import triton.language as tl
from iris_c.upstream import platform_calls


@triton.jit
def assumes_wrongly(out):
    pid = tl.program_id(0)
    tl.assume(pid > 0)
    tl.store(out + pid, pid + 1)


class Launch(unittest.TestCase):
    def test_an_assumption_is_a_hint(self) -> None:
        out = torch.zeros(2, dtype=torch.int32)
        assumes_wrongly[(2,)](out)
        self.assertEqual(out.tolist(), [1, 2])

    def test_a_launch_has_the_registers_of_a_kernel(self) -> None:
        launched = assumes_wrongly[(1,)](torch.zeros(1, dtype=torch.int32))
        self.assertEqual((launched.n_regs, launched.n_spills), (0, 0))

    def test_upstreams_rule_leaves_units_to_communication(self) -> None:
        count = torch.cuda.get_device_properties(0).multi_processor_count
        self.assertEqual(count, platform_calls.get_cu_count())
        self.assertGreater(count, 1 << (count.bit_length() - 1))
