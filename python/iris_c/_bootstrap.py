# SPDX-License-Identifier: MIT
"""Which rank this process is, where torch.distributed knows it.

Without a process group the library finds out by itself: from torchrun, mpirun,
Slurm or IRIS_RANK, else it is one rank alone.
"""

import os
import sys
import uuid
from typing import Any, Dict, Optional


def process_group() -> Optional[Any]:
    """torch.distributed where the program has initialised it, else None."""
    # A program without torch must not pay for its import.
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def _agreed_name(dist: Any) -> str:
    """A name of rank 0's making that all ranks of the group have then: two
    jobs of one user on one machine must not meet."""
    names = [f"torch-{uuid.uuid4().hex}"]
    device = None
    if dist.get_backend() == "nccl":
        torch = sys.modules["torch"]
        count = torch.cuda.device_count()
        device = torch.device("cuda", dist.get_rank() % max(count, 1))
    dist.broadcast_object_list(names, src=0, device=device)
    return names[0]


def settings_of_group() -> Dict[str, str]:
    """The settings that make this process the rank it is in torch's default
    process group; none where there is no group, or IRIS_RANK says a rank."""
    dist = process_group()
    if dist is None or "IRIS_RANK" in os.environ:
        return {}
    return {
        "bootstrap": "env",
        "rank": str(dist.get_rank()),
        "num_ranks": str(dist.get_world_size()),
        "job_id": _agreed_name(dist),
    }
