# SPDX-License-Identifier: MIT
"""Runs the litmus tests' gfx942 code in every order that caches allow:
litmus.py LIBRARY OBJECT PAGE. The emulator executes a lane's instructions.
caches.py executes its accesses to the words that lanes share, its waits for them
and the cache operations. The page's table must have what is seen.
"""
import ctypes
import struct
import sys
import time

import caches
import emulator
from caches import Op
from emulator import bits, cdna, emu

HEAPS = 1 << 44  # addresses of heaps, where there is no memory
HEAP_BYTES = 1 << 20
HOME = 1  # the rank whose heap has the words
NUM = 4  # registers, threads
STEPS = 8
ANY = (1 << 64) - 1
FORBIDDEN = 0
SGPR_BASE_OFF = 127
FAULTS = ("writeback", "invalidate", "wait", "scope")


class Step(ctypes.Structure):  # struct litmus_step
    _fields_ = [("op", ctypes.c_int), ("word", ctypes.c_int),
                ("value", ctypes.c_uint64), ("reg", ctypes.c_int),
                ("sem", ctypes.c_int), ("scope", ctypes.c_int)]


class Thread(ctypes.Structure):  # struct litmus_thread
    _fields_ = [("rank", ctypes.c_int), ("workgroup", ctypes.c_uint),
                ("steps", Step * STEPS)]


class Test(ctypes.Structure):  # struct litmus_test
    _fields_ = [("name", ctypes.c_char_p), ("what", ctypes.c_char_p),
                ("verdict", ctypes.c_int), ("outcome", ctypes.c_uint64 * NUM),
                ("threads", Thread * NUM)]


class Program:
    """A kernel of one lane, started again for each sequence of values that its
    reads of the words return."""

    def __init__(self, code, name, rank, ranks):
        self.entry = code.symbols[name + "_gpu"]
        self.memory = emu.Buffer(
            "CPU", 1 << 40, emu.dtypes.uint32,
            options=emu.BufferSpec(external_ptr=0)).ensure_allocated()
        words = [rank, ranks] + [HEAPS + r * HEAP_BYTES for r in range(ranks)]
        self.context = (ctypes.c_int64 * (len(words) + 64))(*words)
        self.registers = (ctypes.c_uint64 * NUM)()
        self.args = (ctypes.c_uint64 * 64)(
            ctypes.addressof(self.context), HEAPS + rank * HEAP_BYTES,
            ctypes.addressof(self.registers))
        self.known = {}

    def __call__(self, values):
        if values not in self.known:
            self.known[values] = self.run([value for _, value in values])
        return self.known[values]

    def start(self):
        where = ctypes.addressof(self.args)
        self.registers[:] = [ANY] * NUM
        self.wave = emu._init_wave(
            self.entry, 0, 1, 1, 1, 1, where, 0, 0, "cdna", 0, 0, 0,
            [where & 0xFFFFFFFF, where >> 32], 64)

    def run(self, values):
        self.start()
        ops, issued = [], []
        for _ in range(10000):
            pc = self.wave.pc
            if pc == emu.ENDPGM_PC:
                return ops + [Op("end", tuple(self.registers))]
            op, result = self.decoded(pc)
            if op is None or op.kind == "other":
                self.execute(pc)
            else:
                self.wave.pc = pc + (4 if op.kind == "wait" else 8)
            if op is None:
                continue
            ops.append(op)
            if op.kind == "wait":
                done = max(len(issued) - op.value, 0)
                reads = [read for read in issued[:done] if read]
                issued = issued[done:]
                if len(reads) > len(values):
                    return ops
                for read in reads:
                    self.write(*read, values.pop(0))
                ops = [] if reads else ops
            elif op.kind != "invalidate":
                issued.append(result)
        raise RuntimeError("a kernel without an end")

    def execute(self, pc):
        (program, runtime), _ = emu._decode_at(pc, "cdna")
        buffers = [self.wave.sgpr_buf, self.wave.vgpr_buf, self.memory]
        runtime.fxn(*[ctypes.c_uint64(buffers[g]._buf.va_addr)
                      for g in program.arg.globals])

    def write(self, register, size, value):
        for i in range(size // 4):
            self.wave._write_vgpr(register + i, 0, value >> 32 * i)

    def pair(self, register):
        return self.wave._read_vgpr(register, 0) | \
            self.wave._read_vgpr(register + 1, 0) << 32

    def decoded(self, pc):
        """(Op, its result's register and bytes), or (None, None)."""
        word = struct.unpack("<Q", ctypes.string_at(pc, 8))[0]
        if bits(word, 31, 16) == 0xBF8C:  # s_waitcnt
            left = bits(word, 3, 0) | bits(word, 15, 14) << 4
            return (Op("wait", left) if left != 63 else None), None
        if bits(word, 31, 26) == 0x38:  # MUBUF
            name = cdna.MUBUFOp(bits(word, 24, 18)).name
            level = (0, 0, 1, 2)[bits(word, 15, 14)]
            return Op({"BUFFER_WBL2": "writeback",
                       "BUFFER_INV": "invalidate"}[name], level=level), None
        if bits(word, 31, 26) == 0x37 and bits(word, 15, 14) == 2:
            return self.access(word, pc)
        return None, None

    def access(self, word, pc):
        name = cdna.GLOBALOp(bits(word, 24, 18)).name
        base, offset = bits(word, 54, 48), bits(word, 12, 0)
        where = self.pair(bits(word, 39, 32)) if base == SGPR_BASE_OFF else \
            self.wave._read_vgpr(bits(word, 39, 32), 0) + \
            self.wave._read_sgpr(base) + (self.wave._read_sgpr(base + 1) << 32)
        where += offset - (offset >> 12 << 13) - HEAPS - HOME * HEAP_BYTES
        if not 0 <= where < HEAP_BYTES:
            return Op("other"), None
        size = 8 if name.endswith("X2") else 4
        kind = {"LOAD_DWORD": "load", "STORE_DWORD": "store",
                "ATOMIC_ADD": "add", "ATOMIC_SWAP": "swap"}[
                    name.removeprefix("GLOBAL_").removesuffix("_X2")
                    .removesuffix("X2")]
        sc0, sc1 = bits(word, 16, 16), bits(word, 25, 25)
        level = sc1 + 1 if kind in ("add", "swap") else sc1 and sc0 + 1
        value = self.pair(bits(word, 47, 40)) & (1 << 8 * size) - 1
        reads = kind == "load" or kind != "store" and bool(sc0)
        op = Op(kind, 0 if kind == "load" else value, pc, where // 8,
                (1 << 8 * size) - 1, level, reads)
        return op, (bits(word, 63, 56), size) if reads else None


class Litmus:
    """The tests, and their kernels in the object file."""

    def __init__(self, library, code):
        library = ctypes.CDLL(library)
        emulator.Emulator(library)
        count = ctypes.c_int.in_dll(library, "emu_num_litmus").value
        self.tests = (ctypes.POINTER(Test * count)).in_dll(
            library, "emu_litmus").contents
        self.code = emulator.Object(code)

    def explore(self, number, fault=None):
        """Whether the outcome is seen, and the number of states."""
        test = self.tests[number]
        threads = [thread for thread in test.threads if thread.steps[0].op]
        ranks = max(2, *(thread.rank + 1 for thread in threads))
        programs = [Program(self.code, f"emu_litmus_{number}_{i}", thread.rank,
                            ranks) for i, thread in enumerate(threads)]
        devices = [thread.rank for thread in threads]
        executions = caches.Executions(programs, devices, fault)
        states = executions.explore()
        if not executions.ends:
            raise RuntimeError(f"{test.name.decode()} does not end")
        return any(self.is_outcome(test, ends)
                   for ends in executions.ends), states

    @staticmethod
    def is_outcome(test, ends):
        """Each register was written by one of the lanes."""
        return all(any(wanted == registers[i] for registers in ends)
                   for i, wanted in enumerate(test.outcome) if wanted != ANY)


def column(page):
    """What the page's table says: {name: seen or not seen}."""
    with open(page, encoding="utf-8") as file:
        rows = [line.split(" | ") for line in file if " seeds | " in line]
    return {row[0].removeprefix("| "): row[-1].strip(" |\n") for row in rows}


def main():
    litmus = Litmus(*sys.argv[1:3])
    table = column(sys.argv[3])
    failed, total, start = 0, 0, time.monotonic()
    for number, test in enumerate(litmus.tests):
        name = test.name.decode()
        seen, states = litmus.explore(number)
        total += states
        text = "seen" if seen else "not seen"
        if seen and test.verdict == FORBIDDEN or table.get(name) != text:
            failed += 1
            print(f"WRONG {name}: {text}; the page has: {table.get(name)}")
    for fault in FAULTS:
        name = next((test.name.decode() for number, test in
                     enumerate(litmus.tests) if test.verdict == FORBIDDEN and
                     litmus.explore(number, fault)[0]), None)
        print(f"without {fault}: {name} fails")
        failed += name is None
    print(f"{len(litmus.tests)} litmus tests, {total} states, {failed} wrong, "
          f"{time.monotonic() - start:.0f} s")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
