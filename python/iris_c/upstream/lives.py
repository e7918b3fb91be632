# SPDX-License-Identifier: MIT
"""Ends contexts that a program has let go.

Python lets objects go at another moment on each rank, and iris_finalize() is
collective. So what has been let go is gathered, and the ranks finalize together
what all of them have let go, as they make their next context.
"""

import weakref
from typing import Any, Dict

from iris_c._lib import call

#: Contexts by their number, which is the same on all ranks, and of those let
#: go the handle.
_made = 0
_gone: Dict[int, int] = {}


def _let_go(number: int, handle: int) -> None:
    _gone[number] = handle


def follow(context: Any) -> None:
    """Watches a context that has just been made."""
    global _made
    _made += 1
    weakref.finalize(context, _let_go, _made, context.handle).atexit = False


def _agreed(dist: Any) -> Any:
    lists: Any = [None] * dist.get_world_size()
    dist.all_gather_object(lists, sorted(_gone))
    return sorted(set.intersection(*map(set, lists)))


def finalize_gone() -> None:
    """Collective: finalizes what every rank has let go, oldest first."""
    import torch.distributed as dist

    for number in _agreed(dist):
        call.iris_finalize(_gone.pop(number))
