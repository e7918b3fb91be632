# SPDX-License-Identifier: MIT
"""The rank of this process, if torch.distributed knows it.

Without a process group the library finds the rank itself: from torchrun,
mpirun, Slurm or IRIS_RANK. Otherwise it starts a job of one rank.
"""

import os
import sys
import uuid
from typing import Any, Dict, Optional


#: The variables of launchers, as in docs/running.md.
_LAUNCHERS = (
    ("IRIS_RANK", "IRIS_NUM_RANKS"),
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("PMIX_RANK",),
    ("PMI_RANK",),
)


def is_simulation_env() -> bool:
    """Whether the environment asks for the simulation, by upstream's variable
    or by IRIS_BACKEND."""
    asked = os.environ.get("IRIS_SIMULATION", "").strip().lower()
    backend = os.environ.get("IRIS_BACKEND", "").lower()
    return asked in ("1", "true", "yes") or backend == "sim"


def is_launched() -> bool:
    """Whether a launcher started this process as a rank, or the program has a
    process group."""
    return process_group() is not None or any(
        all(name in os.environ for name in names) for names in _LAUNCHERS
    )


def process_group() -> Optional[Any]:
    """torch.distributed if the program has initialised it, else None."""
    # A program that does not use torch must not pay for its import.
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def _agreed_name(dist: Any) -> str:
    """A name that rank 0 makes and sends to all ranks of the group. It keeps
    apart two jobs of one user on one machine."""
    names = [f"torch-{uuid.uuid4().hex}"]
    device = None
    if dist.get_backend() == "nccl":
        torch = sys.modules["torch"]
        count = torch.cuda.device_count()
        device = torch.device("cuda", dist.get_rank() % max(count, 1))
    dist.broadcast_object_list(names, src=0, device=device)
    return names[0]


def settings_of_group() -> Dict[str, str]:
    """The settings for this process's rank in torch's default process group.
    None if there is no group, or if IRIS_RANK is set."""
    dist = process_group()
    if dist is None or "IRIS_RANK" in os.environ:
        return {}
    return {
        "bootstrap": "env",
        "rank": str(dist.get_rank()),
        "num_ranks": str(dist.get_world_size()),
        "job_id": _agreed_name(dist),
    }
