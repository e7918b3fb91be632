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
from typing import Any, Optional, Sequence

from . import STAND_IN_VARIABLE, device

#: Modules of upstream that one of ours stands for.
REPLACED_ON_CPU = {"iris.host.platform.hip": "platform_calls"}

#: Which module of ours changes which one, once that has been executed.
CHANGED = {
    "iris.host.memory.symmetric_heap": ["heap"],
    "torch.distributed": ["alone"],
}
CHANGED_ON_CPU = {
    "torch": ["cuda", "graphs"],
    "torch.distributed": ["process_groups"],
    "triton": ["launch", "polls", "brain_floats", "atomics", "aggregates"],
    "triton.experimental.gluon": ["gluon"],
    "triton.language.extra.libdevice": ["libdevice"],
    "iris.host.memory.tensors": ["creation"],
    "iris.mem.utils": ["clocks"],
}


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
        cpu = device() != "gpu"
        self._replaced = REPLACED_ON_CPU if cpu else {}
        if os.environ.get(STAND_IN_VARIABLE):
            self._replaced = dict(self._replaced, origami="origami")
        self._changed = dict(CHANGED)
        for name, changes in (CHANGED_ON_CPU if cpu else {}).items():
            self._changed[name] = CHANGED.get(name, []) + changes

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name in self._replaced:
            loader = _Standing(self._replaced[name])
            return importlib.machinery.ModuleSpec(name, loader)
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
