# SPDX-License-Identifier: MIT
"""Streams of torch as the library takes them."""

import ctypes
import sys
from typing import Any, Dict, Optional

from ._lib import call
from ._session import Session


def native_of(stream: Any) -> int:
    """The hipStream_t or cudaStream_t of a torch stream, or the number that a
    program has of one; 0: the runtime's default stream."""
    native = getattr(stream, "cuda_stream", stream)
    if not isinstance(native, int):
        raise TypeError(
            f"stream={stream!r}: takes None, a torch.cuda.Stream, or the"
            " address of a stream"
        )
    return native


class Streams:
    """A context's wrapped streams. They are kept: destroying one would wait
    for its work."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wrapped: Dict[int, Optional[int]] = {}
        self.on_gpu = call.iris_stream_native(session.handle, None) is not None

    def device_id(self) -> Optional[int]:
        """The number of this rank's GPU; None: it has none."""
        if not self.on_gpu:
            return None
        device: int = call.iris_device_id(self._session.handle)
        return device

    def handle_of(self, stream: Any) -> Optional[int]:
        """The iris_stream_t around a stream; None: the context's own."""
        if stream is None or not self.on_gpu:
            return None
        native = native_of(stream)
        if native not in self._wrapped:
            handle = ctypes.c_void_p()
            call.iris_stream_wrap(
                self._session.handle, native, ctypes.byref(handle)
            )
            self._wrapped[native] = handle.value
        return self._wrapped[native]

    def _cuda(self) -> Any:
        torch = sys.modules.get("torch")
        if self.on_gpu and torch is not None and torch.cuda.is_initialized():
            return torch.cuda
        return None

    def current(self) -> Optional[int]:
        """The stream that torch's work goes to now; else the context's."""
        cuda = self._cuda()
        if cuda is None:
            return None
        return self.handle_of(cuda.current_stream(self.device_id()))

    def put_behind_current(self, handle: int) -> None:
        """What comes next on a stream of the library's starts after what
        torch's current stream has had so far."""
        cuda = self._cuda()
        if cuda is not None:
            native = call.iris_stream_native(self._session.handle, handle)
            ours = cuda.ExternalStream(native, device=self.device_id())
            ours.wait_stream(cuda.current_stream(self.device_id()))

    def synchronize_device(self) -> None:
        """Waits for all that torch has put on this rank's device."""
        cuda = self._cuda()
        if cuda is not None:
            cuda.synchronize(self.device_id())

    def settle(self) -> None:
        """Before memory that was let go is given out anew: the library knows
        of its own work on it, not of torch's."""
        if self._cuda() is not None and self._session.stats().num_deferred:
            self.synchronize_device()

    def finish(self) -> None:
        """After something was enqueued: on the CPU nothing else orders what
        the program does next behind it."""
        if not self.on_gpu:
            call.iris_stream_synchronize(self._session.handle, None)
