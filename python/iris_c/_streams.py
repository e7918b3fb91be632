# SPDX-License-Identifier: MIT
"""Streams of torch in the library's form."""

import ctypes
import sys
from typing import Any, Dict, Optional

from ._lib import call
from ._session import Session


def native_of(stream: Any) -> int:
    """The hipStream_t or cudaStream_t of a torch stream, or a number that
    the program has for one. 0: the runtime's default stream."""
    native = getattr(stream, "cuda_stream", stream)
    if not isinstance(native, int):
        raise TypeError(
            f"stream={stream!r}: takes None, a torch.cuda.Stream, or the"
            " address of a stream"
        )
    return native


class Streams:
    """A context's wrapped streams. They stay until the context ends, because
    destroying a stream waits for its work."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._wrapped: Dict[int, Optional[int]] = {}
        self.on_gpu = call.iris_stream_native(session.handle, None) is not None

    def device_id(self) -> Optional[int]:
        """The number of this rank's GPU. None on the CPU."""
        if not self.on_gpu:
            return None
        device: int = call.iris_device_id(self._session.handle)
        return device

    def handle_of(self, stream: Any) -> Optional[int]:
        """The iris_stream_t that wraps a stream. None: the context's own."""
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
        """The stream that torch currently uses, else the context's."""
        cuda = self._cuda()
        if cuda is None:
            return None
        return self.handle_of(cuda.current_stream(self.device_id()))

    def put_behind_current(self, handle: int) -> None:
        """Makes later work on one of the library's streams start after the
        work that torch's current stream has now."""
        cuda = self._cuda()
        if cuda is not None:
            native = call.iris_stream_native(self._session.handle, handle)
            ours = cuda.ExternalStream(native, device=self.device_id())
            ours.wait_stream(cuda.current_stream(self.device_id()))

    def synchronize(self, stream: Any) -> None:
        """Waits for a stream, whose workspaces another one may use then."""
        call.iris_stream_synchronize(
            self._session.handle, self.handle_of(stream)
        )

    def synchronize_device(self) -> None:
        """Waits for all work that torch has enqueued on this rank's device."""
        cuda = self._cuda()
        if cuda is not None:
            cuda.synchronize(self.device_id())
            for native in list(self._wrapped):
                self.synchronize(native)

    def settle(self) -> None:
        """Call this before memory that was freed is allocated again: the
        library knows its own work on that memory, but not torch's."""
        if self._cuda() is not None and self._session.stats().num_deferred:
            self.synchronize_device()

    def finish(self) -> None:
        """Call this after enqueueing: on the CPU it waits, because nothing
        else orders the program's next actions after the work."""
        if not self.on_gpu:
            call.iris_stream_synchronize(self._session.handle, None)
