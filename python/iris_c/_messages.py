# SPDX-License-Identifier: MIT
"""Collectives with one root, collectives with parts of any size, and
messages between two ranks."""

import ctypes
from typing import Any, Optional, Sequence, Tuple

from ._lib import call
from ._structs import CclOptions, Tensor


def _counts(numbers: Optional[Sequence[int]], size: int, name: str) -> Any:
    """Numbers for all members in the library's form. None stays None."""
    if numbers is None:
        return None
    made = [int(number) for number in numbers]
    if len(made) != size or min(made) < 0:
        raise ValueError(
            f"{name}={made}: pass {size} numbers, one for each member of the"
            " group, none of them negative"
        )
    return (ctypes.c_size_t * size)(*made)


class Messages:
    """The part of ctx.ccl that upstream does not have. Tensors, group and
    workspace are the same as for the other collectives; ranks are ranks of
    the job. A tensor that only the root needs is None elsewhere."""

    _session: Any
    _streams: Any
    _arrays: Any
    _options: Any

    def reduce(
        self,
        output_tensor: Any,
        input_tensor: Any,
        dst: int = 0,
        op: Any = None,
        group: Any = None,
        workspace: Any = None,
    ) -> None:
        """Rank dst's output becomes the reduction of all inputs. It may be
        its input."""
        options = self._options(group, False, None, workspace)
        out, given = self._ends(output_tensor, input_tensor)
        count = call.iris_tensor_numel(given)
        root = self._member(options, dst, "dst")
        self._need("reduce", out, count, self._is_at(options, root))
        self._enqueue(
            "reduce", given, out, count, given.dtype,
            self._op(op, given.dtype, options), root, options,
        )

    def gather(
        self,
        output_tensor: Any,
        input_tensor: Any,
        dst: int = 0,
        group: Any = None,
        workspace: Any = None,
    ) -> None:
        """Rank dst's output becomes all members' inputs, one after another."""
        options = self._options(group, False, None, workspace)
        out, given = self._ends(output_tensor, input_tensor)
        count = call.iris_tensor_numel(given)
        root = self._member(options, dst, "dst")
        self._need(
            "gather", out, count * self._members(options),
            self._is_at(options, root),
        )
        self._enqueue("gather", given, out, count, given.dtype, root, options)

    def scatter(
        self,
        output_tensor: Any,
        input_tensor: Any,
        src: int = 0,
        group: Any = None,
        workspace: Any = None,
    ) -> None:
        """Rank src's input has one part for each member, one after another.
        The output becomes this rank's part."""
        options = self._options(group, False, None, workspace)
        out, given = self._ends(output_tensor, input_tensor)
        count = call.iris_tensor_numel(out)
        root = self._member(options, src, "src")
        self._need(
            "scatter", given, count * self._members(options),
            self._is_at(options, root),
        )
        self._enqueue("scatter", given, out, count, out.dtype, root, options)

    def all_gatherv(
        self,
        output_tensor: Any,
        input_tensor: Any,
        counts: Sequence[int],
        displs: Optional[Sequence[int]] = None,
        group: Any = None,
        workspace: Any = None,
    ) -> None:
        """The output gets counts[i] elements from each member i, at
        displs[i] or one part after another."""
        options = self._options(group, False, None, workspace)
        out, given = self._ends(output_tensor, input_tensor)
        size = self._members(options)
        made = _counts(counts, size, "counts")
        own = made[call.iris_group_index(self._handle, options.group)]
        self._need("all_gatherv", given, own, True)
        self._fits("counts", out, counts, displs)
        self._enqueue(
            "all_gatherv", given, out, made, _counts(displs, size, "displs"),
            given.dtype, options,
        )

    def all_to_allv(
        self,
        output_tensor: Any,
        input_tensor: Any,
        output_counts: Sequence[int],
        input_counts: Sequence[int],
        output_displs: Optional[Sequence[int]] = None,
        input_displs: Optional[Sequence[int]] = None,
        group: Any = None,
        workspace: Any = None,
    ) -> None:
        """Sends input_counts[i] elements to each member i and receives
        output_counts[i] elements from it, at the displacements or one part
        after another."""
        options = self._options(group, False, None, workspace)
        out, given = self._ends(output_tensor, input_tensor)
        size = self._members(options)
        self._fits("output_counts", out, output_counts, output_displs)
        self._fits("input_counts", given, input_counts, input_displs)
        call.iris_all_to_allv(
            self._handle, given.data,
            _counts(input_counts, size, "input_counts"),
            _counts(input_displs, size, "input_displs"), out.data,
            _counts(output_counts, size, "output_counts"),
            _counts(output_displs, size, "output_displs"), given.dtype,
            ctypes.byref(options),
        )
        self._streams.finish()

    def send(
        self, tensor: Any, dst: int, group: Any = None, workspace: Any = None
    ) -> None:
        """Sends to rank dst, which must receive the same number of elements.
        On the CPU the call for a large tensor returns when the tensor has
        been received, so ranks that send to each other must use send_recv()."""
        options = self._options(group, False, None, workspace)
        _, given = self._ends(None, tensor)
        to = self._member(options, dst, "dst")
        call.iris_send(
            self._handle, given.data, call.iris_tensor_numel(given),
            given.dtype, to, ctypes.byref(options),
        )
        self._streams.finish()

    def recv(
        self, tensor: Any, src: int, group: Any = None, workspace: Any = None
    ) -> None:
        """Receives from rank src, in the order of its sends to this one."""
        options = self._options(group, False, None, workspace)
        out, _ = self._ends(tensor, None)
        source = self._member(options, src, "src")
        call.iris_recv(
            self._handle, out.data, call.iris_tensor_numel(out), out.dtype,
            source, ctypes.byref(options),
        )
        self._streams.finish()

    def send_recv(
        self,
        output_tensor: Any,
        input_tensor: Any,
        dst: int,
        src: int,
        group: Any = None,
        workspace: Any = None,
    ) -> None:
        """Sends the input to rank dst and receives the output from rank src at
        the same time."""
        options = self._options(group, False, None, workspace)
        out, given = self._ends(output_tensor, input_tensor)
        call.iris_send_recv(
            self._handle, given.data, call.iris_tensor_numel(given),
            self._member(options, dst, "dst"), out.data,
            call.iris_tensor_numel(out), self._member(options, src, "src"),
            given.dtype, ctypes.byref(options),
        )
        self._streams.finish()

    @property
    def _handle(self) -> int:
        handle: int = self._session.handle
        return handle

    @staticmethod
    def _op(op: Any, dtype: int, options: CclOptions) -> int:
        raise NotImplementedError

    def _ends(self, output: Any, input: Any) -> Tuple[Tensor, Tensor]:
        raise NotImplementedError

    def _members(self, options: CclOptions) -> int:
        size: int = call.iris_group_size(self._handle, options.group)
        return size

    def _is_at(self, options: CclOptions, member: int) -> bool:
        index: int = call.iris_group_index(self._handle, options.group)
        return index == member

    def _member(self, options: CclOptions, rank: int, name: str) -> int:
        """The index in the group of one of the job's ranks."""
        member: int = call.iris_group_translate(
            self._handle, None, rank, options.group
        )
        if member < 0:
            raise ValueError(f"{name}={rank} is no rank of the group")
        return member

    @staticmethod
    def _need(name: str, tensor: Tensor, count: int, is_used: bool) -> None:
        found = call.iris_tensor_numel(tensor) if tensor.data else 0
        if is_used and found != count:
            raise ValueError(
                f"{name}: a tensor has {found} elements, and must have {count}"
            )

    @staticmethod
    def _fits(
        name: str,
        tensor: Tensor,
        counts: Sequence[int],
        displs: Optional[Sequence[int]],
    ) -> None:
        end = sum(counts)
        if displs is not None:
            end = max((d + n for d, n in zip(displs, counts) if n), default=0)
        found = call.iris_tensor_numel(tensor)
        if end > found:
            raise ValueError(
                f"{name} end at element {end} of a tensor of {found}"
            )

    def _enqueue(
        self, name: str, given: Tensor, out: Tensor, *rest: Any
    ) -> None:
        """Calls the library. The last argument is the options."""
        function = getattr(call, f"iris_{name}")
        function(
            self._handle, given.data, out.data, *rest[:-1],
            ctypes.byref(rest[-1]),
        )
        self._streams.finish()
