# SPDX-License-Identifier: MIT
"""What goes wrong, as exceptions: one class for each status of the library.

Each is also the built-in exception that a Python program would catch for it,
so `except MemoryError` and `except ValueError` work without this module.
"""


class IrisError(RuntimeError):
    """An error of the library. Its text is the library's own: what, which
    rank, which argument, what to do."""

    #: The status's name, such as "IRIS_ERR_TIMEOUT".
    status = ""


class InvalidError(IrisError, ValueError):
    """An argument that the call does not take."""

    status = "IRIS_ERR_INVALID"


class OutOfMemoryError(IrisError, MemoryError):
    """The heap, or the system, has no more memory, on this rank or another."""

    status = "IRIS_ERR_NO_MEMORY"


class UnsupportedError(IrisError, NotImplementedError):
    """This backend or build cannot do it."""

    status = "IRIS_ERR_UNSUPPORTED"


class BackendError(IrisError):
    """The backend is unknown or cannot run here."""

    status = "IRIS_ERR_BACKEND"


class ConfigError(IrisError, ValueError):
    """A setting does not parse, or the heap is too small."""

    status = "IRIS_ERR_CONFIG"


class BootstrapError(IrisError):
    """The ranks could not meet."""

    status = "IRIS_ERR_BOOTSTRAP"


class UnreachableError(IrisError):
    """That rank's heap is not mapped here."""

    status = "IRIS_ERR_UNREACHABLE"


class PeerLostError(IrisError, ConnectionError):
    """A peer died or left."""

    status = "IRIS_ERR_PEER_LOST"


class DeadlineError(IrisError, TimeoutError):
    """A deadline passed."""

    status = "IRIS_ERR_TIMEOUT"


class MismatchError(IrisError):
    """Ranks made different collective calls."""

    status = "IRIS_ERR_MISMATCH"


class StateError(IrisError):
    """A finalized context, one of another process, or a wrong moment."""

    status = "IRIS_ERR_STATE"


class LimitError(IrisError, OSError):
    """No descriptors, threads or groups left."""

    status = "IRIS_ERR_LIMIT"


class SystemCallError(IrisError, OSError):
    """A system call failed."""

    status = "IRIS_ERR_SYSTEM"


class DeviceError(IrisError):
    """The GPU or its runtime failed."""

    status = "IRIS_ERR_DEVICE"


class WaitInterrupted(IrisError):
    """A wait was ended from outside."""

    status = "IRIS_ERR_INTERRUPTED"


class RaceError(IrisError):
    """IRIS_CHECK=race found a data race."""

    status = "IRIS_ERR_RACE"


#: By the status's name. What is not among them is an IrisError.
BY_STATUS = {
    kind.status: kind
    for kind in (
        InvalidError,
        OutOfMemoryError,
        UnsupportedError,
        BackendError,
        ConfigError,
        BootstrapError,
        UnreachableError,
        PeerLostError,
        DeadlineError,
        MismatchError,
        StateError,
        LimitError,
        SystemCallError,
        DeviceError,
        WaitInterrupted,
        RaceError,
    )
}
