# SPDX-License-Identifier: MIT
"""Broadcast of any Python value between hosts."""

import ctypes
import pickle
from typing import Any

from ._lib import call


def _send(context: Any, data: Any, bytes: int, src: int) -> None:
    call.iris_broadcast(context.handle, data, bytes, src, None)


def broadcast(context: Any, value: Any, src: int) -> Any:
    """Rank `src`'s value: first how long it is, then the value, pickled."""
    is_root = context.cur_rank == src
    text = pickle.dumps(value) if is_root else b""
    length = ctypes.c_int64(len(text))
    _send(context, ctypes.byref(length), ctypes.sizeof(length), src)
    data = ctypes.create_string_buffer(text, length.value)
    _send(context, data, length.value, src)
    return value if is_root else pickle.loads(data.raw)
