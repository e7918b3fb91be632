# SPDX-License-Identifier: MIT
"""@aggregate for Triton's interpreter.

Upstream's device context is such a class. In the interpreter such classes have
no methods, since a jitted function is an object that does not bind. The
interpreter also checks that fields have a compiler's types, but interpreted
kernels have plain numbers. Here they are Python classes whose methods bind.
"""

import functools
import inspect
from typing import Any, Dict


class _Method:
    """A jitted function in a class."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.function
        return functools.partial(self.function, instance)


def _field(value: Any, kind: Any, tl: Any, semantic: Any) -> Any:
    """A field's value in the form of interpreted kernels."""
    if isinstance(value, tl.constexpr):
        value = value.value
    if kind is tl.tensor and isinstance(value, (int, float, bool)):
        return semantic.to_tensor(value)
    return value


def _plain_init(fields: Dict[str, Any], defaults: Dict[str, Any]) -> Any:
    """A constructor for a class without one. It takes the fields in order."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = dict(defaults, **dict(zip(fields, args)), **kwargs)
        missing = [name for name in fields if name not in given]
        unknown = [name for name in given if name not in fields]
        if missing or unknown or len(args) > len(fields):
            raise TypeError(
                f"{type(self).__name__}(): fields are {', '.join(fields)};"
                f" missing: {missing}, unknown: {unknown},"
                f" {len(args)} given by place")
        for name, value in given.items():
            setattr(self, name, value)

    return __init__


def _all_fields(cls: Any) -> Dict[str, Any]:
    fields: Dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        fields.update(inspect.get_annotations(base, eval_str=True))
    return fields


def apply(module: Any) -> None:
    import triton.language as tl
    from triton.runtime import interpreter

    semantic = interpreter.interpreter_semantic

    def aggregate(cls: Any) -> Any:
        fields = _all_fields(cls)
        defaults = {name: getattr(cls, name)
                    for name in fields if hasattr(cls, name)}

        def __setattr__(self: Any, name: str, value: Any) -> None:
            if name not in fields:
                raise AttributeError(f"{cls.__name__} has no field {name}")
            object.__setattr__(
                self, name, _field(value, fields[name], tl, semantic))

        for name, member in list(vars(cls).items()):
            if isinstance(member, interpreter.InterpretedFunction):
                setattr(cls, name, _Method(member))
        if "__init__" not in vars(cls):
            cls.__init__ = _plain_init(fields, defaults)
        cls.__setattr__ = __setattr__
        return cls

    tl.core._aggregate = aggregate
    if hasattr(module, "aggregate"):
        module.aggregate = aggregate
