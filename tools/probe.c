/* SPDX-License-Identifier: MIT
 *
 * iris probe: tests on this machine the operations that kernels of two ranks
 * need. It tests every pair of ranks in turn, and prints one line per check.
 * This file is the host's half; probe_kernels.h has the kernels.
 *
 * A step is one check of two ranks or of all. Its members call run(). When all
 * of them have returned, they call verify(), if there is one. Both write
 * *found_p if all calls succeeded and a value was wrong, or for a note;
 * otherwise they leave it unchanged. All ranks meet before and after each step.
 * The findings are in memory that the ranks share; rank 0 prints them.
 */
#include "config.h"

#include "iris.h"
#include "probe_kernels.h"

#include <iris/iris.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum probe_verdict {
    PROBE_OK, /* from here on each is worse than the one before */
    PROBE_UNREACHABLE,
    PROBE_WRONG,
    PROBE_FAILED,
    PROBE_HUNG
};

/* The findings of one rank. */
struct probe_found {
    enum probe_verdict verdict;
    char text[512];
};

/* Options of --all whose text goes to the script, in its order. */
enum {
    PROBE_GPUS,
    PROBE_LIMIT,
    PROBE_BYTES,
    PROBE_JSON,
    PROBE_LOGS,
    PROBE_STACKS,
    PROBE_GIVEN
};
#define PROBE_MOST_ONLY 12

struct probe_options {
    int num_ranks;
    int64_t bytes;     /* size of a large copy */
    int64_t rounds;    /* rounds of flags and data */
    int64_t from;      /* the first step; those before have been made */
    const char *after; /* a library that begins before Iris; NULL: none */
    bool tabs;         /* lines for programs */
    /* --all: then the arguments of the script that makes all runs. */
    bool is_all;
    const char *given[PROBE_GIVEN];
    const char *only[PROBE_MOST_ONLY];
    int num_only;
};

/* In memory that the ranks share. */
struct probe_shared {
    int num_bad; /* rank 0's */
    struct probe_found found[PROBE_MOST_RANKS];
};

/* One rank. */
struct probe {
    iris_t *iris;
    iris_stream_t *stream; /* beside the context's own */
    struct probe_shared *shared;
    struct probe_options options;
    struct probe_args args; /* arguments of the current step */
    int first;              /* ranks of it; all of them: second is -1 */
    int second;
};

/* A check of two ranks, or of all. verify() may be NULL. */
struct probe_check {
    const char *name;
    enum {
        PROBE_OF_PAIRS,
        PROBE_OF_MORE, /* all ranks, where they are no pair */
        PROBE_OF_ALL   /* all ranks */
    } members;
    iris_status_t (*run)(struct probe *probe, struct probe_found *found_p);
    iris_status_t (*verify)(struct probe *probe, struct probe_found *found_p);
    const char *remedy;
};

/* This file has kernels, so it cannot have the library's clock. */
static int64_t read_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#define COUNT ((size_t)512) /* elements of a rank */

/* Where each element is a member's number, from 1, or the sum of all numbers.
 */
static void judge_values(const struct probe *probe, const char *what,
                         const float *seen, bool is_gathered,
                         struct probe_found *found_p)
{
    int num_ranks = probe->args.num_ranks;
    size_t count = is_gathered ? COUNT * (size_t)num_ranks : COUNT;

    for (size_t i = 0; i < count && found_p->verdict == PROBE_OK; i++) {
        int sum = num_ranks * (num_ranks + 1) / 2;
        int expected = is_gathered ? (int)(i / COUNT) + 1 : sum;

        if (seen[i] != (float)expected) {
            found_p->verdict = PROBE_WRONG;
            snprintf(found_p->text, sizeof found_p->text,
                     "%s: rank %d, element %zu of %zu: expected %d, found %g",
                     what, probe->args.rank, i, count, expected,
                     (double)seen[i]);
        }
    }
}

static iris_status_t check_out(struct probe *probe, const char *what,
                               bool is_gathered, struct probe_found *found_p)
{
    size_t bytes = COUNT * sizeof(float) *
                   (is_gathered ? (size_t)probe->args.num_ranks : 1);
    float *seen = malloc(bytes);
    iris_status_t status =
        seen == NULL
            ? IRIS_ERR_NO_MEMORY
            : iris_memcpy_sync(probe->iris, seen, probe->args.out, bytes);

    if (status == IRIS_OK) {
        judge_values(probe, what, seen, is_gathered, found_p);
    }
    free(seen);
    return status;
}

/* Every rank's number, for each rank. */
static iris_status_t fill_in(struct probe *probe)
{
    size_t count = COUNT * (size_t)probe->args.num_ranks;
    float *words = malloc(count * sizeof *words);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    for (size_t i = 0; i < count && words != NULL; i++) {
        words[i] = (float)(probe->args.rank + 1);
    }
    if (words != NULL) {
        status = iris_memcpy_sync(probe->iris, probe->args.in, words,
                                  count * sizeof *words);
    }
    free(words);
    return status;
}

/* ---- Collectives ---- */

static const struct {
    const char *name;
    iris_ccl_variant_t variant;
    char kind; /* all_reduce, all_Gather, reduce_Scatter, all_To_all, Messages,
                * Product */
} variants[] = {
    {"all_reduce one_shot", IRIS_CCL_ONE_SHOT, 'r'},
    {"all_reduce two_shot", IRIS_CCL_TWO_SHOT, 'r'},
    {"all_reduce one_shot_packet", IRIS_CCL_ONE_SHOT_PACKET, 'r'},
    {"all_reduce two_shot_packet", IRIS_CCL_TWO_SHOT_PACKET, 'r'},
    {"all_reduce atomic", IRIS_CCL_ATOMIC, 'r'},
    {"all_reduce spinlock", IRIS_CCL_SPINLOCK, 'r'},
    {"all_reduce ring", IRIS_CCL_RING, 'r'},
    {"all_gather push", IRIS_CCL_PUSH, 'g'},
    {"all_gather pull", IRIS_CCL_PULL, 'g'},
    {"all_gather packet", IRIS_CCL_PACKET, 'g'},
    {"reduce_scatter direct", IRIS_CCL_DIRECT, 's'},
    {"reduce_scatter packet", IRIS_CCL_PACKET, 's'},
    {"all_to_all push", IRIS_CCL_PUSH, 't'},
    {"all_to_all pull", IRIS_CCL_PULL, 't'},
    {"messages", IRIS_CCL_AUTO, 'm'},
    {"a fused product", IRIS_CCL_AUTO, 'p'},
};

/* A product that is the number of this rank everywhere, summed over the ranks. It
 * is made by the vendor's library, if that is there. */
static iris_status_t enqueue_product(struct probe *probe)
{
    iris_value_t value = {.kind = IRIS_VALUE_FLOAT, .as = {.f = {1.0 / 32, 0}}};
    iris_tensor_t a, b, out;
    iris_status_t status =
        iris_full(probe->iris, IRIS_SHAPE(32, 32), value, NULL, &b);

    if (status != IRIS_OK) {
        return status;
    }
    a = out = b;
    a.shape[0] = out.shape[0] = (int64_t)COUNT / 32;
    a.data = probe->args.in;
    out.data = probe->args.out;
    status = iris_matmul_all_reduce(probe->iris, &a, &b, &out, NULL);
    status = status ? status : iris_stream_synchronize(probe->iris, NULL);
    (void)iris_tensor_free(probe->iris, &b);
    return status;
}

/* Each member sends its elements to all, in messages. */
static iris_status_t enqueue_messages(struct probe *probe)
{
    size_t counts[PROBE_MOST_RANKS], places[PROBE_MOST_RANKS];

    for (size_t i = 0; i < (size_t)probe->args.num_ranks; i++) {
        counts[i] = COUNT;
        places[i] = i * COUNT;
    }
    return iris_all_gatherv(probe->iris, probe->args.in, probe->args.out,
                            counts, places, IRIS_DTYPE_F32, NULL);
}

static iris_status_t enqueue_variant(struct probe *probe, size_t row,
                                     iris_stream_t *stream)
{
    const struct probe_args *args = &probe->args;
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = stream;
    if (variants[row].kind == 'g') {
        options.all_gather = variants[row].variant;
        return iris_all_gather(probe->iris, args->in, args->out, COUNT,
                               IRIS_DTYPE_F32, &options);
    }
    if (variants[row].kind == 's') {
        options.reduce_scatter = variants[row].variant;
        return iris_reduce_scatter(probe->iris, args->in, args->out, COUNT,
                                   IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &options);
    }
    if (variants[row].kind == 't') {
        options.all_to_all = variants[row].variant;
        return iris_all_to_all(probe->iris, args->in, args->out, COUNT,
                               IRIS_DTYPE_F32, &options);
    }
    if (variants[row].kind == 'm') {
        return enqueue_messages(probe);
    }
    if (variants[row].kind == 'p') {
        return enqueue_product(probe);
    }
    options.all_reduce = variants[row].variant;
    return iris_all_reduce(probe->iris, args->in, args->out, COUNT,
                           IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &options);
}

/* ---- A graph, a tensor ---- */

static iris_status_t run_graph(struct probe *probe, struct probe_found *found_p)
{
    iris_graph_t *graph = NULL;
    iris_status_t status = iris_stream_synchronize(probe->iris, NULL), ended;

    status = status ? status : iris_capture_begin(probe->iris, probe->stream);
    if (status == IRIS_ERR_UNSUPPORTED) {
        snprintf(found_p->text, sizeof found_p->text,
                 "without graphs, which this backend does not have");
        return IRIS_OK;
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = enqueue_variant(probe, 1, probe->stream);
    ended = iris_capture_end(probe->iris, probe->stream, &graph);
    status = status ? status : ended;
    for (int i = 0; i < 2 && status == IRIS_OK; i++) {
        status = iris_graph_launch(probe->iris, graph, probe->stream);
    }
    status =
        status ? status : iris_stream_synchronize(probe->iris, probe->stream);
    iris_graph_destroy(probe->iris, graph);
    return status ? status : check_out(probe, "graph", false, found_p);
}

/* Its elements are those that check_out() expects of a reduction. */
static iris_status_t run_tensor(struct probe *probe,
                                struct probe_found *found_p)
{
    int n = probe->args.num_ranks;
    iris_value_t value = {.kind = IRIS_VALUE_FLOAT,
                          .as = {.f = {n * (n + 1) / 2, 0}}};
    iris_tensor_t tensor;
    iris_status_t status = iris_full(
        probe->iris, IRIS_SHAPE((int64_t)COUNT / 32, 32), value, NULL, &tensor);

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_memcpy_sync(probe->iris, probe->args.out, tensor.data,
                              COUNT * sizeof(float));
    (void)iris_tensor_free(probe->iris, &tensor);
    return status ? status : check_out(probe, "iris_full", false, found_p);
}

/* The library's collectives by each variant with barriers of the device between
 * them, messages, a fused product, a graph, a tensor. */
static iris_status_t run_library(struct probe *probe,
                                 struct probe_found *found_p)
{
    iris_status_t status = fill_in(probe);

    for (size_t row = 0;
         row < sizeof variants / sizeof variants[0] && status == IRIS_OK;
         row++) {
        status = enqueue_variant(probe, row, NULL);
        status = status ? status : iris_stream_synchronize(probe->iris, NULL);
        status = status ? status
                        : check_out(probe, variants[row].name,
                                    strchr("gtm", variants[row].kind) != NULL,
                                    found_p);
        status = status ? status : iris_device_barrier(probe->iris, NULL, NULL);
    }
    status = status ? status : run_graph(probe, found_p);
    return status ? status : run_tensor(probe, found_p);
}

#define LANES 64u
#define COPIED_BYTES sizeof((struct probe_board *)NULL)->in

/* With the step's arguments, and waits for it. */
static iris_status_t launch_probe(struct probe *probe,
                                  const struct iris_kernel *kernel,
                                  unsigned grid, unsigned block)
{
    iris_status_t status = iris_launch(probe->iris, kernel, grid, block,
                                       &probe->args, sizeof probe->args, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

/* The errors that the kernels of this rank found. */
static iris_status_t read_board(struct probe *probe,
                                struct probe_found *found_p)
{
    static const char *const whats[PROBE_NUM_WHATS] = {
        "?",
        "rank in the device context",
        "ranks in the device context",
        "address of a rank's heap",
        "first word of the peer's heap",
        "data",
        "a product of tiles",
        "an 8-bit float",
        "a fill and the copy behind it",
    };
    struct probe_notes notes;
    iris_status_t status = iris_memcpy_sync(
        probe->iris, &notes, &probe->args.board->notes, sizeof notes);

    if (status == IRIS_OK && notes.wrong != 0) {
        found_p->verdict = PROBE_WRONG;
        snprintf(found_p->text, sizeof found_p->text,
                 "rank %d found %" PRIu64 " wrong, %" PRIu64
                 " bytes; first: %s: expected 0x%" PRIx64 ", found 0x%" PRIx64,
                 probe->args.rank, notes.wrong, notes.wrong * 8,
                 whats[notes.what < PROBE_NUM_WHATS ? notes.what : 0],
                 notes.expected, notes.seen);
    }
    return status;
}

/* The same, and what it found. */
static iris_status_t launch_and_read(struct probe *probe,
                                     const struct iris_kernel *kernel,
                                     unsigned grid, unsigned block,
                                     struct probe_found *found_p)
{
    iris_status_t status = launch_probe(probe, kernel, grid, block);

    return status == IRIS_OK ? read_board(probe, found_p) : status;
}

static iris_status_t run_context(struct probe *probe,
                                 struct probe_found *found_p)
{
    return launch_and_read(probe, probe_context, 1, LANES, found_p);
}

static iris_status_t run_flag(struct probe *probe, struct probe_found *found_p)
{
    (void)found_p;
    return launch_probe(probe, probe_flag, 1, LANES);
}

static iris_status_t run_data(struct probe *probe, struct probe_found *found_p)
{
    return launch_and_read(probe, probe_data, PROBE_GRID, LANES, found_p);
}

static iris_status_t run_tiles(struct probe *probe, struct probe_found *found_p)
{
    iris_status_t status = fill_in(probe), ended;

    status = status ? status
                    : iris_ccl_device_create(probe->iris, NULL, 1, 0,
                                             &probe->args.handle);
    if (status != IRIS_OK) {
        return status;
    }
    status = launch_and_read(probe, probe_tiles, 1, 256, found_p);
    ended = iris_ccl_device_destroy(probe->iris, &probe->args.handle);
    status = status ? status : ended;
    return status ? status
                  : check_out(probe, "collectives of workgroups and tiles",
                              false, found_p);
}

/* ---- Atomics ---- */

static int num_members(const struct probe *probe)
{
    int count = 0;

    for (uint64_t left = probe->args.members; left != 0; left &= left - 1) {
        count++;
    }
    return count;
}

static iris_status_t run_atomics(struct probe *probe,
                                 struct probe_found *found_p)
{
#define KERNEL(name, c_type, arg) probe_atomic_##name,
    static const struct iris_kernel *const kernels[] = {IRIS_TYPES(KERNEL, )};
#undef KERNEL
    iris_status_t status = IRIS_OK;

    (void)found_p;
    probe->args.rounds =
        PROBE_UPDATES /
        (probe->second < 0 ? (unsigned)probe->args.num_ranks : 2);
    for (size_t i = 0;
         i < sizeof kernels / sizeof kernels[0] && status == IRIS_OK; i++) {
        status = launch_probe(probe, kernels[i], PROBE_GRID, LANES);
    }
    return status;
}

/* Compares a cell, as a number. */
static void check_cell(struct probe_found *found_p, const char *type,
                       const char *verb, int expected, float seen)
{
    if (seen != (float)expected && found_p->verdict == PROBE_OK) {
        found_p->verdict = PROBE_WRONG;
        snprintf(found_p->text, sizeof found_p->text,
                 "%s of %s: expected %d, found %g", verb, type, expected,
                 (double)seen);
    }
}

static iris_status_t verify_atomics(struct probe *probe,
                                    struct probe_found *found_p)
{
    struct probe_board *board = malloc(sizeof *board);
    int count = (int)probe->args.rounds * num_members(probe), largest = 0;
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    for (int rank = 0; rank < probe->args.num_ranks; rank++) {
        largest = probe->args.members >> rank & 1 ? rank + 1 : largest;
    }
    if (board != NULL) {
        status = iris_memcpy_sync(probe->iris, board, probe->args.board,
                                  sizeof *board);
    }
    if (status == IRIS_OK) {
#define CHECK(name, c_type, arg)                          \
    check_cell(found_p, #name, "add", count,              \
               probe_float_##name(board->name[0]));       \
    check_cell(found_p, #name, "compare-and-swap", count, \
               probe_float_##name(board->name[1]));       \
    check_cell(found_p, #name, "max", largest,            \
               probe_float_##name(board->name[2]));
        IRIS_TYPES(CHECK, )
#undef CHECK
    }
    free(board);
    return status;
}

/* ---- A copy beside a waiting kernel ---- */

/* Copies from host memory to this rank's, from there to the peer's, and sets
 * the peer's flag, all on the context's own stream. */
static iris_status_t send_copy(struct probe *probe, const uint64_t *words)
{
    struct probe_args *args = &probe->args;
    struct probe_board *board = args->board;
    iris_status_t status =
        iris_memcpy(probe->iris, board->out, words, COPIED_BYTES, NULL);

    if (status == IRIS_OK) {
        status = iris_put_on_stream(probe->iris, board->in, board->out,
                                    COPIED_BYTES, args->peer, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_signal_on_stream(probe->iris, &board->flag, 1, args->peer,
                                       NULL);
    }
    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

static void fill_words(uint64_t *words, int from, uint64_t salt)
{
    for (size_t i = 0; i < COPIED_BYTES / sizeof *words; i++) {
        words[i] = probe_pattern(from, salt, i);
    }
}

/* Each rank's kernel waits for the flag that the other's stream sets behind its
 * copies, so they have to pass a kernel that waits. */
static iris_status_t run_copy(struct probe *probe, struct probe_found *found_p)
{
    const struct probe_args *args = &probe->args;
    uint64_t *words = malloc(COPIED_BYTES);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    (void)found_p;
    if (words != NULL) {
        fill_words(words, args->rank, args->salt);
        status = iris_launch(probe->iris, probe_hold, 1, LANES, args,
                             sizeof *args, probe->stream);
    }
    status = status == IRIS_OK ? send_copy(probe, words) : status;
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(probe->iris, probe->stream);
    }
    free(words);
    return status;
}

static iris_status_t verify_copy(struct probe *probe,
                                 struct probe_found *found_p)
{
    const struct probe_args *args = &probe->args;
    uint64_t *words = malloc(2 * COPIED_BYTES);
    iris_status_t status = IRIS_ERR_NO_MEMORY;
    size_t count = COPIED_BYTES / sizeof *words, i = 0, wrong = 0;

    if (words != NULL) {
        fill_words(words, args->peer, args->salt);
        status = iris_memcpy_sync(probe->iris, words + count, args->board->in,
                                  COPIED_BYTES);
    }
    while (status == IRIS_OK && i < count && words[i] == words[count + i]) {
        i++;
    }
    for (size_t k = i; status == IRIS_OK && k < count; k++) {
        wrong += words[k] != words[count + k];
    }
    if (wrong > 0) {
        found_p->verdict = PROBE_WRONG;
        snprintf(found_p->text, sizeof found_p->text,
                 "rank %d, word %zu of %zu: expected 0x%" PRIx64
                 ", found 0x%" PRIx64 "; %zu bytes are wrong",
                 args->rank, i, count, words[i], words[count + i],
                 wrong * sizeof *words);
    }
    free(words);
    return status;
}

/* ---- Streams ---- */

#define STREAMS 3 /* the context's own, probe->stream, and one more */

static iris_status_t launch_lane(struct probe *probe,
                                 const struct iris_kernel *kernel,
                                 iris_stream_t *stream)
{
    return iris_launch(probe->iris, kernel, 1, 1, &probe->args,
                       sizeof probe->args, stream);
}

/* On one stream a fill, a copy from the host over its first half, and a kernel that
 * reads both, behind a kernel that another stream ends. */
static iris_status_t run_order(struct probe *probe, iris_stream_t *other,
                               struct probe_found *found_p)
{
    void *in = probe->args.board->in;
    size_t half = sizeof probe->args.board->in[0];
    uint64_t words[PROBE_GRID * PROBE_WORDS];
    iris_status_t status;

    fill_words(words, probe->args.rank, probe->args.salt);
    probe->args.rounds = 1;
    if ((status = launch_lane(probe, probe_await, NULL)) != IRIS_OK ||
        (status = iris_memset(probe->iris, in, 0x55, 2 * half, NULL)) !=
            IRIS_OK ||
        (status = iris_memcpy(probe->iris, in, words, half, NULL)) != IRIS_OK ||
        (status = launch_lane(probe, probe_order, NULL)) != IRIS_OK ||
        (status = launch_lane(probe, probe_come, other)) != IRIS_OK ||
        (status = iris_stream_synchronize(probe->iris, NULL)) != IRIS_OK) {
        return status;
    }
    return read_board(probe, found_p);
}

/* A kernel of each stream in turn waits for a kernel of each other stream, which
 * must not be queued behind it. */
static iris_status_t use_streams(struct probe *probe,
                                 iris_stream_t *const *streams,
                                 struct probe_found *found_p)
{
    iris_status_t status = run_order(probe, streams[1], found_p);
    int k;

    for (k = 0; k < STREAMS && status == IRIS_OK; k++) {
        probe->args.rounds += STREAMS - 1;
        status = launch_lane(probe, probe_await, streams[k]);
        for (int i = 1; i < STREAMS && status == IRIS_OK; i++) {
            status = launch_lane(probe, probe_come, streams[(k + i) % STREAMS]);
        }
        status =
            status ? status : iris_stream_synchronize(probe->iris, streams[k]);
    }
    if (status == IRIS_ERR_TIMEOUT) {
        found_p->verdict = PROBE_WRONG;
        snprintf(
            found_p->text, sizeof found_p->text,
            "rank %d: kernels of %d other streams do not pass one of "
            "stream %d that waits for them: streams share a hardware queue",
            probe->args.rank, STREAMS - 1, k > 0 ? k - 1 : 0);
        return iris_clear_error(probe->iris);
    }
    return status;
}

/* Whether streams keep their order, and whether each has a queue of its own. */
static iris_status_t run_streams(struct probe *probe,
                                 struct probe_found *found_p)
{
    iris_stream_t *streams[STREAMS] = {NULL, probe->stream};
    iris_status_t status = iris_stream_create(probe->iris, &streams[2]);

    if (status == IRIS_OK) {
        status = use_streams(probe, streams, found_p);
        iris_stream_destroy(probe->iris, streams[2]);
    }
    return status;
}

#define BLOCK 256u /* lanes */
#define RUNS 3     /* the fastest counts; one more run comes before them */

/* One copy of all the bytes; by a stream if there are no workgroups. */
static iris_status_t copy_once(struct probe *probe, unsigned workgroups)
{
    struct probe_args *args = &probe->args;
    iris_status_t status;

    if (workgroups != 0) {
        return launch_probe(probe, probe_put, workgroups, BLOCK);
    }
    status = iris_put_on_stream(probe->iris, args->in, args->out, args->bytes,
                                args->peer, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

/* In GB/s. */
static iris_status_t measure_rate(struct probe *probe, unsigned workgroups,
                                  double *rate_p)
{
    iris_status_t status = copy_once(probe, workgroups);

    *rate_p = 0;
    for (int i = 0; i < RUNS && status == IRIS_OK; i++) {
        int64_t start = read_clock_ns();
        double rate;

        status = copy_once(probe, workgroups);
        rate = (double)probe->args.bytes / (double)(read_clock_ns() - start);
        *rate_p = rate > *rate_p ? rate : *rate_p;
    }
    return status;
}

/* How fast one rank's kernels of 1, 4, 16 ... workgroups write to the other,
 * and how fast a copy on a stream writes there. The lower rank copies. (Whether
 * each way of copying is right, the other checks say.) */
static iris_status_t run_rate(struct probe *probe, struct probe_found *found_p)
{
    unsigned most = (unsigned)iris_num_cus(probe->iris), workgroups = 1;
    iris_status_t status = launch_probe(probe, probe_fill, PROBE_GRID, BLOCK);
    double rate;
    int length;

    if (probe->args.rank != probe->first || status != IRIS_OK ||
        (status = measure_rate(probe, 0, &rate)) != IRIS_OK) {
        return status;
    }
    length = snprintf(found_p->text, sizeof found_p->text, "stream:%.4g", rate);
    do {
        if ((status = measure_rate(probe, workgroups, &rate)) != IRIS_OK) {
            return status;
        }
        length += snprintf(found_p->text + length,
                           sizeof found_p->text - (size_t)length, " %u:%.4g",
                           workgroups, rate);
        workgroups = workgroups == most      ? most + 1
                     : workgroups * 4 < most ? workgroups * 4
                                             : most;
    } while (workgroups <= most);
    return IRIS_OK;
}

static iris_status_t verify_rate(struct probe *probe,
                                 struct probe_found *found_p)
{
    return probe->args.rank == probe->first
               ? IRIS_OK
               : launch_and_read(probe, probe_verify, PROBE_GRID, BLOCK,
                                 found_p);
}

#define MEMORY "IRIS_HIP_MEMORY=uncached, IRIS_ALLOCATOR=pool"
#define QUEUES                                                             \
    "GPU_MAX_HW_QUEUES=24 DEBUG_HIP_DYNAMIC_QUEUES=0, HSA_ENABLE_SDMA=0, " \
    "IRIS_SPAWN=processes"
const struct probe_check probe_checks[] = {
    {"context", PROBE_OF_PAIRS, run_context, NULL, "iris info's table"},
    {"flag", PROBE_OF_PAIRS, run_flag, NULL, MEMORY},
    {"data", PROBE_OF_PAIRS, run_data, NULL, MEMORY},
    {"atomics", PROBE_OF_PAIRS, run_atomics, verify_atomics, MEMORY},
    {"atomics", PROBE_OF_MORE, run_atomics, verify_atomics, MEMORY},
    {"copy", PROBE_OF_PAIRS, run_copy, verify_copy, QUEUES},
    {"streams", PROBE_OF_ALL, run_streams, NULL, QUEUES},
    {"library", PROBE_OF_ALL, run_library, NULL,
     "IRIS_CCL with variants that read, IRIS_BLAS=none"},
    {"tiles", PROBE_OF_ALL, run_tiles, NULL, MEMORY},
    {"bandwidth", PROBE_OF_PAIRS, run_rate, verify_rate, "HSA_ENABLE_SDMA=0"},
    {NULL, PROBE_OF_PAIRS, NULL, NULL, NULL},
};

/* A check that has hung this often is left out from then on, because each one
 * takes until the deadline. */
#define MOST_HUNG 3

static const char *const verdicts[] = {"ok", "no access", "wrong", "failed",
                                       "hung"};

/* Judges the failure of a call. The rank can go on, unless the status says that
 * it cannot. */
static iris_status_t judge_status(struct probe *probe, iris_status_t status,
                                  struct probe_found *found_p)
{
    if (status == IRIS_OK || status == IRIS_ERR_PEER_LOST) {
        return status;
    }
    found_p->verdict = status == IRIS_ERR_TIMEOUT ? PROBE_HUNG : PROBE_FAILED;
    snprintf(found_p->text, sizeof found_p->text, "%s: %.450s",
             iris_status_string(status), iris_last_error());
    return iris_clear_error(probe->iris);
}

/* Prepares a new board for the kernels, with every rank's address. */
static iris_status_t prepare_board(struct probe *probe)
{
    struct probe_board *board = calloc(1, sizeof *board);
    struct probe_args *args = &probe->args;
    const int64_t *bases = iris_heap_bases(probe->iris);
    int64_t offset = (int64_t)(uintptr_t)args->board - bases[args->rank];
    iris_status_t status;

    if (board == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    board->id = args->salt + (uint64_t)args->rank;
    for (int rank = 0; rank < args->num_ranks; rank++) {
        board->bases[rank] =
            bases[rank] == 0 ? 0 : (uint64_t)(bases[rank] + offset);
    }
    status = iris_memcpy_sync(probe->iris, args->board, board, sizeof *board);
    free(board);
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* Runs one phase of a step on a rank, and then waits for all ranks. */
static iris_status_t do_phase(struct probe *probe,
                              iris_status_t (*phase)(struct probe *,
                                                     struct probe_found *))
{
    struct probe_found *found = &probe->shared->found[probe->args.rank];
    iris_status_t status = IRIS_OK;

    if (phase != NULL && (probe->args.members >> probe->args.rank & 1) != 0 &&
        found->verdict == PROBE_OK) {
        status = judge_status(probe, phase(probe, found), found);
    }
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* The worst finding of the members, or a note. */
static const struct probe_found *worst_of(const struct probe *probe)
{
    const struct probe_found *worst = &probe->shared->found[probe->first];

    for (int rank = 0; rank < probe->args.num_ranks; rank++) {
        const struct probe_found *one = &probe->shared->found[rank];

        if (one->verdict > worst->verdict) {
            worst = one;
        }
    }
    return worst;
}

static void print_pair(const struct probe *probe)
{
    char first[16] = "all", second[16] = "-";

    if (probe->second >= 0) {
        snprintf(first, sizeof first, "%d", probe->first);
        snprintf(second, sizeof second, "%d", probe->second);
    }
    printf(probe->options.tabs ? "%s\t%s\t" : "%4s %-4s", first, second);
}

/* Prints a line for the check; the text is one line, even if it contains line
 * breaks. */
static void print_verdict(const struct probe *probe, const char *name,
                          const char *verdict, double ms, const char *text)
{
    bool tabs = probe->options.tabs;

    printf(tabs ? "%s\t" : "%-10s", name);
    print_pair(probe);
    printf(tabs ? "%s\t%.3g\t" : "%-10s%8.3g ms  ", verdict, ms);
    for (const char *c = text; *c != '\0'; c++) {
        putchar((unsigned char)*c < ' ' ? ' ' : *c);
    }
    putchar('\n');
    fflush(stdout);
}

static void print_result(const struct probe *probe,
                         const struct probe_check *check, double ms)
{
    const struct probe_found *worst = worst_of(probe);
    char text[sizeof worst->text + 128];

    probe->shared->num_bad += worst->verdict != PROBE_OK;
    snprintf(text, sizeof text, "%s%s%s", worst->text,
             worst->verdict <= PROBE_UNREACHABLE ? "" : "; try ",
             worst->verdict <= PROBE_UNREACHABLE ? "" : check->remedy);
    print_verdict(probe, check->name, verdicts[worst->verdict], ms, text);
}

static iris_status_t do_step(struct probe *probe,
                             const struct probe_check *check, int64_t step,
                             bool *hung_p)
{
    struct probe_found *found = &probe->shared->found[probe->args.rank];
    bool first_rank = probe->args.rank == 0;
    int64_t start = read_clock_ns();
    iris_status_t status;

    if (first_rank && probe->options.tabs) {
        printf("begin\t%lld\t%s\t", (long long)step, check->name);
        print_pair(probe);
        putchar('\n');
        fflush(stdout);
    }
    memset(found, 0, sizeof *found);
    if ((probe->args.members >> probe->args.rank & 1) != 0 &&
        probe->second >= 0 &&
        !iris_is_reachable(probe->iris, probe->args.peer)) {
        found->verdict = PROBE_UNREACHABLE;
    }
    status = prepare_board(probe);
    status = status == IRIS_OK ? do_phase(probe, check->run) : status;
    status = status == IRIS_OK ? do_phase(probe, check->verify) : status;
    *hung_p = worst_of(probe)->verdict == PROBE_HUNG;
    if (status == IRIS_OK && first_rank) {
        print_result(probe, check, (double)(read_clock_ns() - start) / 1e6);
    }
    /* Nobody begins the next step before this one is printed. */
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* Chooses the ranks of a step, and sets the kernels' arguments for them. */
static void choose_ranks(struct probe *probe, int first, int second)
{
    struct probe_args *args = &probe->args;

    probe->first = first;
    probe->second = second;
    args->peer = args->rank == first && second >= 0 ? second : first;
    args->members = second < 0 ? 0 : 1ull << first | 1ull << second;
    for (int rank = 0; rank < args->num_ranks && second < 0; rank++) {
        args->members |= (uint64_t)iris_is_reachable(probe->iris, rank) << rank;
    }
    args->rounds = (uint64_t)probe->options.rounds;
    args->salt += 16;
}

static void print_left_out(const struct probe *probe,
                           const struct probe_check *check)
{
    if (probe->args.rank == 0) {
        print_verdict(probe, check->name, "left out", 0, "it has hung 3 times");
        probe->shared->num_bad++;
    }
}

/* Every pair in turn. */
static iris_status_t do_check(struct probe *probe,
                              const struct probe_check *check, int64_t *step)
{
    int num_ranks = probe->args.num_ranks, num_hung = 0;
    iris_status_t status = IRIS_OK;

    for (int first = 0; first < num_ranks; first++) {
        for (int second = first + 1; second < num_ranks && status == IRIS_OK;
             second++) {
            bool hung = false;

            choose_ranks(probe, first, second);
            if (num_hung == MOST_HUNG) {
                print_left_out(probe, check);
            } else if (*step >= probe->options.from) {
                status = do_step(probe, check, *step, &hung);
            }
            num_hung += hung;
            (*step)++;
        }
    }
    return status;
}

/* All ranks at once. */
static iris_status_t do_all(struct probe *probe,
                            const struct probe_check *check, int64_t *step)
{
    bool hung;

    if ((probe->args.num_ranks == 2 && check->members == PROBE_OF_MORE) ||
        (*step)++ < probe->options.from) {
        return IRIS_OK;
    }
    choose_ranks(probe, 0, -1);
    return do_step(probe, check, *step - 1, &hung);
}

/* Large copies go to memory above 4 GiB of the heap. */
static int64_t pad_bytes(const struct probe *probe)
{
    return probe->options.bytes >> 30 > 0 ? (int64_t)4 << 30 : 1;
}

static int rank_main(iris_t *iris, void *arg)
{
    struct probe *template = arg;
    struct probe probe = *template;
    struct probe_args *args = &probe.args;
    iris_status_t status;
    int64_t step = 0;
    void *pad;

    probe.iris = iris;
    args->context = iris_device_context(iris);
    args->rank = iris_rank(iris);
    args->num_ranks = iris_num_ranks(iris);
    args->bytes = (uint64_t)probe.options.bytes;
    if ((status = iris_stream_create(iris, &probe.stream)) != IRIS_OK ||
        (status = iris_calloc_typed(iris, 1, &args->board)) != IRIS_OK ||
        (status = iris_malloc(iris, args->bytes, (void **)&args->out)) !=
            IRIS_OK ||
        (status = iris_malloc(iris, (size_t)pad_bytes(&probe), &pad)) !=
            IRIS_OK ||
        (status = iris_malloc(iris, args->bytes, (void **)&args->in)) !=
            IRIS_OK) {
        return (int)status;
    }
    if (args->rank == 0 && !probe.options.tabs) {
        printf("%d ranks on %s\n", args->num_ranks, iris_backend_name(iris));
    }
    for (const struct probe_check *check = probe_checks;
         check->name != NULL && status == IRIS_OK; check++) {
        status = check->members == PROBE_OF_PAIRS
                     ? do_check(&probe, check, &step)
                     : do_all(&probe, check, &step);
    }
    iris_stream_destroy(iris, probe.stream);
    return (int)status;
}

/* The defaults of this program are few messages, and no files in the working
 * folder. */
static int run_probe(struct probe *probe)
{
    struct iris_config config;
    iris_status_t status;

    iris_config_init(&config);
    config.heap_bytes =
        2 * probe->options.bytes + pad_bytes(probe) + (64 << 20);
    config.heap_bases_files = 0;
    if (getenv("IRIS_LOG_LEVEL") == NULL) {
        config.log_level = "warning";
    }
    if (!tool_begin_peer(probe->options.after, probe->options.num_ranks)) {
        return TOOL_FAILED;
    }
    status = iris_spawn(&config, probe->options.num_ranks, rank_main, probe);
    if (status == IRIS_OK) {
        if (probe->options.tabs) {
            printf("end\n");
        }
        return TOOL_OK;
    }
    fflush(stdout);
    fprintf(stderr, "iris probe: %s: %s\n", iris_status_string(status),
            iris_last_error());
    return TOOL_FAILED;
}

enum { KEY_GIVEN = 256, KEY_ONLY = KEY_GIVEN + PROBE_GIVEN, KEY_AFTER };

/* Options of --all. */
static error_t parse_all(int key, char *arg, struct argp_state *state)
{
    struct probe_options *options = state->input;

    if (key >= KEY_GIVEN && key < KEY_GIVEN + PROBE_GIVEN) {
        options->given[key - KEY_GIVEN] = arg;
        return 0;
    }
    switch (key) {
    case 'a':
        options->is_all = true;
        return 0;
    case KEY_ONLY:
        if (options->num_only == PROBE_MOST_ONLY) {
            argp_error(state, "--only: at most %d runs", PROBE_MOST_ONLY);
        }
        options->only[options->num_only++] = arg;
        return 0;
    case ARGP_KEY_END:
        for (int i = PROBE_GPUS; i <= PROBE_LIMIT; i++) {
            if (options->given[i] != NULL) {
                (void)tool_number(state, i == PROBE_GPUS ? "gpus" : "limit",
                                  options->given[i], 1, 86400);
            }
        }
        for (int i = 0; i < PROBE_GIVEN && !options->is_all; i++) {
            if (i != PROBE_BYTES && options->given[i] != NULL) {
                argp_error(state, "pass --all, too");
            }
        }
        if (options->num_only > 0 && !options->is_all) {
            argp_error(state, "--only: pass --all, too");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_probe(int key, char *arg, struct argp_state *state)
{
    struct probe_options *options = state->input;

    switch (key) {
    case 'n':
        options->num_ranks =
            (int)tool_number(state, "ranks", arg, 2, PROBE_MOST_RANKS);
        return 0;
    case 'b':
        options->bytes =
            tool_number(state, "bytes", arg, 1 << 20, (int64_t)1 << 40);
        options->given[PROBE_BYTES] = arg;
        return 0;
    case 'r':
        options->rounds = tool_number(state, "rounds", arg, 1, 1000000);
        return 0;
    case 'f':
        options->from = tool_number(state, "from", arg, 0, 1000000);
        return 0;
    case KEY_AFTER:
        options->after = arg;
        return 0;
    case 't':
        options->tabs = true;
        return 0;
    default:
        return parse_all(key, arg, state);
    }
}

static int run_script(const struct probe_options *options)
{
    char program[PATH_MAX], script[PATH_MAX + 32];
    const char *arguments[3 + PROBE_GIVEN + PROBE_MOST_ONLY] = {script,
                                                                program};
    size_t count = 2;

    if (!tool_find_script(program, script)) {
        return TOOL_FAILED;
    }
    for (int i = 0; i < PROBE_GIVEN; i++) {
        arguments[count++] = options->given[i] == NULL ? "" : options->given[i];
    }
    for (int i = 0; i < options->num_only; i++) {
        arguments[count++] = options->only[i];
    }
    execv(script, (char **)arguments);
    fprintf(stderr, "iris probe: %s: %s\n", script, strerror(errno));
    return TOOL_FAILED;
}

static const struct argp_option probe_rows[] = {
    {"ranks", 'n', "N", 0, "Ranks (default: 2)", 0},
    {"bytes", 'b', "N", 0,
     "Bytes of a large copy, at least 1 MiB (default: 64 MiB)", 0},
    {"rounds", 'r', "N", 0, "Rounds of flags and data (default: 100)", 0},
    {"from", 'f', "N", 0, "The first step (default: 0)", 0},
    {"after", KEY_AFTER, "LIBRARY", 0,
     "Let this RCCL or NCCL begin to use the ranks' GPUs before Iris", 0},
    {"tabs", 't', NULL, 0,
     "Separate the columns by tabs, and print before each step a line with "
     "\"begin\" and its number",
     0},
    {"all", 'a', NULL, 0,
     "Probe in each way: for every two GPUs and for two ranks on one, as "
     "threads and as processes, in each kind of memory",
     1},
    {"only", KEY_ONLY, "RUN", 0,
     "This run of --all only, such as all-threads-fine", 1},
    {"gpus", KEY_GIVEN + PROBE_GPUS, "N", 0,
     "Use the first N GPUs (default: all)", 1},
    {"limit", KEY_GIVEN + PROBE_LIMIT, "SECONDS", 0,
     "That a run may take; it is started again behind what hung, at most "
     "twice (default: 40, and more with many GPUs)",
     1},
    {"json", KEY_GIVEN + PROBE_JSON, "FILE", 0,
     "Write all that was found to FILE", 1},
    {"logs", KEY_GIVEN + PROBE_LOGS, "FOLDER", 0,
     "Keep the lines, messages and stacks of each run in FOLDER", 1},
    {"stacks", KEY_GIVEN + PROBE_STACKS, "COMMAND", 0,
     "Prints the stacks of a process that hangs, whose number it gets", 1},
    {0},
};

int tool_probe(int argc, char **argv)
{
    static const struct argp argp = {
        .options = probe_rows,
        .parser = parse_probe,
        .doc = "Checks on this machine the operations that each pair of ranks "
               "needs, and the library's collectives. Prints a line for each "
               "check: its name, the two ranks (or all), the verdict, "
               "milliseconds, and the reason or a rate.\v"
               "Exit status: 0 if all checks are ok, 1 if one is not or a call "
               "failed, 2 for a wrong command line.",
    };
    struct probe probe = {
        .options = {.num_ranks = 2, .bytes = 64 << 20, .rounds = 100}};
    int status;

    tool_parse(&argp, argc, argv, &probe.options);
    if (probe.options.is_all) {
        return run_script(&probe.options);
    }
    probe.shared = mmap(NULL, sizeof *probe.shared, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (probe.shared == MAP_FAILED) {
        perror("iris probe");
        return TOOL_FAILED;
    }
    probe.args.salt = (uint64_t)read_clock_ns() / 1000 << 16;
    status = run_probe(&probe);
    if (status == TOOL_OK && probe.shared->num_bad != 0) {
        status = TOOL_FAILED;
    }
    munmap(probe.shared, sizeof *probe.shared);
    return status;
}
