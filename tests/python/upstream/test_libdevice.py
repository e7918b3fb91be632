# SPDX-License-Identifier: MIT
"""Functions of the vendors' device library."""

import unittest

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def apply_both(x, powers, tangents, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = tl.load(x + at)
    tl.store(powers + at, libdevice.fast_expf(value))
    tl.store(tangents + at, libdevice.tanh(value))


class Libdevice(unittest.TestCase):
    def test_they_are_torchs(self) -> None:
        x = torch.tensor([-900, -3, -0.5, 0, 1e-3, 0.7, 5, 80])
        powers, tangents = torch.empty(8), torch.empty(8)
        apply_both[(1,)](x, powers, tangents, 8)
        torch.testing.assert_close(powers, x.exp())
        torch.testing.assert_close(tangents, x.tanh(), atol=1e-6, rtol=1e-5)
