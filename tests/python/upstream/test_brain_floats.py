# SPDX-License-Identifier: MIT
"""bfloat16 in interpreted kernels: what a GPU computes, by torch."""

import unittest

import torch
import triton
import triton.language as tl


@triton.jit
def combine(x, y, out, OP: tl.constexpr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a = tl.load(x + at)
    b = tl.load(y + at)
    if OP == "add":
        result = a + b
    elif OP == "multiply":
        result = a * b
    elif OP == "divide":
        result = (a / b).to(tl.bfloat16)
    elif OP == "less":
        result = tl.where(a < b, a, b)
    elif OP == "maximum":
        result = tl.maximum(a, b)
    else:
        result = -a
    tl.store(out + at, result)


@triton.jit
def cast(x, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


@triton.jit
def matrices(x, y, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    total = tl.dot(tl.load(x + at), tl.load(y + at))
    tl.store(out + at, total)


def numbers(count: int) -> torch.Tensor:
    """Values of many sizes and both signs, some halves of a last place."""
    at = torch.arange(count, dtype=torch.float32)
    return ((at * 37 % 101) - 50) * (1 + at / 512)


class BrainFloats(unittest.TestCase):
    def check(self, op: str, expected: torch.Tensor) -> None:
        out = torch.zeros(256, dtype=torch.bfloat16)
        combine[(1,)](self.x, self.y, out, op, 256)
        torch.testing.assert_close(out, expected, rtol=0, atol=0)

    def setUp(self) -> None:
        self.x = numbers(256).to(torch.bfloat16)
        self.y = numbers(256).flip(0).to(torch.bfloat16) + 1.5

    def test_sums_are_of_values(self) -> None:
        self.check("add", self.x + self.y)

    def test_products_and_quotients_are_of_values(self) -> None:
        self.check("multiply", self.x * self.y)
        self.check("divide", self.x / self.y)

    def test_comparisons_see_signs(self) -> None:
        self.check("less", torch.minimum(self.x, self.y))
        self.check("maximum", torch.maximum(self.x, self.y))

    def test_negation_changes_the_sign_only(self) -> None:
        self.check("negate", -self.x)

    def test_casts_keep_the_value(self) -> None:
        kinds = (torch.float32, torch.float16, torch.float64, torch.int32)
        values = torch.arange(-128, 128) / 4
        for kind in kinds:
            source = values.to(kind)
            out = torch.zeros(256, dtype=torch.bfloat16)
            cast[(1,)](source, out, 256)
            self.assertEqual(out.tolist(), source.to(out.dtype).tolist())
            back = torch.zeros(256, dtype=kind)
            cast[(1,)](out, back, 256)
            self.assertEqual(back.tolist(), out.to(kind).tolist())

    def test_rounds_to_the_nearest_even(self) -> None:
        # 1 + k/256 lies half way between two bfloat16 for odd k.
        source = 1 + torch.arange(256, dtype=torch.float32) / 256
        out = torch.zeros(256, dtype=torch.bfloat16)
        cast[(1,)](source, out, 256)
        self.assertEqual(out.tolist(), source.to(out.dtype).tolist())

    def test_nan_and_infinity_stay(self) -> None:
        source = torch.tensor([float("nan"), float("inf"), -float("inf"),
                               3.4e38])
        out = torch.zeros(4, dtype=torch.bfloat16)
        cast[(1,)](source, out, 4)
        torch.testing.assert_close(out, source.to(out.dtype), equal_nan=True)

    def test_dot_multiplies_values(self) -> None:
        x = numbers(256).view(16, 16).to(torch.bfloat16)
        y = numbers(256).view(16, 16).t().contiguous().to(torch.bfloat16)
        out = torch.zeros(16, 16)
        matrices[(1,)](x, y, out, 16)
        torch.testing.assert_close(out, x.float() @ y.float())
