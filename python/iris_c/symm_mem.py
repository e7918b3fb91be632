# SPDX-License-Identifier: MIT
"""torch.distributed._symmetric_memory on this library's heap: on CPUs, AMD and
NVIDIA GPUs, and for several ranks of one GPU.

    import iris_c.symm_mem as symm_mem

    x = symm_mem.empty(1024, device=device)
    handle = symm_mem.rendezvous(x, group)
    theirs = handle.get_buffer(peer, (1024,), torch.float32)

Names and arguments are torch's. empty() is collective over all ranks here,
because every rank's heap has the same layout. rendezvous() is local.

After the bytes of a tensor come its signal pad, for the program, and numbers of
the library: for each channel and rank the signals that arrived.
"""

import math
import time
from typing import Any, Dict, List, Optional, Sequence

import torch
import torch.distributed as dist

from ._context import Iris
from ._errors import DeadlineError
from ._groups import ranks_of

#: put_signal() and wait_signal() take channels below this. barrier() has as many.
CHANNELS = 16

_ALIGNMENT = 16
_WORD = 8

#: What this rank has waited for, by the first byte of a memory: all handles of
#: one memory share it.
_waited_for: Dict[int, List[List[int]]] = {}

_context: Optional[Iris] = None
_pad_bytes: Optional[int] = None


def context() -> Iris:
    """The job of all ranks that has the memory. The first call, which is
    collective, makes it with the heap that IRIS_HEAP_SIZE says."""
    global _context
    if _context is None or _context._session.is_closed:
        _context = Iris(arrays="torch")
    return _context


def get_signal_pad_size() -> int:
    """The bytes of a tensor's signal pad."""
    return 2048 if _pad_bytes is None else _pad_bytes


def set_signal_pad_size(size: int) -> None:
    """Sets the bytes of signal pads, before the first tensor is made."""
    global _pad_bytes
    if _context is not None:
        raise RuntimeError(
            "set_signal_pad_size: there are tensors with a pad of another"
            " size; call it before empty()"
        )
    _pad_bytes = -(-size // _ALIGNMENT) * _ALIGNMENT


def get_backend(device: Any) -> Optional[str]:
    """The name of what allocates on a device. None: nothing does. Collective
    if it is the first call of the module."""
    ours = context().get_device().type
    return "IRIS" if torch.device(device).type == ours else None


def empty(*size: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """A tensor whose memory all ranks reach. Collective over all ranks."""
    if len(size) == 1 and isinstance(size[0], Sequence):
        size = tuple(size[0])
    kind = dtype or torch.get_default_dtype()
    bytes = math.prod(size) * kind.itemsize
    rounded = -(-bytes // _ALIGNMENT) * _ALIGNMENT
    owner = context()
    owner._arrays.check(None, device)
    count = rounded + get_signal_pad_size() + _words_bytes(owner)
    whole = owner.empty(count, dtype=torch.uint8)
    whole[rounded:] = 0
    _waited_for[whole.untyped_storage().data_ptr()] = [
        [0] * owner.get_num_ranks() for _ in range(2 * CHANNELS)
    ]
    owner.barrier()
    made: torch.Tensor = whole[:bytes].view(kind).view(size)
    return made


def rendezvous(tensor: torch.Tensor, group: Any) -> "SymmetricMemory":
    """The memory of a tensor from empty() on the ranks of a group, which is a
    process group or its name."""
    if isinstance(group, str):
        group = dist.distributed_c10d._resolve_process_group(group)
    return SymmetricMemory(context(), tensor, ranks_of(group))


def _words_bytes(owner: Iris) -> int:
    """The bytes of the numbers of signals behind a pad: for signals and for
    barriers, of each channel and rank."""
    return 2 * CHANNELS * owner.get_num_ranks() * _WORD


class SymmetricMemory:
    """A tensor's memory on the ranks of a group. Ranks are the group's."""

    #: No multicast: kernels store to each rank.
    multicast_ptr = 0

    def __init__(
        self, owner: Iris, tensor: torch.Tensor, ranks: Sequence[int]
    ) -> None:
        if not owner.is_symmetric(tensor):
            raise ValueError("rendezvous: pass a tensor that empty() made")
        self._owner = owner
        self._ranks = ranks
        storage = tensor.untyped_storage()
        self._whole = torch.empty(
            0, dtype=torch.uint8, device=tensor.device
        ).set_(storage)
        words = _words_bytes(owner)
        #: Bytes of the tensors in this memory, without the pad.
        self.buffer_size = (
            storage.nbytes() - words - get_signal_pad_size()
        )
        if self.buffer_size < 0:
            raise ValueError("rendezvous: pass a tensor that empty() made")
        #: The tensor's first byte in it.
        self.offset = tensor.data_ptr() - storage.data_ptr()
        self.device = tensor.device
        self.rank = ranks.index(owner.get_rank())
        self.world_size = len(ranks)
        self.signal_pad_size = get_signal_pad_size()
        shape = (2 * CHANNELS, owner.get_num_ranks())
        self._arrived = self._whole[-words:].view(torch.int64).view(shape)
        self._counts = _waited_for[storage.data_ptr()]

    def _pointers(self, offset: int) -> List[int]:
        bases = self._owner.address_map(self._whole).peer_bases.tolist()
        return [bases[rank] + offset for rank in self._ranks]

    @property
    def buffer_ptrs(self) -> List[int]:
        """The addresses of the memory on each rank. 0: not reachable."""
        return self._pointers(0)

    @property
    def signal_pad_ptrs(self) -> List[int]:
        """The addresses of the signal pads."""
        return self._pointers(self.buffer_size)

    def get_buffer(
        self,
        rank: int,
        sizes: Sequence[int],
        dtype: torch.dtype,
        storage_offset: int = 0,
    ) -> torch.Tensor:
        """A rank's memory as a tensor. The offset is in elements."""
        return self._view(
            rank, 0, self.buffer_size, sizes, dtype, storage_offset
        )

    def get_remote_tensor(
        self, peer: int, sizes: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """A rank's copy of the tensor."""
        limit = self.buffer_size - self.offset
        return self._view(peer, self.offset, limit, sizes, dtype, 0)

    def get_signal_pad(
        self,
        rank: int,
        sizes: Sequence[int] = (),
        dtype: Optional[torch.dtype] = None,
        storage_offset: int = 0,
    ) -> torch.Tensor:
        """A rank's signal pad as a tensor; without sizes all of it."""
        # Torch 2.1 and 2.2 have no uint32.
        kind = dtype or getattr(torch, "uint32", torch.int32)
        left = self.signal_pad_size // kind.itemsize - storage_offset
        return self._view(
            rank, self.buffer_size, self.signal_pad_size, sizes or (left,),
            kind, storage_offset,
        )

    def _view(
        self,
        rank: int,
        first: int,
        limit: int,
        sizes: Sequence[int],
        dtype: torch.dtype,
        skipped: int,
    ) -> torch.Tensor:
        start = skipped * dtype.itemsize
        end = start + math.prod(sizes) * dtype.itemsize
        if skipped < 0 or end > limit:
            raise ValueError(
                f"{tuple(sizes)} of {dtype} from element {skipped} on end at"
                f" byte {end} of {limit}"
            )
        there = self._owner.as_remote(self._whole, self._ranks[rank])
        bytes: torch.Tensor = there[first + start : first + end]
        return bytes.view(dtype).view(tuple(sizes))

    def put_signal(
        self, dst_rank: int, channel: int = 0, timeout_ms: int = 0
    ) -> None:
        """Signals a rank, after the earlier work of the stream. It never
        waits, since signals are counted."""
        del timeout_ms
        self._put(dst_rank, self._checked(channel))

    def wait_signal(
        self, src_rank: int, channel: int = 0, timeout_ms: int = 0
    ) -> None:
        """Waits for the next signal of a rank. On a GPU the stream waits."""
        self._wait(src_rank, self._checked(channel), timeout_ms)

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for all ranks of the group. On a GPU the stream waits."""
        row = CHANNELS + self._checked(channel)
        for rank in range(self.world_size):
            self._put(rank, row)
        for rank in range(self.world_size):
            self._wait(rank, row, timeout_ms)

    @staticmethod
    def _checked(channel: int) -> int:
        if not 0 <= channel < CHANNELS:
            raise ValueError(
                f"channel={channel}: takes 0 to {CHANNELS - 1}"
            )
        return channel

    def _put(self, rank: int, row: int) -> None:
        word = self._arrived[row, self._owner.get_rank() :]
        self._owner.signal(word, self._ranks[rank], 1, "add")

    def _wait(self, rank: int, row: int, timeout_ms: int) -> None:
        source = self._ranks[rank]
        word = self._arrived[row, source:]
        wanted = self._counts[row][source] + 1
        if timeout_ms:
            self._poll(word, wanted, timeout_ms, rank)
        self._owner.wait(word, wanted)
        self._counts[row][source] = wanted

    def _poll(
        self, word: torch.Tensor, wanted: int, timeout_ms: int, rank: int
    ) -> None:
        if self.device.type != "cpu":
            raise NotImplementedError(
                "timeout_ms on a GPU: the limit of waits there is"
                " IRIS_DEVICE_TIMEOUT_MS"
            )
        end = time.monotonic() + timeout_ms / 1000
        while int(word[0]) < wanted:
            if time.monotonic() > end:
                raise DeadlineError(
                    f"rank {self.rank}: no signal of rank {rank} of the group"
                    f" in {timeout_ms} ms"
                )
            time.sleep(0)
