# SPDX-License-Identifier: MIT
"""Python imports this when it starts, in a rank and in every process that
the rank starts. So it also serves programs that start their own ranks."""

import importlib.util
import os
import sys


def _next_sitecustomize() -> None:
    """Also imports the module that this file hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = [at for at in sys.path if os.path.abspath(at or ".") != here]
    finder = importlib.machinery.PathFinder
    spec = finder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)


if os.environ.get("IRIS_C_UPSTREAM_DEVICE"):
    from iris_c.upstream import imports

    imports.install()
_next_sitecustomize()
