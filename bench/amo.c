/* SPDX-License-Identifier: MIT
 *
 * Atomics: the time of one atomic, repeated on one word of a peer, and the rate
 * over many distinct words.
 */
#include "config.h"

#include "amo_kernels.h"
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define MIN_WORDS 4096

enum verb { ADD, SUB, AND, OR, XOR, MIN, MAX, XCHG, CAS, UNFETCHED, NUM_VERBS };

static const char *const amo_names[] = {
    "atomic_add", "atomic_sub",    "atomic_and", "atomic_or",
    "atomic_xor", "atomic_min",    "atomic_max", "atomic_xchg",
    "atomic_cas", "add_unfetched", NULL};

/* By verb, then by enum bench_type; NULL: the type has no such atomic. */
static const struct iris_kernel *const kernels[NUM_VERBS][BENCH_NUM_TYPES] = {
    [ADD] = {amo_add_u32, amo_add_u64, amo_add_f32},
    [SUB] = {amo_sub_u32, amo_sub_u64, amo_sub_f32},
    [AND] = {amo_and_u32, amo_and_u64, NULL},
    [OR] = {amo_or_u32, amo_or_u64, NULL},
    [XOR] = {amo_xor_u32, amo_xor_u64, NULL},
    [MIN] = {amo_min_u32, amo_min_u64, amo_min_f32},
    [MAX] = {amo_max_u32, amo_max_u64, amo_max_f32},
    [XCHG] = {amo_xchg_u32, amo_xchg_u64, amo_xchg_f32},
    [CAS] = {amo_cas_u32, amo_cas_u64, amo_cas_f32},
    [UNFETCHED] = {amo_unfetched_u32, amo_unfetched_u64, amo_unfetched_f32},
};

static const size_t type_bytes[BENCH_NUM_TYPES] = {4, 8, 4};

/* A peer's words have one part of `count` words for each rank. */
struct amo {
    size_t count;    /* one for each lane, or more */
    uint64_t *words; /* on the heap, like values and old: num_ranks * count */
    uint64_t *values;
    uint64_t *old;
    uint64_t *host; /* host memory, twice `count`: found, expected */
};

/* One point, which run() gets as `arg`. */
struct amo_point {
    const struct iris_kernel *kernel;
    struct amo_args args;
    unsigned grid;
};

static iris_status_t amo_open(struct bench *b)
{
    struct amo *amo = calloc(1, sizeof *amo);
    size_t bytes;
    iris_status_t status;

    if (amo == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    b->state = amo;
    amo->count = (size_t)b->workgroups * b->options.block;
    amo->count = amo->count < MIN_WORDS ? MIN_WORDS : amo->count;
    bytes = amo->count * sizeof(uint64_t);
    amo->host = malloc(2 * bytes);
    if (amo->host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    status = iris_malloc(b->iris, bytes * (size_t)b->num_ranks,
                         (void **)&amo->words);
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, bytes, (void **)&amo->values);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(b->iris, bytes, (void **)&amo->old);
    }
    return status;
}

static void amo_close(struct bench *b)
{
    struct amo *amo = b->state;

    if (amo != NULL && iris_free(b->iris, amo->old) == IRIS_OK &&
        iris_free(b->iris, amo->values) == IRIS_OK) {
        iris_free(b->iris, amo->words);
    }
    if (amo != NULL) {
        free(amo->host);
    }
    free(amo);
}

/* Small numbers, so that every result is exact in every type: the first value
 * of word i of rank `from`'s part on rank `on`, and `from`'s operand for that
 * word. */
static int64_t initial_of(int from, int on, size_t i)
{
    return (int64_t)((i * 7 + (size_t)from * 31 + (size_t)on * 5) % 4093);
}

static int64_t operand_of(int from, size_t i)
{
    return (int64_t)((i * 13 + (size_t)from * 17 + 3) % 4091);
}

static int64_t result_of(enum verb verb, int64_t a, int64_t b)
{
    switch (verb) {
    case ADD:
    case UNFETCHED:
        return a + b;
    case SUB:
        return a - b;
    case AND:
        return a & b;
    case OR:
        return a | b;
    case XOR:
        return a ^ b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    default: /* XCHG, and CAS that expects the value it finds */
        return b;
    }
}

/* Writes `value` as element i of an array of this type. */
static void put_value(enum bench_type type, void *array, size_t i,
                      int64_t value)
{
    switch (type) {
    case BENCH_F32:
        ((float *)array)[i] = (float)value;
        break;
    case BENCH_U32:
        ((uint32_t *)array)[i] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)array)[i] = (uint64_t)value;
        break;
    }
}

/* Bytes from the start of the words to rank `from`'s part. */
static size_t part_of(const struct amo *amo, enum bench_type type, int from)
{
    return (size_t)from * amo->count * type_bytes[type];
}

/* Fills the words of every rank, the operands, and the values that cas expects
 * from the rank's only peer. */
static iris_status_t fill_amo(struct bench *b, enum bench_type type, int peer)
{
    struct amo *amo = b->state;
    size_t bytes = amo->count * type_bytes[type];
    uint64_t *host = amo->host;
    iris_status_t status = IRIS_OK;

    for (int from = 0; from < b->num_ranks && status == IRIS_OK; from++) {
        for (size_t i = 0; i < amo->count; i++) {
            put_value(type, host, i, initial_of(from, b->rank, i));
        }
        status = bench_copy(b, (char *)amo->words + part_of(amo, type, from),
                            host, bytes);
    }
    for (size_t i = 0; i < amo->count; i++) {
        put_value(type, host, i, operand_of(b->rank, i));
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, amo->values, host, bytes);
    }
    for (size_t i = 0; i < amo->count; i++) {
        put_value(type, host, i, initial_of(b->rank, peer, i));
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, amo->old, host, bytes);
    }
    return status == IRIS_OK ? iris_barrier(b->iris, NULL, NULL) : status;
}

static iris_status_t run_amo(struct bench *b, const void *arg, uint32_t reps,
                             int reference)
{
    const struct amo_point *point = arg;
    struct amo_args args = point->args;
    iris_status_t status;

    (void)reference;
    if (args.num_peers == 0) {
        return IRIS_OK;
    }
    args.reps = reps;
    status = iris_launch(b->iris, point->kernel, point->grid, b->options.block,
                         &args, sizeof args, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}

/* Checks the words here after each rank `from` has updated its part once. Also
 * checks this rank's old values, which are those of rank `on`. */
static iris_status_t check_amo(struct bench *b, enum verb verb,
                               enum bench_type type, int on, uint64_t *wrong_p)
{
    struct amo *amo = b->state;
    size_t bytes = amo->count * type_bytes[type];
    uint64_t *got = amo->host, *want = amo->host + amo->count;
    iris_status_t status = IRIS_OK;

    for (int from = 0; from < b->num_ranks && status == IRIS_OK; from++) {
        bool updated = bench_peers_of(b, from).count > 0 &&
                       bench_peers_of(b, from).first == b->rank;

        status = bench_copy(
            b, got, (char *)amo->words + part_of(amo, type, from), bytes);
        for (size_t i = 0; i < amo->count && updated; i++) {
            put_value(type, want, i,
                      result_of(verb, initial_of(from, b->rank, i),
                                operand_of(from, i)));
        }
        *wrong_p += updated && memcmp(got, want, bytes) != 0;
    }
    if (status == IRIS_OK) {
        status = bench_copy(b, got, amo->old, bytes);
    }
    for (size_t i = 0; i < amo->count; i++) {
        put_value(type, want, i, initial_of(b->rank, on, i));
    }
    *wrong_p += memcmp(got, want, bytes) != 0;
    return status;
}

/* Every rank updates every word of its first peer once. */
static iris_status_t verify_amo(struct bench *b, enum verb verb,
                                enum bench_type type, struct amo_point point,
                                uint64_t *wrong_p)
{
    iris_status_t status = fill_amo(b, type, point.args.first_peer);

    if (point.args.num_peers > 1) {
        point.args.num_peers = 1;
    }
    if (status == IRIS_OK) {
        status = run_amo(b, &point, 1, false);
    }
    if (status == IRIS_OK) {
        status = iris_barrier(b->iris, NULL, NULL);
    }
    if (status == IRIS_OK) {
        status = check_amo(b, verb, type, point.args.first_peer, wrong_p);
    }
    return status == IRIS_OK ? bench_sum(b, wrong_p) : status;
}

static enum bench_type type_named(const char *name)
{
    for (int type = 0; type < BENCH_NUM_TYPES; type++) {
        if (strcmp(bench_type_names[type], name) == 0) {
            return (enum bench_type)type;
        }
    }
    return BENCH_U64;
}

static iris_status_t run_atomic(struct bench *b, size_t op,
                                struct bench_row *row_p)
{
    struct amo *amo = b->state;
    enum bench_type type = type_named(row_p->variant);
    struct bench_peers peers = bench_peers_of(b, b->rank);
    struct amo_point point = {.kernel = kernels[op][type],
                              .grid = b->workgroups};
    struct bench_work work = {.run = run_amo, .arg = &point};
    struct bench_row rate = *row_p;
    iris_status_t status;

    if (point.kernel == NULL) {
        return IRIS_OK;
    }
    point.args = (struct amo_args){
        .context = iris_device_context(b->iris),
        .words = (char *)amo->words + part_of(amo, type, b->rank),
        .values = amo->values,
        .old = amo->old,
        .count = amo->count,
        .first_peer = peers.first,
        .num_peers = peers.count,
    };
    work.per_rep = b->options.pairs == BENCH_ALL && b->num_ranks > 1
                       ? (uint32_t)b->num_ranks - 1
                       : 1;
    status = verify_amo(b, (enum verb)op, type, point, &row_p->wrong);
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, &rate);
    }
    point.args.count = 1;
    point.grid = 1;
    if (status == IRIS_OK) {
        status = bench_measure(b, &work, row_p);
    }
    bench_rate_ops(row_p, rate.median_us / (double)amo->count);
    return status;
}

const struct bench_group bench_atomics = {
    .name = "atomics",
    .text = "relaxed, at system scope; time: of one after another on one word "
            "of the peer; rate: over 4096 distinct words, or one a lane",
    .ops = amo_names,
    .axis = BENCH_BY_TYPE,
    .open = amo_open,
    .run = run_atomic,
    .close = amo_close,
};
