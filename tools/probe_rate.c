/* SPDX-License-Identifier: MIT
 *
 * iris-probe: bandwidth from one rank to another, by workgroups, beside what a
 * copy on a stream has of the same link.
 */
#include "config.h"

#include "probe.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 256u /* lanes */
#define RUNS 3     /* of which the fastest counts, after one that does not */

/* One copy of all the bytes; by a stream if there are no workgroups. */
static iris_status_t copy(struct probe *probe, unsigned workgroups)
{
    struct probe_args *args = &probe->args;
    iris_status_t status;

    if (workgroups != 0) {
        return probe_launch(probe, probe_put, workgroups, BLOCK);
    }
    status = iris_put_on_stream(probe->iris, args->in, args->out, args->bytes,
                                args->peer, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(probe->iris, NULL)
                             : status;
}

/* In GB/s. */
static iris_status_t measure(struct probe *probe, unsigned workgroups,
                             double *rate_p)
{
    iris_status_t status = copy(probe, workgroups);

    *rate_p = 0;
    for (int i = 0; i < RUNS && status == IRIS_OK; i++) {
        int64_t start = iris_i_now_ns();
        double rate;

        status = copy(probe, workgroups);
        rate = (double)probe->args.bytes / (double)(iris_i_now_ns() - start);
        *rate_p = rate > *rate_p ? rate : *rate_p;
    }
    return status;
}

/* The lower rank copies. (Whether each way of copying is right, the other
 * checks say.) */
iris_status_t probe_rate_run(struct probe *probe, struct probe_found *found_p)
{
    unsigned most = (unsigned)iris_num_cus(probe->iris), workgroups = 1;
    iris_status_t status = probe_launch(probe, probe_fill, PROBE_GRID, BLOCK);
    double rate;
    int length;

    if (probe->args.rank != probe->first || status != IRIS_OK ||
        (status = measure(probe, 0, &rate)) != IRIS_OK) {
        return status;
    }
    length = snprintf(found_p->text, sizeof found_p->text, "stream:%.4g", rate);
    do {
        if ((status = measure(probe, workgroups, &rate)) != IRIS_OK) {
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

iris_status_t probe_rate_verify(struct probe *probe,
                                struct probe_found *found_p)
{
    iris_status_t status;

    if (probe->args.rank == probe->first) {
        return IRIS_OK;
    }
    status = probe_launch(probe, probe_verify, PROBE_GRID, BLOCK);
    return status == IRIS_OK ? probe_read_board(probe, found_p) : status;
}
