# SPDX-License-Identifier: MIT
"""Broadcast of any Python value between hosts."""

import ctypes
import pickle
from typing import Any, Optional, Tuple

from ._lib import call

#: The first message: the size of the description of the value.
_LENGTH = ctypes.c_int64


class _Sender:
    """Sends bytes from one member of a group to all."""

    def __init__(self, context: Any, src: int, group: Optional[int]) -> None:
        root = call.iris_group_translate(context.handle, None, src, group)
        if root < 0:
            raise ValueError(f"src={src} is no rank of the group")
        self._context = context
        self._to = (root, group)
        self.is_root = call.iris_group_index(context.handle, group) == root

    def send(self, data: Any, bytes: int) -> None:
        call.iris_broadcast(self._context.handle, data, bytes, *self._to)

    def send_object(self, value: Any) -> Any:
        text = b""
        if self.is_root:
            try:
                text = pickle.dumps(value)
            except Exception as error:  # The peers wait for this rank.
                value = ("error", f"{type(error).__name__}: {error}")
                text = pickle.dumps(value)
        length = _LENGTH(len(text))
        self.send(ctypes.byref(length), ctypes.sizeof(length))
        data = ctypes.create_string_buffer(text, length.value)
        self.send(data, length.value)
        return value if self.is_root else pickle.loads(data.raw)


def _as_array(value: Any) -> Any:
    """The value as a NumPy array if upstream treats it as one: tensors,
    arrays, and lists of numbers. Else None."""
    try:
        import numpy
    except ImportError:
        return None
    if hasattr(value, "detach") and hasattr(value, "cpu"):
        try:
            return value.detach().cpu().resolve_conj().resolve_neg().numpy()
        except (TypeError, RuntimeError):
            # NumPy lacks some of torch's types and layouts. Such tensors are
            # sent as objects.
            return None
    if isinstance(value, (list, tuple)):
        try:
            value = numpy.asarray(value)
        except ValueError:
            return None
    is_array = isinstance(value, numpy.ndarray) and value.dtype.kind in "biufc"
    # The bytes of a masked array lack its mask.
    is_whole = is_array and not isinstance(value, numpy.ma.MaskedArray)
    return value if is_whole else None


def _describe(value: Any) -> Tuple[Any, Any]:
    """The description that receivers need first, and the array whose bytes follow."""
    array = _as_array(value)
    if array is None:
        return ("object", value), None
    import numpy

    # In C order, because receivers get a copy and have no use for a view's
    # strides.
    array = numpy.asarray(array, order="C")
    return ("array", array.dtype.str, array.shape), array


def broadcast(context: Any, value: Any, src: int, members: Any) -> Any:
    """Returns rank `src`'s value. Arrays are not pickled: their bytes follow
    the description directly from the array's memory."""
    sender = _Sender(context, src, context._groups.handle_of(members))
    head, array = _describe(value) if sender.is_root else (None, None)
    head = sender.send_object(head)
    if head[0] == "object":
        if head[1] is None:
            raise ValueError("Root must provide a value.")
        return head[1]
    if head[0] == "error":
        raise TypeError(f"rank {src} cannot send its value: {head[1]}")
    import numpy

    if array is None:
        array = numpy.empty(head[2], dtype=head[1])
    sender.send(array.ctypes.data, array.nbytes)
    # The root gets a copy as well, so that all ranks have equal arrays.
    return array.copy() if sender.is_root else array
