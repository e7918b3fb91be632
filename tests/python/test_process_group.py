# SPDX-License-Identifier: MIT
"""Under torch.distributed: ranks and groups are those of its process groups."""

import os
import sys
import tempfile
import unittest

import support

PROGRAM = """
import sys, torch, torch.distributed as dist, iris_c
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "gloo", init_method="file://" + store, rank=rank, world_size=3
)
pair = dist.new_group([0, 1])
for _ in range(2):
    ctx = iris_c.iris(1 << 20)
    assert (ctx.get_rank(), ctx.get_num_ranks()) == (rank, 3)
    x = ctx.full((4,), rank)
    # The members alone know of this barrier.
    if rank < 2: ctx.barrier(group=pair)
    ctx.barrier(group=dist.group.WORLD)
    assert ctx.as_remote(x, 2).tolist() == [2] * 4
    # The first use here makes a group, which is collective.
    ctx.device_barrier(group=pair if rank < 2 else [2])
    if rank < 2:
        assert ctx.broadcast(rank, src=1, group=pair) == 1
        ctx.barrier(group=pair)
    ctx.ccl.prepare()
    whole = [torch.full((4,), 2.0 ** rank), torch.zeros(4)]
    members = [0, 1] if rank < 2 else [2]
    ctx.ccl.all_reduce(whole[1], whole[0], group=pair if rank < 2 else [2])
    assert whole[1].tolist() == [sum(2.0 ** one for one in members)] * 4
    ctx.ccl.all_reduce(whole[1], whole[0], group=dist.group.WORLD)
    assert whole[1].tolist() == [7.0] * 4
    ctx.barrier()
"""


@support.needs_torch
class ProcessGroup(unittest.TestCase):
    def test_ranks_and_groups_are_those_of_torch(self):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            processes = [
                support.start_process(
                    [sys.executable, "-c", PROGRAM, store, str(rank)]
                )
                for rank in range(3)
            ]
            statuses, texts = support.finish(processes)
            self.assertEqual(statuses, [0, 0, 0], "".join(texts))
            # Some versions of Gloo say that they have connected.
            lines = "".join(texts).splitlines()
            said = [line for line in lines if not line.startswith("[Gloo]")]
            self.assertEqual(said, [])


if __name__ == "__main__":
    unittest.main()
