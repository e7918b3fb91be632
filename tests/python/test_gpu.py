# SPDX-License-Identifier: MIT
"""On a GPU: torch's streams and graphs, and memory that torch still uses."""

import unittest

import support


def needs_gpu(test):
    try:
        import torch

        found = support.ARRAYS == "torch" and torch.cuda.is_available()
    except ImportError:
        found = False
    return unittest.skipUnless(found, "a test of a GPU")(test)


@needs_gpu
class Gpu(support.TestCase):
    def test_tensors_are_on_the_gpu(self):
        array = self.ctx.arange(5)
        self.assertEqual(array.device, self.ctx.get_device())
        self.assertEqual((array * 2).tolist(), [0, 2, 4, 6, 8])

    def test_out_is_filled_in_the_order_of_torchs_stream(self):
        import torch

        stream = torch.cuda.Stream()
        out = self.ctx.zeros(1 << 18)
        with torch.cuda.stream(stream):
            for value in range(20):
                out.add_(100)
                self.ctx.full((1 << 18,), value, out=out, dtype=out.dtype)
                out.mul_(2)
        self.ctx.barrier(stream)
        self.assertEqual(float(out.min()), 38)
        self.assertEqual(float(out.max()), 38)

    def test_a_device_barrier_orders_torchs_work_between_ranks(self):
        array = self.ctx.zeros(1 << 16)
        peer = self.ctx.as_remote(array, (self.rank + 1) % self.ranks)
        for value in range(1, 5):
            peer.fill_(value)
            self.ctx.device_barrier()
            seen = array.clone()
            self.ctx.device_barrier()
            self.assertEqual(set(seen.unique().tolist()), {value})

    def test_a_graph_has_the_device_barrier(self):
        import torch

        array = self.ctx.zeros(16)
        peer = self.ctx.as_remote(array, (self.rank + 1) % self.ranks)
        self.ctx.device_barrier()
        self.ctx.barrier()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            peer.add_(1)
            self.ctx.device_barrier()
            doubled = array * 2
            self.ctx.device_barrier()
        for count in range(1, 4):
            graph.replay()
            self.assertEqual(doubled.tolist(), [2.0 * count] * 16)
        self.ctx.barrier()

    def test_a_graph_has_a_fused_operation_on_torchs_stream(self):
        import torch

        ops, ranks, rank = self.ctx.ops, self.ranks, self.rank
        a = self.ctx.zeros(32 * ranks, 16)
        b = torch.eye(16, device=a.device)
        out = torch.empty(32, 16, device=a.device)
        workspace = ops.matmul_reduce_scatter_preamble(out, a, b)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for value in range(1, 4):
                a.fill_(value + rank)
                ops.matmul_reduce_scatter(out, a, b, workspace=workspace)
                seen = out.clone()
        self.ctx.barrier(stream)
        total = sum(range(3, 3 + ranks))
        self.assertEqual(set(seen.unique().tolist()), {float(total)})
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            a.add_(1)
            ops.matmul_reduce_scatter(out, a, b, workspace=workspace)
        for replay in range(1, 4):
            graph.replay()
            expected = float(total + replay * ranks)
            self.assertEqual(set(out.unique().tolist()), {expected})
        self.ctx.barrier()
        workspace.destroy()

    def test_memory_that_torch_uses_yet_is_not_given_out(self):
        import torch

        for _ in range(20):
            array = self.ctx.ones(1 << 18)
            total = torch.zeros((), device=array.device)
            for _ in range(30):
                total += array.sum()
            del array
            self.ctx.zeros(1 << 18)
            self.assertEqual(float(total), 30.0 * (1 << 18))

    def test_triton_kernels_write_to_peers(self):
        try:
            from triton_kernel import store
        except ImportError:
            self.skipTest("Triton is not installed")
        array = self.ctx.zeros(64)
        bases = self.ctx.get_heap_bases()
        self.ctx.barrier()
        store[(1,)](array, bases, self.rank, (self.rank + 1) % self.ranks)
        self.ctx.barrier()
        self.assertEqual(
            array.tolist(), [(self.rank - 1) % self.ranks + 1.0] * 64
        )


if __name__ == "__main__":
    unittest.main()
