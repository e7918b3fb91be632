# SPDX-License-Identifier: MIT
"""How contexts and processes end. Each test runs programs of its own."""

import unittest

import support


def run(program, ranks=1):
    """The exit statuses and the texts of a program's ranks."""
    return support.finish(support.start(program, ranks))


class End(unittest.TestCase):
    def assert_quiet(self, program, ranks=1):
        self.assertEqual(run(program, ranks), ([0] * ranks, [""] * ranks))

    def test_tensors_may_be_there_when_python_ends(self):
        self.assert_quiet("ctx = iris(); x = ctx.ones(5); y = x[2:]", 2)

    def test_a_context_need_not_be_kept_or_finalized(self):
        self.assert_quiet("x = iris().ones(5); assert x[1] == 1", 2)

    def test_tensors_outlive_the_end_of_their_context(self):
        self.assert_quiet(
            """
ctx = iris()
x = ctx.full((5,), 3)
ctx.finalize()
ctx.finalize()
x += 1
assert x.tolist() == [4] * 5
try: ctx.barrier()
except iris_c.StateError as error: assert "finalized" in str(error)
else: raise AssertionError
ctx = iris()
y = ctx.ones(5)
assert x.tolist() == [4] * 5
""",
            2,
        )

    def test_contexts_end_in_any_order(self):
        self.assert_quiet(
            """
contexts = [iris() for _ in range(3)]
tensors = [context.ones(3) for context in contexts]
rank = contexts[0].get_rank()
del tensors[rank]
contexts[1].finalize()
del contexts[rank]
gc.collect()
""",
            2,
        )

    def test_a_context_without_tensors_leaves_at_once(self):
        self.assert_quiet(
            """
with iris() as ctx:
    x = [ctx.ones(5)]
    x.append(x)
    del x
assert not ctx._session.is_own()
"""
        )

    def test_a_child_process_is_told_that_the_context_is_not_its_own(self):
        self.assert_quiet(
            """
import warnings
# Python warns of a fork beside threads, such as the library's.
warnings.simplefilter("ignore", DeprecationWarning)
ctx = iris()
x = ctx.ones(5)
child = os.fork()
try:
    ctx.barrier()
    assert child
except iris_c.StateError as error:
    assert not child and "forked" in str(error)
if not child: sys.exit()
assert os.waitpid(child, 0)[1] == 0
ctx.barrier()
assert x.tolist() == [1] * 5
"""
        )

    def test_heap_bases_files_are_written_in_simulation_or_when_asked(self):
        self.assert_quiet(
            """
import tempfile
for name in list(os.environ):
    if name.startswith(("IRIS_HEAP_BASES", "IRIS_SIMULATION")):
        del os.environ[name]
def files(**settings):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        iris_c.iris(1 << 20, **settings).finalize()
        os.chdir("/")
        return os.listdir(folder)
assert files() == [], files()
assert files(heap_bases_prefix="mine") == ["mine_rank_0_heap_bases.json"]
os.environ["IRIS_SIMULATION"] = "1"
assert files() == ["iris_rank_0_heap_bases.json"]
"""
        )

    def test_a_rank_that_raises_ends_its_peers_wait(self):
        codes, texts = run(
            """
ctx = iris()
x = ctx.ones(5)
if ctx.get_rank() == 1: raise KeyError("of rank 1")
ctx.barrier()
""",
            3,
        )
        self.assertEqual(codes, [1, 1, 1])
        self.assertIn("KeyError: 'of rank 1'", texts[1])
        for text in (texts[0], texts[2]):
            self.assertRegex(
                text,
                r"PeerLostError: .*rank 1 \(pid \d+\) left the job: KeyError:"
                " 'of rank 1'",
            )

    def test_a_with_block_tells_its_exception_to_peers(self):
        codes, texts = run(
            """
with iris() as ctx:
    if ctx.get_rank() == 1: raise ValueError("two\\nlines")
    ctx.barrier()
""",
            2,
        )
        self.assertEqual(codes, [1, 1])
        self.assertIn("left the job: ValueError: two lines;", texts[0])

    def test_a_rank_that_ends_early_is_lost_to_its_peers(self):
        for end in ("sys.exit(0)", "sys.exit(3)"):
            codes, texts = run(
                f"""
ctx = iris()
x = ctx.ones(5)
if ctx.get_rank() == 1: {end}
ctx.barrier()
""",
                3,
            )
            self.assertEqual(codes, [1, 1, 1])
            self.assertNotIn("Traceback", texts[1])
            self.assertRegex(
                texts[1],
                "at the program's end: .*rank 0 called iris_barrier\\(\\)",
            )
            for text in (texts[0], texts[2]):
                self.assertRegex(
                    text,
                    "PeerLostError: .*rank 1 .* left the job: its program has"
                    " ended; this rank called iris_barrier",
                )

    def test_a_preamble_of_some_ranks_ends_by_the_deadline(self):
        """Upstream's issue 464: the others use the workspace, and all hang."""
        codes, texts = run(
            """
ctx = iris_c.iris(1 << 20, arrays="numpy", timeout_ms=1000)
out, a, b = [ctx.ones(4, 4) for _ in range(3)]
workspace = ctx.ops.matmul_all_reduce_preamble(out, a, b)
ctx.ops.matmul_all_reduce(out, a, b, workspace=workspace)
ctx.barrier()
if ctx.get_rank() == 0:
    ctx.ops.matmul_all_reduce_preamble(out, a, b, None, workspace)
else:
    ctx.ops.matmul_all_reduce(out, a, b, workspace=workspace)
""",
            2,
        )
        self.assertEqual(codes, [1, 1], texts)
        ends = [
            "DeadlineError: .*rank 1 has not come to"
            " iris_matmul_all_reduce_preamble",
            "DeadlineError: .*the stream is not done",
        ]
        # Both deadlines end at one time: the second rank may hear of the first one's end
        # before its own deadline, in that rank's words.
        for rank, text in enumerate(texts):
            heard = f"PeerLostError: .*rank {1 - rank} .*{ends[1 - rank]}"
            self.assertRegex(text, f"{ends[rank]}|{heard}")


if __name__ == "__main__":
    unittest.main()
