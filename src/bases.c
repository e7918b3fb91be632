/* SPDX-License-Identifier: MIT
 *
 * The heap-bases file, for whoever resolves addresses of a trace later: byte
 * for byte what Python's json.dump(..., indent=2) writes.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "heap.h"
#include "log.h"

static int print_bases(const iris_t *iris, FILE *file)
{
    fprintf(file, "{\n  \"rank\": %d,\n  \"num_ranks\": %d,\n", iris->rank,
            iris->num_ranks);
    fprintf(file, "  \"heap_bases\": [");
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        fprintf(file, "%s\n    \"0x%llx\"", rank == 0 ? "" : ",",
                (unsigned long long)iris->heap_bases[rank]);
    }
    fprintf(file, "\n  ]\n}");
    return ferror(file) ? -1 : 0;
}

/* A file that is there is complete: written aside, then renamed. */
iris_status_t iris_i_bases_write(const iris_t *iris, const char *prefix)
{
    char path[PATH_MAX], aside[PATH_MAX + 32];
    FILE *file;
    int ret;

    snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json", prefix,
             iris->rank);
    snprintf(aside, sizeof aside, "%s.%ld.tmp", path, (long)getpid());
    file = fopen(aside, "we");
    if (file == NULL) {
        return iris_i_fail_errno(iris, IRIS_ERR_SYSTEM, errno,
                                 "cannot write %.300s (IRIS_HEAP_BASES_PREFIX)",
                                 aside);
    }
    ret = print_bases(iris, file) == 0 ? 0 : errno;
    if (fclose(file) != 0 && ret == 0) {
        ret = errno;
    }
    if (ret == 0 && rename(aside, path) != 0) {
        ret = errno;
    }
    if (ret != 0) {
        unlink(aside);
        return iris_i_fail_errno(iris, IRIS_ERR_SYSTEM, ret,
                                 "cannot write %.300s (IRIS_HEAP_BASES_PREFIX)",
                                 path);
    }
    return IRIS_OK;
}
