# SPDX-License-Identifier: MIT
"""Triton's kernels in a program without a GPU: an error at the launch, or the
interpreter with an end to hopeless waits.

iris_c.upstream does the latter by itself for upstream's programs.
"""

import importlib
import os
import sys
from typing import Any

_NO_GPU = (
    "Triton finds no GPU here, and so compiles no kernel. Set"
    " TRITON_INTERPRET=1 in the environment before the program imports Triton:"
    " kernels are then interpreted on the CPU."
)


def _explain_missing_gpu() -> None:
    """Replaces Triton's own message, which is "0 active drivers"."""
    module: Any = importlib.import_module("triton.runtime.driver")
    original = module._create_driver

    def create() -> Any:
        try:
            return original()
        except RuntimeError as error:
            if not str(error).startswith("0 active drivers"):
                raise
            raise RuntimeError(f"{_NO_GPU} (Triton: {error})") from None

    module._create_driver = create


def _end_hopeless_waits() -> None:
    """Ends waits for a peer that has gone: a loop that polls would never end."""
    from triton.runtime import interpreter

    from .upstream import launch, polls

    if polls.fits(interpreter):
        launch.report(interpreter)
        polls.apply(interpreter)


def prepare() -> None:
    """Prepares a program that has imported Triton. A second call does nothing."""
    global _prepared
    if _prepared or "triton" not in sys.modules:
        return
    _prepared = True
    if os.environ.get("IRIS_C_UPSTREAM_DEVICE"):
        return  # iris_c.upstream does it
    if not hasattr(sys.modules["triton"], "knobs"):
        return  # This Triton is too old, which matters to iris_c.triton only.
    if sys.modules["triton"].knobs.runtime.interpret:
        _end_hopeless_waits()
    else:
        _explain_missing_gpu()


_prepared = False
