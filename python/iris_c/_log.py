# SPDX-License-Identifier: MIT
"""Messages: "[Iris] [rank/num_ranks] message" on stderr, by the library."""

import weakref
from typing import Any, Optional

from ._lib import call

DEBUG = 10
INFO = 20
WARNING = 30
ERROR = 40

#: The level of set_logger_level(), for contexts that come later.
_level: Optional[int] = None

#: Contexts whose level set_logger_level() changes.
_contexts: "weakref.WeakSet[Any]" = weakref.WeakSet()


def set_logger_level(level: int) -> None:
    """Prints messages at or above `level` (DEBUG, INFO, WARNING, ERROR) from
    here on, of every context of this process. Until then IRIS_LOG_LEVEL
    decides."""
    global _level
    if level not in (DEBUG, INFO, WARNING, ERROR):
        raise ValueError(
            f"level {level!r}: takes iris_c.DEBUG, INFO, WARNING or ERROR"
        )
    _level = level
    for context in list(_contexts):
        call.iris_log_set_level(context.handle, level)


def follow(context: Any) -> None:
    """Gives a new context the level, now and whenever it changes."""
    _contexts.add(context)
    if _level is not None:
        call.iris_log_set_level(context.handle, _level)


def write(level: str, handle: Optional[int], message: object) -> None:
    """One line by the library's iris_debug() to iris_error()."""
    # The library reads the text as a format of printf.
    text = str(message).replace("%", "%%")
    getattr(call, f"iris_{level}")(handle, text.encode())
