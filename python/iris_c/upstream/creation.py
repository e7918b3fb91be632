# SPDX-License-Identifier: MIT
"""Makes creation calls return when tensors are filled on every rank.

Upstream's zeros() and similar calls return when this rank's memory is filled.
If a peer's next kernel writes to another rank before that rank fills its
memory, the value is lost. On the CPU, where kernels start at once, this happens
in upstream's own tests. The library's own creation calls end when all ranks'
memory is filled. So do upstream's here.
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
