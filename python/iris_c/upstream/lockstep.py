# SPDX-License-Identifier: MIT
"""A plugin of pytest that ends a job whose ranks are in different tests.

Upstream's tests run on all ranks in step. If one fails on some rank only, the
others may wait for that rank in the middle of the test, on a GPU for ever. Each
rank records its failures. A rank ends if its current test has failed on another
rank, and the launcher ends the rest.
"""

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Optional

#: The environment variable with a folder that the ranks of a job share. The
#: launcher sets it.
JOB_VARIABLE = "IRIS_C_UPSTREAM_JOB"

#: How long a test may continue after it has failed on another rank.
LIMIT_S = 15.0

#: The exit status of a rank that has waited in vain.
STATUS = 3


class Lockstep:
    """One rank's part."""

    def __init__(self, folder: str, rank: int, limit_s: float = LIMIT_S) -> None:
        self._folder = Path(folder)
        self._rank = rank
        self._limit_s = limit_s
        self._now = ""
        self._since: Optional[float] = None
        threading.Thread(target=self._watch, daemon=True).start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._since, self._now = None, nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            with open(self._folder / f"failed.{self._rank}", "a") as file:
                print(report.nodeid, file=file)

    def pytest_sessionfinish(self) -> None:
        self._now = ""

    def failed_elsewhere(self) -> Optional[int]:
        """The rank on which this rank's test has failed."""
        for path in self._folder.glob("failed.*"):
            rank = int(path.suffix[1:])
            names = path.read_text().splitlines()
            if rank != self._rank and names[-1:] == [self._now]:
                return rank
        return None

    def is_late(self, now: float) -> Optional[int]:
        """Returns that rank once this one has waited long enough."""
        rank = self.failed_elsewhere() if self._now else None
        if rank is None:
            self._since = None
        elif self._since is None:
            self._since = now
        elif now - self._since > self._limit_s:
            return rank
        return None

    def _watch(self) -> None:
        while True:
            time.sleep(0.5)
            rank = self.is_late(time.monotonic())
            if rank is not None:
                print(f"iris_c.upstream: {self._now} has failed on rank {rank},"
                      f" and rank {self._rank} still waits in it",
                      file=sys.stderr, flush=True)
                os._exit(STATUS)


def plugins() -> Any:
    """The plugin, if the job has several ranks."""
    folder = os.environ.get(JOB_VARIABLE)
    return [Lockstep(folder, int(os.environ["RANK"]))] if folder else []
