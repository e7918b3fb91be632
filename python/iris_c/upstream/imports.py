# SPDX-License-Identifier: MIT
"""Changes modules as they are imported.

Ranks and the processes that they start run a program that knows nothing of
this package, so what has to be different must be so by the time that the
program has it.
"""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

from . import STAND_IN_VARIABLE, device, is_nvidia

#: Modules of upstream that one of ours stands for.
REPLACED_ON_CPU = {"iris.host.platform.hip": "platform_calls"}

#: Which module of ours changes which one, once that has been executed.
CHANGED = {
    "iris.host.memory.symmetric_heap": ["heap"],
    "iris.host.memory.tensors": ["creation"],
    "torch.distributed": ["process_groups", "alone"],
}
CHANGED_ON_CPU = {
    "torch": ["cuda", "graphs"],
    "triton": ["launch", "polls", "brain_floats", "atomics", "aggregates"],
    "triton.experimental.gluon": ["gluon"],
    "triton.language.extra.libdevice": ["libdevice"],
    "iris.mem.utils": ["clocks"],
}
CHANGED_ON_GPU = {
    "torch": ["sharing"],
}
CHANGED_ON_NVIDIA = {
    "pynvml": ["nvml"],
    "torch": ["sharing"],
    "triton": ["nvidia"],
    "triton.experimental.gluon.language": ["nvidia_layouts"],
    "iris.mem.utils": ["nvidia_clocks"],
}


def _changed_here() -> Dict[str, List[str]]:
    """What is changed on this kind of device alone."""
    if device() != "gpu":
        return CHANGED_ON_CPU
    return CHANGED_ON_NVIDIA if is_nvidia() else CHANGED_ON_GPU



class _Changing(importlib.abc.Loader):
    """Loads a module as its own loader does, then changes it."""

    def __init__(self, loader: Any, changes: Sequence[str]) -> None:
        self._loader = loader
        self._changes = changes

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        made: Optional[ModuleType] = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for name in self._changes:
            importlib.import_module(f"{__package__}.{name}").apply(module)

    def __getattr__(self, name: str) -> Any:
        # Readers of sources and resources ask the loader of the module.
        return getattr(self._loader, name)


class _Standing(importlib.abc.Loader):
    """Gives a module of ours, under the name of another."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> ModuleType:
        return importlib.import_module(f"{__package__}.{self._name}")

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed under its own name."""


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are replaced or changed before others do."""

    def __init__(self) -> None:
        self._replaced = {} if device() == "gpu" else dict(REPLACED_ON_CPU)
        stand_ins = os.environ.get(STAND_IN_VARIABLE, "")
        for name in filter(None, stand_ins.split(",")):
            self._replaced[name] = name
        self._changed = dict(CHANGED)
        for name, changes in _changed_here().items():
            self._changed[name] = CHANGED.get(name, []) + changes

    def _standing(self, name: str) -> Optional[str]:
        """Our module for that name: its own, or its package's for all in it."""
        package = name.split(".")[0]
        if "." in name and package != "tritonblas":
            package = name
        return self._replaced.get(package)

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        ours = self._standing(name)
        if ours is not None:
            return importlib.machinery.ModuleSpec(
                name, _Standing(ours), is_package=ours == "tritonblas")
        if name not in self._changed:
            return None
        spec = self._from_others(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Changing(spec.loader, self._changed[name])
        return spec

    def _from_others(self, name: str, path: Any, target: Any) -> Any:
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


def install() -> None:
    """Puts the finder in front. Doing it again does nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
