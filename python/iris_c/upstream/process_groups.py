# SPDX-License-Identifier: MIT
"""Process groups of NCCL are Gloo's without a GPU.

NCCL moves a GPU's memory only, and upstream's programs ask for it by name. They
also ask which one they have, and choose by it what may be sent: the answer
stays "nccl".
"""

import weakref
from typing import Any

#: Groups that a program has asked NCCL for; None: the default group.
_nccl: "weakref.WeakSet[Any]" = weakref.WeakSet()
_default_is_nccl = False


def _is_nccl(backend: Any) -> bool:
    return backend is None or "nccl" in str(backend).lower()


class _Done:
    """The work of a call that has finished."""

    def wait(self) -> None:
        pass


def _all_to_all(dist: Any) -> Any:
    """Gloo has none: each pair of ranks sends and receives."""

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


def apply(module: Any) -> None:
    start, make, ask = (
        module.init_process_group, module.new_group, module.get_backend)

    def init_process_group(
        backend: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        global _default_is_nccl
        kwargs.pop("device_id", None)
        _default_is_nccl = _is_nccl(backend)
        if _default_is_nccl:
            backend = "gloo"
        return start(backend, *args, **kwargs)

    def new_group(*args: Any, **kwargs: Any) -> Any:
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
    module.all_to_all = _all_to_all(module)
