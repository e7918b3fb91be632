# SPDX-License-Identifier: MIT
"""A program of benchmarks, which test_bench.py starts."""

import iris_c.bench as bench


@bench.register
@bench.axis("num_ranks", [1, 2])
@bench.axis("rows", [3, 5])
@bench.axis("dtype", ["float32", "int16"])
def gather(state, ctx):
    rows, dtype = state["rows"], state["dtype"]
    own = ctx.full((rows, 2), ctx.get_rank() + 1, dtype=dtype)
    out = ctx.zeros(rows * ctx.get_num_ranks(), 2, dtype=dtype)
    if (rows, dtype) == (5, "int16"):
        state.skip("too odd")
    state.set_bytes(10**6)
    state.set_warmup(2)
    state.add_counter("elements", rows * 2)
    state.exec(lambda: ctx.ccl.all_gather(out, own))


# The axis is outside on purpose.
@bench.axis("num_ranks", [2])
@bench.register
def silent(state, ctx):
    """Names nothing to measure."""


if __name__ == "__main__":
    bench.main()
