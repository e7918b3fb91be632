# SPDX-License-Identifier: MIT
"""Groups of ranks: the library's own, and those of torch's process groups."""

import ctypes
from typing import Any, Dict, Optional, Sequence, Tuple

from . import _bootstrap
from ._lib import call
from ._session import Session


class Group:
    """An ordered subset of the job's ranks. ctx.group() creates it."""

    def __init__(self, session: Session, ranks: Sequence[int]) -> None:
        self._session = session
        self._handle: Optional[int] = None
        self.ranks = tuple(ranks)
        # As in the library, a rank that is in no group passes no members.
        members = self.ranks if session.rank in self.ranks else ()
        list_of_ranks = (ctypes.c_int * len(members))(*members)
        handle = ctypes.c_void_p()
        call.iris_group_create(
            session.handle, list_of_ranks, len(members), ctypes.byref(handle)
        )
        self._handle = handle.value

    @property
    def handle(self) -> Optional[int]:
        """The iris_group_t for the library's calls."""
        if self._handle is None:
            raise ValueError(
                f"this rank is not in the group {list(self.ranks)}, or the"
                " group has been destroyed"
            )
        return self._handle

    def size(self) -> int:
        """The number of members."""
        return len(self.ranks)

    def index(self) -> int:
        """This rank's index in the group, from 0."""
        index: int = call.iris_group_index(self._session.handle, self.handle)
        return index

    def destroy(self) -> None:
        """Frees the group. Collective over its members."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call.iris_group_destroy(self._session.handle, handle)


def ranks_of(group: Any) -> Tuple[int, ...]:
    """The members of a group as ranks of the job, in the group's order."""
    if isinstance(group, Group):
        return group.ranks
    if isinstance(group, (list, tuple)):
        return tuple(group)
    dist = _bootstrap.process_group()
    if dist is None:
        raise TypeError(
            f"group={group!r}: takes None, a list of ranks, a group of"
            " ctx.group(), or a process group of torch.distributed"
        )
    if hasattr(dist, "get_process_group_ranks"):
        return tuple(dist.get_process_group_ranks(group))
    from torch.distributed import distributed_c10d as c10d

    return tuple(
        c10d._get_global_rank(group, index)
        for index in range(dist.get_world_size(group))
    )


def group_barrier(group: Any) -> None:
    """A barrier by torch itself on a process group."""
    dist = _bootstrap.process_group()
    assert dist is not None
    dist.barrier(group=group)


class Groups:
    """A context's groups by their members. Creating a group that does not
    exist yet is collective over the whole job."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: Dict[Tuple[int, ...], Group] = {}

    def forget(self) -> None:
        """The library's groups are gone."""
        self._made.clear()

    def is_torchs_alone(self, group: Any) -> bool:
        """Whether a group is a process group without a group of the library
        yet. Only its members know of it."""
        if group is None or isinstance(group, (Group, list, tuple)):
            return False
        ranks = ranks_of(group)
        return ranks not in self._made and not self._is_all(ranks)

    def _is_all(self, ranks: Tuple[int, ...]) -> bool:
        return ranks == tuple(range(self._session.num_ranks))

    def handle_of(self, group: Any) -> Optional[int]:
        """The library's group for `group=`. None: all ranks."""
        if group is None:
            return None
        if isinstance(group, Group):
            return group.handle
        ranks = ranks_of(group)
        if self._is_all(ranks):
            return None
        if ranks not in self._made:
            self._made[ranks] = Group(self._session, ranks)
        return self._made[ranks].handle
