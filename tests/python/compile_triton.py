# SPDX-License-Identifier: MIT
"""Compiles all of iris_c.triton for a GPU that need not be there:

    python compile_triton.py cuda|hip
"""

import sys

import triton
import triton.language as tl
from iris_c import _clock
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

if sys.argv[1] == "hip":
    _clock.functions = lambda: (_clock._now_amd, _clock._place_amd)
    TARGET = GPUTarget("hip", "gfx942", 64)
else:
    TARGET = GPUTarget("cuda", 90, 32)

import iris_c.triton as it  # noqa: E402  its clock is that of the target


@triton.jit
def traced(x, w, context, me, peer, bases):
    own = it.trace_begin(context, 2050, me, x)
    slot = it.trace_begin(context, 1, peer, x + 3, 12)
    it.store(x + 3 + tl.arange(0, 4), 1, me, peer, bases)
    it.trace_end(context, slot)
    it.trace_end(context, own)


@triton.jit
def tiles(x, w, out, me, peer, bases, rows, cols):
    m, n = tl.program_id(0), tl.program_id(1)
    it.put_tile(x, out, m, n, rows, cols, cols, cols, me, peer, bases, 32, 32)
    it.get_tile(x, out, m, n, rows, cols, cols, cols, peer, me, bases, 32, 32)
    value = it.load_tile(x, m, n, rows, cols, cols, 1, me, peer, bases, 32, 32)
    it.store_tile(out, value, m, n, rows, cols, cols, 1, me, peer, bases, 32,
                  32)


@triton.jit
def collectives(x, w, out, me, ranks, bases, rows, cols):
    m, n = tl.program_id(0), tl.program_id(1)
    it.rank_barrier(w, 1, me, ranks, bases)
    value = it.reduce_tile(x, m, n, rows, cols, cols, 1, me, ranks, bases, 32,
                           32)
    it.broadcast_tile(out, value, m, n, rows, cols, cols, 1, me, ranks, bases,
                      32, 32)
    it.signal(w + 9, 1, me, 0, bases)
    it.wait(w + 9, ranks)


@triton.jit
def all_else(x, w, out, me, peer, bases):
    at = tl.arange(0, 32)
    value = it.load(x + at, me, peer, bases, at < 30, 0, ".cg")
    value += it.load(x + at, me, peer, bases, volatile=True)
    it.store(out + at, value, me, peer, bases, at < 5, ".wt")
    it.get(x + at, out + at, peer, me, bases)
    it.put(x + at, out + at, me, peer, bases, at < 7, 0)
    it.copy(x + at, out + at, me, peer, me, bases)
    it.atomic_add(w, 1, me, peer, bases)
    it.atomic_sub(w, 1, me, peer, bases)
    it.atomic_xchg(w, 1, me, peer, bases, sem="release", scope="gpu")
    it.atomic_cas(w, 1, 2, me, peer, bases)
    it.atomic_and(w, 1, me, peer, bases)
    it.atomic_or(w, 1, me, peer, bases)
    it.atomic_xor(w, 1, me, peer, bases)
    it.atomic_min(w, 1, me, peer, bases)
    it.atomic_max(w, 1, me, peer, bases)


KINDS = {"x": "*fp32", "out": "*fp32", "w": "*i32", "context": "*i64",
         "bases": "*i64"}
for kernel in (traced, tiles, collectives, all_else):
    signature = {name: KINDS.get(name, "i32") for name in kernel.arg_names}
    made = triton.compile(ASTSource(kernel, signature, {}), target=TARGET)
    assert {"cubin", "hsaco"} & made.asm.keys(), made.asm.keys()
    print(kernel.__name__)
