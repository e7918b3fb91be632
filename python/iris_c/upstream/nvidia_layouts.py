# SPDX-License-Identifier: MIT
"""Gluon's layouts with as many lanes as a warp of NVIDIA's GPUs has.

Upstream's programs say 64, an AMD wavefront's. A layout is repeated until it
covers a tensor, so one of half as many lanes will do.
"""

import math
from typing import Any, List

LANES = 32


def narrowed(threads_per_warp: List[Any]) -> List[Any]:
    """The lanes along each dimension, of 64 all together: the most are halved;
    others stay as they are."""
    lanes = [getattr(count, "value", count) for count in threads_per_warp]
    if math.prod(lanes) != 2 * LANES:
        return threads_per_warp
    most = lanes.index(max(lanes))
    lanes[most] //= 2
    return lanes


def apply(module: Any) -> None:
    kind = module.BlockedLayout
    original = kind.__post_init__

    def __post_init__(self: Any) -> None:
        original(self)
        # The class is frozen.
        object.__setattr__(
            self, "threads_per_warp", narrowed(self.threads_per_warp))

    kind.__post_init__ = __post_init__
