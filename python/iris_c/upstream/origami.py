# SPDX-License-Identifier: MIT
"""Replaces origami, which chooses the sizes of tritonBLAS's tiles.

It is a compiled part of AMD's libraries. tritonBLAS imports it at once, but the
parts of tritonBLAS that upstream uses do not call it. So its names are enough.
"""

from typing import Any


class _Absent:
    """A name of origami's."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError(
            f"origami.{type(self).__name__} is needed, and --stand-in has the"
            " names of origami only: install origami"
        )


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (_Absent,), {})
