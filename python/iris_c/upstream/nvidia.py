# SPDX-License-Identifier: MIT
"""Runs kernels that were written for AMD's GPUs on NVIDIA's.

PTX has no cache modifier for volatile loads: a volatile load bypasses all
caches anyway.
"""

import functools
from typing import Any


def apply(module: Any) -> None:
    from triton.language import semantic

    kind = semantic.TritonSemantic
    original = kind.load

    @functools.wraps(original)
    def load(
        self: Any, ptr: Any, mask: Any, other: Any, boundary_check: Any,
        padding_option: Any, cache_modifier: Any, *rest: Any
    ) -> Any:
        is_volatile = rest[-1]
        if is_volatile:
            cache_modifier = ""
        return original(self, ptr, mask, other, boundary_check,
                        padding_option, cache_modifier, *rest)

    kind.load = load
