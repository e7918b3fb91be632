/* SPDX-License-Identifier: MIT
 *
 * One trace of several ranks' files, with arrows between their events.
 */
#ifndef IRIS_SRC_TRACE_MERGE_H
#define IRIS_SRC_TRACE_MERGE_H

#include <stdint.h>

/* What a merge did. */
struct iris_merge_report {
    uint64_t events; /* copied */
    uint64_t waits;
    uint64_t joined; /* waits whose signal is known */
    uint64_t early;  /* of these, that ended before their signal began */
    int64_t worst_early_ns;
    int64_t clock_error_ns; /* the files' worst, between ranks; -1: not known */
    int64_t device_error_ns; /* and to the devices */
    char error[320];
};

/* Writes `out` of the files. Two passes, so that memory is for signals and
 * waits only. 0; or -1 with report_p->error. */
int iris_i_merge(char *const *paths, int count, const char *out,
                 struct iris_merge_report *report_p);

#endif /* IRIS_SRC_TRACE_MERGE_H */
