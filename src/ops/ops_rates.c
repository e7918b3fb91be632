/* SPDX-License-Identifier: MIT
 *
 * The rates of a machine, from which fused operations are planned: the tuning
 * file's, else the library's own for this kind of device.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/device/kernels/ops_args.h>

#include <string.h>

enum { F32, F16, BF16 };

/* ---- The library's own ----
 *
 * Each has its source: figures of docs/performance.md and docs/fused.md, or
 * "estimate". */

/* Chunks: bf16 on two H100, 25 November 2026, with 6 shapes from 2048 cubed to
 * 8192 cubed (fused.md). If copy engines transfer them, two chunks hide the
 * shorter time and cost about 10 us; more chunks took longer, except in one
 * operation. An all_reduce is a kernel beside the product, and none of it is
 * hidden. On other devices, the library assumes no overlap unless a file says
 * so. */
#define GPU_CHUNKS(share)                                      \
    [IRIS_RATE_HIDDEN] = (share), [IRIS_RATE_HIDDEN_SUMS] = 0, \
    [IRIS_RATE_CHUNK] = 10, [IRIS_RATE_MOST] = 2
#define GPU_BLOCK 128
#define GPU_ENQUEUE_US 75 /* two chunks take 150 us or more, four 215 to 230 */

#define CUBE(side) (2.0 * (side) * (side) * (side))

static const struct known {
    const char *name; /* part of the device's name */
    struct iris_ops_rates rates;
} known[] = {
    /* Two H100, CUDA, 25 November 2026 (fused.md). Products of 2048, 4096 and
     * 8192 cubed in bf16 took 30.3, 179 and 1280 us. Gathers of 8.4, 34, 67 and
     * 134 MB took 28, 67, 117 and 215 us, which is 15 us and 330 GB/s; a
     * scatter of 134 MB took 255 us. f16 is assumed to equal bf16; 512 cubed
     * and f32 are estimates. Launches: 0.76 us (performance.md). */
    {"H100",
     {.source = "the library's own rates of an H100",
      .at = {[IRIS_RATE_LINK] = 330,
             [IRIS_RATE_PAIR] = 330,
             [IRIS_RATE_MEMORY] = 3300,
             [IRIS_RATE_LAUNCH] = 0.76,
             [IRIS_RATE_SIGNAL] = 15,
             GPU_CHUNKS(1)},
      .block = GPU_BLOCK,
      .enqueue_us = GPU_ENQUEUE_US,
      .product = {[F32] = {2, {{CUBE(512), 15}, {CUBE(2048), 45}}},
                  [F16] = {4,
                           {{CUBE(512), 50},
                            {CUBE(2048), 567},
                            {CUBE(4096), 768},
                            {CUBE(8192), 859}}},
                  [BF16] = {4,
                            {{CUBE(512), 50},
                             {CUBE(2048), 567},
                             {CUBE(4096), 768},
                             {CUBE(8192), 859}}}}}},
    /* Products: H200, bf16, 34 us for 2048 cubed through PyTorch. At 8192, the
     * H100's values: the processors and copy engines are the same. The other
     * values, including those of chunks, are the H100's; they were not
     * measured. */
    {"H200",
     {.source = "the library's own rates of an H200",
      .at = {[IRIS_RATE_LINK] = 364,
             [IRIS_RATE_PAIR] = 364,
             [IRIS_RATE_MEMORY] = 2000,
             [IRIS_RATE_LAUNCH] = 0.76,
             [IRIS_RATE_SIGNAL] = 15,
             GPU_CHUNKS(1)},
      .block = GPU_BLOCK,
      .enqueue_us = GPU_ENQUEUE_US,
      .product =
          {[F32] = {2, {{CUBE(512), 15}, {CUBE(2048), 45}}},
           [F16] = {3, {{CUBE(512), 50}, {CUBE(2048), 505}, {CUBE(8192), 730}}},
           [BF16] =
               {3, {{CUBE(512), 50}, {CUBE(2048), 505}, {CUBE(8192), 730}}}}}},
    /* Not measured by us. Iris for Triton published for eight MI300X: stores of
     * 44.6 to 46.4 GiB/s for each pair, 297 to 302 GiB/s from a GPU to all
     * peers; a product of f16, 8192 x 4608 x 36864, at 326 TFLOP/s by Triton.
     * That rate is used for all larger ones. The rest are estimates. */
    {"MI300X",
     {.source = "the library's own rates of an MI300X, not measured",
      .at = {[IRIS_RATE_LINK] = 320,
             [IRIS_RATE_PAIR] = 48,
             [IRIS_RATE_MEMORY] = 2500,
             [IRIS_RATE_LAUNCH] = 3,
             [IRIS_RATE_SIGNAL] = 6,
             GPU_CHUNKS(0)},
      .block = GPU_BLOCK,
      .enqueue_us = GPU_ENQUEUE_US,
      .product =
          {[F32] = {2, {{CUBE(512), 10}, {CUBE(4096), 80}}},
           [F16] = {3, {{CUBE(512), 25}, {CUBE(2048), 200}, {CUBE(8192), 326}}},
           [BF16] =
               {3, {{CUBE(512), 25}, {CUBE(2048), 200}, {CUBE(8192), 326}}}}}},
};

/* Hides nothing, so a call stays a product and a collective. The figures are an
 * H100's, and only predict how long that might take. */
static const struct iris_ops_rates unknown_gpu = {
    .source = "an H100's rates: this kind of GPU is not known, and nothing is "
              "taken to overlap before iris bench --tune has measured it",
    .at = {[IRIS_RATE_LINK] = 364,
           [IRIS_RATE_PAIR] = 364,
           [IRIS_RATE_MEMORY] = 1600,
           [IRIS_RATE_LAUNCH] = 0.76,
           [IRIS_RATE_SIGNAL] = 15,
           GPU_CHUNKS(0)},
    .block = GPU_BLOCK,
    .enqueue_us = GPU_ENQUEUE_US,
    .product = {[F32] = {1, {{CUBE(2048), 45}}},
                [F16] = {1, {{CUBE(2048), 687}}},
                [BF16] = {1, {{CUBE(2048), 687}}}}};

/* One core of a virtual machine (AMD EPYC) with OpenBLAS 0.3.21 for each of two
 * rank threads, by iris bench -n 2 -o matmul_all_reduce, 25 November 2026. The
 * same cores do the transfers, so nothing is hidden. */
static const struct iris_ops_rates cpu = {
    .source = "the library's own rates of a CPU, a core for each rank",
    .at = {[IRIS_RATE_LINK] = 10,
           [IRIS_RATE_PAIR] = 10,
           [IRIS_RATE_MEMORY] = 10,
           [IRIS_RATE_LAUNCH] = 1,
           [IRIS_RATE_SIGNAL] = 1,
           [IRIS_RATE_HIDDEN] = 0,
           [IRIS_RATE_HIDDEN_SUMS] = 0,
           [IRIS_RATE_CHUNK] = 0,
           [IRIS_RATE_MOST] = IRIS_OPS_CHUNKS_MOST},
    .block = 1,
    .product = {[F32] = {2, {{CUBE(64), 0.028}, {CUBE(512), 0.04}}},
                [F16] = {2, {{CUBE(64), 0.027}, {CUBE(512), 0.049}}},
                [BF16] = {2, {{CUBE(64), 0.027}, {CUBE(512), 0.049}}}}};

int iris_i_ops_rate_type(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F32 ? F32 : dtype == IRIS_DTYPE_F16 ? F16 : BF16;
}

struct iris_ops_rates iris_i_ops_default_rates(const char *device, int on_gpu)
{
    if (!on_gpu) {
        return cpu;
    }
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(device, known[i].name) != NULL) {
            return known[i].rates;
        }
    }
    return unknown_gpu;
}

/* ---- The tuning file's ---- */

/* Keeps the points in order of size. If two have the same size, the first
 * counts. */
static void add_point(struct iris_ops_curve *curve, double size, double rate)
{
    int at = 0;

    while (at < curve->count && curve->points[at].size < size) {
        at++;
    }
    if (curve->count == IRIS_OPS_RATE_POINTS ||
        (at < curve->count && curve->points[at].size <= size)) {
        return;
    }
    memmove(&curve->points[at + 1], &curve->points[at],
            (size_t)(curve->count - at) * sizeof curve->points[0]);
    curve->points[at].size = size;
    curve->points[at].rate = rate;
    curve->count++;
}

void iris_i_ops_apply_rates(const struct iris_ccl_tuning *tuning, int on_gpu,
                            struct iris_ops_rates *rates)
{
    int is_replaced[IRIS_OPS_RATE_TYPES] = {0};

    for (size_t i = 0; i < tuning->num_rates; i++) {
        const struct iris_rate *rate = &tuning->rates[i];
        int type = iris_i_ops_rate_type(rate->dtype);

        if (rate->on_gpu != on_gpu) {
            continue;
        }
        rates->source = "rates of IRIS_CCL_TUNING";
        if (rate->kind != IRIS_RATE_PRODUCT) {
            rates->at[rate->kind] = rate->value;
            continue;
        }
        if (!is_replaced[type]) {
            rates->product[type].count = 0;
            is_replaced[type] = 1;
        }
        add_point(&rates->product[type], rate->size, rate->value);
    }
}

/* Ranks that share a GPU share its rates. Their products and copies wait for
 * each other, so a rank hides none of its own time. */
static void share(struct iris_ops_rates *rates, int ranks)
{
    rates->at[IRIS_RATE_MEMORY] /= ranks;
    rates->at[IRIS_RATE_LINK] = rates->at[IRIS_RATE_PAIR] =
        rates->at[IRIS_RATE_MEMORY];
    for (int type = 0; type < IRIS_OPS_RATE_TYPES; type++) {
        for (int i = 0; i < rates->product[type].count; i++) {
            rates->product[type].points[i].rate /= ranks;
        }
    }
}

iris_status_t iris_i_ops_read_rates(iris_t *iris)
{
    struct iris_ccl_tuning *tuning;

    return iris_i_ccl_tuning(iris, &tuning);
}

struct iris_ops_rates iris_i_ops_rates(const iris_t *iris)
{
    const struct iris_ccl_tuning *tuning =
        (const struct iris_ccl_tuning *)iris_i_extension(iris,
                                                         IRIS_EXTENSION_TUNING);
    int on_gpu = iris_i_device(iris)->wavefront > 1;
    int sharers = on_gpu ? iris->placement.ranks_on_device : 1;
    struct iris_ops_rates rates =
        iris_i_ops_default_rates(iris_i_device(iris)->name, on_gpu);

    if (sharers > 1) {
        share(&rates, sharers);
    }
    if (tuning != NULL) {
        iris_i_ops_apply_rates(tuning, on_gpu, &rates);
    }
    if (sharers > 1) {
        rates.at[IRIS_RATE_HIDDEN] = rates.at[IRIS_RATE_HIDDEN_SUMS] = 0;
    }
    return rates;
}
