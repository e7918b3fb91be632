# SPDX-License-Identifier: MIT
"""Changes modules as they are imported.

Ranks and the processes that they start run a program that knows nothing of
this package, so what has to be different must be so by the time that the
program has it.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Optional, Sequence

from . import device

HERE = Path(__file__).resolve().parent

#: Modules of upstream that a file of ours stands for.
REPLACED_ON_CPU = {"iris.host.platform.hip": "platform_calls.py"}

#: Which module of ours changes which one, once that has been executed.
CHANGED = {"iris.host.memory.symmetric_heap": ["heap"]}
CHANGED_ON_CPU = {
    "torch": ["cuda", "graphs"],
    "torch.distributed": ["process_groups"],
    "triton": ["launch", "polls", "brain_floats", "atomics", "aggregates"],
    "triton.experimental.gluon": ["gluon"],
    "iris.mem.utils": ["clocks"],
}


class _Changing(importlib.abc.Loader):
    """Loads a module as its own loader does, then changes it."""

    def __init__(self, loader: Any, changes: Sequence[str]) -> None:
        self._loader = loader
        self._changes = changes

    def create_module(self, spec: Any) -> Optional[ModuleType]:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        for name in self._changes:
            importlib.import_module(f"{__package__}.{name}").apply(module)

    def __getattr__(self, name: str) -> Any:
        # Readers of sources and resources ask the loader of the module.
        return getattr(self._loader, name)


class Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that are replaced or changed before others do."""

    def __init__(self) -> None:
        cpu = device() != "gpu"
        self._replaced = REPLACED_ON_CPU if cpu else {}
        self._changed = dict(CHANGED, **(CHANGED_ON_CPU if cpu else {}))

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name in self._replaced:
            file = HERE / self._replaced[name]
            return importlib.util.spec_from_file_location(name, file)
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
