# SPDX-License-Identifier: MIT
""""cuda" is the CPU, and a program does not see it."""

import unittest

import torch


class CudaIsCpu(unittest.TestCase):
    def test_tensors_say_the_device_they_were_asked_for(self) -> None:
        x = torch.zeros(3, device="cuda")
        self.assertEqual(str(x.device), "cuda:0")
        self.assertTrue(x.is_cuda)
        self.assertFalse(torch.zeros(3).is_cuda)
        self.assertEqual(str(torch.ones(1, device="cuda:1").device), "cuda:1")

    def test_a_default_device_is_where_tensors_are_made(self) -> None:
        torch.set_default_device("cuda")
        try:
            self.assertEqual(str(torch.zeros(3).device), "cuda:0")
            self.assertTrue(torch.tensor([1]).is_cuda)
            self.assertFalse(torch.zeros(3, device="cpu").is_cuda)
        finally:
            torch.set_default_device(None)
        with torch.device("cuda"):
            self.assertTrue(torch.ones(2).is_cuda)
        self.assertFalse(torch.ones(2).is_cuda)

    def test_what_is_computed_inherits_the_device(self) -> None:
        x = torch.ones(2, 3, device="cuda")
        for one in (x + 1, x[0], x.t(), x.T, torch.stack([x, x]),
                    x.unbind()[1], torch.empty_like(x)):
            self.assertTrue(one.is_cuda)
        self.assertFalse(x.cpu().is_cuda)
        self.assertFalse(x.to("cpu").is_cuda)
        self.assertTrue(torch.ones(2).cuda().is_cuda)
        self.assertTrue(torch.ones(2).to("cuda").is_cuda)

    def test_moving_to_the_cpu_takes_a_snapshot(self) -> None:
        x = torch.zeros(2, device="cuda")
        for moved in (x.cpu(), x.to("cpu"), x.to(device="cpu")):
            x.fill_(5)
            self.assertEqual(moved.tolist(), [0, 0])
            x.fill_(0)

    def test_moving_where_it_is_copies_nothing(self) -> None:
        x = torch.zeros(2, device="cuda")
        self.assertEqual(x.cuda().data_ptr(), x.data_ptr())
        self.assertEqual(x.to("cuda").data_ptr(), x.data_ptr())

    def test_each_rank_has_a_device(self) -> None:
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual(torch.cuda.device_count(), 1)
        self.assertGreater(
            torch.cuda.get_device_properties(0).multi_processor_count, 0)

    def test_generators_repeat(self) -> None:
        drawn = []
        for _ in range(2):
            generator = torch.Generator(device="cuda").manual_seed(3)
            drawn.append(torch.rand(4, device="cuda", generator=generator))
        self.assertTrue(torch.equal(*drawn))

    def test_events_measure(self) -> None:
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(torch.cuda.Stream()):
            start.record()
            end.record()
        torch.cuda.synchronize()
        self.assertGreater(start.elapsed_time(end), 0)
