# SPDX-License-Identifier: MIT
"""Triton's kernels in plain programs without a GPU."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import support

KERNELS = """
import iris_c, triton, triton.language as tl, torch, os, sys

@triton.jit
def wait(flag):
    while tl.atomic_cas(flag, 1, 1, sem="acquire", scope="sys") != 1:
        pass

@triton.jit
def poll(flag):
    while tl.load(flag, volatile=True) != 1:
        pass

ctx = iris_c.iris(1 << 20, arrays="torch")
flag = ctx.zeros(1, dtype="int32")
ctx.barrier()
"""


def has(module):
    """Whether Python finds a module, whose package may be missing."""
    package = module.partition(".")[0]
    return bool(importlib.util.find_spec(package) and importlib.util.find_spec(module))


@unittest.skipUnless(has("triton"), "a test of Triton")
@unittest.skipIf(has("triton.knobs"), "Triton is new enough")
class OldTriton(unittest.TestCase):
    def test_an_old_triton_is_beside_the_package_and_its_kernels_refuse_it(self):
        (status,), (text,) = support.finish(
            support.start(
                """
import triton
assert iris().ones(2).tolist() == [1, 1]
try: import iris_c.triton
except ImportError as error: assert triton.__version__ in str(error), error
else: raise SystemExit("not refused")
"""
            )
        )
        self.assertEqual((status, text), (0, ""))


@unittest.skipUnless(has("triton.knobs"), "a test of Triton 3.4 or newer")
class Triton(unittest.TestCase):
    def run_program(self, program, ranks, **environment):
        # Triton reads the source of a kernel from a file.
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(KERNELS + program)
            file.flush()
            return support.finish(
                support.start_ranks(
                    [sys.executable, file.name], ranks, **environment
                )
            )

    @unittest.skipIf(os.path.exists("/dev/nvidia0"), "there is a GPU")
    @unittest.skipIf(os.path.exists("/dev/kfd"), "there is a GPU")
    def test_a_launch_without_a_gpu_says_what_to_set(self):
        codes, texts = self.run_program("poll[(1,)](flag)", 1)
        self.assertEqual(codes, [1])
        self.assertIn("Set TRITON_INTERPRET=1", texts[0])

    def test_a_wait_that_nobody_ends_has_a_deadline(self):
        codes, texts = self.run_program(
            """
if ctx.get_rank() == 0:
    os.environ["IRIS_TIMEOUT_MS"] = "500"
    poll[(1,)](flag)
ctx.barrier()
""",
            2,
            TRITON_INTERPRET="1",
        )
        self.assertEqual(codes, [1, 1])
        self.assertRegex(texts[0], r"poll\(\) has waited .* rank 0's heap")
        self.assertRegex(texts[1], "rank 0 .* left the job: .*WaitError")

    def test_a_wait_for_a_rank_that_raises_ends(self):
        codes, texts = self.run_program(
            """
if ctx.get_rank() == 0: raise KeyError("of rank 0")
wait[(1,)](flag)
""",
            2,
            TRITON_INTERPRET="1",
        )
        self.assertEqual(codes, [1, 1])
        self.assertIn("rank 0 was lost while instance (0, 0, 0)", texts[1])

    def test_tiles_go_to_peers_and_come_from_them(self):
        codes, texts = self.run_program(
            """
import iris_c.triton as it

@triton.jit
def move(x, out, there, me, peer, ranks, bases, HOW: tl.constexpr):
    m, n = tl.program_id(0), tl.program_id(1)
    if HOW == "put":
        it.put_tile(x, out, m, n, 5, 7, 7, 9, me, peer, bases, 4, 4)
    elif HOW == "get":
        it.get_tile(x, out, m, n, 5, 7, 7, 9, peer, me, bases, 4, 4)
    elif HOW == "pointers":
        value = it.load_tile(x, m, n, 5, 7, 7, 1, me, peer, bases, 4, 4)
        places, mask = it.tile_pointers(out, n, m, 7, 5, 9, 1, 4, 4)
        tl.store(places, value, mask=mask)
    else:
        value = it.load_tile(x, m, n, 5, 7, 7, 1, me, peer, bases, 4, 4)
        it.store_tile(out, value, n, m, 7, 5, 9, 1, me, me, bases, 4, 4)
    it.atomic_sub(there, 2, me, peer, bases)

rank, ranks = ctx.get_rank(), ctx.get_num_ranks()
bases, peer = ctx.get_heap_bases(), (rank + 1) % ranks
x = ctx.arange(100 * rank, 100 * rank + 35).reshape(5, 7)
count = ctx.zeros(1, dtype="int64")
for how in "put", "get", "load", "pointers":
    out = ctx.full((8, 9), -1)
    ctx.barrier()
    move[(2, 2)](x, out, count, rank, peer, ranks, bases, how)
    ctx.barrier()
    other = torch.arange(35).reshape(5, 7) + 100 * peer
    expected = torch.full((8, 9), -1)
    if how in ("load", "pointers"):
        # Block (m, n) of a matrix comes to be block (n, m) of the other.
        block = torch.zeros(8, 8, dtype=torch.int64)
        block[:5, :7] = other
        turned = torch.zeros(8, 8, dtype=torch.int64)
        for m in range(2):
            for n in range(2):
                turned[4*n:4*n+4, 4*m:4*m+4] = block[4*m:4*m+4, 4*n:4*n+4]
        expected[:7, :5] = turned[:7, :5]
    else:
        expected[:5, :7] = other
    assert out.equal(expected), (how, out, expected)
assert count.item() == -32, count
ctx.barrier()
""",
            2,
            TRITON_INTERPRET="1",
        )
        self.assertEqual(codes, [0, 0], texts)

    def test_what_kernels_push_is_there_behind_a_device_barrier(self):
        """aiter's pull request 4856: an all_gather by pushes read old values."""
        codes, texts = self.run_program(
            """
import iris_c.triton as it

@triton.jit
def push(shard, out, me, ranks, bases, COUNT: tl.constexpr):
    lanes = tl.program_id(0) * 64 + tl.arange(0, 64)
    for peer in range(ranks):
        it.put(shard + lanes, out + me * COUNT + lanes, me, peer, bases,
               mask=lanes < COUNT)

rank, ranks = ctx.get_rank(), ctx.get_num_ranks()
bases, count = ctx.get_heap_bases(), 130
shard = ctx.zeros(count, dtype="int32")
out = ctx.full((ranks, count), -1, dtype="int32")
place = torch.arange(count, dtype=torch.int32, device=out.device)
for turn in range(1, 11):
    shard.copy_(place + 1000 * rank + 10000 * turn)
    push[(3,)](shard, out, rank, ranks, bases, count)
    ctx.device_barrier()
    for peer in range(ranks):
        wanted = place + 1000 * peer + 10000 * turn
        assert out[peer].equal(wanted), (turn, peer, out[peer])
    ctx.device_barrier()
ctx.barrier()
""",
            3,
            TRITON_INTERPRET="1",
        )
        self.assertEqual(codes, [0, 0, 0], texts)

    def test_events_of_kernels_are_in_the_trace(self):
        codes, texts = self.run_program(
            """
import iris_c.triton as it, tempfile

@triton.jit
def traced(x, context, peer, bases, me):
    own = it.trace_begin(context, 2050, me, x)
    slot = it.trace_begin(context, 1, peer, x + 3, 12)
    it.store(x + 3 + tl.arange(0, 4), 1, me, peer, bases)
    it.trace_end(context, slot)
    it.trace_end(context, own)

rank, ranks = ctx.get_rank(), ctx.get_num_ranks()
peer, context = (rank + 1) % ranks, ctx.get_device_context()
x, bases = ctx.zeros(8, dtype="int32"), ctx.get_heap_bases()
traced[(3,)](x, context, peer, bases, rank)  # tracing is not enabled
ctx.tracing.enable(5)
ctx.tracing.name(2050, "whole")
traced[(3,)](x, context, peer, bases, rank)
counts = ctx.tracing.counts()
assert (counts["device_events"], counts["dropped"]) == (5, 1), counts
with tempfile.TemporaryDirectory() as folder:
    found = ctx.tracing.export(folder + "/t.json")["traceEvents"]
stores = [e for e in found if e["name"] == "store"]
whole = [e for e in found if e["name"] == "whole"]
assert len(stores) == 2 and len(whole) == 3, found
for store, around in zip(stores, whole):
    args = store["args"]
    assert args["target_rank"] == peer and args["payload_size"] == 12, args
    assert int(args["address"], 16) == x.data_ptr() + 12, args
    assert store["dur"] > 0 and around["ts"] <= store["ts"], found
    assert around["ts"] + around["dur"] >= store["ts"] + store["dur"], found
    assert around["args"]["program_id"] == args["program_id"], found
ctx.barrier()
""",
            2,
            TRITON_INTERPRET="1",
        )
        self.assertEqual(codes, [0, 0], texts)

    def test_the_example_computes_and_communicates(self):
        here = os.path.dirname(os.path.abspath(__file__))
        program = os.path.join(here, "../../python/examples/triton_kernels.py")
        for ranks in 1, 2, 3:
            codes, texts = support.finish(
                support.start_ranks([sys.executable, program], ranks,
                                    TRITON_INTERPRET="1",
                                    IRIS_LOG_LEVEL="info")
            )
            self.assertEqual(codes, [0] * ranks, texts)
            for name in "all_reduce", "gather_product", "experts":
                self.assertIn(f"{name} is right", texts[0])

    def test_a_barrier_of_ranks_waits_for_the_last(self):
        """Each rank is late once; a rank that passes early reads an old value."""
        codes, texts = self.run_program(
            """
import iris_c.triton as it, time

@triton.jit
def meet(x, words, turn, me, ranks, bases, found):
    x += turn * ranks  # a rank that goes on writes the next turn's
    it.store(x + me, turn, me, (me + 1) % ranks, bases)
    it.rank_barrier(words, turn, me, ranks, bases)
    before = (me + ranks - 1) % ranks
    tl.store(found, tl.load(x + before))

rank, ranks = ctx.get_rank(), ctx.get_num_ranks()
x, words = ctx.zeros(7, ranks, dtype="int32"), ctx.zeros(ranks, dtype="int32")
found = ctx.zeros(1, dtype="int32")
for turn in range(1, 7):
    if turn % ranks == rank: time.sleep(0.05)
    meet[(1,)](x, words, turn, rank, ranks, ctx.get_heap_bases(), found)
    assert found.item() == turn, (turn, found)
ctx.barrier()
""",
            3,
            TRITON_INTERPRET="1",
        )
        self.assertEqual(codes, [0, 0, 0], texts)

    def test_all_functions_compile_for_gpus_that_are_not_there(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with tempfile.TemporaryDirectory() as cache:
            environment = dict(os.environ, TRITON_CACHE_DIR=cache)
            environment.pop("TRITON_INTERPRET", None)
            for target in ("cuda", "hip"):
                ran = subprocess.run(
                    [sys.executable, "compile_triton.py", target],
                    cwd=here, env=environment, text=True, capture_output=True,
                )
                self.assertEqual(ran.stdout.split(),
                                 ["traced", "tiles", "collectives", "all_else"], ran.stderr)


if __name__ == "__main__":
    unittest.main()
