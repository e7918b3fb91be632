# SPDX-License-Identifier: MIT
"""The library's collectives as a backend of torch.distributed:

    import iris_c.torch_backend
    torch.distributed.init_process_group("iris")

Torch's own tensors are not on a symmetric heap, so the library sends their data
in packets. Each process group has a separate heap for these.
"""

import uuid
from typing import Any, List

import torch
import torch.distributed as dist

from ._context import Iris
from ._torch_messages import Messages, plain, put_back

if not hasattr(dist.Backend, "backend_capability"):
    raise ImportError("iris_c.torch_backend needs torch 2.1 or newer")

#: Bytes of a group's heap. At most an eighth of it is for packets.
HEAP_BYTES = 256 << 20


def _done(result: Any) -> Any:
    """The work of a call whose result is on torch's current stream."""
    future: Any = torch.futures.Future()
    future.set_result(result)
    return torch._C._distributed_c10d._create_work_from_future(future)


def _base() -> Any:
    """The class of torch for backends in Python: Backend where a Python class
    can be one, and ProcessGroup in older versions."""
    kind = torch._C._distributed_c10d.Backend
    try:
        kind(0, 1)
    except TypeError:  # It has no constructor.
        return dist.ProcessGroup
    return kind


class IrisProcessGroup(_base()):  # type: ignore[misc]
    """A process group, or the backend of one: a separate job of the library
    with the same members. Versions of torch differ in the names of methods."""

    #: Torch passes the messages of a batch one by one, between two calls.
    supports_coalescing = True

    def __init__(self, context: Iris) -> None:
        rank, size = context.get_rank(), context.get_num_ranks()
        super().__init__(rank, size)
        self._context = context
        self._ccl = context.ccl
        self._messages = Messages(self._ccl, rank, size, context.get_device())

    def getBackendName(self) -> str:
        """The name for init_process_group()."""
        return "iris"

    def shutdown(self) -> None:
        """Leaves the group's job without waiting for its members."""
        self._context._session.let_go()

    def start_coalescing(self, device: Any = None) -> None:
        """Begins a batch of messages. Other calls are not put off."""
        self._messages.begin()

    def end_coalescing(self, device: Any = None) -> Any:
        """Exchanges the messages of the batch at the same time."""
        self._messages.end()
        return _done(None)

    def allreduce(self, tensors: List[Any], opts: Any = None) -> Any:
        """Replaces each tensor by the reduction over all ranks."""
        op = opts.reduceOp if opts is not None else None
        for tensor in tensors:
            both = plain(tensor)
            self._ccl.all_reduce(both, both, op)
            put_back(both, tensor)
        return _done(tensors)

    def allreduce_coalesced(self, tensors: List[Any], opts: Any = None) -> Any:
        """The same as allreduce."""
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: List[Any], opts: Any) -> Any:
        """Replaces each tensor by that of rank opts.rootRank."""
        for tensor in tensors:
            both = plain(tensor)
            self._ccl.broadcast(both, both, opts.rootRank)
            put_back(both, tensor)
        return _done(tensors)

    def all_gather_single(
        self, output: Any, input: Any, opts: Any = None
    ) -> Any:
        """The output becomes the inputs of all ranks, one after another."""
        whole = plain(output)
        self._ccl.all_gather(whole.view(-1), plain(input).view(-1))
        put_back(whole, output)
        return _done(output)

    def all_gather_single_coalesced(
        self, outputs: List[Any], inputs: List[Any], opts: Any = None
    ) -> Any:
        """all_gather_single() of several tensors."""
        for output, input in zip(outputs, inputs):
            self.all_gather_single(output, input)
        return _done(outputs)

    def allgather(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None
    ) -> Any:
        """The r-th tensor of the list becomes rank r's tensor."""
        for parts, input in zip(outputs, inputs):
            counts = [part.numel() for part in parts]
            whole = input.new_empty(sum(counts))
            self._ccl.all_gatherv(whole, plain(input).view(-1), counts)
            _take_apart(whole, parts)
        return _done(outputs)

    def reduce(self, tensors: List[Any], opts: Any) -> Any:
        """Replaces the tensor of rank opts.rootRank by the reduction over all ranks."""
        for tensor in tensors:
            both = plain(tensor)
            self._ccl.reduce(both, both, opts.rootRank, opts.reduceOp)
            put_back(both, tensor)
        return _done(tensors)

    def gather(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any
    ) -> Any:
        """On rank opts.rootRank the r-th tensor of the list becomes rank r's tensor."""
        given = plain(inputs[0]).view(-1)
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
        both = plain(outputs[0]).view(-1)
        self._ccl.scatter(both, whole, opts.rootRank)
        put_back(both, outputs[0])
        return _done(outputs)

    def send(self, tensors: List[Any], dst: int, tag: int) -> Any:
        """Sends to a rank that receives. Messages of one tag match in order."""
        for tensor in tensors:
            self._messages.send(tensor, dst, tag)
        return _done(tensors)

    def recv(self, tensors: List[Any], src: int, tag: int) -> Any:
        """Receives from a rank that sends."""
        for tensor in tensors:
            self._messages.receive(tensor, src, tag)
        return _done(tensors)

    def reduce_scatter_single(
        self, output: Any, input: Any, opts: Any = None
    ) -> Any:
        """Rank r gets the reduction of the r-th parts of the inputs."""
        op = opts.reduceOp if opts is not None else None
        both = plain(output)
        self._ccl.reduce_scatter(both.view(-1), plain(input).view(-1), op)
        put_back(both, output)
        return _done(output)

    def reduce_scatter_single_coalesced(
        self, outputs: List[Any], inputs: List[Any], opts: Any = None
    ) -> Any:
        """reduce_scatter_single() of several tensors."""
        for output, input in zip(outputs, inputs):
            self.reduce_scatter_single(output, input, opts)
        return _done(outputs)

    def reduce_scatter(
        self, outputs: List[Any], inputs: List[List[Any]], opts: Any
    ) -> Any:
        """Rank r gets the reduction of the r-th tensors of the lists."""
        for output, parts in zip(outputs, inputs):
            whole = torch.stack([plain(part) for part in parts])
            self.reduce_scatter_single(output, whole, opts)
        return _done(outputs)

    def all_to_all_single(
        self,
        output: Any,
        input: Any,
        output_sizes: List[int],
        input_sizes: List[int],
        opts: Any = None,
    ) -> Any:
        """Exchanges parts along the first dimension, with these sizes or equal ones."""
        both, given = plain(output), plain(input).view(-1)
        if not output_sizes and not input_sizes:
            self._ccl.all_to_all(both.view(-1), given)
        else:
            self._ccl.all_to_allv(
                both.view(-1),
                given,
                self._counts(output, output_sizes),
                self._counts(input, input_sizes),
            )
        put_back(both, output)
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

    # The names of versions in which Python's class is a ProcessGroup.
    _start_coalescing = start_coalescing
    _end_coalescing = end_coalescing
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single


def _put_together(parts: List[Any]) -> Any:
    return torch.cat([plain(part).view(-1) for part in parts])


def _take_apart(whole: Any, parts: List[Any]) -> None:
    """Copies parts that arrived one after another to their destinations."""
    at = 0
    for part in parts:
        arrived = whole[at : at + part.numel()].view(part.shape)
        part.detach().copy_(arrived)
        at += part.numel()


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
