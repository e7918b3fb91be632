# SPDX-License-Identifier: MIT
"""Gluon as Triton without layouts.

Gluon compiles for a GPU whatever TRITON_INTERPRET says. Its kernels are
Triton's with a layout for each tensor, which assigns elements to threads. In
the interpreter a tensor is one piece, so layouts are dropped.
"""

from typing import Any, Callable


def _without_layouts(tl: Any, name: str, layouts: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(arg for arg in args if not isinstance(arg, layouts))
        for word in ("layout", "_semantic", "_generator"):
            kwargs.pop(word, None)
        return getattr(tl, name)(*args, **kwargs)

    call.__name__ = name
    return call


def _unchanged(value: Any, *_: Any, **__: Any) -> Any:
    return value


def _see_constexprs() -> None:
    """The interpreter finds a constexpr parameter by the text of its
    annotation, and only knows the text tl.constexpr."""
    from triton.runtime.interpreter import GridExecutor

    original = GridExecutor.__init__

    def __init__(self: Any, fn: Any, names: Any, *rest: Any) -> None:
        original(self, fn, names, *rest)
        self.constexprs = [
            name for name in names
            if str(fn.__annotations__.get(name)).endswith(".constexpr")
            or name in self.constexprs
        ]

    GridExecutor.__init__ = __init__


def apply(module: Any) -> None:
    import triton
    import triton.language as tl
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.language import _layouts

    _see_constexprs()
    module.jit = triton.jit
    if hasattr(module, "aggregate"):
        module.aggregate = tl.core._aggregate
    for name in dir(gl):
        member = getattr(gl, name)
        if name.startswith("_") or isinstance(member, type):
            continue
        if callable(member) and hasattr(tl, name):
            setattr(gl, name, _without_layouts(
                tl, name, _layouts.DistributedLayout))
    for name in ("convert_layout", "set_auto_layout"):
        if hasattr(gl, name):
            setattr(gl, name, _unchanged)
