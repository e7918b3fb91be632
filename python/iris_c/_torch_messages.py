# SPDX-License-Identifier: MIT
"""Messages of torch.distributed between two ranks.

On a GPU they go on torch's stream, and match in the order of the calls, as
NCCL's. On a CPU they have tags.

There each rank has a ring of slots on its heap for each peer. A sender puts a
message there in chunks, as many as there are free slots. The receiver copies a
chunk out and frees its slot. Two numbers count the chunks of each pair of ranks:

    arrived[p]  of this rank: chunks that rank p has put into this rank's ring
    freed[p]    of this rank: chunks of this rank that rank p has copied out

A rank that raises one of a peer's numbers also raises that peer's bell. A
thread of the group does all of this while a message is pending, and sleeps on
the bell. So a message advances while the program computes or waits elsewhere,
and messages in a cycle do not wait for each other.

A message matches the first receive of its source and tag. One that no receive
matches waits in memory, so that later ones of its source can arrive.
"""

import atexit
import collections
import ctypes
import math
import os
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, Callable, Deque, Dict, List, Optional

import torch

from ._errors import IrisError, MismatchError, StateError
from ._lib import call
from ._transfer import COMPARISONS, SIGNALS

#: The dtypes by the numbers that headers have for them.
_DTYPES = tuple(
    kind
    for kind in map(torch.__dict__.get, sorted(torch.__dict__))
    if isinstance(kind, torch.dtype)
)

#: Slots of a ring, and the most bytes of a slot and of all rings of a rank.
_SLOTS = 4
_SLOT_BYTES = 256 << 10
_ALL_BYTES = 32 << 20

#: Words before the bytes of a chunk: tag, dtype and elements of its message.
_HEAD = 3
_WORD = 8


class Home:
    """Where the process's context is."""

    #: Its GPU. None: it is on a CPU.
    gpu: Optional[torch.device] = None


def plain(tensor: Any) -> Any:
    """A tensor's elements in memory, in the order of its indices. It is the
    tensor itself if they are so already. Those of a CPU's tensor are copied to
    the GPU of the context: torch's calls for objects have such tensors."""
    resolved = tensor.detach().resolve_conj().resolve_neg()
    if Home.gpu is not None and resolved.device.type == "cpu":
        resolved = resolved.to(Home.gpu)
    return resolved.contiguous()


def put_back(result: Any, tensor: Any) -> None:
    """Copies a result in memory of plain(tensor) to the tensor itself."""
    moved = result.device != tensor.device
    if moved or result.data_ptr() != tensor.data_ptr() or tensor.is_neg():
        tensor.detach().copy_(result.view(tensor.shape))


class Message:
    """A message or a receive until it is complete."""

    def __init__(self, tensor: Any, peer: Optional[int], tag: int) -> None:
        self.tensor = tensor
        #: The group's rank that sends or receives. None: any.
        self.peer = peer
        self.tag = tag
        self.error: Optional[BaseException] = None
        #: Where its bytes are until it is complete.
        self.elements: Any = None
        #: The receive that an arriving message has matched.
        self.receive: Optional["Message"] = None
        self._done = threading.Event()
        self._callbacks: List[Callable[[], None]] = []
        self._bytes: Any = None
        self._at = 0

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Waits for the end. Says whether it came."""
        if not self._done.wait(seconds):
            return False
        if self.error is not None:
            raise self.error
        return True

    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._done.is_set()

    def end(self, error: Optional[BaseException] = None) -> None:
        """Ends it, for good or with an error."""
        if self.is_done():
            return
        self.error = error
        self._done.set()
        while self._callbacks:
            try:
                callback = self._callbacks.pop()
            except IndexError:  # when_done() has taken it.
                return
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Calls a function at the end, or now if it has come."""
        self._callbacks.append(callback)
        if self.is_done():
            try:
                self._callbacks.remove(callback)
            except ValueError:  # end() has taken it.
                return
            callback()

    def __repr__(self) -> str:
        kind = "a receive from" if self.elements is None else "a message with"
        peer = "any rank" if self.peer is None else f"rank {self.peer}"
        return f"{kind} {peer} of the group, tag {self.tag},"

    def begin(self, elements: Any) -> None:
        """Sets the elements that are to be sent, or that arrive."""
        self.elements = elements
        self._bytes = elements.view(-1).view(torch.uint8)
        self._at = 0

    def next_part(self, most: int) -> Any:
        """The next bytes of the message."""
        part = self._bytes[self._at : self._at + most]
        self._at += len(part)
        return part

    def leave_receive(self) -> None:
        """Goes on without its receive, in memory of its own."""
        self.receive, at = None, self._at
        self.begin(self.elements.clone())
        self._at = at

    def is_whole(self) -> bool:
        """Whether next_part() has given all bytes."""
        return self._at == len(self._bytes)

    def takes(self, source: int, tag: int) -> bool:
        """Whether this receive matches a message."""
        return self.peer in (None, source) and self.tag == tag


class Messages:
    """The messages of one process group."""

    def __init__(self, context: Any, timeout: timedelta) -> None:
        self._context = context
        device_ms = float(os.environ.get("IRIS_DEVICE_TIMEOUT_MS") or 0)
        #: The most seconds of a wait for the bell: its deadline would end the job.
        self._nap = min(timeout.total_seconds(), device_ms / 1000 or math.inf) / 3
        self._rank = context.get_rank()
        size = context.get_num_ranks()
        self._slot_bytes = max(
            min(_SLOT_BYTES, _ALL_BYTES // (size * _SLOTS)), 4 << 10
        )
        self._heads = context.empty(size, _SLOTS, _HEAD, dtype=torch.int64)
        self._slots = context.empty(
            size, _SLOTS, self._slot_bytes, dtype=torch.uint8
        )
        # arrived, freed, and the bell.
        self._words = context.zeros(2 * size + 1, dtype=torch.int64)
        self._arrived, self._freed = self._words[:size], self._words[size:-1]
        self._bell = self._words[-1:]
        self._sent, self._taken = [0] * size, [0] * size
        # The thread's stream waits for the bell, so the program needs one to
        # ring it.
        self._queue, self._own_queue = self._new_stream(), self._new_stream()
        self._lock = threading.Condition()
        self._sends: List[Deque[Message]] = [
            collections.deque() for _ in range(size)
        ]
        self._receives: List[Message] = []
        self._coming: List[Optional[Message]] = [None] * size
        self._early: Dict[int, List[Message]] = {r: [] for r in range(size)}
        self._thread: Optional[threading.Thread] = None
        self._failed: Optional[BaseException] = None

    def send(self, tensor: Any, peer: int, tag: int) -> Message:
        """Begins to send."""
        message = Message(tensor, peer, tag)
        elements = plain(tensor)
        message.begin(elements)
        if peer == self._rank:
            message.begin(elements.clone())
        with self._lock:
            if self._check(message) and peer == self._rank:
                self._deliver(message, peer)
                message.end()
            elif message.error is None:
                self._sends[peer].append(message)
                self._wake()
        return message

    def receive(self, tensor: Any, peer: Optional[int], tag: int) -> Message:
        """Begins to receive, from any rank if peer is None."""
        message = Message(tensor, peer, tag)
        with self._lock:
            if self._check(message) and not self._take_early(message):
                self._receives.append(message)
                self._wake()
        return message

    def withdraw(self, receive: Message) -> None:
        """Takes back a receive, so that no message matches it any more."""
        with self._lock:
            if receive in self._receives:
                self._receives.remove(receive)
            for message in self._coming:
                if message and message.receive is receive:
                    message.leave_receive()

    def forget(self) -> None:
        """Messages are under way at once, so none waits for a batch."""

    def stop(self, error: Optional[BaseException] = None) -> None:
        """Ends the thread. What is pending ends with an error."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._fail(error or StateError("the process group has been shut down"))
            self._lock.notify_all()
            if thread is not None and thread.is_alive():
                self._ring_own()
        if thread is not None:
            thread.join()
        # The job ends when the program has no tensor of its heap.
        self._heads = self._slots = self._words = None
        self._arrived = self._freed = self._bell = None

    def _check(self, message: Message) -> bool:
        """Whether messages can still advance."""
        if self._failed is not None:
            message.end(self._failed)
        return self._failed is None

    def _fail(self, error: BaseException) -> None:
        self._failed = self._failed or error
        started = [one.receive for one in self._coming if one and one.receive]
        for queue in (started, self._receives, *self._sends):
            for message in queue:
                message.end(self._failed)
            queue.clear()

    def _wake(self) -> None:
        if self._thread is None:
            # The thread must not keep the group, which would then never end.
            self._thread = threading.Thread(
                target=_serve, args=(weakref.ref(self),), daemon=True
            )
            self._thread.start()
            threading.Thread(
                target=_wake_now_and_then,
                args=(weakref.ref(self), self._nap),
                daemon=True,
            ).start()
            _running.add(self)
            return
        self._lock.notify_all()
        self._ring_own()

    def _ring_own(self) -> None:
        """Wakes the thread. The end of a job that has failed wakes it, too, and
        its messages get that error."""
        try:
            self._ring(self._rank, self._own_queue)
        except IrisError:
            pass

    def step(self) -> None:
        """What the thread does: advances what it can, or sleeps until a peer
        has done something or the program has a message."""
        with self._lock:
            while not self._pending() and self._thread is not None:
                if not self._lock.wait(60):
                    return
            if self._thread is None:
                return
            seen = int(self._bell[0])
            advanced = self._advance()
            idle = not advanced and self._pending()
        if idle:
            self._await(self._bell, "!=", seen)

    def _pending(self) -> bool:
        return bool(self._receives) or any(self._sends) or any(self._coming)

    def _advance(self) -> bool:
        """Puts and takes the chunks that can go now. Whether there was one."""
        advanced = False
        for peer, queue in enumerate(self._sends):
            while queue and self._sent[peer] - self._freed[peer] < _SLOTS:
                self._put_chunk(queue, peer)
                advanced = True
        for peer in range(len(self._sends)):
            while self._wants(peer) and self._arrived[peer] > self._taken[peer]:
                self._take_chunk(peer)
                advanced = True
        return advanced

    def _wants(self, peer: int) -> bool:
        """Whether the next chunk of a peer is for a receive, or in the way of
        one."""
        return self._coming[peer] is not None or any(
            one.peer in (None, peer) for one in self._receives
        )

    def _put_chunk(self, queue: Deque[Message], peer: int) -> None:
        message = queue[0]
        slot = self._sent[peer] % _SLOTS
        elements = message.elements
        head = (ctypes.c_int64 * _HEAD)(
            message.tag, _DTYPES.index(elements.dtype), elements.numel()
        )
        part = message.next_part(self._slot_bytes)
        place = self._heads[self._rank, slot].data_ptr()
        call.iris_put_on_stream(
            self._handle, place, ctypes.addressof(head), _HEAD * _WORD, peer,
            self._queue,
        )
        call.iris_put_signal_on_stream(
            self._handle, self._slots[self._rank, slot].data_ptr(),
            part.data_ptr(), len(part), self._arrived[self._rank :].data_ptr(),
            1, SIGNALS["add"], peer, self._queue,
        )
        self._ring(peer, self._queue)
        self._sent[peer] += 1
        if message.is_whole():
            queue.popleft()
            message.end()

    def _take_chunk(self, peer: int) -> None:
        slot = self._taken[peer] % _SLOTS
        # It has arrived; this makes what came before it visible.
        self._await(self._arrived[peer:], ">", self._taken[peer])
        message = self._coming[peer]
        if message is None:
            message = self._begin(peer, *self._heads[peer, slot].tolist())
        part = message.next_part(self._slot_bytes)
        part.copy_(self._slots[peer, slot, : len(part)])
        self._taken[peer] += 1
        self._add_one(self._freed[self._rank :], peer, self._queue)
        self._ring(peer, self._queue)
        if message.is_whole():
            self._coming[peer] = None
            self._deliver(message, peer)

    def _begin(self, source: int, tag: int, kind: int, count: int) -> Message:
        """Begins to take a message, into the tensor of its receive if there is
        one and it fits."""
        message = Message(None, source, tag)
        receive = message.receive = self._match(source, tag)
        if receive is not None and _fits(receive, _DTYPES[kind], count):
            message.begin(plain(receive.tensor))
        else:
            message.begin(torch.empty(count, dtype=_DTYPES[kind]))
        self._coming[source] = message
        return message

    def _match(self, source: int, tag: int) -> Optional[Message]:
        for receive in self._receives:
            if receive.takes(source, tag):
                self._receives.remove(receive)
                return receive
        return None

    def _deliver(self, message: Message, source: int) -> None:
        """Gives a message that has arrived to its receive, or keeps it."""
        receive = message.receive or self._match(source, message.tag)
        if receive is None:
            self._early[source].append(message)
        else:
            _finish(receive, message.elements, source)

    def _take_early(self, receive: Message) -> bool:
        """Whether the message had arrived already."""
        for source, waiting in self._early.items():
            for message in waiting:
                if receive.takes(source, message.tag):
                    waiting.remove(message)
                    _finish(receive, message.elements, source)
                    return True
        return False

    @property
    def _handle(self) -> int:
        handle: int = self._context.handle
        return handle

    def _new_stream(self) -> int:
        made = ctypes.c_void_p()
        call.iris_stream_create(self._handle, ctypes.byref(made))
        return made.value or 0

    def _add_one(self, word: Any, rank: int, queue: int) -> None:
        """Adds 1 to a word of a rank, after the earlier work of the stream."""
        call.iris_put_signal_on_stream(
            self._handle, None, None, 0, word.data_ptr(), 1, SIGNALS["add"],
            rank, queue,
        )

    def _ring(self, rank: int, queue: int) -> None:
        """Raises a rank's bell, and waits for the work of the stream."""
        self._add_one(self._bell, rank, queue)
        call.iris_stream_synchronize(self._handle, queue)

    def _await(self, word: Any, cmp: str, value: int) -> None:
        call.iris_wait_on_stream(
            self._handle, word.data_ptr(), COMPARISONS[cmp], value,
            self._queue,
        )
        call.iris_stream_synchronize(self._handle, self._queue)

    def fail(self, error: BaseException) -> None:
        """Ends what is pending after an error of the thread."""
        with self._lock:
            self._fail(error)


def _fits(receive: Message, dtype: Any, count: int) -> bool:
    return (receive.tensor.dtype, receive.tensor.numel()) == (dtype, count)


def _finish(receive: Message, came: Any, source: int) -> None:
    """Ends a receive with the elements of its message."""
    receive.peer = source
    asked = receive.tensor
    if _fits(receive, came.dtype, came.numel()):
        put_back(came, asked)
        receive.end()
        return
    receive.end(
        MismatchError(
            f"a receive of {asked.numel()} elements of {asked.dtype} with tag"
            f" {receive.tag}, and rank {source} of the group sends"
            f" {came.numel()} of {came.dtype}; pass tensors of one dtype and"
            " size"
        )
    )


class Exchange:
    """The messages of a process group on GPUs."""

    def __init__(self, context: Any) -> None:
        self._ccl = context.ccl
        self._rank = context.get_rank()
        self._size = context.get_num_ranks()
        self._sends: List[Message] = []
        self._receives: List[Message] = []

    def send(self, tensor: Any, peer: int, tag: int) -> Message:
        """A message that run() sends."""
        return self._add(self._sends, Message(tensor, peer, tag))

    def receive(self, tensor: Any, peer: Optional[int], tag: int) -> Message:
        """A receive for run()."""
        if peer is None:
            raise NotImplementedError(
                "recv_anysource of iris on GPUs: a receive names its source"
            )
        return self._add(self._receives, Message(tensor, peer, tag))

    @staticmethod
    def _add(queue: List[Message], message: Message) -> Message:
        if message.tag != 0:
            raise NotImplementedError(
                f"tag={message.tag} of iris on GPUs: messages match in the"
                " order of the calls; pass tag=0"
            )
        queue.append(message)
        return message

    def forget(self) -> None:
        """Drops the messages that run() would exchange."""
        self._sends, self._receives = [], []

    def run(self) -> None:
        """In round d each rank sends to the d-th rank after it and receives
        from the d-th before it. Every message of a rank meets its peer in one
        round, so ranks that send in a cycle do not wait for each other."""
        sends, receives = self._sends, self._receives
        self._sends, self._receives = [], []
        for distance in range(self._size):
            to = (self._rank + distance) % self._size
            source = (self._rank - distance) % self._size
            out = [one for one in sends if one.peer == to]
            into = [one for one in receives if one.peer == source]
            for i in range(max(len(out), len(into))):
                self._trade(out[i : i + 1], to, into[i : i + 1], source)

    def _trade(
        self, out: List[Message], to: int, into: List[Message], source: int
    ) -> None:
        given = [plain(one.tensor).view(-1) for one in out]
        both = [plain(one.tensor).view(-1) for one in into]
        if given and both:
            self._ccl.send_recv(both[0], given[0], to, source)
        elif given:
            self._ccl.send(given[0], to)
        else:
            self._ccl.recv(both[0], source)
        for one, came in zip(into, both):
            put_back(came, one.tensor)
        for one in out + into:
            one.end()

    def stop(self, error: Optional[BaseException] = None) -> None:
        """There is nothing to end."""


#: Groups whose thread may run. It must end before Python does.
_running: "weakref.WeakSet[Messages]" = weakref.WeakSet()


def _serve(reference: "weakref.ref[Messages]") -> None:
    while True:
        messages = reference()
        if messages is None or messages._thread is None:
            return
        try:
            messages.step()
        except BaseException as error:  # The program's waits raise it.
            messages.fail(error)
            return
        del messages


def _wake_now_and_then(reference: "weakref.ref[Messages]", pause: float) -> None:
    while True:
        time.sleep(pause)
        messages = reference()
        if messages is None or messages._thread is None:
            return
        with messages._lock:
            if messages._thread is not None and messages._pending():
                messages._ring_own()
        del messages


# A forked child has no such thread, and the threads' locks may be held.
os.register_at_fork(after_in_child=_running.clear)


@atexit.register
def _stop_all() -> None:
    for messages in list(_running):
        messages.stop()
