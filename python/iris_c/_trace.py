# SPDX-License-Identifier: MIT
"""ctx.tracing: records the actions of kernels and the host, with times, in a file."""

import contextlib
import gzip
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator

from . import _log
from ._lib import call
from ._session import Session
from ._structs import TraceCounts


class Tracing:
    """Records operations of kernels and calls of the host. Upstream's
    kernels use the same columns of the device context. docs/tracing.md lists
    the recorded events."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: The number of events that enable() was called with; 0 before.
        self.enabled = False
        self.max_events = 0

    def enable(self, max_events: int = 1_000_000) -> None:
        """Starts recording, for at most this number of operations of
        kernels. Each one takes 80 bytes of the heap. Collective. A second
        call starts again."""
        call.iris_trace_enable(self._session.handle, max_events)
        self.enabled, self.max_events = True, max_events

    def reset(self) -> None:
        """Drops all recorded events, and continues."""
        if self._is_on():
            call.iris_trace_reset(self._session.handle)

    def counts(self) -> Dict[str, int]:
        """Counts of recorded events: device_events, host_events, and the
        numbers of both that were dropped for lack of space."""
        found = TraceCounts()
        call.iris_trace_counts(self._session.handle, found)
        return {name: getattr(found, name) for name, *_ in found._fields_}

    def export(
        self, filename: str = "trace.json", merge: bool = False
    ) -> Dict[str, Any]:
        """Writes this rank's recorded events as Chrome trace events, which
        Perfetto opens. For "trace.json" rank 0's file is "trace_rank0.json".
        With `merge` the call is collective, and rank 0 makes one file,
        "trace.json", of all ranks' files.

        Returns the contents of this rank's file. With `merge` rank 0 returns
        those of the merged file and other ranks return {}. If nothing is
        recorded, it returns {}.
        """
        if not self._is_on():
            return {}
        call.iris_trace_export(
            self._session.handle, os.fsencode(filename), int(merge)
        )
        if not merge:
            return _read(_of_rank(Path(filename), self._session.rank))
        return _read(Path(filename)) if self._session.rank == 0 else {}

    def name(self, event: int, name: str) -> None:
        """Names an event of the program, from 1024 to 4095, for exports."""
        call.iris_trace_name(self._session.handle, event, name.encode())

    @contextlib.contextmanager
    def span(self, event: int) -> Iterator[None]:
        """Records an event of the host that lasts as long as a `with`."""
        span = call.iris_trace_begin(self._session.handle, event)
        try:
            yield
        finally:
            call.iris_trace_end(self._session.handle, span)

    def _is_on(self) -> bool:
        if not self.enabled:
            # The same words as upstream's.
            _log.write(
                "warning",
                self._session.handle,
                "Tracing not enabled. Call tracing.enable() first.",
            )
        return self.enabled


def _of_rank(path: Path, rank: int) -> Path:
    """The path of a rank's part of `path`."""
    name = path.name
    for ending in (".json.gz", ".json"):
        if name.endswith(ending):
            stem = name[: -len(ending)]
            return path.with_name(f"{stem}_rank{rank}{ending}")
    return path


def _read(path: Path) -> Dict[str, Any]:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    found: Dict[str, Any] = json.loads(data)
    return found
