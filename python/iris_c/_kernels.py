# SPDX-License-Identifier: MIT
"""Triton's kernels in a program without a GPU: said at the launch, or
interpreted with an end to waits for what cannot come.

iris_c.upstream does the latter for upstream's programs by itself.
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
    """Triton's own text is "0 active drivers"."""
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
    """A loop that polls would never end once its peer has gone."""
    from triton.runtime import interpreter

    from .upstream import launch, polls

    if polls.fits(interpreter):
        launch.report(interpreter)
        polls.apply(interpreter)


def prepare() -> None:
    """For a program that has imported Triton. Doing it again does nothing."""
    global _prepared
    if _prepared or "triton" not in sys.modules:
        return
    _prepared = True
    if os.environ.get("IRIS_C_UPSTREAM_DEVICE"):
        return  # iris_c.upstream
    if sys.modules["triton"].knobs.runtime.interpret:
        _end_hopeless_waits()
    else:
        _explain_missing_gpu()


_prepared = False
