# SPDX-License-Identifier: MIT
"""Options of fused operations: upstream's iris.ops.

The operations themselves are methods of `ctx.ops`. The functions here are
upstream's other spelling of them. They take the context as the first argument.
"""

from dataclasses import dataclass
from typing import Any, Callable, Optional

from ._ops import Workspace

__all__ = [
    "FusedConfig",
    "FusedWorkspace",
    "all_gather_matmul",
    "all_gather_matmul_preamble",
    "matmul_all_gather",
    "matmul_all_gather_preamble",
    "matmul_all_reduce",
    "matmul_all_reduce_preamble",
    "matmul_reduce_scatter",
    "matmul_reduce_scatter_preamble",
]

#: Upstream's name of the class that preambles return.
FusedWorkspace = Workspace

_VARIANTS = ("atomic", "ring", "two_shot", "one_shot", "spinlock")

#: Fields that must be numbers above zero.
_POSITIVE = (
    "block_size_m",
    "block_size_n",
    "block_size_k",
    "group_size_m",
    "num_sms",
    "num_xcds",
    "chunk_size",
    "all_reduce_num_rings",
    "chunks",
)


@dataclass
class FusedConfig:
    """Upstream's fields, in upstream's order, then one more. Upstream's fields
    describe how its kernels cut a product into tiles. Iris multiplies with the
    device's library, so these fields are checked and have no effect: sizes may
    be smaller than a block.

    Args:
        chunks: the number of parts of the rows, 1 to 8. One part's product
            overlaps with another's transport. None: IRIS_OPS_CHUNKS if it is
            set; otherwise the library decides.
    """

    block_size_m: int = 256
    block_size_n: int = 64
    block_size_k: int = 64
    group_size_m: int = 1
    num_sms: Optional[int] = None
    num_xcds: int = 1
    chunk_size: int = 1
    cache_modifier_a: str = ".ca"
    cache_modifier_b: str = ".ca"
    allow_tf32: bool = True
    all_reduce_variant: str = "two_shot"
    all_reduce_num_rings: int = 1
    ksplit: bool = False
    chunks: Optional[int] = None

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be positive, got {value}")
        if self.all_reduce_variant not in _VARIANTS:
            raise ValueError(
                "all_reduce_variant must be one of:"
                f" {', '.join(map(repr, _VARIANTS))}, got"
                f" {self.all_reduce_variant!r}"
            )

    def validate(self, world_size: Optional[int] = None) -> None:
        """Checks the fields again, after the program has changed some of them."""
        self.__post_init__()
        is_ring = self.all_reduce_variant == "ring"
        if is_ring and world_size and self.block_size_n % world_size != 0:
            raise ValueError(
                f"For ring variant, block_size_n ({self.block_size_n}) must"
                f" be divisible by world_size ({world_size})"
            )


def _standalone(name: str) -> Callable[..., Workspace]:
    """A method of `ctx.ops` as a function of a context."""

    def function(shmem: Any, *args: Any, **named: Any) -> Workspace:
        made: Workspace = getattr(shmem.ops, name)(*args, **named)
        return made

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"shmem.ops.{name}() of a context `shmem`."
    return function


matmul_all_reduce = _standalone("matmul_all_reduce")
matmul_all_reduce_preamble = _standalone("matmul_all_reduce_preamble")
all_gather_matmul = _standalone("all_gather_matmul")
all_gather_matmul_preamble = _standalone("all_gather_matmul_preamble")
matmul_all_gather = _standalone("matmul_all_gather")
matmul_all_gather_preamble = _standalone("matmul_all_gather_preamble")
matmul_reduce_scatter = _standalone("matmul_reduce_scatter")
matmul_reduce_scatter_preamble = _standalone("matmul_reduce_scatter_preamble")
