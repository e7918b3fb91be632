/* SPDX-License-Identifier: MIT
 *
 * The heap-bases file, for whoever resolves addresses of a trace later: byte
 * for byte what Python's json.dump(..., indent=2) writes.
 */
#include "config.h"

#include "heap/heap.h"
#include "base/file.h"
#include "base/log.h"
#include "base/shm.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* The file's text, for the caller to free; NULL: no memory. */
static char *print_bases(const struct iris_heap *heap, size_t *bytes_p)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, bytes_p);

    if (file == NULL) {
        return NULL;
    }
    fprintf(file, "{\n  \"rank\": %d,\n  \"num_ranks\": %d,\n", heap->log->rank,
            heap->log->num_ranks);
    fprintf(file, "  \"heap_bases\": [");
    for (int rank = 0; rank < heap->log->num_ranks; rank++) {
        fprintf(file, "%s\n    \"0x%llx\"", rank == 0 ? "" : ",",
                (unsigned long long)heap->bases[rank]);
    }
    fprintf(file, "\n  ]\n}");
    if (fclose(file) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

static iris_status_t fail_write(const struct iris_heap *heap, int ret,
                                const char *path)
{
    const char *remedy = ret == ENOSPC || ret == EDQUOT
                             ? "free some space there, or choose another"
                             : "choose another";

    if (ret == EMFILE || ret == ENFILE) {
        return iris_i_fail_fd(ret, "cannot write the heap-bases file");
    }
    return iris_i_fail_errno(heap->log, IRIS_ERR_SYSTEM, ret,
                             "cannot write %.600s; %s IRIS_HEAP_BASES_PREFIX, "
                             "or set IRIS_HEAP_BASES_FILES=0 for none",
                             path, remedy);
}

iris_status_t iris_i_bases_write(const struct iris_heap *heap,
                                 const char *prefix)
{
    char path[PATH_MAX];
    size_t bytes = 0;
    char *text = print_bases(heap, &bytes);
    int ret;

    if (text == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the heap-bases file");
    }
    snprintf(path, sizeof path, "%.3000s_rank_%d_heap_bases.json", prefix,
             heap->log->rank);
    ret = iris_i_file_write(path, text, bytes);
    free(text);
    return ret == 0 ? IRIS_OK : fail_write(heap, ret, path);
}
