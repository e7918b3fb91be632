# SPDX-License-Identifier: MIT
"""What kernels for AMD's GPUs are given on NVIDIA's."""

import ctypes
import types
import unittest
from unittest import mock

import triton.language as tl
from iris_c.upstream import nvidia, nvidia_layouts, nvml


class Layout:
    def __init__(self, threads_per_warp) -> None:
        self.threads_per_warp = threads_per_warp
        self.__post_init__()

    def __post_init__(self) -> None:
        self.made = True


class Nvidia(unittest.TestCase):
    def test_layouts_of_a_wavefront_become_a_warps(self) -> None:
        nvidia_layouts.apply(types.SimpleNamespace(BlockedLayout=Layout))
        for given, found in (([64], [32]), ([2, 32], [2, 16]),
                             ([64, 1], [32, 1]), ([tl.constexpr(64)], [32]),
                             ([32], [32]), ([4, 8], [4, 8]), ([128], [128])):
            made = Layout(given)
            self.assertEqual(made.threads_per_warp, found, given)
            self.assertTrue(made.made)

    def test_a_struct_goes_to_nvml_by_its_address(self) -> None:
        class Info(ctypes.Structure):
            _fields_ = [("version", ctypes.c_int)]

        seen = []
        pynvml = types.SimpleNamespace(
            nvmlDeviceGetGpuFabricInfoV=lambda *args: seen.append(args))
        nvml.apply(pynvml)
        pynvml.nvmlDeviceGetGpuFabricInfoV("gpu", Info(5))
        pynvml.nvmlDeviceGetGpuFabricInfoV("gpu", ctypes.byref(Info(7)))
        self.assertEqual([type(info) for _, info in seen],
                         [type(ctypes.byref(Info()))] * 2)
        self.assertEqual([info._obj.version for _, info in seen], [5, 7])

    def test_a_volatile_load_has_no_cache_modifier(self) -> None:
        from triton.language import semantic

        seen = []
        names = "ptr, mask, other, check, padding, cache, eviction, volatile"
        count = len(names.split(","))
        original = mock.patch.object(
            semantic.TritonSemantic, "load",
            lambda self, *args: seen.append((len(args), args[5], args[7])))
        with original:
            nvidia.apply(None)
            load = semantic.TritonSemantic.load
            for cache, volatile in ((".ca", True), (".cg", False)):
                load(None, 1, None, None, (), "", cache, "", volatile)
        self.assertEqual(seen, [(count, "", True), (count, ".cg", False)])
