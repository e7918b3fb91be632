# SPDX-License-Identifier: MIT
"""Programs of torch with this backend and with gloo."""

import os
import unittest

import support

FOLDER = os.path.dirname(os.path.abspath(__file__))


@unittest.skipUnless(support.has_backends(), "a test of torch 2.1 or newer")
class TorchPrograms(unittest.TestCase):
    def run_program(self, name, ranks, nodes="1"):
        with self.subTest(ranks=ranks, nodes=nodes), support.on_nodes(nodes):
            program = os.path.join(FOLDER, name)
            status, text = support.torchrun(program, ranks)
            self.assertEqual(status, 0, text)
            self.assertIn("passed: ", text)

    def test_every_call_gives_what_gloo_gives(self):
        self.run_program("torch_calls.py", 2)
        self.run_program("torch_calls.py", 4, nodes="2")

    def test_trainings_have_the_losses_of_gloo(self):
        self.run_program("torch_training.py", 2)
        self.run_program("torch_training.py", 4, nodes="2")

    def test_symmetric_memory_is_as_torch_has_it(self):
        self.run_program("torch_symm_mem.py", 3)


if __name__ == "__main__":
    unittest.main()
