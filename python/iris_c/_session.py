# SPDX-License-Identifier: MIT
"""The lifetime of a context: until neither the program nor an array uses it.

The program holds an object of class Iris, and arrays hold its session. The
library's context ends with the last of them. It does not wait for peers then,
since garbage collection is at a different time on each rank. When Python ends
it does wait for them.
"""

import atexit
import ctypes
import gc
import os
import sys
import traceback
from typing import Any, List, Optional, Set

from ._errors import IrisError, StateError, WaitInterrupted
from ._lib import call, raw
from ._structs import HeapStats

_free_later = raw("iris_free_later")
_finalize_later = raw("iris_finalize_later")

#: Sessions that this process has joined and not left, oldest first.
_joined: "List[Session]" = []


class Session:
    """An iris_t, and the owners that use its memory."""

    def __init__(self, handle: int, timeout_ms: Any = None) -> None:
        self._handle: Optional[int] = handle
        #: The program's setting. None: IRIS_TIMEOUT_MS.
        self.timeout_ms = timeout_ms
        self._pid = os.getpid()
        self._owners: Set[int] = set()
        self._is_closed = False
        self.read_ranks()
        # A child process drops the sessions of its parent.
        _joined[:] = [joined for joined in _joined if joined.is_own()]
        _joined.append(self)

    def read_ranks(self) -> None:
        """The numbers, which change when the job shrinks."""
        self.rank: int = call.iris_rank(self._handle)
        self.num_ranks: int = call.iris_num_ranks(self._handle)

    @property
    def handle(self) -> int:
        """The iris_t as a number. Raises an error once the program may not use it."""
        if self._is_closed or self._handle is None:
            raise StateError("this context has been finalized")
        if self._pid != os.getpid():
            raise StateError(
                "this context belongs to the process that forked this one;"
                " make one here with iris_c.iris()"
            )
        return self._handle

    @property
    def is_closed(self) -> bool:
        """Whether the program has finalized it."""
        return self._is_closed

    def close(self) -> None:
        """The program does not use the context any more, but arrays may. A
        context without arrays waits for its peers if it is the only one, as
        the library does. If there are several it must not wait, because
        ranks may close them in different orders."""
        if self._is_closed or not self.is_own():
            return
        self._is_closed = True
        if self._owners:
            gc.collect()
        if not self._owners and _joined == [self]:
            self.leave()
        elif not self._owners:
            self.leave_later()

    def let_go(self) -> None:
        """The same as close() without waiting, for the garbage collector."""
        self._is_closed = True
        if not self._owners:
            self.leave_later()

    def add(self, owner: "Owner") -> None:
        """Adds an array that uses the memory."""
        self._owners.add(id(owner))

    def stats(self) -> HeapStats:
        """The figures of the heap."""
        stats = HeapStats()
        call.iris_heap_stats_sized(
            self.handle, ctypes.byref(stats), ctypes.sizeof(stats)
        )
        return stats

    def remove(self, owner: "Owner", address: Optional[int]) -> None:
        """Removes an array and frees its allocation, if it owned one. Any
        thread may call this. It never blocks."""
        # When Python ends, arrays may outlive this module.
        if address is not None and self._handle is not None:
            _free_later(self._handle, address)
        self._owners.discard(id(owner))
        if self._is_closed and not self._owners:
            self.leave_later()

    def is_own(self) -> bool:
        """Whether this process joined the context and has not left it."""
        return self._handle is not None and self._pid == os.getpid()

    def leave_later(self) -> None:
        """Ends the context. A thread of the library waits for the peers."""
        if self.is_own() and _finalize_later(self._handle) == 0:
            self._forget()

    def leave(self) -> None:
        """Ends the context when all peers are ready."""
        handle = self._handle
        self._forget()
        try:
            call.iris_finalize(handle)
        except WaitInterrupted:
            # An earlier wait ended like this, and its caller got the exception.
            pass

    def give_reason(self, reason: str) -> None:
        """Tells peers the reason why this rank leaves."""
        if self.is_own():
            call.iris_set_leave_reason(self._handle, reason.encode())

    def interrupt(self, error: BaseException) -> None:
        """Ends the waits of this context, and tells peers the reason. They
        would wait for this rank in vain."""
        if self.is_own():
            self.give_reason(_described(error))
            call.iris_interrupt(self._handle)

    def _forget(self) -> None:
        self._handle = None
        self._is_closed = True
        _joined.remove(self)


class Owner:
    """An array's reference to the session and, unless the array is a view,
    to its allocation. Also keeps the memory that it may share."""

    def __init__(
        self, session: Session, address: Optional[int], source: Any = None
    ) -> None:
        self._session = session
        self._address = address
        self._source = source
        session.add(self)

    def __del__(self) -> None:
        self._session.remove(self, self._address)


def _described(error: BaseException) -> str:
    """An exception in one line, like the last line of its traceback."""
    text = "".join(traceback.format_exception_only(type(error), error))
    return " ".join(text.split())


def leave_all(error: Optional[BaseException] = None) -> None:
    """Leaves every job that this process is in. After an exception it does
    not wait for peers."""
    for session in [session for session in _joined if session.is_own()]:
        if error is not None:
            session.interrupt(error)
        try:
            session.leave()
        except IrisError:
            # After a failure it is expected that peers do not come.
            if error is None:
                raise


def _fail_at_exit() -> None:
    """Makes the exit status of the process 1. Python has already decided on
    the status, and only prints exceptions of atexit functions. So the C
    library calls _exit(1) when Python has ended."""
    libc = ctypes.CDLL(None)
    libc.__cxa_atexit(libc._exit, 1, None)


@atexit.register
def _at_exit() -> None:
    error: Optional[BaseException] = getattr(sys, "last_value", None)
    for session in _joined:
        session.give_reason("its program has ended")
    try:
        leave_all(error)
    except IrisError as failure:
        print(f"iris_c: at the program's end: {failure}", file=sys.stderr)
        _fail_at_exit()
