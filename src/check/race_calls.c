/* SPDX-License-Identifier: MIT
 *
 * The functions that code compiled with -fsanitize=thread calls at each access,
 * in place of ThreadSanitizer's own library. They pass accesses to heaps, and
 * atomics that may order threads, to the race checker. `iriscc --check` links them into the program.
 */
#include "config.h"

#include "check/internal.h"

#include <iris/device/core/atomic.h>
#include <iris/device/watch/cpu.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#if !IRIS_TSAN /* otherwise ThreadSanitizer defines these, and watches Iris */
/* The compilers define the names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wmissing-declarations"
/* With any sanitizer, gcc knows these functions with other types; clang has no
 * such warning. */
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"

#define SITE() IRIS_D_CALLER()

/* The C library's own functions. */
void *__real_memset(void *to, int value, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);

static const struct iris_cpu_range nothing[2];
static const struct iris_cpu_range *checked = nothing;

static uintptr_t load_bound(const uintptr_t *bound)
{
    return atomic_load_explicit((const _Atomic uintptr_t *)bound,
                                memory_order_relaxed);
}

/* On a heap, or in memory on no heap that work on a stream accesses. */
static int is_checked(const volatile void *address)
{
    uintptr_t at = (uintptr_t)address;

    return (at < load_bound(&checked[0].high) &&
            at >= load_bound(&checked[0].low)) ||
           (at < load_bound(&checked[1].high) &&
            at >= load_bound(&checked[1].low));
}

void __tsan_init(void)
{
    checked = iris_cpu_checked();
    iris_i_race_interpose();
}

/* ---- Plain accesses ---- */

static void access_plain(const void *address, size_t bytes, int write,
                         const void *site)
{
    const struct iris_cpu_event event = {
        .op = write ? IRIS_OP_STORE : IRIS_OP_LOAD,
        .write = write,
        .address = address,
        .bytes = bytes,
        .sem = IRIS_RELAXED,
        .scope = IRIS_SCOPE_WG,
        .site = site,
    };

    iris_cpu_plain(&event);
}

/* Expands for 4 bytes to __tsan_read4(), __tsan_write4() and others. */
#define PLAIN(name, bytes, write)                        \
    void __tsan_##name(const void *address)              \
    {                                                    \
        if (is_checked(address)) {                       \
            access_plain(address, bytes, write, SITE()); \
        }                                                \
    }
static void order_volatile(const void *address, int write)
{
    struct iris_cpu_thread *thread = iris_cpu_thread();

    if (!atomic_load(&iris_i_race_has_threads)) {
        return;
    }
    if (write) {
        iris_cpu_order(IRIS_CPU_RELEASE, address, 0);
        return;
    }
    if (thread->reads != NULL && thread->reads != address) {
        iris_cpu_order(IRIS_CPU_ACQUIRE, thread->reads, 0);
    }
    thread->reads = address;
}

/* Threads may wait for each other with these. */
#define VOLATILE(name, bytes, write)                     \
    void __tsan_volatile_##name(const void *address)     \
    {                                                    \
        if (is_checked(address)) {                       \
            access_plain(address, bytes, write, SITE()); \
        }                                                \
        order_volatile(address, write);                  \
    }
#define PLAIN_OF(bytes)                     \
    PLAIN(read##bytes, bytes, 0)            \
    PLAIN(write##bytes, bytes, 1)           \
    PLAIN(unaligned_read##bytes, bytes, 0)  \
    PLAIN(unaligned_write##bytes, bytes, 1) \
    VOLATILE(read##bytes, bytes, 0)         \
    VOLATILE(write##bytes, bytes, 1)        \
    PLAIN(read_write##bytes, bytes, 1)      \
    PLAIN(unaligned_read_write##bytes, bytes, 1)
PLAIN_OF(1)
PLAIN_OF(2)
PLAIN_OF(4)
PLAIN_OF(8)
PLAIN_OF(16)
#undef PLAIN_OF
#undef VOLATILE
#undef PLAIN

static void access_range(const void *address, size_t bytes, int write,
                         const void *site)
{
    if (bytes != 0 && is_checked(address)) {
        access_plain(address, bytes, write, site);
    }
}

void __tsan_read_range(const void *address, size_t bytes)
{
    access_range(address, bytes, 0, SITE());
}

void __tsan_write_range(const void *address, size_t bytes)
{
    access_range(address, bytes, 1, SITE());
}

/* memset(), memcpy() and memmove() under the names that clang calls. The linker
 * redirects gcc's calls to these, too (--wrap). */
void *__tsan_memset(void *to, int value, size_t bytes)
{
    access_range(to, bytes, 1, SITE());
    return __real_memset(to, value, bytes);
}

static void access_both(void *to, const void *from, size_t bytes,
                        const void *site)
{
    access_range(from, bytes, 0, site);
    access_range(to, bytes, 1, site);
}

void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    access_both(to, from, bytes, SITE());
    return __real_memmove(to, from, bytes);
}

void *__tsan_memmove(void *to, const void *from, size_t bytes)
{
    access_both(to, from, bytes, SITE());
    return __real_memmove(to, from, bytes);
}

void *__wrap_memset(void *to, int value, size_t bytes)
    __attribute__((alias("__tsan_memset")));
void *__wrap_memcpy(void *to, const void *from, size_t bytes)
    __attribute__((alias("__tsan_memcpy")));
void *__wrap_memmove(void *to, const void *from, size_t bytes)
    __attribute__((alias("__tsan_memmove")));

void __tsan_func_entry(const void *site)
{
    (void)site;
}

void __tsan_func_exit(void)
{
}

void __tsan_vptr_update(void **at, void *value)
{
    (void)at, (void)value;
}

void __tsan_vptr_read(void **at)
{
    (void)at;
}

/* ---- The program's own atomics ---- */

static iris_sem_t find_sem(int order)
{
    switch (order) {
    case memory_order_relaxed:
        return IRIS_RELAXED;
    case memory_order_acquire:
    case memory_order_consume:
        return IRIS_ACQUIRE;
    case memory_order_release:
        return IRIS_RELEASE;
    default:
        return IRIS_ACQ_REL;
    }
}

static struct iris_cpu_event make_atomic(enum iris_op op, size_t bytes,
                                         int order, const void *site)
{
    return (struct iris_cpu_event){
        .op = op,
        .write = op != IRIS_OP_LOAD,
        .bytes = bytes,
        .sem = find_sem(order),
        .scope = IRIS_SCOPE_SYSTEM,
        .atomic = 1,
        .site = site,
    };
}

/* Atomics on no heap order threads. */
static int is_told(const volatile void *address)
{
    return is_checked(address) || atomic_load(&iris_i_race_has_threads);
}

static void tell_before(struct iris_cpu_event *event,
                        const volatile void *address, uint64_t value)
{
    event->address = (const void *)address;
    event->value = value;
    if (is_told(address)) {
        iris_cpu_plain(event);
    }
}

static void tell_after(struct iris_cpu_event *event, uint64_t seen)
{
    if (is_told(event->address)) {
        event->after = 1;
        event->seen = seen;
        iris_cpu_plain(event);
    }
}

/* The processor's order may be stronger than the program's. The program's order
 * is checked. Expands for 32 bits to __tsan_atomic32_fetch_add() and others. */
#define WORD(bits) uint##bits##_t
#define AT(bits) (volatile _Atomic WORD(bits) *)at
#define TELL(bits, op, operand, comparand, action)                          \
    struct iris_cpu_event event = make_atomic(op, bits / 8, order, SITE()); \
    WORD(bits) seen = 0;                                                    \
                                                                            \
    event.expected = comparand;                                             \
    tell_before(&event, (const volatile void *)at, operand);                \
    action;                                                                 \
    tell_after(&event, seen)
#define UPDATE(bits, name, op, update)                                       \
    WORD(bits)                                                               \
    __tsan_atomic##bits##_##name(volatile WORD(bits) * at, WORD(bits) value, \
                                 int order)                                  \
    {                                                                        \
        TELL(bits, op, value, 0, seen = update(AT(bits), value));            \
        return seen;                                                         \
    }
#define EXCHANGE_IF(bits, name)                                                \
    int __tsan_atomic##bits##_compare_exchange_##name(                         \
        volatile WORD(bits) * at, WORD(bits) * expected, WORD(bits) value,     \
        int order)                                                             \
    {                                                                          \
        int same;                                                              \
        TELL(bits, IRIS_OP_ATOMIC_CAS, value, *expected,                       \
             same = atomic_compare_exchange_strong(AT(bits), expected, value); \
             seen = *expected);                                                \
        return same;                                                           \
    }
#define ATOMICS_OF(bits)                                                       \
    WORD(bits)                                                                 \
    __tsan_atomic##bits##_load(const volatile WORD(bits) * at, int order)      \
    {                                                                          \
        TELL(bits, IRIS_OP_LOAD, 0, 0,                                         \
             seen = atomic_load((const volatile _Atomic WORD(bits) *)at));     \
        return seen;                                                           \
    }                                                                          \
    void __tsan_atomic##bits##_store(volatile WORD(bits) * at,                 \
                                     WORD(bits) value, int order)              \
    {                                                                          \
        TELL(bits, IRIS_OP_STORE, value, 0, atomic_store(AT(bits), value));    \
    }                                                                          \
    WORD(bits)                                                                 \
    __tsan_atomic##bits##_compare_exchange_val(volatile WORD(bits) * at,       \
                                               WORD(bits) expected,            \
                                               WORD(bits) value, int order)    \
    {                                                                          \
        TELL(bits, IRIS_OP_ATOMIC_CAS, value, expected,                        \
             (void)atomic_compare_exchange_strong(AT(bits), &expected, value); \
             seen = expected);                                                 \
        return seen;                                                           \
    }                                                                          \
    EXCHANGE_IF(bits, strong)                                                  \
    EXCHANGE_IF(bits, weak)                                                    \
    UPDATE(bits, exchange, IRIS_OP_ATOMIC_XCHG, atomic_exchange)               \
    UPDATE(bits, fetch_add, IRIS_OP_ATOMIC_ADD, atomic_fetch_add)              \
    UPDATE(bits, fetch_sub, IRIS_OP_ATOMIC_SUB, atomic_fetch_sub)              \
    UPDATE(bits, fetch_and, IRIS_OP_ATOMIC_AND, atomic_fetch_and)              \
    UPDATE(bits, fetch_or, IRIS_OP_ATOMIC_OR, atomic_fetch_or)                 \
    UPDATE(bits, fetch_xor, IRIS_OP_ATOMIC_XOR, atomic_fetch_xor)
ATOMICS_OF(8)
ATOMICS_OF(16)
ATOMICS_OF(32)
ATOMICS_OF(64)
#undef ATOMICS_OF
#undef EXCHANGE_IF
#undef UPDATE
#undef TELL
#undef AT
#undef WORD

void __tsan_atomic_thread_fence(int order)
{
    const struct iris_cpu_event event = {
        .op = IRIS_OP_FENCE,
        .sem = find_sem(order),
        .scope = IRIS_SCOPE_SYSTEM,
        .site = SITE(),
    };

    if (load_bound(&checked->high) != 0) {
        iris_cpu_plain(&event);
    }
    atomic_thread_fence(memory_order_seq_cst);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    atomic_signal_fence(memory_order_seq_cst);
}
#endif
