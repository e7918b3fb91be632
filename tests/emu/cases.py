# SPDX-License-Identifier: MIT
"""The cases of scripts/amd-emu: which kernel, on what memory, with what
arguments. library.py has those of device/kernels/."""
import ctypes
import itertools
import random
import struct

from ranks import HEAP, OWN_WORDS, RANKS

LANES, BLOCK = 100, 128  # two wavefronts, the second not full
SEMS, SCOPES, COMPARISONS, HINTS = range(4), range(3), range(6), range(7)
EQ, NE, LT, LE, GT, GE = COMPARISONS
RELAXED, ACQ_REL, WG, SYSTEM = 0, 3, 0, 2

TYPES = {  # name: bytes, exponent bits of a float or 0
    "i8": (1, 0), "u8": (1, 0), "i16": (2, 0), "u16": (2, 0),
    "i32": (4, 0), "u32": (4, 0), "i64": (8, 0), "u64": (8, 0),
    "f16": (2, 5), "bf16": (2, 8), "f32": (4, 8), "f64": (8, 11)}
F8 = {"f8e4m3": (1, 4), "f8e5m2": (1, 5)}  # which few kernels take
WORDS = ["i32", "u32", "i64", "u64"]

# Where things are: on a heap, and in a rank's own memory.
GROUP, HEAP_AT, MORE_AT, LOCAL_AT = 0x100, 0x1000, 0x8000, 0x400
PAST = 0x800  # what barriers announce to members that are no rank
ARGUMENTS = struct.Struct("<QQQQQQQiiiiii")

ONE_LANE = "load store get put copy asremote".split()
MASKED = [op + "masked" for op in "load store get put copy".split()]
UPDATES = "add sub min max xchg and or xor".split()
CROWDS = "add sub min max and or xor".split()


def arrivals_of(members):  # as iris_i_group_arrivals() has it
    words = max(3 * members, 2 * 32)
    return GROUP + (16 + 8 * words + 127) // 128 * 128


class Case:
    """One launch in one rank, or in both at once."""

    def __init__(self, group, kernel, both=False, grid=1, block=BLOCK,
                 heap=HEAP_AT, more=MORE_AT, local=LOCAL_AT, members=RANKS,
                 **values):
        self.group, self.both, self.grid, self.block = group, both, grid, block
        self.size = members  # of the group; those past the ranks are there
        self.kernel = kernel
        self.at = heap, more, local
        self.values = {"count": LANES, "value": 0, "peer": None, "from": 0,
                       "sem": 0, "scope": 0, "cmp": 0, "hint": 0} | values
        self.parts = []  # (region or None for both heaps, place, bytes)
        self.pack = self.common
        self.expect = None  # else: instead of what the CPU does
        self.idle = False  # changes no memory
        self.far = False  # needs IRIS_FAR
        self.traced = None  # else: how it records, and what (library.py)

    def __str__(self):
        told = {k: v for k, v in self.values.items() if v}
        return f"{self.kernel} {told} {self.at}"

    def seed(self):
        return f"{self.kernel} {self.values}"

    def put(self, region, place, values, size):
        """Sets what is in memory, else random, before the kernel starts."""
        mask = (1 << 8 * size) - 1
        self.parts.append((region, place, b"".join(
            (v & mask).to_bytes(size, "little") for v in values)))
        return self

    def images(self, rank):
        seed = random.Random(self.seed())
        images = [bytearray(seed.randbytes(HEAP)) for _ in range(RANKS + 1)]
        for r in range(RANKS):
            n, ranks = self.size, [m % RANKS for m in range(self.size)]
            struct.pack_into(f"<iiQ{3 * n}Q", images[r], GROUP, n, r, 0,
                             *[0] * 2 * n, *ranks)
            struct.pack_into(f"<{n}Q", images[r], arrivals_of(n),
                             *[0 if m < RANKS else 1 << 40 for m in range(n)])
        for region, place, data in self.parts:
            for r in range(RANKS) if region is None else [region]:
                images[r][place:place + len(data)] = data
        return [bytes(image) for image in images]

    def set_addresses(self, memory, rank, known):
        """Where the arrivals are, here and at each member. No two memories have
        the same, so they are unknown, 0, when memories are compared."""
        here, arrivals = memory.heaps[rank], arrivals_of(self.size)
        places = {GROUP + 8: here + arrivals}
        for member in range(self.size):
            places[GROUP + 16 + 16 * member] = \
                memory.heaps[member] + arrivals + 8 * rank \
                if member < RANKS else here + PAST + 8 * member
        for place, address in places.items():
            data = struct.pack("<Q", address if known else 0)
            ctypes.memmove(memory.heaps[rank] + place, data, len(data))

    def kernel_in(self, _):
        return self.kernel

    def arguments(self, memory, rank):
        return self.pack(memory, rank)

    def common(self, memory, rank):
        v, (heap, more, local) = self.values, self.at
        peer = 1 - rank if v["peer"] is None else v["peer"]
        return ARGUMENTS.pack(
            self.context(memory), memory.heaps[rank] + heap,
            memory.heaps[rank] + more, memory.local + local,
            memory.heaps[rank] + GROUP, v["count"], v["value"], peer, v["from"],
            v["sem"], v["scope"], v["cmp"], v["hint"])

    @staticmethod
    def context(memory):
        return ctypes.addressof(memory.context)


# Values ----------------------------------------------------------------------

def encoded(name, number):
    """A small whole number as the bits of a type."""
    form = {"f16": "<e", "bf16": "<f", "f32": "<f", "f64": "<d"}.get(name)
    if form is None:
        return number
    data = struct.pack(form, number)
    return int.from_bytes(data[2:] if name == "bf16" else data, "little")


def some(name, rng, count, sums):
    """Bits of any numbers: of floats all that are finite and not 0, some of
    them denormal, and infinity where no sum of two is a NaN."""
    size, exponent = (TYPES | F8)[name]
    width = 8 * size
    values = [rng.getrandbits(width) for _ in range(count)]
    if not exponent:
        return values
    digits = width - 1 - exponent
    top = (1 << exponent) - 1
    for i in range(count):
        e = rng.choice([0, top // 2, top // 2 + rng.randint(-3, 3),
                        rng.randint(1, top - 1)])
        values[i] = (rng.getrandbits(1) << width - 1 | e << digits |
                     rng.getrandbits(digits) | 1)
        if i % 13 == 5 and sums:
            values[i] = top << digits
    return values


def nan(name):
    size, exponent = TYPES[name]
    digits = 8 * size - 1 - exponent
    return ((1 << exponent + 1) - 1) << digits - 1 | 5


def operands(op, name, seed):
    """What is on the heap, the operand, and what a cas expects there."""
    rng = random.Random(seed)
    heap, operand = (some(name, rng, LANES, op == "add") for _ in range(2))
    if op in ("min", "max") and TYPES[name][1]:
        for i in range(0, LANES, 7):
            (operand if i % 2 else heap)[i] = nan(name)
    expected = [h if i % 2 else e for i, (h, e) in
                enumerate(zip(heap, some(name, rng, LANES, False)))]
    return heap, operand, expected


# Cases -----------------------------------------------------------------------

def one_lane(group, op, name, **values):
    count = values.get("count", LANES)
    size = TYPES[name][0]
    case = Case(group, f"emu_{op}_{name}", **values)
    rng = random.Random(f"{op} {name}")
    case.put(None, HEAP_AT, some(name, rng, count, False), size)
    case.put(None, MORE_AT, some(name, rng, count, False), size)
    return case.put(RANKS, LOCAL_AT + count * size,
                    some(name, rng, count, False), size)


def accesses():
    for op, name in itertools.product(ONE_LANE, TYPES):
        yield one_lane("load, store, get, put, copy", op, name)
        yield one_lane("load, store, get, put, copy", op, name, peer=0)
    for name in TYPES:
        yield one_lane("load, store, get, put, copy", "copy", name, **{
            "from": 1, "peer": 0})
    for op, name in itertools.product(MASKED, TYPES):
        yield one_lane("the same, masked", op, name)
    for op, name in itertools.product(("load", "store"), TYPES):
        yield one_lane("volatile load and store", op + "volatile", name)
    for op, name, hint in itertools.product(("load", "store"), TYPES, HINTS):
        yield one_lane("load and store with each hint", op + "hint", name,
                       hint=hint)
    for op, name in itertools.product(("load", "put", "add"), ("u32", "f32")):
        yield one_lane("several workgroups", op, name, grid=3, count=333)
    for name in TYPES:
        yield one_lane("signals", "putsignal", name, value=1 << 40)


def atomic(group, op, name, sem, scope):
    size = TYPES[name][0]
    case = Case(group, f"emu_{op}_{name}", sem=sem, scope=scope)
    heap, operand, expected = operands(op.removesuffix("masked"), name,
                                       f"{op} {name}")
    case.put(None, HEAP_AT, heap, size)
    case.put(RANKS, LOCAL_AT + LANES * size, operand, size)
    return case.put(RANKS, LOCAL_AT + 2 * LANES * size, expected, size)


def has(op, name):
    return not TYPES[name][1] or op.removeprefix("crowd") not in (
        "and", "or", "xor")


def atomics():
    for op, name, sem, scope in itertools.product(
            UPDATES + ["cas", "atomicload", "atomicstore"], TYPES, SEMS,
            SCOPES):
        if has(op, name):
            yield atomic("atomic " + op.removeprefix("atomic"), op, name, sem,
                         scope)
    for op, name, (sem, scope) in itertools.product(
            UPDATES + ["cas"], TYPES, ((RELAXED, WG), (ACQ_REL, SYSTEM))):
        if has(op, name):
            yield atomic("atomics, masked", op + "masked", name, sem, scope)
    for op, name, (sem, scope) in itertools.product(
            CROWDS, TYPES, ((RELAXED, SYSTEM), (ACQ_REL, SYSTEM))):
        if not has(op, name):
            continue
        size = TYPES[name][0]
        case = Case("atomics, all lanes on one element",
                    f"emu_crowd{op}_{name}", sem=sem, scope=scope)
        case.put(None, HEAP_AT, [encoded(name, i) for i in range(4)], size)
        yield case.put(RANKS, LOCAL_AT + LANES * size, [
            encoded(name, i * 7 % 4) for i in range(LANES)], size)


def pairs(name, cmp, rng, hold):
    """Words and what they are compared with; all hold, or some."""
    width = 8 * TYPES[name][0]
    low = -(1 << width - 1) if name[0] == "i" else 0
    words, values = [], []
    for _ in range(LANES):
        a, b = sorted(low + rng.getrandbits(width) for _ in range(2))
        how = cmp if hold else rng.choice(COMPARISONS)
        word, value = {EQ: (a, a), NE: (a, b), LT: (a, b), LE: (a, a),
                       GT: (b, a), GE: (b, b)}[how]
        words.append(word)
        values.append(value)
    return words, values


def waits():
    for op, name, cmp in itertools.product(("wait", "test"), WORDS,
                                           COMPARISONS):
        size = TYPES[name][0]
        words, values = pairs(name, cmp, random.Random(f"{name} {cmp}"),
                              op == "wait")
        case = Case("waits that hold, and tests", f"emu_{op}_{name}", cmp=cmp)
        case.put(None, HEAP_AT, words, size)
        yield case.put(RANKS, LOCAL_AT + LANES * size, values, size)
    for op in ("signalset", "signaladd", "signalcrowd", "signalfetch"):
        yield one_lane("signals", op, "u64")
    for op, which, some_out, cmp in itertools.product(
            ("test", "wait"), ("all", "any", "some"), (0, 1), (EQ, GE, LT)):
        yield several(op, which, some_out, cmp)


def several(op, which, some_out, cmp):
    """Eight signals a lane; of a wait enough hold."""
    rng = random.Random(f"{op} {which} {some_out} {cmp}")
    value, good = 2, {EQ: 2, GE: 3, LT: 1}[cmp]
    lanes = 40
    signals = [rng.randrange(5) for _ in range(8 * lanes)]
    status = [rng.randrange(2) for _ in range(8 * lanes)]
    for lane in range(lanes):
        at = 8 * lane + lane % 8
        if lane % 5 == 0:  # nothing takes part
            status[8 * lane:8 * lane + 8] = [1] * 8
        elif op == "wait":
            status[at] = 0
        if op == "wait":
            signals[at] = good
        if op == "wait" and which == "all" or lane % 7 == 3:
            for i in range(8 * lane, 8 * lane + 8):
                signals[i] = good if not some_out or not status[i] else 9
    case = Case("waits for and tests of several signals",
                f"emu_{op}{which}_u64", count=lanes, value=value, cmp=cmp,
                hint=some_out)
    case.put(None, HEAP_AT, signals, 8)
    return case.put(None, MORE_AT, status, 4)


def workgroups():
    places = [(0, 0), (1, 0), (0, 2), (4, 0), (0, 8), (3, 3), (5, 1), (15, 7)]
    sizes = [0, 1, 3, 15, 16, 33, 255, 1000, 9001]
    for op, bytes_, (to, start) in itertools.product(
            ("put", "get", "copy"), sizes, places):
        yield Case("bulk " + op, f"emu_wg{op}", count=bytes_, heap=HEAP_AT + to,
                   more=MORE_AT + start, local=LOCAL_AT + start)
    # Long for so few lanes: rounds of 1024 bytes, none, the least, with a loop.
    for op, bytes_ in itertools.product(("put", "get", "copy"),
                                        (3071, 3072, 5119, 5120, 9001)):
        yield Case("bulk " + op, f"emu_wg{op}", count=bytes_, block=8)
    for bytes_, (to, start) in itertools.product(sizes, places[::3]):
        yield Case("bulk put and signal", "emu_wgputsignal", count=bytes_,
                   value=bytes_ + 7, heap=HEAP_AT + to, local=LOCAL_AT + start)
    for block, count in ((64, 64), (128, 128), (256, 100), (100, 300)):
        yield Case("workgroup barrier", "emu_wgbarrier", block=block,
                   count=count)
    for sem, scope in itertools.product(SEMS, SCOPES):
        yield one_lane("fence", "fence", "u64", sem=sem, scope=scope)
    for i in range(4):
        yield Case("conversions of f16 and bf16", "emu_halves_f32", count=2000,
                   value=i)


def eights():
    """8-bit floats: from each number that one has, each halfway between two and
    the floats beside these, and from what is no number; all to float; and the
    sums of all pairs."""
    numbers = set()
    for name, bias in (("f8e4m3", 7), ("f8e5m2", 15)):
        digits = 7 - F8[name][1]
        exact = [(m | (1 << digits if e else 0)) * 2.0 ** (max(e, 1) - bias - digits)
                 for e in range(1 << F8[name][1]) for m in range(1 << digits)]
        exact.append(2 * exact[-1] - exact[-2])
        for low, high in zip(exact, exact[1:]):
            for number in (low, (low + high) / 2):
                bits = int.from_bytes(struct.pack("<f", number), "little")
                numbers |= {bits + beside for beside in (0, 1, -1)
                            if bits + beside >= 0}
    numbers |= {1, 0x7fffff, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000}
    numbers = sorted(numbers)
    for sign in (0, 1):
        yield Case("conversions of 8-bit floats", "emu_eights_f32",
                   count=len(numbers)).put(
                       None, HEAP_AT, [n | sign << 31 for n in numbers], 4)
    for first, hint in itertools.product(range(0, 1 << 16, 4096), (0, 1)):
        yield Case("sums of 8-bit floats", "emu_eightsums_f32", count=4096,
                   value=first, hint=hint)


def tiles():
    """By matrix instructions sums of whole numbers, which all orders add to the
    same; in order any numbers. One is left out: in it the emulator ends by a
    segmentation fault, probably as ds_read_b32 reads for lanes turned off."""
    for op, name, (m, n, k), turned in itertools.product(
            ("product", "ordered"), ("f16", "bf16", "f32"),
            ((64, 32, 40), (37, 21, 33)), (0, 1)):
        if (op, name, m) == ("ordered", "bf16", 37):
            continue
        rng = random.Random(f"{op} {name} {m} {turned}")
        size = TYPES[name][0]
        case = Case("products of tiles", f"emu_{op}_{name}", count=m, value=n,
                    hint=turned, **{"from": k})
        for at, count in ((HEAP_AT, m * k), (MORE_AT, k * n)):
            case.put(None, at, [
                encoded(name, rng.randint(-15, 15) if op == "product" else
                        rng.uniform(-1, 1)) for _ in range(count)], size)
        yield case


def tile_copies():
    """By rows and columns, with gaps and, from hint 4 on, without."""
    for op, size, hint, (rows, cols) in itertools.product(
            ("put", "get", "load", "store"), (1, 4, 8), range(5),
            ((1, 1), (5, 7), (3, 40))):
        if op in ("put", "get") or hint in (0, 2, 4):
            yield Case("copies of tiles", f"emu_tile{op}", count=rows,
                       value=cols, sem=size, hint=hint, peer=1, **{"from": 1})


def zeroed(case):
    return case.put(None, HEAP_AT, [0] * 64, 8).put(None, MORE_AT, [0], 8)


def two_ranks():
    for block, count in ((64, 64), (128, 100), (128, 300)):
        yield zeroed(Case("two ranks: data, then a flag", "emu_pingpong",
                          both=True, block=block, count=count, value=5))
        yield zeroed(Case("two ranks: device barrier", "emu_rounds", both=True,
                          block=block, count=count, value=5))
    for block in (1, 16, 64):  # fewer lanes than members; more rounds than one
        yield zeroed(Case("two ranks: device barrier", "emu_rounds", both=True,
                          block=block, members=33, value=5))
    yield Case("two ranks: several signals", "emu_sets", both=True,
               value=5).put(None, MORE_AT, [0] * 32, 8)
    yield Case("two ranks: tiles", "emu_tilepass", both=True, count=5, value=9,
               sem=4, **{"from": 6}).put(None, MORE_AT, [0] * 4, 8)
    yield zeroed(Case("two ranks: on the same elements", "emu_contest",
                      both=True, value=4))


# Kernels of device/kernels/, with what they take.

def library_barrier():
    case = Case("kernels of the library", "iris_k_barrier", both=True, block=64)
    case.pack = lambda memory, rank: struct.pack(
        "<QQ", case.context(memory), memory.heaps[rank] + GROUP)
    return [case]


def signal_pack(case):
    return lambda memory, rank: struct.pack(
        "<QQQixxxx", case.context(memory), memory.heaps[rank] + HEAP_AT,
        case.values["value"], 1)


def wait_pack(case):
    return lambda memory, rank: struct.pack(
        "<QQixxxxQ", case.context(memory), memory.heaps[rank] + HEAP_AT, GE,
        case.values["value"])


def library_signal(kernel="iris_k_signal"):
    alone = Case("kernels of the library", kernel, block=64, value=77)
    alone.pack = signal_pack(alone)
    return [alone]


def library_forward():
    case = Case("kernels of the library", "iris_k_forward", block=64)
    case.put(None, MORE_AT, [1 << 40 | 77], 8)
    case.pack = lambda memory, rank: struct.pack(
        "<QQQixxxx", case.context(memory), memory.heaps[rank] + HEAP_AT,
        memory.heaps[rank] + MORE_AT, 1)
    return [case]


def library_signal_add():
    return library_signal("iris_k_signal_add")


class SignalAndWait(Case):
    """Rank 0 signals, rank 1 waits."""

    def __init__(self):
        super().__init__("kernels of the library", "iris_k_wait", both=True,
                         block=64, value=5)
        self.idle = True
        self.put(None, HEAP_AT, [0], 8)

    def kernel_in(self, rank):
        return "iris_k_wait" if rank == 1 else "iris_k_signal"

    def arguments(self, memory, rank):
        return (wait_pack if rank == 1 else signal_pack)(self)(memory, rank)


def library_wait():
    there = Case("kernels of the library", "iris_k_wait", block=64, value=3)
    there.put(None, HEAP_AT, [4], 8)
    there.idle = True
    there.pack = wait_pack(there)
    return [there, SignalAndWait()]


class Ended(Case):
    """A wait that cannot hold ends: at its deadline, with a report, or because
    somebody said stop. CPU versions are ended by libiris, so this compares with
    what device/layout.h says instead."""

    WATCH, OP_WAIT, TICKS = 0x8000, 3072, 1000
    # The first of our words of the device context, from its end (layout.h).
    OWN = -OWN_WORDS
    STRUCT = struct.Struct("<IIiiiIIIQQQQ")  # struct iris_dev_watch

    def __init__(self, stop):
        super().__init__("waits that end: deadline, stop", "emu_wait_u64",
                         cmp=EQ, value=stop)
        self.stop, self.expect = stop, self.ended
        self.put(None, HEAP_AT, [6] * LANES, 8)
        # The first wavefront's lanes have what they wait for, the others not.
        self.put(RANKS, LOCAL_AT + LANES * 8, [6] * 64 + [1 << 50] * LANES, 8)
        self.put(RANKS, LOCAL_AT, [0] * LANES, 8)
        self.put(RANKS, self.WATCH, [stop] + [0] * 7, 8)

    def arguments(self, memory, rank):
        memory.context[self.OWN:self.OWN + 3] = [memory.local + self.WATCH,
                                                 self.TICKS, 0]
        return self.common(memory, rank)

    def ended(self, memory, rank):
        """What is wrong, or None."""
        claim = memory.context[self.OWN + 2]
        memory.context[self.OWN:self.OWN + 3] = [0, 0, 0]
        local = memory.read()[RANKS]
        results = struct.unpack_from(f"<{LANES}Q", local, LOCAL_AT)
        watch = list(self.STRUCT.unpack_from(local, self.WATCH))
        if results != (6,) * 64 + (0,) * (LANES - 64):
            return f"lanes did not end where they should: {results}"
        if self.stop:
            wanted = [1] + [0] * 11
        else:
            lane = watch[6]
            wanted = [1, 1, rank, self.OP_WAIT, EQ, 0, lane, 8,
                      HEAP_AT + 8 * lane, 1 << 50, 6, watch[-1]]
            if lane < 64 or watch[-1] < self.TICKS:
                return f"the report says {watch}"
        if watch != wanted or claim != (0 if self.stop else 1):
            return f"the report says {watch}, not {wanted}; claim {claim}"
        return None


def cases():
    return [*accesses(), *atomics(), *waits(), *workgroups(), *eights(), *tiles(), *tile_copies(),
            *two_ranks(),
            *(Ended(stop) for stop in (0, 1) for _ in range(RANKS)),
            *library_barrier(), *library_signal(), *library_signal_add(),
            *library_wait(), *library_forward()]
