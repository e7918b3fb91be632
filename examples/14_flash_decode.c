/* SPDX-License-Identifier: MIT
 *
 * Flash decode: one token's attention over a cache of keys and values that is
 * divided among the ranks by positions. Each rank has, of each head, the
 * greatest score, the weights' sum and the weighted values of its positions; puts
 * them to all ranks, and all combine them: one exchange, in one kernel.
 */
#include "example.h"

#include <stdlib.h>

enum { HEADS = 6, DIM = 64, POSITIONS = 300 }; /* positions of each rank */

/* A head on one rank. */
struct part {
    float most; /* score */
    float sum;  /* sum of exp(score - most) */
    float values[DIM];
};

struct args {
    const int64_t *context;
    const float *query;       /* [head][dim] */
    const iris_f16_t *keys;   /* [head][position][dim], of this rank */
    const iris_f16_t *values; /* the same */
    struct part *parts;       /* symmetric: [head][rank] */
    uint64_t *ready;          /* symmetric: the same */
    struct part *mine;        /* symmetric: [head] */
    float *out;               /* [head][dim] */
};

/* exp(x) for x <= 0: 2^n * 2^f, the second by its Taylor series. */
IRIS_HOST_DEVICE float exp_of(float x)
{
    float y = (x < -87 ? -87 : x) * 1.44269504f, sum = 1;
    int n = (int)(y - 0.5f);
    union {
        uint32_t bits;
        float value;
    } power;

    for (int i = 8; i > 0; i--) {
        sum = 1 + sum * (y - (float)n) * 0.693147181f / (float)i;
    }
    power.bits = (uint32_t)(n + 127) << 23;
    return sum * power.value;
}

/* scores[i] = key i * query; returns the greatest. A wavefront a key. */
IRIS_DEVICE float score(iris_wg_t wg, const struct args *args, uint32_t head,
                        float *scores)
{
    const iris_f16_t *keys = args->keys + (size_t)head * POSITIONS * DIM;
    float most = -1e30f;

    for (size_t i = iris_wave_id(wg); i < POSITIONS; i += iris_num_waves(wg)) {
        float sum = 0;

        IRIS_WAVE_LANES(wg, d, DIM)
        {
            sum += iris_f16_to_f32(keys[i * DIM + d]) *
                   args->query[head * DIM + d];
        }
        sum = iris_wave_sum_f32(wg, sum) * 0.125f; /* 1 / sqrt(DIM) */
        most = sum > most ? sum : most;
        if (iris_wave_leader(wg)) {
            scores[i] = sum;
        }
    }
    return iris_wg_max_f32(wg, most);
}

/* This rank's part of a head. */
IRIS_DEVICE void attend(iris_wg_t wg, const struct args *args, uint32_t head,
                        float *scores)
{
    const iris_f16_t *values = args->values + (size_t)head * POSITIONS * DIM;
    struct part *mine = &args->mine[head];
    float most = score(wg, args, head, scores), sum = 0;

    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, POSITIONS) {
        scores[i] = exp_of(scores[i] - most);
        sum += scores[i];
    }
    sum = iris_wg_sum_f32(wg, sum); /* and all lanes have the weights */
    IRIS_WG_LANES (wg, d, DIM) {
        float value = 0;

        for (size_t i = 0; i < POSITIONS; i++) {
            value += scores[i] * iris_f16_to_f32(values[i * DIM + d]);
        }
        mine->values[d] = value;
    }
    if (iris_wg_leader(wg)) {
        mine->most = most;
        mine->sum = sum;
    }
    iris_wg_barrier(wg);
}

/* All ranks' parts. The weight of each is exp() of its greatest score less the
 * greatest of all. */
IRIS_DEVICE void combine(iris_wg_t wg, const struct args *args,
                         const struct part *parts, int num_ranks, uint32_t head)
{
    IRIS_WG_LANES (wg, d, DIM) {
        float most = parts[0].most, sum = 0, value = 0;

        for (int r = 1; r < num_ranks; r++) {
            most = parts[r].most > most ? parts[r].most : most;
        }
        for (int r = 0; r < num_ranks; r++) {
            float weight = exp_of(parts[r].most - most);

            sum += weight * parts[r].sum;
            value += weight * parts[r].values[d];
        }
        args->out[head * DIM + d] = value / sum;
    }
}

IRIS_KERNEL(flash_decode, struct args)
{
    IRIS_WG_LOCAL(float, scores, POSITIONS);
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t n = (uint32_t)dev.num_ranks;

    for (uint32_t head = wg.id; head < HEADS; head += wg.num_wgs) {
        size_t own = head * n + (uint32_t)dev.rank;

        attend(wg, args, head, scores);
        for (int peer = 0; peer < dev.num_ranks; peer++) {
            iris_wg_put_signal(wg, dev, &args->mine[head], &args->parts[own],
                               sizeof(struct part), &args->ready[own], 1, peer);
        }
        if (iris_wg_leader(wg)) {
            iris_wait_until_all(dev, &args->ready[head * n], n, NULL,
                                IRIS_CMP_EQ, 1);
        }
        iris_wg_barrier(wg);
        combine(wg, args, &args->parts[head * n], dev.num_ranks, head);
    }
}

/* An element of the query, the keys or the values, from -1 to 1. */
static float number(int what, size_t head, size_t position, size_t d)
{
    uint32_t mark = example_value(what, head * 977 + position * DIM + d, 0);

    return (float)(int)(mark * 2654435761u >> 20 & 1023) / 512 - 1;
}

static float score_of(size_t head, size_t position)
{
    double sum = 0;

    for (size_t d = 0; d < DIM; d++) {
        sum += (double)number(0, head, 0, d) * number(1, head, position, d);
    }
    return (float)sum / 8;
}

/* One head over all ranks' positions, in double. */
static void attend_exactly(size_t head, size_t positions, double *out)
{
    float most = score_of(head, 0);
    double sum = 0;

    for (size_t i = 1; i < positions; i++) {
        most = score_of(head, i) > most ? score_of(head, i) : most;
    }
    for (size_t d = 0; d < DIM; d++) {
        out[d] = 0;
    }
    for (size_t i = 0; i < positions; i++) {
        double weight = exp_of(score_of(head, i) - most);

        sum += weight;
        for (size_t d = 0; d < DIM; d++) {
            out[d] += weight * number(2, head, i, d);
        }
    }
    for (size_t d = 0; d < DIM; d++) {
        out[d] /= sum;
    }
}

static int check(iris_t *iris, const float *out)
{
    float host[HEADS * DIM];
    int ret = example_copy(iris, host, out, sizeof host);

    for (size_t head = 0; ret == 0 && head < HEADS; head++) {
        double want[DIM];

        attend_exactly(head, POSITIONS * (size_t)iris_num_ranks(iris), want);
        for (size_t d = 0; ret == 0 && d < DIM; d++) {
            double off = host[head * DIM + d] - want[d];

            if (!(off < 1e-5 && off > -1e-5)) {
                ret = example_wrong(iris, "out", head * DIM + d,
                                    host[head * DIM + d], want[d]);
            }
        }
    }
    return ret;
}

/* This rank's keys or values. */
static int fill(iris_t *iris, void *cache, int what)
{
    const size_t count = HEADS * POSITIONS * DIM;
    size_t first = POSITIONS * (size_t)iris_rank(iris);
    iris_f16_t *host = malloc(count * sizeof *host);
    int ret;

    if (host == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        host[i] = iris_f16_from_f32(number(
            what, i / DIM / POSITIONS, first + i / DIM % POSITIONS, i % DIM));
    }
    ret = example_copy(iris, cache, host, count * sizeof *host);
    free(host);
    return ret;
}

static int allocate(iris_t *iris, struct args *args)
{
    size_t cache = HEADS * POSITIONS * DIM * sizeof(iris_f16_t);
    size_t ranks = (size_t)iris_num_ranks(iris);
    float query[HEADS * DIM];
    void *p[7];
    int ret;

    for (size_t i = 0; i < HEADS * DIM; i++) {
        query[i] = number(0, i / DIM, 0, i % DIM);
    }
    if ((ret = iris_malloc(iris, sizeof query, &p[0])) != 0 ||
        (ret = iris_malloc(iris, cache, &p[1])) != 0 ||
        (ret = iris_malloc(iris, cache, &p[2])) != 0 ||
        (ret = iris_malloc(iris, HEADS * ranks * sizeof(struct part), &p[3])) !=
            0 ||
        (ret = iris_calloc(iris, HEADS * ranks, sizeof(uint64_t), &p[4])) !=
            0 ||
        (ret = iris_malloc(iris, HEADS * sizeof(struct part), &p[5])) != 0 ||
        (ret = iris_malloc(iris, sizeof query, &p[6])) != 0 ||
        (ret = example_copy(iris, p[0], query, sizeof query)) != 0 ||
        (ret = fill(iris, p[1], 1)) != 0 || (ret = fill(iris, p[2], 2)) != 0) {
        return ret;
    }
    args->query = p[0];
    args->keys = p[1];
    args->values = p[2];
    args->parts = p[3];
    args->ready = p[4];
    args->mine = p[5];
    args->out = p[6];
    return 0;
}

static int run(iris_t *iris, void *options)
{
    struct args args = {.context = iris_device_context(iris)};
    int ret = allocate(iris, &args);

    if (ret != 0 ||
        (ret = iris_barrier(iris, NULL, NULL)) != 0 || /* all flags are 0 */
        (ret = iris_launch(iris, flash_decode, example_grid(iris, options),
                           EXAMPLE_LANES, &args, sizeof args, NULL)) != 0 ||
        (ret = check(iris, args.out)) != 0) {
        return ret;
    }
    return example_ok(iris, "flash decode", HEADS, DIM,
                      POSITIONS * (size_t)iris_num_ranks(iris));
}

int main(int argc, char **argv)
{
    struct example_options options = {.bytes = 1, .iterations = 1};

    example_options(argc, argv,
                    "Attention of one token over a divided cache, in a kernel.",
                    &options);
    return example_exit(iris_spawn(NULL, options.ranks, run, &options));
}
