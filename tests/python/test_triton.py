# SPDX-License-Identifier: MIT
"""Triton's kernels in plain programs without a GPU."""

import importlib.util
import os
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


@unittest.skipUnless(importlib.util.find_spec("triton"), "a test of Triton")
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


if __name__ == "__main__":
    unittest.main()
