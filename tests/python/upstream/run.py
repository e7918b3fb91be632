# SPDX-License-Identifier: MIT
"""Runs test modules of this folder in a rank of iris_c.upstream:

    python -m iris_c.upstream -n 1 run.py one_rank
    python -m iris_c.upstream -n 2 run.py two_ranks
"""

import sys
import unittest

import torch.distributed as dist

MODULES = {
    "one_rank": ["test_brain_floats", "test_aggregates", "test_gluon",
                 "test_clocks", "test_cuda", "test_graphs", "test_polls",
                 "test_imports", "test_launch", "test_libdevice",
                 "test_lockstep", "test_nvidia", "test_sharing"],
    "two_ranks": ["test_atomics", "test_creation", "test_process_groups",
                  "test_heap"],
}


def main() -> int:
    dist.init_process_group("nccl")
    suite = unittest.defaultTestLoader.loadTestsFromNames(
        MODULES[sys.argv[1]])
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    dist.destroy_process_group()
    return 0 if result.wasSuccessful() and result.testsRun else 1


sys.exit(main())
