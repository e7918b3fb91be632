# SPDX-License-Identifier: MIT
"""Programs for torch's symmetric memory on this library's, by torchrun."""

import torch
import torch.distributed as dist

import iris_c
import iris_c.symm_mem as symm_mem

dist.init_process_group("gloo")
me, n = dist.get_rank(), dist.get_world_size()
equal = torch.testing.assert_close

# An all_reduce in one shot: each rank reads all others.
x = symm_mem.empty(3, 5, dtype=torch.float32, device="cpu")
handle = symm_mem.rendezvous(x, dist.group.WORLD)
assert (handle.rank, handle.world_size, handle.offset) == (me, n, 0)
for turn in range(20):
    x.fill_(me + turn)
    handle.barrier()
    parts = [handle.get_buffer(r, (3, 5), torch.float32) for r in range(n)]
    total = torch.stack(parts).sum(0)
    handle.barrier(channel=1)
    equal(total, torch.full((3, 5), float(sum(range(n)) + n * turn)))

# A ring of puts and signals, by two handles of the same tensor in turns.
name = getattr(dist.group.WORLD, "group_name", dist.group.WORLD)
handles = [handle, symm_mem.rendezvous(x, name)]
right, left = (me + 1) % n, (me - 1) % n
for turn in range(20):
    handle = handles[turn % 2]
    there = handle.get_remote_tensor(right, (3, 5), torch.float32)
    there.fill_(100 * turn + me)
    handle.put_signal(right, channel=3)
    handle.wait_signal(left, channel=3, timeout_ms=60000 if turn % 2 else 0)
    equal(x, torch.full((3, 5), 100.0 * turn + left))
    # It may be written again when all have read it.
    handle.barrier()

# Several signals before a wait are several, and a view has its own offset.
for _ in range(3):
    handle.put_signal(right)
for _ in range(3):
    handle.wait_signal(left)
row = symm_mem.rendezvous(x[1], dist.group.WORLD)
assert row.offset == 5 * 4 and row.buffer_size == 64
x.copy_(torch.arange(15.0).view(3, 5) + 100 * me)
handle.barrier()
equal(row.get_remote_tensor(left, (5,), torch.float32), torch.arange(5.0) + 5 + 100 * left)
equal(row.get_buffer(left, (2,), torch.float32, 13), torch.tensor([13.0, 14]) + 100 * left)

# The pad is the program's, and starts as zeros.
pad = handle.get_signal_pad(right)
assert pad.numel() * 4 == symm_mem.get_signal_pad_size()
handle.get_signal_pad(right, (1,), torch.int64, storage_offset=me)[0] = me + 1
handle.barrier()
own = handle.get_signal_pad(me, (n,), torch.int64).tolist()
assert own == [left + 1 if r == left else 0 for r in range(n)], own
assert len(set(handle.buffer_ptrs)) == n and 0 not in handle.signal_pad_ptrs

# A group of some ranks, whose numbers are its own.
y = symm_mem.empty(4, dtype=torch.int64, device="cpu").fill_(me)
dist.barrier()
pair = dist.new_group([n - 1, n - 2])
if me >= n - 2:
    both = symm_mem.rendezvous(y, pair)
    other = 1 - both.rank
    both.barrier()
    names = dist.get_process_group_ranks(pair)
    assert both.get_buffer(other, (4,), torch.int64).tolist() == [names[other]] * 4
    both.barrier()

# What is wrong is refused.
def refused(kind, function):
    try:
        function()
    except kind:
        return
    raise SystemExit(f"{kind} is missing")

refused(ValueError, lambda: handle.get_buffer(left, (17,), torch.float32))
refused(ValueError, lambda: handle.put_signal(left, channel=16))
refused(ValueError, lambda: symm_mem.rendezvous(torch.zeros(4), dist.group.WORLD))
refused(RuntimeError, lambda: symm_mem.set_signal_pad_size(64))
refused(iris_c.DeadlineError, lambda: handle.wait_signal(left, 5, timeout_ms=10))
dist.barrier()
print("passed: symmetric memory")
dist.destroy_process_group()
