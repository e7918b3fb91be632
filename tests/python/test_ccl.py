# SPDX-License-Identifier: MIT
"""ctx.ccl: each collective against what NumPy makes of all ranks' input."""

import functools
import re
import unittest

import numpy
import support
from iris_c import MismatchError, _lib
from iris_c.ccl import VARIANTS, Config, PremulSum, ReduceOp

COMBINE = {
    ReduceOp.SUM: numpy.add,
    ReduceOp.PRODUCT: numpy.multiply,
    ReduceOp.MIN: numpy.minimum,
    ReduceOp.MAX: numpy.maximum,
    ReduceOp.BAND: numpy.bitwise_and,
    ReduceOp.BOR: numpy.bitwise_or,
    ReduceOp.BXOR: numpy.bitwise_xor,
}
#: Variants that every library has; ring and others come with some.
UPSTREAMS = [
    name
    for name in ("atomic", "ring", "two_shot", "one_shot", "spinlock")
    if name in VARIANTS
]
#: What each name that a Config accepts takes, of a call of a few bytes.
MOVES = {"auto": "packet", "push": "push", "pull": "pull", "packet": "packet"}
TAKEN = {
    "all_reduce": {
        "auto": "one_shot_packet",
        "one_shot": "one_shot",
        "two_shot": "two_shot",
        "one_shot_packet": "one_shot_packet",
        "two_shot_packet": "two_shot_packet",
        "atomic": "atomic",
        "spinlock": "spinlock",
        "ring": "ring",
    },
    "all_gather": {**MOVES, "persistent": "push", "partitioned": "push"},
    "reduce_scatter": {
        "auto": "packet",
        "direct": "direct",
        "packet": "packet",
        "two_shot": "direct",
    },
    "all_to_all": {**MOVES, "default": "packet"},
    "broadcast": MOVES,
}


def numbers(rank, shape, dtype="float32"):
    """What a rank puts in: small whole numbers, of any type exact."""
    count = int(numpy.prod(shape))
    values = (numpy.arange(count) * 5 + rank * 3) % 7 + 1
    return values.astype(dtype).reshape(shape)


class Ccl(support.TestCase):
    def setUp(self):
        super().setUp()
        self.ccl = self.ctx.ccl

    def on_heap(self, values):
        """A tensor of the heap with a NumPy array's contents."""
        kind = getattr(support.library(), str(values.dtype))
        made = self.ctx.zeros(values.shape, dtype=kind)
        made[...] = self.elsewhere(values)
        return made

    def elsewhere(self, values):
        """The same in memory that is not on the heap."""
        if support.ARRAYS == "torch":
            return support.library().from_numpy(values.copy())
        return values.copy()

    def assert_has(self, found, expected):
        self.assertEqual(support.plain(found), expected.tolist())

    def members(self, shape, dtype="float32"):
        """What each rank puts in."""
        return [numbers(rank, shape, dtype) for rank in range(self.ranks)]

    def test_all_reduce_has_every_operation_and_type(self):
        for dtype in ("int8", "int64", "uint8", "float16", "float64"):
            for op, combine in COMBINE.items():
                if dtype[0] == "f" and op >= ReduceOp.BAND:
                    continue
                inputs = self.members((3, 5), dtype)
                out = self.on_heap(numpy.zeros((3, 5), dtype))
                given = self.on_heap(inputs[self.rank])
                self.ccl.all_reduce(out, given, op)
                self.assert_has(out, functools.reduce(combine, inputs))
                self.assert_has(given, inputs[self.rank])

    def test_averages_and_scaled_sums(self):
        for dtype in ("float32", "float64", "complex64"):
            inputs = self.members((3, 5), dtype)
            out = self.on_heap(numpy.zeros((3, 5), dtype))
            given = self.on_heap(inputs[self.rank])
            real = numpy.float64 if dtype == "float64" else numpy.float32
            for op, factor in ((ReduceOp.AVG, 1 / self.ranks),
                               (PremulSum(-0.3), -0.3)):
                self.ccl.all_reduce(out, given, op)
                self.assert_has(out, sum(inputs) * real(factor))
                self.ccl.reduce(out, given, 0, op)
                self.assert_has(out, sum(inputs) * real(factor))
        whole = self.on_heap(numpy.ones(3 * self.ranks, "float32"))
        part = self.on_heap(numpy.zeros(3, "float32"))
        self.ccl.reduce_scatter(part, whole, PremulSum(0.25))
        self.assert_has(part, numpy.full(3, self.ranks / 4, "float32"))

    @support.needs_torch
    def test_torchs_averages_and_scaled_sums(self):
        import torch.distributed as dist

        inputs = self.members((3, 5))
        for place in (self.on_heap, self.elsewhere):
            out = place(numpy.zeros((3, 5), "float32"))
            given = place(inputs[self.rank])
            self.ccl.all_reduce(out, given, dist.ReduceOp.AVG)
            self.assert_has(out, sum(inputs) * numpy.float32(1 / self.ranks))
            scaled = dist._make_nccl_premul_sum(0.3)
            if isinstance(scaled.__getstate__(), tuple):
                self.ccl.all_reduce(out, given, scaled)
                self.assert_has(out, sum(inputs) * numpy.float32(0.3))
            else:  # torch 1.13 keeps the factor to itself
                with self.assertRaisesRegex(ValueError, "takes PremulSum"):
                    self.ccl.all_reduce(out, given, scaled)

    def test_all_reduce_sums_where_no_operation_is_said(self):
        for place in (self.on_heap, self.elsewhere):
            inputs = self.members((70, 30))
            out = place(numpy.zeros((70, 30), "float32"))
            self.ccl.all_reduce(out, place(inputs[self.rank]))
            self.assert_has(out, sum(inputs))

    def test_all_reduce_in_place(self):
        both = self.on_heap(numbers(self.rank, (4100,)))
        self.ccl.all_reduce(both, both, ReduceOp.MAX)
        self.assert_has(both, numpy.max(self.members((4100,)), 0))

    def test_every_variant_gives_the_same(self):
        names = ["auto", "one_shot_packet", "two_shot_packet", *UPSTREAMS]
        inputs = self.members((33, 9))
        for name in names:
            out = self.on_heap(numpy.zeros((33, 9), "float32"))
            config = Config(all_reduce_variant=name, comm_sms=64)
            given = self.on_heap(inputs[self.rank])
            self.ccl.all_reduce(out, given, config=config)
            self.assert_has(out, sum(inputs))

    @support.needs_ranks(2)
    def test_the_variant_that_is_asked_for_is_taken(self):
        for operation, taken in TAKEN.items():
            for asked in taken:
                # Another that differs: whoever is told of it is told of both.
                other = next(n for n in taken if taken[n] != taken[asked])
                asks = [asked] + [other] * (self.ranks - 1)
                with self.subTest(operation=operation, asks=asks):
                    self.assert_taken(operation, asks)

    def assert_taken(self, operation, asks):
        """Ranks that ask for different variants of one call are told what each
        of them takes."""
        workspace = self.ccl.workspace()
        config = Config(**{f"{operation}_variant": asks[self.rank]})
        parts = 8 * self.ranks
        lengths = {"all_gather": (parts, 8), "reduce_scatter": (8, parts)}
        lengths["all_to_all"] = (parts, parts)
        out, given = (
            self.on_heap(numpy.zeros(length, "float32"))
            for length in lengths.get(operation, (8, 8))
        )
        with self.assertRaises(MismatchError) as caught:
            getattr(self.ccl, operation)(
                out, given, config=config, workspace=workspace
            )
        _lib.call.iris_clear_error(workspace._session.handle)
        text = str(caught.exception)
        told, own = text.split("this rank", 1)
        peer = asks[0] if self.rank else asks[1]
        taken = TAKEN[operation]
        self.assertRegex(told, rf"{operation} of 8.*variant {taken[peer]}\)")
        mine = taken[asks[self.rank]]
        self.assertRegex(own, rf"{operation} of 8.*variant {mine}\)")
        self.ctx.barrier()
        workspace.destroy()

    def test_every_name_that_is_accepted_is_tried(self):
        for operation, taken in TAKEN.items():
            field = f"{operation}_variant"
            with self.assertRaises(ValueError) as caught:
                Config(**{field: "none"})
            names = str(caught.exception).split(", got")[0]
            self.assertEqual(set(re.findall("'(.*?)'", names)), set(taken))

    def test_all_gather_puts_rows_one_behind_another(self):
        inputs = self.members((3, 4), "int32")
        for place in (self.on_heap, self.elsewhere):
            out = place(numpy.zeros((3 * self.ranks, 4), "int32"))
            self.ccl.all_gather(out, place(inputs[self.rank]))
            self.assert_has(out, numpy.concatenate(inputs))

    def test_ragged_sizes_stay_within_the_output(self):
        """Upstream's issue 532: its tiles wrote beyond the output."""
        for variant in ("auto", "push", "pull"):
            config = Config(
                all_gather_variant=variant, block_size_m=32, block_size_n=64
            )
            for shape, dtype in (
                ((1, 1), "int8"),
                ((33, 7), "int16"),
                ((5, 129), "float16"),
                ((129, 65), "float32"),
                ((3, 4099), "int8"),
            ):
                inputs = self.members(shape, dtype)
                total = inputs[0].size * self.ranks
                whole = self.on_heap(numpy.full(total + 64, 77, dtype))
                rows = (shape[0] * self.ranks, shape[1])
                out = whole[32 : 32 + total].reshape(rows)
                given = self.on_heap(inputs[self.rank])
                self.ccl.all_gather(out, given, config=config)
                self.assert_has(out, numpy.concatenate(inputs))
                self.assertEqual(support.plain(whole[:32]), [77] * 32)
                self.assertEqual(support.plain(whole[-32:]), [77] * 32)

    def test_all_gather_of_ones_own_part_is_in_place(self):
        inputs = self.members((6, 2))
        out = self.on_heap(numpy.zeros((6 * self.ranks, 2), "float32"))
        mine = out[6 * self.rank : 6 * self.rank + 6]
        mine[...] = self.elsewhere(inputs[self.rank])
        self.ccl.all_gather(out, mine)
        self.assert_has(out, numpy.concatenate(inputs))

    def test_reduce_scatter_gives_each_its_rows(self):
        inputs = self.members((2 * self.ranks, 5), "int16")
        mine = slice(2 * self.rank, 2 * self.rank + 2)
        for place in (self.on_heap, self.elsewhere):
            out = place(numpy.zeros((2, 5), "int16"))
            given = place(inputs[self.rank])
            self.ccl.reduce_scatter(out, given, ReduceOp.MIN)
            self.assert_has(out, numpy.min(inputs, 0)[mine])

    def test_all_to_all_moves_columns(self):
        inputs = self.members((5, 3 * self.ranks), "int64")
        mine = slice(3 * self.rank, 3 * self.rank + 3)
        expected = numpy.concatenate([one[:, mine] for one in inputs], 1)
        for place in (self.on_heap, self.elsewhere):
            out = place(numpy.zeros_like(expected))
            given = place(inputs[self.rank])
            self.ccl.all_to_all(out, given)
            self.assert_has(out, expected)
            self.assert_has(given, inputs[self.rank])

    def test_all_to_all_of_one_dimension_moves_parts(self):
        inputs = self.members((7 * self.ranks,))
        mine = slice(7 * self.rank, 7 * self.rank + 7)
        out = self.on_heap(numpy.zeros(7 * self.ranks, "float32"))
        self.ccl.all_to_all(out, self.on_heap(inputs[self.rank]))
        self.assert_has(out, numpy.concatenate([one[mine] for one in inputs]))

    def test_broadcast_from_every_rank(self):
        for src in range(self.ranks):
            for place in (self.on_heap, self.elsewhere):
                out = place(numpy.zeros((9, 2), "float32"))
                given = place(numbers(self.rank, (9, 2)))
                self.ccl.broadcast(out, given, src)
                self.assert_has(out, numbers(src, (9, 2)))

    def test_what_has_a_root(self):
        inputs = [numbers(rank, (9, 2)) for rank in range(self.ranks)]
        for root in range(self.ranks):
            for place in (self.on_heap, self.elsewhere):
                out = place(numpy.zeros((9 * self.ranks, 2), "float32"))
                given = place(inputs[self.rank])
                self.ccl.gather(out, given, root)
                self.assert_has(
                    out, numpy.concatenate(inputs) * (self.rank == root))
                self.ccl.scatter(given, out, root)
                self.assert_has(given, inputs[self.rank])
                own = place(numpy.zeros((9, 2), "float32"))
                self.ccl.reduce(own, given, root, ReduceOp.MAX)
                self.assert_has(
                    own, numpy.max(inputs, 0) * (self.rank == root))

    def test_parts_of_any_size(self):
        counts = [3 * rank + 1 for rank in range(self.ranks)]
        whole = [numbers(rank, (count,)) for rank, count in enumerate(counts)]
        out = self.on_heap(numpy.zeros(sum(counts), "float32"))
        self.ccl.all_gatherv(out, self.elsewhere(whole[self.rank]), counts)
        self.assert_has(out, numpy.concatenate(whole))
        given = self.on_heap(numpy.concatenate(whole) + self.rank)
        out = self.elsewhere(
            numpy.zeros(counts[self.rank] * self.ranks, "float32"))
        self.ccl.all_to_allv(
            out, given, [counts[self.rank]] * self.ranks, counts)
        self.assert_has(out, numpy.concatenate(
            [whole[self.rank] + rank for rank in range(self.ranks)]))
        with self.assertRaises(ValueError):
            self.ccl.all_gatherv(out, given, counts[1:])

    def test_messages_go_around(self):
        after = (self.rank + 1) % self.ranks
        before = (self.rank - 1) % self.ranks
        out = self.on_heap(numpy.zeros(40000, "float32"))
        given = self.on_heap(numbers(self.rank, (40000,)))
        self.ccl.send_recv(out, given, after, before)
        self.assert_has(out, numbers(before, (40000,)))
        if self.ranks > 1 and self.rank < 2:
            if self.rank == 0:
                self.ccl.send(given, 1)
            else:
                self.ccl.recv(out, 0)
                self.assert_has(out, numbers(0, (40000,)))

    def test_nothing_is_a_count_like_any_other(self):
        empty = self.on_heap(numpy.zeros((0, 4 * self.ranks), "float32"))
        self.ccl.all_reduce(empty, empty)
        self.ccl.all_gather(empty, empty)
        self.ccl.all_to_all(empty, empty)

    def test_a_groups_order_is_the_order_of_parts(self):
        order = list(range(self.ranks))[::-1]
        inputs = self.members((2, 2))
        out = self.on_heap(numpy.zeros((2 * self.ranks, 2), "float32"))
        given = self.on_heap(inputs[self.rank])
        self.ccl.prepare()
        for group in (order, self.ctx.group(order)):
            self.ccl.all_gather(out, given, group=group)
            self.assert_has(out, numpy.concatenate(inputs[::-1]))

    @support.needs_ranks(4)
    def test_pairs_work_side_by_side(self):
        self.ccl.prepare()
        pair = [self.rank // 2 * 2 + 1, self.rank // 2 * 2]
        inputs = self.members((40,), "int32")
        out = self.on_heap(numpy.zeros(40, "int32"))
        given = self.on_heap(inputs[self.rank])
        self.ccl.all_reduce(out, given, group=pair)
        self.assert_has(out, inputs[pair[0]] + inputs[pair[1]])
        self.ccl.broadcast(out, given, src=pair[0], group=pair)
        self.assert_has(out, inputs[pair[0]])
        with self.assertRaisesRegex(ValueError, "no rank of the group"):
            self.ccl.broadcast(out, given, (self.rank + 2) % 4, group=pair)

    def test_async_op_leaves_the_result(self):
        inputs = self.members((5000,))
        out = self.on_heap(numpy.zeros(5000, "float32"))
        given = self.on_heap(inputs[self.rank])
        for _ in range(10):
            self.ccl.all_reduce(out, given, async_op=True)
            self.assert_has(out, sum(inputs))

    def test_a_workspace_serves_many_calls(self):
        inputs = self.members((3, 3))
        out = self.on_heap(numpy.zeros((3, 3), "float32"))
        given = self.on_heap(inputs[self.rank])
        own = self.ccl.all_reduce_preamble(out, given)
        another = self.ccl.workspace()
        self.assertNotEqual(own.handle, another.handle)
        for workspace in (own, another, own):
            found = self.ccl.all_reduce(out, given, workspace=workspace)
            self.assertIs(found, workspace)
            self.assert_has(out, sum(inputs))
        another.destroy()
        with self.assertRaisesRegex(ValueError, "has been destroyed"):
            self.ccl.all_reduce(out, given, workspace=another)

    @support.needs_ranks(2)
    def test_a_workspace_is_its_groups_alone(self):
        everybody = self.ctx.group(list(range(self.ranks))[::-1])
        workspace = self.ccl.workspace(everybody)
        both = self.on_heap(numbers(self.rank, (4,)))
        with self.assertRaisesRegex(ValueError, "workspace"):
            self.ccl.all_reduce(both, both, workspace=workspace)
        workspace.destroy()
        everybody.destroy()

    def test_tensors_that_do_not_fit_are_refused(self):
        rows = self.on_heap(numbers(0, (4, 4 * self.ranks)))
        few = self.on_heap(numbers(0, (4, 4 * self.ranks - 1)))
        whole = self.on_heap(numbers(0, (4, 4 * self.ranks), "int32"))
        for call, out, given, text in (
            (self.ccl.all_reduce, few, rows, "output_tensor has"),
            (self.ccl.all_reduce, whole, rows, "of one dtype"),
            (self.ccl.all_reduce, rows, rows[:, ::2], "is not contiguous"),
            (self.ccl.all_reduce, rows[:, ::2], rows, "is not contiguous"),
            (self.ccl.all_gather, few, rows, "output_tensor has"),
            (self.ccl.reduce_scatter, rows, few, "input_tensor has"),
            (self.ccl.all_to_all, few, rows, "of one shape"),
            (self.ccl.broadcast, few, rows, "output_tensor has"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call(out, given)
        with self.assertRaisesRegex(TypeError, "is needed"):
            self.ccl.all_reduce([1.0], [2.0])

    @support.needs_ranks(2)
    def test_shapes_that_do_not_match_are_refused(self):
        rows = self.on_heap(numbers(0, (4, 3)))
        wide = self.on_heap(numbers(0, (4, 3 * self.ranks)))
        with self.assertRaisesRegex(ValueError, "does not match expected"):
            self.ccl.all_gather(wide, rows)
        odd = self.on_heap(numbers(0, (4, 2 * self.ranks + 1)))
        with self.assertRaisesRegex(ValueError, "no multiple"):
            self.ccl.all_to_all(odd, odd)

    def test_an_operation_that_is_none_is_an_error(self):
        both = self.on_heap(numbers(0, (4,)))
        for op in ("AVG", 99):
            with self.assertRaisesRegex(ValueError, "or ReduceOp.SUM"):
                self.ccl.all_reduce(both, both, op)
        with self.assertRaisesRegex(ValueError, "sum is 0"):
            self.ccl.all_reduce(both, both, PremulSum(0))
        with self.assertRaisesRegex(ValueError, "band"):
            self.ccl.all_reduce(both, both, ReduceOp.BAND)

    def test_upstreams_fields_are_checked_as_upstream_does(self):
        wrong = {
            "block_size_m must be positive, got 0": dict(block_size_m=0),
            "block_size_n must be positive": dict(block_size_n=-1),
            "swizzle_size must be positive": dict(swizzle_size=0),
            "comm_sms must be positive, got 0": dict(comm_sms=0),
            "num_xcds must be positive": dict(num_xcds=-3),
            "all_gather_variant must be": dict(all_gather_variant="ring"),
            "all_reduce_variant must be": dict(all_reduce_variant="fast"),
            "0 .striding. or 1": dict(all_reduce_distribution=2),
            "all_reduce_num_rings must be": dict(all_reduce_num_rings=0),
            "slice_n must be positive": dict(all_reduce_ring_slice_n=0),
            "must divide block_size_n": dict(all_reduce_ring_slice_n=48),
            "must be a power of two": dict(
                block_size_n=96, all_reduce_ring_slice_n=48
            ),
            "reduce_scatter_variant must": dict(reduce_scatter_variant="x"),
            "32 .NVIDIA. or 64 .AMD.": dict(threads_per_warp=16),
            "num_warps must be positive": dict(num_warps=0),
            "waves_per_eu must not be": dict(waves_per_eu=-1),
        }
        for text, fields in wrong.items():
            with self.assertRaisesRegex(ValueError, text):
                Config(**fields)

    def test_upstreams_fields_are_taken(self):
        config = Config(
            32, 128, 6, 64, 1, 4, False, "partitioned", "two_shot", 0, 2, 64
        )
        inputs = self.members((3, 5))
        out = self.on_heap(numpy.zeros((3, 5), "float32"))
        given = self.on_heap(inputs[self.rank])
        self.ccl.all_reduce(out, given, config=config)
        self.assert_has(out, sum(inputs))

    def test_gluon_is_refused_where_upstream_refuses_it(self):
        both = self.on_heap(numbers(0, (4, self.ranks)))
        config = Config(use_gluon=True)
        for call in (self.ccl.all_reduce, self.ccl.reduce_scatter):
            with self.assertRaisesRegex(ValueError, "use_gluon=True"):
                call(both, both, config=config)
        out = self.on_heap(numbers(0, (4, self.ranks)))
        self.ccl.all_to_all(out, both, config=config)

    @support.needs_torch
    def test_bfloat16_is_rounded_once(self):
        torch = support.library()
        given = self.ctx.full((8,), 256.0, dtype=torch.bfloat16)
        given[0] += self.rank and 2
        given[1:] = 1.0
        out = torch.empty_like(given)
        self.ccl.all_reduce(out, given)
        exact = 256.0 * self.ranks + 2 * (self.ranks - 1)
        rounded = float(torch.tensor(exact, dtype=torch.bfloat16))
        self.assertEqual(out.tolist(), [rounded] + [self.ranks] * 7)

    @support.needs_torch
    def test_8_bit_floats_are_rounded_once(self):
        torch = support.library()
        if not hasattr(torch, "float8_e4m3fn"):
            self.skipTest("this torch has no 8-bit floats")
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            given = torch.linspace(-9, 9, 37).add(self.rank).to(dtype)
            given = given.to(self.ctx.get_device())
            out = torch.empty_like(given)
            self.ccl.all_reduce(out, given)
            exact = sum(
                torch.linspace(-9, 9, 37).add(rank).to(dtype).float()
                for rank in range(self.ranks))
            self.assertEqual(
                out.float().tolist(), exact.to(dtype).float().tolist())

    @support.needs_torch
    def test_torchs_operations_are_taken(self):
        import torch.distributed as dist

        both = self.on_heap(numbers(self.rank, (9,)))
        self.ccl.all_reduce(both, both, dist.ReduceOp.MAX)
        self.assert_has(both, numpy.max(self.members((9,)), 0))

    @support.needs_torch
    def test_memory_of_another_device_is_refused(self):
        nowhere = support.library().empty(4, device="meta")
        with self.assertRaisesRegex(RuntimeError, "Device mismatch"):
            self.ccl.all_reduce(nowhere, nowhere)


if __name__ == "__main__":
    unittest.main()
