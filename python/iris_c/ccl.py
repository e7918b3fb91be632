# SPDX-License-Identifier: MIT
"""Options of collectives: upstream's iris.ccl.

The collectives themselves are methods of `ctx.ccl`.
"""

import enum
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from ._lib import call

__all__ = ["Config", "PremulSum", "ReduceOp"]


class ReduceOp(enum.IntEnum):
    """The function that a reduction applies to two elements: enum iris_reduce_op."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    BAND = 4
    BOR = 5
    BXOR = 6
    AVG = 7


@dataclass(frozen=True)
class PremulSum:
    """The sum of floats or complex numbers times a factor that all members
    pass. Reductions take it in place of a ReduceOp."""

    factor: float


def _names() -> Dict[str, int]:
    """enum iris_ccl_variant of the library that was loaded, by name."""
    found: Dict[str, int] = {}
    while True:
        name = call.iris_ccl_variant_name(len(found)).decode()
        if name == "?":
            return found
        found[name] = len(found)


#: Variants that the library has, by name.
VARIANTS = _names()

#: Upstream's names of variants, with this library's names.
_UPSTREAM: Dict[str, Dict[str, str]] = {
    "all_gather": {"persistent": "push", "partitioned": "push"},
    "all_reduce": {
        name: name
        for name in ("atomic", "ring", "two_shot", "one_shot", "spinlock")
    },
    "all_to_all": {"default": "auto"},
    "reduce_scatter": {"two_shot": "direct"},
    "broadcast": {},
}

#: This library's names: the table in include/iris/ccl.h explains them.
_OURS: Dict[str, Tuple[str, ...]] = {
    "all_reduce": (
        "one_shot",
        "two_shot",
        "one_shot_packet",
        "two_shot_packet",
        "atomic",
        "spinlock",
        "ring",
    ),
    "all_gather": ("push", "pull", "packet"),
    "all_to_all": ("push", "pull", "packet"),
    "reduce_scatter": ("direct", "packet"),
    "broadcast": ("push", "pull", "packet"),
}

#: Fields that must be numbers above zero.
_POSITIVE = (
    "block_size_m",
    "block_size_n",
    "swizzle_size",
    "comm_sms",
    "num_xcds",
    "chunk_size",
    "all_reduce_num_rings",
    "all_reduce_ring_slice_n",
    "num_stages",
    "num_warps",
)


@dataclass
class Config:
    """Options of a collective. All members of its group must pass equal ones.

    It has upstream's fields in upstream's order, then two more. Only
    `comm_sms`, the variants and the number of rings have an effect. The others
    describe how upstream's kernels cut tensors into tiles; they are checked.

    Args:
        comm_sms: the most compute units to use; None: the library decides.
        all_reduce_num_rings: for "ring"; two go around in both directions, and
            larger numbers mean two.
        all_reduce_variant: "auto", upstream's "atomic", "ring", "two_shot",
            "one_shot" or "spinlock", or another of docs/collectives.md.
        all_gather_variant: "auto", "push", "pull", "packet"; upstream's
            "persistent" and "partitioned" are "push".
        reduce_scatter_variant: "auto", "direct", "packet"; upstream's
            "two_shot" is "direct".
        all_to_all_variant: "auto", "push", "pull", "packet"; upstream's
            "default" is "auto".
        broadcast_variant: "auto", "push", "pull", "packet".
    """

    block_size_m: int = 32
    block_size_n: int = 64
    swizzle_size: int = 4
    comm_sms: Optional[int] = None
    num_xcds: Optional[int] = None
    chunk_size: Optional[int] = None
    use_gluon: bool = False
    all_gather_variant: str = "auto"
    all_reduce_variant: str = "auto"
    all_reduce_distribution: int = 1
    all_reduce_num_rings: int = 1
    all_reduce_ring_slice_n: Optional[int] = None
    reduce_scatter_variant: str = "auto"
    num_stages: int = 1
    num_warps: int = 4
    threads_per_warp: int = 64
    waves_per_eu: int = 0
    all_to_all_variant: str = "auto"
    broadcast_variant: str = "auto"

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be positive, got {value}")
        for operation in _UPSTREAM:
            self.variant_of(operation)
        self._check_slice()
        if self.all_reduce_distribution not in (0, 1):
            raise ValueError(
                "all_reduce_distribution must be 0 (striding) or 1 (block),"
                f" got {self.all_reduce_distribution}"
            )
        if self.threads_per_warp not in (32, 64):
            raise ValueError(
                "threads_per_warp must be 32 (NVIDIA) or 64 (AMD), got"
                f" {self.threads_per_warp}"
            )
        if self.waves_per_eu < 0:
            raise ValueError(
                f"waves_per_eu must not be negative, got {self.waves_per_eu}"
            )

    def _check_slice(self) -> None:
        """As in upstream, the default slice is as wide as a tile."""
        if self.all_reduce_ring_slice_n is None:
            self.all_reduce_ring_slice_n = self.block_size_n
        slice_n = self.all_reduce_ring_slice_n
        if self.block_size_n % slice_n != 0:
            raise ValueError(
                "all_reduce_ring_slice_n must divide block_size_n"
                f" (block_size_n={self.block_size_n}, slice={slice_n})"
            )
        if slice_n & (slice_n - 1):
            raise ValueError(
                "all_reduce_ring_slice_n must be a power of two, got"
                f" {slice_n}"
            )

    def variant_of(self, operation: str) -> str:
        """The library's name of a collective's variant."""
        field = f"{operation}_variant"
        asked = getattr(self, field)
        names = {name: name for name in ("auto", *_OURS[operation])}
        names.update(_UPSTREAM[operation])
        if asked not in names:
            raise ValueError(
                f"{field} must be one of: {', '.join(map(repr, names))}, got"
                f" {asked!r}"
            )
        return names[asked]
