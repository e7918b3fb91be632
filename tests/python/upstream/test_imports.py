# SPDX-License-Identifier: MIT
"""What runs in the processes that a rank starts."""

import subprocess
import sys
import unittest


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True,
                          capture_output=True, text=True).stdout.strip()


class Imports(unittest.TestCase):
    def test_a_rank_that_a_program_starts_is_served(self) -> None:
        self.assertEqual(
            run("import torch; print(torch.ones(1, device='cuda').device)"),
            "cuda:0")

    def test_upstreams_calls_of_hip_are_ours(self) -> None:
        import importlib

        calls = importlib.import_module("iris_c.upstream.platform_calls")
        self.assertEqual(calls.count_devices(), 1)
        with self.assertRaisesRegex(RuntimeError, "there is no GPU"):
            calls.export_dmabuf_handle(0, 1)
