# SPDX-License-Identifier: MIT
"""Plans: copies by copy engines that the host arms, and that a kernel or a
stream starts."""

import ctypes
from typing import Any, Optional, Sequence, Tuple

from ._lib import call
from ._structs import PlanSegment
from ._values import CONTIGUOUS

#: iris_plan_state_t
STATES = ("complete", "armed", "active", "failed", "aborted")

# Words of a plan on the device (iris/device/layout.h).
_FIRST, _BATCH_WORDS = 1, 2
_GATE, _STAMP = 0, 1
_WORD = 8

#: from_rank, to_rank, source, target; a batch may follow.
Segment = Tuple[Any, ...]


class Plan:
    """Copies that ranks make again and again. ctx.plan() makes one."""

    def __init__(self, context: Any, segments: Sequence[Segment]) -> None:
        self._context = context
        self._epoch = 0
        self._words: Any = None
        rows = [self._row(*segment) for segment in segments]
        made = ctypes.c_void_p()
        # The tensors live as long as the plan.
        self._kept = segments
        call.iris_plan_create(
            context.handle,
            (PlanSegment * len(rows))(*rows),
            len(rows),
            None,
            ctypes.byref(made),
        )
        self._handle = made.value

    def _row(
        self, from_rank: int, to_rank: int, src: Any, dst: Any, batch: int = 0
    ) -> PlanSegment:
        source = self._context._arrays.tensor_of(src)
        target = self._context._arrays.output_of(dst)
        bytes = [
            call.iris_tensor_numel(one) * call.iris_dtype_size(one.dtype)
            for one in (source, target)
        ]
        if bytes[0] != bytes[1]:
            raise ValueError(f"tensors of {bytes[0]} and {bytes[1]} bytes")
        for one in (source, target):
            if not call.iris_tensor_is_contiguous(one, CONTIGUOUS):
                raise ValueError("a plan copies contiguous tensors")
        return PlanSegment(
            from_rank, to_rank, source.data, target.data, bytes[0], batch
        )

    @property
    def device(self) -> int:
        """The address of the plan's struct, for kernels that iriscc compiles."""
        address: Optional[int] = call.iris_plan_device(
            self._context.handle, self._handle
        )
        return address or 0

    def begin(self, stream: Any = None) -> int:
        """Arms this rank's copies behind the stream's earlier work, and lets
        peers write to its targets. Returns the number of the epoch."""
        epoch = ctypes.c_uint32()
        call.iris_plan_begin(
            self._context.handle,
            self._handle,
            self._context._queue(stream, None),
            ctypes.byref(epoch),
        )
        self._epoch = epoch.value
        return self._epoch

    def publish(self, batch: int = 0, stream: Any = None) -> None:
        """Starts this rank's copies of a batch behind the stream's earlier
        work, as iris_plan_publish() does in a kernel."""
        handle, words = self._context.handle, self._words
        if words is None:
            words = self._words = (ctypes.c_uint64 * 3)()
            bytes = ctypes.sizeof(words)
            call.iris_memcpy_sync(
                handle, ctypes.addressof(words), self.device, bytes
            )
        if not 0 <= batch < words[0]:
            raise ValueError(f"batch {batch}: the plan has {words[0]}")
        at = words[_FIRST] + batch * words[_BATCH_WORDS]
        for word in (_STAMP, _GATE):
            call.iris_signal_on_stream(
                handle,
                self.device + _WORD * (at + word),
                self._epoch,
                self._context.cur_rank,
                self._context._queue(stream, None),
            )

    def end(self) -> None:
        """Waits for this rank's copies and for those to it."""
        call.iris_plan_end(self._context.handle, self._handle)

    @property
    def state(self) -> str:
        """One of STATES."""
        state = ctypes.c_int()
        call.iris_plan_state(
            self._context.handle, self._handle, ctypes.byref(state)
        )
        return STATES[state.value]

    def abort(self) -> None:
        """Gives the plan up, here and for the peers that copy."""
        call.iris_plan_abort(self._context.handle, self._handle)

    def destroy(self) -> None:
        """Frees the plan. Collective over the job."""
        handle, self._handle = self._handle, None
        if handle is not None:
            call.iris_plan_destroy(self._context.handle, handle)
