# SPDX-License-Identifier: MIT
"""Cases for the kernels of device/kernels/, and for kernels that record what
they do. library.c says where the members of their arguments are."""
import ctypes
import itertools
import random
import struct

import cases
from cases import (F8, HEAP_AT, LANES, LOCAL_AT, MORE_AT, TYPES, Case, encoded,
                   some)
from ranks import HEAP, OWN_WORDS, RANKS, TAIL_WORDS

GROUP_NAME = "kernels of the library: "
SPACE = 0xA000  # a rank's workspaces on its heap
FLOATS = ["f16", "bf16", "f32", "f64"]


class Name(ctypes.Structure):  # struct emu_name
    _fields_ = [("name", ctypes.c_char_p), ("at", ctypes.c_size_t),
                ("bytes", ctypes.c_size_t)]


def table(library, symbol):
    names = {}
    for row in (Name * 1000).in_dll(library, symbol):
        if not row.name:
            return names
        names[row.name.decode()] = (row.at, row.bytes)
    raise RuntimeError(f"{symbol} has no end")


def heap(offset):
    return lambda memory, rank: memory.heaps[rank] + offset


def local(offset):
    return lambda memory, rank: memory.local + offset


class Packed(Case):
    """A kernel whose arguments are members of a struct, by their names. Those
    that are not named are 0."""
    library = members = values_of = None

    @classmethod
    def use(cls, library):
        cls.library = library
        cls.members = table(library, "emu_members")
        cls.values_of = {name: at for name, (at, _) in
                         table(library, "emu_values").items()}

    def __init__(self, group, kernel, type_, args, **values):
        self.type, self.args = type_, args
        super().__init__(GROUP_NAME + group, kernel, **values)
        self.pack = self.packed

    def __str__(self):
        told = {k: v for k, v in self.args.items()
                if v and not callable(v)}
        return f"{self.kernel} {told}"

    def seed(self):
        return str(self)

    def packed(self, memory, rank):
        data = bytearray(self.members[self.type][1])
        for name, value in self.args.items():
            at, size = self.members[f"{self.type}.{name}"]
            if callable(value):
                value = value(memory, rank)
            elif isinstance(value, str):
                value = self.values_of[value]
            if isinstance(value, float):
                struct.pack_into("<d", data, at, value)
                continue
            for i, word in enumerate(value if isinstance(value, list)
                                     else [value]):
                width = 8 if isinstance(value, list) else size
                data[at + i * width:at + (i + 1) * width] = \
                    (word & (1 << 8 * width) - 1).to_bytes(width, "little")
        return bytes(data)


# Tensors ---------------------------------------------------------------------

def fills():
    for at, size in ((0, 1000), (8, 1000), (0, 0), (5, 3), (8, 100), (1, 77)):
        pattern = 0x0102030405060708 if at == 8 else 0x4343434343434343
        case = Packed("fills and copies", "iris_k_fill", "iris_fill_args", {
            "data": local(LOCAL_AT + at), "bytes": size,
            "pattern": [pattern, pattern]}, grid=2)
        case.idle = size == 0
        yield case
    for width in (1, 2, 4, 8, 16):
        shape = {"shape.sizes": [3, 5, 7], "shape.ndim": 3,
                 "shape.width": width, "shape.count": 105}
        yield Packed("fills and copies", "iris_k_fill_strided",
                     "iris_fill_strided_args", shape | {
                         "data": local(LOCAL_AT), "strides": [1, 30, 4],
                         "element": [0x1122334455667788, 99]})
        yield Packed("fills and copies", "iris_k_copy_strided",
                     "iris_copy_strided_args", shape | {
                         "to": local(LOCAL_AT), "from": heap(HEAP_AT),
                         "to_strides": [35, 7, 1],
                         "from_strides": [1, 30, 4]})


ROWS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8,
        "f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def rows():
    for (name, size), (at, count, stride) in itertools.product(
            ROWS.items(), ((0, 300, 1), (1, 33, 1), (0, 50, 3), (3, 2, 1))):
        place = {"data": local(LOCAL_AT + at * size), "count": count,
                 "stride": stride}
        yield Packed("arange", f"iris_k_arange_{name}", "iris_row_args",
                     place | {"whole_start": 250, "whole_step": -7,
                              "start": -3.25, "step": 0.37}, grid=2)
        ends = [(-1.5, 7.3), (100.0, -100.0)]
        if name == "u64":
            ends += [(1.0, 18446744073709549568.0), (-9e18, 9.2e18)]
        for start, end in ends if count > 1 else ():
            yield Packed("linspace", f"iris_k_linspace_{name}",
                         "iris_row_args", place | {
                             "start": start, "end": end,
                             "step": (end - start) / (count - 1)}, grid=2)


def random_numbers():
    kernels = [f"{kind}_{name}" for kind in ("uniform", "normals")
               for name in FLOATS]
    kernels += [f"integer_{name}" for name in ROWS] + ["wide_u64", "wide_f64"]
    for kernel, (at, count, strided) in itertools.product(kernels, (
            (0, 203, 0), (16, 64, 0), (8, 37, 0), (0, 30, 1), (0, 1, 0))):
        args = {"data": local(LOCAL_AT + at), "count": count, "seed": 1 << 33,
                "sequence": 7, "offset": (1 << 32) - 3, "low": 5}
        if strided:
            args |= {"ndim": 2, "sizes": [6, 5], "strides": [1, 7]}
        if kernel.startswith("normals"):
            args["half"] = at // 16
        # So that some numbers draw again.
        bits = 64 if kernel.startswith("wide") else 32
        args["range"] = 77 if at else (1 << bits) // 3 * 2
        args["bias"] = (1 << bits) % args["range"]
        yield Packed("random numbers", f"iris_k_{kernel}", "iris_random_args",
                     args, grid=1 if at else 2)


def products():
    m, n, k = 5, 7, 13
    for name, bias, turned in itertools.product(("f16", "bf16", "f32"), (0, 1),
                                                (0, 1)):
        rng = random.Random(f"{name} {bias} {turned}")
        size = TYPES[name][0]
        case = Packed("products", f"iris_k_matmul_{name}", "iris_matmul_args", {
            "a.data": heap(HEAP_AT), "a.row": 1 if turned else k,
            "a.col": m if turned else 1, "b.data": heap(MORE_AT), "b.row": n,
            "b.col": 1, "bias.data": local(0x2000) if bias else 0,
            "bias.row": 0, "bias.col": 1, "out": local(LOCAL_AT),
            "out_row": n, "m": m, "n": n, "k": k})
        for region, at, count in ((None, HEAP_AT, m * k),
                                  (None, MORE_AT, k * n), (RANKS, 0x2000, n)):
            # Of as many bits that the products do not fit into a float.
            case.put(region, at, [encoded(name, rng.randint(-1000, 1000) / 1024)
                                  if name != "f32" else
                                  encoded(name, rng.uniform(-1, 1))
                                  for _ in range(count)], size)
        yield case


# Copies of streams, and fused operations in chunks ----------------------------

def with_context(case):
    case.args["context"] = lambda memory, _: case.context(memory)
    return case


def transfers():
    for gets, bytes_ in itertools.product((0, 1), (8, 37, 3000)):
        yield with_context(Packed(
            "copies of streams", "iris_k_transfer", "iris_transfer_args",
            {"symmetric": heap(HEAP_AT), "other": local(LOCAL_AT),
             "bytes": bytes_, "symmetric_step": bytes_ + 3,
             "other_step": bytes_ + 1, "rank": 1, "gets": gets}, grid=2))


def chunks():
    # The 9 words of each rank, and as many for the meeting.
    case = with_context(Packed("fused operations in chunks", "iris_k_ops_close",
                               "iris_ops_close_args",
                               {"words": heap(HEAP_AT), "ranks": RANKS},
                               block=64))
    case.put(None, HEAP_AT, [1] * 9 * RANKS + [0] * 9 * RANKS, 8)
    yield case
    for name, (rows, columns) in itertools.product(
            ("f32", "f16", "bf16"), ((1, 67), (3, 5))):
        case = Packed("fused operations in chunks", f"iris_k_ops_sum_{name}",
                      "iris_ops_sum_args",
                      {"in": heap(HEAP_AT), "out": local(LOCAL_AT),
                       "pitch": 512, "members": 3, "rows": rows,
                       "columns": columns, "out_row": columns + 2})
        rng = random.Random(str(case))
        for member in range(3):
            case.put(None, HEAP_AT + 512 * member,
                     [encoded(name, rng.uniform(-2, 2))
                      for _ in range(rows * columns)], TYPES[name][0])
        yield case


# Collectives -----------------------------------------------------------------

class Collective(Packed):
    """A launch in both ranks, which meet in their workspaces."""

    SLOT_BYTES, STAGE_BYTES, STRIDE = 512, 0, HEAP - SPACE

    def __init__(self, group, kernel, type_, name, args, **values):
        super().__init__(group, kernel, type_,
                         {"in": heap(HEAP_AT), "out": heap(MORE_AT)} | args,
                         both=True, **{"block": 128} | values)
        rng = random.Random(str(self))
        for rank in range(RANKS):
            self.put(rank, HEAP_AT,
                     some(name, rng, 0x2000 // (TYPES | F8)[name][0], False),
                     (TYPES | F8)[name][0])

    def spaces(self):
        return [SPACE]

    def images(self, rank):
        images = [bytearray(image) for image in super().images(rank)]
        self.library.emu_lay_out.restype = ctypes.c_size_t
        for r, at in itertools.product(range(RANKS), self.spaces()):
            space = (ctypes.c_char * self.STRIDE).from_buffer(images[r], at)
            used = self.library.emu_lay_out(
                space, ctypes.c_int64(r), ctypes.c_int64(self.SLOT_BYTES),
                ctypes.c_int64(self.STAGE_BYTES))
            del space
            if used > self.STRIDE:
                raise RuntimeError(f"a workspace takes {used} bytes")
        return [bytes(image) for image in images]

    def set_addresses(self, memory, rank, known):
        super().set_addresses(memory, rank, known)
        for at in self.spaces():
            self.library.emu_members_are(
                ctypes.c_void_p(memory.heaps[rank] + at),
                *(ctypes.c_int64((base + at) * known)
                  for base in memory.heaps))


def collective(kernel, type_, name, args, **values):
    case = Collective("collectives", kernel, type_, name, {
        "start.space": heap(SPACE), "start.call": 4711, "start.steps": 1} | args,
        **values)
    case.args["start.context"] = lambda memory, _: case.context(memory)
    return case


def near(memory, rank):
    """A struct iris_ccl_near, by words."""
    def word(name):
        at, _ = Packed.members[f"iris_ccl_space.{name}"]
        return ctypes.c_int64.from_address(memory.heaps[rank] + SPACE + at).value

    heaps = memory.heaps[:RANKS] + [0] * (8 - RANKS)
    return ([base and base + SPACE for base in heaps] + heaps +
            [word(name) for name in "slots hellos byes call epochs slot_bytes".split()] +
            [word("max_wgs") | RANKS << 32, rank])


# Reductions that have kernels of their own.
FREQUENT = [(name, op) for name in ("f32", "bf16", "f16", "i32")
            for op in ("SUM", "MAX")]


def near_reductions():
    # Shares of 4050, 4000 and 4096 bytes, the last of which is sent behind its sums.
    for (name, op), (shape, bytes_, block) in itertools.product(FREQUENT, (
            ("TO_ALL", 8100, 32), ("SCATTER", 4000, 64), ("TO_ALL", 8192, 16))):
        yield collective(f"iris_k_ccl_reduce_{name}_{op.lower()}",
                         "iris_ccl_reduce_args", name, {
                             "kind": f"IRIS_D_KIND_{name}",
                             "op": f"IRIS_REDUCE_{op}", "rings": 1, "root": -1,
                             "shape": f"IRIS_CCL_{shape}", "near": near,
                             "bytes": bytes_} | scale(1), block=block)


def near_packets():
    for (name, op), (exchange, bytes_, piece) in itertools.product(FREQUENT, (
            ("REDUCE_ONE", 512, 512), ("REDUCE_PARTS", 256, 256),
            ("REDUCE_ONE", 100, 104), ("REDUCE_TWO", 700, 256))):
        once = bytes_ % 8 == 0
        yield collective(
            f"iris_k_ccl_{'once' if once else 'packet'}_{name}_{op.lower()}",
            "iris_ccl_packet_args", name, {
                "kind": f"IRIS_D_KIND_{name}", "op": f"IRIS_REDUCE_{op}",
                "exchange": f"IRIS_CCL_{exchange}", "bytes": bytes_,
                "piece": piece, "root": 1, "near": near,
                "start.steps": -(-bytes_ // piece)} | scale(1), block=64)
    for kernel, exchange, bytes_ in (
            ("once", "GATHER", 256), ("once", "SWAP", 256),
            ("packet", "GATHER", 37), ("packet", "SWAP", 37),
            ("packet", "SPREAD", 256)):
        yield collective(f"iris_k_ccl_{kernel}_move", "iris_ccl_packet_args",
                         "u8", {"exchange": f"IRIS_CCL_{exchange}",
                                "bytes": bytes_, "piece": bytes_, "root": 1,
                                "near": near}, block=64)


def scale(factor):
    """The factor of a reduction, as arguments have it."""
    return {"scale.f64": float(factor),
            "scale.f32": struct.unpack("<I", struct.pack("<f", factor))[0]}


def reductions():
    kernel, type_ = "iris_k_ccl_reduce", "iris_ccl_reduce_args"
    every = [("WHOLE", name, "SUM", 96) for name in TYPES]
    every += [("WHOLE", "f32", op, 100) for op in ("PRODUCT", "MIN", "MAX")]
    every += [("WHOLE", "u16", op, 38) for op in ("BAND", "BOR", "BXOR")]
    every += [(shape, "f32", "SUM", bytes_) for shape in ("TO_ALL", "SCATTER")
              for bytes_ in (4, 1000)]
    every += [("TO_ALL", "bf16", "SUM", 2006)]
    unordered = [(shape, name, "SUM", 1000) for shape in ("LOCKED", "RINGED")
                 for name in ("f32", "i64", "f16")]
    unordered += [("ADDED", name, "SUM", 256) for name in ("f32", "u8", "f64")]
    for i, (shape, name, op, bytes_) in enumerate(every + unordered):
        args = {"kind": f"IRIS_D_KIND_{name}", "op": f"IRIS_REDUCE_{op}",
                "shape": f"IRIS_CCL_{shape}", "bytes": bytes_, "rings": 1,
                "root": -1}
        args |= scale(0.3 if i < len(every) and i % 2 else 1)
        if shape in ("WHOLE", "TO_ALL") and bytes_ in (100, 1000):
            args["root"] = i % 4 // 2
        if shape == "RINGED":
            args["start.steps"] = 3
        if i % 5 == 4 and shape in ("WHOLE", "TO_ALL"):
            args["in"] = heap(HEAP_AT + TYPES[name][0])  # not for blocks
        if i % 5 == 2 and shape == "TO_ALL":
            args["out"] = args.get("in", heap(HEAP_AT))
        yield collective(kernel if i < len(every) else "iris_k_ccl_unordered",
                         type_, name, args)
    for shape, striding, own in (("TO_ALL", 0, 0), ("TO_ALL", 1, 0),
                                 ("TO_ALL", 1, 1), ("SCATTER", 0, 0)):
        yield collective("iris_k_ccl_matrix", type_, "f32", {
            "kind": "IRIS_D_KIND_f32", "op": "IRIS_REDUCE_SUM",
            "shape": f"IRIS_CCL_{shape}", "bytes": 100, "rows": 5,
            "in_pitch": 128, "out_pitch": 104, "striding": striding,
            "own_rows": own, "root": -1} | scale(0.7))


def moves():
    for pull, bytes_ in itertools.product((0, 1), (8, 37, 3000)):
        yield collective("iris_k_ccl_move_near", "iris_ccl_move_args", "u8", {
            "bytes": bytes_, "pull": pull, "root": -1, "near": near,
            "out_of_peer" if pull else "out_of_self": bytes_})
        out = "out_of_peer" if pull else "out_of_self"
        into = "in_of_self" if pull else "in_of_peer"
        for args in ({out: bytes_}, {out: bytes_, into: bytes_},
                     {"root": 1, out: 0}):
            yield collective("iris_k_ccl_move", "iris_ccl_move_args", "u8",
                             {"bytes": bytes_, "pull": pull, "root": -1} | args)
        yield collective("iris_k_ccl_move", "iris_ccl_move_args", "u8", {
            "bytes": 40, "pull": pull, "root": -1, "rows": 3, "in_pitch": 48,
            "out_pitch": 64, out: 192})


def packets():
    exchanges = "REDUCE_ONE REDUCE_TWO REDUCE_PARTS GATHER SWAP SPREAD".split()
    for exchange, (name, bytes_, piece, at) in itertools.product(exchanges, (
            ("f32", 4, 8, 0), ("f16", 102, 104, 0), ("f64", 512, 512, 0),
            ("u8", 37, 40, 1), ("i32", 700, 256, 4), ("f8e4m3", 101, 104, 1),
            ("f8e5m2", 700, 256, 0))):
        yield collective("iris_k_ccl_packet", "iris_ccl_packet_args", name, {
            "kind": f"IRIS_D_KIND_{name}", "op": "IRIS_REDUCE_SUM",
            "exchange": f"IRIS_CCL_{exchange}", "bytes": bytes_,
            "piece": piece, "root": 1, "to_root": at // 4,
            "in": heap(HEAP_AT + at),
            "start.steps": -(-bytes_ // piece)} | scale(0.3), block=64)


def messages():
    """Of both ranks the same size, or of one a large one and of the other a small
    one, or none."""
    own = [0, 16, 0x1000, 16]  # what a rank keeps, then what it exchanges
    for meets, reads, sizes in itertools.product(
            (0, 1), (0, 1), ((8, 8), (37, 37), (3000, 3000), (3000, 100),
                             (20, 1500), (0, 700))):
        yield collective("iris_k_ccl_pairs", "iris_ccl_pairs_args", "u8", {
            "bytes_per_wg": 1 << 20, "most_wgs": 1, "count": 2, "meets": meets,
            "checks": meets and sizes[0] == sizes[1], "reads": reads,
            "start.steps": meets,
            "routes": lambda _, rank, sizes=sizes: own + [
                16, sizes[rank], 4, sizes[1 - rank]]})


class OfWorkgroups(Collective):
    """Each workgroup has a workspace of its own, and takes several steps."""

    SLOT_BYTES, STRIDE = 256, (HEAP - SPACE) // 2
    STAGE_BYTES = RANKS * SLOT_BYTES

    def __init__(self, name, args, **values):
        super().__init__("", f"emu_wgccl_{name}",
                         "emu_wg_args", name.split("_")[1], {
                             "handle.context":
                                 lambda memory, _: self.context(memory),
                             "handle.spaces": heap(SPACE),
                             "handle.stride": self.STRIDE,
                             "handle.piece": self.SLOT_BYTES,
                             "handle.max_wgs": 2} | args, **values)
        self.group = "collectives of workgroups"

    def spaces(self):
        return [SPACE + self.STRIDE * wg for wg in range(self.grid)]


BATCHED = ("reduce_f32", "twoshot_f32", "scatter_f32")


def of_workgroups():
    """Fewer elements than lanes, and more than a step takes."""
    for name in ("reduce_f32", "oneshot_bf16", "oneshot_i64", "twoshot_f32",
                 "oneshot_f8e5m2", "twoshot_f8e4m3", "twoshot_f16", "ring_f32", "atomic_f32", "scatter_f32",
                 "root_f32", "root_bf16"):
        size = (TYPES | F8)[name.split("_")[1]][0]
        # By 4 lanes each has several packets, if code for few lanes has batches.
        for bytes_, grid, block in ((size, 1, 64), (488, 2, 128), (488, 1, 4)):
            if block == 4 and name not in BATCHED:
                continue
            case = OfWorkgroups(name, {"count": bytes_ // size,
                                       "root": grid - 1}, grid=grid,
                                block=block)
            if name == "atomic_f32":  # what is added to
                case.put(None, MORE_AT, [0] * 0x400, 4)
            yield case
    for name, root, (bytes_, grid) in itertools.product(
            ("allgather_u8", "gather_u8", "alltoall_u8", "broadcast_u8",
             "deal_u8"), (0, 1), ((3, 1), (500, 2))):
        if root == 0 or not name.startswith("all"):
            yield OfWorkgroups(name, {"count": bytes_, "root": root},
                               grid=grid)
    for name, root, (high, wide) in itertools.product(
            ("reduce", "oneshot", "twoshot", "scatter", "allgather", "gather",
             "alltoall", "broadcast", "deal", "root"), (0, 1),
            ((1, 1), (7, 13), (2, 61), (1, 70))):
        if root == 0 or name in ("gather", "broadcast", "deal", "root"):
            for gaps in (0, 1) if high == 7 else (1,):
                yield OfWorkgroups(f"tile{name}_f32", {
                    "rows": high, "count": wide, "root": root, "gaps": gaps},
                                   grid=2)


# Kernels that record what they do --------------------------------------------

class Traced:
    """Has a case's kernel record, in columns of its rank's own memory, and says
    what is wrong with the records. What else the kernel does stays the same. With
    `size` each lane has one event, of so many bytes at its element on the peer;
    with `sums` it adds to that. `limit` is how many events there is room for."""

    AT, EVENTS, COLUMNS = 0xC000, 128, 15  # two of them Iris's own
    COUNTERS = AT - 16

    def __init__(self, case, events, size=0, sums=False, limit=EVENTS):
        self.case, self.events = case, events
        self.size, self.sums, self.limit = size, sums, limit
        case.group, case.traced = "kernels that record events", self

    def words(self, memory, on):
        value = Packed.values_of
        base = RANKS
        places = [memory.local + self.AT + 8 * self.EVENTS * i
                  for i in range(self.COLUMNS)]

        def put(name, word, more=0):
            memory.context[base + value["IRIS_CONTEXT_" + name] + more] = \
                word * on

        put("TRACE_ENABLED", 1)
        put("TRACE_MAX_EVENTS", self.limit)
        put("TRACE_COUNTER", memory.local + self.COUNTERS)
        put("TRACE_OP_INDEX", memory.local + self.COUNTERS + 4)
        for i in range(value["IRIS_CONTEXT_TRACE_NUM_BUFFERS"]):
            put("TRACE_BUFFERS", places[i], i)
        own = RANKS + 2 + value["IRIS_CONTEXT_TAIL_WORDS"]
        memory.context[own + value["IRIS_CONTEXT_OWN_TRACE"]] = \
            places[value["IRIS_CONTEXT_TRACE_NUM_BUFFERS"]] * on

    def clear(self, memory):
        ctypes.memset(memory.local + self.COUNTERS, 0, HEAP - self.COUNTERS)

    def wrong(self, memory, rank):
        """What is wrong with the records, or None."""
        data = memory.read()[RANKS]
        slots, ops = struct.unpack_from("<II", data, self.COUNTERS)
        if slots != ops or slots > self.EVENTS:
            return f"{slots} places and {ops} numbers were taken"
        used = min(slots, self.limit)
        wide = [i in (8, 9, 10) or i > 12 for i in range(self.COLUMNS)]
        at = [self.AT + 8 * self.EVENTS * i for i in range(self.COLUMNS)]
        at[14] = at[13] + -(-8 * self.limit // 256) * 256
        column = [struct.unpack_from(f"<{used}{'Q' if wide[i] else 'i'}", data,
                                     at[i]) for i in range(self.COLUMNS)]
        for i in range(13):
            behind = at[i] + used * (8 if wide[i] else 4)
            if any(data[behind:at[i] + 8 * self.EVENTS]):
                return f"column {i} has more than {used} records"
        return self.wrong_events(column, used, rank) or \
            (self.wrong_lanes(memory, column, used, rank) if self.size else None)

    def wrong_events(self, column, used, rank):
        wanted = {}
        for name, count in self.events.items():
            wanted[Packed.values_of["IRIS_OP_" + name]] = \
                count if isinstance(count, range) else (min(count, used),)
        found = {event: column[0].count(event) for event in set(column[0])}
        if any(found.get(event, 0) not in wanted.get(event, (0,))
               for event in {*found, *wanted}):
            return f"events {found}, not {wanted}"
        if set(column[4]) - {rank} or sorted(column[11]) != list(range(used)):
            return f"ranks {set(column[4])}, numbers {sorted(column[11])}"
        if any(not 0 < begin <= end for begin, end in
               zip(column[8], column[10])):
            return "an event ends before it begins"
        if set(column[1]) - {0} or set(column[5]) - set(range(-1, RANKS)):
            return f"workgroups {set(column[1])}, peers {set(column[5])}"
        if any(what & 0xfff != event for what, event in
               zip(column[14], column[0])):
            return "our own column has other events"
        return None

    def wrong_lanes(self, memory, column, used, rank):
        first = memory.heaps[rank] + self.case.at[0]
        places = [first + self.size * lane for lane in range(LANES)]
        if set(column[9]) - set(places) or len(set(column[9])) != used:
            return "events at other addresses than the lanes' elements"
        if set(column[5]) - {1 - rank} or set(column[12]) - {self.size}:
            return f"peers {set(column[5])}, bytes {set(column[12])}"
        there = memory.heaps[1 - rank] - memory.heaps[rank]
        if self.sums and any(
                ctypes.c_uint64.from_address(place + there).value != value
                for place, value in zip(column[9], column[13])):
            return "values that are not the elements'"
        return None


def traced():
    """A case of each of the library's kernels that wait or signal, and of a few
    operations. Of iris_k_ccl_unordered there is none: it then needs either
    scratch memory, which the emulator's wavefronts share, or more than 128
    registers, of which it takes those beyond for halves of others where an
    instruction is of 16 bits."""
    # A collective records those of its waits that do not end at first look:
    # it waits for two members, when it begins and when it ends.
    meets = {"WAIT": range(4 + 1)}
    wanted = {"iris_k_barrier": {"BARRIER": 1, "STORE": 2, "WAIT": 2},
              "iris_k_ccl_reduce": meets, "iris_k_ccl_move": meets,
              "iris_k_ccl_matrix": meets, "iris_k_ccl_packet": {},
              "iris_k_signal": {"STORE": 1}, "iris_k_wait": {"WAIT": 1},
              "iris_k_signal_add": {"ATOMIC_ADD": 1}}
    made = [case for make in (cases.library_barrier, cases.library_signal,
                              cases.library_signal_add, cases.library_wait,
                              reductions, moves, packets) for case in make()]
    for case in made:
        if case.kernel in wanted:
            yield Traced(case, wanted.pop(case.kernel)).case
    for op, event in (("store", "STORE"), ("signaladd", "ATOMIC_ADD")):
        for limit in (Traced.EVENTS, 16, LANES):
            yield Traced(cases.one_lane("", op, "u64"), {event: LANES}, 8,
                         op == "signaladd", limit).case
    yield Traced(cases.atomic("", "add", "f32", 0, 2),
                 {"ATOMIC_ADD": LANES}).case


# Requests to a rank of another node --------------------------------------------

class Ring(Case):
    """Rank 1's heap is not mapped: a lane leaves requests in the ring (ring.h), and
    this is their rank's proxy, which carries one out at every third access. Says
    what is wrong with a request, with the ring, and with all memory."""

    LANES, SLOTS, DATA = 70, 128, 32768
    HEAD, SEEN, REQUESTS = 0, 128, 144  # of struct iris_dev_ring
    SLOT = 128 + DATA  # the same of struct iris_dev_requests and its slots

    def __init__(self):
        super().__init__("requests to other nodes", "emu_ring", peer=1,
                         count=self.LANES, block=64)
        self.far, self.expect = True, self.ended

    @staticmethod
    def word(at, value=None):
        word = ctypes.c_uint64.from_address(at)
        if value is not None:
            word.value = value & (1 << 64) - 1
        return word.value

    def arguments(self, memory, rank):
        import emulator
        self.memory, self.before = memory, memory.read()
        self.ring = (ctypes.c_uint64 * 32)()
        self.host = (ctypes.c_char * (128 + self.SLOTS * self.SLOT))()
        self.at = ctypes.addressof(self.host)
        self.ring[self.REQUESTS // 8] = self.at
        memory.context[:] = [0, RANKS, memory.heaps[0], 0] + [0] * (
            TAIL_WORDS + OWN_WORDS)
        memory.context[-OWN_WORDS + Packed.values_of["IRIS_CONTEXT_OWN_RING"]] = \
            ctypes.addressof(self.ring)
        self.next = self.tail = self.steps = 0
        self.trouble, self.answered, self.fenced = None, {}, False
        emulator.PROXY = self.step
        v = self.values
        return cases.ARGUMENTS.pack(
            self.context(memory), memory.heaps[0] + HEAP_AT,
            memory.heaps[0] + MORE_AT, memory.local + LOCAL_AT, 0, v["count"],
            0, 1, 0, 0, 0, 0, 0)

    def step(self):
        self.steps += 1
        if self.steps % 3 == 0:
            slot = self.at + 128 + self.next % self.SLOTS * self.SLOT
            commit = self.word(slot + 24)
            if commit & 1 == ~(self.next // self.SLOTS) & 1:
                self.carry_out(slot, commit)
                self.next += 1
        while self.tail < self.next and self.is_done(self.tail):
            self.tail += 1
        self.word(self.at, self.tail)
        # All are acknowledged at once, so that the kernel's release needs its fence.
        self.word(self.at + 8, self.next if self.fenced else 0)

    def is_done(self, ticket):
        left = self.word(self.at + 128 + ticket % self.SLOTS * self.SLOT + 32)
        return not self.answered.get(ticket) or left == ticket + 1

    def carry_out(self, slot, commit):
        op, kind = commit >> 8 & 0xff, commit >> 16 & 0xff
        size, rank = commit >> 24 & 0xffffff, commit >> 48
        offset, expected, value = (self.word(slot + 8 * i) for i in range(3))
        name = next((name.removeprefix("IRIS_OP_")
                     for name, value_of in Packed.values_of.items()
                     if name.startswith("IRIS_OP_") and value_of == op), "")
        answers = name in ("GET", "ATOMIC_ADD", "ATOMIC_CAS")
        flags = commit & 6
        wanted = (2 if answers else 0) | (4 if name in ("STORE", "FENCE") else 0)
        if not name or rank != (0 if name == "FENCE" else 1) or offset + size > HEAP \
                or flags != wanted:
            self.trouble = self.trouble or (
                f"request {self.next}: {name} {op} for rank {rank}, {size} bytes at "
                f"{offset:#x}, flags {flags}")
            return
        place, data = self.memory.heaps[1] + offset, slot + 128
        if name == "PUT":
            source = value.to_bytes(8, "little")[:size] if size <= 8 else \
                ctypes.string_at(data, size)
            ctypes.memmove(place, source, size)
        elif name == "GET":
            if size <= 8:
                self.word(slot + 72, int.from_bytes(
                    ctypes.string_at(place, size), "little"))
            else:
                ctypes.memmove(data, place, size)
        elif name != "FENCE":
            old = self.word(place)
            if size != 8 or kind != Packed.values_of["IRIS_D_KIND_u64"]:
                self.trouble = f"request {self.next}: {size} bytes of kind {kind}"
            self.word(slot + 72, old)
            new = {"STORE": value, "ATOMIC_ADD": old + value,
                   "ATOMIC_CAS": value if old == expected else old}[name]
            self.word(place, new)
        self.answered[self.next] = answers
        self.fenced = self.fenced or name == "FENCE"
        if answers:
            self.word(slot + 64, self.next << 2 | 1)

    def ended(self, memory, rank):
        import emulator
        emulator.PROXY = None
        n, mask = self.LANES, (1 << 64) - 1
        heap, local = (bytearray(self.before[i]) for i in (1, RANKS))
        v = struct.unpack_from(f"<{n}Q", local, LOCAL_AT + 24 * n)
        struct.pack_into(f"<{n}Q", heap, HEAP_AT, *(3 * x & mask for x in v))
        struct.pack_into(f"<{n}H", heap, MORE_AT, *(x & 0xffff for x in v))
        struct.pack_into(f"<{2 * n}Q", heap, MORE_AT + 8 * n, *(x ^ 5 for x in v),
                         *range(n))
        struct.pack_into(f"<{3 * n}Q", local, LOCAL_AT, *v,
                         *((x + 7) & mask for x in v), *(3 * x & mask for x in v))
        heap[HEAP_AT + 16 * n:HEAP_AT + 16 * n + 100] = \
            local[LOCAL_AT + 24 * n:LOCAL_AT + 24 * n + 100]
        local[LOCAL_AT + 40 * n:LOCAL_AT + 40 * n + 300] = \
            self.before[1][MORE_AT + 32 * n:MORE_AT + 32 * n + 300]
        head, tail = self.ring[0], self.tail
        if self.trouble or (head, tail) != (self.next, self.next) or \
                head != 7 * n + 3 or self.ring[self.SEEN // 8] > tail:
            return self.trouble or f"{head} requests, {self.next} carried out, " \
                f"{tail} ended, {self.ring[self.SEEN // 8]} seen"
        for name, is_so, wanted in zip(
                ("this rank's heap", "the far heap", "own memory"), memory.read(),
                (self.before[0], bytes(heap), bytes(local))):
            if is_so != wanted:
                at = next(i for i in range(HEAP) if is_so[i] != wanted[i])
                return f"{name} at {at:#x}: {is_so[at:at + 8].hex()}, not " \
                    f"{wanted[at:at + 8].hex()}"
        return None


# Ranks of other nodes are emulated by a Ring only.
OF_NODES = {"iris_k_ccl_far", "iris_k_ccl_far_pairs", "iris_k_ccl_levels",
            "iris_k_quiet", "iris_k_update"}


def every(kernels):
    """All cases. A kernel that none runs is an error, so that none is
    forgotten."""
    values = Packed.values_of
    if (values["IRIS_CONTEXT_TAIL_WORDS"], values["IRIS_CONTEXT_OWN_WORDS"]) \
            != (TAIL_WORDS, OWN_WORDS):
        raise RuntimeError("ranks.py makes another device context than layout.h")
    made = [*cases.cases(), *fills(), *rows(), *random_numbers(), *products(),
            *transfers(), *chunks(), *reductions(), *moves(), *packets(),
            *near_reductions(), *near_packets(), *messages(),
            *of_workgroups(), *traced(), *(Ring() for _ in range(RANKS))]
    run = {case.kernel for case in made}
    for missed, what in ((set(kernels) - run - OF_NODES, "no case runs"),
                         (run - set(kernels), "there is no")):
        if missed:
            raise RuntimeError(f"{what} {', '.join(sorted(missed))}")
    return made
