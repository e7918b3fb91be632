# SPDX-License-Identifier: MIT
"""Gluon's layouts with the number of lanes in a warp of NVIDIA's GPUs.

Upstream's programs have 64 lanes, an AMD wavefront's. A layout repeats until it
covers a tensor, so a layout with half the lanes is also correct.
"""

import math
from typing import Any, List

LANES = 32


def narrowed(threads_per_warp: List[Any]) -> List[Any]:
    """The lanes along each dimension, 64 altogether, with the largest number halved."""
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
