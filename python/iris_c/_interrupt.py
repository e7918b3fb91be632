# SPDX-License-Identifier: MIT
"""Runs Python's signal handlers during a wait of the library, so that Ctrl-C
works.

While a call waits, Python notes a signal but runs no handler. The library calls
a function from time to time (iris_set_wait_check()), and the handlers run
there.
"""

import ctypes
import threading
from typing import Any, Generator, List

#: int (*check)(void *)
Check = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)

#: The exception of a handler. The call that waited raises it.
_raised: List[BaseException] = []


def _answers() -> Generator[int, None, None]:
    """Yields 0 to continue the wait, and 1 after a handler raised an exception.

    Python also runs handlers where a function begins, before any `try` in it, and
    where a loop goes back. A generator resumes inside its `try`, and so the loop
    is there, too.
    """
    answer = 0
    while True:
        try:
            while True:
                yield answer
                answer = 0
        except GeneratorExit:
            raise
        except BaseException as error:
            _raised.append(error)
            answer = 1


_generator = _answers()
next(_generator)
# The library calls this function, so Python must keep it.
_check = Check(_generator.send)


def watch(set_wait_check: Any) -> None:
    """Makes this thread's waits call the function, if Python runs signal
    handlers in this thread."""
    if threading.current_thread() is threading.main_thread():
        set_wait_check(_check, None)


def raise_if_interrupted() -> None:
    """Raises the exception that ended the wait of the latest call."""
    if _raised and threading.current_thread() is threading.main_thread():
        raise _raised.pop()
