# SPDX-License-Identifier: MIT
"""Gluon kernels, interpreted as Triton's."""

import unittest

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def squares(out, count, SIZE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [64], [1], [0])
    at = gl.program_id(0) * SIZE + gl.arange(0, SIZE, layout=layout)
    ones = gl.full([SIZE], 1, gl.int32, layout)
    more = gl.convert_layout(at * at + ones, layout)
    gl.store(out + at, more, mask=at < count)
    if gl.program_id(0) == gl.cdiv(count, SIZE) - 1:
        gl.atomic_add(out, gl.max(ones, axis=0))


class Gluon(unittest.TestCase):
    def test_kernels_run_without_layouts(self) -> None:
        out = torch.zeros(20, dtype=torch.int32)
        squares[(3,)](out, 20, 8, num_warps=1)
        expected = [i * i + 1 for i in range(20)]
        expected[0] += 1
        self.assertEqual(out.tolist(), expected)
