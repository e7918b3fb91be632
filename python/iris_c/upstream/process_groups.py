# SPDX-License-Identifier: MIT
"""Process groups of NCCL are Gloo's without a GPU.

NCCL moves a GPU's memory only. Upstream's programs ask for it by name.
"""

from typing import Any


def apply(module: Any) -> None:
    original = module.init_process_group

    def init_process_group(
        backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        kwargs.pop("device_id", None)
        if backend is None or "nccl" in str(backend):
            backend = "gloo"
        return original(backend, *args, **kwargs)

    module.init_process_group = init_process_group
