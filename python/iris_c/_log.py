# SPDX-License-Identifier: MIT
"""Messages: the library prints "[Iris] [rank/num_ranks] message" on stderr."""

import weakref
from typing import Any, Optional

from ._lib import call

DEBUG = 10
INFO = 20
WARNING = 30
ERROR = 40

#: The level from set_logger_level(), for later contexts.
_level: Optional[int] = None

#: Contexts whose level set_logger_level() changes.
_contexts: "weakref.WeakSet[Any]" = weakref.WeakSet()


def set_logger_level(level: int) -> None:
    """Prints messages at or above `level` (DEBUG, INFO, WARNING, ERROR) from
    now on, for every context of this process. Before the first call
    IRIS_LOG_LEVEL decides."""
    global _level
    if level not in (DEBUG, INFO, WARNING, ERROR):
        raise ValueError(
            f"level {level!r}: takes iris_c.DEBUG, INFO, WARNING or ERROR"
        )
    _level = level
    for context in list(_contexts):
        call.iris_log_set_level(context.handle, level)


def follow(context: Any) -> None:
    """Sets a new context's level, now and whenever it changes."""
    _contexts.add(context)
    if _level is not None:
        call.iris_log_set_level(context.handle, _level)


def write(level: str, handle: Optional[int], message: object) -> None:
    """Prints one line by the library's iris_debug() to iris_error()."""
    # The library parses the text as a format of printf.
    text = str(message).replace("%", "%%")
    getattr(call, f"iris_{level}")(handle, text.encode())
