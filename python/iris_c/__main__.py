# SPDX-License-Identifier: MIT
"""python -m iris_c: opens a context and prints the features of this installation."""

import importlib
import os
import sys
from typing import Iterator, Tuple

from . import IrisError, __version__, iris
from ._context import Iris
from ._lib import path


def _version_of(module: str) -> str:
    try:
        found = importlib.import_module(module)
    except ImportError:
        return "not installed"
    return str(getattr(found, "__version__", "of an unknown version"))


def _installed() -> Iterator[Tuple[str, str]]:
    yield "iris", f"{__version__}, {path}"
    yield "python", f"{sys.version.split()[0]}, {sys.executable}"
    for module in ("numpy", "torch"):
        yield module, _version_of(module)
    for name in sorted(os.environ):
        if name.startswith("IRIS_"):
            yield name, os.environ[name]


def _of_context(context: Iris) -> Iterator[Tuple[str, str]]:
    yield "backend", context.backend_name
    yield "rank", f"{context.cur_rank} of {context.num_ranks}"
    yield "device", f"{context.device}, {context.get_cu_count()} CUs"
    for name, figure in context.heap_stats().items():
        yield name, str(figure)


def _print(rows: Iterator[Tuple[str, str]]) -> None:
    for name, text in rows:
        print(f"{name:<24}{text}")


def main() -> int:
    """Prints the table. Returns 1, and prints the reason, if no context can
    be opened."""
    _print(_installed())
    try:
        context = iris(16 << 20)
    except (ImportError, IrisError) as error:
        print(f"{'error':<24}{error}")
        return 1
    with context:
        _print(_of_context(context))
    return 0


if __name__ == "__main__":
    sys.exit(main())
