# SPDX-License-Identifier: MIT
"""The exceptions of this package: one class for each status of the library.

Each is also the built-in exception that a Python program would catch in its
place. So `except MemoryError` and `except ValueError` work without this module.
"""


class IrisError(RuntimeError):
    """An error of the library, with the library's own text. It names the
    failed operation, the rank, the argument and a remedy."""

    #: The status's name, such as "IRIS_ERR_TIMEOUT".
    status = ""


class InvalidError(IrisError, ValueError):
    """The call does not accept this argument."""

    status = "IRIS_ERR_INVALID"


class OutOfMemoryError(IrisError, MemoryError):
    """The heap, or the system, has no more memory, on this rank or another."""

    status = "IRIS_ERR_NO_MEMORY"


class UnsupportedError(IrisError, NotImplementedError):
    """This backend or build does not support the operation."""

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
    """The rank's heap is not mapped here."""

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
    """The context is finalized or belongs to another process, or the call
    comes at the wrong time."""

    status = "IRIS_ERR_STATE"


class LimitError(IrisError, OSError):
    """The system has no more descriptors or threads, or there are too many groups."""

    status = "IRIS_ERR_LIMIT"


class SystemCallError(IrisError, OSError):
    """A system call failed."""

    status = "IRIS_ERR_SYSTEM"


class DeviceError(IrisError):
    """The GPU or its runtime failed."""

    status = "IRIS_ERR_DEVICE"


class WaitInterrupted(IrisError):
    """A signal or another thread ended the wait."""

    status = "IRIS_ERR_INTERRUPTED"


class RaceError(IrisError):
    """IRIS_CHECK=race found a data race."""

    status = "IRIS_ERR_RACE"


class RevokedError(IrisError):
    """A rank revoked the job; Context.shrink() goes on."""

    status = "IRIS_ERR_REVOKED"


#: The classes by the names of their statuses. Any other status is an IrisError.
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
        RevokedError,
    )
}
