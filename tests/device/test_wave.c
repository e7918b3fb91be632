/* SPDX-License-Identifier: MIT
 *
 * What wavefronts and workgroups combine, local memory, puts by wavefronts,
 * accesses of 16 bytes. Whole numbers, so that all orders give one sum.
 */
#include "config.h"

#include "support/matrix.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 3000u /* elements that lanes combine */
#define ROWS 7u
#define ROW_BYTES 999u /* of a wavefront's put */

static const unsigned lanes[] = {1, 31, 32, 64, 100, 192, 1024};

/* For each type: sum, least and greatest of the workgroup, then of the rows. */
struct found {
    double whole[3];
    double rows[ROWS];
};

struct args {
    const int64_t *context;
    struct found *found;
    char *from;
    char *to; /* symmetric */
    uint32_t *local;
    int32_t peer;
    int32_t unused;
};

/* -50 to 49; unsigned types from 0, and few, so that a byte has their sum. */
IRIS_HOST_DEVICE int number_of(size_t i, int is_signed)
{
    return (int)((i * 37 + i / 7) % 100) - (is_signed ? 50 : 0);
}

/* clang-format off */
#define ROW(name, c_type, arg)                                                 \
    IRIS_KERNEL(combine_##name, struct args)                                   \
    {                                                                          \
        struct found *found = args->found;                                     \
        c_type sum = 0, least = 0, most = 0;                                   \
        int is_signed = #name[0] != 'u', any = 0;                       \
                                                                               \
        IRIS_WG_LANES (wg, i, COUNT) {                                         \
            c_type value = (c_type)number_of(i, is_signed);                    \
            sum = (c_type)(sum + value);                                       \
            least = !any || value < least ? value : least;                     \
            most = !any || value > most ? value : most;                        \
            any = 1;                                                           \
        }                                                                      \
        sum = iris_wg_sum_##name(wg, sum);                                     \
        least = iris_wg_min_##name(wg, least);                                 \
        most = iris_wg_max_##name(wg, most);                                   \
        if (wg.num_lanes < 3 || iris_d_lane() == 2 || IRIS_ON_CPU) {           \
            found->whole[0] = (double)sum;                                     \
            found->whole[1] = (double)least;                                   \
            found->whole[2] = (double)most;                                    \
        }                                                                      \
        for (size_t r = iris_wave_id(wg); r < ROWS; r += iris_num_waves(wg)) { \
            c_type part = 0;                                                   \
            IRIS_WAVE_LANES (wg, i, 10 * r) {                                  \
                part = (c_type)(part + (c_type)number_of(i, is_signed));       \
            }                                                                  \
            part = iris_wave_sum_##name(wg, part);                             \
            if (iris_wave_leader(wg)) {                                        \
                found->rows[r] = (double)part;                                 \
            }                                                                  \
        }                                                                      \
    }
IRIS_WORD_TYPES(ROW, )
ROW(f32, float, )
ROW(f64, double, )
#undef ROW

#define ROW(name, c_type, arg) {combine_##name, #name[0] != 'u'},
static const struct {
    const struct iris_kernel *kernel;
    int is_signed;
} kernels[] = {IRIS_WORD_TYPES(ROW, ) ROW(f32, float, ) ROW(f64, double, )};
#undef ROW
/* clang-format on */

/* A put by each wavefront of rows of its own, from a place of any alignment; 16
 * bytes by a lane; and words of the workgroup's own that lanes exchange. */
IRIS_KERNEL(move, struct args)
{
    IRIS_WG_LOCAL(uint32_t, words, COUNT);
    iris_dev_t dev = iris_dev_init(args->context);
    char *last = args->to + 1024 * ROWS;

    for (size_t r = iris_wave_id(wg); r < ROWS; r += iris_num_waves(wg)) {
        iris_wave_put(wg, dev, args->from + 1001 * r, args->to + 1024 * r + r,
                      ROW_BYTES, args->peer);
    }
    IRIS_WG_LANES (wg, i, 20) {
        iris_store_quad(dev, last + 16 * i,
                        iris_load_quad(dev, args->from + 16 * i, args->peer),
                        args->peer);
    }
    IRIS_WG_LANES (wg, i, COUNT) {
        words[i] = (uint32_t)(i * i);
    }
    iris_wg_barrier(wg);
    IRIS_WG_LANES (wg, i, COUNT) {
        args->local[i] = words[COUNT - 1 - i];
    }
}

static int check_combined(iris_t *iris, struct args *args, unsigned which,
                          unsigned num_lanes)
{
    int is_signed = kernels[which].is_signed;
    double sum = 0, least = 100, most = -100, row = 0;
    struct found found;

    CHECK_OK(iris_memset(iris, args->found, 0, sizeof found, NULL));
    CHECK_OK(iris_launch(iris, kernels[which].kernel, 1, num_lanes, args,
                         sizeof *args, NULL));
    CHECK_OK(harness_read(iris, &found, args->found, sizeof found));
    for (size_t i = 0; i < COUNT; i++) {
        double value = number_of(i, is_signed);

        sum += value;
        /* A lane without elements has 0, which is among them. */
        least = value < least ? value : least;
        most = value > most ? value : most;
        if (i < 10 * ROWS && i % 10 == 0) {
            CHECK_EQUAL((long)found.rows[i / 10], (long)row);
        }
        row += value;
    }
    CHECK_EQUAL((long)found.whole[0], (long)sum);
    CHECK_EQUAL((long)found.whole[1], (long)least);
    CHECK_EQUAL((long)found.whole[2], (long)most);
    return 0;
}

static int check_moved(iris_t *iris, struct args *args, unsigned num_lanes)
{
    static unsigned char host[MATRIX_MAX_RANKS][1024 * (ROWS + 1)];
    static uint32_t words[MATRIX_MAX_RANKS][COUNT];
    unsigned char *bytes = host[iris_rank(iris)];
    uint32_t *local = words[iris_rank(iris)];
    int n = iris_num_ranks(iris), from = (iris_rank(iris) + n - 1) % n;

    CHECK_OK(iris_memset(iris, args->to, 0xa5, 1024 * (ROWS + 1), NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_launch(iris, move, 1, num_lanes, args, sizeof *args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, bytes, args->to, 1024 * (ROWS + 1)));
    CHECK_OK(harness_read(iris, local, args->local, sizeof words[0]));
    for (size_t i = 0; i < 1024 * ROWS; i++) {
        size_t r = i / 1024, b = i % 1024 - r;

        CHECK_EQUAL(bytes[i],
                    i % 1024 >= r && b < ROW_BYTES
                        ? (unsigned char)matrix_mark(from, 1001 * r + b, 0)
                        : 0xa5);
    }
    for (size_t i = 0; i < 320; i++) { /* what this rank has, put back */
        CHECK_EQUAL(bytes[1024 * ROWS + i],
                    (unsigned char)matrix_mark(iris_rank(iris), i, 0));
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(local[i], (COUNT - 1 - i) * (COUNT - 1 - i));
    }
    return 0;
}

static RANK_TEST(lanes_combine_and_wavefronts_put, 1, 3)
{
    struct args args = {.context = iris_device_context(iris)};
    unsigned char *bytes = (unsigned char *)malloc(8192);
    void *found, *from, *to, *local;

    CHECK(bytes != NULL);
    CHECK_OK(iris_malloc(iris, sizeof(struct found), &found));
    CHECK_OK(iris_malloc(iris, 8192, &from));
    CHECK_OK(iris_malloc(iris, 8192, &to));
    CHECK_OK(iris_malloc(iris, COUNT * sizeof(uint32_t), &local));
    args.found = (struct found *)found;
    args.from = (char *)from;
    args.to = (char *)to;
    args.local = (uint32_t *)local;
    args.peer = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    for (size_t i = 0; i < 8192; i++) {
        bytes[i] = (unsigned char)matrix_mark(iris_rank(iris), i, 0);
    }
    CHECK_OK(harness_write(iris, from, bytes, 8192));
    free(bytes);
    for (unsigned l = 0; l < sizeof lanes / sizeof lanes[0]; l++) {
        for (unsigned k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
            CHECK_EQUAL(check_combined(iris, &args, k, lanes[l]), 0);
        }
        CHECK_EQUAL(check_moved(iris, &args, lanes[l]), 0);
    }
    return 0;
}

TEST_GROUP(rank);
