# SPDX-License-Identifier: MIT
"""What Triton kernels call to reach peers' memory.

Names and arguments are upstream's functional ones: a pointer is the caller's
own, `heap_bases` is Iris.get_heap_bases(), and a rank says whose memory at the
same place is meant. Needs Triton, which `import iris_c` alone does not.
"""

import triton
import triton.language as tl

from . import _kernels

_kernels.prepare()


@triton.jit
def translate(pointer, from_rank, to_rank, heap_bases):
    """The address of rank `to_rank`'s copy of what is at `pointer` on rank
    `from_rank`."""
    distance = tl.load(heap_bases + to_rank) - tl.load(heap_bases + from_rank)
    there = pointer.to(tl.int64, bitcast=True) + distance
    return there.to(pointer.dtype, bitcast=True)


@triton.jit
def load(pointer, to_rank, from_rank, heap_bases, mask=None, other=None,
         cache_modifier="", volatile=False):
    """The value on rank `from_rank`; `to_rank` is the caller."""
    there = translate(pointer, to_rank, from_rank, heap_bases)
    return tl.load(there, mask=mask, other=other,
                   cache_modifier=cache_modifier, volatile=volatile)


@triton.jit
def store(pointer, value, from_rank, to_rank, heap_bases, mask=None,
          cache_modifier=""):
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
               sem="acq_rel", scope="sys"):
    """Adds on rank `to_rank`; gives the old value, as all that follow."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_add(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_xchg(pointer, value, from_rank, to_rank, heap_bases, mask=None,
                sem="acq_rel", scope="sys"):
    """Writes on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_xchg(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_cas(pointer, expected, value, from_rank, to_rank, heap_bases,
               sem="acq_rel", scope="sys"):
    """Writes on rank `to_rank` where `expected` is found."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_cas(there, expected, value, sem=sem, scope=scope)


@triton.jit
def atomic_and(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem="acq_rel", scope="sys"):
    """Bitwise and on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_and(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_or(pointer, value, from_rank, to_rank, heap_bases, mask=None,
              sem="acq_rel", scope="sys"):
    """Bitwise or on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_or(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_xor(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem="acq_rel", scope="sys"):
    """Bitwise exclusive or on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_xor(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_min(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem="acq_rel", scope="sys"):
    """The smaller value stays on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_min(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_max(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem="acq_rel", scope="sys"):
    """The larger value stays on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_max(there, value, mask=mask, sem=sem, scope=scope)


@triton.jit
def atomic_sub(pointer, value, from_rank, to_rank, heap_bases, mask=None,
               sem="acq_rel", scope="sys"):
    """Subtracts on rank `to_rank`."""
    there = translate(pointer, from_rank, to_rank, heap_bases)
    return tl.atomic_add(there, -value, mask=mask, sem=sem, scope=scope)


@triton.jit
def tile_pointers(base, m, n, rows, cols, row_stride, col_stride,
                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Of a matrix at `base` the block (m, n): pointers to its elements, and
    which of them are within the matrix. Strides are in elements."""
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
