# SPDX-License-Identifier: MIT
"""A context: who it says it is, barriers, broadcast, groups."""

import os
import pickle
import unittest
import unittest.mock

import iris_c
import support


class Context(support.TestCase):
    def test_the_device_context_has_rank_ranks_and_bases(self):
        words = support.plain(self.ctx.get_device_context())
        bases = support.plain(self.ctx.get_heap_bases())
        self.assertEqual(words[:2], [self.rank, self.ranks])
        self.assertEqual(words[2 : 2 + self.ranks], bases)
        self.assertEqual(len(words), 2 + self.ranks + 17)
        self.assertEqual(bases, self.ctx.heap_bases_list())
        self.assertEqual(len(set(bases)), self.ranks)

    def test_upstreams_attributes_are_there(self):
        self.assertEqual(self.ctx.cur_rank, self.rank)
        self.assertEqual(self.ctx.num_ranks, self.ranks)
        self.assertEqual(self.ctx.get_device_id(), self.ctx.gpu_id)
        self.assertEqual(str(self.ctx.get_device()), self.ctx.device)
        self.assertRegex(self.ctx.device, "^(cpu|cuda:[0-9]+)$")
        self.assertGreater(self.ctx.get_cu_count(), 0)
        self.assertEqual(self.ctx.lost_rank(), -1)

    def test_the_environment_asks_for_the_simulation(self):
        self.assertIsInstance(self.ctx, iris_c.Iris)
        for asked, backend, found in (
            ("", "", False), ("1", "", True), ("True", "sim", True),
            ("0", "", False), ("", "sim", True), ("", "hip", False),
        ):
            names = {"IRIS_SIMULATION": asked, "IRIS_BACKEND": backend}
            with unittest.mock.patch.dict(os.environ, names):
                self.assertIs(iris_c.is_simulation_env(), found)
        if iris_c.is_simulation_env():
            self.assertEqual(self.ctx.backend_name, "sim")

    def test_a_broadcast_brings_any_value_from_any_rank(self):
        values = [42, 3.25, True, "text", {"a": [1]}, (1, "x"), b"bytes"]
        for src in range(self.ranks):
            for value in values:
                mine = value if self.rank == src else None
                got = self.ctx.broadcast(mine, src=src)
                self.assertEqual(got, value)
                self.assertIs(type(got), type(value))

    def test_a_broadcast_of_an_array_is_a_numpy_array(self):
        import numpy

        for src in range(self.ranks):
            for dtype in ("int32", "int64", "float16", "float32"):
                sent = numpy.arange(24).reshape(2, 3, 4).astype(dtype)[:, ::2]
                got = self.ctx.broadcast(
                    sent if self.rank == src else None, src
                )
                self.assertEqual(got.tolist(), sent.tolist())
                self.assertEqual(got.dtype, sent.dtype)
                self.assertFalse(numpy.shares_memory(got, sent))

    def test_a_broadcast_of_a_list_of_numbers_is_an_array(self):
        got = self.ctx.broadcast([1, 2.5])
        self.assertEqual(got.tolist(), [1, 2.5])

    def test_a_broadcast_of_none_is_an_error_on_every_rank(self):
        with self.assertRaisesRegex(ValueError, "Root must provide a value"):
            self.ctx.broadcast(None)

    def test_a_broadcast_from_no_rank_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "src=99"):
            self.ctx.broadcast(1, src=99)

    def test_barriers_take_no_group_a_list_and_a_group(self):
        everybody = list(range(self.ranks))
        group = self.ctx.group(everybody[::-1])
        self.assertIsInstance(group, iris_c.Group)
        self.assertEqual(group.index(), self.ranks - 1 - self.rank)
        for members in (None, everybody, group):
            self.ctx.barrier(group=members)
            self.ctx.device_barrier(group=members)
        self.ctx.barrier()
        group.destroy()

    @support.needs_ranks(2)
    def test_a_device_barrier_is_complete_on_the_cpu(self):
        seen = self.ctx.zeros(self.ranks, dtype="int64")
        there = [self.ctx.as_remote(seen, peer) for peer in range(self.ranks)]
        found = []
        for turn in range(1, 10):
            if self.rank == turn % self.ranks:
                sum(range(300000))  # late: who does not wait sees the last turn
            for peer in there:
                peer[self.rank] = turn
            self.ctx.device_barrier()
            found += support.plain(seen)
            self.ctx.device_barrier()
        wanted = [turn for turn in range(1, 10) for _ in there]
        self.assertEqual(found, wanted)

    @support.needs_ranks(4)
    def test_disjoint_groups_broadcast_side_by_side(self):
        mine = [self.rank // 2 * 2 + 1, self.rank // 2 * 2]
        got = self.ctx.broadcast(self.rank, src=mine[0], group=mine)
        self.assertEqual(got, mine[0])

    @support.needs_ranks(2)
    def test_a_rank_outside_a_group_is_told_so(self):
        group = self.ctx.group([0])
        if self.rank != 0:
            with self.assertRaisesRegex(ValueError, "not in the group"):
                self.ctx.barrier(group=group)
        group.destroy()

    def test_a_group_that_is_none_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "takes None"):
            self.ctx.barrier(group="all")

    def test_a_heap_size_may_be_text(self):
        for size in ("1M", "1048576", 1048576.0, 1 << 20):
            with iris_c.iris(size, arrays=support.ARRAYS) as ctx:
                self.assertEqual(ctx.heap_size, 1 << 20)
                self.assertEqual(ctx.heap_stats()["free_bytes"], 1 << 20)
        with self.assertRaisesRegex(ValueError, "1X"):
            iris_c.iris("1X", arrays=support.ARRAYS)

    def test_a_heap_grows_up_to_its_reserve_and_shrinks(self):
        cpu = {"backend": "sim", "sim_device": "cpu"}
        with iris_c.iris(
            "1M", heap_reserve="1G", arrays=support.ARRAYS, **cpu
        ) as ctx:
            before = ctx.heap_stats()["mapped_bytes"]
            made = ctx.zeros(1 << 20)
            self.assertGreater(ctx.heap_stats()["heap_bytes"], 4 << 20)
            del made
            ctx.heap_trim()
            self.assertLessEqual(ctx.heap_stats()["mapped_bytes"], before)
            self.assertEqual(ctx.heap_stats()["num_deferred"], 0)
        with self.assertRaisesRegex(ValueError, "heap_reserve="):
            iris_c.iris("1M", heap_reserve="1K", arrays=support.ARRAYS, **cpu)

    def test_a_context_cannot_be_pickled(self):
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(self.ctx)

    def test_messages_below_the_level_are_not_printed(self):
        program = """
ctx = iris()
for level in iris_c.DEBUG, iris_c.INFO, iris_c.WARNING, iris_c.ERROR:
    iris_c.set_logger_level(level)
    for name in "debug", "info", "warning", "error":
        getattr(ctx, name)(f"{name} at {level}")
"""
        _, texts = support.finish(support.start(program))
        levels = (10, "debug"), (20, "info"), (30, "warning"), (40, "error")
        wanted = [
            f"[Iris] [0/1] {name} at {level}"
            for level, _ in levels
            for number, name in levels
            if number >= level
        ]
        found = [line for line in texts[0].splitlines() if " at " in line]
        self.assertEqual(found, wanted)

    def test_a_level_that_is_none_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "iris_c.DEBUG"):
            iris_c.set_logger_level(7)


if __name__ == "__main__":
    unittest.main()
