# SPDX-License-Identifier: MIT
"""torch.distributed with the library's collectives as its backend."""

import contextlib
import os
import sys
import tempfile
import unittest
import unittest.mock

import support

PROGRAM = """
import os, sys, torch, torch.distributed as dist, iris_c.torch_backend
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
full, equal = torch.full, torch.testing.assert_close
mine = full((2,), float(rank))
x = mine.clone()
dist.all_reduce(x)
equal(x, full((2,), 3.0))
# Torch's tensors need not be contiguous.
x = torch.arange(6.0).reshape(2, 3).t() * (rank + 1)
dist.all_reduce(x, op=dist.ReduceOp.MAX)
equal(x, torch.arange(6.0).reshape(2, 3).t() * 3)
# Parts of unequal sizes, and messages; tests/python/torch_calls.py has every call.
rows = [torch.zeros(peer + 1) for peer in range(3)]
dist.all_gather(rows, full((rank + 1,), float(rank)))
for peer in range(3):
    equal(rows[peer], full((peer + 1,), float(peer)))
rows = [torch.zeros(peer + rank + 1) for peer in range(3)]
dist.all_to_all(rows, [full((rank + peer + 1,), 10.0 * rank + peer)
                       for peer in range(3)])
for peer in range(3):
    equal(rows[peer], full((peer + rank + 1,), 10.0 * peer + rank))
x = torch.zeros(50000)
if rank == 0:
    dist.send(x + 7, 2)
elif rank == 2:
    dist.recv(x, 0)
    equal(x, full((50000,), 7.0))
late = store + ".late"
if rank == 0:
    # Without a barrier the others are through before it is there.
    sum(range(10 ** 6))
    open(late, "w").close()
dist.barrier()
assert os.path.exists(late)
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
model(torch.randn(3, 4)).sum().backward()
for kept in (model.module.weight, model.module.weight.grad):
    x = kept.detach().clone()
    dist.broadcast(x, 0)
    equal(x, kept.detach(), rtol=0, atol=0)
dist.destroy_process_group()
"""

# Averages and scaled sums, by torchrun with any number of ranks.
SUMS = """
import sys, torch, torch.distributed as dist, iris_c.torch_backend
dist.init_process_group("iris")
rank, size = dist.get_rank(), dist.get_world_size()
full, equal = torch.full, torch.testing.assert_close
total = size * (size - 1) / 2
for count in (2, 5000):
    for op, factor in ((dist.ReduceOp.AVG, 1 / size),
                       (dist._make_nccl_premul_sum(0.25), 0.25)):
        x = full((count,), float(rank))
        dist.all_reduce(x, op=op)
        equal(x, full((count,), total * factor))
        x = full((count,), float(rank))
        dist.reduce(x, 1, op=op)
        equal(x, full((count,), total * factor if rank == 1 else float(rank)))
        x = torch.zeros(count)
        parts = torch.arange(float(size)).repeat_interleave(count)
        dist.reduce_scatter_tensor(x, parts + rank, op=op)
        equal(x, full((count,), (size * rank + total) * factor))
dist.destroy_process_group()
# In one piece, since the ranks share the pipe.
sys.stdout.write(f"rank {rank} of {size}\\n")
"""

# Messages, batches, and tensors that torch shows otherwise than memory has them.
MESSAGES = """
import sys, torch, torch.distributed as dist, iris_c.torch_backend
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
full, equal = torch.full, torch.testing.assert_close
right, left = (rank + 1) % 3, (rank - 1) % 3

# Receives in the other order of the sends: the tags match.
if rank == 0:
    dist.send(full((2,), 5.0), 1, tag=5)
    dist.send(torch.arange(40000), 1, tag=9)
    dist.send(full((2,), 6.0), 1, tag=5)
elif rank == 1:
    x = torch.zeros(40000, dtype=torch.int64)
    dist.recv(x, 0, tag=9)
    equal(x, torch.arange(40000))
    for value in (5.0, 6.0):
        x = torch.zeros(2)
        dist.recv(x, 0, tag=5)
        equal(x, full((2,), value))

# A receive of another size is told, and the sender is not held up.
if rank == 0:
    dist.send(torch.zeros(2), 1)
elif rank == 1:
    try:
        dist.recv(torch.zeros(3), 0)
        raise SystemExit("another size was taken")
    except iris_c.MismatchError as error:
        assert "3 elements" in str(error) and "2 of" in str(error), error

# Batches in a cycle, of large tensors, of several dtypes, of none, by tags.
count = 300000
given = [full((count,), float(rank)), torch.arange(5) + rank, torch.zeros(0)]
came = [torch.zeros(count), torch.zeros(5, dtype=torch.int64), torch.zeros(0)]
send = [dist.P2POp(dist.isend, x, right, tag=t) for t, x in enumerate(given)]
receive = [dist.P2POp(dist.irecv, x, left, tag=t) for t, x in enumerate(came)]
for work in dist.batch_isend_irecv(send + receive[::-1]):
    work.wait()
equal(came[0], full((count,), float(left)))
equal(came[1], torch.arange(5) + left)

# Outputs that are not contiguous, and leaves of autograd.
x = torch.nn.Parameter(
    torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
)
dist.all_reduce(x)
equal(x.detach(), full((2, 3, 4, 5), 3.0))
assert x.is_contiguous(memory_format=torch.channels_last)
dist.broadcast(x, 0)
x = torch.zeros(2, 6).t()
dist.all_gather_into_tensor(x, full((2, 2), float(rank)))
equal(x, torch.arange(3.0).repeat_interleave(2)[:, None].expand(6, 2))
x = torch.zeros(4).reshape(2, 2).t()
dist.reduce_scatter_tensor(x, torch.ones(6, 2))
equal(x, full((2, 2), 3.0))
dist.all_to_all_single(
    y := torch.zeros(2, 3).t(), torch.ones(3, 2) * rank
)
equal(y, torch.arange(3.0)[:, None].expand(3, 2))
rows = [torch.zeros(2, requires_grad=True) for _ in range(3)]
dist.all_gather(rows, torch.ones(2) * rank)
equal(rows[2].detach(), full((2,), 2.0))

# The negative bit. Torch itself refuses the conjugate one, and gives backends a
# copy of an output that has the bit.
x = torch.zeros(12)
dist.all_gather_into_tensor(x, torch._neg_view(full((4,), float(rank))))
equal(x, -torch.arange(3.0).repeat_interleave(4))
if rank == 0:
    dist.send(torch._neg_view(full((2,), 1.0)), 2)
elif rank == 2:
    x = torch.zeros(2)
    dist.recv(x, 0)
    equal(x, full((2,), -1.0))
x = torch.zeros(2, dtype=torch.complex64)
dist.all_reduce(x + 1j)

# No elements.
none = torch.zeros(0)
dist.reduce(none, 1)
dist.gather(none, [torch.zeros(0)] * 3 if rank == 0 else None)
dist.scatter(none, [torch.zeros(0)] * 3 if rank == 0 else None)
rows = [torch.zeros(peer) for peer in range(3)]
dist.all_gather(rows, torch.ones(rank))
assert [row.tolist() for row in rows] == [[], [1.0], [1.0, 1.0]], rows

dist.barrier()
dist.destroy_process_group()
"""

# The messages of GPUs, which are in order, on a CPU.
ORDERED = """
import sys, torch, torch.distributed as dist, iris_c.torch_backend as backend
backend.Messages = lambda context, _: backend.Exchange(context)
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
full, equal = torch.full, torch.testing.assert_close
right, left = (rank + 1) % 3, (rank - 1) % 3
# Older versions pass a batch one by one.
is_told = not isinstance(dist.group.WORLD, backend.IrisProcessGroup)
count = 300000 if is_told else 300
came = [torch.zeros(count), torch.zeros(5, dtype=torch.int64).view(5, 1).t()]
given = [full((count,), float(rank)), torch.arange(5).view(1, 5) + rank]
send = [dist.P2POp(dist.isend, x, right) for x in given]
receive = [dist.P2POp(dist.irecv, x, left) for x in came]
for work in dist.batch_isend_irecv(send + receive):
    assert work.wait()
equal(came[0], full((count,), float(left)))
equal(came[1], torch.arange(5).view(1, 5) + left)
for call in (
    lambda: dist.recv(came[0]),
    lambda: dist.send(given[0], right, tag=1),
):
    try:
        call()
        raise SystemExit("not refused")
    except NotImplementedError as error:
        assert "of iris on GPUs" in str(error), error
x = torch.zeros(2)
if rank == 0:
    dist.send(x + 1, 1)
elif rank == 1:
    dist.recv(x, 0)
    equal(x, full((2,), 1.0))
dist.barrier()
dist.destroy_process_group()
"""

# What a rank gets when its peer has no matching call, or ends.
FAILURES = """
import datetime, sys, time, torch, torch.distributed as dist, iris_c.torch_backend
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
def fails(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise SystemExit(f"no {kind}")
short = datetime.timedelta(milliseconds=50)
x = torch.zeros(2)
# A receive that nothing matches ends, and the message that comes later is its.
if rank == 0:
    work = dist.irecv(x, 1)
    fails(iris_c.DeadlineError, "not complete", lambda: work.wait(short))
    assert not work.is_completed()
dist.barrier()
if rank == 1:
    dist.send(x + 1, 0)
if rank == 0:
    assert work.wait() and x.tolist() == [1, 1] and work.is_completed()
    # A future of a failed receive has its error.
    work = dist.irecv(x, 1)
    future = work.get_future()
elif rank == 1:
    dist.send(torch.zeros(3), 0)
if rank == 0:
    fails(iris_c.MismatchError, "3 of", work.wait)
    fails(RuntimeError, "3 of", future.wait)
dist.barrier()
# A barrier that some ranks gave up leaves nothing for the next one. Older versions
# let only gloo have it.
def monitored(seconds):
    dist.monitored_barrier(timeout=datetime.timedelta(seconds=seconds))
try:
    monitored(60)
    has_monitored = True
except (ValueError, RuntimeError) as error:
    assert "GLOO" in str(error), error
    has_monitored = False
for turn in range(2 if has_monitored else 0):
    if rank != 0:
        fails(iris_c.DeadlineError, "did not pass the", lambda: monitored(0.1))
    dist.barrier()
    if rank == 0:
        monitored(60)
    dist.barrier()
    if rank == 0:
        fails(iris_c.DeadlineError, "Rank 1 failed", lambda: monitored(0.1))
    dist.barrier()
    if rank != 0:
        fails(iris_c.DeadlineError, "did not pass the", lambda: monitored(0.1))
if has_monitored:
    monitored(60)
# A group whose thread waits for longer than a call may has not failed.
hasty = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
if rank == 0:
    work = dist.irecv(x, 1, hasty)
time.sleep(1.5)
dist.barrier()
if rank == 1:
    dist.send(torch.full((2,), 7.0), 0, hasty)
elif rank == 0:
    assert work.wait(datetime.timedelta(seconds=60)) and x.tolist() == [7, 7]
# The end of a group ends what is pending.
pair = dist.new_group([0, 1])
if rank == 0:
    work = dist.irecv(x, 1, pair)
    dist.destroy_process_group(pair)
    fails(iris_c.StateError, "shut down", work.wait)
elif rank == 1:
    dist.destroy_process_group(pair)
dist.barrier()
dist.destroy_process_group()
"""


ABORT = """
import datetime, sys, time, torch, torch.distributed as dist, iris_c.torch_backend
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
def fails(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
        return
    raise SystemExit(f"no {kind}")
x = torch.zeros(2)
# A rank that aborts ends the waits of its peers, and other groups go on.
pair = dist.new_group([0, 1])
is_told = not isinstance(dist.group.WORLD, iris_c.torch_backend.IrisProcessGroup)
if rank == 0:
    work = dist.irecv(x, 1, pair)
    if is_told:
        dist.distributed_c10d._abort_process_group(pair)
    else:
        pair.abort()
    fails(iris_c.StateError, "aborted", work.wait)
elif rank == 1:
    fails(iris_c.PeerLostError, "aborted", lambda: dist.recv(x, 0, pair))
    fails(iris_c.PeerLostError, "aborted", lambda: dist.barrier(pair))
    fails(iris_c.PeerLostError, "aborted", lambda: dist.recv(x, 0, pair))
x = torch.ones(1)
dist.all_reduce(x)
assert x.tolist() == [3]
fails(TypeError, "a timeout only", lambda: dist.new_group(pg_options=x))
dist.destroy_process_group()
"""

# Rank 1 dies, and the others abort and make a group without it.
SURVIVORS = """
import os, sys, torch, torch.distributed as dist, iris_c.torch_backend
store, rank = sys.argv[1], int(sys.argv[2])
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
dist.all_reduce(torch.ones(2))
if rank == 1:
    os._exit(0)
try:
    while True:
        dist.all_reduce(torch.ones(2))
except iris_c.PeerLostError:
    pass
world = dist.group.WORLD
if isinstance(world, iris_c.torch_backend.IrisProcessGroup):
    world.abort()
else:
    dist.distributed_c10d._abort_process_group(world)
if dist.is_initialized():
    dist.destroy_process_group()
dist.init_process_group(
    "iris", init_method="file://" + store + ".2", rank=rank // 2, world_size=2
)
for _ in range(3):
    x = torch.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2], x
dist.barrier()
dist.destroy_process_group()
"""

# With this setting, torch wraps each backend in one of its own, in C++.
WATCHED = """
import os, sys, torch, torch.distributed as dist, iris_c.torch_backend
store, rank = sys.argv[1], int(sys.argv[2])
os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
dist.set_debug_level_from_env()
dist.init_process_group(
    "iris", init_method="file://" + store, rank=rank, world_size=3
)
for group in dist.group.WORLD, dist.new_group(), dist.new_group([0, 1, 2]):
    all_of = [None] * 3
    dist.all_gather_object(all_of, {"rank": rank}, group)
    assert all_of == [{"rank": 0}, {"rank": 1}, {"rank": 2}], all_of
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [3, 3], x
    dist.barrier(group)
dist.destroy_process_group()
"""


class Stream:
    """A stream of a GPU that is not there, and what streams have done."""

    log = []
    current = device = None

    def __init__(self, name="own"):
        self.name = name

    def wait_stream(self, other):
        self.log.append(f"{self.name} waits for {other.name}")

    @contextlib.contextmanager
    def as_current(self):
        before, Stream.current = Stream.current, self
        yield
        Stream.current = before


@unittest.skipUnless(support.has_backends(), "a test of torch 2.1 or newer")
class OrderOfStreams(unittest.TestCase):
    def call_on(self, order, stream, **state):
        """What a call on a stream of a program does."""
        from torch import cuda

        Stream.log.clear()
        with unittest.mock.patch.multiple(
            cuda, current_stream=lambda device: Stream.current, stream=Stream.as_current,
            is_current_stream_capturing=lambda: bool(state), Stream=lambda device: Stream(),
        ), stream.as_current(), order.hold():
            Stream.log.append(f"a call on {Stream.current.name}")
        return list(Stream.log)

    def test_calls_on_several_streams_are_one_after_another(self):
        from iris_c.torch_backend import _Order

        context = unittest.mock.Mock()
        streams = context.ccl._streams
        streams.device_id.return_value = 0
        streams.synchronize = lambda one: Stream.log.append(f"the host waits for {one.name}")
        order, a, b = _Order(context), Stream("a"), Stream("b")
        self.assertEqual(self.call_on(order, a), ["a call on a"])
        behind = ["own waits for b", "a call on own", "b waits for own"]
        self.assertEqual(self.call_on(order, b), ["the host waits for a", *behind])
        self.assertEqual(self.call_on(order, b), behind)
        self.assertEqual(self.call_on(order, a)[1], "a call on own")
        self.assertEqual(self.call_on(order, a, captures=1), ["a call on a"])

    def test_a_stream_that_waits_for_a_call_is_behind_its_stream(self):
        from datetime import timedelta

        from iris_c.torch_backend import _Pending
        from torch import cuda

        a, b = Stream("a"), Stream("b")
        work = _Pending(None, (), timedelta(1), a)
        for call in work.wait, work.get_future:
            for stream, log in (b, ["b waits for a"]), (a, []):
                Stream.log.clear()
                current = unittest.mock.patch.object(
                    cuda, "current_stream", lambda device: Stream.current
                )
                with current, stream.as_current():
                    call()
                self.assertEqual(Stream.log, log)

    def test_a_cpus_tensor_goes_to_the_gpu_and_back(self):
        import torch
        from iris_c import _torch_messages as messages

        gpu, tensor = torch.device("meta"), torch.arange(4.0)[::2]
        with unittest.mock.patch.object(messages.Home, "gpu", gpu):
            self.assertEqual(messages.plain(tensor).device, gpu)
        result = unittest.mock.Mock(wraps=torch.tensor([7.0, 8.0]), device=gpu)
        result.data_ptr.return_value = tensor.data_ptr()
        messages.put_back(result, tensor)
        self.assertEqual(tensor.tolist(), [7.0, 8.0])


@unittest.skipUnless(support.has_backends(), "a test of torch 2.1 or newer")
class TorchBackend(unittest.TestCase):
    def test_torchs_collectives_are_the_librarys(self):
        for nodes in ("1", "2"):
            with self.subTest(nodes=nodes), support.on_nodes(nodes):
                self.run_program(PROGRAM)

    def test_messages_and_tensors_are_as_torch_means_them(self):
        self.run_program(MESSAGES)

    def test_messages_of_gpus_match_in_order(self):
        self.run_program(ORDERED)

    def test_messages_that_fail_say_why(self):
        self.run_program(FAILURES)

    def test_an_aborted_group_ends_the_waits_of_its_peers(self):
        self.run_program(ABORT, is_quiet=False)

    def test_survivors_of_a_loss_make_a_group_anew(self):
        self.run_program(SURVIVORS, is_quiet=False)

    def test_torchs_detailed_debugging_keeps_the_backend(self):
        self.run_program(WATCHED, is_quiet=False)

    def run_program(self, text, is_quiet=True):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            processes = [
                support.start_process(
                    [sys.executable, "-W", "ignore", "-c", text, store, str(rank)]
                )
                for rank in range(3)
            ]
            statuses, texts = support.finish(processes)
            self.assertEqual(statuses, [0, 0, 0], texts)
            if is_quiet:
                self.assertEqual(texts, ["", "", ""])

    def test_averages_and_scaled_sums_by_torchrun(self):
        for nodes in ("1", "2"):
            with self.subTest(nodes=nodes), support.on_nodes(nodes):
                self.run_sums(4)

    def run_sums(self, ranks):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "sums.py")
            with open(program, "w", encoding="ascii") as file:
                file.write(SUMS)
            status, text = support.torchrun(program, ranks)
            self.assertEqual(status, 0, text)
            for rank in range(ranks):
                self.assertIn(f"rank {rank} of {ranks}", text)


if __name__ == "__main__":
    unittest.main()
