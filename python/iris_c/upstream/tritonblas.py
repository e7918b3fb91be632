# SPDX-License-Identifier: MIT
"""Replaces tritonBLAS, which upstream imports at once and most of its programs
never call. Its names raise an error when they are used.

It also replaces tritonBLAS's own modules, whatever their names.
"""

from typing import Any

__path__: Any = []  # a package, as Python's import sees it


class _Absent:
    """A name of tritonBLAS's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            f"tritonblas.{type(self).__name__} is needed, and iris_c.upstream"
            " has tritonBLAS's names only: install it, or name a checkout by"
            " --tritonblas"
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (_Absent,), {})
