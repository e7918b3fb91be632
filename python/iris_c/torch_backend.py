# SPDX-License-Identifier: MIT
"""The library's collectives as a backend of torch.distributed:

    import iris_c.torch_backend
    torch.distributed.init_process_group("iris")

Torch's own tensors are not on a symmetric heap, so the library sends their data
in packets. Each process group has a separate heap for these.
"""

import contextlib
import functools
import math
import threading
import time
import uuid
from datetime import timedelta
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set

import torch
import torch.distributed as dist

from ._context import Iris
from ._errors import DeadlineError, IrisError, StateError
from ._torch_messages import (
    Exchange,
    Home,
    Message,
    Messages,
    plain,
    put_back,
)

if not hasattr(dist.Backend, "backend_capability"):
    raise ImportError("iris_c.torch_backend needs torch 2.1 or newer")

#: Bytes of a group's heap. At most an eighth of it is for packets.
HEAP_BYTES = 256 << 20


_Work = torch._C._distributed_c10d.Work
_source_of_work, _is_work_completed = _Work._source_rank, _Work.is_completed

#: The source of the messages that each thread has waited for last.
_latest = threading.local()


def _source_rank(work: Any) -> Any:
    """The source of a receive, for which recv() asks after wait()."""
    try:
        return _source_of_work(work)
    except RuntimeError:
        if getattr(_latest, "source", None) is None:
            raise
        return _latest.source


def _is_completed(work: Any) -> bool:
    if _is_work_completed(work):
        return True
    try:
        return bool(work.get_future().done())
    except RuntimeError:  # It has none.
        return False


def _look_through() -> None:
    """Torch wraps the work of a backend in Python, and the wrapper knows
    neither the source of a message nor the end."""
    _Work._source_rank, _Work.is_completed = _source_rank, _is_completed


class _Pending(torch._C._distributed_c10d.Work):
    """The work of a call: messages that the group's thread exchanges, or none
    if the result is on a stream of torch already."""

    def __init__(
        self,
        result: Any,
        messages: Sequence[Message],
        timeout: timedelta,
        stream: Any = None,
    ) -> None:
        super().__init__()
        self._result = result
        self._messages = messages
        self._timeout = timeout
        self._stream = stream

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the messages. Raises the error of the first that failed.
        On a GPU torch's current stream waits for the call's stream."""
        limit = timeout or self._timeout
        end = time.monotonic() + limit.total_seconds()
        for message in self._messages:
            if not message.wait(max(end - time.monotonic(), 0)):
                raise DeadlineError(
                    f"{message} is not complete after {limit}; check that the"
                    " peer makes the matching call"
                )
        _latest.source = self._source_rank()
        self._put_behind()
        return True

    def _put_behind(self) -> None:
        """Programs may wait on another stream than that of the call."""
        if self._stream is not None:
            current = torch.cuda.current_stream(self._stream.device)
            if current != self._stream:
                current.wait_stream(self._stream)

    def is_completed(self) -> bool:
        """Whether all messages have ended."""
        return all(message.is_done() for message in self._messages)

    def is_success(self) -> bool:
        """Whether all have ended without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        """The error of the first message that failed."""
        errors = (message.error for message in self._messages)
        return next((error for error in errors if error is not None), None)

    def result(self) -> Any:
        """The tensors."""
        return self._result

    def get_future(self) -> Any:
        """A future of the tensors."""
        self._put_behind()
        ended: Any = torch.futures.Future()

        # Torch loses the exception of a future that Python sets, and keeps that
        # of a callback.
        def finish(_: Any) -> Any:
            error = self.exception()
            if error is not None:
                raise error
            return self._result

        def settle() -> None:
            if self.is_completed() and not ended.done():
                ended.set_result(None)

        future = ended.then(finish)
        settle()
        for message in self._messages:
            message.when_done(settle)
        return future

    def _source_rank(self) -> Optional[int]:
        return self._messages[0].peer if self._messages else None


class _ProcessGroup(dist.ProcessGroup):
    """A process group in Python keeps its name itself: torch's own class asks
    its backends, and this has none."""

    _name = _text = ""

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def _set_group_desc(self, text: str) -> None:
        self._text = text

    def getGroupName(self) -> str:
        """The name by which functional collectives find the group."""
        return self._name

    def getGroupDesc(self) -> str:
        """The description that the program gave."""
        return self._text

    setGroupName, setGroupDesc = _set_group_name, _set_group_desc
    group_name, group_desc = property(getGroupName), property(getGroupDesc)


def _base() -> Any:
    """The class of torch for backends in Python: Backend where a Python class
    can be one, and ProcessGroup in older versions."""
    kind = torch._C._distributed_c10d.Backend
    try:
        kind(0, 1)
    except TypeError:  # It has no constructor.
        return _ProcessGroup
    _look_through()
    return kind


def _shut_down(destroy: Any) -> Any:
    """destroy_process_group(), which does not shut groups in Python down in the
    oldest versions."""

    @functools.wraps(destroy)
    def call(group: Any = None) -> None:
        is_all = group is None or group == dist.GroupMember.WORLD
        groups = list(dist.distributed_c10d._world.pg_map) if is_all else [group]
        destroy(group)
        for one in groups:
            if isinstance(one, IrisProcessGroup):
                one.shutdown()

    return call


if _base() is _ProcessGroup:
    dist.distributed_c10d.destroy_process_group = _shut_down(
        dist.destroy_process_group
    )
    dist.destroy_process_group = dist.distributed_c10d.destroy_process_group


class _Order:
    """A group's calls run one after another, also where a program on a GPU makes
    them on several streams, as FSDP2 does: one stream at a time may use the
    group's workspace. From the second stream on, the calls run on a stream of the
    group, behind the work of the program's stream and ahead of its later work."""

    def __init__(self, context: Iris) -> None:
        self._context = context
        self._streams = context.ccl._streams
        self._first: Any = None
        self._own: Any = None

    def current(self) -> Any:
        """Torch's current stream. None on the CPU."""
        device = self._streams.device_id()
        return None if device is None else torch.cuda.current_stream(device)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Makes the calls inside run in this order."""
        current = self.current()
        if current is None or torch.cuda.is_current_stream_capturing():
            yield
            return
        if self._first is None:
            self._first = current
        if self._own is None and current != self._first:
            self._streams.synchronize(self._first)
            self._own = torch.cuda.Stream(current.device)
        if self._own is None:
            yield
            return
        self._own.wait_stream(current)
        with torch.cuda.stream(self._own):
            yield
        current.wait_stream(self._own)


class _Timed:
    """The library's calls. Programs of torch know a timeout by its word."""

    def __init__(self, calls: Any, order: _Order) -> None:
        self._calls = calls
        self._order = order

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._calls, name)

        def timed(*args: Any) -> Any:
            try:
                with self._order.hold():
                    return call(*args)
            except DeadlineError as error:
                raise DeadlineError(f"{name}: Timed out : {error}") from error

        return timed


#: Backends that have not been shut down: torch's C++ keeps no Python object.
_groups: Set["IrisProcessGroup"] = set()


class IrisProcessGroup(_base()):  # type: ignore[misc]
    """A process group, or the backend of one: a separate job of the library
    with the same members. Versions of torch differ in the names of methods."""

    supports_coalescing = supports_splitting = True
    supports_shrinking = supports_reconfigure = supports_window = False
    supports_time_estimate = False

    def __init__(self, context: Iris, timeout: timedelta) -> None:
        rank, size = context.get_rank(), context.get_num_ranks()
        super().__init__(rank, size)
        self._context = context
        self._order = _Order(context)
        self._ccl = _Timed(context.ccl, self._order)
        self._timeout = timeout
        device = context.get_device()
        is_cpu = device.type == "cpu"
        Home.gpu = None if is_cpu else device
        self._messages: Any = (
            Messages(context, timeout) if is_cpu else Exchange(context)
        )
        self._batch: Optional[List[Message]] = None
        self._calls = 0
        self._num_monitored = 0
        if not isinstance(self, _ProcessGroup):
            _groups.add(self)

    @property
    def options(self) -> Any:
        """The timeout, as torch's options."""
        distributed = torch._C._distributed_c10d
        kind = getattr(distributed.Backend, "Options", None)
        kind = kind or distributed.ProcessGroup.Options
        return kind("iris", self._timeout)

    def set_timeout(self, timeout: timedelta) -> None:
        """Refused: the library has the timeout from the beginning."""
        raise NotImplementedError(
            f"set_timeout({timeout}) of iris: pass timeout= to"
            " init_process_group() or new_group()"
        )

    def getBackendName(self) -> str:
        """The name for init_process_group()."""
        return "iris"

    def shutdown(self) -> None:
        """Leaves the group's job without waiting for its members."""
        _groups.discard(self)
        self._messages.stop()
        self._leave()

    def _leave(self) -> None:
        session = self._context._session
        if session.is_closed or self._context.lost_rank() < 0:
            session.let_go()
            return
        try:  # Calls have told of the lost rank.
            session.leave()
        except IrisError:
            pass

    def abort(self) -> None:
        """Ends the waits of this rank and of its peers, and leaves the job."""
        _groups.discard(self)
        error = StateError("the process group has been aborted")
        self._context._session.interrupt(error)
        self._messages.stop(error)
        try:
            self._context._session.leave()
        except IrisError:  # The interrupt has ended it.
            pass

    def start_coalescing(self, device: Any = None) -> None:
        """Begins a batch of messages. Other calls are not put off."""
        self._batch = []

    def end_coalescing(self, device: Any = None) -> Any:
        """The work of the messages of the batch, which are exchanged at the
        same time."""
        batch, self._batch = self._batch or [], None
        return self._begin(batch)

    def _done(self, result: Any) -> Any:
        """The work of a call whose result is on torch's current stream."""
        self._calls += 1
        stream = self._order.current()
        if not isinstance(self, _ProcessGroup):
            return _Pending(result, (), self._timeout, stream)
        # The C++ of older versions keeps no work that is Python's. A future of a
        # device puts the stream that waits for it behind the current one.
        devices = None if stream is None else [stream.device]
        future: Any = torch.futures.Future(devices=devices)
        future.set_result(result)
        return torch._C._distributed_c10d._create_work_from_future(future)

    def _begin(self, messages: List[Message]) -> Any:
        if self._batch is not None:
            self._batch += messages
        elif isinstance(self._messages, Exchange):
            with self._order.hold():
                self._messages.run()
            return self._done([message.tensor for message in messages])
        self._calls += 1
        tensors = [message.tensor for message in messages]
        return _Pending(tensors, messages, self._timeout)

    def allreduce(self, tensors: List[Any], opts: Any = None) -> Any:
        """Replaces each tensor by the reduction over all ranks."""
        op = opts.reduceOp if opts is not None else None
        for tensor in tensors:
            if tensor.layout == torch.sparse_coo:
                self._add_sparse(tensor, op)
                continue
            both = plain(tensor)
            self._ccl.all_reduce(both, both, op)
            put_back(both, tensor)
        return self._done(tensors)

    def _add_sparse(self, tensor: Any, op: Any) -> None:
        if op is not None and op != dist.ReduceOp.SUM:
            raise NotImplementedError(
                f"allreduce of sparse tensors by {op}; pass ReduceOp.SUM"
            )
        given = tensor.detach().coalesce()
        own = plain(torch.tensor([given._nnz()], device=tensor.device))
        counts = own.new_empty(self.size())
        self._ccl.all_gather(counts, own)
        found = [self._gather(given.indices().t(), counts.tolist()).t()]
        found.append(self._gather(given.values(), counts.tolist()))
        made = torch.sparse_coo_tensor(
            *found, tensor.shape, check_invariants=False
        )
        with torch.no_grad():
            tensor.copy_(made.coalesce())

    def _gather(self, rows: Any, counts: List[int]) -> Any:
        """The rows of all ranks, of which each has another number."""
        given = plain(rows)
        whole = given.new_empty(sum(counts), *rows.shape[1:])
        width = math.prod(rows.shape[1:])
        self._ccl.all_gatherv(
            whole.view(-1), given.view(-1), [n * width for n in counts]
        )
        return whole

    def allreduce_coalesced(self, tensors: List[Any], opts: Any = None) -> Any:
        """The same as allreduce."""
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors: List[Any], opts: Any) -> Any:
        """Replaces each tensor by that of rank opts.rootRank."""
        for tensor in tensors:
            both = plain(tensor)
            self._ccl.broadcast(both, both, opts.rootRank)
            put_back(both, tensor)
        return self._done(tensors)

    def all_gather_single(
        self, output: Any, input: Any, opts: Any = None
    ) -> Any:
        """The output becomes the inputs of all ranks, one after another."""
        whole, given = plain(output).view(-1), plain(input).view(-1)
        mine = whole[self.rank() * given.numel() :]
        is_in_place = given.data_ptr() == mine.data_ptr()
        self._ccl.all_gather(whole, _apart(given, whole, is_in_place))
        put_back(whole, output)
        return self._done(output)

    def all_gather_single_coalesced(
        self, outputs: List[Any], inputs: List[Any], opts: Any = None
    ) -> Any:
        """all_gather_single() of several tensors."""
        for output, input in _pairs(outputs, inputs):
            self.all_gather_single(output, input)
        return self._done(outputs)

    def allgather(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None
    ) -> Any:
        """The r-th tensor of the list becomes rank r's tensor."""
        for parts, input in _pairs(outputs, inputs):
            counts = [part.numel() for part in parts]
            given = plain(input).view(-1)
            whole = given.new_empty(sum(counts))
            self._ccl.all_gatherv(whole, given, counts)
            _take_apart(whole, parts)
        return self._done(outputs)

    def allgather_coalesced(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any = None
    ) -> Any:
        """allgather() of several tensors. The r-th list is of rank r."""
        return self.allgather([list(parts) for parts in zip(*outputs)], inputs)

    def reduce(self, tensors: List[Any], opts: Any) -> Any:
        """Replaces the tensor of rank opts.rootRank by the reduction over all ranks."""
        for tensor in tensors:
            both = plain(tensor)
            self._ccl.reduce(both, both, opts.rootRank, opts.reduceOp)
            put_back(both, tensor)
        return self._done(tensors)

    def gather(
        self, outputs: List[List[Any]], inputs: List[Any], opts: Any
    ) -> Any:
        """On rank opts.rootRank the r-th tensor of the list becomes rank r's tensor."""
        given = plain(inputs[0]).view(-1)
        parts = outputs[0] if outputs else []
        _check_parts("gather", parts, given)
        whole = given.new_empty(len(parts) * given.numel()) if parts else None
        self._ccl.gather(whole, given, opts.rootRank)
        _take_apart(whole, parts)
        return self._done(outputs)

    def scatter(
        self, outputs: List[Any], inputs: List[List[Any]], opts: Any
    ) -> Any:
        """Rank r gets the r-th tensor of the list of rank opts.rootRank."""
        both = plain(outputs[0]).view(-1)
        parts = inputs[0] if inputs else []
        _check_parts("scatter", parts, both)
        whole = _put_together(parts) if parts else None
        self._ccl.scatter(both, whole, opts.rootRank)
        put_back(both, outputs[0])
        return self._done(outputs)

    def send(self, tensors: List[Any], dst: int, tag: int) -> Any:
        """Sends to a rank that receives. Messages of one tag match in order."""
        return self._add(self._messages.send, tensors, dst, tag)

    def recv(self, tensors: List[Any], src: Optional[int], tag: int) -> Any:
        """Receives from a rank that sends."""
        return self._add(self._messages.receive, tensors, src, tag)

    def _add(
        self, call: Any, tensors: List[Any], peer: Optional[int], tag: int
    ) -> Any:
        try:
            messages = [call(tensor, peer, tag) for tensor in tensors]
        except Exception:  # Torch does not end the batch.
            self._batch = None
            self._messages.forget()
            raise
        return self._begin(messages)

    def recv_anysource(self, tensors: List[Any], tag: int) -> Any:
        """Receives from the first rank that sends."""
        return self.recv(tensors, None, tag)

    def reduce_scatter_single(
        self, output: Any, input: Any, opts: Any = None
    ) -> Any:
        """Rank r gets the reduction of the r-th parts of the inputs."""
        op = opts.reduceOp if opts is not None else None
        both, given = plain(output).view(-1), plain(input).view(-1)
        mine = given[self.rank() * both.numel() :]
        is_in_place = both.data_ptr() == mine.data_ptr()
        self._ccl.reduce_scatter(both, _apart(given, both, is_in_place), op)
        put_back(both, output)
        return self._done(output)

    def reduce_scatter_single_coalesced(
        self, outputs: List[Any], inputs: List[Any], opts: Any = None
    ) -> Any:
        """reduce_scatter_single() of several tensors."""
        for output, input in _pairs(outputs, inputs):
            self.reduce_scatter_single(output, input, opts)
        return self._done(outputs)

    def reduce_scatter(
        self, outputs: List[Any], inputs: List[List[Any]], opts: Any
    ) -> Any:
        """Rank r gets the reduction of the r-th tensors of the lists."""
        for output, parts in _pairs(outputs, inputs):
            if len(parts) != self.size():
                raise ValueError(
                    f"reduce_scatter: a list of {len(parts)} tensors in a group"
                    f" of {self.size()} ranks; pass one for each rank"
                )
            _check_parts("reduce_scatter", [output], parts[self.rank()])
            if len({part.numel() for part in parts}) == 1:
                whole = _put_together(parts)
                self.reduce_scatter_single(output, whole, opts)
                continue
            for rank, part in enumerate(parts):
                both = plain(part).clone()
                self._ccl.reduce(both, both, rank, opts.reduceOp)
                if rank == self.rank():
                    output.detach().copy_(both.view(output.shape))
        return self._done(outputs)

    def all_to_all_single(
        self,
        output: Any,
        input: Any,
        output_sizes: List[int],
        input_sizes: List[int],
        opts: Any = None,
    ) -> Any:
        """Exchanges parts along the first dimension, with these sizes or equal ones."""
        both, given = plain(output).view(-1), plain(input).view(-1)
        given = _apart(given, both)
        counts = [
            self._counts(output, output_sizes), self._counts(input, input_sizes)
        ]
        if not output_sizes and not input_sizes:
            self._ccl.all_to_all(both, given)
        else:
            self._ccl.all_to_allv(both, given, *counts)
        put_back(both, output)
        return self._done(output)

    def _counts(self, tensor: Any, sizes: List[int]) -> List[int]:
        """The number of elements in each part, from its number of rows."""
        rows = tensor.shape[0]
        asked = sizes or [rows // self.size()] * self.size()
        if sum(asked) != rows:
            raise ValueError(
                f"all_to_all_single: the parts of a tensor of {rows} rows in a"
                f" group of {self.size()} ranks have {asked} rows; pass parts"
                " that are the whole tensor"
            )
        return [size * (tensor.numel() // max(rows, 1)) for size in asked]

    def alltoall(
        self, outputs: List[Any], inputs: List[Any], opts: Any = None
    ) -> Any:
        """The r-th input goes to rank r, and the r-th output comes from rank r."""
        counts = [part.numel() for part in outputs]
        given = _put_together(inputs)
        whole = given.new_empty(sum(counts))
        self._ccl.all_to_allv(
            whole,
            given,
            counts,
            [part.numel() for part in inputs],
        )
        _take_apart(whole, outputs)
        return self._done(outputs)

    def barrier(self, opts: Any = None) -> Any:
        """Waits for all ranks."""
        _Timed(self._context, self._order).barrier()
        return self._done(None)

    def monitored_barrier(
        self, opts: Any = None, wait_all_ranks: bool = False
    ) -> None:
        """A barrier at which rank 0 names the ranks that do not come in time."""
        if isinstance(self._messages, Exchange):
            raise NotImplementedError(
                "monitored_barrier of iris on GPUs; use barrier()"
            )
        none = torch.empty(0)
        asked = getattr(opts, "timeout", opts)  # older versions pass it alone
        if asked is None or asked < timedelta(0):  # torch's kUnsetTimeout
            asked = self._timeout
        limit = asked.total_seconds()
        # The messages of a barrier that some ranks gave up match no later one.
        # The program's tags are not negative.
        self._num_monitored += 1
        if limit == 0 and self.rank() == 0:
            raise DeadlineError(
                "[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 s"
            )
        arrival, release = -2 * self._num_monitored + 1, -2 * self._num_monitored
        if self.rank() != 0:
            self._messages.send(none, 0, arrival)
            came = {0: self._messages.receive(none, 0, release)}
        else:
            others = range(1, self.size())
            came = {r: self._messages.receive(none, r, arrival) for r in others}
        try:
            self._await_all(came, limit, wait_all_ranks)
        finally:
            for message in came.values():
                self._messages.withdraw(message)
        if self.rank() == 0:
            for rank in others:
                self._messages.send(none, rank, release)

    def _await_all(
        self, came: Dict[int, Message], limit: float, wait_all_ranks: bool
    ) -> None:
        end = time.monotonic() + limit
        missing = []
        for rank, message in came.items():
            if not message.wait(max(end - time.monotonic(), 0)):
                missing.append(rank)
                if not wait_all_ranks:
                    break
        if missing and self.rank() != 0:
            raise DeadlineError(
                f"Rank {self.rank()} successfully reached monitoredBarrier, but"
                " received errors while waiting for send/recv from rank 0: it did"
                f" not pass the barrier within {limit} s"
            )
        if missing:
            names = ", ".join(map(str, missing))
            raise DeadlineError(
                f"[Rank 0]: Rank{'s' * wait_all_ranks} {names} failed to pass"
                f" monitoredBarrier in {limit} s"
            )

    def _set_sequence_number_for_group(self) -> None:
        self._calls = 0

    def _get_sequence_number_for_group(self) -> int:
        return self._calls

    def split(self, store: Any, ranks: List[int], opts: Any = None) -> Any:
        """A group of some of this one's ranks."""
        if self.rank() not in ranks:
            return None
        rank, size = ranks.index(self.rank()), len(ranks)
        return _join(store, rank, size, _timeout_of(opts) or self._timeout)

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


def _pairs(outputs: List[Any], inputs: List[Any]) -> Iterator[Any]:
    if len(outputs) != len(inputs):
        raise ValueError(
            f"{len(outputs)} outputs and {len(inputs)} inputs; pass an output"
            " for each input"
        )
    return zip(outputs, inputs)


def _check_parts(name: str, parts: List[Any], tensor: Any) -> None:
    for part in parts:
        if part.numel() != tensor.numel():
            raise ValueError(
                f"{name}: a part has {part.numel()} elements, and this rank's"
                f" tensor has {tensor.numel()}; pass tensors of one size"
            )


def _apart(given: Any, output: Any, is_in_place: bool = False) -> Any:
    """The input, or a copy if it overlaps the output and the library does not
    take this as in place. Both are contiguous."""
    first, begin = given.data_ptr(), output.data_ptr()
    overlaps = first < begin + output.nbytes and begin < first + given.nbytes
    return given.clone() if overlaps and not is_in_place else given


def _take_apart(whole: Any, parts: List[Any]) -> None:
    """Copies parts that arrived one after another to their destinations."""
    at = 0
    for part in parts:
        if part.dtype != whole.dtype:
            raise TypeError(
                f"an output is of {part.dtype}, and an input of {whole.dtype};"
                " pass tensors of one dtype"
            )
        arrived = whole[at : at + part.numel()].view(part.shape)
        part.detach().copy_(arrived)
        at += part.numel()


def _timeout_of(options: Any) -> Optional[timedelta]:
    """The timeout of a program's options. This backend has no other option."""
    if options is None:
        return None
    distributed = torch._C._distributed_c10d
    ours = getattr(distributed.Backend, "Options", None)
    if type(options) is not (ours or distributed.ProcessGroup.Options):
        raise TypeError(
            f"options {options!r}: iris takes a timeout only; pass"
            " timeout= and no options"
        )
    timeout: timedelta = options._timeout
    return timeout


def _join(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
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
        ),
        timeout,
    )


def _create(asked: Any, options: Any) -> Any:
    timeout = _timeout_of(options) or asked.timeout
    return _join(asked.store, asked.group_rank, asked.group_size, timeout)


dist.Backend.register_backend(
    "iris", _create, extended_api=True, devices=["cpu", "cuda"]
)
