# SPDX-License-Identifier: MIT
"""Tensors that are filled on every rank when a creation call returns.

Upstream's zeros() and its like return when this rank's memory is filled. A peer
whose next kernel writes there may come before that, and its value is lost; on
the CPU, where a kernel starts at once, that happens in upstream's own tests.
The library's own creation calls end with all ranks' memory filled, and so do
upstream's here.
"""

import functools
from typing import Any

_FILLING = ("zeros", "ones", "full", "zeros_like", "arange", "linspace",
            "rand", "randn", "randint", "uniform")


def _settled(create: Any) -> Any:
    @functools.wraps(create)
    def call(heap: Any, *args: Any, **kwargs: Any) -> Any:
        tensor = create(heap, *args, **kwargs)
        if kwargs.get("out") is None:
            heap.barrier()
        return tensor

    return call


def apply(module: Any) -> None:
    for name in _FILLING:
        setattr(module, name, _settled(getattr(module, name)))
