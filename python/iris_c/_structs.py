# SPDX-License-Identifier: MIT
"""The structs of the public headers that Python passes to the library."""

import ctypes as c
from typing import Iterator, Tuple

#: IRIS_TENSOR_DIMS_MAX
DIMS_MAX = 8


class HeapStats(c.Structure):
    """struct iris_heap_stats."""

    _fields_ = [
        (name, c.c_size_t)
        for name in (
            "size",
            "heap_bytes",
            "used_bytes",
            "free_bytes",
            "largest_free_bytes",
            "peak_bytes",
            "mapped_bytes",
            "reserved_bytes",
            "metadata_bytes",
            "num_allocs",
            "num_deferred",
        )
    ]

    @classmethod
    def names(cls) -> Iterator[str]:
        """The figures."""
        return (name for name, *_ in cls._fields_ if name != "size")


class Shape(c.Structure):
    """iris_shape_t."""

    _fields_ = [("ndim", c.c_int), ("sizes", c.c_int64 * DIMS_MAX)]


class Tensor(c.Structure):
    """iris_tensor_t."""

    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int),
        ("ndim", c.c_int),
        ("shape", c.c_int64 * DIMS_MAX),
        ("strides", c.c_int64 * DIMS_MAX),
        ("owner", c.c_void_p),
    ]

    def sizes(self) -> Tuple[int, ...]:
        """The sizes of the dimensions."""
        return tuple(self.shape[: self.ndim])

    def steps(self) -> Tuple[int, ...]:
        """The strides, in elements."""
        return tuple(self.strides[: self.ndim])


class _Number(c.Union):
    _fields_ = [("i", c.c_int64), ("u", c.c_uint64), ("f", c.c_double * 2)]


class Value(c.Structure):
    """iris_value_t."""

    _fields_ = [("kind", c.c_int), ("number", _Number)]


class TensorOptions(c.Structure):
    """struct iris_tensor_options."""

    _fields_ = [
        ("size", c.c_size_t),
        ("dtype", c.c_int),
        ("format", c.c_int),
        ("out", c.POINTER(Tensor)),
        ("stream", c.c_void_p),
        ("generator", c.c_void_p),
    ]


class Tile(c.Structure):
    """iris_tile_t."""

    _fields_ = [
        ("data", c.c_void_p),
        ("rows", c.c_uint32),
        ("cols", c.c_uint32),
        ("row_stride", c.c_int64),
        ("col_stride", c.c_int64),
        ("elem", c.c_uint32),
    ]


class TraceCounts(c.Structure):
    """struct iris_trace_counts."""

    _fields_ = [
        ("device_events", c.c_uint64),
        ("host_events", c.c_uint64),
        ("dropped", c.c_uint64),
    ]


class CclOptions(c.Structure):
    """struct iris_ccl_options."""

    #: One field for each collective, with its variant.
    VARIANTS = (
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "broadcast",
    )
    _fields_ = [
        ("size", c.c_size_t),
        ("stream", c.c_void_p),
        ("group", c.c_void_p),
        ("workspace", c.c_void_p),
        ("num_cus", c.c_int),
        *((name, c.c_int) for name in VARIANTS),
        ("async", c.c_int),
        ("rows", c.c_size_t),
        ("in_stride", c.c_size_t),
        ("out_stride", c.c_size_t),
        ("distribution", c.c_int),
        ("own_rows", c.c_int),
        ("num_rings", c.c_int),
        ("scale", c.c_double),
    ]


class OpsOptions(c.Structure):
    """struct iris_ops_options."""

    _fields_ = [
        ("size", c.c_size_t),
        ("stream", c.c_void_p),
        ("group", c.c_void_p),
        ("workspace", c.c_void_p),
        ("bias", c.POINTER(Tensor)),
        ("bias_by_row", c.c_int),
        ("chunks", c.c_int),
    ]


class PlanSegment(c.Structure):
    """struct iris_plan_segment."""

    _fields_ = [
        ("from_rank", c.c_int),
        ("to_rank", c.c_int),
        ("src", c.c_void_p),
        ("dst", c.c_void_p),
        ("bytes", c.c_size_t),
        ("batch", c.c_int),
    ]
