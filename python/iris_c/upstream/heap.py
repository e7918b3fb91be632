# SPDX-License-Identifier: MIT
"""Replaces upstream's SymmetricHeap by this library's heap.

Upstream's host class asks its heap for memory, for the heap bases, and whether
a tensor is symmetric. It does everything else with torch. So this is the place
where a program for upstream uses this library.
"""

import ctypes
import os
from typing import Any, List

import torch

import iris_c
from iris_c import _values
from iris_c._lib import call
from iris_c._session import Owner

from . import cuda, device

#: Upstream's programs rely on a heap without gaps between tensors.
_OWN = 1 << 20


def _allocator(asked: str) -> str:
    """The kind of heap that upstream's programs ask for. Without a GPU there
    is one kind, as in upstream's simulation."""
    kind = os.environ.get("IRIS_ALLOCATOR", asked).lower()
    if kind not in ("torch", "vmem"):
        raise ValueError(f"Unknown allocator type: {kind}."
                         " Supported: 'torch', 'vmem'")
    return kind if device() == "gpu" else "torch"


class _Allocator:
    """The part of heap.allocator that upstream's code and tests use."""

    def __init__(self, heap: "SymmetricHeap") -> None:
        self._heap = heap

    def get_base_address(self) -> int:
        return self._heap.base

    def get_minimum_allocation_size(self) -> int:
        return 0

    def get_device(self) -> torch.device:
        return self._heap.get_device()

    def owns_tensor(self, tensor: torch.Tensor) -> bool:
        return self._heap.is_symmetric(tensor)

    def allocate(self, num_elements: int, dtype: torch.dtype,
                 alignment: int = 1024) -> torch.Tensor:
        return self._heap.allocate(num_elements, dtype, alignment)

    def close(self) -> None:
        """Upstream's host class calls this when Python frees it. That is at
        a different time on each rank, and tensors may still be in use. The
        heap is freed with the last of them."""


class SymmetricHeap:
    """One rank's heap, with the interface of upstream's class."""

    def __init__(self, heap_size: int, device_id: int, cur_rank: int,
                 num_ranks: int, allocator_type: str = "torch") -> None:
        self._context = iris_c.iris(
            heap_size + _OWN, _allocator(allocator_type))
        self.heap_size = heap_size
        self.device_id = device_id
        self.cur_rank = cur_rank
        self.num_ranks = num_ranks
        self.fd_conns = None
        self.allocator = _Allocator(self)
        self._device = torch.device("cuda", device_id)
        bases = self._context.heap_bases_list()
        self.base = bases[cur_rank]
        self.heap_bases = torch.tensor(
            self._peers(bases), dtype=torch.int64, device=self._device)

    def _peers(self, bases: List[int]) -> List[int]:
        """The heap bases for kernels."""
        return bases

    def get_device(self) -> torch.device:
        return self._device

    def get_heap_bases(self) -> torch.Tensor:
        return self.heap_bases

    def refresh_peer_access(self) -> None:
        """Does nothing: peers can access new memory at once. Upstream has a
        barrier here, and iris_malloc() includes one."""

    def barrier(self) -> None:
        self._context.barrier()

    def allocate(self, num_elements: int, dtype: torch.dtype,
                 alignment: int = 1024) -> torch.Tensor:
        """Memory at the same offset on every rank. Collective."""
        tensor = self._tensor(num_elements, dtype, alignment)
        if device() != "gpu":
            cuda.mark(tensor, self._device)
        return tensor

    def _tensor(self, count: int, dtype: torch.dtype,
                alignment: int) -> torch.Tensor:
        context, size = self._context, max(1, count) * dtype.itemsize
        memory = ctypes.c_void_p()
        try:
            call.iris_malloc_aligned(
                context.handle, size, alignment, ctypes.byref(memory))
        except iris_c.OutOfMemoryError as error:
            raise MemoryError("Heap out of memory") from error
        address = memory.value or 0
        kind = context._arrays.dtype_of(dtype)
        whole = _values.tensor(address, kind, (max(1, count),), (1,))
        owner = Owner(context._session, address)
        return context._arrays.array(whole, owner)[:count]

    def on_symmetric_heap(self, tensor: torch.Tensor) -> bool:
        """As in upstream, an empty tensor is on every heap."""
        if tensor.numel() == 0:
            return True
        handle, address = self._context.handle, tensor.data_ptr()
        return bool(call.iris_is_symmetric(handle, address))

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        return self.on_symmetric_heap(tensor)

    def as_symmetric(self, external_tensor: torch.Tensor) -> torch.Tensor:
        """A copy on the heap, as upstream's "torch" allocator makes it."""
        if not external_tensor.is_cuda:
            raise RuntimeError("Can only import CUDA tensors")
        if not external_tensor.is_contiguous():
            raise RuntimeError(
                "Only contiguous tensors can be imported;"
                " call .contiguous() before as_symmetric()")
        new = self.allocate(external_tensor.numel(), external_tensor.dtype)
        return new.reshape(external_tensor.shape).copy_(external_tensor)


def apply(module: Any) -> None:
    module.SymmetricHeap = SymmetricHeap
