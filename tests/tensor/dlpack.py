# SPDX-License-Identifier: MIT
"""NumPy and PyTorch as DLPack's other side, by ctypes: their arrays are the
heap's own memory, and theirs come onto the heap.

usage: dlpack.py LIBIRIS numpy|torch; each process is a rank of one job."""

import ctypes
import sys
import threading

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
          "complex64", "complex128"]
BYTES = [1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16]
DIMS_MAX = 8
FLOAT = 3  # IRIS_VALUE_FLOAT


class Shape(ctypes.Structure):
    _fields_ = [("ndim", ctypes.c_int), ("sizes", ctypes.c_int64 * DIMS_MAX)]


class Value(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("f", ctypes.c_double * 2)]


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int),
                ("ndim", ctypes.c_int), ("shape", ctypes.c_int64 * DIMS_MAX),
                ("strides", ctypes.c_int64 * DIMS_MAX),
                ("owner", ctypes.c_void_p)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_uint32),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("byte_offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Old(ctypes.Structure):
    """DLManagedTensor, the struct before DLPack 1.0."""
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p),
                ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
                ("deleter", Deleter), ("flags", ctypes.c_uint64),
                ("tensor", DLTensor)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_int),
                ("format", ctypes.c_int), ("out", ctypes.c_void_p),
                ("stream", ctypes.c_void_p), ("generator", ctypes.c_void_p)]


class Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "size", "heap_bytes", "used_bytes", "free_bytes", "largest_free_bytes",
        "peak_bytes", "mapped_bytes", "reserved_bytes", "metadata_bytes",
        "num_allocs", "num_deferred")]


lib = ctypes.CDLL(sys.argv[1])
lib.iris_last_error.restype = ctypes.c_char_p
lib.iris_full.argtypes = [ctypes.c_void_p, Shape, Value, ctypes.c_void_p,
                          ctypes.c_void_p]
lib.iris_memcpy_sync.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_size_t,
                                                         ctypes.c_void_p]
api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor"


wrappers = {}


def wrap(kind, inner):
    """A struct of the other kind with the same tensor. Its deleter calls that
    of the struct inside."""
    outer = kind(tensor=inner.tensor, context=ctypes.addressof(inner),
                 deleter=DELETERS[kind])
    wrappers[ctypes.addressof(outer)] = outer
    return outer


def unwrap(outer, kind):
    inner = kind.from_address(wrappers.pop(outer).context)
    inner.deleter(ctypes.addressof(inner))


DELETERS = {Old: Deleter(lambda outer: unwrap(outer, Versioned)),
            Versioned: Deleter(lambda outer: unwrap(outer, Old))}


def check(status):
    if status != 0:
        raise RuntimeError(lib.iris_last_error().decode())


def must(condition, what):
    if not condition:
        raise AssertionError(what)


iris = ctypes.c_void_p()
check(lib.iris_init(None, ctypes.byref(iris)))
rank, num_ranks = lib.iris_rank(iris), lib.iris_num_ranks(iris)


def full(dtype, shape, value):
    tensor = Tensor()
    options = Options()
    lib.iris_tensor_options_init_sized(ctypes.byref(options),
                                       ctypes.c_size_t(ctypes.sizeof(options)))
    options.dtype = dtype
    sizes = Shape(len(shape), (ctypes.c_int64 * DIMS_MAX)(*shape))
    number = Value(FLOAT, (ctypes.c_double * 2)(value, 0))
    check(lib.iris_full(iris, sizes, number, ctypes.byref(options),
                        ctypes.byref(tensor)))
    return tensor


def allocations():
    """On this rank's heap, when what all have released is freed."""
    check(lib.iris_free_deferred(iris))
    stats = Stats()
    check(lib.iris_heap_stats_sized(iris, ctypes.byref(stats),
                                    ctypes.c_size_t(ctypes.sizeof(stats))))
    must(stats.num_deferred == 0, "all ranks have let go")
    return stats.num_allocs


def barrier():
    check(lib.iris_barrier(iris, None, None))


def contents(tensor, count, of_rank):
    """The tensor's first bytes, as they are on a rank's heap."""
    remote = Tensor()
    text = ctypes.create_string_buffer(count)
    check(lib.iris_tensor_as_remote(iris, ctypes.byref(tensor), of_rank,
                                    ctypes.byref(remote)))
    check(lib.iris_memcpy_sync(iris, text, remote.data, count, None))
    return text.raw


class Exporter:
    """What __dlpack__() is expected of, around a tensor of the heap's."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.versions = set()

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, stream=None, max_version=None, **ignored):
        managed = ctypes.POINTER(Versioned)()
        check(lib.iris_tensor_to_dlpack(iris, ctypes.byref(self.tensor),
                                        ctypes.byref(managed)))
        if max_version is not None and max_version[0] >= 1:
            self.versions.add(1)
            return api.PyCapsule_New(managed, b"dltensor_versioned", None)
        self.versions.add(0)
        old = wrap(Old, managed.contents)
        return api.PyCapsule_New(ctypes.addressof(old), b"dltensor", None)


def take(capsule):
    """The tensor in a capsule, on the heap."""
    tensor, shared = Tensor(), ctypes.c_int(7)
    old = Old.from_address(api.PyCapsule_GetPointer(capsule, b"dltensor"))
    managed = wrap(Versioned, old)
    managed.version[0] = 1
    check(lib.iris_tensor_from_dlpack(
        iris, ctypes.byref(managed), ctypes.byref(tensor), ctypes.byref(shared)))
    api.PyCapsule_SetName(capsule, USED)
    must(shared.value == 0, "the CPU copies")
    return tensor


def check_views(imported, other_dtypes, fill):
    """Each dtype as an array of the other library's, which is the same memory:
    what it writes peers see."""
    for number, name in enumerate(DTYPES):
        if name not in other_dtypes:
            continue
        tensor = full(number, (3, 5), 1 if name == "bool" else 7)
        array = imported(tensor)
        must(tuple(array.shape) == (3, 5), name + ": shape")
        must(str(array.dtype).split(".")[-1] == name, name + ": dtype")
        must(bool((array == (True if name == "bool" else 7)).all()),
             name + ": elements")
        before = contents(tensor, 15 * BYTES[number], rank)
        fill(array, rank + 1)
        barrier()
        peer = (rank + 1) % num_ranks
        seen = contents(tensor, 15 * BYTES[number], peer)
        mine = contents(tensor, 15 * BYTES[number], rank)
        if name != "bool":  # which has not as many values as there are ranks
            must(seen != before, name + ": written")
            must((seen == mine) == (num_ranks == 1), name + ": each rank's own")
        barrier()
        before = allocations()
        del array
        must(allocations() == before - 1, name + ": goes with the array")


def check_numpy():
    import numpy

    exporters = []

    def imported(tensor):
        exporters.append(Exporter(tensor))
        return numpy.from_dlpack(exporters[-1])

    def fill(array, value):
        # Old versions give read-only arrays of the same memory.
        ctypes.memset(array.ctypes.data, value, array.nbytes)

    new = numpy.lib.NumpyVersion(numpy.__version__) >= "2.1.0"
    dtypes = set(DTYPES) - {"bfloat16"}
    if not new:
        dtypes.remove("bool")
    check_views(imported, dtypes, fill)
    must(exporters[0].versions == {1 if new else 0}, "the struct asked for")
    for array in (numpy.arange(24.0).reshape(4, 6)[:, ::2] + rank,
                  numpy.arange(24, dtype="int32").reshape(2, 3, 4).T + rank,
                  numpy.arange(20, dtype="complex64")[::-1] * (1 + rank),
                  (numpy.arange(30, dtype="uint8") + rank)[7:]):
        take_array(array, array.__dlpack__(), array.tobytes("A"), imported)
    return numpy.__version__


def take_array(array, capsule, expected, imported):
    tensor = take(capsule)
    seen = imported(tensor)
    must(tuple(seen.shape) == tuple(array.shape), "shape of what was taken")
    must(bool((seen == array).all()), "elements of what was taken")
    peer = (rank + 1) % num_ranks
    own = contents(tensor, 1, rank)
    barrier()
    must(own[0] != contents(tensor, 1, peer)[0] or num_ranks == 1 or
         own[0] == 0, "each rank's own")
    barrier()
    before = allocations()
    del seen
    must(allocations() == before - 1, "what was taken goes with the array")


def check_torch():
    import torch
    from torch.utils import dlpack

    def imported(tensor):
        return dlpack.from_dlpack(Exporter(tensor).__dlpack__())

    known = {str(t).split(".")[-1] for t in vars(torch).values()
             if isinstance(t, torch.dtype)}
    old = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 1)
    check_views(imported, known - ({"bool"} if old else set()),
                lambda array, value: array.fill_(value))
    array = torch.arange(24.0).reshape(4, 6)[:, ::2] + rank
    take_array(array, dlpack.to_dlpack(array), b"", imported)
    # Views of other strides come as they are, and keep nothing.
    tensor = full(11, (4, 6), rank)
    whole = imported(tensor)
    tensor.strides[0], tensor.strides[1] = 1, 4
    tensor.shape[0], tensor.shape[1] = 4, 6
    before = allocations()
    must(imported(tensor).stride() == (1, 4), "strides")
    must(allocations() == before, "a view keeps nothing")
    del whole
    must(allocations() == before - 1, "the whole goes with its array")
    return torch.__version__, full(11, (3,), 5), imported


def main():
    if sys.argv[2] == "numpy":
        version = check_numpy()
        check(lib.iris_finalize(iris))
    else:
        version, tensor, imported = check_torch()
        kept = [imported(tensor), imported(tensor)]
        # What a collector lets go of, and when, is nobody's choice.
        thread = threading.Thread(target=kept.pop)
        thread.start()
        thread.join()
        check(lib.iris_finalize(iris))
        kept.pop()
    print("rank %d of %d: %s %s" % (rank, num_ranks, sys.argv[2], version))


main()
