/* SPDX-License-Identifier: MIT
 *
 * What the test programs share: running a body on every rank, in whatever way
 * this run makes ranks, and checks that work on any rank.
 *
 * Include this first: it brings CMocka and what that needs.
 */
#ifndef IRIS_TESTS_HARNESS_H
#define IRIS_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <iris/iris.h>

/* A test, whose name is a sentence: static TEST(a_put_arrives) { ... }. It runs
 * in a process of its own, and counts as skipped if every harness_run() of it
 * was left out. The second kind has a setup and a teardown, or NULL. (By the
 * word `static` iriscc knows the host's functions, which GPU compilers need not
 * understand.) */
#define TEST(name) TEST_WITH(name, NULL, NULL)
/* clang-format off */
#define TEST_WITH(name, before, after)                                         \
    void name(void **state);                                                   \
    static const struct harness_case case_##name = {                           \
        __FILE__, __LINE__, #name, name, before, after};                       \
    static const struct harness_case *const entry_##name                       \
        __attribute__((used, section("iris_cases"))) = &case_##name;           \
    static void name(void **state)

/* A test whose body is a rank's, as harness_run() calls it: it has `iris` and
 * returns 0. It runs with each of these numbers of ranks; ALL_RANKS stands for
 * those of harness_run_all(). */
#define RANK_TEST(name, ...)                                                   \
    int on_rank_##name(iris_t *iris, void *arg);                               \
    static TEST(name)                                                          \
    {                                                                          \
        static const int ranks[] = {__VA_ARGS__, 0};                           \
        harness_run_each(ranks, on_rank_##name);                               \
    }                                                                          \
    static int on_rank_##name(iris_t *iris, void *arg)
#define ALL_RANKS (-1)

/* Ends a file of tests: TEST_GROUP(KIND, WORD...). A folder's files are one
 * program, whose main() is support/runner.c. The kinds:
 * unit    runs as one process
 * rank    a launcher may start its ranks, too
 * matrix  the same, with 1, 2, 4 and 8 ranks of every launcher
 * hip     needs the fake HIP runtime
 * scripts/test explains the words. The setup runs before each test; it may
 * return 77, having said why, to leave the test out. */
#define TEST_GROUP(...)                                                        \
    TEST_GROUP_WITH(harness_setup, harness_teardown, __VA_ARGS__)
#if defined(IRIS_I_IMAGE) /* a GPU's, without the host's functions */
#define TEST_GROUP_WITH(before, after, ...) struct iris_swallowed_semicolon
#else
#define TEST_GROUP_WITH(before, after, ...)                                    \
    static int TEST_FILE(__VA_ARGS__)                                          \
    {                                                                          \
        return harness_run_file(__FILE__, before, after);                      \
    }                                                                          \
    struct iris_swallowed_semicolon
#endif

/* The same for a file with more to do, which calls harness_run_file() itself:
 * `static int TEST_FILE(KIND) { ... }`. */
#define TEST_FILE(...)                                                         \
    run_this_file(void);                                                       \
    static const struct harness_file this_file = {__FILE__, #__VA_ARGS__,      \
                                                  run_this_file};              \
    static const struct harness_file *const this_entry                         \
        __attribute__((used, section("iris_tests"))) = &this_file;             \
    static int run_this_file(void)
/* clang-format on */
struct harness_case {
    const char *path;
    int line;
    const char *name;
    CMUnitTestFunction test;
    CMFixtureFunction before, after;
};
struct harness_file {
    const char *path;
    const char *kind; /* and words, with commas */
    int (*run)(void); /* 77: all are left out */
};
void harness_run_each(const int *ranks, iris_rank_fn body);

/* Runs the tests of the file `path`, or those that support/runner.c wants. */
int harness_run_file(const char *path, CMFixtureFunction setup,
                     CMFixtureFunction teardown);
#undef skip
#define skip() harness_skip(__FILE__, __LINE__)
void harness_skip(const char *file, int line);

/* Group setup and teardown of every test program: a temporary folder for
 * heap-bases files, a small heap, a deadline; what the environment says
 * already stays. */
int harness_setup(void **state);
int harness_teardown(void **state);

/* The setup of tests of the simulation on the CPU: it is used whatever else
 * there is. */
int harness_cpu_setup(void **state);

/* The setup of tests that need a GPU: they are left out where there is none. */
int harness_gpu_setup(void **state);

/* The folder harness_setup() made. */
const char *harness_folder(void);

/* What stderr got between the two calls: `text`, for the caller to free. */
struct harness_capture {
    int saved;
    int file;
    char *text;
};

void harness_capture(struct harness_capture *capture);
const char *harness_captured(struct harness_capture *capture);

/* Whether stderr, which is captured, has the text; and waiting until it has. 0:
 * it has not for 10 seconds. */
int harness_is_logged(const char *text);
int harness_await_logged(const char *text);

/* The whole of a file as text, for the caller to free; NULL if there is none. */
char *harness_read_file(const char *path);

/* A context by iris_init(NULL), or the test fails with its message. */
iris_t *harness_init(void);

/* In a rank's body: a context more of the same ranks, who agree on its key by
 * way of `iris`. Returns 0. */
int harness_open_again(iris_t *iris, const struct iris_config *config,
                       iris_t **context_p);

/* Zeros if it has none. */
struct iris_heap_stats harness_stats(const iris_t *iris);

/* Settings of ranks that are threads of the simulation on the CPU, silent, with
 * 16 MiB of heap; `check` is IRIS_CHECK. */
struct iris_config harness_sim_config(const char *check);

/* Runs fn(arg) in a child, whose limits are its own. It ends without ceremony:
 * a leak checker could do nothing there. */
void harness_in_child(int (*fn)(void *), void *arg);

/* Ranks of the launcher that started this program; 0 if none did. */
int harness_launched(void);

/* Runs body(iris, arg) on num_ranks ranks and fails the test, with the first
 * rank's message, unless all return 0. Ranks are threads, or processes with
 * IRIS_SPAWN=processes; under a launcher this process is one of its ranks, and
 * the call is left out (says so, and returns 0) if num_ranks is not their
 * number, and so it is if that is more than IRIS_TEST_MAX_RANKS. Returns 1 if
 * the body ran. */
int harness_run(int num_ranks, iris_rank_fn body, void *arg);

/* Whether that many ranks fit; if not, and all the test would run is left out,
 * that is why. For tests that make ranks themselves. */
int harness_fits(int num_ranks);

/* harness_run() with 1, 2, 4 and 8 ranks, and with the launcher's number, else
 * IRIS_TEST_MAX_RANKS, if that is between them. */
void harness_run_all(iris_rank_fn body, void *arg);

/* harness_run() in simulation, whatever the backend of this run is: ranks share
 * one GPU, if there is one. */
int harness_run_sim(int num_ranks, iris_rank_fn body, void *arg);

/* IRIS_TEST_LONG=1. */
int harness_is_long(void);

/* How many rounds a long loop has: `count` in a long run (IRIS_TEST_LONG=1),
 * else `sample`; of either the IRIS_TEST_SCALE-th part, at least 1, where ranks
 * are emulated. */
size_t harness_count(size_t count, size_t sample);

/* Whether the context's kernels run on a GPU: the host cannot touch the heap,
 * no access is checked, nobody observes. */
int harness_on_gpu(const iris_t *iris);

/* Whether ranks of this program would run on a GPU, as far as can be told
 * without touching one: a process that has cannot fork ranks. */
int harness_has_gpu(void);

/* In a rank's body, of what only the CPU does: returns 0 from it where kernels
 * run on a GPU, having said why. */
#define CPU_ONLY(iris, why)                         \
    do {                                            \
        if (harness_on_gpu(iris)) {                 \
            return harness_left_out(__func__, why); \
        }                                           \
    } while (0)
int harness_left_out(const char *body, const char *why);

/* Copies between host memory and any rank's heap on the default stream, and
 * waits: the host reads and writes heaps in no other way. An error of what was
 * on the stream before is returned here. */
iris_status_t harness_read(iris_t *iris, void *to, const void *from_heap,
                           size_t bytes);
iris_status_t harness_write(iris_t *iris, void *to_heap, const void *from,
                            size_t bytes);

/* Whether each of `bytes` bytes of a heap is `value`; says why not. */
int harness_holds(iris_t *iris, const void *from_heap, size_t bytes, int value);

/* Checks for rank bodies, where CMocka's own cannot be used (they belong to the
 * main thread): print what failed and return 1 from the body. */
int harness_failed(const char *file, int line, const char *what, long long seen,
                   long long expected);
#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition)) {                                              \
            return harness_failed(__FILE__, __LINE__, #condition, 0, 1); \
        }                                                                \
    } while (0)
#define CHECK_EQUAL(seen, expected)                                 \
    do {                                                            \
        long long seen_ = (long long)(seen);                        \
        long long expected_ = (long long)(expected);                \
        if (seen_ != expected_) {                                   \
            return harness_failed(__FILE__, __LINE__, #seen, seen_, \
                                  expected_);                       \
        }                                                           \
    } while (0)
/* The call returns IRIS_OK; else its message is printed. */
#define CHECK_OK(call) CHECK_STATUS(call, IRIS_OK)
#define CHECK_STATUS(call, expected)                                         \
    do {                                                                     \
        iris_status_t status_ = (call);                                      \
        if (status_ != (expected)) {                                         \
            return harness_failed_status(__FILE__, __LINE__, #call, status_, \
                                         expected);                          \
        }                                                                    \
    } while (0)
int harness_failed_status(const char *file, int line, const char *call,
                          iris_status_t seen, iris_status_t expected);

/* The thread's last message contains `text`. */
#define CHECK_MESSAGE(text)                                                 \
    do {                                                                    \
        if (!harness_message_has(text)) {                                   \
            return harness_failed(__FILE__, __LINE__, iris_last_error(), 0, \
                                  1);                                       \
        }                                                                   \
    } while (0)
int harness_message_has(const char *text);

/* The call gives `expected`, and its message has all that a user needs: the
 * rank of `iris`, `argument` (what was wrong) and `remedy` (what to do). */
#define CHECK_BAD(iris, call, expected, argument, remedy)                     \
    do {                                                                      \
        CHECK_STATUS(call, expected);                                         \
        if (harness_lacks(__FILE__, __LINE__, iris, argument, remedy) != 0) { \
            return 1;                                                         \
        }                                                                     \
    } while (0)
int harness_lacks(const char *file, int line, const iris_t *iris,
                  const char *argument, const char *remedy);

#endif /* IRIS_TESTS_HARNESS_H */
