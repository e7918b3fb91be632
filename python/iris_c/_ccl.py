# SPDX-License-Identifier: MIT
"""ctx.ccl: collectives between the members of a group, on torch's stream."""

import ctypes
import sys
from typing import Any, Optional, Tuple

from ._groups import Groups
from ._lib import call
from ._messages import Messages
from ._session import Session
from ._streams import Streams
from ._structs import CclOptions, Tensor
from ._values import BOOL, CONTIGUOUS, without_memory
from .ccl import VARIANTS, Config, PremulSum, ReduceOp


class Workspace:
    """Memory on the heap through which collectives of one group exchange
    data. Two streams that run at the same time, or a stream and a graph,
    need one workspace each."""

    def __init__(
        self, session: Session, handle: Optional[int] = None, keep: Any = None
    ) -> None:
        self._session = session
        self._is_own = handle is None
        self._handle = handle
        self._keep = keep  # the group, which destroys its own workspace

    @property
    def handle(self) -> Optional[int]:
        """The iris_ccl_workspace_t. None: the group's own."""
        if self._handle is None and not self._is_own:
            raise ValueError("this workspace has been destroyed")
        return self._handle

    def destroy(self) -> None:
        """Frees the workspace. No stream and no graph may use it any more.
        Collective over its group. A group's own workspace stays as long as
        the group."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call.iris_ccl_workspace_destroy(self._session.handle, handle)


def _torchs_name(op: Any) -> Optional[str]:
    """The name of one of torch.distributed's reductions. Their types differ
    between versions, and some have no names."""
    dist = sys.modules.get("torch.distributed")
    kind = getattr(dist, "ReduceOp", None)
    if kind is None or not isinstance(op, (kind, type(kind.SUM))):
        return None
    names = ReduceOp.__members__
    return next((name for name in names if op == getattr(kind, name)), None)


def _torchs_factor(op: Any) -> Optional[float]:
    """The factor of torch's PREMUL_SUM. Only its pickled state has the factor."""
    dist = sys.modules.get("torch.distributed")
    kind = getattr(getattr(dist, "ReduceOp", None), "PREMUL_SUM", None)
    if kind is None or not isinstance(op, getattr(dist, "ReduceOp")):
        return None
    state = op.__getstate__() if op == kind else None
    return float(state[1]) if isinstance(state, tuple) else None


#: Reductions of bools, for which the library has those of bits. As in torch
#: and in NumPy, the sum of two bools is a bool.
_OF_BOOLS = {
    ReduceOp.SUM: ReduceOp.BOR,
    ReduceOp.MAX: ReduceOp.BOR,
    ReduceOp.PRODUCT: ReduceOp.BAND,
    ReduceOp.MIN: ReduceOp.BAND,
}


def _operation(op: Any, dtype: int, options: CclOptions) -> int:
    """The operation for a ReduceOp of this package, or for one of upstream
    or torch with the same name. Sets its factor if it has one."""
    if op is None:
        op = ReduceOp.SUM
    factor = op.factor if isinstance(op, PremulSum) else _torchs_factor(op)
    if factor is not None:
        if factor == 0:
            raise ValueError("the factor of a premultiplied sum is 0")
        options.scale = factor
        return int(ReduceOp.SUM)
    name = _torchs_name(op) or getattr(op, "name", None)
    if name is None or name not in ReduceOp.__members__:
        raise ValueError(
            f"op={op!r}: takes PremulSum or ReduceOp."
            + ", ".join(ReduceOp.__members__)
        )
    found = ReduceOp[name]
    return int(_OF_BOOLS.get(found, found) if dtype == BOOL else found)


class CCL(Messages):
    """Collectives with upstream's names. All members of the group make the
    same calls in the same order.

    Common arguments:
        output_tensor, input_tensor: contiguous, of one dtype, on this rank's
            device. If all members' tensors are on the heap, the call uses
            them in place. Otherwise it needs twice the bandwidth.
        group: the same as for ctx.barrier(); None: all ranks. Before the
            first collective of a group of fewer than all ranks, all ranks
            call prepare().
        async_op: if True, the call has no barrier at the end. The result is
            complete, but peers may still read this rank's input.
        config: an iris_c.ccl.Config; None: the library decides.
        workspace: from workspace(); None: the group's own.

    A call goes to torch's current stream, and can be captured in a graph. On
    the CPU it is complete when it returns.
    """

    def __init__(
        self, session: Session, streams: Streams, groups: Groups, arrays: Any
    ) -> None:
        self._session = session
        self._streams = streams
        self._groups = groups
        self._arrays = arrays

    def all_reduce(
        self,
        output_tensor: Any,
        input_tensor: Any,
        op: Any = None,
        group: Any = None,
        async_op: bool = False,
        config: Optional[Config] = None,
        workspace: Optional[Workspace] = None,
    ) -> Workspace:
        """Each member's output becomes the reduction of all inputs. It may
        be the input. Returns the workspace for the next call."""
        self._refuse_gluon("all_reduce", config)
        options = self._options(group, async_op, config, workspace)
        out, given = self._pair(output_tensor, input_tensor)
        count = call.iris_tensor_numel(given)
        self._expect("all_reduce", out, count, "as many elements as the input")
        number = _operation(op, given.dtype, options)
        self._run("all_reduce", options, given, out, count, number)
        return workspace or Workspace(self._session)

    def all_reduce_preamble(
        self,
        output_tensor: Any,
        input_tensor: Any,
        config: Optional[Config] = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
    ) -> Workspace:
        """Makes the workspace that the group's first call would make, so
        that no call blocks. Collective over the group. The tensors have no
        effect; they are for programs that pass them."""
        options = self._options(group, False, config, workspace)
        call.iris_all_reduce_preamble(self._handle, ctypes.byref(options))
        return workspace or Workspace(self._session)

    def all_gather(
        self,
        output_tensor: Any,
        input_tensor: Any,
        group: Any = None,
        async_op: bool = False,
        config: Optional[Config] = None,
        workspace: Optional[Workspace] = None,
    ) -> None:
        """The output becomes all members' inputs, one after another, along
        the first dimension: from inputs of (M, N) it is (M * members, N).
        The input may be this rank's part of the output."""
        options = self._options(group, async_op, config, workspace)
        out, given = self._pair(output_tensor, input_tensor)
        count = call.iris_tensor_numel(given)
        size = self._members(options)
        self._expect(
            "all_gather", out, count * size, f"{size} times the input's"
        )
        if given.ndim and out.sizes()[1:] != given.sizes()[1:]:
            # As in upstream: rows of another length would be mixed up.
            rows = (size * given.sizes()[0], *given.sizes()[1:])
            raise ValueError(
                f"Output tensor shape {out.sizes()} does not match expected"
                f" shape {rows}"
            )
        self._run("all_gather", options, given, out, count)

    def reduce_scatter(
        self,
        output_tensor: Any,
        input_tensor: Any,
        op: Any = None,
        group: Any = None,
        async_op: bool = False,
        config: Optional[Config] = None,
        workspace: Optional[Workspace] = None,
    ) -> None:
        """The input has one part for each member along the first dimension.
        The output becomes the reduction of all members' parts for this rank.
        It may be this rank's part of the input."""
        self._refuse_gluon("reduce_scatter", config)
        options = self._options(group, async_op, config, workspace)
        out, given = self._pair(output_tensor, input_tensor)
        count = call.iris_tensor_numel(out)
        size = self._members(options)
        self._expect(
            "reduce_scatter", given, count * size, f"{size} times the output's"
        )
        number = _operation(op, given.dtype, options)
        self._run("reduce_scatter", options, given, out, count, number)

    def all_to_all(
        self,
        output_tensor: Any,
        input_tensor: Any,
        group: Any = None,
        async_op: bool = False,
        config: Optional[Config] = None,
        workspace: Optional[Workspace] = None,
    ) -> None:
        """The input has one part for each member along the last dimension.
        The output becomes the parts that the members have for this rank:
        columns, for tensors of (M, N * members). Tensors of one dimension
        need no copy. If parts are along the first dimension, flatten the
        tensors."""
        options = self._options(group, async_op, config, workspace)
        size = self._members(options)
        shape = self._parts(output_tensor, input_tensor, size)
        if shape[0] == 1:
            self._exchange(options, output_tensor, input_tensor, size)
            return
        self._arrays.output_of(output_tensor, by_kernels=True)
        # The parts for one member must be contiguous.
        sent = self._arrays.parts_together(input_tensor, shape)
        come = self._arrays.like(sent)
        self._exchange(options, come, sent, size)
        self._arrays.parts_apart(come, output_tensor, shape)

    def broadcast(
        self,
        output_tensor: Any,
        input_tensor: Any,
        src: int = 0,
        group: Any = None,
        async_op: bool = False,
        config: Optional[Config] = None,
        workspace: Optional[Workspace] = None,
    ) -> None:
        """Each member's output becomes rank `src`'s input. The other inputs
        are ignored, and may be the output. (ctx.broadcast() is for values on
        the host.)"""
        options = self._options(group, async_op, config, workspace)
        out, given = self._pair(output_tensor, input_tensor)
        count = call.iris_tensor_numel(given)
        self._expect("broadcast", out, count, "as many elements as the input")
        root = self._member(options, src, "src")
        self._run("broadcast", options, given, out, count, root)

    def prepare(self) -> None:
        """Makes the memory for workspaces. Collective over the job. Call it
        before the first collective of a group of fewer than all ranks. A
        second call does nothing."""
        call.iris_ccl_prepare(self._handle)

    def workspace(self, group: Any = None) -> Workspace:
        """Makes another workspace for a group, for another stream or a
        graph. Collective over the group. It lasts until its destroy(), or
        until the group or the context ends."""
        members = self._groups.handle_of(group)
        made = ctypes.c_void_p()
        call.iris_ccl_workspace_create(
            self._handle, members, ctypes.byref(made)
        )
        return Workspace(self._session, made.value, group)

    @staticmethod
    def _op(op: Any, dtype: int, options: CclOptions) -> int:
        return _operation(op, dtype, options)

    @staticmethod
    def _refuse_gluon(name: str, config: Optional[Config]) -> None:
        if config is not None and config.use_gluon:
            raise ValueError(
                f"{name} does not support use_gluon=True. Use default config"
                " (use_gluon=False)."
            )

    def _options(
        self,
        group: Any,
        async_op: bool,
        config: Optional[Config],
        workspace: Optional[Workspace],
    ) -> CclOptions:
        """The arguments of a call except its tensors, in the library's form."""
        made = CclOptions()
        call.iris_ccl_options_init_sized(
            ctypes.byref(made), ctypes.sizeof(made)
        )
        made.stream = self._streams.current()
        made.group = self._groups.handle_of(group)
        made.workspace = workspace.handle if workspace else None
        setattr(made, "async", int(bool(async_op)))
        if config is None:
            return made
        if config.comm_sms is not None:
            # Programs ask for the number of compute units of their own GPU.
            made.num_cus = min(config.comm_sms, call.iris_num_cus(self._handle))
        for operation in CclOptions.VARIANTS:
            setattr(made, operation, VARIANTS[config.variant_of(operation)])
        made.num_rings = min(config.all_reduce_num_rings, 2)
        return made

    def _end(self, name: str, array: Any, convert: Any) -> Tensor:
        seen: Tensor = convert(array, by_kernels=True)
        if not call.iris_tensor_is_contiguous(seen, CONTIGUOUS):
            raise ValueError(
                f"{name}_tensor of shape {seen.sizes()} and strides"
                f" {seen.steps()} is not contiguous; pass one that is"
            )
        return seen

    def _ends(self, output: Any, input: Any) -> Tuple[Tensor, Tensor]:
        """Both arrays in the library's form. If one is None, its tensor is the
        other one without memory."""
        out = given = None
        if output is not None:
            out = self._end("output", output, self._arrays.output_of)
        if input is not None or out is None:
            given = self._end("input", input, self._arrays.source_of)
        if out is None:
            assert given is not None
            out = without_memory(given)
        if given is None:
            given = without_memory(out)
        if out.dtype != given.dtype:
            raise ValueError(
                f"output_tensor is of {output.dtype}, input_tensor of"
                f" {input.dtype}; pass tensors of one dtype"
            )
        return out, given

    def _pair(self, output: Any, input: Any) -> Tuple[Tensor, Tensor]:
        """Two arrays in the library's form."""
        for name, array in (("output", output), ("input", input)):
            if array is None:
                raise TypeError(f"{name}_tensor is None; pass a tensor")
        return self._ends(output, input)

    @staticmethod
    def _expect(name: str, tensor: Tensor, count: int, what: str) -> None:
        found = call.iris_tensor_numel(tensor)
        if found != count:
            which = "input" if name == "reduce_scatter" else "output"
            raise ValueError(
                f"{name}: {which}_tensor has {found} elements, and must have"
                f" {count}, {what}"
            )

    @staticmethod
    def _parts(output: Any, input: Any, size: int) -> Tuple[int, int, int]:
        """The numbers of rows, of parts in each row, and of elements in each part."""
        shape = tuple(input.shape)
        if tuple(output.shape) != shape:
            raise ValueError(
                f"all_to_all: output_tensor is of shape"
                f" {tuple(output.shape)}, input_tensor of {shape}; pass"
                " tensors of one shape"
            )
        columns = shape[-1] if shape else 1
        if columns % size != 0:
            raise ValueError(
                f"all_to_all: the last of {shape} is no multiple of the"
                f" group's {size} members"
            )
        rows = 1
        for length in shape[:-1]:
            rows *= length
        return rows, size, columns // size

    def _exchange(
        self, options: CclOptions, output: Any, input: Any, size: int
    ) -> None:
        out, given = self._pair(output, input)
        count = call.iris_tensor_numel(given) // size
        self._run("all_to_all", options, given, out, count)

    def _run(
        self,
        name: str,
        options: CclOptions,
        given: Tensor,
        out: Tensor,
        count: int,
        *last: int,
    ) -> None:
        """Enqueues the collective. `last` is the operation or the root."""
        public = "ccl_broadcast" if name == "broadcast" else name
        function = getattr(call, f"iris_{public}")
        function(
            self._handle,
            given.data,
            out.data,
            count,
            given.dtype,
            *last,
            ctypes.byref(options),
        )
        self._streams.finish()
