# SPDX-License-Identifier: MIT
"""ctx.ops: products of matrices and collectives in one call, on torch's
stream."""

import ctypes
from typing import Any, List, Optional, Tuple

from ._groups import Groups
from ._lib import call
from ._session import Session
from ._streams import Streams
from ._structs import OpsOptions, Tensor


class Workspace:
    """Memory on the heap that a fused operation works in. Two streams, or a
    stream and a graph, that run at the same time need one each."""

    def __init__(self, session: Session, handle: Optional[int] = None) -> None:
        self._session = session
        self._is_own = handle is None
        self._handle = handle

    @property
    def handle(self) -> Optional[int]:
        """The iris_ops_workspace_t; None: the library's own."""
        if self._handle is None and not self._is_own:
            raise ValueError("this workspace has been destroyed")
        return self._handle

    def destroy(self) -> None:
        """Frees it when no stream and no graph uses it any more. Collective
        over the job. The library's own stays as long as the context."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call.iris_ops_workspace_destroy(self._session.handle, handle)

    def replace(self, handle: Optional[int]) -> None:
        """Destroys it and takes another's memory. Collective over the job."""
        self.destroy()
        self._is_own, self._handle = False, handle


class Ops:
    """Fused operations with upstream's names. All members of the group make
    the same calls in the same order.

    What their arguments have in common:
        output_tensor, A, B: matrices of one dtype, float32, float16 or
            bfloat16 (which NumPy has not), on this rank's device, with any
            strides; a row of the output is dense. An output on the heap, on
            every member, is faster.
        bias: a vector that is added to the result: of N elements one for each
            column, of as many as the product has rows one for each row. Where
            a product has as many rows as columns `bias_by_row` says which it
            is. Where products are summed, member 0's bias is added, once.
        async_op: without effect: peers do not read this rank's tensors after
            the call, so there is no barrier to leave out.
        config: an iris_c.ops.FusedConfig; its `chunks` has an effect. A
            preamble's is to be the same.
        workspace: of a preamble; None: the library's own, which the first call
            that needs one makes. A group of fewer than all ranks, a captured
            call and each of two streams at a time need one.
        group: as ctx.barrier() takes it; None: all ranks.

    A matrix that is divided between the members is divided by rows, or
    columns: if they do not divide evenly, the first members have one more.

    A call is put on torch's current stream, and can be captured in a graph. On
    the CPU it has ended when it returns. It returns the workspace, for the
    next call.
    """

    def __init__(
        self, session: Session, streams: Streams, groups: Groups, arrays: Any
    ) -> None:
        self._session = session
        self._streams = streams
        self._groups = groups
        self._arrays = arrays

    def matmul_all_reduce(
        self,
        output_tensor: Any,
        A: Any,
        B: Any,
        bias: Any = None,
        async_op: bool = False,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
        bias_by_row: Optional[bool] = None,
    ) -> Workspace:
        """The output (M, N) is the sum over the members of A (M, K) times
        B (K, N)."""
        tensors = self._tensors(output_tensor, A, B)
        options = self._options(workspace, group, config)
        rows = (tensors[0].shape[0],)
        self._add_bias(options, bias, bias_by_row, rows, tensors[1])
        return self._run("matmul_all_reduce", tensors, options, workspace)

    def all_gather_matmul(
        self,
        output_tensor: Any,
        A_sharded: Any,
        B: Any,
        bias: Any = None,
        async_op: bool = False,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
        bias_by_row: Optional[bool] = None,
    ) -> Workspace:
        """The output (M, N) is the members' A_sharded, put together, times
        this rank's B (K, N). A_sharded is this rank's share of the columns of
        an (M, K) matrix, as upstream, or of its rows."""
        tensors = self._tensors(output_tensor, A_sharded, B)
        options = self._options(workspace, group, config)
        rows = (tensors[2].shape[0],)
        self._add_bias(options, bias, bias_by_row, rows, tensors[1])
        return self._run("all_gather_matmul", tensors, options, workspace)

    def matmul_all_gather(
        self,
        output_tensor: Any,
        A: Any,
        B: Any,
        bias: Any = None,
        async_op: bool = False,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
        bias_by_row: Optional[bool] = None,
    ) -> Workspace:
        """The output (M, N) has the members' A times B (K, N), one below the
        other. A is this rank's share of M rows."""
        tensors = self._tensors(output_tensor, A, B)
        options = self._options(workspace, group, config)
        rows = self._shares(options, tensors[2].shape[0])
        self._add_bias(options, bias, bias_by_row, rows, tensors[1])
        return self._run("matmul_all_gather", tensors, options, workspace)

    def matmul_reduce_scatter(
        self,
        output_tensor: Any,
        A: Any,
        B: Any,
        bias: Any = None,
        async_op: bool = False,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
        bias_by_row: Optional[bool] = None,
    ) -> Workspace:
        """The output is this rank's share of the rows of the sum over the
        members of A (M, K) times B (K, N)."""
        tensors = self._tensors(output_tensor, A, B)
        options = self._options(workspace, group, config)
        rows = (tensors[0].shape[0],)
        self._add_bias(options, bias, bias_by_row, rows, tensors[1])
        return self._run("matmul_reduce_scatter", tensors, options, workspace)

    # ---- Preambles ----
    #
    # Each makes a workspace for the call of its name, so that none blocks.
    # Collective over the job, whatever the group: a rank that is not in it
    # passes None as tensors. `workspace`: one that no stream and no graph uses
    # any more and that gets the new memory; all ranks pass one, or none does.

    def matmul_all_reduce_preamble(
        self,
        output_tensor: Any,
        A: Any,
        B: Any,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
    ) -> Workspace:
        """Makes a workspace for matmul_all_reduce(). Collective over the
        job."""
        tensors = (output_tensor, A, B)
        return self._prepare(
            "matmul_all_reduce", tensors, workspace, group, config
        )

    def all_gather_matmul_preamble(
        self,
        A_sharded: Any,
        B: Any,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
        output_tensor: Any = None,
    ) -> Workspace:
        """Makes a workspace for all_gather_matmul(). Collective over the job.
        Without an output A_sharded is a share of the columns."""
        if output_tensor is None and A_sharded is not None:
            # Its size matters, and what is in it does not.
            output_tensor = self._arrays.matrix_like(
                A_sharded, A_sharded.shape[0], B.shape[1]
            )
        tensors = (output_tensor, A_sharded, B)
        return self._prepare(
            "all_gather_matmul", tensors, workspace, group, config
        )

    def matmul_all_gather_preamble(
        self,
        output_tensor: Any,
        A: Any,
        B: Any,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
    ) -> Workspace:
        """Makes a workspace for matmul_all_gather(). Collective over the
        job. (Upstream has none.)"""
        tensors = (output_tensor, A, B)
        return self._prepare(
            "matmul_all_gather", tensors, workspace, group, config
        )

    def matmul_reduce_scatter_preamble(
        self,
        output_tensor: Any,
        A: Any,
        B: Any,
        config: Any = None,
        workspace: Optional[Workspace] = None,
        group: Any = None,
    ) -> Workspace:
        """Makes a workspace for matmul_reduce_scatter(). Collective over the
        job."""
        tensors = (output_tensor, A, B)
        return self._prepare(
            "matmul_reduce_scatter", tensors, workspace, group, config
        )

    def _tensor(self, array: Any) -> Tensor:
        self._arrays.check_memory(array)
        seen: Tensor = self._arrays.tensor_of(array)
        return seen

    def _tensors(self, output: Any, a: Any, b: Any) -> List[Tensor]:
        """The matrices in the order of the library's calls: a, b, out."""
        return [self._tensor(array) for array in (a, b, output)]

    def _options(
        self, workspace: Optional[Workspace], group: Any, config: Any
    ) -> OpsOptions:
        made = OpsOptions()
        call.iris_ops_options_init_sized(
            ctypes.byref(made), ctypes.sizeof(made)
        )
        made.stream = self._streams.current()
        made.group = self._groups.handle_of(group)
        made.workspace = workspace.handle if workspace else None
        # Upstream's own FusedConfig has no such field.
        made.chunks = getattr(config, "chunks", None) or 0
        return made

    def _add_bias(
        self,
        options: OpsOptions,
        bias: Any,
        by_row: Optional[bool],
        rows: Tuple[int, ...],
        b: Tensor,
    ) -> None:
        """The bias, and whether it is one of rows of the product, which has
        `rows`, or one of these on each member, so that all are told alike.
        The library checks the bias's size."""
        if bias is None:
            return
        vector = self._tensor(bias)
        columns = b.shape[1]
        if by_row is None:
            if columns in rows:
                raise ValueError(
                    f"a bias of {columns} elements fits the rows and the"
                    " columns of the product; pass bias_by_row=True or False"
                )
            by_row = vector.shape[0] != columns and vector.shape[0] in rows
        options.bias = ctypes.pointer(vector)
        options.bias_by_row = int(by_row)

    def _shares(self, options: OpsOptions, rows: int) -> Tuple[int, ...]:
        """How many rows members' shares have."""
        members: int = call.iris_group_size(
            self._session.handle, options.group
        )
        return rows // members, -(-rows // members)

    def _run(
        self,
        name: str,
        tensors: List[Tensor],
        options: OpsOptions,
        workspace: Optional[Workspace],
    ) -> Workspace:
        function = getattr(call, f"iris_{name}")
        function(
            self._session.handle,
            *(ctypes.byref(tensor) for tensor in tensors),
            ctypes.byref(options),
        )
        self._streams.finish()
        return workspace or Workspace(self._session)

    def _prepare(
        self,
        name: str,
        arrays: Tuple[Any, Any, Any],
        workspace: Optional[Workspace],
        group: Any,
        config: Any,
    ) -> Workspace:
        function = getattr(call, f"iris_{name}_preamble")
        options = self._options(None, group, config)
        given: List[Any] = [None, None, None]
        if any(array is not None for array in arrays):
            given = [ctypes.byref(tensor) for tensor in self._tensors(*arrays)]
        made = ctypes.c_void_p()
        function(
            self._session.handle,
            *given,
            ctypes.byref(options),
            ctypes.byref(made),
        )
        if workspace is None:
            return Workspace(self._session, made.value)
        workspace.replace(made.value)
        return workspace
