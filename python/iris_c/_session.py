# SPDX-License-Identifier: MIT
"""How long a context lasts: as long as the program or any array looks at it.

class Iris is what a program has in hand; its session is what arrays keep. The
library's context ends with the last of them, without waiting for peers, since
nobody knows when Python lets go of what. When Python ends it waits for them.
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

#: What this process has joined and not left, oldest first.
_joined: "List[Session]" = []


class Session:
    """An iris_t, and who looks at its memory."""

    def __init__(self, handle: int, timeout_ms: Any = None) -> None:
        self._handle: Optional[int] = handle
        #: What the program has set; None: IRIS_TIMEOUT_MS.
        self.timeout_ms = timeout_ms
        self._pid = os.getpid()
        self._owners: Set[int] = set()
        self._is_closed = False
        self.rank: int = call.iris_rank(handle)
        self.num_ranks: int = call.iris_num_ranks(handle)
        # In a child process those of its parent are nobody's.
        _joined[:] = [joined for joined in _joined if joined.is_own()]
        _joined.append(self)

    @property
    def handle(self) -> int:
        """The iris_t, as a number, for as long as the program may use it."""
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
        """The program is done with it; arrays may not be. One context that
        nobody looks at any more waits for its peers, as the library does.
        Several must not: each rank may close them in an order of its own."""
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
        """As close(), without waiting: for a garbage collector."""
        self._is_closed = True
        if not self._owners:
            self.leave_later()

    def add(self, owner: "Owner") -> None:
        """An array looks at the memory."""
        self._owners.add(id(owner))

    def stats(self) -> HeapStats:
        """The figures of the heap."""
        stats = HeapStats()
        call.iris_heap_stats_sized(
            self.handle, ctypes.byref(stats), ctypes.sizeof(stats)
        )
        return stats

    def remove(self, owner: "Owner", address: Optional[int]) -> None:
        """An array does not look at the memory any more, and what it owned is
        free. Any thread; never blocks."""
        if address is not None:
            _free_later(self._handle, address)
        self._owners.discard(id(owner))
        if self._is_closed and not self._owners:
            self.leave_later()

    def is_own(self) -> bool:
        """Whether it is this process's, and not left yet."""
        return self._handle is not None and self._pid == os.getpid()

    def leave_later(self) -> None:
        """Ends the context; a thread of the library's waits for the peers."""
        if self.is_own() and _finalize_later(self._handle) == 0:
            self._forget()

    def leave(self) -> None:
        """Ends the context when all peers have come."""
        handle = self._handle
        self._forget()
        try:
            call.iris_finalize(handle)
        except WaitInterrupted:
            # That is how an earlier wait ended, and its caller was told.
            pass

    def give_reason(self, reason: str) -> None:
        """Tells peers why this rank leaves."""
        if self.is_own():
            call.iris_set_leave_reason(self._handle, reason.encode())

    def interrupt(self, error: BaseException) -> None:
        """Peers will wait in vain for what this rank has yet to do."""
        if self.is_own():
            self.give_reason(_described(error))
            call.iris_interrupt(self._handle)

    def _forget(self) -> None:
        self._handle = None
        self._is_closed = True
        _joined.remove(self)


class Owner:
    """What an array keeps: the session, and the allocation that goes with the
    array, if it is no view of one."""

    def __init__(self, session: Session, address: Optional[int]) -> None:
        self._session = session
        self._address = address
        session.add(self)

    def __del__(self) -> None:
        self._session.remove(self, self._address)


def _described(error: BaseException) -> str:
    """An exception in a line, as the end of its traceback has it."""
    text = "".join(traceback.format_exception_only(type(error), error))
    return " ".join(text.split())


def leave_all(error: Optional[BaseException] = None) -> None:
    """Leaves every job that this process is in; after an exception without
    waiting for peers."""
    for session in [session for session in _joined if session.is_own()]:
        if error is not None:
            session.interrupt(error)
        try:
            session.leave()
        except IrisError:
            # That peers do not come along is no news after a failure.
            if error is None:
                raise


def _fail_at_exit() -> None:
    """Makes 1 the status of the process. Python has decided on it already, and
    prints what a function of atexit raises without counting it: the C library
    calls _exit(1) when Python has ended."""
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
