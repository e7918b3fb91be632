# SPDX-License-Identifier: MIT
"""Kernels of Triton that compute and communicate: an all_reduce, a product of
matrices with an all_gather, and the dispatch of tokens to experts.

    python python/examples/triton_kernels.py            4 processes of its own
    torchrun --nproc-per-node 4 python/examples/triton_kernels.py

Without a GPU, TRITON_INTERPRET=1 makes Triton interpret the kernels. With
--times and torchrun the program prints how long each takes, and torch's own calls
for the same by NCCL (gloo without a GPU).
"""

import os
import sys

import torch
import torch.distributed as dist
import triton
import triton.language as tl

import iris_c
import iris_c.triton as it

BLOCK = 16 if os.environ.get("TRITON_INTERPRET") else 64


@triton.jit
def all_reduce(x, out, words, turn, rows, cols, rank, ranks, bases,
               BLOCK: tl.constexpr):
    """Instance i of rank r sums block i * ranks + r and writes it to all."""
    i, across = tl.program_id(0), tl.cdiv(cols, BLOCK)
    it.rank_barrier(words + i * ranks, 2 * turn - 1, rank, ranks, bases)
    block = i * ranks + rank
    m, n = block // across, block % across
    total = it.reduce_tile(x, m, n, rows, cols, cols, 1, rank, ranks, bases,
                           BLOCK, BLOCK)
    it.broadcast_tile(out, total, m, n, rows, cols, cols, 1, rank, ranks,
                      bases, BLOCK, BLOCK)
    it.rank_barrier(words + i * ranks, 2 * turn, rank, ranks, bases)


@triton.jit
def gather_product(a, b, whole, out, words, turn, rows, inner, cols, rank,
                   ranks, bases, BLOCK: tl.constexpr):
    """Each rank has `rows` rows of A. The first instances send them to all, and
    the others multiply: each waits for the rows of its block only."""
    down, deep = tl.cdiv(rows, BLOCK), tl.cdiv(inner, BLOCK)
    across, i = tl.cdiv(cols, BLOCK), tl.program_id(0)
    if i < down * deep:
        m, k = i // deep, i % deep
        tile = it.load_tile(a, m, k, rows, inner, inner, 1, rank, rank, bases,
                            BLOCK, BLOCK)
        it.broadcast_tile(whole + rank * rows * inner, tile, m, k, rows, inner,
                          inner, 1, rank, ranks, bases, BLOCK, BLOCK)
        for peer in range(ranks):
            it.signal(words + rank * down + m, 1, rank, peer, bases)
    else:
        block = i - down * deep
        # The rank's own rows are there first.
        owner = (rank + block // (down * across)) % ranks
        m, n = block % (down * across) // across, block % across
        it.wait(words + owner * down + m, turn * deep)
        part = whole + owner * rows * inner
        total = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(deep):
            left = it.load_tile(part, m, k, rows, inner, inner, 1, rank, rank,
                                bases, BLOCK, BLOCK)
            right = it.load_tile(b, k, n, inner, cols, cols, 1, rank, rank,
                                 bases, BLOCK, BLOCK)
            total = tl.dot(left, right, total, input_precision="ieee")
        it.store_tile(out + owner * rows * cols, total, m, n, rows, cols, cols,
                      1, rank, rank, bases, BLOCK, BLOCK)


@triton.jit
def dispatch(tokens, experts, inbox, origin, counts, width, here, space, rank,
             bases, WIDTH: tl.constexpr):
    """Instance i puts token i into the inbox of its expert, of which each rank
    has `here`, with the token's place to send the answer to."""
    i, lane = tl.program_id(0), tl.arange(0, WIDTH)
    expert = tl.load(experts + i)
    owner, expert = expert // here, expert % here
    slot = it.atomic_add(counts + expert, 1, rank, owner, bases)
    place = expert * space + slot
    it.put(tokens + i * width + lane, inbox + place * width + lane, rank,
           owner, bases, mask=lane < width)
    it.store(origin + place, rank * tl.num_programs(0) + i, rank, owner, bases)


@triton.jit
def combine(inbox, origin, counts, answers, width, here, space, per_rank, rank,
            bases, WIDTH: tl.constexpr):
    """Expert e multiplies its tokens by e + 1 and sends them back."""
    place, lane = tl.program_id(0), tl.arange(0, WIDTH)
    expert = place // space
    if place % space < tl.load(counts + expert):
        token = tl.load(origin + place)
        row = tl.load(inbox + place * width + lane, mask=lane < width)
        row *= rank * here + expert + 1
        it.store(answers + token % per_rank * width + lane, row, rank,
                 token // per_rank, bases, mask=lane < width)


class Programs:
    """The three kernels with their tensors, and a check of each result."""

    def __init__(self, ctx):
        self.ctx, self.bases = ctx, ctx.get_heap_bases()
        self.rank, self.ranks = ctx.get_rank(), ctx.get_num_ranks()
        self.size = 2 * BLOCK + 3  # not a multiple of the blocks

    def all_reduce(self):
        size = self.size
        x, out = self.ctx.randn(size, size), self.ctx.zeros(size, size)
        blocks = triton.cdiv(size, BLOCK) ** 2
        grid = triton.cdiv(blocks, self.ranks)
        words = self.ctx.zeros(grid * self.ranks, dtype=torch.int32)
        wanted = self.all_of(x).sum(0)

        def call(turn):
            all_reduce[(grid,)](x, out, words, turn, size, size, self.rank,
                                self.ranks, self.bases, BLOCK)

        def check():
            torch.testing.assert_close(out, wanted)

        return call, check, lambda: dist.all_reduce(x.clone())

    def gather_product(self):
        rows, inner, cols = BLOCK + 1, self.size, self.size - 5
        a, b = self.ctx.randn(rows, inner), self.ctx.randn(inner, cols)
        whole = self.ctx.zeros(self.ranks * rows, inner)
        out = self.ctx.zeros(self.ranks * rows, cols)
        down, deep = triton.cdiv(rows, BLOCK), triton.cdiv(inner, BLOCK)
        across = triton.cdiv(cols, BLOCK)
        words = self.ctx.zeros(self.ranks * down, dtype=torch.int32)
        wanted = self.all_of(a).reshape(-1, inner) @ b
        grid = down * deep + self.ranks * down * across

        def call(turn):
            gather_product[(grid,)](a, b, whole, out, words, turn, rows, inner,
                                    cols, self.rank, self.ranks, self.bases,
                                    BLOCK)

        def check():
            torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-4)

        def torchs():
            dist.all_gather_into_tensor(whole, a)
            torch.matmul(whole, b)

        return call, check, torchs

    def experts(self):
        count, width, here = 24, 10, 2
        space = count * self.ranks  # one expert may get all tokens
        tokens, answers = self.ctx.randn(count, width), self.ctx.zeros(count, width)
        inbox = self.ctx.zeros(here * space, width)
        origin = self.ctx.zeros(here * space, dtype=torch.int32)
        counts = self.ctx.zeros(here, dtype=torch.int32)
        chosen = self.ctx.randint(0, here * self.ranks, (count,), dtype=torch.int32)

        def call(turn):
            counts.zero_()
            self.ctx.device_barrier()
            dispatch[(count,)](tokens, chosen, inbox, origin, counts, width,
                               here, space, self.rank, self.bases, 16)
            self.ctx.device_barrier()
            combine[(here * space,)](inbox, origin, counts, answers, width,
                                     here, space, count, self.rank, self.bases,
                                     16)
            self.ctx.device_barrier()

        def check():
            wanted = tokens * (chosen + 1)[:, None]
            torch.testing.assert_close(answers, wanted)

        def torchs():
            """As many tokens for each rank, which torch does not sort here."""
            dist.all_to_all_single(answers, tokens)
            dist.all_to_all_single(answers, tokens)

        return call, check, torchs

    def all_of(self, x):
        """The ranks' tensors, by the library's own all_gather."""
        whole = torch.empty((self.ranks, *x.shape), device=x.device)
        self.ctx.ccl.all_gather(whole.reshape(-1), x.reshape(-1))
        return whole

    def run(self, name, turns):
        call, check, torchs = getattr(self, name)()
        self.ctx.barrier()
        for turn in range(1, turns + 1):
            call(turn)
            self.ctx.barrier()
            check()
        self.ctx.barrier()
        self.ctx.info(f"{name} is right")
        if "--times" in sys.argv:
            turn = iter(range(turns + 1, 1 << 30))
            ms = iris_c.do_bench(lambda: call(next(turn)), self.ctx.barrier)
            theirs = iris_c.do_bench(torchs, self.ctx.barrier)
            self.ctx.info(f"{name}: {ms:.3f} ms, torch {theirs:.3f} ms")


def main(rank=0):
    if "--times" in sys.argv:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    ctx = iris_c.iris(heap_size=1 << 26, arrays="torch")
    torch.manual_seed(7 + ctx.get_rank())
    programs = Programs(ctx)
    for name in "all_reduce", "gather_product", "experts":
        programs.run(name, 2)


if __name__ == "__main__":
    launched = ("IRIS_RANK", "RANK", "OMPI_COMM_WORLD_RANK")
    if any(name in os.environ for name in launched):
        main()
    else:
        iris_c.spawn(main, 4)
