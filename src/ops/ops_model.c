/* SPDX-License-Identifier: MIT
 *
 * How long a fused operation takes in some number of chunks, by the rates of the
 * machine. docs/fused.md has the formulas.
 */
#include "config.h"

#include "ops/ops_model.h"

#include <iris/constants.h>

#include <math.h>

#include "ops/ops_types.h"

/* TFLOP/s are 1e6 operations in a microsecond, GB/s 1e3 bytes. */
#define US_OF_TFLOPS 1e6
#define US_OF_GBS 1e3

/* Between two points the time is a power of the operations. Below the first one
 * a product takes as long as there: less work does not fill the device. Above
 * the last one its rate holds. */
static double product_us(const struct iris_ops_rates *rates, iris_dtype_t dtype,
                         double operations)
{
    const struct iris_ops_curve *curve =
        &rates->product[iris_i_ops_rate_type(dtype)];
    int above = 0;
    double low, high, share;

    while (above < curve->count && curve->points[above].size < operations) {
        above++;
    }
    if (above == 0 || above == curve->count) {
        above = above == 0 ? 0 : above - 1;
        low = curve->points[above].size;
        return (operations > low ? operations : low) /
               (US_OF_TFLOPS * curve->points[above].rate);
    }
    low = curve->points[above - 1].size / curve->points[above - 1].rate;
    high = curve->points[above].size / curve->points[above].rate;
    share = log(operations / curve->points[above - 1].size) /
            log(curve->points[above].size / curve->points[above - 1].size);
    high = high > low ? high : low; /* more work does not take less time */
    return low * pow(high / low, share) / US_OF_TFLOPS;
}

/* Bytes that a rank sends to its peers, or gets from them, at their pace. */
static double link_us(const struct iris_ops_rates *rates, double bytes,
                      double members)
{
    double pairs = rates->at[IRIS_RATE_PAIR] * (members - 1);
    double rate =
        rates->at[IRIS_RATE_LINK] < pairs ? rates->at[IRIS_RATE_LINK] : pairs;

    return bytes * (members - 1) / members / (US_OF_GBS * rate);
}

/* The collective of a part of the matrix: the way there, the sums, and for an
 * all_reduce the way back. */
static double transport_us(const struct iris_ops_rates *rates,
                           const struct iris_ops_size *size, double bytes)
{
    double members = (double)size->members;
    double us = rates->at[IRIS_RATE_LAUNCH] + rates->at[IRIS_RATE_SIGNAL] +
                link_us(rates, bytes, members);

    if (size->op == IRIS_OPS_MATMUL_ALL_REDUCE ||
        size->op == IRIS_OPS_MATMUL_REDUCE_SCATTER) {
        us += bytes / (US_OF_GBS * rates->at[IRIS_RATE_MEMORY]);
    }
    if (size->op == IRIS_OPS_MATMUL_ALL_REDUCE) {
        us += rates->at[IRIS_RATE_SIGNAL] + link_us(rates, bytes, members);
    }
    return us;
}

/* Bytes of the matrix that is gathered or summed. */
static double moved(const struct iris_ops_size *size)
{
    int64_t columns =
        size->op == IRIS_OPS_ALL_GATHER_MATMUL ? size->k : size->n;

    return (double)size->m * (double)columns *
           (double)iris_dtype_size(size->dtype);
}

/* What a rank multiplies. */
static double operations(const struct iris_ops_size *size)
{
    double m = (double)size->m;

    if (size->op == IRIS_OPS_MATMUL_ALL_GATHER) {
        m /= (double)size->members;
    }
    return 2 * m * (double)size->n * (double)size->k;
}

/* The product of one of so many chunks: its part of the whole one's time, as the
 * chunks' products run beside each other. The least product takes as long in any
 * number of chunks. */
static double part_us(const struct iris_ops_rates *rates,
                      const struct iris_ops_size *size, int chunks)
{
    double us = product_us(rates, size->dtype, operations(size)) / chunks;
    double least = product_us(rates, size->dtype, 1);

    return us > least ? us : least;
}

/* Whether all chunks of all members are whole blocks of rows. Others compute
 * more, and on two H100 took up to 14 % longer than one product. */
static int is_even(const struct iris_ops_rates *rates,
                   const struct iris_ops_size *size, int chunks)
{
    int64_t shares = size->rows == size->m ? 1 : size->members;

    return size->m % (shares * chunks * rates->block) == 0;
}

/* Which share of the shorter time is hidden. Columns are put together by kernels
 * again, which nobody has measured. */
static double hidden(const struct iris_ops_rates *rates,
                     const struct iris_ops_size *size)
{
    if (size->by_column) {
        return 0;
    }
    return rates
        ->at[size->op == IRIS_OPS_MATMUL_ALL_REDUCE ? IRIS_RATE_HIDDEN_SUMS
                                                    : IRIS_RATE_HIDDEN];
}

/* What chunks cost that they have beside one product and one transport. Those of
 * matmul_all_gather are each awaited and copied once more where they arrive. */
static double further_us(const struct iris_ops_rates *rates,
                         const struct iris_ops_size *size, int chunks)
{
    double steps = size->op == IRIS_OPS_MATMUL_ALL_GATHER ? 3 : 1;
    double peers = (double)(size->members - 1);

    return 2 * rates->at[IRIS_RATE_LAUNCH] +
           (chunks - 1) * steps * peers * rates->at[IRIS_RATE_CHUNK];
}

/* The first chunk's first step and the last one's second have nothing beside
 * them. Between them the shorter one of two steps is hidden, but for a share. */
static double chunked_us(const struct iris_ops_rates *rates,
                         const struct iris_ops_size *size, int chunks)
{
    double product = rates->at[IRIS_RATE_LAUNCH] + part_us(rates, size, chunks);
    double transport = transport_us(rates, size, moved(size) / chunks);
    double longer = product > transport ? product : transport;
    double shorter = product > transport ? transport : product;
    double both = longer + (1 - hidden(rates, size)) * shorter;

    both = product + (chunks - 1) * both + transport +
           further_us(rates, size, chunks);
    return both > chunks * rates->enqueue_us ? both
                                             : chunks * rates->enqueue_us;
}

struct iris_ops_times iris_i_ops_expect(const struct iris_ops_rates *rates,
                                        const struct iris_ops_size *size)
{
    struct iris_ops_times times = {.best = 1, .most = 1};
    double least;

    times.product_us = rates->at[IRIS_RATE_LAUNCH] +
                       product_us(rates, size->dtype, operations(size));
    times.us[1] = times.product_us;
    if (size->members == 1) {
        return times;
    }
    times.collective_us = transport_us(rates, size, moved(size));
    times.us[1] += times.collective_us;
    least = IRIS_OPS_WORTH * times.us[1];
    for (int n = 2; n <= IRIS_OPS_CHUNKS_MOST && n <= size->rows; n++) {
        times.us[n] = chunked_us(rates, size, n);
        times.most = n;
        if (n <= rates->at[IRIS_RATE_MOST] && is_even(rates, size, n) &&
            times.us[n] < least) {
            least = times.us[n];
            times.best = n;
        }
    }
    return times;
}
