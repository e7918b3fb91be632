# SPDX-License-Identifier: MIT
"""ctx.ops: each fused operation against what NumPy makes of all ranks'
matrices."""

import unittest

import iris_c
import numpy
import support
from iris_c import ops

#: (M, N, K): even, uneven, of one row, larger than a block.
SHAPES = [(8, 4, 12), (7, 5, 3), (1, 3, 4), (130, 33, 65)]
#: Elements that are enough for each matrix.
ROOM = 130 * 70


def numbers(rank, shape, dtype="float32"):
    """What a rank puts in: whole numbers, whose products are exact."""
    return numpy.random.RandomState(rank).randint(-2, 3, shape).astype(dtype)


def parts(total, members):
    """Where each member's share of the rows or columns begins and ends."""
    return [
        (
            total // members * i + min(i, total % members),
            total // members * (i + 1) + min(i + 1, total % members),
        )
        for i in range(members)
    ]


class Ops(support.TestCase):
    def setUp(self):
        super().setUp()
        self.ops = self.ctx.ops
        self.members = list(range(self.ranks))
        self.index = self.rank

    def tensor(self, values, dtype=None, heap=True):
        """A NumPy array's contents as a tensor, on the heap or elsewhere."""
        kind = getattr(support.library(), dtype or str(values.dtype))
        if not heap:
            if support.ARRAYS == "torch":
                return support.library().from_numpy(values).to(kind)
            return values.astype(kind)
        # Shares differ, and what is made on the heap is as large on all.
        flat = self.ctx.zeros(ROOM, dtype=kind)
        made = flat[: values.size].reshape(values.shape)
        if support.ARRAYS == "torch":
            values = support.library().from_numpy(values.copy())
        made[...] = values
        return made

    def case(self, name, m, n, k):
        """The matrices a and b of this rank, the result that is expected, and
        rows of this rank's product."""
        a = [numbers(rank, (m, k)) for rank in self.members]
        b = [numbers(rank + 9, (k, n)) for rank in self.members]
        rows = parts(m, len(self.members))
        begin, end = rows[self.index]
        if name == "matmul_all_reduce":
            total = sum(x @ y for x, y in zip(a, b))
            return a[self.index], b[self.index], total, m
        if name == "matmul_reduce_scatter":
            total = sum(x @ y for x, y in zip(a, b))[begin:end]
            return a[self.index], b[self.index], total, m
        if name == "matmul_all_gather":
            total = numpy.concatenate(
                [a[0][x:y] @ b[i] for i, (x, y) in enumerate(rows)]
            )
            return a[0][begin:end], b[self.index], total, end - begin
        total = a[0] @ b[self.index]
        if name == "all_gather_matmul":
            begin, end = parts(k, len(self.members))[self.index]
            return a[0][:, begin:end], b[self.index], total, m
        return a[0][begin:end], b[self.index], total, m  # by rows

    def check(self, name, shape, dtype="float32", heap=True, **named):
        a, b, expected, rows = self.case(name, *shape)
        function = getattr(self.ops, name.replace("_by_rows", ""))
        before = numpy.full(expected.shape, 77, "float32")
        out = self.tensor(before, dtype, heap)
        given = [self.tensor(x.copy(), dtype, heap) for x in (a, b)]
        function(out, *given, **named)
        self.assertEqual(support.plain(out), expected.tolist())

    NAMES = (
        "matmul_all_reduce",
        "all_gather_matmul",
        "all_gather_matmul_by_rows",
        "matmul_all_gather",
        "matmul_reduce_scatter",
    )

    def test_each_operation_is_the_product_and_the_collective(self):
        dtypes = ["float32", "float16"]
        if support.ARRAYS == "torch":
            dtypes.append("bfloat16")
        for name in self.NAMES:
            for shape in SHAPES:
                for dtype in dtypes:
                    # Sums of larger products are not whole in 8 bits.
                    if dtype == "float32" or shape[2] < 13:
                        with self.subTest(name=name, shape=shape, dtype=dtype):
                            self.check(name, shape, dtype)

    def test_a_wrong_element_is_seen(self):
        a, b, expected, _ = self.case("matmul_all_reduce", 7, 5, 3)
        a = a.copy()
        a[0, 0] += 1  # the planted fault
        out = self.tensor(numpy.zeros((7, 5), "float32"))
        self.ops.matmul_all_reduce(out, self.tensor(a), self.tensor(b))
        self.assertNotEqual(support.plain(out), expected.tolist())

    def test_tensors_may_be_elsewhere_than_on_the_heap(self):
        for name in self.NAMES:
            with self.subTest(name=name):
                self.check(name, (10, 6, 8), heap=False)

    def test_views_have_strides(self):
        a, b, expected, _ = self.case("matmul_all_reduce", 6, 4, 8)
        wide = self.tensor(numpy.repeat(a, 2, axis=1))
        turned = self.tensor(b.T.copy())
        out = self.tensor(numpy.zeros((6, 4), "float32"))
        self.ops.matmul_all_reduce(out, wide[:, ::2], turned.T)
        self.assertEqual(support.plain(out), expected.tolist())

    def test_a_bias_is_of_columns_or_of_rows(self):
        for name in self.NAMES:
            a, b, expected, rows = self.case(name, 9, 7, 6)
            given = [self.tensor(x.copy()) for x in (a, b)]
            columns = numbers(0, (7,)) + 1
            out = self.tensor(numpy.zeros(expected.shape, "float32"))
            function = getattr(self.ops, name.replace("_by_rows", ""))
            with self.subTest(name=name):
                bias = self.tensor(columns)
                function(out, *given, bias)
                self.assertEqual(
                    support.plain(out), (expected + columns).tolist()
                )
            if name != "matmul_reduce_scatter" and rows == len(expected):
                by_row = numbers(1, (rows,)) + 1
                function(out, *given, bias=self.tensor(by_row))
                self.assertEqual(
                    support.plain(out), (expected + by_row[:, None]).tolist()
                )

    def test_a_bias_of_a_square_product_needs_to_be_told(self):
        a, b, expected, _ = self.case("matmul_all_reduce", 4, 4, 3)
        a, b = self.tensor(a), self.tensor(b)
        out = self.tensor(numpy.zeros((4, 4), "float32"))
        values = numbers(2, (4,)) + 1
        bias = self.tensor(values)
        with self.assertRaisesRegex(ValueError, "bias_by_row"):
            self.ops.matmul_all_reduce(out, a, b, bias)
        for by_row, added in ((True, values[:, None]), (False, values)):
            self.ops.matmul_all_reduce(out, a, b, bias, bias_by_row=by_row)
            self.assertEqual(support.plain(out), (expected + added).tolist())

    @support.needs_ranks(2)
    def test_all_ranks_are_told_that_a_bias_fits_both_ways(self):
        # Only the first ranks' shares have as many rows as there are columns.
        m = 3 * self.ranks + 1
        a, b, expected, rows = self.case("matmul_all_gather", m, 4, 3)
        out = self.tensor(expected)
        bias = self.tensor(numpy.ones(rows, "float32"))
        with self.assertRaisesRegex(ValueError, "bias_by_row"):
            self.ops.matmul_all_gather(
                out, self.tensor(a.copy()), self.tensor(b), bias
            )

    def test_a_workspace_of_a_preamble_serves(self):
        m, n, k = 2 * self.ranks, 3, 2 * self.ranks
        for name in self.NAMES:
            a, b, expected, _ = self.case(name, m, n, k)
            a, b = self.tensor(a.copy()), self.tensor(b)
            out = self.tensor(numpy.zeros(expected.shape, "float32"))
            plain = name.replace("_by_rows", "")
            workspace = self.prepared(name, out, a, b, ops.FusedConfig())
            self.assertIsInstance(workspace, ops.FusedWorkspace)
            for _ in range(3):
                used = getattr(self.ops, plain)(out, a, b, workspace=workspace)
                self.assertIs(used, workspace)
                self.assertEqual(support.plain(out), expected.tolist())
            workspace.destroy()
            with self.assertRaisesRegex(ValueError, "destroyed"):
                getattr(self.ops, plain)(out, a, b, workspace=workspace)

    def prepared(self, name, out, a, b, config):
        """A workspace for the operation that the name is of."""
        preamble = getattr(self.ops, name.replace("_by_rows", "") + "_preamble")
        if name == "all_gather_matmul":
            return preamble(a, b, config)
        if name == "all_gather_matmul_by_rows":
            return preamble(a, b, config, output_tensor=out)
        return preamble(out, a, b, config)

    def test_a_workspace_serves_blocks_of_any_size(self):
        """Upstream's issues 463 and 481: a workspace has a lock for each block,
        and smaller blocks write beyond them."""
        variants = ("atomic", "ring", "two_shot", "one_shot", "spinlock")
        for name in self.NAMES:
            a, b, expected, _ = self.case(name, 70, 33, 2 * self.ranks)
            a, b = self.tensor(a.copy()), self.tensor(b)
            out = self.tensor(numpy.zeros(expected.shape, "float32"))
            large = ops.FusedConfig(block_size_m=256, block_size_n=256)
            before = self.ctx.full((1000,), 77)
            workspace = self.prepared(name, out, a, b, large)
            behind = self.ctx.full((1000,), 77)
            for variant in variants:
                with self.subTest(name=name, variant=variant):
                    small = ops.FusedConfig(
                        1, self.ranks, all_reduce_variant=variant
                    )
                    function = getattr(self.ops, name.replace("_by_rows", ""))
                    function(out, a, b, config=small, workspace=workspace)
                    self.assertEqual(support.plain(out), expected.tolist())
                    for guard in (before, behind):
                        self.assertTrue((guard == 77).all())
            workspace.destroy()

    def test_sizes_may_change_without_a_preamble(self):
        """Upstream's issue 464: only some ranks prepare, and wait for ever."""
        name = "matmul_all_reduce"
        for shape in ((2, 3, 4), (64, 32, 8), (1, 1, 1), (65, 32, 8)):
            self.check(name, shape)

    @support.needs_ranks(2)
    def test_a_preamble_of_some_ranks_is_told_to_all(self):
        """Upstream's issue 464 again: ranks take different ways."""
        ctx = iris_c.iris(1 << 20, arrays=support.ARRAYS)
        zeros = [ctx.zeros(4, 4) for _ in range(3)]
        call = ctx.ops.matmul_all_reduce
        if self.rank == 0:
            call = ctx.ops.matmul_all_reduce_preamble
        with self.assertRaises(iris_c.MismatchError) as caught:
            call(*zeros)
        self.assertIn("matmul_all_reduce_preamble", str(caught.exception))

    def test_a_workspace_that_is_too_small_is_made_larger(self):
        if self.ranks == 1:
            self.skipTest("one rank needs no workspace")
        name = "matmul_reduce_scatter"
        small, large = (
            [self.tensor(x.copy()) for x in self.case(name, *shape)[:3]]
            for shape in ((2, 2, 2), (64, 32, 8))
        )
        workspace = self.ops.matmul_reduce_scatter_preamble(
            small[2], small[0], small[1]
        )
        behind = self.ctx.full((1000,), 77)
        with self.assertRaisesRegex(MemoryError, "the workspace has"):
            self.ops.matmul_reduce_scatter(
                large[2], large[0], large[1], workspace=workspace
            )
        self.assertTrue((behind == 77).all())
        self.ops.matmul_reduce_scatter_preamble(
            large[2], large[0], large[1], None, workspace
        )
        self.ops.matmul_reduce_scatter(
            large[2], large[0], large[1], workspace=workspace
        )
        workspace.destroy()

    @support.needs_ranks(2)
    def test_a_group_has_a_workspace_that_all_ranks_made(self):
        self.members = list(range(self.ranks))[1:]
        group = self.ctx.group(self.members)
        inside = self.rank in self.members
        self.index = self.rank - 1
        tensors = [None] * 3
        if inside:
            a, b, expected, _ = self.case("matmul_all_reduce", 6, 5, 4)
            # Elsewhere: what one rank makes on the heap all would make.
            tensors = [
                self.tensor(x.copy(), heap=False)
                for x in (numpy.zeros((6, 5), "float32"), a, b)
            ]
        # A rank outside names no group.
        workspace = self.ops.matmul_all_reduce_preamble(
            *tensors, group=group if inside else None
        )
        if inside:
            self.ops.matmul_all_reduce(
                *tensors, workspace=workspace, group=group
            )
            self.assertEqual(support.plain(tensors[0]), expected.tolist())
        self.ctx.barrier()
        workspace.destroy()

    def test_a_number_of_chunks_is_passed_on(self):
        for chunks in (1, 3):
            for name in self.NAMES:
                with self.subTest(name=name, chunks=chunks):
                    config = ops.FusedConfig(chunks=chunks)
                    self.check(name, (13, 5, 7), config=config)
        tensors = [self.ctx.zeros(4, 4) for _ in range(3)]
        with self.assertRaisesRegex(ValueError, "chunks is 9; pass 1 to 8"):
            self.ops.matmul_all_reduce(
                *tensors, config=ops.FusedConfig(chunks=9)
            )

    def test_matrices_that_do_not_fit_are_told(self):
        zeros = self.ctx.zeros
        for error, text, given in (
            (ValueError, "do not fit", (zeros(4, 5), zeros(4, 3), zeros(2, 5))),
            (ValueError, "dimensions", (zeros(4, 5), zeros(4), zeros(3, 5))),
            (
                ValueError,
                "f32, f16 or bf16",
                (
                    zeros(4, 5),
                    zeros(4, 3, dtype=support.library().float64),
                    zeros(3, 5),
                ),
            ),
            (TypeError, "is needed", (zeros(4, 5), [[1.0]], zeros(3, 5))),
            # As in one example of upstream's.
            (TypeError, "not .*Iris", (*[zeros(4, 4)] * 3, self.ctx)),
        ):
            with self.subTest(text=text):
                with self.assertRaisesRegex(error, text):
                    self.ops.matmul_all_reduce(*given)

    def test_upstreams_spelling_takes_the_context_first(self):
        a, b, expected, _ = self.case("matmul_all_reduce", 4, 6, 4)
        a, b = self.tensor(a), self.tensor(b)
        out = self.tensor(numpy.zeros((4, 6), "float32"))
        workspace = ops.matmul_all_reduce_preamble(self.ctx, out, a, b)
        ops.matmul_all_reduce(self.ctx, out, a, b, workspace=workspace)
        self.assertEqual(support.plain(out), expected.tolist())
        self.assertIs(iris_c.ops, ops)
        self.assertEqual(ops.matmul_all_reduce.__name__, "matmul_all_reduce")
        workspace.destroy()

    def test_a_config_has_upstreams_fields_and_checks(self):
        for named, text in (
            ({"block_size_m": 0}, "block_size_m must be positive, got 0"),
            ({"chunks": 0}, "chunks must be positive, got 0"),
            ({"num_sms": -1}, "num_sms must be positive, got -1"),
            ({"all_reduce_variant": "best"}, "must be one of: 'atomic'"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                ops.FusedConfig(**named)
        config = ops.FusedConfig(all_reduce_variant="ring")
        config.validate(world_size=4)
        with self.assertRaisesRegex(ValueError, "divisible by world_size"):
            config.validate(world_size=3)

    def test_products_of_nothing_are_zero_and_empty(self):
        """K of 0: zeros, and the bias. M or N of 0: no elements."""
        ops = self.ctx.ops
        rows = 2 * self.ranks
        shapes = {
            "matmul_all_reduce": lambda m, k, n: ((m, n), (m, k)),
            "all_gather_matmul": lambda m, k, n: (
                (m, n),
                (m // self.ranks, k),
            ),
            "matmul_all_gather": lambda m, k, n: (
                (m, n),
                (m // self.ranks, k),
            ),
            "matmul_reduce_scatter": lambda m, k, n: (
                (m // self.ranks, n),
                (m, k),
            ),
        }
        for name, shapes_of in shapes.items():
            for m, k, n in ((rows, 0, 3), (0, 5, 3), (rows, 5, 0), (0, 0, 0)):
                for has_bias in (False, True):
                    with self.subTest(name=name, m=m, k=k, n=n, bias=has_bias):
                        out, a = shapes_of(m, k, n)
                        out = self.ctx.full(out, 9.0)
                        a, b = self.ctx.ones(a), self.ctx.ones(k, n)
                        bias = self.ctx.full((n,), 2.5) if has_bias else None
                        getattr(ops, name)(
                            out, a, b, bias, bias_by_row=False
                        )
                        wanted = 2.5 if has_bias else 0.0
                        self.assertTrue((out == wanted).all())


if __name__ == "__main__":
    unittest.main()
