# SPDX-License-Identifier: MIT
"""A job whose ranks have come apart."""

import tempfile
import types
import unittest

from iris_c.upstream.lockstep import Lockstep


def report(name, failed=True):
    return types.SimpleNamespace(nodeid=name, failed=failed)


class Lockstep_(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.ranks = [Lockstep(self.folder.name, rank, 1e9)
                      for rank in range(2)]
        for rank in self.ranks:
            rank._limit_s = 5.0
            rank.pytest_runtest_logstart("a")

    def test_one_that_waits_for_a_failed_one_is_late(self) -> None:
        one, other = self.ranks
        self.assertIsNone(other.is_late(0.0))
        one.pytest_runtest_logreport(report("a"))
        self.assertIsNone(other.is_late(1.0))
        self.assertIsNone(other.is_late(5.5))
        self.assertEqual(other.is_late(6.5), 0)

    def test_its_own_failure_makes_nobody_late(self) -> None:
        one, _ = self.ranks
        one.pytest_runtest_logreport(report("a"))
        self.assertIsNone(one.failed_elsewhere())

    def test_a_test_that_ends_is_not_late(self) -> None:
        one, other = self.ranks
        one.pytest_runtest_logreport(report("a"))
        self.assertIsNone(other.is_late(1.0))
        other.pytest_runtest_logstart("b")
        self.assertIsNone(other.is_late(9.0))
        other.pytest_sessionfinish()
        self.assertIsNone(other.is_late(99.0))

    def test_what_has_passed_is_not_written_down(self) -> None:
        one, other = self.ranks
        one.pytest_runtest_logreport(report("a", failed=False))
        self.assertIsNone(other.failed_elsewhere())
