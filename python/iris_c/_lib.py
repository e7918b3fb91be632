# SPDX-License-Identifier: MIT
"""Finds and loads libiris. Its calls become functions that raise exceptions.

`call.iris_malloc(...)` is the C function. If that returns an error status, this
raises an exception with the text of iris_last_error().
"""

import ctypes
import os
from pathlib import Path
from typing import Any, Iterator, List, Optional

from . import _errors, _interrupt, _prototypes

#: The folder in a wheel with the library and the backends' modules.
WHEEL_FOLDER = Path(__file__).resolve().parent / "lib"


def _build_trees() -> Iterator[Path]:
    """Libraries that a checkout of the sources has built, newest first."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "src" / "libiris.map").exists():
        return
    found = list(root.glob(".libs/libiris.so"))
    found += root.glob("build/*/.libs/libiris.so")
    yield from sorted(found, key=lambda path: -path.stat().st_mtime)


def _candidates() -> Iterator[str]:
    """Possible paths of the library, best first: the user's, the wheel's,
    the build tree's, the system's."""
    named = os.environ.get("IRIS_C_LIBRARY")
    if named:
        yield named
        return
    if (WHEEL_FOLDER / "libiris.so").exists():
        yield str(WHEEL_FOLDER / "libiris.so")
    yield from map(str, _build_trees())
    yield "libiris.so.0"
    yield "libiris.so"


def _load_beside() -> None:
    """Loads the wheel's copies of libraries that libiris is linked with,
    such as zlib. The loader then finds them by name."""
    for path in sorted(WHEEL_FOLDER.glob("lib*.so.*")):
        ctypes.CDLL(str(path))


def _load() -> ctypes.CDLL:
    _load_beside()
    tried: List[str] = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            tried.append(f"{name}: {error}")
    raise ImportError(
        "iris_c needs the library libiris and cannot load it. Install a wheel"
        " that holds it, or name the file in IRIS_C_LIBRARY. Tried: "
        + "; ".join(tried)
    )


def _absent(name: str) -> Any:
    def refuse(*_: Any) -> Any:
        raise _errors.UnsupportedError(
            f"the libiris that was loaded, {path}, has no {name}():"
            " it is older than this package"
        )

    return refuse


def _checked(function: Any) -> Any:
    """The C function with its status replaced by an exception."""

    def checked(*args: Any) -> None:
        status = function(*args)
        _interrupt.raise_if_interrupted()
        if status != 0:
            raise error_of(status)

    return checked


class _Calls:
    """The public calls of <iris/iris.h>, by name."""

    def __init__(self, library: ctypes.CDLL) -> None:
        for name, (result, *arguments) in _prototypes.ROWS.items():
            function = getattr(library, name, None)
            if function is None:
                setattr(self, name, _absent(name))
                continue
            checked = result is _prototypes.STATUS
            function.restype = ctypes.c_int if checked else result
            function.argtypes = arguments
            setattr(self, name, _checked(function) if checked else function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is no call of the library")


_library = _load()

#: The library that was loaded, in the form that was passed to the loader.
path: str = _library._name

#: The library's calls.
call = _Calls(_library)


#: Settings that the library's messages suggest, as arguments of iris().
_ARGUMENTS = {
    "IRIS_HEAP_SIZE": "heap_size",
    "IRIS_HEAP_RESERVE": "heap_reserve",
    "IRIS_CCL_SIZE": "ccl_bytes",
}


def error_of(status: int) -> _errors.IrisError:
    """The exception for a status that a call has just returned."""
    name = call.iris_status_string(status).decode()
    text = call.iris_last_error().decode(errors="replace")
    for variable, argument in _ARGUMENTS.items():
        text = text.replace(variable, f"{argument}= ({variable})")
    kind = _errors.BY_STATUS.get(name, _errors.IrisError)
    return kind(text or call.iris_status_text(status).decode())


def raw(name: str) -> Any:
    """The C function without the check of its status. For finalizers, which
    must not raise exceptions."""
    assert name in _prototypes.ROWS, name
    return getattr(_library, name)


def module_folder() -> Optional[Path]:
    """The folder with the library and its modules. None: they are elsewhere."""
    folder = Path(path).resolve().parent
    return folder if any(folder.glob("iris_*.so")) else None
