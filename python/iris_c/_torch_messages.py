# SPDX-License-Identifier: MIT
"""Messages of torch.distributed between two ranks, with tags.

On a CPU each message has a header with its tag, dtype and number of elements. A
message that arrives before the receive with its tag waits in memory. On a GPU
the host would have to wait for a header, so messages match in order there, and
the only tag is 0.
"""

from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import torch

from ._errors import MismatchError

#: The dtypes by the numbers that headers have for them.
_DTYPES = tuple(
    kind
    for kind in map(torch.__dict__.get, sorted(torch.__dict__))
    if isinstance(kind, torch.dtype)
)

_HEADER = 3


def plain(tensor: Any) -> Any:
    """A tensor's elements in memory, in the order of its indices. It is the
    tensor itself if they are so already."""
    resolved = tensor.detach().resolve_conj().resolve_neg()
    return resolved.contiguous()


def put_back(result: Any, tensor: Any) -> None:
    """Copies a result in memory of plain(tensor) to the tensor itself."""
    if result.data_ptr() != tensor.data_ptr() or tensor.is_neg():
        tensor.detach().copy_(result.view(tensor.shape))


@dataclass(eq=False)
class _Message:
    peer: int
    tag: int
    tensor: Any


class Messages:
    """The messages of one process group."""

    def __init__(self, ccl: Any, rank: int, size: int, device: Any) -> None:
        self._ccl = ccl
        self._rank = rank
        self._size = size
        self._has_tags = device.type == "cpu"
        self._early: Dict[Tuple[int, int], List[Any]] = {}
        self._sends: List[_Message] = []
        self._receives: List[_Message] = []
        self._is_batch = False

    def begin(self) -> None:
        """Begins a batch, whose messages are exchanged at the same time."""
        self._is_batch = True

    def end(self) -> None:
        """Exchanges the batch."""
        self._is_batch = False
        self._exchange()

    def send(self, tensor: Any, peer: int, tag: int) -> None:
        """Sends, or adds to the batch."""
        self._check(tag)
        self._sends.append(_Message(peer, tag, tensor))
        if not self._is_batch:
            self._exchange()

    def receive(self, tensor: Any, peer: int, tag: int) -> None:
        """Receives, or adds to the batch."""
        self._check(tag)
        self._receives.append(_Message(peer, tag, tensor))
        if not self._is_batch:
            self._exchange()

    def _check(self, tag: int) -> None:
        if tag != 0 and not self._has_tags:
            raise ValueError(
                f"tag={tag}: messages of GPUs match in the order of the calls;"
                " pass tag=0"
            )

    def _exchange(self) -> None:
        """In round d each rank sends to the d-th rank after it and receives
        from the d-th before it. Every message of a rank meets its peer in one
        round, so ranks that send in a circle do not wait for each other."""
        sends, receives = self._sends, self._receives
        self._sends, self._receives = [], []
        for distance in range(self._size):
            to = (self._rank + distance) % self._size
            source = (self._rank - distance) % self._size
            out = [one for one in sends if one.peer == to]
            into = [one for one in receives if one.peer == source]
            if distance == 0:
                self._keep(out)
                out = []
            if self._has_tags:
                self._trade(out, to, into, source)
            else:
                self._trade_in_order(out, to, into, source)

    def _keep(self, sent: List[_Message]) -> None:
        """Messages of a rank to itself."""
        for one in sent:
            self._add_early(one.peer, one.tag, plain(one.tensor).clone())

    def _add_early(self, source: int, tag: int, elements: Any) -> None:
        waiting = self._early.setdefault((source, tag), [])
        waiting.append(elements.view(-1))

    def _take_early(self, one: _Message) -> bool:
        """Delivers a message that has arrived already."""
        waiting = self._early.get((one.peer, one.tag))
        if not waiting:
            return False
        elements = waiting.pop(0)
        self._compare(one, elements.dtype, elements.numel())
        put_back(elements, one.tensor)
        return True

    @staticmethod
    def _compare(one: _Message, dtype: Any, count: int) -> None:
        asked = one.tensor.dtype, one.tensor.numel()
        if asked != (dtype, count):
            raise MismatchError(
                f"a receive of {asked[1]} elements of {asked[0]} with tag"
                f" {one.tag}, and rank {one.peer} of the group sends {count} of"
                f" {dtype}; pass tensors of one dtype and size"
            )

    def _trade(
        self, out: List[_Message], to: int, into: List[_Message], source: int
    ) -> None:
        """Sends messages to one rank, and receives from another until each
        receive has the message of its tag."""
        into = [one for one in into if not self._take_early(one)]
        if into and source == self._rank:
            raise MismatchError(
                f"a receive from this rank itself with tag {into[0].tag}, and"
                " it has sent none; send first"
            )
        while out or into:
            sent = out.pop(0) if out else None
            given = plain(sent.tensor).view(-1) if sent else None
            came = torch.zeros(_HEADER, dtype=torch.int64) if into else None
            self._move(self._header(sent), to, came, source)
            head = came.tolist() if came is not None else None
            self._trade_elements(given, to, head, into, source)

    def _trade_elements(
        self, given: Any, to: int, head: Any, into: List[_Message], source: int
    ) -> None:
        elements = one = None
        if head is not None:
            tag, kind, count = head
            one = next((one for one in into if one.tag == tag), None)
            elements = torch.empty(count, dtype=_DTYPES[kind])
        self._move(_bytes(given), to, _bytes(elements), source)
        if head is None:
            return
        if one is None:
            self._add_early(source, tag, elements)
            return
        into.remove(one)
        assert elements is not None
        self._compare(one, elements.dtype, count)
        put_back(elements, one.tensor)

    @staticmethod
    def _header(sent: Optional[_Message]) -> Any:
        if sent is None:
            return None
        kind = _DTYPES.index(sent.tensor.dtype)
        return torch.tensor([sent.tag, kind, sent.tensor.numel()])

    def _trade_in_order(
        self, out: List[_Message], to: int, into: List[_Message], source: int
    ) -> None:
        for i in range(max(len(out), len(into))):
            given = plain(out[i].tensor).view(-1) if i < len(out) else None
            both = plain(into[i].tensor).view(-1) if i < len(into) else None
            self._move(given, to, both, source)
            if both is not None:
                put_back(both, into[i].tensor)

    def _move(self, given: Any, to: int, both: Any, source: int) -> None:
        if given is not None and both is not None:
            self._ccl.send_recv(both, given, to, source)
        elif given is not None:
            self._ccl.send(given, to)
        elif both is not None:
            self._ccl.recv(both, source)


def _bytes(elements: Any) -> Any:
    """The elements as bytes, so that those of two dtypes can be exchanged. None
    if there are none: the header has said so."""
    if elements is None or elements.numel() == 0:
        return None
    return elements.view(torch.uint8)
