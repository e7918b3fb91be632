# SPDX-License-Identifier: MIT
"""ctx.ops: a product of matrices and a collective in one call, on torch's stream."""

import ctypes
from typing import Any, List, Optional, Tuple

from ._groups import Groups
from ._lib import call
from ._session import Session
from ._streams import Streams
from ._structs import OpsOptions, Tensor


class Workspace:
    """Memory on the heap for a fused operation. Two streams that run at the
    same time, or a stream and a graph, need one workspace each."""

    def __init__(self, session: Session, handle: Optional[int] = None) -> None:
        self._session = session
        self._is_own = handle is None
        self._handle = handle

    @property
    def handle(self) -> Optional[int]:
        """The iris_ops_workspace_t. None: the library's own."""
        if self._handle is None and not self._is_own:
            raise ValueError("this workspace has been destroyed")
        return self._handle

    def destroy(self) -> None:
        """Frees the workspace. No stream and no graph may use it any more.
        Collective over the job. The library's own workspace stays as long as
        the context."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call.iris_ops_workspace_destroy(self._session.handle, handle)

    def replace(self, handle: Optional[int]) -> None:
        """Frees this workspace's memory and takes over another's. Collective
        over the job."""
        self.destroy()
        self._is_own, self._handle = False, handle


class Ops:
    """Fused operations with upstream's names. All members of the group make
    the same calls in the same order.

    Common arguments:
        output_tensor, A, B: matrices of one dtype, float32, float16 or
            bfloat16 (which NumPy does not have), on this rank's device, with
            any strides. Rows of the output are dense. The call is faster if
            all members' outputs are on the heap.
        bias: a vector that is added to the result. It has an element for each
            of the N columns, or one for each row of the product. If the
            product has N rows, `bias_by_row` says which it is. If products
            are summed, member 0's bias is added once.
        async_op: no effect. Peers do not read this rank's tensors after the
            call, so there is no barrier to leave out.
        config: an iris_c.ops.FusedConfig. Only its `chunks` has an effect.
            Pass the same number to the preamble.
        workspace: from a preamble; None: the library's own, which the first
            call that needs one makes. Pass one for a group of fewer than all
            ranks, for a captured call, and for a second stream that runs at
            the same time.
        group: the same as for ctx.barrier(); None: all ranks.

    The members share a matrix by rows or by columns. If these do not divide
    evenly, the first members have one more.

    A call goes to torch's current stream, and can be captured in a graph. On
    the CPU it is complete when it returns. It returns the workspace for the
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
        """The output (M, N) becomes the sum over the members of A (M, K)
        times B (K, N)."""
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
        """The output (M, N) becomes the product of an (M, K) matrix and this
        rank's B (K, N). A_sharded is this rank's share of that matrix: of
        its columns, as in upstream, or of its rows."""
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
        """The output (M, N) becomes the members' A times B (K, N), one below
        the other. A is this rank's share of M rows."""
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
        """The output becomes this rank's share of the rows of a sum: A (M,
        K) times B (K, N), summed over the members."""
        tensors = self._tensors(output_tensor, A, B)
        options = self._options(workspace, group, config)
        rows = (tensors[0].shape[0],)
        self._add_bias(options, bias, bias_by_row, rows, tensors[1])
        return self._run("matmul_reduce_scatter", tensors, options, workspace)

    # ---- Preambles ----
    #
    # Each makes a workspace for the call of its name, so that no call blocks.
    # Collective over the job: a rank that is not in the group passes None as
    # tensors. `workspace` gets the new memory. No stream and no graph may use
    # it any more, and either all ranks pass a workspace or no rank does.

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
        """Makes a workspace for all_gather_matmul(). Collective over the
        job. Without an output A_sharded is a share of the columns."""
        if output_tensor is None and A_sharded is not None:
            # Only its size matters, not its contents.
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
        job. Upstream does not have this call."""
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

    def _tensors(self, output: Any, a: Any, b: Any) -> List[Tensor]:
        """The matrices in the order of the library's calls: a, b, out."""
        source, out = self._arrays.source_of, self._arrays.output_of
        return [source(a, True), source(b, True), out(output, True)]

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
        # Upstream's own FusedConfig does not have this field.
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
        """The bias, and whether it has an element for each row of the
        product. The product has `rows` rows here, or other numbers on other
        members, so all members must decide alike. The library checks the
        bias's size."""
        if bias is None:
            return
        vector = self._arrays.source_of(bias, True)
        columns = b.shape[1]
        if by_row is None:
            if columns in rows:
                raise ValueError(
                    f"a bias of {columns} elements fits the rows and the"
                    " columns of the product; pass bias_by_row=True or False"
                )
            by_row = vector.shape[0] != columns and vector.shape[0] in rows
        options.bias = ctypes.pointer(vector)
        options.keep = vector
        options.bias_by_row = int(by_row)

    def _shares(self, options: OpsOptions, rows: int) -> Tuple[int, ...]:
        """The numbers of rows in the members' shares."""
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
