/* SPDX-License-Identifier: MIT
 *
 * A job for faults.sh: fault_job ROUNDS SEED REPEATS. Each round every rank puts,
 * adds, gets, signals, sends messages and takes part in collectives, with random
 * sizes, and checks every value. A rank puts REPEATS blocks to each rank, of
 * which the last counts. Exits with 0: all right; 1: a call failed; 2:
 * a value is wrong though no call has failed. */
#include <iris/ccl.h>
#include <iris/device.h>
#include <iris/iris.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_RANKS 8
#define BLOCK ((size_t)160 << 10) /* of each rank in every heap */
#define ADDS 5
#define MESSAGE 3000

struct fault_args {
    const int64_t *context;
    unsigned char *source;  /* BLOCK bytes */
    unsigned char *target;  /* BLOCK bytes of each rank */
    unsigned char *fetched; /* BLOCK bytes, on the heap, too */
    uint64_t *signals;      /* one of each rank */
    uint64_t *counters;     /* MOST_RANKS */
    uint64_t *wrong;        /* number of wrong values */
    uint64_t round;
    uint64_t seed;
    long repeats;
};

IRIS_HOST_DEVICE uint64_t mix(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* Bytes that rank `from` puts to rank `to` in a round; mostly few. */
IRIS_HOST_DEVICE size_t size_of(const struct fault_args *args, int from, int to)
{
    uint64_t value = mix(args->seed + args->round * 1009 +
                         (uint64_t)(from * MOST_RANKS + to));

    return 1 + (size_t)(mix(value) % (value % 4 == 0 ? BLOCK : 500));
}

IRIS_HOST_DEVICE unsigned char byte_at(const struct fault_args *args, int rank,
                                       size_t i)
{
    return (unsigned char)(args->round * 37 + (uint64_t)rank * 101 + i * 7 +
                           (i >> 8));
}

IRIS_HOST_DEVICE uint64_t count_wrong(const struct fault_args *args,
                                      const unsigned char *bytes, int rank,
                                      size_t size)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < size; i++) {
        wrong += bytes[i] != byte_at(args, rank, i);
    }
    return wrong;
}

IRIS_KERNEL(play_kernel, struct fault_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int me = dev.rank, n = dev.num_ranks;

    for (int to = 0; to < n; to++) {
        for (long i = 1; i < args->repeats; i++) {
            iris_wg_put(wg, dev, args->source,
                        args->target + (size_t)me * BLOCK, BLOCK, to);
        }
        iris_wg_put_signal(
            wg, dev, args->source, args->target + (size_t)me * BLOCK,
            size_of(args, me, to), &args->signals[me], args->round, to);
        for (int i = 0; i < ADDS; i++) {
            (void)iris_atomic_add(dev, &args->counters[me],
                                  (uint64_t)1 << (8 * (i % 2)), to,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        }
    }
    for (int from = 0; from < n; from++) {
        (void)iris_wait_until(dev, &args->signals[from], IRIS_CMP_GE,
                              args->round);
        *args->wrong += count_wrong(args, args->target + (size_t)from * BLOCK,
                                    from, size_of(args, from, me));
    }
    for (int from = 0; from < n; from++) {
        size_t size = size_of(args, from, me);

        iris_wg_get(wg, dev, args->source, args->fetched, size, from);
        *args->wrong += count_wrong(args, args->fetched, from, size);
    }
}

struct state {
    iris_t *iris;
    struct fault_args args;
    uint64_t *values; /* of a collective, then its result; then of messages */
};

static iris_status_t check_sum(struct state *s, uint64_t *wrong_p)
{
    size_t count = 1 + (size_t)(mix(s->args.round + s->args.seed) % MESSAGE);
    uint64_t *in = s->values, *out = s->values + MESSAGE;
    int me = iris_rank(s->iris), n = iris_num_ranks(s->iris);
    iris_status_t status;

    for (size_t i = 0; i < count; i++) {
        in[i] = s->args.round * (uint64_t)(me + 1) + i;
    }
    status = iris_all_reduce(s->iris, in, out, count, IRIS_DTYPE_U64,
                             IRIS_REDUCE_SUM, NULL);
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(s->iris, NULL);
    }
    for (size_t i = 0; status == IRIS_OK && i < count; i++) {
        *wrong_p += out[i] != s->args.round * (uint64_t)(n * (n + 1) / 2) +
                                  i * (uint64_t)n;
    }
    return status;
}

static iris_status_t check_message(struct state *s, uint64_t *wrong_p)
{
    size_t count =
        1 + (size_t)(mix(s->args.round * 3 + s->args.seed) % MESSAGE);
    uint64_t *in = s->values, *out = s->values + MESSAGE;
    int me = iris_rank(s->iris), n = iris_num_ranks(s->iris);
    int from = (me + n - 1) % n;
    iris_status_t status;

    for (size_t i = 0; i < count; i++) {
        in[i] = s->args.round * 1000 + (uint64_t)me * 77 + i;
    }
    status = iris_send_recv(s->iris, in, count, (me + 1) % n, out, count, from,
                            IRIS_DTYPE_U64, NULL);
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(s->iris, NULL);
    }
    for (size_t i = 0; status == IRIS_OK && i < count; i++) {
        *wrong_p += out[i] != s->args.round * 1000 + (uint64_t)from * 77 + i;
    }
    return status;
}

/* Each add has happened exactly once. */
static uint64_t check_counters(const struct state *s)
{
    uint64_t wrong = 0, ones = (ADDS + 1) / 2, high = ADDS / 2;

    for (int rank = 0; rank < iris_num_ranks(s->iris); rank++) {
        wrong += s->args.counters[rank] != s->args.round * (ones + (high << 8));
    }
    return wrong;
}

/* Rank 0 stops itself at the place that FAULT_STOP names. */
static void stop_at(const struct state *s, const char *place)
{
    const char *name = getenv("FAULT_STOP");

    if (name != NULL && strcmp(name, place) == 0 && iris_rank(s->iris) == 0) {
        raise(SIGSTOP);
    }
}

static iris_status_t play_round(struct state *s, uint64_t *wrong_p)
{
    int me = iris_rank(s->iris);
    iris_status_t status;

    for (size_t i = 0; i < BLOCK; i++) {
        s->args.source[i] = byte_at(&s->args, me, i);
    }
    *s->args.wrong = 0;
    status = iris_barrier(s->iris, NULL, NULL);
    stop_at(s, "kernel");
    if (status == IRIS_OK) {
        status = iris_launch(s->iris, play_kernel, 1, 1, &s->args,
                             sizeof s->args, NULL);
    }
    status =
        status == IRIS_OK ? iris_stream_synchronize(s->iris, NULL) : status;
    status = status == IRIS_OK ? iris_barrier(s->iris, NULL, NULL) : status;
    if (status == IRIS_OK) {
        *wrong_p += *s->args.wrong + check_counters(s);
        stop_at(s, "collective");
        status = check_sum(s, wrong_p);
    }
    return status == IRIS_OK ? check_message(s, wrong_p) : status;
}

static iris_status_t open_state(struct state *s)
{
    void *heap;
    iris_status_t status = iris_init(NULL, &s->iris);

    if (status != IRIS_OK) {
        return status;
    }
    s->args.context = iris_device_context(s->iris);
    status = iris_calloc(s->iris, 1, (MOST_RANKS + 3) * BLOCK, &heap);
    if (status == IRIS_OK) {
        s->args.source = heap;
        s->args.fetched = s->args.source + BLOCK;
        s->args.target = s->args.source + 2 * BLOCK;
        s->values =
            (uint64_t *)(void *)(s->args.source + (MOST_RANKS + 2) * BLOCK);
        s->args.signals = s->values + 2 * MESSAGE;
        s->args.counters = s->args.signals + MOST_RANKS;
        s->args.wrong = s->args.counters + MOST_RANKS;
    }
    return status;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    struct state s = {.iris = NULL};
    iris_status_t status = open_state(&s), end = IRIS_OK;
    uint64_t wrong = 0;
    time_t begin = 0;

    s.args.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    s.args.repeats = argc > 3 ? strtol(argv[3], NULL, 10) : 1;
    if (status == IRIS_OK) {
        printf("rank %d is pid %ld\n", iris_rank(s.iris), (long)getpid());
        fflush(stdout);
    }
    for (s.args.round = 1;
         status == IRIS_OK && wrong == 0 && s.args.round <= (uint64_t)rounds;
         s.args.round++) {
        status = play_round(&s, &wrong);
    }
    if (status != IRIS_OK) {
        printf("round %llu: %s: %s\n", (unsigned long long)s.args.round - 1,
               iris_status_string(status), iris_last_error());
    }
    if (wrong != 0) {
        printf("round %llu: %llu wrong values\n",
               (unsigned long long)s.args.round - 1, (unsigned long long)wrong);
    }
    if (s.iris != NULL) {
        stop_at(&s, "finalize");
        begin = time(NULL);
        end = iris_finalize(s.iris);
    }
    if (end != IRIS_OK) {
        printf("finalize: %s after %ld s: %s\n", iris_status_string(end),
               (long)(time(NULL) - begin), iris_last_error());
    }
    return wrong != 0 ? 2 : status != IRIS_OK;
}
