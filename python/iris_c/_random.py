# SPDX-License-Identifier: MIT
"""Generators of random numbers."""

import ctypes
from typing import Any


class Generator(ctypes.Structure):
    """Philox4x32-10: the same numbers on a CPU and a GPU, for any number of
    ranks. Two generators that differ in seed or sequence are independent; ranks
    that want numbers of their own take their rank as the sequence.

    Args:
        seed, sequence: which numbers, 0 to 2**64 - 1.
    """

    # struct iris_generator: the library counts `offset` up.
    _fields_ = [
        ("seed", ctypes.c_uint64),
        ("sequence", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
    ]

    def __init__(self, seed: int = 0, sequence: int = 0) -> None:
        super().__init__(seed, sequence, 0)

    def manual_seed(self, seed: int) -> "Generator":
        """Begins anew with another seed."""
        self.seed, self.offset = seed, 0
        return self

    def initial_seed(self) -> int:
        """The seed."""
        return int(self.seed)


def drawn_from(torch: Any, generator: Any) -> Generator:
    """A generator whose seed is the next number of torch's: as with PyTorch,
    torch.manual_seed() decides what follows."""
    device = "cpu" if generator is None else generator.device
    seed = torch.randint((1 << 63) - 1, (), generator=generator, device=device)
    return Generator(int(seed.item()))
