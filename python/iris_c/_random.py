# SPDX-License-Identifier: MIT
"""Generators of random numbers."""

import ctypes
from typing import Any


class Generator(ctypes.Structure):
    """Philox4x32-10: the same numbers on a CPU and a GPU, for any number of
    ranks. Two generators that differ in seed or sequence are independent. Pass
    the rank as the sequence to get different numbers on each rank.

    Args:
        seed, sequence: determine the numbers; 0 to 2**64 - 1.
    """

    # struct iris_generator: the library advances `offset`.
    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("sequence", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    ]

    def __init__(self, seed: int = 0, sequence: int = 0) -> None:
        super().__init__(seed, sequence, 0)

    def manual_seed(self, seed: int) -> "Generator":
        """Starts again with another seed."""
        self.seed, self.offset = seed, 0
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return int(self.seed)


def drawn_from(torch: Any, generator: Any) -> Generator:
    """A generator whose seed is the next number from torch. So
    torch.manual_seed() decides its numbers, as in PyTorch."""
    device = "cpu" if generator is None else generator.device
    seed = torch.randint((1 << 63) - 1, (), generator=generator, device=device)
    return Generator(int(seed.item()))
