# SPDX-License-Identifier: MIT
"""Classes with @aggregate in interpreted kernels."""

import unittest

import torch
import triton
import triton.language as tl
from triton.language.core import _aggregate as aggregate


@aggregate
class Scale:
    factor: tl.constexpr
    shift: tl.tensor

    @triton.constexpr_function
    def __init__(self, factor, shift):
        self.factor = tl.constexpr(factor)
        self.shift = shift

    @triton.jit
    def of(self, x):
        return x * self.factor + self.shift


@aggregate
class Row:
    pointer: tl.tensor
    size: tl.constexpr
    scale: Scale

    @triton.constexpr_function
    def __init__(self, pointer, size, scale):
        self.pointer = pointer
        self.size = tl.constexpr(size)
        self.scale = scale

    @staticmethod
    @triton.jit
    def make(pointer, size: tl.constexpr):
        return Row(pointer, size, Scale(3, 7))

    @triton.jit
    def fill(self):
        at = tl.arange(0, self.size)
        tl.store(self.pointer + at, self.scale.of(at))


@aggregate
class Pair:
    first: tl.tensor
    second: tl.constexpr = 5


@triton.jit
def fill(out, SIZE: tl.constexpr):
    Row.make(out, SIZE).fill()


@triton.jit
def pair(out, x):
    both = Pair(x)
    tl.store(out, both.first * both.second)


class Aggregates(unittest.TestCase):
    def test_methods_bind_and_constexprs_stay_numbers(self) -> None:
        out = torch.zeros(16, dtype=torch.int32)
        fill[(1,)](out, 16)
        self.assertEqual(out.tolist(), [3 * i + 7 for i in range(16)])

    def test_fields_with_defaults_need_no_constructor(self) -> None:
        out = torch.zeros(1, dtype=torch.int32)
        pair[(1,)](out, 8)
        self.assertEqual(out.item(), 40)

    def test_a_name_that_is_no_field_is_refused(self) -> None:
        with self.assertRaisesRegex(AttributeError, "no field third"):
            Pair(1, 2).third = 3
        with self.assertRaisesRegex(TypeError, "missing: \\['first'\\]"):
            Pair()
