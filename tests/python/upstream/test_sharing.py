# SPDX-License-Identifier: MIT
"""Devices, and NCCL's groups, where ranks share GPUs."""

import os
import unittest
from unittest import mock

import torch
from iris_c.upstream import process_groups, sharing


class Sharing(unittest.TestCase):
    def setUp(self) -> None:
        two = mock.patch.object(torch.cuda, "device_count", lambda: 2)
        two.start()
        self.addCleanup(two.stop)

    def test_numbers_begin_anew_where_there_is_no_gpu(self) -> None:
        for given, found in ((0, 0), (1, 1), (2, 0), (5, 1),
                             ("cuda:3", "cuda:1"), ("cuda", "cuda"),
                             ("cpu", "cpu"), (None, None), (True, True),
                             (torch.float16, torch.float16)):
            self.assertEqual(sharing.wrapped(given), found, given)
        self.assertEqual(sharing.wrapped(torch.device("cuda", 3)),
                         torch.device("cuda", 1))
        self.assertEqual(sharing.wrapped(torch.device("cuda")),
                         torch.device("cuda"))

    def test_three_ranks_share_two_gpus_and_two_do_not(self) -> None:
        self.assertTrue(sharing.is_shared(3))
        self.assertFalse(sharing.is_shared(2))
        with mock.patch.object(torch.cuda, "device_count", lambda: 0):
            self.assertFalse(sharing.is_shared(3))

    def test_ranks_that_share_gpus_see_the_first_only(self) -> None:
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="3,5"):
            os.environ.pop("HIP_VISIBLE_DEVICES", None)
            sharing.show_one()
            self.assertEqual((os.environ["CUDA_VISIBLE_DEVICES"],
                              os.environ["HIP_VISIBLE_DEVICES"]), ("3", "0"))

    def test_ranks_that_share_a_gpu_simulate(self) -> None:
        for world, shared in ((2, False), (3, True)):
            with mock.patch.dict(os.environ, IRIS_C_UPSTREAM_DEVICE="nvidia"):
                os.environ.pop("IRIS_BACKEND", None)
                os.environ["IRIS_SIM_DEVICE"] = "asked"
                had = process_groups._has_nccl({"world_size": world})
                self.assertEqual(had, not shared)
                self.assertEqual(os.environ.get("IRIS_BACKEND"),
                                 "sim" if shared else None)
                self.assertEqual(os.environ["IRIS_SIM_DEVICE"], "asked")

    def test_functions_and_classes_of_torch_cuda_are_told_a_gpu(self) -> None:
        seen = []

        class Device:
            def __init__(self, device, more=0):
                seen.append((device, more))

        Device.__init__ = sharing._wrapping_init(Device.__init__)
        Device(3, more=7)
        sharing._wrapping(seen.append)(5)
        sharing._wrapping(lambda device: seen.append(device))(device="cuda:2")
        self.assertEqual(seen, [(1, 7), 1, "cuda:0"])


class OnGpu:
    """What of a tensor of a GPU is asked for."""

    is_cuda = True

    def __init__(self, value) -> None:
        self.value = value

    def detach(self):
        return self

    def cpu(self):
        return [self.value]

    def copy_(self, copy) -> None:
        self.value = copy[0]


class Work:
    def __init__(self, end) -> None:
        self._end = end

    def wait(self) -> str:
        self._end()
        return "waited"

    def is_completed(self) -> bool:
        return False


class ThroughHost(unittest.TestCase):
    def test_results_are_brought_back(self) -> None:
        def double(tensors, scale, out=None):
            for copy in (*tensors, out):
                copy[0] *= scale

        one, two, out = OnGpu(1), OnGpu(2), OnGpu(5)
        process_groups._through_host(double)([one, two], 3, out=out)
        self.assertEqual([one.value, two.value, out.value], [3, 6, 15])

    def test_of_a_call_that_goes_on_when_it_is_waited_for(self) -> None:
        one, copies = OnGpu(1), []

        def receive(copy):
            copies.append(copy)
            return Work(lambda: copy.__setitem__(0, 9))

        work = process_groups._through_host(receive)(one)
        self.assertEqual((one.value, work.is_completed()), (1, False))
        self.assertEqual((work.wait(), one.value), ("waited", 9))
