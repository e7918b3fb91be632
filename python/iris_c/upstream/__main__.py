# SPDX-License-Identifier: MIT
"""python -m iris_c.upstream: starts the ranks of a program and waits."""

import argparse
import glob
import importlib.machinery
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Optional

from . import DEVICE_VARIABLE, STAND_IN_VARIABLE, TRITON_VERSIONS
from .lockstep import JOB_VARIABLE
from .platform_calls import SIMULATED_CUS

HERE = Path(__file__).resolve().parent

#: The time in which ranks must end by themselves after one of them has failed.
GRACE_S = 5.0


def _arguments(words: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m iris_c.upstream",
        description="Runs a program written for ROCm's Iris, or its tests, on"
        " this library. Without a GPU, Triton interprets its kernels.",
        epilog="A program that starts its own ranks takes -n 1 and its own"
        " option for their number.",
    )
    parser.add_argument("-n", type=int, default=1, metavar="RANKS",
                        help="ranks to start (1)")
    parser.add_argument("--upstream", default=os.environ.get("IRIS_UPSTREAM"),
                        metavar="FOLDER",
                        help="checkout of upstream (IRIS_UPSTREAM); else the"
                        " installed package iris")
    parser.add_argument("--tritonblas", default=os.environ.get("TRITONBLAS"),
                        metavar="FOLDER",
                        help="checkout of tritonBLAS, which upstream imports,"
                        " or the folder that holds the package (TRITONBLAS);"
                        " else the installed one")
    parser.add_argument("--stand-in", action="store_true",
                        help="say nothing where the names of tritonBLAS, or of"
                        " origami, which that imports, are stood in for: it is"
                        " done where they are not installed")
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"),
                        default="auto",
                        help="what kernels run on; auto: a GPU if there is one")
    parser.add_argument("--any-triton", action="store_true",
                        help="do not ask for Triton "
                        + " or ".join(TRITON_VERSIONS))
    parser.add_argument("program", help="a Python file, or pytest")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...",
                        help="the program's own")
    given = parser.parse_args(words)
    if given.n < 1:
        parser.error(f"-n {given.n}: takes 1 rank or more")
    return given


def _device(asked: str) -> str:
    """The target of kernels: "cpu", "amd" or "nvidia"."""
    amd = os.path.exists("/dev/kfd")
    nvidia = bool(glob.glob("/dev/nvidia[0-9]*"))
    if asked == "cpu" or (asked == "auto" and not amd and not nvidia):
        return "cpu"
    return "amd" if amd or not nvidia else "nvidia"


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def environment(given: argparse.Namespace) -> Dict[str, str]:
    """The environment variables that all ranks get."""
    device = _device(given.device)
    path = [str(HERE / "site"), str(HERE.parents[1])]
    if given.upstream:
        path.append(os.path.abspath(given.upstream))
    if given.tritonblas:
        inner = os.path.join(given.tritonblas, "include")
        path.append(os.path.abspath(
            inner if os.path.isdir(inner) else given.tritonblas))
    path += filter(None, [os.environ.get("PYTHONPATH")])
    found = dict(os.environ, **{
        DEVICE_VARIABLE: device,
        "PYTHONPATH": os.pathsep.join(path),
    })
    if device == "cpu":
        found["TRITON_INTERPRET"] = "1"
        found.setdefault("IRIS_BACKEND", "sim")
        found.setdefault("IRIS_SIM_DEVICE", "cpu")
        found.setdefault("IRIS_SIM_CUS", str(SIMULATED_CUS))
        # Ranks share the cores, and each rank's torch would start a thread for
        # each core.
        found.setdefault("OMP_NUM_THREADS", "1")
    found[STAND_IN_VARIABLE] = ",".join(_stand_ins(found))
    return found


def _stand_ins(environment: Dict[str, str]) -> List[str]:
    """The modules that upstream or tritonBLAS imports and that are not installed."""
    folder = _place("tritonblas", environment)
    if folder is None:
        return ["tritonblas"]
    needs = (folder / "origami.py").exists()
    return ["origami"] if needs and _place("origami", environment) is None else []


def _place(module: str, environment: Dict[str, str]) -> Optional[Path]:
    """The folder of a module that ranks would import. None: ranks do not have it."""
    path = environment["PYTHONPATH"].split(os.pathsep) + sys.path
    spec = importlib.machinery.PathFinder.find_spec(module, path)
    return Path(spec.origin).parent if spec and spec.origin else None


def _is_upstreams(program: str) -> bool:
    """Whether a program imports upstream's package."""
    if program == "pytest":
        return True
    try:
        text = Path(program).read_text()
    except (OSError, UnicodeError):
        return False
    return bool(re.search(r"^\s*(import|from) iris\b", text, re.MULTILINE))


def missing(given: argparse.Namespace, environment: Dict[str, str]) -> str:
    """A message about replaced modules that the program may call. "": no message."""
    stand_ins = environment[STAND_IN_VARIABLE]
    if given.stand_in or not stand_ins or not _is_upstreams(given.program):
        return ""
    return (f"{stand_ins} is not installed: its names are stood in for, and a"
            " program that calls it fails then (--stand-in leaves this line"
            " out)")


def _places(given: argparse.Namespace) -> List[Dict[str, str]]:
    """The environment variables that differ between ranks, as torchrun sets
    them. A single process gets none of them: the program may start its own
    ranks, and would take RANK for that of a launcher. alone.py serves a
    program that does not."""
    if given.n == 1:
        return [{}]
    port = str(_free_port())
    return [
        {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(given.n),
            "LOCAL_WORLD_SIZE": str(given.n),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        for rank in range(given.n)
    ]


def _start(
    given: argparse.Namespace, shared: Dict[str, str]
) -> List["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "iris_c.upstream.rank"]
    if given.any_triton:
        command.append("--any-triton")
    command += [given.program, *given.arguments]
    return [
        subprocess.Popen(command, env={**shared, **place})
        for place in _places(given)
    ]


def _end(ranks: List["subprocess.Popen[bytes]"]) -> None:
    """Ends the ranks that wait for a failed one."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for rank in ranks:
            if rank.poll() is None:
                rank.send_signal(number)
        _wait(ranks, GRACE_S)


def _wait(ranks: List["subprocess.Popen[bytes]"], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while any(rank.poll() is None for rank in ranks):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def run(given: argparse.Namespace) -> int:
    """Starts the ranks. Returns the status of the first one that failed, else 0."""
    shared = environment(given)
    lacks = missing(given, shared)
    if lacks:
        print(f"iris_c.upstream: {lacks}", file=sys.stderr, flush=True)
    # Without this the ranks would continue after the launcher is told to end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda signum, _: sys.exit(128 + signum))
    with tempfile.TemporaryDirectory(prefix="iris_c.upstream-") as folder:
        if given.n > 1:
            shared[JOB_VARIABLE] = folder
        return _run_ranks(_start(given, shared))


def _run_ranks(ranks: List["subprocess.Popen[bytes]"]) -> int:
    failed = 0
    try:
        while any(rank.poll() is None for rank in ranks):
            codes = [rank.returncode for rank in ranks if rank.returncode]
            if codes and not _wait(ranks, GRACE_S):
                failed = codes[0]
                break
            time.sleep(0.02)
    finally:
        _end(ranks)
    failed = failed or next((r.returncode for r in ranks if r.returncode), 0)
    return failed if failed >= 0 else 128 - failed


if __name__ == "__main__":
    sys.exit(run(_arguments()))
