# SPDX-License-Identifier: MIT
"""Ranks as child processes of one program, without a launcher."""

import multiprocessing
import os
import pickle
import signal
import time
import traceback
import uuid
from multiprocessing.connection import Connection, wait
from typing import Any, Callable, Dict, List, Sequence

from . import _session
from ._errors import IrisError


class RankError(IrisError):
    """A rank of spawn() failed. The cause is that rank's exception, if it
    can be passed between processes."""

    def __init__(self, text: str, rank: int = -1) -> None:
        super().__init__(text)
        #: The rank that failed first.
        self.rank = rank


class _Outcome:
    """The result of a rank, or its failure with the time."""

    def __init__(self, rank: int, value: Any, failed: bool, text: str) -> None:
        self.rank = rank
        self.value = value
        self.failed = failed
        self.text = text
        self.when = time.monotonic()

    def error(self) -> RankError:
        cause = self.value if isinstance(self.value, Exception) else None
        error = RankError(f"rank {self.rank} {self.text}", self.rank)
        error.__cause__ = cause
        return error


def _packed(outcome: _Outcome) -> bytes:
    # Uses plain pickle, which copies. multiprocessing's own pickler would share
    # tensors' memory, which ends with this process.
    try:
        return pickle.dumps(outcome)
    except Exception as error:
        if not outcome.failed:
            outcome.text = f"has a result that cannot be pickled: {error}"
        outcome.value, outcome.failed = None, True
        return pickle.dumps(outcome)


def _child(
    fn: Callable[..., Any],
    rank: int,
    environment: Dict[str, str],
    args: Sequence[Any],
    connection: Connection,
) -> None:
    """Runs in the process of a rank. It reports a failure before the peers
    can notice it, so that this failure is the first."""
    os.environ.update(environment)
    try:
        # A result may be on the heap, which ends with the context.
        data = _packed(_Outcome(rank, fn(rank, *args), False, ""))
        # A fork()ed child of multiprocessing runs no atexit functions.
        _session.leave_all()
        connection.send_bytes(data)
    except BaseException as error:
        text = "failed:\n" + traceback.format_exc()
        connection.send_bytes(_packed(_Outcome(rank, error, True, text)))
        _session.leave_all(error)


def _death(rank: int, process: Any) -> _Outcome:
    process.join()
    code = process.exitcode or 0
    how = f"exited with {code}"
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    outcome = _Outcome(rank, None, True, f"{how} before its function returned")
    outcome.when = 0  # before failures of its peers, which follow from it
    return outcome


def _outcome(rank: int, process: Any, connection: Connection) -> _Outcome:
    try:
        outcome = pickle.loads(connection.recv_bytes())
    except EOFError:
        return _death(rank, process)
    assert isinstance(outcome, _Outcome)
    return outcome


def _collect(processes: List[Any], connections: List[Any]) -> List[Any]:
    """The results of all ranks, or the first failure."""
    results: List[Any] = [None] * len(processes)
    waiting = {connection: rank for rank, connection in enumerate(connections)}
    while waiting:
        failures = []
        for connection in wait(list(waiting)):
            rank = waiting.pop(connection)
            outcome = _outcome(rank, processes[rank], connections[rank])
            results[rank] = outcome.value
            failures += [outcome] if outcome.failed else []
        if failures:
            raise min(failures, key=lambda outcome: outcome.when).error()
    return results


def _start(method: Any, rank: int, arguments: Any) -> Any:
    fn, environment, args = arguments
    mine, its = method.Pipe(duplex=False)
    environment = dict(environment, IRIS_RANK=str(rank))
    process = method.Process(
        target=_child, args=(fn, rank, environment, args, its)
    )
    process.start()
    # Otherwise the pipe would not end with the child.
    its.close()
    return process, mine


def spawn(
    fn: Callable[..., Any],
    nprocs: int,
    args: Sequence[Any] = (),
    start_method: str = "spawn",
) -> List[Any]:
    """Runs fn(rank, *args) in `nprocs` processes that are the ranks of one job,
    and returns their results, by rank.

    `fn` calls iris_c.iris() itself. `fn`, `args` and the results are pickled,
    so a tensor in the results is a copy. If a rank fails, the call ends the
    others and raises RankError, which names the rank and has its traceback. As
    with multiprocessing, call this below `if __name__ == "__main__":`.

    Args:
        start_method: a start method of multiprocessing: "spawn" (anywhere),
            "forkserver", or "fork" (fast, for a program without threads that
            has not used a GPU).
    """
    if nprocs < 1:
        raise ValueError(f"nprocs is {nprocs}; it takes 1 rank at least")
    method = multiprocessing.get_context(start_method)
    environment = {
        "IRIS_BOOTSTRAP": "env",
        "IRIS_NUM_RANKS": str(nprocs),
        "IRIS_JOB_ID": f"spawn-{uuid.uuid4().hex}",
    }
    started: List[Any] = []
    try:
        for rank in range(nprocs):
            started.append(_start(method, rank, (fn, environment, args)))
        processes = [process for process, _ in started]
        return _collect(processes, [connection for _, connection in started])
    except BaseException:
        for process, _ in started:
            process.terminate()
        raise
    finally:
        for process, connection in started:
            process.join()
            connection.close()
