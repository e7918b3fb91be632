/* SPDX-License-Identifier: MIT
 *
 * Predicts the time of a fused operation in some number of chunks, from the
 * rates of the machine. docs/fused.md has the formulas.
 */
#include "config.h"

#include "ops/internal.h"

#include <iris/constants.h>

#include <math.h>

/* TFLOP/s are 1e6 operations per microsecond, GB/s 1e3 bytes. */
#define US_OF_TFLOPS 1e6
#define US_OF_GBS 1e3

/* Between two points, the time is a power of the number of operations. Below
 * the first point, the time is constant: less work does not fill the device.
 * Above the last point, the rate is constant. */
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

/* Time to transfer this number of bytes between a rank and its peers, at the
 * peers' rate. */
static double link_us(const struct iris_ops_rates *rates, double bytes,
                      double members)
{
    double pairs = rates->at[IRIS_RATE_PAIR] * (members - 1);
    double rate =
        rates->at[IRIS_RATE_LINK] < pairs ? rates->at[IRIS_RATE_LINK] : pairs;

    return bytes * (members - 1) / members / (US_OF_GBS * rate);
}

/* Time of the collective of a part of the matrix: the way there, the sums, and
 * for an all_reduce the way back. */
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

/* Number of operations of a rank. */
static double operations(const struct iris_ops_size *size)
{
    double m = (double)size->m;

    if (size->op == IRIS_OPS_MATMUL_ALL_GATHER) {
        m /= (double)size->members;
    }
    return 2 * m * (double)size->n * (double)size->k;
}

/* Time of the product of one chunk of this number: its part of the whole
 * product's time, as the chunks' products run beside each other. The smallest
 * product takes equally long in any number of chunks. */
static double part_us(const struct iris_ops_rates *rates,
                      const struct iris_ops_size *size, int chunks)
{
    double us = product_us(rates, size->dtype, operations(size)) / chunks;
    double least = product_us(rates, size->dtype, 1);

    return us > least ? us : least;
}

/* Whether all chunks of all members are whole blocks of rows. Other chunks
 * compute more, and on two H100 took up to 14 % longer than one product. */
static int is_even(const struct iris_ops_rates *rates,
                   const struct iris_ops_size *size, int chunks)
{
    int64_t shares = size->rows == size->m ? 1 : size->members;

    return size->m % (shares * chunks * rates->block) == 0;
}

/* The fraction of the shorter time that is hidden. Kernels join the columns,
 * and their effect has not been measured. */
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

/* The additional cost of chunks, besides one product and one transfer. In
 * matmul_all_gather, each chunk is awaited and copied once more on arrival. */
static double further_us(const struct iris_ops_rates *rates,
                         const struct iris_ops_size *size, int chunks)
{
    double steps = size->op == IRIS_OPS_MATMUL_ALL_GATHER ? 3 : 1;
    double peers = (double)(size->members - 1);

    return 2 * rates->at[IRIS_RATE_LAUNCH] +
           (chunks - 1) * steps * peers * rates->at[IRIS_RATE_CHUNK];
}

/* The first chunk's first step and the last chunk's second step overlap with
 * nothing. In between, the shorter of two steps is hidden, except for a
 * fraction. */
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
