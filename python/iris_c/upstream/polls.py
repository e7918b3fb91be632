# SPDX-License-Identifier: MIT
"""Ends loops in interpreted kernels that wait for a write that cannot come.

A waiting kernel reads the same words again and again. On a GPU the instances of
a launch run side by side. The interpreter runs them one after another, so an
instance that waits for a later one would hang for ever. A dead peer writes
nothing, so a waiting kernel also asks whether its peers are alive.
"""

import os
import time
from typing import Any, Dict, List, Tuple

from iris_c import _session
from iris_c._lib import call

from . import launch

#: The number of reads without a new value before peers are checked.
_LOOK_EVERY = 32

#: The longest sleep between two checks, in seconds.
_SLEEP_S = 4e-3

#: The number of reads that is a wait without end if no other rank can write.
_ALONE = 20_000

#: The default of IRIS_TIMEOUT_MS.
_DEADLINE_MS = 300_000

#: The number of words to remember: every access reads heap bases.
_WORDS = 64


class WaitError(RuntimeError):
    """A kernel waits for a write that cannot come."""


class PeerLostError(RuntimeError):
    """A kernel waits, and a peer has gone."""


def _limit_s() -> float:
    """The time limit of a wait in seconds. 0: no limit. A kernel runs on the
    host here, so the host's deadline applies."""
    device = int(os.environ.get("IRIS_DEVICE_TIMEOUT_MS") or 0)
    if device:
        return device / 1e3
    asked = [session.timeout_ms for session in _session._joined
             if session.timeout_ms is not None]
    asked += [os.environ.get("IRIS_TIMEOUT_MS") or _DEADLINE_MS]
    return int(asked[0]) / 1e3


def _is_alone() -> bool:
    """Whether no other rank can write. If a program starts its ranks itself,
    the environment has one rank, but its contexts have several."""
    counts = [context.num_ranks for context in contexts()]
    return bool(max([int(os.environ.get("WORLD_SIZE", "1")), *counts]) == 1)


class _Peers:
    """The peers of one context of this process."""

    def __init__(self, session: Any) -> None:
        self._handle = session.handle
        self.num_ranks: int = session.num_ranks
        self.heap_bytes = int(session.stats().reserved_bytes)

    def lost_rank(self) -> int:
        rank: int = call.iris_lost_rank(self._handle)
        return rank

    def bases(self) -> List[int]:
        return list(call.iris_heap_bases(self._handle)[: self.num_ranks])


def contexts() -> List[Any]:
    """The contexts whose peers a wait may be for."""
    return [_Peers(session) for session in _session._joined
            if session.is_own() and not session.is_closed]


class _Polls:
    """The reads of the running kernel since it last saw a new value."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self._seen: Dict[Tuple[int, int], int] = {}
        self._stale = 0
        self._since = 0.0

    def progress(self, *_: Any) -> None:
        self._stale = 0
        self._seen.clear()

    def read(self, pointers: Any, values: Any) -> None:
        if pointers.size == 0:
            return
        key = (int(pointers.flat[0]), pointers.size)
        value = hash(values.tobytes())
        if self._seen.get(key) == value:
            self._stale += 1
            if self._stale % _LOOK_EVERY == 0:
                self._look(key[0])
            return
        if len(self._seen) >= _WORDS:
            self._seen.clear()
        self._seen[key] = value
        self._stale = 0

    def _look(self, address: int) -> None:
        now = time.monotonic()
        if self._stale == _LOOK_EVERY:
            self._since = now
        for context in contexts():
            lost = context.lost_rank()
            if lost >= 0:
                raise PeerLostError(
                    f"rank {lost} was lost while {self._where()} waited for"
                    f" {self._word(address)}")
        limit = _limit_s()
        late = limit and now - self._since > limit
        alone = _is_alone()
        if late or (alone and self._stale >= _ALONE):
            raise WaitError(self._why(address, now - self._since))
        # Ranks share the cores, and a poll takes as long as a hundred thousand
        # instructions. Let the rank run that this one waits for.
        looks = self._stale // _LOOK_EVERY
        time.sleep(0 if alone else min(looks * 1e-4, _SLEEP_S))

    def _has_later(self) -> bool:
        """Whether later instances of this launch have yet to run."""
        sizes = self._builder.grid_dim
        last = tuple(size - 1 for size in sizes)
        return tuple(self._builder.grid_idx) != last

    def _where(self) -> str:
        return f"instance {tuple(self._builder.grid_idx)} of {launch.current}()"

    @staticmethod
    def _word(address: int) -> str:
        for context in contexts():
            for rank, base in enumerate(context.bases()):
                if base <= address < base + context.heap_bytes:
                    return (f"the word at offset {address - base} of rank"
                            f" {rank}'s heap")
        return f"the word at {address:#x}"

    def _why(self, address: int, seconds: float) -> str:
        text = (f"{self._where()} has waited {seconds:.1f} s for"
                f" {self._word(address)}, which nobody writes.")
        if self._has_later():
            return text + (
                " Without a GPU the instances of one launch run one after"
                f" another, and of the grid {tuple(self._builder.grid_dim)}"
                " the later ones have not started: if one of them is to write"
                " it, launch it as a kernel of its own, before this one. A"
                " peer that only needs longer is given more time by"
                " IRIS_DEVICE_TIMEOUT_MS.")
        return text + (" It is the launch's last instance, so a peer would"
                       " have to. IRIS_DEVICE_TIMEOUT_MS gives it more time.")


_READS = ("create_masked_load", "create_atomic_cas", "create_atomic_rmw")


def fits(interpreter: Any) -> bool:
    """Whether this version of the interpreter has the functions that are changed."""
    return all(hasattr(interpreter.InterpreterBuilder, name)
               for name in (*_READS, "create_masked_store"))


def apply(module: Any) -> None:
    from triton.runtime import interpreter

    builder = interpreter.InterpreterBuilder
    polls = _Polls(interpreter.interpreter_builder)
    launch.plain_errors += [WaitError, PeerLostError]
    for name in _READS:
        _watch_reads(builder, name, polls)
    store = builder.create_masked_store

    def create_masked_store(self: Any, *args: Any, **kwargs: Any) -> Any:
        polls.progress()
        return store(self, *args, **kwargs)

    builder.create_masked_store = create_masked_store


def _watch_reads(builder: Any, name: str, polls: _Polls) -> None:
    original = getattr(builder, name)
    # The position of the pointers: the second argument of rmw(op, pointers,
    # ...), else the first.
    at = 1 if name == "create_atomic_rmw" else 0

    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        polls.read(args[at].data, result.data)
        return result

    setattr(builder, name, watched)
