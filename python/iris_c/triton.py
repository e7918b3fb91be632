# SPDX-License-Identifier: MIT
"""Functions with which Triton kernels access peers' memory.

Names and arguments are those of upstream's functions. A pointer is the caller's
own. `heap_bases` is Iris.get_heap_bases(). A rank selects the memory at the same
place of that rank's heap. This module needs Triton 3.4 or newer; `import iris_c`
does not.
"""

import triton
import triton.language as tl

if not hasattr(triton, "knobs"):
    raise ImportError(
        "iris_c.triton needs Triton 3.4 or newer, and this is Triton"
        f" {triton.__version__}"
    )

from . import _clock, _kernels

_kernels.prepare()
_now, _place = _clock.functions()

#: The defaults of atomics. The compiler accepts no plain text as a default.
_ACQ_REL = tl.constexpr("acq_rel")
_SYSTEM = tl.constexpr("sys")


@triton.jit
def translate(pointer, from_rank, to_rank, heap_bases):
    """The address on rank `to_rank` of rank `from_rank`'s `pointer`."""
    distance = tl.load(heap_bases + to_rank) - tl.load(heap_bases + from_rank)
    there = pointer.to(tl.int64, bitcast=True) + distance
    return there.to(pointer.dtype, bitcast=True)


@triton.jit
def load(pointer, to_rank, from_rank, heap_bases, mask=None, other=None,
         cache_modifier: tl.constexpr = None, volatile: tl.constexpr = False):
    """The value on rank `from_rank`; `to_rank` is the caller."""
    there = translate(pointer, to_rank, from_rank, heap_bases)
    return tl.load(there, mask=mask, other=other,
                   cache_modifier=cache_modifier, volatile=volatile)


@triton.jit
def store(pointer, value, from_rank, to_rank, heap_bases, mask=None,
          cache_modifier: tl.constexpr = None):
    """Writes on rank `to_rank`; `from_rank` is the caller."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    tl.store(there, value, mask=mask, cache_modifier=cache_modifier)


@triton.jit
def get(from_pointer, to_pointer, from_rank, to_rank, heap_bases, mask=None,
        other=None):
    """Copies from rank `from_rank` to the caller, `to_rank`."""
    value = load(from_pointer, to_rank, from_rank, heap_bases, mask, other)
    tl.store(to_pointer, value, mask=mask)


@triton.jit
def put(from_pointer, to_pointer, from_rank, to_rank, heap_bases, mask=None,
        other=None):
    """Copies from the caller, `from_rank`, to rank `to_rank`."""
    value = tl.load(from_pointer, mask=mask, other=other)
    store(to_pointer, value, from_rank, to_rank, heap_bases, mask)


@triton.jit
def copy(from_pointer, to_pointer, from_rank, to_rank, cur_rank, heap_bases,
         mask=None, other=None):
    """Copies from rank `from_rank` to rank `to_rank`; either is the caller,
    `cur_rank`."""
    value = load(from_pointer, cur_rank, from_rank, heap_bases, mask, other)
    store(to_pointer, value, cur_rank, to_rank, heap_bases, mask)


@triton.jit
def atomic_add(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Adds on rank `to_rank`. Returns the old value, as do all atomics below."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_add(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_xchg(pointer, value, from_rank, to_rank, heap_bases, mask=None,
                sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Writes on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_xchg(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_cas(pointer, expected, value, from_rank, to_rank, heap_bases,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Writes on rank `to_rank` if the value there is `expected`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_cas(there, expected, value, sem=sem, scope=scope)


@triton.jit
def atomic_and(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Bitwise and on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_and(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_or(pointer, value, from_rank, to_rank, heap_bases, mask=None,
              sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Bitwise or on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_or(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_xor(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Bitwise exclusive or on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_xor(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_min(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Stores the smaller value on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_min(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_max(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Stores the larger value on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_max(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_sub(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem: tl.constexpr = _ACQ_REL, scope: tl.constexpr = _SYSTEM):
    """Subtracts on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_add(there, -value, mask=mask, sem=sem, scope=scope)


@triton.jit
def tile_pointers(base, m, n, rows, cols, row_stride, col_stride,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Pointers to the elements of block (m, n) of a matrix at `base`, and a
    mask of those that are within the matrix. Strides are in elements."""
    row = m * BLOCK_M + tl.arange(0, BLOCK_M)
    col = n * BLOCK_N + tl.arange(0, BLOCK_N)
    pointers = (base + row[:, None].to(tl.int64) * row_stride
                + col[None, :].to(tl.int64) * col_stride)
    return pointers, (row[:, None] < rows) & (col[None, :] < cols)


@triton.jit
def load_tile(base, m, n, rows, cols, row_stride, col_stride, to_rank,
              from_rank, heap_bases, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr, other=0):
    """The block (m, n) of rank `from_rank`'s matrix, with `other` beyond its
    edges; `to_rank` is the caller."""
    there = translate(base, to_rank, from_rank, heap_bases)
    pointers, mask = tile_pointers(there, m, n, rows, cols, row_stride,
                                   col_stride, BLOCK_M, BLOCK_N)
    return tl.load(pointers, mask=mask, other=other)


@triton.jit
def store_tile(base, value, m, n, rows, cols, row_stride, col_stride,
               from_rank, to_rank, heap_bases, BLOCK_M: tl.constexpr,
               BLOCK_N: tl.constexpr):
    """Writes the block (m, n) of rank `to_rank`'s matrix; `from_rank` is the
    caller."""
    there = translate(base, from_rank, to_rank, heap_bases)
    pointers, mask = tile_pointers(there, m, n, rows, cols, row_stride,
                                   col_stride, BLOCK_M, BLOCK_N)
    tl.store(pointers, value, mask=mask)


@triton.jit
def put_tile(from_base, to_base, m, n, rows, cols, from_row_stride,
             to_row_stride, from_rank, to_rank, heap_bases,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Copies the block (m, n) of the caller's matrix, `from_rank`'s, to rank
    `to_rank`'s; columns are next to each other."""
    pointers, mask = tile_pointers(from_base, m, n, rows, cols,
                                   from_row_stride, 1, BLOCK_M, BLOCK_N)
    value = tl.load(pointers, mask=mask)
    store_tile(to_base, value, m, n, rows, cols, to_row_stride, 1, from_rank,
               to_rank, heap_bases, BLOCK_M, BLOCK_N)


@triton.jit
def get_tile(from_base, to_base, m, n, rows, cols, from_row_stride,
             to_row_stride, from_rank, to_rank, heap_bases,
             BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Copies the block (m, n) of rank `from_rank`'s matrix to the caller's,
    `to_rank`'s; columns are next to each other."""
    value = load_tile(from_base, m, n, rows, cols, from_row_stride, 1,
                      to_rank, from_rank, heap_bases, BLOCK_M, BLOCK_N)
    pointers, mask = tile_pointers(to_base, m, n, rows, cols, to_row_stride, 1,
                                   BLOCK_M, BLOCK_N)
    tl.store(pointers, value, mask=mask)


@triton.jit
def signal(word, value, from_rank, to_rank, heap_bases):
    """Adds to rank `to_rank`'s word. A rank that wait()s for it then sees all
    that this instance, of rank `from_rank`, has written before."""
    tl.debug_barrier()
    atomic_add(word, value, from_rank, to_rank, heap_bases, sem="release")


@triton.jit
def wait(word, value):
    """Waits until the caller's own word is at least `value`."""
    while tl.atomic_add(word, 0, sem="acquire", scope="sys") < value:
        pass
    tl.debug_barrier()


@triton.jit
def rank_barrier(words, turn, rank, num_ranks, heap_bases):
    """Instances of one number on all ranks wait for each other, and see what the
    others wrote before. Each number has `num_ranks` words of its own, which are 0
    at first. `turn` counts its barriers from 1 on."""
    for peer in range(num_ranks):
        signal(words + rank, 1, rank, peer, heap_bases)
    for peer in range(num_ranks):
        wait(words + peer, turn)


@triton.jit
def reduce_tile(base, m, n, rows, cols, row_stride, col_stride, rank,
                num_ranks, heap_bases, BLOCK_M: tl.constexpr,
                BLOCK_N: tl.constexpr, TYPE: tl.constexpr = tl.float32):
    """The sum of all ranks' blocks (m, n), in elements of `TYPE`. It adds in the
    order of the ranks, so each rank gets the same bits."""
    total = tl.zeros((BLOCK_M, BLOCK_N), TYPE)
    for peer in range(num_ranks):
        total += load_tile(base, m, n, rows, cols, row_stride, col_stride,
                           rank, peer, heap_bases, BLOCK_M, BLOCK_N).to(TYPE)
    return total


@triton.jit
def broadcast_tile(base, value, m, n, rows, cols, row_stride, col_stride, rank,
                   num_ranks, heap_bases, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr):
    """Writes the block (m, n) of all ranks' matrices. If each rank passes a part
    of the matrix as `base`, all gather it."""
    for peer in range(num_ranks):
        store_tile(base, value, m, n, rows, cols, row_stride, col_stride, rank,
                   peer, heap_bases, BLOCK_M, BLOCK_N)


@triton.jit
def _column(words, column: tl.constexpr, slot, value, ok):
    """Writes an event's value of 32 bits."""
    place = tl.load(words + 4 + column).to(tl.pointer_type(tl.int32))
    tl.store(place + slot, value, mask=ok)


@triton.jit
def _long_column(words, column: tl.constexpr, slot, value, ok):
    """Writes an event's value of 64 bits."""
    place = tl.load(words + 4 + column).to(tl.pointer_type(tl.int64))
    tl.store(place + slot, value, mask=ok)


@triton.jit
def trace_begin(context, event: tl.constexpr, target_rank, pointer, bytes=0):
    """Begins an event of ctx.tracing: an operation on a rank's memory at
    `pointer`, or an event of the program, from 1024 on. `context` is
    Iris.get_device_context(). Returns the argument for trace_end(). Records
    nothing if tracing is not enabled."""
    words = context + 2 + tl.load(context + 1)
    enabled = tl.load(words) != 0
    counter = tl.load(words + 2).to(tl.pointer_type(tl.int32))
    order = tl.load(words + 3).to(tl.pointer_type(tl.int32))
    slot = tl.atomic_add(counter, 1, mask=enabled, sem="relaxed")
    number = tl.atomic_add(order, 1, mask=enabled, sem="relaxed")
    slot = tl.where(enabled, slot, -1)
    ok = enabled & (slot >= 0) & (slot < tl.load(words + 1))
    _column(words, 0, slot, event, ok)
    _column(words, 1, slot, tl.program_id(0), ok)
    _column(words, 2, slot, tl.program_id(0), ok)
    _column(words, 3, slot, tl.program_id(1), ok)
    _column(words, 4, slot, tl.load(context).to(tl.int32), ok)
    _column(words, 5, slot, target_rank, ok)
    _column(words, 6, slot, 0, ok)
    _column(words, 7, slot, _place(), ok)
    _long_column(words, 9, slot, pointer.to(tl.int64, bitcast=True), ok)
    _long_column(words, 10, slot, 0, ok)
    _column(words, 11, slot, number, ok)
    _column(words, 12, slot, bytes, ok)
    _long_column(words, 8, slot, _now(), ok)
    return tl.where(ok, slot, -1)


@triton.jit
def trace_end(context, slot):
    """Ends an event."""
    words = context + 2 + tl.load(context + 1)
    _long_column(words, 10, slot, _now(), slot >= 0)
