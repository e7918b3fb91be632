# SPDX-License-Identifier: MIT
"""Changes modules when they are imported.

Ranks and the processes that they start run a program that does not know this
package. So modules must be changed before the program gets them.
"""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

from . import STAND_IN_VARIABLE, device, is_nvidia

#: Modules of upstream that modules of this package replace.
REPLACED_ON_CPU = {"iris.host.platform.hip": "platform_calls"}

#: The modules of this package that change other modules, after these have been
#: executed.
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
    """The changes for the current kind of device."""
    if device() != "gpu":
        return CHANGED_ON_CPU
    return CHANGED_ON_NVIDIA if is_nvidia() else CHANGED_ON_GPU



class _Changing(importlib.abc.Loader):
    """Loads a module with its own loader, and then changes it."""

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
        # Code that reads sources and resources asks the module's loader.
        return getattr(self._loader, name)


class _Standing(importlib.abc.Loader):
    """Returns a module of this package under the name of another one."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: Any) -> ModuleType:
        return importlib.import_module(f"{__package__}.{self._name}")

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the module has been executed under its own name."""


class Finder(importlib.abc.MetaPathFinder):
    """Finds replaced and changed modules before other finders do."""

    def __init__(self) -> None:
        self._replaced = {} if device() == "gpu" else dict(REPLACED_ON_CPU)
        stand_ins = os.environ.get(STAND_IN_VARIABLE, "")
        for name in filter(None, stand_ins.split(",")):
            self._replaced[name] = name
        self._changed = dict(CHANGED)
        for name, changes in _changed_here().items():
            self._changed[name] = CHANGED.get(name, []) + changes

    def _standing(self, name: str) -> Optional[str]:
        """This package's module for a name: for the module, or for its whole
        package."""
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
    """Puts the finder first. A second call does nothing."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
