/* SPDX-License-Identifier: MIT
 *
 * iris-info --explain: prints the expected time of a fused operation for each
 * number of chunks, and the reason for the chosen number.
 */
#include "config.h"

#include "info_times.h"

#include <stdio.h>
#include <string.h>

#include "ops/ops_check.h"
#include "ops/ops_model.h"

/* Short and long times with three digits or more. */
static void print_us(double us)
{
    printf(us < 100 ? "%.1f us" : "%.0f us", us);
}

static void print_why(const iris_t *iris, const struct iris_ops_call *call,
                      const struct iris_ops_rates *rates,
                      const struct iris_ops_times *times)
{
    const char *setting = iris_i_settings(iris)->ops_chunks.text;
    int asked = (int)iris_i_settings(iris)->ops_chunks.number;
    int wanted = asked == 0 || asked > times->most ? times->best : asked;

    if (call->members == 1) {
        printf("one rank has no collective\n");
    } else if (call->plan.chunks == 1 && wanted > 1) {
        printf("%d would do, but this library's products of parts have other "
               "bits\n",
               wanted);
    } else if (strcmp(setting, "auto") != 0) {
        printf("IRIS_OPS_CHUNKS=%s asks for it%s\n", setting,
               call->plan.chunks == times->best
                   ? ""
                   : "; without it the model takes another number");
    } else if (times->best > 1) {
        printf("it takes %.2f of the time of 1 chunk, and none of the others "
               "less\n",
               times->us[times->best] / times->us[1]);
    } else if (rates->at[call->op == IRIS_OPS_MATMUL_ALL_REDUCE
                             ? IRIS_RATE_HIDDEN_SUMS
                             : IRIS_RATE_HIDDEN] <= 0) {
        printf("a product and a transport hide nothing of each other here%s\n",
               iris_i_device(iris)->wavefront > 1 ? ", as far as is measured"
                                                  : "");
    } else {
        printf("no number of chunks takes less than %.2f of that time\n",
               IRIS_OPS_WORTH);
    }
}

void info_print_times(const iris_t *iris, const struct iris_ops_call *call)
{
    struct iris_ops_size size = iris_i_ops_size(call);
    struct iris_ops_rates rates = iris_i_ops_rates(iris);
    struct iris_ops_times times = iris_i_ops_expect(&rates, &size);

    printf("  chunks      %d: ", call->plan.chunks);
    print_why(iris, call, &rates, &times);
    printf("  expected    1 chunk ");
    print_us(times.us[1]);
    printf(": product ");
    print_us(times.product_us);
    printf(", collective ");
    print_us(times.collective_us);
    printf("\n");
    for (int n = 2; n <= times.most; n++) {
        printf(n == 2 ? "              %d chunks " : ", %d ", n);
        print_us(times.us[n]);
    }
    printf("%s              by %s\n", times.most > 1 ? "\n" : "", rates.source);
    printf(
        "  override    the call's option chunks, then IRIS_OPS_CHUNKS; rates "
        "of IRIS_CCL_TUNING\n");
}
