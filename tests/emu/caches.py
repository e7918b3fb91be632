# SPDX-License-Identifier: MIT
"""A model of gfx942's memory, and all executions of a few lanes on it.

The model has the caches that LLVM's "User Guide for AMDGPU Backend" describes:

- A wavefront's accesses to different words complete in any order, unless it waits
  in between.
- Each workgroup has a cache, and each device has one behind it. At first they hold
  every word. A write leaves a cache at any time, and at buffer_wbl2 of the scope at
  the latest. A read may use any copy on its way that buffer_inv has not dropped.
- sc0 and sc1 say which caches an access passes by: that is its level.
"""
import collections

WORDS = 4
WORKGROUP, DEVICE, MEMORY = range(3)  # levels
ALL = (1 << 64) - 1

# An instruction. The kind is load, store, add, swap, writeback, invalidate, other,
# wait (for all accesses but the last `value`) or end (`value`: the registers).
Op = collections.namedtuple("Op", "kind value pc word mask level reads",
                            defaults=(0, 0, 0, ALL, MEMORY, False))

# Of a lane: the values that it has read, how many instructions it has issued since
# it had the last one, and its accesses under way: ((Op, result or None), ...). A value
# is (address of the instruction, value).
Lane = collections.namedtuple("Lane", "values next issued",
                              defaults=((), 0, ()))


def merged(old, new, mask):
    return old & ~mask | new & mask


class Memory:
    """Of each workgroup and of each device the copies of the words: (value, mask of
    the bits that were written here and have not left), or None."""

    def __init__(self, workgroups, devices, words):
        self.workgroups = list(map(list, workgroups))
        self.devices = list(map(list, devices))
        self.words = list(words)

    def key(self):
        return (tuple(map(tuple, self.workgroups)),
                tuple(map(tuple, self.devices)), tuple(self.words))

    def leave_workgroup(self, near, device, word):
        value, written = near[word]
        near[word] = (value, 0)
        self.write_device(device, word, value, written)

    def leave_device(self, device, word):
        value, written = device[word]
        device[word] = (value, 0)
        self.words[word] = merged(self.words[word], value, written)

    def write_device(self, device, word, value, mask):
        old, written = device[word] or (self.words[word], 0)
        device[word] = (merged(old, value, mask), written | mask)

    def pass_by(self, near, device, word, level):
        """An access at this level leaves no copy in the caches before it."""
        if level >= DEVICE and near[word]:
            if near[word][1]:
                self.leave_workgroup(near, device, word)
            near[word] = None
        if level == MEMORY and device[word]:
            if device[word][1]:
                self.leave_device(device, word)
            device[word] = None

    def write(self, near, device, op, value):
        self.pass_by(near, device, op.word, op.level)
        if op.level == MEMORY:
            self.words[op.word] = merged(self.words[op.word], value, op.mask)
        elif op.level == DEVICE:
            self.write_device(device, op.word, value, op.mask)
        else:
            old, written = near[op.word] or device[op.word] or \
                (self.words[op.word], 0)
            written = written if near[op.word] else 0
            near[op.word] = (merged(old, value, op.mask), written | op.mask)

    def read(self, near, device, op, depth):
        """The value, of the caches from this level on; None: not from here, or the
        same as from another level."""
        self.pass_by(near, device, op.word, op.level)
        caches = [near, device]
        for level in range(op.level, depth):
            if caches[level][op.word]:
                if caches[level][op.word][1]:
                    return None  # what was written here is not passed by
                caches[level][op.word] = None
        if depth < MEMORY and not caches[depth][op.word]:
            return None
        value = self.words[op.word] if depth == MEMORY else \
            caches[depth][op.word][0]
        for level in range(op.level, depth):
            caches[level][op.word] = (value, 0)
        return value & op.mask

    def write_back(self, near, device, level):
        for word in range(WORDS):
            if level >= DEVICE and near[word] and near[word][1]:
                self.leave_workgroup(near, device, word)
            if level == MEMORY and device[word] and device[word][1]:
                self.leave_device(device, word)

    def invalidate(self, near, device, level):
        for cache in [near, device][:level]:
            for word in range(WORDS):
                if cache[word] and not cache[word][1]:
                    cache[word] = None


class Executions:
    """All executions of programs: one for each lane, on the device devices[lane].
    program(values) is what the lane does after it has read these values, until it
    needs another one, as a list of Op. Instructions of the kind `fault` do nothing; a
    wait without effect still waits for what is read. With the fault "scope" cache
    operations are of device scope at most."""

    def __init__(self, programs, devices, fault=None):
        self.programs = programs
        self.fault = fault
        self.devices = devices
        self.ends = set()  # the registers of all lanes

    def explore(self):
        copies = [[(0, 0)] * WORDS] * len(self.programs)
        ranks = [[(0, 0)] * WORDS] * (max(self.devices) + 1)
        memory = Memory(copies, ranks, [0] * WORDS)
        lanes = [self.issue(i, Lane()) for i in range(len(self.programs))]
        todo = [(tuple(lanes), memory.key())]
        seen = set(todo)
        while todo:
            lanes, key = todo.pop()
            for state in self.steps(lanes, key):
                if state not in seen:
                    seen.add(state)
                    todo.append(state)
            ends = [self.op(i, lane) for i, lane in enumerate(lanes)]
            if all(op.kind == "end" for op in ends):
                self.ends.add(tuple(op.value for op in ends))
        return len(seen)

    def op(self, i, lane):
        return self.programs[i](lane.values)[lane.next]

    def issue(self, i, lane):
        """The lane's next instructions, as far as nothing else matters to them."""
        while True:
            op = self.op(i, lane)
            if op.kind == "wait":
                done = max(len(lane.issued) - op.value, 0)
                if any(result is None and (op.reads or self.fault != "wait")
                       for op, result in lane.issued[:done]):
                    return lane
                lane = self.wait(i, lane, done)
            elif op.kind in ("end", "invalidate"):
                return lane
            else:
                entry = (op, 0 if op.kind == "other" else None)
                lane = Lane(lane.values, lane.next + 1, lane.issued + (entry,))

    def wait(self, i, lane, done):
        """The first accesses are done: their values are known."""
        reads = [(op, result) for op, result in lane.issued[:done] if op.reads]
        issued = (*(entry for entry in lane.issued[:done] if entry[1] is None),
                  *lane.issued[done:])
        if not reads:
            return Lane(lane.values, lane.next + 1, issued)
        last, value = reads[-1]
        # The same poll with the same value as before changes nothing.
        if len(reads) == 1 and lane.values[-1:] == ((last.pc, value),):
            return Lane(lane.values, 0, issued)
        return Lane(lane.values + tuple((op.pc, value) for op, value in reads),
                    0, issued)

    def steps(self, lanes, key):
        """The states that one step leads to."""
        for i, lane in enumerate(lanes):
            for at, (op, result) in enumerate(lane.issued):
                if result is None and self.may_complete(lane.issued[:at], op):
                    for value, memory in self.complete(i, op, key):
                        issued = (*lane.issued[:at], (op, value),
                                  *lane.issued[at + 1:])
                        yield self.state(lanes, i, lane._replace(issued=issued),
                                         memory)
            op = self.op(i, lane)
            if op.kind == "invalidate":
                memory = Memory(*key)
                memory.invalidate(*self.caches(memory, i), self.scope(op))
                yield self.state(lanes, i, lane._replace(next=lane.next + 1),
                                 memory)
        yield from self.leave(lanes, key)

    def leave(self, lanes, key):
        """Any write may leave a cache."""
        workgroups, devices, _ = key
        for i, cache in enumerate(workgroups):
            for word in range(WORDS):
                if cache[word] and cache[word][1]:
                    memory = Memory(*key)
                    memory.leave_workgroup(*self.caches(memory, i), word)
                    yield lanes, memory.key()
        for i, cache in enumerate(devices):
            for word in range(WORDS):
                if cache[word] and cache[word][1]:
                    memory = Memory(*key)
                    memory.leave_device(memory.devices[i], word)
                    yield lanes, memory.key()

    def state(self, lanes, i, lane, memory):
        return (*lanes[:i], self.issue(i, lane), *lanes[i + 1:]), memory.key()

    def caches(self, memory, i):
        return memory.workgroups[i], memory.devices[self.devices[i]]

    def scope(self, op):
        if op.kind == self.fault:
            return WORKGROUP
        return min(op.level, DEVICE) if self.fault == "scope" else op.level

    def may_complete(self, before, op):
        """Whether what the lane issued before does not hold it back."""
        if op.kind == "writeback":
            return all(result is not None or other.kind == "load"
                       for other, result in before)
        return all(result is not None or other.kind == "writeback" or
                   other.word != op.word for other, result in before)

    def complete(self, i, op, key):
        """Each (result, memory) of an access."""
        if op.kind == "load":
            for depth in range(op.level, MEMORY + 1):
                memory = Memory(*key)
                value = memory.read(*self.caches(memory, i), op, depth)
                if value is not None:
                    yield value, memory
            return
        memory = Memory(*key)
        caches = self.caches(memory, i)
        old = 0
        if op.kind == "writeback":
            memory.write_back(*caches, self.scope(op))
        elif op.kind == "store":
            memory.write(*caches, op, op.value)
        else:  # an update, where its scope's writes meet
            memory.pass_by(*caches, op.word, op.level)
            cached = caches[1][op.word] if op.level == DEVICE else None
            old = (cached[0] if cached else memory.words[op.word]) & op.mask
            memory.write(*caches, op, op.value if op.kind == "swap"
                         else old + op.value & op.mask)
        yield old, memory
