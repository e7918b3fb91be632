# SPDX-License-Identifier: MIT
"""The ctypes prototypes of the library's calls, one row for each.

tests/python compares the rows with src/libiris.map, so that no call is
forgotten.
"""

import ctypes as c
from typing import Any, Dict, Tuple

from . import _interrupt
from ._structs import (
    CclOptions,
    HeapStats,
    OpsOptions,
    PlanSegment,
    Shape,
    Tensor,
    TensorOptions,
    Tile,
    TraceCounts,
    Value,
)

STATUS = "status"  # a status to check: an error raises an exception
Address = c.c_void_p
Handle = c.c_void_p  # a context, stream, group or graph
Text = c.c_char_p


_out = c.POINTER(c.c_void_p)
_number = c.POINTER(c.c_uint32)
_tiles = (c.POINTER(Tile), c.POINTER(Tile))
_tensor = c.POINTER(Tensor)
_options = c.POINTER(TensorOptions)
_words = c.POINTER(c.c_int64)
_ccl_options = c.POINTER(CclOptions)
_counts = c.POINTER(c.c_size_t)
#: Arguments of a collective: context, in, out, count, dtype.
_collective = (Handle, Address, Address, c.c_size_t, c.c_int)
#: Arguments of one end of a message: context, buffer, count.
_message = (Handle, Address, c.c_size_t)
#: Arguments of a fused operation: context, a, b, out, options.
_fused = (Handle, _tensor, _tensor, _tensor, c.POINTER(OpsOptions))

#: For each name the result and the arguments. Variadic calls list the fixed
#: ones.
ROWS: Dict[str, Tuple[Any, ...]] = {
    # <iris/status.h>, <iris/constants.h>
    "iris_status_string": (Text, c.c_int),
    "iris_status_text": (Text, c.c_int),
    "iris_last_error": (Text,),
    "iris_version": (Text,),
    "iris_dtype_size": (c.c_size_t, c.c_int),
    "iris_dtype_name": (Text, c.c_int),
    "iris_config_size": (c.c_size_t,),
    "iris_context_words": (c.c_size_t, c.c_int),
    "iris_alignment": (c.c_size_t,),
    # <iris/context.h>
    "iris_config_init_sized": (None, Address, c.c_size_t),
    "iris_config_set": (STATUS, Address, Text, Text),
    "iris_init": (STATUS, Address, _out),
    "iris_finalize": (STATUS, Handle),
    "iris_finalize_later": (STATUS, Handle),
    "iris_clear_error": (STATUS, Handle),
    "iris_interrupt": (None, Handle),
    "iris_revoke": (STATUS, Handle),
    "iris_shrink": (STATUS, Handle, Address),
    "iris_set_leave_reason": (None, Handle, Text),
    "iris_set_wait_check": (None, _interrupt.Check, Address),
    "iris_lost_rank": (c.c_int, Handle),
    "iris_rank": (c.c_int, Handle),
    "iris_num_ranks": (c.c_int, Handle),
    "iris_node": (c.c_int, Handle),
    "iris_num_nodes": (c.c_int, Handle),
    "iris_device_id": (c.c_int, Handle),
    "iris_num_cus": (c.c_int, Handle),
    "iris_backend_name": (Text, Handle),
    "iris_heap_bases": (_words, Handle),
    "iris_device_context": (Address, Handle),
    # <iris/heap.h>
    "iris_malloc": (STATUS, Handle, c.c_size_t, _out),
    "iris_malloc_aligned": (STATUS, Handle, c.c_size_t, c.c_size_t, _out),
    "iris_calloc": (STATUS, Handle, c.c_size_t, c.c_size_t, _out),
    "iris_free": (STATUS, Handle, Address),
    "iris_as_symmetric": (
        STATUS,
        Handle,
        Address,
        c.c_size_t,
        _out,
        c.POINTER(c.c_int),
    ),
    "iris_heap_stats_sized": (
        STATUS,
        Handle,
        c.POINTER(HeapStats),
        c.c_size_t,
    ),
    "iris_is_symmetric": (c.c_int, Handle, Address),
    "iris_is_reachable": (c.c_int, Handle, c.c_int),
    "iris_as_remote": (STATUS, Handle, Address, c.c_int, _out),
    "iris_translate": (STATUS, Handle, Address, c.c_int, c.c_int, _out),
    "iris_free_later": (STATUS, Handle, Address),
    "iris_free_deferred": (STATUS, Handle),
    "iris_heap_trim": (STATUS, Handle, c.POINTER(c.c_size_t)),
    # <iris/tensor.h>, <iris/random.h>
    "iris_tensor_options_init_sized": (None, _options, c.c_size_t),
    "iris_empty": (STATUS, Handle, Shape, _options, _tensor),
    "iris_full": (STATUS, Handle, Shape, Value, _options, _tensor),
    "iris_zeros_like": (STATUS, Handle, _tensor, _options, _tensor),
    "iris_arange": (STATUS, Handle, Value, Value, Value, _options, _tensor),
    "iris_linspace": (
        STATUS,
        Handle,
        Value,
        Value,
        c.c_int64,
        _options,
        _tensor,
    ),
    "iris_rand": (STATUS, Handle, Shape, _options, _tensor),
    "iris_randn": (STATUS, Handle, Shape, _options, _tensor),
    "iris_randint": (
        STATUS,
        Handle,
        c.c_int64,
        c.c_int64,
        Shape,
        _options,
        _tensor,
    ),
    "iris_default_generator": (Address, Handle),
    "iris_tensor_free": (STATUS, Handle, _tensor),
    "iris_tensor_copy": (STATUS, Handle, _tensor, _tensor, Handle),
    "iris_tensor_format": (
        STATUS,
        Handle,
        _tensor,
        Text,
        c.c_size_t,
        c.POINTER(c.c_size_t),
    ),
    "iris_tensor_is_symmetric": (c.c_int, Handle, _tensor),
    "iris_tensor_as_remote": (STATUS, Handle, _tensor, c.c_int, _tensor),
    "iris_tensor_as_symmetric": (
        STATUS,
        Handle,
        _tensor,
        _tensor,
        c.POINTER(c.c_int),
    ),
    "iris_tensor_numel": (c.c_int64, _tensor),
    "iris_tensor_is_contiguous": (c.c_int, _tensor, c.c_int),
    # <iris/ccl.h>
    "iris_ccl_variant_name": (Text, c.c_int),
    "iris_ccl_options_init_sized": (None, _ccl_options, c.c_size_t),
    "iris_all_reduce": (STATUS, *_collective, c.c_int, _ccl_options),
    "iris_all_gather": (STATUS, *_collective, _ccl_options),
    "iris_reduce_scatter": (STATUS, *_collective, c.c_int, _ccl_options),
    "iris_all_to_all": (STATUS, *_collective, _ccl_options),
    "iris_ccl_broadcast": (STATUS, *_collective, c.c_int, _ccl_options),
    "iris_reduce": (STATUS, *_collective, c.c_int, c.c_int, _ccl_options),
    "iris_gather": (STATUS, *_collective, c.c_int, _ccl_options),
    "iris_scatter": (STATUS, *_collective, c.c_int, _ccl_options),
    "iris_all_gatherv": (
        STATUS,
        Handle,
        Address,
        Address,
        _counts,
        _counts,
        c.c_int,
        _ccl_options,
    ),
    "iris_all_to_allv": (
        STATUS,
        Handle,
        *(Address, _counts, _counts) * 2,
        c.c_int,
        _ccl_options,
    ),
    "iris_send": (STATUS, *_message, c.c_int, c.c_int, _ccl_options),
    "iris_recv": (STATUS, *_message, c.c_int, c.c_int, _ccl_options),
    "iris_send_recv": (
        STATUS,
        *_message,
        c.c_int,
        *_message[1:],
        c.c_int,
        c.c_int,
        _ccl_options,
    ),
    "iris_ccl_prepare": (STATUS, Handle),
    "iris_all_reduce_preamble": (STATUS, Handle, _ccl_options),
    "iris_ccl_workspace_create": (STATUS, Handle, Handle, _out),
    "iris_ccl_workspace_destroy": (STATUS, Handle, Handle),
    # <iris/ops.h>
    "iris_ops_options_init_sized": (None, c.POINTER(OpsOptions), c.c_size_t),
    "iris_matmul_all_reduce": (STATUS, *_fused),
    "iris_all_gather_matmul": (STATUS, *_fused),
    "iris_matmul_all_gather": (STATUS, *_fused),
    "iris_matmul_reduce_scatter": (STATUS, *_fused),
    "iris_matmul_all_reduce_preamble": (STATUS, *_fused, _out),
    "iris_all_gather_matmul_preamble": (STATUS, *_fused, _out),
    "iris_matmul_all_gather_preamble": (STATUS, *_fused, _out),
    "iris_matmul_reduce_scatter_preamble": (STATUS, *_fused, _out),
    "iris_ops_workspace_destroy": (STATUS, Handle, Handle),
    # <iris/group.h>, <iris/sync.h>
    "iris_group_create": (STATUS, Handle, c.POINTER(c.c_int), c.c_int, _out),
    "iris_group_destroy": (STATUS, Handle, Handle),
    "iris_group_size": (c.c_int, Handle, Handle),
    "iris_group_index": (c.c_int, Handle, Handle),
    "iris_group_member": (c.c_int, Handle, Handle, c.c_int),
    "iris_group_translate": (c.c_int, Handle, Handle, c.c_int, Handle),
    "iris_group_device": (Address, Handle, Handle),
    "iris_barrier": (STATUS, Handle, Handle, Handle),
    "iris_device_barrier": (STATUS, Handle, Handle, Handle),
    "iris_broadcast": (
        STATUS,
        Handle,
        Address,
        c.c_size_t,
        c.c_int,
        Handle,
    ),
    # <iris/stream.h>, <iris/graph.h>, <iris/launch.h>
    "iris_stream_create": (STATUS, Handle, _out),
    "iris_stream_wrap": (STATUS, Handle, Address, _out),
    "iris_stream_native": (Address, Handle, Handle),
    "iris_stream_destroy": (None, Handle, Handle),
    "iris_stream_synchronize": (STATUS, Handle, Handle),
    "iris_memcpy": (STATUS, Handle, Address, Address, c.c_size_t, Handle),
    "iris_memcpy_sync": (STATUS, Handle, Address, Address, c.c_size_t),
    "iris_memset": (STATUS, Handle, Address, c.c_int, c.c_size_t, Handle),
    "iris_put_on_stream": (
        STATUS,
        Handle,
        Address,
        Address,
        c.c_size_t,
        c.c_int,
        Handle,
    ),
    "iris_get_on_stream": (
        STATUS,
        Handle,
        Address,
        Address,
        c.c_size_t,
        c.c_int,
        Handle,
    ),
    "iris_tiles_on_stream": (
        STATUS,
        Handle,
        c.c_int,
        *_tiles,
        c.c_size_t,
        c.c_int,
        Handle,
    ),
    "iris_signal_on_stream": (
        STATUS,
        Handle,
        Address,
        c.c_uint64,
        c.c_int,
        Handle,
    ),
    "iris_put_signal_on_stream": (
        STATUS,
        Handle,
        Address,
        Address,
        c.c_size_t,
        Address,
        c.c_uint64,
        c.c_int,
        c.c_int,
        Handle,
    ),
    "iris_wait_on_stream": (
        STATUS,
        Handle,
        Address,
        c.c_int,
        c.c_uint64,
        Handle,
    ),
    "iris_capture_begin": (STATUS, Handle, Handle),
    "iris_capture_end": (STATUS, Handle, Handle, _out),
    "iris_graph_launch": (STATUS, Handle, Handle, Handle),
    "iris_graph_destroy": (None, Handle, Handle),
    "iris_launch": (
        STATUS,
        Handle,
        Address,
        c.c_uint,
        c.c_uint,
        Address,
        c.c_size_t,
        Handle,
    ),
    # <iris/plan.h>
    "iris_plan_create": (
        STATUS,
        Handle,
        c.POINTER(PlanSegment),
        c.c_size_t,
        Address,
        _out,
    ),
    "iris_plan_begin": (STATUS, Handle, Handle, Handle, _number),
    "iris_plan_end": (STATUS, Handle, Handle),
    "iris_plan_state": (STATUS, Handle, Handle, c.POINTER(c.c_int)),
    "iris_plan_abort": (STATUS, Handle, Handle),
    "iris_plan_destroy": (STATUS, Handle, Handle),
    "iris_plan_device": (Address, Handle, Handle),
    # <iris/trace.h>
    "iris_trace_enable": (STATUS, Handle, c.c_size_t),
    "iris_trace_reset": (STATUS, Handle),
    "iris_trace_counts": (STATUS, Handle, c.POINTER(TraceCounts)),
    "iris_trace_export": (STATUS, Handle, Text, c.c_int),
    "iris_trace_name": (STATUS, Handle, c.c_int, Text),
    "iris_trace_begin": (c.c_uint64, Handle, c.c_int),
    "iris_trace_end": (None, Handle, c.c_uint64),
    # <iris/log.h>: variadic; see _log.py
    "iris_log_set_level": (None, Handle, c.c_int),
    "iris_debug": (None, Handle, Text),
    "iris_info": (None, Handle, Text),
    "iris_warning": (None, Handle, Text),
    "iris_error": (None, Handle, Text),
}

#: Calls that Python has no use for: of objects that iriscc compiles, of kernels
#: on the CPU, iris_spawn(), which runs a C function; views, which torch and
#: NumPy make themselves; and DLPack's, whose tensors do not keep their memory.
NOT_CALLED = (
    "iris_ccl_device_create",
    "iris_ccl_device_destroy",
    "iris_name",
    "iris_plan_options_init_sized",
    "iris_gpu_image_add",
    "iris_gpu_image_remove",
    "iris_cpu_checked",
    "iris_cpu_end",
    "iris_cpu_lanes",
    "iris_cpu_mismatch",
    "iris_cpu_observe",
    "iris_cpu_order",
    "iris_cpu_plain",
    "iris_cpu_poll",
    "iris_cpu_posted",
    "iris_cpu_self",
    "iris_cpu_thread",
    "iris_spawn",
    "iris_tensor_wrap",
    "iris_tensor_slice",
    "iris_tensor_select",
    "iris_tensor_permute",
    "iris_tensor_reshape",
    "iris_tensor_to_dlpack",
    "iris_tensor_from_dlpack",
)
