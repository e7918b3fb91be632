# SPDX-License-Identifier: MIT
"""Iris for Python: tensors on a symmetric heap, for kernels of all ranks.

    import iris_c
    ctx = iris_c.iris(heap_size=1 << 30)
    x = ctx.zeros(1024, dtype=torch.float32)

docs/python.md is the manual.
"""

from . import bench, ccl, ops
from ._bootstrap import is_simulation_env
from ._context import Iris, iris
from ._errors import (
    BackendError,
    BootstrapError,
    ConfigError,
    DeadlineError,
    DeviceError,
    InvalidError,
    IrisError,
    LimitError,
    MismatchError,
    OutOfMemoryError,
    PeerLostError,
    RaceError,
    RevokedError,
    StateError,
    SystemCallError,
    UnreachableError,
    UnsupportedError,
    WaitInterrupted,
)
from ._lib import call as _call
from ._groups import Group
from ._log import DEBUG, ERROR, INFO, WARNING, set_logger_level
from ._random import Generator
from ._spawn import RankError, spawn
from ._transfer import AddressMap
from .bench import do_bench

#: The version of the loaded library.
__version__: str = _call.iris_version().decode()

__all__ = [
    "AddressMap",
    "BackendError",
    "BootstrapError",
    "ConfigError",
    "DEBUG",
    "DeadlineError",
    "DeviceError",
    "ERROR",
    "Generator",
    "Group",
    "INFO",
    "InvalidError",
    "Iris",
    "IrisError",
    "LimitError",
    "MismatchError",
    "OutOfMemoryError",
    "PeerLostError",
    "RaceError",
    "RevokedError",
    "RankError",
    "StateError",
    "SystemCallError",
    "UnreachableError",
    "UnsupportedError",
    "WARNING",
    "WaitInterrupted",
    "bench",
    "ccl",
    "do_bench",
    "iris",
    "is_simulation_env",
    "ops",
    "set_logger_level",
    "spawn",
]
