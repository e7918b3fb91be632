# SPDX-License-Identifier: MIT
"""Launches of interpreted kernels.

Triton's interpreter puts its own calls into triton.language before each launch,
and again before each call between kernel functions. This takes most of the time
of a small kernel. If every kernel of a process is interpreted, the calls can
stay there. The interpreter also copies each argument to the CPU and back. Here
memory is the CPU's, so torch would copy nothing, but the check alone takes a
third of a small launch.
"""

import types
from typing import Any, Callable, List, Optional

#: graphs.py's function that keeps a launch for later. It returns whether it
#: did.
recorder: Optional[Callable[[Callable[[], None]], bool]] = None

#: Errors that the program gets unchanged, without the interpreter's text.
plain_errors: List[type] = []

#: The running kernel, for messages.
current = ""


def _patch_for_good(interpreter: Any) -> None:
    import triton.language as tl

    anywhere = types.SimpleNamespace(
        __globals__={"tl": tl, "core": tl.core})
    interpreter._patch_lang(anywhere)
    interpreter._patch_lang = lambda fn: interpreter._LangPatchScope()


class Launched:
    """The result of a launch: a compiled kernel, of which programs print the
    number of registers."""

    n_regs = 0
    n_spills = 0


def _cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _stay(self: Any, args: Any, kwargs: Any) -> Any:
    return args, kwargs


def _nothing(self: Any, *_: Any) -> None:
    pass


def report(interpreter: Any) -> None:
    """Sets the name of the running kernel, and raises plain errors unchanged."""
    original = interpreter.GridExecutor.__call__

    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        global current
        before, current = current, self.fn.__name__
        try:
            original(self, *args, **kwargs)
        except interpreter.InterpreterError as error:
            cause = _cause(error)
            if isinstance(cause, tuple(plain_errors)):
                raise cause from None
            raise
        finally:
            current = before

    interpreter.GridExecutor.__call__ = run


def apply(module: Any) -> None:
    from triton.runtime import interpreter

    _patch_for_good(interpreter)
    executor = interpreter.GridExecutor
    executor._init_args_hst = _stay
    executor._restore_args_dev = _nothing
    # A GPU's compiler takes assumptions as hints. Some of upstream's do not
    # hold, such as that a tile's number is above 0.
    interpreter.InterpreterBuilder.create_assume = _nothing
    report(interpreter)
    run = executor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Launched:
        launch = lambda: run(self, *args, **kwargs)  # noqa: E731
        if recorder is None or not recorder(launch):
            launch()
        return Launched()

    executor.__call__ = call
