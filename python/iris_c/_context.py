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
from ._plans import Plan, Segment
from ._random import Generator
from ._session import Session
from ._streams import Streams
from ._structs import HeapStats
from ._tensors import Tensors
from ._trace import Tracing
from ._transfer import AddressMap, Transfers, bases_of
from ._values import INT64, tensor


def _allocator(allocator_type: str) -> str:
    """As in upstream, the environment overrides the argument."""
    name = os.environ.get("IRIS_ALLOCATOR", allocator_type).lower()
    # The vmem heap grows by pieces and frees them, like upstream's
    # "vmem_chunked".
    return "vmem" if name == "vmem_chunked" else name


def _config(settings: Dict[str, Any]) -> Any:
    """A struct iris_config with these settings, and the objects that it points to."""
    config = ctypes.create_string_buffer(call.iris_config_size())
    call.iris_config_init_sized(config, len(config))
    borrowed = []
    for name, value in settings.items():
        text = str(int(value) if isinstance(value, bool) else value).encode()
        borrowed.append(text)
        call.iris_config_set(config, name.encode(), text)
    return config, borrowed


def _bytes(heap_size: Any) -> Any:
    """A number of bytes as a whole number: 1e9 is accepted like 10**9."""
    if isinstance(heap_size, float) and heap_size.is_integer():
        return int(heap_size)
    return heap_size


def _writes_heap_bases(settings: Dict[str, Any]) -> bool:
    """As in upstream, ranks write heap bases in simulation, or if the
    program asks for it."""
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

    All ranks make collective calls in the same order. Only one thread at a
    time may make them. Any thread may make calls that only return a value.

    Args:
        heap_size: bytes for each rank's tensors, as a number or as text such
            as "64M" or "1G"; None: IRIS_HEAP_SIZE, or 1 GiB. The setting
            heap_reserve, such as "64G", lets the heap grow up to that size.
        allocator_type: "torch" (a pool) or "vmem" (grows as needed);
            IRIS_ALLOCATOR overrides it.
        arrays: "torch" or "numpy", the kind of tensors; None: torch if it is
            installed, else NumPy.
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
        # As in upstream, tensors can use all of this size.
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
        # The library parses a size that is text.
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
        """The iris_t for the library's calls, as a number."""
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
        """The number of ranks in the job."""
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
        """The same as get_heap_bases()."""
        return self.get_heap_bases()

    def get_cu_count(self) -> int:
        """The number of workgroups that certainly run at the same time: the
        GPU's compute units, or this rank's share of them."""
        count: int = call.iris_num_cus(self.handle)
        return count

    def lost_rank(self) -> int:
        """The lost rank, or -1 if no rank was lost. It does not block, so
        loops that poll a peer's memory can use it."""
        rank: int = call.iris_lost_rank(self.handle)
        return rank

    def plan(self, segments: Sequence[Segment]) -> Plan:
        """A plan of copies, with a tuple for each: from_rank, to_rank, a
        tensor there and a tensor here, both on the heap, and a batch, by
        default 0. Collective over the job: all ranks pass all copies."""
        return Plan(self, segments)

    def revoke(self) -> None:
        """Ends every wait of all ranks with RevokedError until they call
        shrink(). Local."""
        call.iris_revoke(self.handle)

    def shrink(self) -> List[int]:
        """Goes on with the ranks that are left, after PeerLostError,
        DeadlineError or RevokedError. Every living rank calls it. Tensors
        and their contents stay; groups and workspaces are gone. Returns the
        former rank of each rank that is left, in the new order."""
        former = (ctypes.c_int * self.num_ranks)()
        call.iris_shrink(self.handle, former)
        self._session.read_ranks()
        self._groups.forget()
        self.cur_rank = self._session.rank
        self.num_ranks = self._session.num_ranks
        return list(former[: self.num_ranks])

    def heap_bases_list(self) -> List[int]:
        """The address of each rank's heap in this rank's address space. 0:
        not mapped here."""
        return list(call.iris_heap_bases(self.handle)[: self.num_ranks])

    def get_device_context(self) -> Any:
        """The device context that kernels need, int64: rank, number of
        ranks, heap bases, then 17 words for tracing. It is the library's own
        memory, not a copy."""
        _kernels.prepare()
        words = call.iris_context_words(self.num_ranks)
        address = call.iris_device_context(self.handle)
        return self._array(tensor(address, INT64, (words,), (1,)))

    @property
    def default_generator(self) -> Generator:
        """The context's own generator. Random functions on NumPy arrays use
        it by default. Its seed is 0 and its sequence is the rank.
        manual_seed() and its fields change it."""
        address = call.iris_default_generator(self.handle)
        return Generator.from_address(address)

    def get_heap_bases(self) -> Any:
        """The heap bases on the device, int64, one for each rank."""
        return self.get_device_context()[2 : 2 + self.num_ranks]

    def heap_stats(self) -> Dict[str, int]:
        """The figures of this rank's heap: struct iris_heap_stats by name.
        num_deferred counts allocations that this rank has released and some
        other rank has not."""
        stats = self._session.stats()
        return {name: getattr(stats, name) for name in HeapStats.names()}

    def heap_trim(self) -> int:
        """Gives the memory that no tensor uses back to the system, on every
        rank, and returns this rank's bytes of it. Collective."""
        freed = ctypes.c_size_t()
        call.iris_heap_trim(self.handle, ctypes.byref(freed))
        return freed.value

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
        """A tensor whose contents are undefined, and its addresses on all
        ranks for kernels, int64 (address_map()). Collective."""
        made = self.empty(*size, dtype=dtype)
        return made, self.address_map(made).peer_bases

    def address_map(self, tensor: Any) -> AddressMap:
        """The addresses of a tensor of the heap on all ranks, and the
        operations that kernels can do there. Local."""
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
        rank. Free it with free(). Collective."""
        address = ctypes.c_void_p()
        if alignment is None:
            alignment = call.iris_alignment()
        call.iris_malloc_aligned(
            self.handle, bytes, alignment, ctypes.byref(address)
        )
        return address.value or 0

    def free(self, address: int) -> None:
        """Frees memory from malloc(). Collective."""
        call.iris_free(self.handle, address)

    def group(self, ranks: Sequence[int]) -> Group:
        """Creates a group of these ranks, in this order, for `group=`.
        Collective over the whole job: each rank passes the members of its
        own group, or [] to be in no group."""
        return Group(self._session, ranks)

    def barrier(self, stream: Any = None, group: Any = None) -> None:
        """Waits until the work of the device, or of `stream`, is complete,
        and until every member of the group has made this call. Collective
        over the group.

        Args:
            stream: a torch.cuda.Stream, or the address of a stream.
            group: from ctx.group(), a list of ranks, or a process group of
                torch.distributed; None: all ranks. The first use of a list is
                collective over the whole job; that of a process group is not.
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
        """Enqueues a barrier of the members' devices on torch's current stream.
        Later work on that stream starts when every member's stream has reached
        the barrier. The call does not wait, except on the CPU. It can be
        captured in a graph.

        The first use of a group is collective over the whole job and must not
        be captured, unless the group is from ctx.group().
        """
        members = self._groups.handle_of(group)
        call.iris_device_barrier(self.handle, self._streams.current(), members)
        self._streams.finish()

    def broadcast(self, value: Any, src: int = 0, group: Any = None) -> Any:
        """The value of rank `src`, on every member of the group. Collective
        over the group.

        Every rank, src too, gets tensors, arrays and lists of numbers as NumPy
        arrays. Any other value that can be pickled keeps its type.

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
        """Leaves the job. Later calls fail, except that another finalize() does
        nothing. Waits until every rank has called it, unless this process has
        other contexts, which ranks may finalize in any order.

        Tensors that the program still holds stay valid: the rank leaves when
        the last of them is gone, or when Python ends. A context that is not
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
            # The program's own exception is more useful.
            if error is None:
                raise


def iris(
    heap_size: Union[int, str, None] = None,
    allocator_type: str = "torch",
    **more: Any,
) -> Iris:
    """Joins the job and returns this rank's context. Collective. It takes
    the arguments of class Iris."""
    return Iris(heap_size, allocator_type, **more)
