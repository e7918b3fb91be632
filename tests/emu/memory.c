/* SPDX-License-Identifier: MIT
 *
 * What scripts/amd-emu needs in C: the accesses to memory that the emulator
 * does not make in one piece, an instruction, and the few symbols of libiris that the CPU
 * versions of kernels want.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <iris/device/watch/cpu.h>
#include <iris/device/layout.h>

/* ---- The emulator's side ------------------------------------------------- */

enum { LANES = 64 };

/* One GLOBAL instruction, decoded by emulator.py. */
struct emu_access {
    uint32_t exec;  /* where registers are: exec mask, program counter */
    uint32_t pc;    /* both are indices of scalar registers */
    uint32_t op;    /* enum emu_op */
    uint32_t bytes; /* of the word: 1, 2, 4 or 8 */
    uint32_t addr;  /* vector registers */
    uint32_t data;
    uint32_t result;
    uint32_t base; /* scalar register; NO_BASE: none */
    uint32_t returns;
    uint32_t shift; /* a store takes the data's bits from here on */
    int32_t offset;
};

#define NO_BASE 127u

enum emu_op {
    STORE,
    SWAP,
    CMPSWAP,
    ADD,
    SUB,
    SMIN,
    UMIN,
    SMAX,
    UMAX,
    AND,
    OR,
    XOR,
    NUM_OPS
};

static uint64_t pair(const uint32_t *registers, uint32_t at, uint32_t stride)
{
    return registers[at] | (uint64_t)registers[at + stride] << 32;
}

static uint64_t combined(const struct emu_access *access, uint64_t a,
                         uint64_t b)
{
    int64_t as = access->bytes == 4 ? (int32_t)a : (int64_t)a;
    int64_t bs = access->bytes == 4 ? (int32_t)b : (int64_t)b;

    switch (access->op) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case SMIN:
        return bs < as ? b : a;
    case SMAX:
        return bs > as ? b : a;
    case UMIN:
        return b < a ? b : a;
    case UMAX:
        return b > a ? b : a;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    default:
        return b;
    }
}

/* Returns what the word was. */
static uint64_t update(const struct emu_access *access, uint64_t place,
                       uint64_t data, uint64_t expected)
{
    for (;;) {
        uint64_t seen, next;
        int done;

        if (access->bytes == 4) {
            uint32_t word =
                __atomic_load_n((uint32_t *)place, __ATOMIC_SEQ_CST);

            seen = word;
            next = access->op != CMPSWAP ? combined(access, seen, data)
                   : seen == expected    ? data
                                         : seen;
            done = __atomic_compare_exchange_n(
                (uint32_t *)place, &word, (uint32_t)next, 0, __ATOMIC_SEQ_CST,
                __ATOMIC_SEQ_CST);
        } else {
            uint64_t word =
                __atomic_load_n((uint64_t *)place, __ATOMIC_SEQ_CST);

            seen = word;
            next = access->op != CMPSWAP ? combined(access, seen, data)
                   : seen == expected    ? data
                                         : seen;
            done =
                __atomic_compare_exchange_n((uint64_t *)place, &word, next, 0,
                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
        if (done) {
            return seen;
        }
    }
}

static void store(const struct emu_access *access, uint64_t place,
                  uint64_t data)
{
    if (access->bytes == 1) {
        __atomic_store_n((uint8_t *)place, (uint8_t)data, __ATOMIC_SEQ_CST);
    } else {
        __atomic_store_n((uint16_t *)place, (uint16_t)data, __ATOMIC_SEQ_CST);
    }
}

static void next_instruction(uint32_t *sgpr, uint32_t pc, uint32_t bytes)
{
    uint64_t next = pair(sgpr, pc, 1) + bytes;

    sgpr[pc] = (uint32_t)next;
    sgpr[pc + 1] = (uint32_t)(next >> 32);
}

/* Atomics, and stores of 1 and 2 bytes, for every lane that takes part. */
void emu_run(uint32_t *sgpr, uint32_t *vgpr, const struct emu_access *access)
{
    uint64_t exec = pair(sgpr, access->exec, 1);
    uint32_t wide = access->bytes == 8;

    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t *v = vgpr + lane;
        uint32_t data = access->data * LANES;
        uint32_t compare = data + LANES * (1 + wide);
        uint64_t place, value, old;

        if ((exec >> lane & 1) == 0) {
            continue;
        }
        place = access->base == NO_BASE
                    ? pair(v, access->addr * LANES, LANES)
                    : pair(sgpr, access->base, 1) + v[access->addr * LANES];
        place += (uint64_t)(int64_t)access->offset;
        value = wide ? pair(v, data, LANES) : v[data];
        if (access->op == STORE) {
            store(access, place, value >> access->shift);
            continue;
        }
        old = update(access, place, value,
                     access->op != CMPSWAP ? 0
                     : wide                ? pair(v, compare, LANES)
                                           : v[compare]);
        if (access->returns) {
            v[access->result * LANES] = (uint32_t)old;
            if (wide) {
                v[(access->result + 1) * LANES] = (uint32_t)(old >> 32);
            }
        }
    }
    next_instruction(sgpr, access->pc, 8);
}

/* Cache write-back and invalidation: there is no cache. */
void emu_skip(uint32_t *sgpr, uint32_t pc, uint32_t bytes)
{
    next_instruction(sgpr, pc, bytes);
}

/* Tells the other rank that this one waits; NULL: nobody wants to know. */
int *emu_asleep;
/* How often the launch may still sleep before it counts as one without an end. */
int emu_sleeps = INT_MAX;

/* s_sleep: other ranks may want this core. */
void emu_sleep(uint32_t *sgpr, uint32_t pc)
{
    const struct timespec moment = {0, 1000000};

    if (emu_sleeps-- == 0) {
        _exit(9);
    }
    if (emu_asleep != NULL) {
        __atomic_store_n(emu_asleep, 1, __ATOMIC_SEQ_CST);
    }
    (void)nanosleep(&moment, NULL);
    next_instruction(sgpr, pc, 4);
}

/* s_getpc_b64: where the next instruction is. */
void emu_getpc(uint32_t *sgpr, uint32_t pc, uint32_t result)
{
    next_instruction(sgpr, pc, 4);
    sgpr[result] = sgpr[pc];
    sgpr[result + 1] = sgpr[pc + 1];
}

/* s_memrealtime: 100 MHz. */
void emu_clock(uint32_t *sgpr, uint32_t pc, uint32_t result)
{
    struct timespec now;
    uint64_t ticks;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    ticks = (uint64_t)now.tv_sec * 100000000 + (uint64_t)now.tv_nsec / 10;
    sgpr[result] = (uint32_t)ticks;
    sgpr[result + 1] = (uint32_t)(ticks >> 32);
    next_instruction(sgpr, pc, 8);
}

/* A scalar or vector register, or an integer constant; no literal. */
static uint32_t source(const uint32_t *sgpr, const uint32_t *v, uint32_t from)
{
    return from >= 256   ? v[(from - 256) * LANES]
           : from >= 193 ? 192 - from
           : from >= 128 ? from - 128
                         : sgpr[from];
}

static int64_t low_24(uint32_t word)
{
    return (int32_t)(word << 8) >> 8;
}

/* v_mul_hi_i32_i24_e32: the high half of a product of signed 24 bits. */
void emu_mul_hi_i24(uint32_t *sgpr, uint32_t *vgpr, uint32_t exec, uint32_t pc,
                    uint32_t result, uint32_t one, uint32_t other)
{
    uint64_t active = pair(sgpr, exec, 1);

    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t *v = vgpr + lane;
        int64_t product =
            low_24(source(sgpr, v, one)) * low_24(source(sgpr, v, other));

        if ((active >> lane & 1) != 0) {
            v[result * LANES] = (uint32_t)((uint64_t)product >> 32);
        }
    }
    next_instruction(sgpr, pc, 4);
}

/* ---- The CPU's side: kernels that nobody watches or ends ----------------- */

struct iris_cpu_wg *iris_cpu_self(void)
{
    return NULL;
}

void iris_cpu_poll(struct iris_cpu_wg *cpu)
{
    (void)cpu;
    (void)sched_yield();
}

void iris_cpu_posted(struct iris_cpu_wg *cpu, enum iris_op op, size_t bytes)
{
    (void)cpu, (void)op, (void)bytes;
}

void iris_cpu_observe(struct iris_cpu_wg *cpu,
                      const struct iris_cpu_event *event)
{
    (void)cpu, (void)event;
}

void iris_cpu_mismatch(struct iris_cpu_wg *cpu,
                       const struct iris_dev_mismatch *mismatch);
void iris_cpu_mismatch(struct iris_cpu_wg *cpu,
                       const struct iris_dev_mismatch *mismatch)
{
    (void)cpu, (void)mismatch;
}

void iris_cpu_end(struct iris_cpu_wg *cpu, const char *why)
{
    (void)cpu, (void)why;
}
