/* SPDX-License-Identifier: MIT
 *
 * Merges several ranks' files into one trace, with arrows between their events.
 */
#ifndef IRIS_SRC_TRACE_MERGE_H
#define IRIS_SRC_TRACE_MERGE_H

#include <stdint.h>

/* The result of a merge. */
struct iris_merge_report {
    uint64_t events; /* copied */
    uint64_t waits;
    uint64_t joined; /* waits whose signal was found */
    uint64_t early;  /* number of these waits that ended before their signal
                      * began */
    int64_t worst_early_ns;
    int64_t clock_error_ns;  /* largest error in any file, between ranks; -1:
                             * unknown */
    int64_t device_error_ns; /* and between hosts and devices */
    char error[320];
};

/* Merges the files into `out`. Two passes, so that only signals and waits take
 * memory. Returns 0, or -1 with report_p->error. */
int iris_i_merge(char *const *paths, int count, const char *out,
                 struct iris_merge_report *report_p);

#endif /* IRIS_SRC_TRACE_MERGE_H */
