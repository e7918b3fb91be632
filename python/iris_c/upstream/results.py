# SPDX-License-Identifier: MIT
"""A plugin of pytest for scripts/upstream-test. It writes each test's result at
once.

So the results so far are there if a rank is ended in the middle of a file. Each
line of a rank's file is a list in JSON: the test's name; "passed", "failed",
"skipped", "left out" or "collected"; and the reason.
"""

import fnmatch
import json
import os
from typing import Any, List

#: The environment variable with the start of each rank's file name. The rank
#: follows.
RESULTS_VARIABLE = "IRIS_C_UPSTREAM_RESULTS"

#: Patterns of tests that must not run, in JSON.
LEFT_OUT_VARIABLE = "IRIS_C_UPSTREAM_LEFT_OUT"

#: "1": kernels access their own rank's heap instead of peers' heaps.
CONTROL_VARIABLE = "IRIS_C_UPSTREAM_CONTROL"


class Results:
    """Writes results, and deselects tests that must not run."""

    def __init__(self, path: str) -> None:
        self._file = open(f"{path}.{os.environ['RANK']}", "w")
        self._left_out: List[str] = json.loads(
            os.environ.get(LEFT_OUT_VARIABLE, "[]"))

    def _write(self, name: str, outcome: str, why: str = "") -> None:
        print(json.dumps([name, outcome, why]), file=self._file, flush=True)

    def pytest_collection_modifyitems(self, items: List[Any]) -> None:
        kept = []
        for item in items:
            out = any(fnmatch.fnmatchcase(item.nodeid, pattern)
                      for pattern in self._left_out)
            self._write(item.nodeid, "left out" if out else "collected")
            if not out:
                kept.append(item)
        items[:] = kept

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._write(report.nodeid, "failed", _last_line(report))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when != "call" and report.passed:
            return
        # A test that fails in its tear-down has failed, whatever came before.
        self._write(report.nodeid, report.outcome, _last_line(report))


def _last_line(report: Any) -> str:
    """The reason: the error's last line, or the reason of a skip."""
    if report.passed or not report.longrepr:
        return ""
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1 if crash is None else 0] if lines else ""


def _point_at_own_heap() -> None:
    from . import heap

    def peers(self: Any, bases: List[int]) -> List[int]:
        return [self.base] * len(bases)

    heap.SymmetricHeap._peers = peers  # type: ignore[method-assign]


def plugins() -> List[Any]:
    """The plugin, if the environment asks for it."""
    if os.environ.get(CONTROL_VARIABLE) == "1":
        _point_at_own_heap()
    path = os.environ.get(RESULTS_VARIABLE)
    return [Results(path)] if path else []
