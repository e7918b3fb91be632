# SPDX-License-Identifier: MIT
"""One rank: python -m iris_c.upstream.rank PROGRAM|pytest ARGUMENTS."""

import gc
import importlib.metadata
import os
import runpy
import sys
from typing import List

from . import TRITON_VERSIONS, device, imports, lockstep, results


def _check_triton() -> None:
    """Reports at once a wrong version of Triton, which otherwise causes an
    odd error in some kernel."""
    try:
        found = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        sys.exit("iris_c.upstream: Triton is not installed: pip install"
                 f" triton=={TRITON_VERSIONS[0]}")
    if found not in TRITON_VERSIONS:
        sys.exit(f"iris_c.upstream: Triton {found} is installed, and this"
                 f" package supplies what the interpreter of"
                 f" {' or '.join(TRITON_VERSIONS)} lacks; --any-triton tries"
                 " it all the same")


class _Quicker:
    """A plugin of pytest. Upstream's tests call gc.collect() at their end.
    To scan all objects of torch and Triton each time would take longer than
    most of the tests, so it excludes the objects that exist before the first
    test."""

    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()

    def pytest_sessionfinish(self) -> None:
        gc.unfreeze()


def _run_pytest(arguments: List[str]) -> int:
    """Upstream's tests expect an existing process group."""
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl")
    import pytest

    try:
        plugins = [_Quicker(), *results.plugins(), *lockstep.plugins()]
        return int(pytest.main(arguments, plugins=plugins))
    finally:
        dist.destroy_process_group()


def main(arguments: List[str]) -> int:
    any_triton = arguments[:1] == ["--any-triton"]
    program, *rest = arguments[1:] if any_triton else arguments
    imports.install()
    if device() != "gpu" and not any_triton:
        _check_triton()
    if program == "pytest":
        return _run_pytest(rest)
    sys.argv = [program, *rest]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
