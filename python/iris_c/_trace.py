# SPDX-License-Identifier: MIT
"""ctx.tracing: what kernels and the host do, with times, as a file."""

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
    """Records operations of kernels, in the columns of the device context that
    upstream's kernels write to, too, and calls of the host. docs/tracing.md
    says what is recorded where."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: Whether enable() has been called, and for how many events.
        self.enabled = False
        self.max_events = 0

    def enable(self, max_events: int = 1_000_000) -> None:
        """Records from now on, up to so many operations of kernels, of 80 bytes
        of the heap each. Collective; called again it begins anew."""
        call.iris_trace_enable(self._session.handle, max_events)
        self.enabled, self.max_events = True, max_events

    def reset(self) -> None:
        """Forgets what has been recorded, and goes on."""
        if self._is_on():
            call.iris_trace_reset(self._session.handle)

    def counts(self) -> Dict[str, int]:
        """What has been recorded: device_events, host_events, and how many of
        both were dropped for lack of space."""
        found = TraceCounts()
        call.iris_trace_counts(self._session.handle, found)
        return {name: getattr(found, name) for name, *_ in found._fields_}

    def export(
        self, filename: str = "trace.json", merge: bool = False
    ) -> Dict[str, Any]:
        """Writes what this rank has recorded as Chrome trace events, which
        Perfetto opens: of "trace.json" rank 0's file is "trace_rank0.json".
        With `merge`, which is collective, rank 0 makes "trace.json" of all.

        Returns what is in the file: this rank's, or with `merge` rank 0 the
        merged one and others {}. {} too if nothing is recorded.
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
        """The name of an event of the program's own, from 1024 to 4095, in
        exports."""
        call.iris_trace_name(self._session.handle, event, name.encode())

    @contextlib.contextmanager
    def span(self, event: int) -> Iterator[None]:
        """An event of the host that lasts as long as a `with`."""
        span = call.iris_trace_begin(self._session.handle, event)
        try:
            yield
        finally:
            call.iris_trace_end(self._session.handle, span)

    def _is_on(self) -> bool:
        if not self.enabled:
            # Upstream's own words.
            _log.write(
                "warning",
                self._session.handle,
                "Tracing not enabled. Call tracing.enable() first.",
            )
        return self.enabled


def _of_rank(path: Path, rank: int) -> Path:
    """Where the library writes a rank's part of `path`."""
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
