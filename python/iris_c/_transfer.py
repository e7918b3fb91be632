# SPDX-License-Identifier: MIT
"""Copies between ranks, and signals, in the order of a stream. On a GPU its
copy engines do them, without a kernel."""

import ctypes
from typing import Any, Dict, Optional, Sequence, Tuple

from . import _structs
from ._lib import call
from ._session import Session
from ._structs import Tensor, Tile
from ._values import CONTIGUOUS, whole

#: iris_direction_t
PUT, GET = 0, 1

#: enum iris_cmp
COMPARISONS = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}

#: enum iris_signal_op
SIGNALS = {"set": 0, "add": 1}

_INT64 = 4


class Transfers:
    """The part of class Iris that moves tensors.

    Common arguments:
        flag: a tensor on the heap whose first element is an int64.
        stream: a torch.cuda.Stream; None: torch's current one. On the CPU a
            call without a channel is complete when it returns.
        channel: the number of a separate stream for copies, as in upstream.
            A copy there starts after the earlier work of torch's current
            stream, and runs beside its later work. quiet() waits for it.
    """

    _arrays: Any
    _streams: Any
    _session: Session
    num_ranks: int
    _channels: Dict[int, int]

    @property
    def handle(self) -> int:
        """The iris_t."""
        raise NotImplementedError

    def put(
        self,
        src_tensor: Any,
        dst_rank: int,
        dst_tensor: Any = None,
        wait_flag: Any = None,
        wait_value: Optional[int] = None,
        signal_flag: Any = None,
        signal_value: int = 1,
        async_op: bool = False,
        channel: Optional[int] = None,
        stream: Any = None,
    ) -> None:
        """Copies a tensor to rank `dst_rank`'s copy of `dst_tensor`, which is
        symmetric. None: to that rank's copy of the tensor itself.

        Before the copy the stream waits until this rank's `wait_flag` is
        `wait_value`, by default 0. After the copy it adds `signal_value` to
        that rank's `signal_flag`. On a channel the call waits until the copy
        is complete, unless async_op is set.
        """
        arrays = self._arrays
        if dst_tensor is None:
            source = to = arrays.output_of(src_tensor)
        else:
            source = self._reader(stream, channel)(src_tensor)
            to = arrays.output_of(dst_tensor)
        queue = self._queue(stream, channel)
        self._await(wait_flag, wait_value, queue)
        self._move("put", to, source, dst_rank, queue)
        self._announce(signal_flag, signal_value, dst_rank, queue)
        self._end(channel, async_op)

    def get(
        self,
        src_tensor: Any,
        src_rank: int,
        dst_tensor: Any = None,
        async_op: bool = False,
        channel: Optional[int] = None,
        stream: Any = None,
    ) -> None:
        """Copies rank `src_rank`'s `src_tensor`, which is symmetric, to
        `dst_tensor`. None: to this rank's own `src_tensor`."""
        source = self._arrays.tensor_of(src_tensor)
        to = src_tensor if dst_tensor is None else dst_tensor
        out = self._arrays.output_of(to)
        queue = self._queue(stream, channel)
        self._move("get", out, source, src_rank, queue)
        self._end(channel, async_op)

    def put_tile(
        self,
        tile: Any,
        dst_rank: int,
        dst_ptr: Any,
        dst_stride: int,
        wait_flag: Any = None,
        wait_value: Optional[int] = None,
        signal_flag: Any = None,
        signal_value: int = 1,
        async_op: bool = False,
        channel: Optional[int] = None,
        stream: Any = None,
    ) -> None:
        """put() for a tensor of two dimensions. Its rows go to `dst_ptr`, a
        tensor or an address of this rank's heap, at distances of
        `dst_stride` elements."""
        self.put_tiles(
            [tile], dst_rank, [dst_ptr], [dst_stride], wait_flag, wait_value,
            signal_flag, signal_value, async_op, channel, stream,
        )

    def put_tiles(
        self,
        tiles: Sequence[Any],
        dst_rank: int,
        dst_ptrs: Sequence[Any],
        dst_strides: Sequence[int],
        wait_flag: Any = None,
        wait_value: Optional[int] = None,
        signal_flag: Any = None,
        signal_value: int = 1,
        async_op: bool = False,
        channel: Optional[int] = None,
        stream: Any = None,
    ) -> None:
        """put_tile() for several tiles, with one wait before all of them and
        one signal after them."""
        if not len(tiles) == len(dst_ptrs) == len(dst_strides):
            raise ValueError(
                "tiles, dst_ptrs, and dst_strides must have the same length"
            )
        read = self._reader(stream, channel)
        seen = [read(tile) for tile in tiles]
        sources = [_tile_of(tensor) for tensor in seen]
        targets = [
            Tile(self._address(ptr), one.rows, one.cols, stride, 1, one.elem)
            for one, ptr, stride in zip(sources, dst_ptrs, dst_strides)
        ]
        queue = self._queue(stream, channel)
        self._await(wait_flag, wait_value, queue)
        kind = Tile * len(tiles)
        call.iris_tiles_on_stream(
            self.handle, PUT, kind(*targets), kind(*sources), len(tiles),
            whole(dst_rank, "dst_rank"), queue,
        )
        self._announce(signal_flag, signal_value, dst_rank, queue)
        self._end(channel, async_op)

    def copy(self, dst_tensor: Any, src_tensor: Any, stream: Any = None) -> None:
        """Copies a tensor to another one with the same shape and dtype.
        Either one may be a peer's, from as_remote()."""
        to = self._arrays.output_of(dst_tensor)
        given = self._reader(stream, None)(src_tensor)
        call.iris_tensor_copy(self.handle, to, given, self._queue(stream, None))
        self._streams.finish()

    def signal(
        self,
        flag: Any,
        rank: int,
        value: int = 1,
        op: str = "set",
        stream: Any = None,
    ) -> None:
        """Sets rank `rank`'s flag to `value`, or adds it (op="add"), once
        all earlier work of the stream is complete and visible there."""
        if op not in SIGNALS:
            raise ValueError(f'op={op!r}: takes "set" or "add"')
        self._signal(flag, rank, value, op, self._queue(stream, None))
        self._streams.finish()

    def wait(
        self, flag: Any, value: int, cmp: str = ">=", stream: Any = None
    ) -> None:
        """Makes the stream wait until this rank's flag compares with `value`
        by `cmp`: "==", "!=", "<", "<=", ">" or ">=". On the CPU the call
        waits."""
        if cmp not in COMPARISONS:
            raise ValueError(
                f"cmp={cmp!r}: takes " + ", ".join(map(repr, COMPARISONS))
            )
        self._wait(flag, value, cmp, self._queue(stream, None))
        self._streams.finish()

    def quiet(
        self, dst_rank: Optional[int] = None, channel: Optional[int] = None
    ) -> None:
        """Waits for the work on the channel. None: on all channels. A
        channel is one queue for all ranks, so this only checks dst_rank."""
        if dst_rank is not None and not 0 <= dst_rank < self.num_ranks:
            raise ValueError(
                f"dst_rank {dst_rank} out of range [0, {self.num_ranks})"
            )
        for number, queue in self._channels.items():
            if channel in (None, number):
                call.iris_stream_synchronize(self.handle, queue)

    def translate(self, ptr: Any, from_rank: int, to_rank: int) -> int:
        """The address, in this process, of rank `to_rank`'s copy of `ptr`,
        which is a tensor or an address of rank `from_rank`. Local."""
        there = ctypes.c_void_p()
        call.iris_translate(
            self.handle, self._address(ptr), from_rank, to_rank,
            ctypes.byref(there),
        )
        return there.value or 0

    def _address(self, place: Any) -> int:
        if isinstance(place, int):
            return place
        address: int = self._arrays.tensor_of(place).data
        return address

    def _reader(self, stream: Any, channel: Optional[int]) -> Any:
        """The function for tensors that a call reads. Only a call on torch's
        own stream can read a copy, which torch may reuse behind it."""
        is_own = stream is None and channel is None
        return self._arrays.source_of if is_own else self._arrays.tensor_of

    def _move(
        self, name: str, dst: Tensor, src: Tensor, rank: int, queue: Any
    ) -> None:
        """Does a put or get: of one range if both sides are dense, else of a tile."""
        rank = whole(rank, "rank")
        if dst.dtype != src.dtype:
            kinds = [call.iris_dtype_name(one.dtype) for one in (dst, src)]
            raise ValueError(
                f"tensors of {kinds[0].decode()} and {kinds[1].decode()}; pass"
                " two of one dtype"
            )
        dense = all(
            call.iris_tensor_is_contiguous(one, CONTIGUOUS)
            for one in (dst, src)
        )
        count = call.iris_tensor_numel(src)
        if dense and call.iris_tensor_numel(dst) == count:
            bytes = count * call.iris_dtype_size(src.dtype)
            getattr(call, f"iris_{name}_on_stream")(
                self.handle, dst.data, src.data, bytes, rank, queue
            )
            return
        if dst.sizes() != src.sizes():
            raise ValueError(
                f"tensors of shapes {dst.sizes()} and {src.sizes()}; pass two"
                " of one shape"
            )
        call.iris_tiles_on_stream(
            self.handle, PUT if name == "put" else GET, _tile_of(dst),
            _tile_of(src), 1, rank, queue,
        )

    def _await(self, flag: Any, value: Optional[int], queue: Any) -> None:
        if flag is not None:
            self._wait(flag, value or 0, "==", queue)

    def _announce(self, flag: Any, value: int, rank: int, queue: Any) -> None:
        if flag is not None:
            self._signal(flag, rank, value, "add", queue)

    def _end(self, channel: Optional[int], async_op: bool) -> None:
        if channel is not None and not async_op:
            self.quiet(channel=channel)
        self._streams.finish()

    def _word(self, flag: Any) -> int:
        seen = self._arrays.tensor_of(flag)
        if seen.dtype != _INT64:
            raise ValueError(
                f"Unsupported flag tensor dtype {flag.dtype}; takes int64"
            )
        if call.iris_tensor_numel(seen) == 0:
            raise ValueError("the flag has no element; pass one that has")
        word: int = seen.data
        return word

    def _signal(
        self, flag: Any, rank: int, value: int, op: str, queue: Any
    ) -> None:
        call.iris_put_signal_on_stream(
            self.handle, None, None, 0, self._word(flag),
            value & ((1 << 64) - 1), SIGNALS[op], whole(rank, "rank"), queue,
        )

    def _wait(self, flag: Any, value: int, cmp: str, queue: Any) -> None:
        call.iris_wait_on_stream(
            self.handle, self._word(flag), COMPARISONS[cmp],
            value & ((1 << 64) - 1), queue,
        )

    def _queue(self, stream: Any, channel: Optional[int]) -> Optional[int]:
        """The iris_stream_t for a call."""
        if channel is None:
            handle: Optional[int] = self._streams.current()
            return handle if stream is None else self._streams.handle_of(stream)
        if stream is not None:
            raise ValueError("pass a stream or a channel, not both")
        if channel not in self._channels:
            made = ctypes.c_void_p()
            call.iris_stream_create(self.handle, ctypes.byref(made))
            self._channels[channel] = made.value or 0
        self._streams.put_behind_current(self._channels[channel])
        return self._channels[channel]


def _tile_of(tensor: Tensor) -> Tile:
    """A tensor of one or two dimensions as a tile."""
    sizes, steps = tensor.sizes(), tensor.steps()
    if len(sizes) > 2 or max((*sizes, 0)) >= 1 << 32:
        raise ValueError(
            f"a tensor of shape {sizes} that is not contiguous; pass one of two"
            " dimensions, or a contiguous one"
        )
    sizes = (1,) * (2 - len(sizes)) + sizes
    steps = (0,) * (2 - len(steps)) + steps
    size = call.iris_dtype_size(tensor.dtype)
    return _structs.Tile(tensor.data, *sizes, *steps, size)


class AddressMap:
    """The addresses of one allocation on all ranks, from this rank:
    upstream's SymmetricAddressMap."""

    #: Bits of `capabilities`.
    CAP_REMOTE_LOAD_STORE = 1 << 0
    CAP_REMOTE_ATOMICS = 1 << 1

    def __init__(
        self,
        peer_bases: Any,
        local_rank: int,
        allocation_base: int,
        allocation_bytes: int,
        capabilities: int,
    ) -> None:
        #: The allocation's address on each rank, int64. 0: not reachable.
        self.peer_bases = peer_bases
        self.local_rank = local_rank
        self.allocation_base = allocation_base
        self.allocation_bytes = allocation_bytes
        self.capabilities = capabilities

    def owns(self, tensor: Any) -> bool:
        """Whether a tensor begins in the allocation."""
        if hasattr(tensor, "data_ptr"):
            start = tensor.data_ptr()
        else:
            start = tensor.ctypes.data
        offset = start - self.allocation_base
        return bool(0 <= offset < max(self.allocation_bytes, 1))

    def supports(self, capability: int) -> bool:
        """Whether kernels can do this on every rank's memory."""
        return self.capabilities & capability == capability


def bases_of(
    handle: int, address: int, num_ranks: int
) -> Tuple[Tuple[int, ...], bool]:
    """The addresses on all ranks of an address in this rank's heap (0: not
    reachable), and whether all ranks are reachable."""
    found = []
    for rank in range(num_ranks):
        there = ctypes.c_void_p()
        if call.iris_is_reachable(handle, rank):
            call.iris_as_remote(handle, address, rank, ctypes.byref(there))
        found.append(there.value or 0)
    return tuple(found), all(found)
