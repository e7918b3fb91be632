# SPDX-License-Identifier: MIT
"""Captured graphs as recorded launches.

A graph of a GPU holds the work that was launched during the capture, and runs
it again at each replay. Here launches, and torch's calls that change a tensor
in place, are kept with their arguments. A call that computes a new tensor
cannot be repeated like this, so it raises an error.
"""

from typing import Any, Callable, List, Optional

import torch

from . import cuda, launch

_recording: Optional[List[Callable[[], Any]]] = None


def _record(work: Callable[[], Any]) -> bool:
    if _recording is None:
        return False
    _recording.append(work)
    return True


def _is_in_place(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    if name in ("__setitem__", "__iadd__", "__isub__", "__imul__"):
        return True
    return name.endswith("_") and not name.endswith("__")


def _storages(values: Any) -> Any:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value.untyped_storage().data_ptr()


class _Observer:
    """Sees torch's calls while a graph is captured."""

    def before(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether the call is kept for the replay and must not run now."""
        if not _is_in_place(func):
            return False
        return _record(lambda: func(*args, **kwargs))

    def after(self, func: Any, args: Any, result: Any) -> None:
        if not isinstance(result, torch.Tensor):
            return
        sources = set(_storages(args))
        if sources and not sources & set(_storages([result])):
            raise RuntimeError(
                f"torch's {func.__name__}() makes a new tensor while a graph"
                " is captured. Without a GPU a graph repeats launches of"
                " kernels and calls that change a tensor in place; write the"
                " result into a tensor that was there before"
            )


_observer = _Observer()


def _begin() -> None:
    global _recording
    if _recording is not None:
        raise RuntimeError("a graph is being captured already")
    _recording = []
    cuda.observers.append(_observer)


def _finish() -> List[Callable[[], Any]]:
    global _recording
    recorded, _recording = _recording or [], None
    cuda.observers.remove(_observer)
    return recorded


class CUDAGraph:
    """The launches during a capture, in order."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._work: List[Callable[[], Any]] = []

    def capture_begin(self, *_: Any, **__: Any) -> None:
        _begin()

    def capture_end(self) -> None:
        self._work = _finish()

    def replay(self) -> None:
        for work in self._work:
            work()

    def reset(self) -> None:
        self._work = []

    def pool(self) -> Any:
        return (0, 0)


class graph:
    """torch.cuda.graph(...), as a context manager."""

    def __init__(self, cuda_graph: CUDAGraph, *_: Any, **__: Any) -> None:
        self._graph = cuda_graph

    def __enter__(self) -> None:
        self._graph.capture_begin()

    def __exit__(self, kind: Any, *_: Any) -> None:
        self._graph.capture_end()
        if kind is not None:
            self._graph.reset()


def apply(module: Any) -> None:
    module.cuda.CUDAGraph = CUDAGraph
    module.cuda.graph = graph
    module.cuda.is_current_stream_capturing = lambda: _recording is not None
    launch.recorder = _record
