# SPDX-License-Identifier: MIT
"""Tensors go when Python lets them go: any time, any order, any thread."""

import threading
import unittest

import support


class Lifetime(support.TestCase):
    def setUp(self):
        super().setUp()
        support.collect()
        self.before = self.figures()

    def figures(self):
        stats = self.ctx.heap_stats()
        return stats["used_bytes"], stats["num_allocs"], stats["num_deferred"]

    def assert_all_free(self):
        support.collect()
        self.assertEqual(self.figures(), self.before)

    def test_many_tensors_leave_the_heap_as_it_was(self):
        # A hundred times what fits on the heap at once.
        for _ in range(100000 if self.ranks == 1 else 500):
            self.ctx.empty(1000)
        self.assert_all_free()

    def test_a_view_keeps_the_memory(self):
        array = self.ctx.full((10,), 7.0)
        view = array[3:5]
        del array
        support.collect()
        other = self.ctx.zeros(10)
        self.assertEqual(support.plain(view), [7.0, 7.0])
        del view, other
        self.assert_all_free()

    def test_ranks_let_go_in_orders_of_their_own(self):
        kept = [self.ctx.zeros(100) for _ in range(8)]
        order = [(place * 3 + self.rank) % 8 for place in range(8)]
        for place in order:
            kept[place] = None
            self.ctx.barrier()
        self.assert_all_free()

    def test_memory_stays_while_any_rank_has_it(self):
        array = self.ctx.full((4,), self.rank)
        if self.rank != 0:
            del array
        support.collect()
        if self.rank == 0:
            self.assertEqual(support.plain(array), [0] * 4)
            del array
        self.assert_all_free()

    def test_a_tensor_in_a_cycle_goes_with_it(self):
        cycle = [self.ctx.zeros(10)]
        cycle.append(cycle)
        del cycle
        self.assert_all_free()

    def test_another_thread_may_let_go(self):
        kept = [self.ctx.zeros(10) for _ in range(20)]

        def let_go(first):
            for place in range(first, 20, 2):
                kept[place] = None

        threads = [
            threading.Thread(target=let_go, args=(first,)) for first in (0, 1)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del kept
        self.assert_all_free()

    def test_what_a_failed_call_made_is_let_go(self):
        with self.assertRaisesRegex((ValueError, RuntimeError), "gradient"):
            kind = "int32" if support.ARRAYS == "torch" else "float32"
            kind = getattr(support.library(), kind)
            self.ctx.zeros(4, dtype=kind, requires_grad=True)
        self.assert_all_free()

    def test_memory_from_malloc_is_the_programs_to_free(self):
        address = self.ctx.malloc(100, alignment=1024)
        self.assertEqual(address % 1024, 0)
        self.ctx.free(address)
        self.assert_all_free()


if __name__ == "__main__":
    unittest.main()
