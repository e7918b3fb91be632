# SPDX-License-Identifier: MIT
"""Devices for ranks that share a smaller number of GPUs.

Upstream's programs use the GPU with the rank's number. Here all ranks use the
first GPU, and the library simulates several. Numbers without a GPU start again
at 0, as in upstream's own simulation, in every call of torch that takes one.
"""

import functools
import os
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: Functions of torch.cuda whose first argument, or `device`, is a GPU.
_OF_A_DEVICE = (
    "set_device", "device", "synchronize", "current_stream", "default_stream",
    "get_device_properties", "get_device_name", "get_device_capability",
    "mem_get_info", "memory_allocated", "max_memory_allocated",
)


def ranks() -> int:
    """The number of ranks on this machine, from the launcher."""
    return int(os.environ.get("LOCAL_WORLD_SIZE")
               or os.environ.get("WORLD_SIZE") or 1)


def is_shared(num_ranks: int) -> bool:
    """Whether there are fewer GPUs than this number of ranks."""
    return 0 < int(torch.cuda.device_count()) < num_ranks


def show_one() -> None:
    """Lets this process see only the first of its GPUs: in simulation the
    library puts all ranks there. Call it before the process uses a GPU."""
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        os.environ[name] = os.environ.get(name, "0").split(",")[0]


def simulate() -> None:
    """Turns on simulation, because only then the library lets ranks share a
    GPU. Call it before the program makes a context."""
    os.environ.setdefault("IRIS_BACKEND", "sim")
    os.environ.setdefault("IRIS_SIM_DEVICE", "gpu")


def wrapped(device: Any) -> Any:
    """The existing device for a device that a program names."""
    count = torch.cuda.device_count()
    if isinstance(device, bool) or not count:
        return device
    if isinstance(device, int):
        return device % count if device >= count else device
    if isinstance(device, str) and device.startswith("cuda:"):
        return f"cuda:{int(device[5:]) % count}"
    if (isinstance(device, torch.device) and device.type == "cuda"
            and device.index is not None and device.index >= count):
        return torch.device("cuda", device.index % count)
    return device


_NAMES_DEVICE = {torch.Tensor.to, torch.Tensor.cuda}


class Wrapping(TorchFunctionMode):
    """Sees every call of torch in this thread."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if kwargs.get("device") is not None:
            kwargs = dict(kwargs, device=wrapped(kwargs["device"]))
        elif func in _NAMES_DEVICE:
            args = (args[0], *map(wrapped, args[1:]))
        return func(*args, **kwargs)


def _wrapping(call: Any) -> Any:
    @functools.wraps(call)
    def with_device(*args: Any, **kwargs: Any) -> Any:
        if args:
            args = (wrapped(args[0]), *args[1:])
        if "device" in kwargs:
            kwargs["device"] = wrapped(kwargs["device"])
        return call(*args, **kwargs)

    return with_device


def _begin(cuda: Any) -> None:
    for name in _OF_A_DEVICE:
        member = getattr(cuda, name)
        if isinstance(member, type):
            member.__init__ = _wrapping_init(member.__init__)
        else:
            setattr(cuda, name, _wrapping(member))
    Wrapping().__enter__()


def _wrapping_init(init: Any) -> Any:
    """Wraps the constructor of a class, which stays the same class."""
    def __init__(self: Any, device: Any, *args: Any, **kwargs: Any) -> None:
        init(self, wrapped(device), *args, **kwargs)

    return __init__


def apply(module: Any) -> None:
    if is_shared(ranks()):
        show_one()
        simulate()
        _begin(module.cuda)
