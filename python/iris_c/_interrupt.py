# SPDX-License-Identifier: MIT
"""Ctrl-C during a wait of the library: Python's handlers of signals run there.

While a call waits, Python has noted a signal but runs no handler. The library
asks in between whether to go on (iris_set_wait_check()), and that is where.
"""

import ctypes
import threading
from typing import Any, Generator, List

#: int (*check)(void *)
Check = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

#: What a handler raised; the call that waited raises it.
_raised: List[BaseException] = []


def _answers() -> Generator[int, None, None]:
    """0: the wait goes on; 1: a handler raised something.

    Python runs handlers where code begins, too, before any `try` of it. A
    generator goes on inside of its `try`.
    """
    answer = 0
    while True:
        try:
            yield answer
            answer = 0
        except GeneratorExit:
            raise
        except BaseException as error:
            _raised.append(error)
            answer = 1


_generator = _answers()
next(_generator)
# Python must not free what the library calls.
_check = Check(_generator.send)


def watch(set_wait_check: Any) -> None:
    """Makes the waits of this thread ask, if it is the one that runs Python's
    handlers of signals."""
    if threading.current_thread() is threading.main_thread():
        set_wait_check(_check, None)


def raise_if_interrupted() -> None:
    """Raises what ended the wait of the call that has just returned."""
    if _raised and threading.current_thread() is threading.main_thread():
        raise _raised.pop()
