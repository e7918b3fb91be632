# SPDX-License-Identifier: MIT
"""The library's collectives as a backend of torch.distributed:

    import iris_c.torch_backend
    torch.distributed.init_process_group("iris")

Torch's own tensors are not on a symmetric heap, so the library sends their data
in packets. Each process group has a separate heap for these. Two ranks that send
to each other may use batch_isend_irecv only if their tensors are small.
"""

import uuid
from typing import Any, List

import torch
import torch.distributed as dist

from ._context import Iris

if not hasattr(dist.Backend, "backend_capability"):
    raise ImportError("iris_c.torch_backend needs torch 2.1 or newer")

#: Bytes of a group's heap. At most an eighth of it is for packets.
HEAP_BYTES = 256 << 20


def _done(result: Any) -> Any:
    """The work of a call whose result is on torch's current stream."""
    future: Any = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


class IrisProcessGroup(dist.ProcessGroup):
    """A process group: a separate job of the library with the same members."""

    def __init__(self, context: Iris) -> None:
        super().__init__(context.get_rank(), context.get_num_ranks())
        self._context = context
        self._ccl = context.ccl

    def getBackendName(self) -> str:
        """The name for init_process_group()."""
        return "iris"

    def allreduce(self, tensors: List[Any], opts: Any = None) -> Any:
        """Replaces each tensor by the reduction over all ranks."""
        op = opts.reduceOp if opts is not None else None
        for tensor in tensors:
            both = tensor.contiguous()
            self._ccl.all_reduce(both, both, op)
            _put_back(both, tensor)
        return _done(tensors)

    def allreduce_coalesced(self, tensors: List[Any], opts: Any = None) -> Any:
        """The same as allreduce."""
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: List[Any], opts: Any) -> Any:
        """Replaces each tensor by that of rank opts.rootRank."""
        for tensor in tensors:
            both = tensor.contiguous()
            self._ccl.broadcast(both, both, opts.rootRank)
            _put_back(both, tensor)
        return _done(tensors)

    def _allgather_base(self, output: Any, input: Any, opts: Any = None) -> Any:
        self._ccl.all_gather(output.view(-1), input.contiguous().view(-1))
        return _done(output)

    def allgather(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None
    ) -> Any:
        """The r-th tensor of the list becomes rank r's tensor."""
        for parts, input in zip(outputs, inputs):
            counts = [part.numel() for part in parts]
            whole = input.new_empty(sum(counts))
            self._ccl.all_gatherv(whole, input.contiguous().view(-1), counts)
            _take_apart(whole, parts)
        return _done(outputs)

    def reduce(self, tensors: List[Any], opts: Any) -> Any:
        """Replaces the tensor of rank opts.rootRank by the reduction over all ranks."""
        for tensor in tensors:
            both = tensor.contiguous()
            self._ccl.reduce(both, both, opts.rootRank, opts.reduceOp)
            _put_back(both, tensor)
        return _done(tensors)

    def gather(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any
    ) -> Any:
        """On rank opts.rootRank the r-th tensor of the list becomes rank r's tensor."""
        given = inputs[0].contiguous().view(-1)
        parts = outputs[0] if outputs else []
        whole = given.new_empty(len(parts) * given.numel()) if parts else None
        self._ccl.gather(whole, given, opts.rootRank)
        _take_apart(whole, parts)
        return _done(outputs)

    def scatter(
        self, outputs: List[Any], inputs: List[List[Any]], opts: Any
    ) -> Any:
        """Rank r gets the r-th tensor of the list of rank opts.rootRank."""
        whole = _put_together(inputs[0]) if inputs and inputs[0] else None
        both = outputs[0].contiguous().view(-1)
        self._ccl.scatter(both, whole, opts.rootRank)
        _put_back(both.view_as(outputs[0]), outputs[0])
        return _done(outputs)

    def send(self, tensors: List[Any], dst: int, tag: int) -> Any:
        """Sends to a rank that receives. Messages match in order, whatever the tag."""
        for tensor in tensors:
            self._ccl.send(tensor.contiguous().view(-1), dst)
        return _done(tensors)

    def recv(self, tensors: List[Any], src: int, tag: int) -> Any:
        """Receives from a rank that sends."""
        for tensor in tensors:
            both = tensor.contiguous()
            self._ccl.recv(both.view(-1), src)
            _put_back(both, tensor)
        return _done(tensors)

    def _reduce_scatter_base(self, output: Any, input: Any, opts: Any) -> Any:
        given = input.contiguous().view(-1)
        self._ccl.reduce_scatter(output.view(-1), given, opts.reduceOp)
        return _done(output)

    def reduce_scatter(
        self, outputs: List[Any], inputs: List[List[Any]], opts: Any
    ) -> Any:
        """Rank r gets the reduction of the r-th tensors of the lists."""
        for output, parts in zip(outputs, inputs):
            whole = torch.stack([part.contiguous() for part in parts])
            self._reduce_scatter_base(output, whole, opts)
        return _done(outputs)

    def alltoall_base(
        self,
        output: Any,
        input: Any,
        output_sizes: List[int],
        input_sizes: List[int],
        opts: Any = None,
    ) -> Any:
        """Exchanges parts along the first dimension, with these sizes or equal ones."""
        given = input.contiguous().view(-1)
        if not output_sizes and not input_sizes:
            self._ccl.all_to_all(output.view(-1), given)
        else:
            self._ccl.all_to_allv(
                output.view(-1),
                given,
                self._counts(output, output_sizes),
                self._counts(input, input_sizes),
            )
        return _done(output)

    def _counts(self, tensor: Any, sizes: List[int]) -> List[int]:
        """The number of elements in each part, from its number of rows."""
        rows = tensor.shape[0]
        if not sizes:
            sizes = [rows // self.size()] * self.size()
        return [size * (tensor.numel() // max(rows, 1)) for size in sizes]

    def alltoall(
        self, outputs: List[Any], inputs: List[Any], opts: Any = None
    ) -> Any:
        """The r-th input goes to rank r, and the r-th output comes from rank r."""
        counts = [part.numel() for part in outputs]
        whole = outputs[0].new_empty(sum(counts))
        self._ccl.all_to_allv(
            whole,
            _put_together(inputs),
            counts,
            [part.numel() for part in inputs],
        )
        _take_apart(whole, outputs)
        return _done(outputs)

    def barrier(self, opts: Any = None) -> Any:
        """Waits for all ranks."""
        self._context.barrier()
        return _done(None)


def _put_together(parts: List[Any]) -> Any:
    return torch.cat([part.contiguous().view(-1) for part in parts])


def _take_apart(whole: Any, parts: List[Any]) -> None:
    """Copies parts that arrived one after another to their destinations."""
    at = 0
    for part in parts:
        part.copy_(whole[at : at + part.numel()].view_as(part))
        at += part.numel()


def _put_back(result: Any, tensor: Any) -> None:
    if result.data_ptr() != tensor.data_ptr():
        tensor.copy_(result)


def _create(store: Any, rank: int, size: int, timeout: Any) -> Any:
    """Creates a group's job. Rank 0 makes a name that no other job has."""
    if rank == 0:
        store.set("iris_job", f"torch-{uuid.uuid4().hex}")
    return IrisProcessGroup(
        Iris(
            HEAP_BYTES,
            arrays="torch",
            bootstrap="env",
            rank=rank,
            num_ranks=size,
            job_id=store.get("iris_job").decode(),
            timeout_ms=int(timeout.total_seconds() * 1000),
        )
    )


dist.Backend.register_backend("iris", _create, devices=["cpu", "cuda"])
