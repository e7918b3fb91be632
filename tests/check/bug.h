/* SPDX-License-Identifier: MIT
 *
 * A planted bug and its correct twin are one piece of code: `wrong` tells them
 * apart. The code notes the lines that a report must name.
 */
#ifndef IRIS_TESTS_CHECK_BUG_H
#define IRIS_TESTS_CHECK_BUG_H

#include <iris/device.h>
#include <iris/device/wg_ccl.h>
#include <iris/iris.h>

#include <stdatomic.h>

#define SYS IRIS_SCOPE_SYSTEM
#define AGENT IRIS_SCOPE_AGENT
#define RLX IRIS_RELAXED
#define ACQ IRIS_ACQUIRE
#define REL IRIS_RELEASE

struct bug_args {
    const int64_t *context;
    int bug; /* index in the table */
    int wrong;
    int step;      /* which of a host's kernels */
    int32_t *data; /* 256 elements of each rank's heap */
    uint64_t *flags;
    struct iris_dev_group *all, *alone;
    iris_ccl_device_t ccl;
};

struct bug {
    const char *name;
    void (*kernel)(const struct bug_args *a, iris_wg_t wg, iris_dev_t d,
                   int wrong, int32_t *x, uint64_t *f);
    int (*host)(iris_t *iris, const struct bug_args *a, int32_t *x);
    const char *missing; /* what the report says; NULL: one of several */
    unsigned grid;
    int ranks;          /* at least */
    const char *advice; /* a part of it; NULL: any */
};

/* The lines of the two accesses, and of the line to change. 0: not noted. Each is
 * one line, with the macros around it: compilers number the first or the last line
 * of a longer one. */
static _Atomic int bug_lines[3];

/* Code that differs in each line: compilers make one call of equal calls at the
 * ends of branches, which then has the line of one of them, or none. */
#define LINE_TEXT(line) #line
#define LINE_ASM(line) __asm__ volatile("# line " LINE_TEXT(line))
#define NOTED(i, access)                       \
    __extension__({                            \
        atomic_store(&bug_lines[i], __LINE__); \
        (void)(access);                        \
        LINE_ASM(__LINE__);                    \
    })
#define ONE(access) NOTED(0, access)
#define OTHER(access) NOTED(1, access)
#define CHANGE(access) NOTED(2, access)
#define CHANGE_BELOW atomic_store(&bug_lines[2], __LINE__ + 1)

/* The same of a host call, which returns a status. */
#define NOTED_OK(i, call)                      \
    CHECK_OK(__extension__({                   \
        iris_status_t noted_;                  \
        atomic_store(&bug_lines[i], __LINE__); \
        noted_ = (call);                       \
        LINE_ASM(__LINE__);                    \
        noted_;                                \
    }))
#define ONE_OK(call) NOTED_OK(0, call)
#define OTHER_OK(call) NOTED_OK(1, call)

/* Bugs: what the report misses, the grid, the ranks and perhaps the advice
 * follow the name, as in struct bug. The linker lists them. */
#define BUG_ENTRY(id, kernel_, host_, ...)                           \
    static const struct bug bug_##id = {                             \
        .name = #id, .kernel = kernel_, .host = host_, __VA_ARGS__}; \
    static const struct bug *const entry_of_##id                     \
        __attribute__((used, section("iris_bugs"))) = &bug_##id
extern const struct bug *const __start_iris_bugs[];
extern const struct bug *const __stop_iris_bugs[];

/* A kernel's bug: every rank launches it once. `d` is the device, x and f are
 * zeroed data and flags. */
#define BUG_PART(name)                                              \
    static void name(IRIS_UNUSED const struct bug_args *a,          \
                     IRIS_UNUSED iris_wg_t wg, iris_dev_t d,        \
                     IRIS_UNUSED int wrong, IRIS_UNUSED int32_t *x, \
                     IRIS_UNUSED uint64_t *f)
#define BUG(name, ...)                        \
    BUG_PART(name);                           \
    BUG_ENTRY(name, name, NULL, __VA_ARGS__); \
    BUG_PART(name)

/* A host's bug: its calls, and kernels that it launches. */
#define HOST_PART(name)                                     \
    static int name(iris_t *iris, const struct bug_args *a, \
                    IRIS_UNUSED int32_t *x)
#define HOST_BUG(name, ...)                   \
    HOST_PART(name);                          \
    BUG_ENTRY(name, NULL, name, __VA_ARGS__); \
    HOST_PART(name)

/* Rank 0 stores to rank 1, which loads. */
static inline void produce(iris_dev_t d, int32_t *x)
{
    ONE(iris_store(d, x, 7, 1));
}

static inline void consume(iris_dev_t d, const int32_t *x)
{
    OTHER(iris_load(d, x, 1));
}

/* In a bug that only some runs show: rank 0 waits, in no order, until rank 1 is
 * done. */
static inline void be_late(iris_dev_t d, const uint64_t *done, int wrong)
{
    while (wrong && iris_atomic_load(d, done, 0, RLX, SYS) == 0) {
    }
}

static inline void wait_for(iris_dev_t d, const uint64_t *f, uint64_t value)
{
    iris_wait_until(d, f, IRIS_CMP_GE, value);
}

static inline void send(iris_dev_t d, int32_t *x, uint64_t *f)
{
    produce(d, x);
    iris_signal_set(d, f, 1, 1);
}

static inline void receive(iris_dev_t d, const int32_t *x, const uint64_t *f)
{
    wait_for(d, f, 1);
    consume(d, x);
}

#endif /* IRIS_TESTS_CHECK_BUG_H */
