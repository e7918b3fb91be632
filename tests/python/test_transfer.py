# SPDX-License-Identifier: MIT
"""Copies and signals in the order of a stream, address maps, tracing."""

import json
import os
import shutil
import tempfile
import unittest

import iris_c
import support
from support import address, plain


class Transfer(support.TestCase):
    def setUp(self):
        super().setUp()
        self.rank = self.ctx.get_rank()
        self.ranks = self.ctx.get_num_ranks()
        self.right = (self.rank + 1) % self.ranks
        self.left = (self.rank - 1) % self.ranks

    def zeros(self, *size, dtype="int64"):
        return self.ctx.zeros(*size, dtype=dtype)

    def mine(self, *size):
        """A tensor of values that no other rank has."""
        made = self.ctx.arange(1000 * self.rank, 1000 * self.rank + 12)
        return made.reshape(size)

    def test_what_is_put_arrives_behind_its_signal(self):
        given, got, flag = self.mine(12), self.zeros(12), self.zeros(2)
        for round in range(1, 4):
            self.ctx.put(given, self.right, got, signal_flag=flag)
            self.ctx.wait(flag, round)
            self.assertEqual(plain(got),
                             [1000 * self.left + i for i in range(12)])
            self.ctx.barrier()
            got[...] = 0
            self.ctx.barrier()

    def test_a_put_waits_for_its_flag_and_none_is_its_own_place(self):
        given, flag = self.mine(12), self.zeros(1)
        self.ctx.signal(flag, self.rank, 9)
        self.ctx.signal(flag, self.rank, 7)
        self.ctx.put(given, self.rank, wait_flag=flag, wait_value=7)
        self.ctx.signal(flag, self.rank, 3, op="add")
        self.ctx.wait(flag, 10, "==")
        self.assertEqual(plain(flag), [10])
        self.ctx.barrier()

    def test_a_plan_copies_what_its_batch_publishes(self):
        given, got = self.mine(12), self.zeros(12)
        half = [slice(0, 6), slice(6, 12)]
        plan = self.ctx.plan([
            (rank, (rank + 1) % self.ranks, given[part], got[part], batch)
            for rank in range(self.ranks)
            for batch, part in enumerate(half)
        ])
        for epoch in range(1, 4):
            self.assertEqual(plan.begin(), epoch)
            self.assertEqual(plan.state, "armed")
            for batch in range(2):
                plan.publish(batch)
            plan.end()
            self.assertEqual(plan.state, "complete")
            self.assertEqual(plain(got),
                             [1000 * self.left + i + epoch - 1
                              for i in range(12)])
            self.ctx.barrier()
            given += 1
        with self.assertRaisesRegex(ValueError, "batch 2: the plan has 2"):
            plan.publish(2)
        with self.assertRaisesRegex(ValueError, "96 and 48 bytes"):
            self.ctx.plan([(0, 0, given, got[half[0]])])
        plan.abort()
        self.assertRaises(iris_c.StateError, plan.begin)
        plan.destroy()
        self.assertRaises(iris_c.InvalidError, plan.end)

    def test_what_is_got_is_the_peers(self):
        given, got = self.mine(12), self.zeros(12)
        self.ctx.get(given, self.left, got)
        self.assertEqual(plain(got), [1000 * self.left + i for i in range(12)])
        self.ctx.barrier()

    def test_columns_and_blocks_of_matrices_are_tiles(self):
        given, got = self.mine(3, 4), self.zeros(3, 8)
        self.ctx.put(given[:, 1:3], self.right, got[:, 2:4])
        self.ctx.barrier()
        row = 1000 * self.left
        self.assertEqual(
            plain(got),
            [[0, 0, row + 4 * i + 1, row + 4 * i + 2, 0, 0, 0, 0]
             for i in range(3)])
        self.ctx.barrier()
        got = self.zeros(12)
        self.ctx.get(given.reshape(12)[::3], self.left, got[1:12:3])
        self.assertEqual(plain(got)[1::3], [row + 3 * i for i in range(4)])
        self.assertEqual(plain(got)[0::3], [0] * 4)
        self.ctx.barrier()
        back = self.zeros(4, 3)
        turned = back.T
        self.ctx.get(given, self.left, turned)
        self.assertEqual(plain(turned),
                         [[row + 4 * i + j for j in range(4)]
                          for i in range(3)])
        self.ctx.barrier()

    def test_several_tiles_go_on_a_channel(self):
        given, got, flag = self.mine(3, 4), self.zeros(6, 8), self.zeros(1)
        self.ctx.put_tiles(
            [given[:2], given[2:, :2]], self.right,
            [got[1:], address(got) + 8 * (5 * 8)], [8, 8],
            signal_flag=flag, signal_value=5, channel=1)
        self.ctx.wait(flag, 5)
        row = 1000 * self.left
        expected = [[0] * 8 for _ in range(6)]
        for i in range(2):
            expected[1 + i][:4] = [row + 4 * i + j for j in range(4)]
        expected[5][:2] = [row + 8, row + 9]
        self.assertEqual(plain(got), expected)
        self.ctx.put_tile(given[:1], self.rank, got, 8, async_op=True,
                          channel=2)
        self.ctx.quiet(channel=2)
        self.ctx.quiet()
        self.assertEqual(plain(got)[0][:4], plain(given)[0])
        self.ctx.barrier()

    def test_a_copy_to_a_peers_tensor(self):
        given, got = self.mine(12), self.zeros(12)
        self.ctx.copy(self.ctx.as_remote(got, self.right), given)
        self.ctx.barrier()
        self.assertEqual(plain(got), [1000 * self.left + i for i in range(12)])
        self.ctx.barrier()

    def test_what_is_wrong_is_an_error(self):
        ctx, given = self.ctx, self.mine(12)
        narrow = self.zeros(12, dtype="int32")
        other = self.zeros(3, 4)
        for raises, text in (
            (lambda: ctx.put(given, self.rank, narrow), "one dtype"),
            (lambda: ctx.put(given, self.rank, other[:, :2]), "one shape"),
            (lambda: ctx.put(given, 0, wait_flag=narrow), "Unsupported flag"),
            (lambda: ctx.signal(narrow, self.rank), "Unsupported flag tensor"),
            (lambda: ctx.signal(given, self.rank, op="or"), '"set" or "add"'),
            (lambda: ctx.wait(given, 1, "~"), "takes '=='"),
            (lambda: ctx.put_tiles([other], 0, [], []), "the same length"),
            (lambda: ctx.put(given, self.ranks), "out of range"),
            (lambda: ctx.quiet(self.ranks), "out of range"),
            (lambda: ctx.put(given, 0, stream=1, channel=1), "not both"),
        ):
            with self.assertRaisesRegex(ValueError, text):
                raises()
        for raises, text in (
            (lambda: ctx.put(given, other, 0), "is needed, not .*int"),
            (lambda: ctx.put(given, other), "(?s)rank .* is not a whole number"),
            (lambda: ctx.get(given, 0.5), "rank 0.5 is not a whole number"),
            (lambda: ctx.put_tile(other, "0", given, 4), "dst_rank '0' is not"),
            (lambda: ctx.signal(given, None), "rank None is not"),
        ):
            with self.assertRaisesRegex(TypeError, text):
                raises()
        ctx.barrier()

    def test_addresses_are_translated(self):
        given = self.mine(12)
        bases = self.ctx.heap_bases_list()
        there = self.ctx.translate(given, self.rank, self.right)
        self.assertEqual(there - bases[self.right],
                         address(given) - bases[self.rank])
        self.assertEqual(self.ctx.translate(there, self.right, self.rank),
                         address(given))
        with self.assertRaisesRegex(ValueError, "is not on rank"):
            self.ctx.translate(64, self.rank, self.right)

    def test_an_address_map_says_where_each_rank_has_a_tensor(self):
        made, bases = self.ctx.allocate_symmetric(5, 3, dtype="float32")
        offsets = {int(base) - heap for base, heap in zip(
            plain(bases), self.ctx.heap_bases_list())}
        self.assertEqual(len(offsets), 1)
        self.assertEqual(plain(bases)[self.rank], address(made))
        map = self.ctx.address_map(made)
        self.assertIsInstance(map, iris_c.AddressMap)
        self.assertEqual((map.local_rank, map.allocation_base,
                          map.allocation_bytes),
                         (self.rank, address(made), 60))
        self.assertTrue(map.owns(made[4:]))
        self.assertFalse(map.owns(self.mine(12)))
        both = map.CAP_REMOTE_LOAD_STORE | map.CAP_REMOTE_ATOMICS
        self.assertTrue(map.supports(both))
        self.assertFalse(map.supports(1 << 5))
        with self.assertRaisesRegex(ValueError, "on the symmetric heap"):
            self.ctx.address_map(support.library().ones(3))

    def test_uniform_numbers_are_within_their_bounds(self):
        found = self.ctx.uniform((40, 25), -3, -1, dtype="float64")
        self.assertEqual(tuple(found.shape), (40, 25))
        self.assertGreaterEqual(float(found.min()), -3)
        self.assertLess(float(found.max()), -1)
        self.assertGreater(float(found.max() - found.min()), 1.9)

    def test_tracing_writes_what_the_host_did(self):
        tracing = self.ctx.tracing
        self.assertEqual(tracing.export(), {})
        tracing.reset()
        tracing.enable(1000)
        self.assertEqual((tracing.enabled, tracing.max_events), (True, 1000))
        tracing.name(2050, "softmax")
        with tracing.span(2050):
            self.ctx.put(self.mine(12), self.right, self.zeros(12))
        self.ctx.barrier()
        self.assertGreater(tracing.counts()["host_events"], 2)
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(folder, "trace.json")
            found = tracing.export(place)
            names = [event["name"] for event in found["traceEvents"]]
            self.assertIn("softmax", names)
            self.assertEqual(found["metadata"]["rank"], self.rank)
            with open(os.path.join(
                    folder, f"trace_rank{self.rank}.json")) as file:
                self.assertEqual(json.load(file), found)
        tracing.reset()
        self.assertEqual(tracing.counts()["host_events"], 0)
        folder = self.ctx.broadcast(tempfile.mkdtemp())
        found = tracing.export(os.path.join(folder, "all.json"), merge=True)
        self.assertEqual(bool(found), self.rank == 0)
        if found:
            self.assertEqual(found["metadata"]["world_size"], self.ranks)
            shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main()
