# SPDX-License-Identifier: MIT
"""Runs every kernel of cases.h emulated and on the CPU and compares all memory,
bit for bit. scripts/amd-emu builds what this needs and starts it:
run.py LIBRARY OBJECT TRACED, which is the object of the same kernels compiled
with IRIS_TRACE. run.py LIBRARY runs the CPU's only, and those of device/kernels
only: whether each has cases that run. run.py --faults LIBRARY OBJECT... runs the
cases of each object's kernels, and says in a line what became of them. Those of
both ranks run twice, so that each rank once begins when the other one already waits
for it. With EMU_TRACED=1 the kernels record.
"""
import collections
import ctypes
import multiprocessing
import os
import queue
import signal
import sys
import time
import traceback

import library
import ranks

MESSAGES = 4  # differences shown of each group
FAULTS = sys.argv[1:2] == ["--faults"]
# One with a fault may not end: how often a kernel sleeps for 1 ms, and its seconds.
SLEEPS, SECONDS = 3000, 60


class Rank:
    """One process: runs its cases and keeps count."""

    def __init__(self, rank, shared_object, meet, shared, asleep):
        self.rank = rank
        self.meet = meet
        self.asleep, self.first = asleep, None
        self.sleeps = ctypes.c_int.in_dll(shared_object, "emu_sleeps")
        ctypes.c_void_p.in_dll(shared_object, "emu_asleep").value = \
            ctypes.addressof(asleep) + ctypes.sizeof(ctypes.c_int) * rank
        self.cpu = ranks.Kernels(shared_object)
        if len(sys.argv) > 2:
            import emulator
            self.gpu, self.traced = (emulator.Object(path)
                                     for path in (sys.argv[2:] * 2)[:2])
            emulator.Emulator(shared_object)
        else:
            self.gpu = self.traced = self.cpu
        self.alone = [ranks.Memory(ranks.files(), rank) for _ in range(2)]
        self.shared = [ranks.Memory(files, rank) for files in shared]
        self.ran = collections.Counter()
        self.same = collections.Counter()
        self.seconds = collections.Counter()

    def compare(self, memories):
        emulated, native = (memory.read() for memory in memories)
        for region in range(ranks.RANKS + 1):
            if emulated[region] == native[region]:
                continue
            at = next(i for i in range(ranks.HEAP)
                      if emulated[region][i] != native[region][i])
            where = "own memory" if region == ranks.RANKS \
                else f"heap of rank {region}"
            at &= ~7
            return (f"{where} at {at:#x}: emulated "
                    f"{emulated[region][at:at + 8].hex()}, CPU "
                    f"{native[region][at:at + 8].hex()}")
        return None

    def set_up(self, case, memory, images):
        """A case of both ranks: each writes its own heap."""
        if not case.both:
            memory.write(images)
            return
        self.meet.wait()
        self.asleep[self.rank] = 0
        ctypes.memmove(memory.heaps[self.rank], images[self.rank], ranks.HEAP)
        ctypes.memmove(memory.local, images[-1], ranks.HEAP)
        case.set_addresses(memory, self.rank, True)
        self.meet.wait()

    def launch(self, case, memory, kernels):
        """What is wrong, or None."""
        while kernels is not self.cpu and case.both and \
                self.first not in (None, self.rank) and \
                not self.asleep[self.first]:
            time.sleep(0.0005)
        if FAULTS:
            self.sleeps.value = SLEEPS
            signal.alarm(SECONDS)
        try:
            args = case.arguments(memory, self.rank)
            kernels.launch(case.kernel_in(self.rank), case.grid, case.block,
                           args)
            self.asleep[self.rank] = 1
        except Exception as error:  # what the emulator cannot do
            if case.both:
                self.meet.abort()
                raise
            return f"does not run: {error}"
        if case.both:
            self.meet.wait()
            case.set_addresses(memory, self.rank, False)
            self.meet.wait()
        return None

    def run_emulated(self, case, memory, images):
        """The same as launch(), and looks at what is recorded."""
        self.set_up(case, memory, images)
        if not case.traced:
            return self.launch(case, memory, self.gpu)
        case.traced.clear(memory)
        case.traced.words(memory, 1)
        trouble = self.launch(case, memory, self.traced)
        case.traced.words(memory, 0)
        trouble = trouble or case.traced.wrong(memory, self.rank)
        case.traced.clear(memory)
        return trouble

    def run(self, case):
        """Both versions on the same memory; a case of both ranks starts in
        both at once."""
        emulated, native = self.shared if case.both else self.alone
        images = case.images(self.rank)
        start = time.monotonic()
        trouble = self.run_emulated(case, emulated, images)
        if case.expect:
            trouble = trouble or case.expect(emulated, self.rank)
        else:
            self.set_up(case, native, images)
            trouble = self.launch(case, native, self.cpu) or trouble
            if case.traced:
                case.traced.clear(native)
            trouble = trouble or self.compare((emulated, native))
        self.count(case, trouble, time.monotonic() - start)

    def run_native(self, case):
        """The CPU's version only: whether it does anything."""
        memory = self.shared[0] if case.both else self.alone[0]
        images = case.images(self.rank)
        start = time.monotonic()
        self.set_up(case, memory, images)
        before = memory.read()
        trouble = self.launch(case, memory, self.cpu)
        if not trouble and not case.idle and memory.read() == before:
            trouble = "changes nothing"
        self.count(case, trouble, time.monotonic() - start)

    def count(self, case, trouble, seconds):
        if FAULTS and trouble:
            print(f"DIFFERENT {case}: {trouble}", flush=True)
            os._exit(8)
        self.ran[case.group] += 1
        self.seconds[case.group] += seconds
        if trouble is None:
            self.same[case.group] += 1
        elif self.ran[case.group] - self.same[case.group] <= MESSAGES:
            print(f"DIFFERENT {case}: {trouble}", flush=True)


def chosen(cases, me):
    """The cases that the command line asks for."""
    if len(sys.argv) == 2:
        return [case for case in cases
                if case.kernel.startswith("iris_k_") and not case.traced]
    if FAULTS:
        traced = "EMU_TRACED" in os.environ
        return [case for case in cases if bool(case.traced) == traced and
                case.kernel + "_gpu" in me.gpu.symbols]
    return [case for case in cases if not case.far]


def work(rank, meet, shared, results, asleep):
    shared_object = ctypes.CDLL(sys.argv[1])
    library.Packed.use(shared_object)
    me = Rank(rank, shared_object, meet, shared, asleep)
    every = chosen(library.every(me.cpu.by_name), me)
    run = me.run_native if len(sys.argv) == 2 else me.run
    alone = [case for case in every if not case.both]
    both = [case for case in every if case.both]
    mine = alone[rank::ranks.RANKS]
    told = time.monotonic()
    for i, case in enumerate(mine):
        run(case)
        if time.monotonic() - told > 20:
            told = time.monotonic()
            print(f"rank {rank}: {i + 1} of {len(mine)} cases of one rank, "
                  f"at {case.group}", flush=True)
    for case in both:
        for me.first in range(ranks.RANKS) if FAULTS else (None,):
            run(case)
    results.put((rank, me.ran, me.same, me.seconds))


def process(rank, meet, shared, results, asleep):
    try:
        work(rank, meet, shared, results, asleep)
    except BaseException:
        traceback.print_exc()
        results.put((rank, None, None, None))


def collect(started, results):
    """The counts of each rank, until one is lost: the others, which may wait
    for it for ever, are then ended."""
    reports = {}
    ended = set()
    while len(reports) < len(started):
        try:
            rank, *counts = results.get(timeout=1)
        except queue.Empty:
            # Its report may have come between the two looks.
            lost = ended - reports.keys()
            ended = {rank for rank, one in enumerate(started)
                     if one.exitcode is not None}
        else:
            lost = set() if counts[0] is not None else {rank}
            if not lost:
                reports[rank] = counts
        for rank in lost:
            code = started[rank].exitcode  # -N: of signal N
            print(f"rank {rank} ended early: "
                  f"{'an error' if code is None else f'exit status {code}'}")
        if lost:
            for one in started:
                one.kill()
            break
    for one in started:
        one.join()
    return reports.values()


def start(context):
    """The ranks, and where their results come."""
    meet = context.Barrier(ranks.RANKS, timeout=300)
    results = context.Queue()
    shared = [ranks.files(), ranks.files()]
    asleep = context.RawArray(ctypes.c_int, ranks.RANKS)
    started = [context.Process(target=process,
                               args=(rank, meet, shared, results, asleep))
               for rank in range(ranks.RANKS)]
    for one in started:
        one.start()
    return started, results


def faults(context):
    """The first object's instructions are compiled once, for all."""
    import emulator
    library_path, *objects = sys.argv[2:]
    emulator.Object(objects[0]).compile()
    for path in objects:
        sys.argv = ["run.py", library_path, path]
        started, results = start(context)
        reports = collect(started, results)
        print(f"{path}: {'same' if len(reports) == ranks.RANKS else 'refused'}",
              flush=True)


def main():
    begin = time.monotonic()
    context = multiprocessing.get_context("fork")
    if FAULTS:
        faults(context)
        return
    started, results = start(context)
    ran, same, seconds = (collections.Counter() for _ in range(3))
    reports = collect(started, results)
    for its_ran, its_same, its_seconds in reports:
        ran += its_ran
        same += its_same
        seconds += its_seconds
    lost = len(started) - len(reports)
    print(f"\n{'operations':44} {'cases':>6} {'same':>6} {'different':>9}")
    for group in ran:
        print(f"{group:44} {ran[group]:6} {same[group]:6} "
              f"{ran[group] - same[group]:9}")
    different = ran.total() - same.total()
    print(f"{'all':44} {ran.total():6} {same.total():6} {different:9}")
    print(f"{time.monotonic() - begin:.0f} s")
    if lost:
        print(f"no report of {lost} ranks")
    sys.exit(1 if different or lost or not ran else 0)


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main()
