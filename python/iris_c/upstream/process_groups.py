# SPDX-License-Identifier: MIT
"""Replaces NCCL by Gloo for process groups that cannot have NCCL.

NCCL only moves a GPU's memory, and needs a GPU for each rank. Upstream's
programs ask for it by name. They also ask for the backend's name, and choose by
it which tensors to send, so the answer stays "nccl". Tensors on a GPU go
through the host's memory.
"""

import functools
import weakref
from typing import Any, List

from . import device

#: Groups for which a program has asked for NCCL. None: the default group.
_nccl: "weakref.WeakSet[Any]" = weakref.WeakSet()
_default_is_nccl = False

#: Calls whose tensors go through the host.
_MOVING = (
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all",
    "all_to_all_single", "broadcast", "gather", "irecv", "isend", "recv",
    "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter", "send",
)


def _is_nccl(backend: Any) -> bool:
    return backend is None or "nccl" in str(backend).lower()


class _Done:
    """The work of a call that has finished."""

    def wait(self) -> None:
        pass


def _all_to_all(dist: Any) -> Any:
    """Gloo has no all_to_all, so each pair of ranks sends and receives."""

    def all_to_all(outputs: Any, inputs: Any, group: Any = None,
                   async_op: bool = False) -> Any:
        ranks = dist.get_process_group_ranks(group or dist.group.WORLD)
        work = []
        for place, rank in enumerate(ranks):
            if rank == dist.get_rank():
                outputs[place].copy_(inputs[place])
                continue
            sent = inputs[place].contiguous()
            work.append(dist.isend(sent, rank, group))
            work.append(dist.irecv(outputs[place], rank, group))
        for one in work:
            one.wait()
        return _Done() if async_op else None

    return all_to_all


class _Copies:
    """Copies on the host of a call's tensors on a GPU."""

    def __init__(self) -> None:
        self._pairs: List[Any] = []

    def of(self, value: Any) -> Any:
        """A copy on the host of a tensor, or of each tensor in a list."""
        if isinstance(value, (list, tuple)):
            return type(value)(self.of(one) for one in value)
        if not getattr(value, "is_cuda", False):
            return value
        copy = value.detach().cpu()
        self._pairs.append((value, copy))
        return copy

    def bring_back(self) -> None:
        for tensor, copy in self._pairs:
            tensor.detach().copy_(copy)


class _Later:
    """The work of a call whose results must still be copied back to the GPU."""

    def __init__(self, work: Any, copies: _Copies) -> None:
        self._work = work
        self._copies = copies

    def wait(self, *args: Any) -> Any:
        result = self._work.wait(*args)
        self._copies.bring_back()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


def _through_host(call: Any) -> Any:
    @functools.wraps(call)
    def moving(*args: Any, **kwargs: Any) -> Any:
        copies = _Copies()
        args = tuple(copies.of(value) for value in args)
        kwargs = {name: copies.of(value) for name, value in kwargs.items()}
        result = call(*args, **kwargs)
        if hasattr(result, "wait"):
            return _Later(result, copies)
        copies.bring_back()
        return result

    return moving


def _without_devices(call: Any) -> Any:
    @functools.wraps(call)
    def barrier(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_ids", None)
        return call(*args, **kwargs)

    return barrier


def _take_gloo(module: Any) -> None:
    """Adapts torch.distributed to Gloo in a process that cannot have NCCL."""
    module.all_to_all = _all_to_all(module)
    module.barrier = _without_devices(module.barrier)
    if device() == "gpu":
        for name in _MOVING:
            setattr(module, name, _through_host(getattr(module, name)))


def _has_nccl(kwargs: Any) -> bool:
    """Whether each rank has a GPU."""
    if device() != "gpu":
        return False
    from . import sharing

    if sharing.is_shared(kwargs.get("world_size") or sharing.ranks()):
        sharing.simulate()
        return False
    return True


def apply(module: Any) -> None:
    start, make, ask = (
        module.init_process_group, module.new_group, module.get_backend)

    def init_process_group(
        backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        global _default_is_nccl
        if _has_nccl(kwargs):
            return start(backend, *args, **kwargs)
        if not hasattr(module, "_iris_c_gloo"):
            module._iris_c_gloo = True
            _take_gloo(module)
        kwargs.pop("device_id", None)
        _default_is_nccl = _is_nccl(backend)
        if _default_is_nccl:
            backend = "gloo"
        return start(backend, *args, **kwargs)

    def new_group(*args: Any, **kwargs: Any) -> Any:
        if not hasattr(module, "_iris_c_gloo"):
            return make(*args, **kwargs)
        backend = kwargs.get("backend")
        inherited = backend is None and _default_is_nccl
        if backend is not None and _is_nccl(backend):
            kwargs["backend"] = "gloo"
            inherited = True
        kwargs.pop("device_id", None)
        group = make(*args, **kwargs)
        if inherited and group is not module.GroupMember.NON_GROUP_MEMBER:
            _nccl.add(group)
        return group

    def get_backend(group: Any = None) -> str:
        real: str = ask(group)
        asked = _default_is_nccl if group is None else group in _nccl
        return "nccl" if asked and real == "gloo" else real

    module.init_process_group = init_process_group
    module.new_group = new_group
    module.get_backend = get_backend
