# SPDX-License-Identifier: MIT
"""Runs kernels of a gfx942 object file on this machine, in the CDNA emulator
of a tinygrad checkout.

Device memory is this process's own, so a rank is a process and a heap is memory
that it shares with others. The emulator knows no caches and no timing, and runs
one workgroup after another. Where it falls short of what our kernels do, this
file steps in: see Emulator.
"""
import contextlib
import ctypes
import functools
import os
import struct
import sys
import types

sys.path.insert(0, os.environ["TINYGRAD"])
os.environ.setdefault("DEV", "CPU")
import test.mockgpu.amd.emu as emu  # noqa: E402
from tinygrad.runtime.autogen.amd.cdna import enum as cdna  # noqa: E402

OPS = "STORE SWAP CMPSWAP ADD SUB SMIN UMIN SMAX UMAX AND OR XOR".split()
STORES = {  # name: bytes, first bit of the register that is stored
    "GLOBAL_STORE_BYTE": (1, 0),
    "GLOBAL_STORE_BYTE_D16_HI": (1, 16),
    "GLOBAL_STORE_SHORT": (2, 0),
    "GLOBAL_STORE_SHORT_D16_HI": (2, 16),
}
EXEC = 126  # index of the execution mask among the scalar registers
PROXY = None  # else: called behind each access to memory, and each sleep
KERNARG_HIDDEN = 256  # bytes of the hidden arguments, at the end


def bits(word, high, low):
    return word >> low & ((1 << (high - low + 1)) - 1)


class Access(ctypes.Structure):  # struct emu_access of memory.c
    _fields_ = [(name, ctypes.c_uint32) for name in (
        "exec", "pc", "op", "bytes", "addr", "data", "result", "base",
        "returns", "shift")] + [("offset", ctypes.c_int32)]


class Emulator:
    """Stands between the emulator and its decoder.

    - Cache write-back and invalidation, which it does not know, do nothing.
    - Atomics are atomic between processes; its own read, compute and write, and
      take no 16-byte operand. Stores of one and two bytes touch just those;
      its own write back the word around.
    - s_sleep gives the core to other ranks; s_memrealtime tells the time;
      s_getpc_b64 tells where tables of constants are.
    - v_mul_hi_i32_i24_e32 gives the sign of a product; its own gives 0.
    - Denormal numbers count, as the kernels' descriptors say; it flushes them.
    """

    def __init__(self, memory):
        self.memory = memory
        self.kept = []  # what C code points to
        self.decode = emu._decode_at
        emu._decode_at = functools.cache(self.decoded)
        emu._MXCSRContext = contextlib.nullcontext

    def decoded(self, pc, arch):
        word = struct.unpack("<Q", ctypes.string_at(pc, 8))[0]
        run = self.instead(word)
        if PROXY and (bits(word, 31, 26) in (0x37, 0x38) or
                      bits(word, 31, 16) == 0xBF8E):
            return self.proxied(pc, arch, run)
        if run is None:
            return self.decode(pc, arch)
        return self.called(run)

    def proxied(self, pc, arch, run):
        if run is not None:
            return self.called(lambda *buffers: (run(*buffers), PROXY()))
        (program, runtime), inst = self.decode(pc, arch)
        return (program, types.SimpleNamespace(
            fxn=lambda *buffers: (runtime.fxn(*buffers), PROXY()))), inst

    @staticmethod
    def called(run):
        program = types.SimpleNamespace(
            arg=types.SimpleNamespace(globals=[0, 1]))
        return (program, types.SimpleNamespace(fxn=run)), None

    def instead(self, word):
        """A function of the scalar and vector registers, or None."""
        c, pc = self.memory, emu.PC_LO_IDX
        if bits(word, 31, 26) == 0x38:  # MUBUF
            name = cdna.MUBUFOp(bits(word, 24, 18)).name
            if name in ("BUFFER_WBL2", "BUFFER_INV"):
                return lambda sgpr, vgpr: c.emu_skip(sgpr, pc, 8)
        if bits(word, 31, 16) == 0xBF8E:  # s_sleep
            return lambda sgpr, vgpr: c.emu_sleep(sgpr, pc)
        if bits(word, 31, 25) == cdna.VOP2Op.V_MUL_HI_I32_I24_E32.value:
            return lambda sgpr, vgpr: c.emu_mul_hi_i24(
                sgpr, vgpr, EXEC, pc, bits(word, 24, 17), bits(word, 8, 0),
                256 + bits(word, 16, 9))
        if bits(word, 31, 23) == 0x17d and bits(word, 15, 8) == 0x1c:
            return lambda sgpr, vgpr: c.emu_getpc(sgpr, pc, bits(word, 22, 16))
        if bits(word, 31, 18) == 0x30 << 8 | 0x25:  # s_memrealtime
            return lambda sgpr, vgpr: c.emu_clock(sgpr, pc, bits(word, 12, 6))
        if bits(word, 31, 26) == 0x37 and bits(word, 15, 14) == 2:
            return self.access(word)
        return None

    def access(self, word):
        name = cdna.GLOBALOp(bits(word, 24, 18)).name
        op, shift = "STORE", 0
        if name in STORES:
            size, shift = STORES[name]
        elif name.startswith("GLOBAL_ATOMIC_"):
            op = name.removeprefix("GLOBAL_ATOMIC_").removesuffix("_X2")
            size = 8 if name.endswith("_X2") else 4
            if op not in OPS:
                raise RuntimeError(f"{name}: not expected in our kernels")
        else:
            return None
        if bits(word, 55, 55):
            raise RuntimeError(f"{name}: accumulation registers")
        offset = bits(word, 12, 0)
        access = Access(
            exec=EXEC, pc=emu.PC_LO_IDX, op=OPS.index(op), bytes=size,
            addr=bits(word, 39, 32), data=bits(word, 47, 40),
            result=bits(word, 63, 56), base=bits(word, 54, 48),
            returns=bits(word, 16, 16), shift=shift,
            offset=offset - (offset >> 12 << 13))
        self.kept.append(access)
        where = ctypes.byref(access)
        return lambda sgpr, vgpr: self.memory.emu_run(sgpr, vgpr, where)


class Object:
    """The kernels of a relocatable object file, in memory and ready to run."""

    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        at, = struct.unpack_from("<Q", data, 40)
        size, number = struct.unpack_from("<HH", data, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + size * i)
                    for i in range(number)]
        self.place(data, sections)
        for _, kind, _, _, offset, length, link, info, _, _ in sections:
            if kind == 4 and info in self.bases:  # RELA
                for r in range(offset, offset + length, 24):
                    self.relocate(self.bases[info], *struct.unpack_from(
                        "<QIIq", data, r))

    def place(self, data, sections):
        total, offsets = 4096, {}
        for i, (_, _, flags, _, _, length, _, _, align, _) in \
                enumerate(sections):
            if flags & 2:  # takes memory
                total = -(-total // max(align, 1)) * max(align, 1)
                offsets[i] = total
                total += length
        self.buffer = ctypes.create_string_buffer(total + 8192)
        base = (ctypes.addressof(self.buffer) + 4095) & ~4095
        self.bases = {i: base + offset for i, offset in offsets.items()}
        for i, address in self.bases.items():
            if sections[i][1] != 8:  # not NOBITS
                start, length = sections[i][4:6]
                ctypes.memmove(address, data[start:start + length], length)
        self.text = [(self.bases[i], section[5])
                     for i, section in enumerate(sections) if section[2] & 4]
        table = next(s for s in sections if s[1] == 2)
        names = sections[table[6]][4]
        self.values, self.symbols = [], {}
        for at in range(table[4], table[4] + table[5], 24):
            name, _, _, section, value, _ = struct.unpack_from(
                "<IBBHQQ", data, at)
            self.values.append(self.bases.get(section, 0) + value)
            text = data[names + name:data.index(b"\0", names + name)].decode()
            self.symbols[text] = self.values[-1]

    def relocate(self, base, offset, kind, symbol, addend):
        place, value = base + offset, self.values[symbol] + addend
        relative = (value - place) & (1 << 64) - 1
        bytes_of = {3: lambda: struct.pack("<Q", value),
                    4: lambda: struct.pack("<I", relative & 0xFFFFFFFF),
                    5: lambda: struct.pack("<Q", relative),
                    10: lambda: struct.pack("<I", relative & 0xFFFFFFFF),
                    11: lambda: struct.pack("<I", relative >> 32)}[kind]()
        ctypes.memmove(place, bytes_of, len(bytes_of))

    def compile(self):
        """All instructions, ahead of forks that run them or nearly the same."""
        for address, length in self.text:
            at = address
            while at < address + length:
                try:
                    _, inst = emu._decode_at(at, "cdna")
                    at += inst.size()
                except Exception:  # padding, or what nothing runs
                    at += 4

    def kernels(self):
        return [name.removesuffix("_gpu") for name in self.symbols
                if name.endswith("_gpu")]

    def launch(self, kernel, grid, block, args):
        """One-dimensional; args are the packed explicit arguments.

        What the kernel finds in its first scalar registers its descriptor says:
        the dispatch packet and the arguments, which end in hidden ones.
        """
        descriptor = ctypes.string_at(self.symbols[kernel + "_gpu.kd"], 64)
        local, scratch, size = struct.unpack_from("<III", descriptor, 0)
        resources, = struct.unpack_from("<I", descriptor, 52)
        resources |= -(-local // 512) << 15  # as the command processor does
        wants, = struct.unpack_from("<H", descriptor, 56)
        memory = ctypes.create_string_buffer(args.ljust(size, b"\0"))
        if size >= len(args) + KERNARG_HIDDEN:
            struct.pack_into("<IIIHHH", memory, size - KERNARG_HIDDEN, grid, 1,
                             1, block, 1, 1)
        packet = ctypes.create_string_buffer(64)
        struct.pack_into("<HHHHHHIII", packet, 0, 0, 1, block, 1, 1, 0,
                         grid * block, 1, 1)
        first = [0] * 4 if wants & 1 else []
        for bit, value in ((1, ctypes.addressof(packet)), (2, 0),
                           (3, ctypes.addressof(memory))):
            if wants >> bit & 1:
                first += [value & 0xFFFFFFFF, value >> 32]
        emu.run_asm(self.symbols[kernel + "_gpu"], 0, grid, 1, 1, block, 1, 1,
                    ctypes.addressof(memory), rsrc2=resources,
                    scratch_size=scratch, arch="cdna", user_data=first)
