# SPDX-License-Identifier: MIT
"""Ranks that a program starts itself, and how they end."""

import multiprocessing
import os
import signal
import unittest
import unittest.mock

import iris_c


def exchange(rank, scale):
    ctx = iris_c.iris(1 << 20, arrays="numpy")
    array = ctx.full((4,), rank * scale)
    ctx.barrier()
    peer = ctx.as_remote(array, (rank + 1) % ctx.get_num_ranks())
    seen = peer.tolist()
    ctx.barrier()
    return seen


def raise_on_one(rank):
    ctx = iris_c.iris(1 << 20, arrays="numpy")
    if rank == 1:
        raise KeyError("of rank 1")
    ctx.barrier()


def die_on_one(rank):
    ctx = iris_c.iris(1 << 20, arrays="numpy")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ctx.barrier()


def revoke_and_shrink(rank):
    ctx = iris_c.iris(1 << 20, arrays="numpy")
    array = ctx.full((4,), rank)
    if rank == 0:
        ctx.revoke()
    try:
        while True:
            ctx.barrier()
    except iris_c.RevokedError:
        former = ctx.shrink()
    ctx.barrier()
    return former, ctx.as_remote(array, 1 - rank).tolist()


def shrink_after_death(rank):
    ctx = iris_c.iris(1 << 20, arrays="numpy")
    own, total = ctx.full((4,), rank + 1.0), ctx.zeros(4)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        ctx.barrier()
    except iris_c.PeerLostError:
        former = ctx.shrink()
    ctx.ccl.all_reduce(total, own)
    ctx.barrier()
    assert former == [0, 2] and former[ctx.get_rank()] == rank, former
    assert total.tolist() == [4] * 4, total


def lambda_of(rank):
    return lambda: rank


def heap_array_of(rank):
    return iris_c.iris(1 << 20, arrays="numpy").full((2,), rank)


class Spawn(unittest.TestCase):
    def test_results_come_by_rank(self):
        self.assertEqual(iris_c.spawn(exchange, 2, (10,)), [[10] * 4, [0] * 4])

    def test_a_result_on_the_heap_is_a_copy(self):
        results = iris_c.spawn(heap_array_of, 2, start_method="fork")
        self.assertEqual(
            [array.tolist() for array in results], [[0, 0], [1, 1]]
        )

    def test_the_first_failure_is_the_error_and_its_cause(self):
        with self.assertRaisesRegex(iris_c.RankError, "rank 1 failed") as seen:
            iris_c.spawn(raise_on_one, 3, start_method="fork")
        self.assertEqual(seen.exception.rank, 1)
        self.assertIsInstance(seen.exception.__cause__, KeyError)
        self.assertIn("raise KeyError", str(seen.exception))

    def test_a_rank_that_is_killed_is_named(self):
        with self.assertRaisesRegex(
            iris_c.RankError, "1 was killed by SIGKIL"
        ):
            iris_c.spawn(die_on_one, 3, start_method="fork")

    def test_a_revoked_job_goes_on_after_shrink(self):
        self.assertEqual(
            iris_c.spawn(revoke_and_shrink, 2, start_method="fork"),
            [([0, 1], [1] * 4), ([0, 1], [0] * 4)],
        )

    def test_the_ranks_that_are_left_go_on(self):
        method = multiprocessing.get_context("fork")
        job = {"IRIS_BOOTSTRAP": "env", "IRIS_NUM_RANKS": "3",
               "IRIS_JOB_ID": f"shrink-{os.getpid()}"}
        ranks = []
        for rank in range(3):
            environment = {"IRIS_RANK": str(rank), **job}
            with unittest.mock.patch.dict(os.environ, environment):
                ranks.append(
                    method.Process(target=shrink_after_death, args=(rank,))
                )
                ranks[rank].start()
        for rank in ranks:
            rank.join()
        self.assertEqual(
            [rank.exitcode for rank in ranks], [0, -signal.SIGKILL, 0]
        )

    def test_a_result_that_cannot_be_pickled_is_an_error(self):
        with self.assertRaisesRegex(iris_c.RankError, "cannot be pickled"):
            iris_c.spawn(lambda_of, 1, start_method="fork")

    def test_no_ranks_are_an_error(self):
        with self.assertRaisesRegex(ValueError, "1 rank at least"):
            iris_c.spawn(exchange, 0)


if __name__ == "__main__":
    unittest.main()
