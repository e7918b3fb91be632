# SPDX-License-Identifier: MIT
"""What the tests of the Python package share: a context, and which arrays."""

import functools
import gc
import os
import subprocess
import sys
import unittest
import unittest.mock
import uuid

import iris_c

#: "numpy" or "torch": what tensors are in this run.
ARRAYS = os.environ.get("IRIS_TEST_ARRAYS", "numpy")


def needs_torch(test):
    """Leaves a test out where tensors are NumPy's."""
    return unittest.skipUnless(ARRAYS == "torch", "a test of torch")(test)


def needs_ranks(count):
    """Leaves a test out where the job has fewer ranks."""
    few = int(os.environ.get("IRIS_NUM_RANKS", "1")) < count
    return unittest.skipIf(few, f"a test of {count} ranks")


@functools.lru_cache(maxsize=None)
def context():
    """The context that all tests of one process share."""
    return iris_c.iris(heap_size=4 << 20, arrays=ARRAYS)


def library():
    """numpy or torch itself."""
    return __import__(ARRAYS)


def address(array):
    """Where an array's first element is."""
    return array.data_ptr() if ARRAYS == "torch" else array.ctypes.data


def plain(array):
    """An array's elements as Python's numbers."""
    return array.tolist()


def dtype_name(array):
    return str(array.dtype).split(".")[-1]


def collect():
    """Frees what was let go on all ranks."""
    gc.collect()
    context().barrier()


class TestCase(unittest.TestCase):
    """A test of all ranks, which begin and end together."""

    def setUp(self):
        self.ctx = context()
        self.rank = self.ctx.get_rank()
        self.ranks = self.ctx.get_num_ranks()
        self.ctx.barrier()

    def tearDown(self):
        self.ctx.barrier()


def start(program, ranks=1):
    """Processes of a program that are the ranks of a job of their own, with
    pipes to both ends."""
    begin = f"""
import gc, os, signal, sys, {ARRAYS}, iris_c
def iris(): return iris_c.iris(1 << 20, arrays={ARRAYS!r})
"""
    return start_ranks([sys.executable, "-c", begin + program], ranks)


def start_ranks(command, ranks, **environment):
    """The same of any command."""
    job = f"test-python-{uuid.uuid4().hex}"
    return [
        start_process(
            command,
            IRIS_RANK=str(rank),
            IRIS_NUM_RANKS=str(ranks),
            IRIS_JOB_ID=job,
            **environment,
        )
        for rank in range(ranks)
    ]


def torchrun(program, ranks):
    """The status and the text of a program that torchrun starts."""
    command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run"]
    command += ["--standalone", "--nproc-per-node", str(ranks), program]
    statuses, texts = finish([start_process(command)])
    return statuses[0], texts[0]


def has_backends():
    """Whether torch takes backends that are written in Python."""
    if ARRAYS != "torch":
        return False
    import torch.distributed as dist

    return hasattr(dist.Backend, "backend_capability")


def on_nodes(count):
    """Pretends that the ranks are on several nodes."""
    return unittest.mock.patch.dict(os.environ, {"IRIS_NODES": count})


def start_process(command, **environment):
    """A process with pipes to both ends."""
    return subprocess.Popen(
        command,
        env=dict(os.environ, **environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )


def finish(processes):
    """The exit statuses and the texts of processes."""
    texts = [process.communicate()[0] for process in processes]
    return [process.returncode for process in processes], texts
