# SPDX-License-Identifier: MIT
"""A context: one rank's view of the job, as class Iris."""

import ctypes
import numbers
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _arrays, _bootstrap, _interrupt, _kernels, _lib, _log
from ._broadcast import broadcast
from ._ccl import CCL
from ._errors import IrisError
from ._groups import Group, Groups, group_barrier
from ._lib import call
from ._ops import Ops
from ._random import Generator
from ._session import Session
from ._streams import Streams
from ._structs import HeapStats
from ._tensors import Tensors
from ._trace import Tracing
from ._transfer import AddressMap, Transfers, bases_of
from ._values import INT64, tensor


def _allocator(allocator_type: str) -> str:
    """As upstream: the environment has the last word."""
    name = os.environ.get("IRIS_ALLOCATOR", allocator_type).lower()
    # Iris' vmem heap grows by pieces and frees them, which upstream calls so.
    return "vmem" if name == "vmem_chunked" else name


def _config(settings: Dict[str, Any]) -> Any:
    """A struct iris_config of these settings, and what it borrows."""
    config = ctypes.create_string_buffer(call.iris_config_size())
    call.iris_config_init_sized(config, len(config))
    borrowed = []
    for name, value in settings.items():
        text = str(int(value) if isinstance(value, bool) else value).encode()
        borrowed.append(text)
        call.iris_config_set(config, name.encode(), text)
    return config, borrowed


def _bytes(heap_size: Any) -> Any:
    """1e9 is as good as 10**9."""
    if isinstance(heap_size, float) and heap_size.is_integer():
        return int(heap_size)
    return heap_size


def _writes_heap_bases(settings: Dict[str, Any]) -> bool:
    """As upstream: in simulation; else a program that asks for it has it."""
    simulation = os.environ.get("IRIS_SIMULATION", "").lower()
    asked = ("heap_bases_prefix", "heap_bases_files")
    return simulation in ("1", "true", "yes") or any(
        name in settings or f"IRIS_{name.upper()}" in os.environ
        for name in asked
    )


def _open(settings: Dict[str, Any]) -> int:
    folder = _lib.module_folder()
    if folder is not None and "IRIS_MODULE_DIR" not in os.environ:
        settings.setdefault("module_dir", folder)
    if not _writes_heap_bases(settings):
        settings["heap_bases_files"] = False
    if "rank" not in settings:
        for name, text in _bootstrap.settings_of_group().items():
            settings.setdefault(name, text)
    config, _borrowed = _config(settings)
    _interrupt.watch(call.iris_set_wait_check)
    handle = ctypes.c_void_p()
    call.iris_init(config, ctypes.byref(handle))
    return handle.value or 0


class Iris(Tensors, Transfers):
    """One rank: its symmetric heap, and the tensors on it.

    Collective calls, which all ranks make in the same order, come from one
    thread at a time; what only asks may come from any.

    Args:
        heap_size: bytes that each rank's tensors can have, as a number or as
            text such as "64M" or "1G"; None: IRIS_HEAP_SIZE, or 1 GiB.
        allocator_type: "torch" (a pool) or "vmem" (grows as needed);
            IRIS_ALLOCATOR overrides it.
        arrays: "torch" or "numpy": what tensors are; None: torch where it is
            installed.
        settings: any other setting of the library by its name, such as
            `backend="sim"` or `timeout_ms=5000`.
    """

    def __init__(
        self,
        heap_size: Union[int, str, None] = None,
        allocator_type: str = "torch",
        *,
        arrays: Optional[str] = None,
        **settings: Any,
    ) -> None:
        kind = _arrays.choose(arrays)
        settings["allocator"] = _allocator(allocator_type)
        if heap_size is not None:
            settings["heap_bytes"] = _bytes(heap_size)
        # As upstream: what is asked for is what tensors can have.
        settings.setdefault("heap_usable", True)
        self._session = Session(_open(settings), settings.get("timeout_ms"))
        self._streams = Streams(self._session)
        self._groups = Groups(self._session)
        try:
            self._arrays = kind(self._streams.device_id())
        except Exception:
            self._session.leave()
            raise
        self.cur_rank = self._session.rank
        self.num_ranks = self._session.num_ranks
        self.gpu_id: int = call.iris_device_id(self.handle)
        # Text is for the library to read.
        self.heap_size: int = self._session.stats().free_bytes
        if isinstance(heap_size, numbers.Real):
            self.heap_size = int(heap_size)
        self.ccl = CCL(
            self._session, self._streams, self._groups, self._arrays
        )
        self.tracing = Tracing(self._session)
        self._channels: Dict[int, int] = {}
        self.ops = Ops(
            self._session, self._streams, self._groups, self._arrays
        )
        _log.follow(self)
        _kernels.prepare()

    @property
    def handle(self) -> int:
        """The iris_t that the library's calls take, as a number."""
        return self._session.handle

    def __reduce__(self) -> Any:
        raise TypeError(
            "an Iris context is its process's own and cannot be pickled:"
            " call iris_c.iris() in each process"
        )

    def __repr__(self) -> str:
        if self._session.is_closed:
            return "<iris_c.Iris, finalized>"
        return (
            f"<iris_c.Iris rank {self.cur_rank} of {self.num_ranks},"
            f" {self.heap_size} bytes, backend {self.backend_name}>"
        )

    @property
    def backend_name(self) -> str:
        """The backend in use: "sim" or "hip"."""
        name: bytes = call.iris_backend_name(self.handle)
        return name.decode()

    def get_rank(self) -> int:
        """This rank, from 0."""
        return self.cur_rank

    def get_num_ranks(self) -> int:
        """How many ranks the job has."""
        return self.num_ranks

    def get_device_id(self) -> int:
        """The number of this rank's GPU; 0 on the CPU."""
        return self.gpu_id

    def get_device(self) -> Any:
        """The device of the heap: a torch.device; with NumPy "cpu"."""
        return self._arrays.device

    @property
    def device(self) -> str:
        """get_device() as text, such as "cuda:0"."""
        return str(self._arrays.device)

    @property
    def heap_bases(self) -> Any:
        """get_heap_bases()."""
        return self.get_heap_bases()

    def get_cu_count(self) -> int:
        """Workgroups that the device runs at once for sure: a GPU's compute
        units, or this rank's share of them."""
        count: int = call.iris_num_cus(self.handle)
        return count

    def lost_rank(self) -> int:
        """The rank that was lost, -1: none. Does not block: for loops that
        wait for a peer's memory."""
        rank: int = call.iris_lost_rank(self.handle)
        return rank

    def heap_bases_list(self) -> List[int]:
        """Where each rank's heap is in this rank's address space; 0: not
        mapped here."""
        return list(call.iris_heap_bases(self.handle)[: self.num_ranks])

    def get_device_context(self) -> Any:
        """The device context that kernels start from, int64: rank, number of
        ranks, heap bases, then 17 words for tracing. The library's own memory,
        not a copy."""
        _kernels.prepare()
        words = call.iris_context_words(self.num_ranks)
        address = call.iris_device_context(self.handle)
        return self._array(tensor(address, INT64, (words,), (1,)))

    @property
    def default_generator(self) -> Generator:
        """The context's own generator, which random functions use without
        another one where arrays are NumPy's: of seed 0, with the rank as its
        sequence. Its manual_seed() and its fields set it."""
        address = call.iris_default_generator(self.handle)
        return Generator.from_address(address)

    def get_heap_bases(self) -> Any:
        """The heap bases on the device, int64, one for each rank."""
        return self.get_device_context()[2 : 2 + self.num_ranks]

    def heap_stats(self) -> Dict[str, int]:
        """Figures of this rank's heap, struct iris_heap_stats by name. What
        this rank has let go and some other has not is num_deferred."""
        stats = self._session.stats()
        return {name: getattr(stats, name) for name in HeapStats.names()}

    def uniform(
        self, size: Any, low: float = 0.0, high: float = 1.0, dtype: Any = None
    ) -> Any:
        """A tensor of random numbers, uniform in [low, high). Collective."""
        made = self.rand(size, dtype=dtype)
        made *= high - low
        made += low
        self.barrier()
        return made

    def allocate_symmetric(
        self, *size: Any, dtype: Any = None
    ) -> Tuple[Any, Any]:
        """A tensor whose contents are undefined, and where each rank has it:
        addresses for kernels, int64 (address_map()). Collective."""
        made = self.empty(*size, dtype=dtype)
        return made, self.address_map(made).peer_bases

    def address_map(self, tensor: Any) -> AddressMap:
        """Where each rank has a tensor of the heap, and what kernels can do
        there. Local."""
        seen = self._arrays.tensor_of(tensor)
        if not self.is_symmetric(tensor):
            raise ValueError(
                "address_map requires a tensor on the symmetric heap"
            )
        bases, all_reached = bases_of(self.handle, seen.data, self.num_ranks)
        able = AddressMap.CAP_REMOTE_LOAD_STORE | AddressMap.CAP_REMOTE_ATOMICS
        reach = [
            (size - 1) * step for size, step in zip(seen.sizes(), seen.steps())
        ]
        elements = 1 + sum(reach) if call.iris_tensor_numel(seen) else 0
        return AddressMap(
            self._arrays.words(bases),
            self.cur_rank,
            seen.data,
            elements * call.iris_dtype_size(seen.dtype),
            able if all_reached else 0,
        )

    def malloc(self, bytes: int, alignment: Optional[int] = None) -> int:
        """The address of new memory on the heap, at the same offset on every
        rank. Collective. For what is freed by hand, with free()."""
        address = ctypes.c_void_p()
        if alignment is None:
            alignment = call.iris_alignment()
        call.iris_malloc_aligned(
            self.handle, bytes, alignment, ctypes.byref(address)
        )
        return address.value or 0

    def free(self, address: int) -> None:
        """Frees what malloc() gave. Collective."""
        call.iris_free(self.handle, address)

    def group(self, ranks: Sequence[int]) -> Group:
        """A group of these ranks, in this order, for `group=`. Collective over
        the whole job: each rank names the members of its own group, or [] to
        be in none."""
        return Group(self._session, ranks)

    def barrier(self, stream: Any = None, group: Any = None) -> None:
        """Waits until the device's work is done, or the stream's if one is
        given, and until every member of the group is here. Collective over the
        group; None: all ranks.

        Args:
            stream: a torch.cuda.Stream, or the address of a stream.
            group: of ctx.group(), a list of ranks, or a process group of
                torch.distributed. A list's first use is collective over the
                whole job; a process group's is not.
        """
        if stream is None:
            self._streams.synchronize_device()
        handle = self._streams.handle_of(stream)
        if self._groups.is_torchs_alone(group):
            call.iris_stream_synchronize(self.handle, handle)
            group_barrier(group)
            return
        call.iris_barrier(self.handle, handle, self._groups.handle_of(group))

    def device_barrier(self, group: Any = None) -> None:
        """Enqueues a barrier of the members' devices on torch's current stream,
        and does not wait for it: later work there starts when every member has
        got to its own. Can be captured in a graph. On the CPU it waits.

        A group's first use, but for those of ctx.group(), is collective over
        the whole job and must not be captured.
        """
        members = self._groups.handle_of(group)
        call.iris_device_barrier(self.handle, self._streams.current(), members)

    def broadcast(self, value: Any, src: int = 0, group: Any = None) -> Any:
        """The value of rank `src`, on every member of the group. Collective
        over the group.

        Tensors, arrays and lists of numbers come as NumPy arrays on every
        rank, src too; any other value that can be pickled as what it is.

        Raises:
            ValueError: the value is None, or src is not in the group.
        """
        return broadcast(self, value, src, group)

    def debug(self, message: object) -> None:
        """Prints a message with the rank, if the level is DEBUG."""
        _log.write("debug", self.handle, message)

    def info(self, message: object) -> None:
        """Prints a message with the rank, if the level is INFO or lower."""
        _log.write("info", self.handle, message)

    def warning(self, message: object) -> None:
        """Prints a warning with the rank."""
        _log.write("warning", self.handle, message)

    def error(self, message: object) -> None:
        """Prints an error with the rank."""
        _log.write("error", self.handle, message)

    def finalize(self) -> None:
        """Leaves the job; nothing else can be called then, and doing it again
        does nothing. Waits until every rank has done so, unless this process
        has other contexts too, which ranks may finalize in any order.

        Tensors that the program still has stay as they are: the rank leaves
        when the last of them is gone, or Python ends. A context that is not
        finalized is left when it and its tensors are gone.
        """
        self._session.close()

    def __del__(self) -> None:
        session = getattr(self, "_session", None)
        if session is not None:
            session.let_go()

    def __enter__(self) -> "Iris":
        return self

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        if error is not None:
            self._session.interrupt(error)
        try:
            self.finalize()
        except IrisError:
            # The program's own exception is the one to see.
            if error is None:
                raise


def iris(
    heap_size: Union[int, str, None] = None,
    allocator_type: str = "torch",
    **more: Any,
) -> Iris:
    """Joins the job and returns this rank's context. Collective. Arguments as
    class Iris."""
    return Iris(heap_size, allocator_type, **more)
