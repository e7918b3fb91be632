# SPDX-License-Identifier: MIT
"""A rank as a process: its heaps, mapped from shared files, and one launch of a
kernel, emulated or on the CPU.

Every memory is there twice, for the emulated version of a kernel and for the
CPU's, so that what both did can be compared.
"""
import ctypes
import mmap
import os
import struct

HEAP = 1 << 16  # bytes of a heap, and of a rank's own memory
RANKS = 2
TAIL_WORDS, OWN_WORDS = 17, 9  # of the device context: layout.h
CPU_WG = struct.Struct("<IIIxxxxQ")


class Memory:
    """The heaps of both ranks and this rank's own memory, as one mapping."""

    def __init__(self, files, rank):
        self.maps = []
        # Ranks map the heaps in another order, at other addresses.
        heaps = {}
        for r in sorted(range(RANKS), reverse=rank % 2 == 1):
            heaps[r] = self.map(files[r])
        self.heaps = [heaps[r] for r in range(RANKS)]
        self.local = self.map(-1)
        words = [rank, RANKS, *self.heaps] + [0] * (TAIL_WORDS + OWN_WORDS)
        self.context = (ctypes.c_int64 * len(words))(*words)

    def map(self, file):
        flags = mmap.MAP_SHARED if file >= 0 else \
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self.maps.append(mmap.mmap(file, HEAP, flags))
        return ctypes.addressof(ctypes.c_char.from_buffer(self.maps[-1]))

    def regions(self):
        return [*self.heaps, self.local]

    def write(self, images):
        for address, image in zip(self.regions(), images):
            ctypes.memmove(address, image, len(image))

    def read(self):
        return [ctypes.string_at(address, HEAP) for address in self.regions()]


def files():
    """Shared memory for the heaps of both ranks; no name is left behind."""
    made = []
    for _ in range(RANKS):
        made.append(os.memfd_create("heap"))
        os.ftruncate(made[-1], HEAP)
    return made


class Kernels:
    """The kernels of the shared object, for the CPU."""

    class Kernel(ctypes.Structure):  # struct iris_kernel
        _fields_ = [("version", ctypes.c_size_t),
                    ("name", ctypes.c_char_p), ("bytes", ctypes.c_size_t),
                    ("entry", ctypes.CFUNCTYPE(None, ctypes.c_void_p,
                                               ctypes.c_void_p)),
                    ("image", ctypes.c_void_p), ("gpu", ctypes.c_void_p)]

    def __init__(self, library):
        table = (ctypes.POINTER(self.Kernel) * 100000).in_dll(
            library, "emu_kernels")
        self.by_name = {}
        for pointer in table:
            if not pointer:
                break
            self.by_name[pointer.contents.name.decode()] = pointer.contents

    def launch(self, name, grid, block, args):
        kernel = self.by_name[name]
        if len(args) != kernel.bytes:
            raise RuntimeError(f"{name}: {len(args)} bytes of arguments, "
                               f"not {kernel.bytes}")
        for wg in range(grid):
            kernel.entry(CPU_WG.pack(wg, grid, block, 0), args)
