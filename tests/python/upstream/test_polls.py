# SPDX-License-Identifier: MIT
"""Kernels that wait for what cannot come end with an error that says so."""

import os
import unittest
from unittest import mock

import torch
import triton
import triton.language as tl
from iris_c.upstream import polls
from iris_c.upstream.polls import PeerLostError, WaitError


@triton.jit
def first_waits_for_last(flags):
    me = tl.program_id(0)
    if me == 0:
        while tl.atomic_cas(flags + 1, 1, 1) != 1:
            pass
    tl.atomic_xchg(flags + me, 1)


@triton.jit
def last_waits_for_first(flags):
    me = tl.program_id(0)
    tl.atomic_xchg(flags + me, 1)
    if me == 1:
        while tl.load(flags, volatile=True) != 1:
            pass


@triton.jit
def reads_much(x, out, COUNT: tl.constexpr):
    total = 0
    for _ in range(COUNT):
        total += tl.load(x)
    tl.store(out, total)


class Peers:
    """A context of two ranks, of which rank `lost` has died."""

    heap_bytes = 1 << 20
    num_ranks = 2

    def __init__(self, lost: int) -> None:
        self._lost = lost

    def lost_rank(self) -> int:
        return self._lost

    def bases(self) -> list:
        return []


class Polls(unittest.TestCase):
    def setUp(self) -> None:
        self.flags = torch.zeros(2, dtype=torch.int32)

    def joins(self, peers: Peers) -> None:
        patch = mock.patch.object(polls, "contexts", lambda: [peers])
        patch.start()
        self.addCleanup(patch.stop)

    def test_waiting_for_a_later_instance_is_an_error(self) -> None:
        with self.assertRaises(WaitError) as caught:
            first_waits_for_last[(2,)](self.flags)
        text = str(caught.exception)
        self.assertIn("instance (0, 0, 0) of first_waits_for_last()", text)
        self.assertIn("one after another", text)
        self.assertIn("(2, 1, 1)", text)

    def test_waiting_for_an_earlier_instance_is_none(self) -> None:
        last_waits_for_first[(2,)](self.flags)
        self.assertEqual(self.flags.tolist(), [1, 1])

    def test_a_lost_peer_ends_a_wait(self) -> None:
        self.joins(Peers(1))
        with self.assertRaisesRegex(PeerLostError, "rank 1 was lost"):
            first_waits_for_last[(1,)](self.flags)

    def test_with_peers_the_deadline_ends_a_wait(self) -> None:
        self.joins(Peers(-1))
        deadline = {"IRIS_DEVICE_TIMEOUT_MS": "20"}
        with mock.patch.dict(os.environ, deadline):
            with self.assertRaisesRegex(WaitError, "nobody writes"):
                first_waits_for_last[(2,)](self.flags)

    def test_reading_the_same_word_often_is_no_wait(self) -> None:
        out = torch.zeros(1, dtype=torch.int32)
        self.flags.fill_(1)
        reads_much[(1,)](self.flags, out, 3000)
        self.assertEqual(out.item(), 3000)
