# SPDX-License-Identifier: MIT
"""Rank 1 ends while a kernel of rank 0 waits for it: the kernel ends, too.

    python -m iris_c.upstream -n 2 lose_peer.py
"""

import os

import iris_c
import torch
import triton
import triton.language as tl
from iris_c.upstream.polls import PeerLostError


@triton.jit
def wait(flag):
    while tl.atomic_cas(flag, 1, 1, sem="acquire", scope="sys") != 1:
        pass


def main():
    ctx = iris_c.iris(1 << 20, arrays="torch")
    flag = ctx.zeros(1, dtype=torch.int32)
    ctx.barrier()
    if ctx.get_rank() == 1:
        os._exit(0)
    try:
        wait[(1,)](flag)
    except PeerLostError as error:
        print(f"ended: {error}", flush=True)
        os._exit(0)


main()
