# SPDX-License-Identifier: MIT
"""Makes "cuda" mean the CPU in torch.

Upstream's programs ask for tensors on "cuda" everywhere and read their .device.
Here such a tensor is in the CPU's memory and has a mark, which results of
computations inherit. torch.cuda answers like one GPU for each rank. Work runs
at once, so streams never wait.
"""

import os
import time
from typing import Any, Dict, List

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device

from . import platform_calls

_MARK = "_iris_c_device"
_CPU = torch.device("cpu")

#: Calls that move a tensor to the CPU. On a GPU the result is a snapshot, which
#: later kernels do not change.
_TO_CPU = {torch.Tensor.cpu, torch.Tensor.to, torch.Tensor.numpy}

#: Calls whose positional arguments may name a device.
_NAMES_DEVICE = {torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.type}

#: An observer that sees each call of torch before and after it: graphs.py.
observers: List[Any] = []


def device_of(tensor: Any) -> Any:
    """The device of a tensor from the program's view."""
    return getattr(tensor, _MARK, None) or _CPU


def mark(tensor: Any, device: Any) -> Any:
    """Marks a tensor in the CPU's memory as one on `device`."""
    setattr(tensor, _MARK, torch.device(device))
    return tensor


def _numbered(device: Any) -> Any:
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", platform_calls.get_device_id())
    return device


def _is_device(value: Any) -> bool:
    if isinstance(value, torch.device):
        return True
    return isinstance(value, str) and value.split(":")[0] in ("cuda", "cpu")


def _mark_all(result: Any, device: Any) -> None:
    if isinstance(result, torch.Tensor):
        if device.type == "cuda":
            setattr(result, _MARK, device)
        elif hasattr(result, _MARK):
            delattr(result, _MARK)
    elif isinstance(result, (tuple, list)):
        for one in result:
            _mark_all(one, device)


def _marked(values: Any) -> Any:
    """The device of the first marked tensor among arguments."""
    for value in values:
        if isinstance(value, torch.Tensor):
            device = getattr(value, _MARK, None)
            if device is not None:
                return device
        elif isinstance(value, (tuple, list)):
            device = _marked(value)
            if device is not None:
                return device
    return None


def _default(func: Any) -> Any:
    """The device from set_default_device() or from a device as a context
    manager, for calls that make tensors. Torch applies its own default later
    than this module, and would ask for a GPU."""
    device = _device.CURRENT_DEVICE
    if device is None or func not in _device._device_constructors():
        return None
    return device


def _asked(func: Any, args: Any, kwargs: Dict[str, Any]) -> Any:
    """The device that a call names, and the call with the CPU in its place."""
    device = kwargs.get("device") or _default(func)
    if device is not None:
        kwargs = dict(kwargs, device=_CPU)
        return _numbered(device), args, kwargs
    if func not in _NAMES_DEVICE:
        return None, args, kwargs
    rest = args[1:]
    named = next((value for value in rest if _is_device(value)), None)
    if func is torch.Tensor.cuda:
        return _numbered(named or "cuda"), args[:1], {}
    if named is None:
        return None, args, kwargs
    rest = tuple(_CPU if value is named else value for value in rest)
    return _numbered(named), (args[0], *rest), kwargs


_GETTERS = {
    torch.Tensor.device: device_of,
    torch.Tensor.is_cuda: lambda tensor: device_of(tensor).type == "cuda",
    torch.Tensor.is_cpu: lambda tensor: device_of(tensor).type == "cpu",
}
_PLAIN_GETTERS = type(torch.Tensor.device)


class CudaIsCpu(TorchFunctionMode):
    """Sees every call of torch in this thread."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        getter = getattr(func, "__self__", None)
        if isinstance(getter, _PLAIN_GETTERS):
            answer = _GETTERS.get(getter)
            if answer is not None:
                return answer(args[0])
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                self._inherit(result, args, {})
            return result
        return self._call(func, args, kwargs or {})

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is torch.Tensor.cuda:
            func_run = torch.Tensor.to
            device, args, kwargs = _asked(func, args, kwargs)
            args = (args[0], _CPU)
        else:
            func_run = func
            device, args, kwargs = _asked(func, args, kwargs)
        if func is torch.Tensor.cpu:
            device = _CPU
        for observer in observers:
            if observer.before(func_run, args, kwargs):
                return args[0]
        result = func_run(*args, **kwargs)
        for observer in observers:
            observer.after(func_run, args, result)
        if func in _TO_CPU:
            result = self._moved(func, args, result, device)
        if device is not None:
            _mark_all(result, device)
        else:
            self._inherit(result, args, kwargs)
        return result

    @staticmethod
    def _moved(func: Any, args: Any, result: Any, device: Any) -> Any:
        """A copy of a tensor that moves between devices, even if both are the CPU."""
        source = args[0]
        if func is torch.Tensor.numpy or device is None:
            return result
        if result is source and device_of(source) != device:
            return source.clone()
        return result

    @staticmethod
    def _inherit(result: Any, args: Any, kwargs: Any) -> None:
        if not isinstance(result, (torch.Tensor, tuple, list)):
            return
        device = _marked(args) or _marked(kwargs.values())
        if device is not None:
            _mark_all(result, device)


class Stream:
    """A stream that is always idle, because work runs at once."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = _numbered(device if device is not None else "cuda")
        self.cuda_stream = 0

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def wait_stream(self, stream: Any) -> None:
        pass

    def wait_event(self, event: Any) -> None:
        pass

    def record_event(self, event: Any = None) -> Any:
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        pass


class Event:
    """Records the time."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def wait(self, stream: Any = None) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds, as in torch."""
        return max((end._at - self._at) * 1e3, 1e-6)


class Properties:
    """The properties of a device that a program may read."""

    name = "CPU (kernels interpreted)"
    gcnArchName = "cpu"
    major = minor = 0
    warp_size = 64

    def __init__(self) -> None:
        self.multi_processor_count = platform_calls.get_cu_count()
        self.total_memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf(
            "SC_PHYS_PAGES")


class _Generator(torch.Generator):
    """A generator on the CPU, for any device."""

    def __new__(cls, device: Any = "cpu") -> "_Generator":
        return super().__new__(cls, "cpu")


class _OnDevice:
    """torch.cuda.device(...), as a context manager."""

    def __init__(self, device: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def _set_device(device: Any) -> None:
    index = device if isinstance(device, int) else _numbered(device).index
    platform_calls.set_device(index)


def _nothing(*_: Any, **__: Any) -> None:
    pass


_ANSWERS: Dict[str, Any] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "init": _nothing,
    "device_count": platform_calls.count_devices,
    "current_device": platform_calls.get_device_id,
    "set_device": _set_device,
    "device": _OnDevice,
    "synchronize": _nothing,
    "Stream": Stream,
    "Event": Event,
    "stream": lambda stream: stream or Stream(),
    "current_stream": lambda device=None: Stream(device),
    "default_stream": lambda device=None: Stream(device),
    "set_stream": _nothing,
    "get_device_properties": lambda device=None: Properties(),
    "get_device_name": lambda device=None: Properties.name,
    "get_device_capability": lambda device=None: (0, 0),
    "can_device_access_peer": lambda device, peer: True,
    "empty_cache": _nothing,
    "manual_seed": _nothing,
    "manual_seed_all": _nothing,
    "reset_peak_memory_stats": _nothing,
    "memory_allocated": lambda device=None: 0,
    "max_memory_allocated": lambda device=None: 0,
}


def apply(module: Any) -> None:
    for name, answer in _ANSWERS.items():
        setattr(module.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark"):
        setattr(module.cuda.nvtx, name, _nothing)
    module.Generator = _Generator
    CudaIsCpu().__enter__()
