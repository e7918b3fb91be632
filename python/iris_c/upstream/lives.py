# SPDX-License-Identifier: MIT
"""Ends contexts that a program has let go.

Upstream's programs make a context and drop it; its tests do so thousands of
times in one process. Python lets objects go at another moment on each rank, and
leaving a job is collective. So contexts whose heap has been let go are
gathered, and as the ranks make their next one they leave those that are out of
use on all of them.
"""

import weakref
from typing import Any, Dict, List

#: How many contexts were made, the same on all ranks, and by this number those
#: whose heap is gone.
_made = 0
_gone: Dict[int, Any] = {}


def follow(heap: Any, context: Any) -> None:
    """Watches the heap of a context that has just been made."""
    global _made
    _made += 1
    weakref.finalize(heap, _gone.__setitem__, _made, context).atexit = False


def _unused() -> List[int]:
    """Those of which no tensor is left either: nothing can change that."""
    return [number for number, context in sorted(_gone.items())
            if context._num_tensors() == 0]


def leave_unused() -> None:
    """Collective: leaves what no rank uses any more, oldest first."""
    import torch.distributed as dist

    lists: List[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(lists, _unused())
    for number in sorted(set.intersection(*map(set, lists))):
        _gone.pop(number).finalize()
