/* SPDX-License-Identifier: MIT
 *
 * The kernels of a rank that may be running, from its own record. If a GPU runs
 * them, nothing else tells.
 */
#include "config.h"

#include <iris/types.h>

#include "base/base.h"
#include "control/records.h"

#include <stdio.h>
#include <string.h>

struct last {
    uint64_t stream[IRIS_RECORD_STREAMS]; /* 0: the default stream */
    uint64_t synchronized[IRIS_RECORD_STREAMS];
    int count;
};

static void note_synchronized(struct last *last,
                              const struct iris_record_call *call)
{
    int i = 0;

    while (i < last->count && last->stream[i] != call->stream) {
        i++;
    }
    if (i == last->count && i < IRIS_RECORD_STREAMS) {
        last->count++;
        last->stream[i] = call->stream;
        last->synchronized[i] = 0;
    }
    if (i < last->count && last->synchronized[i] < call->id) {
        last->synchronized[i] = call->id;
    }
}

static int is_done(const struct last *last, const struct iris_record_call *call)
{
    for (int i = 0; i < last->count; i++) {
        if (last->stream[i] == call->stream) {
            return call->id < last->synchronized[i];
        }
    }
    return 0;
}

/* The kernel that the call launches; NULL: none. */
static const char *kernel_of(const struct iris_record_call *call)
{
    switch (call->op) {
    case IRIS_HOST_LAUNCH:
    case IRIS_HOST_COLLECTIVE:
        return call->kernel;
    case IRIS_HOST_BARRIER:
        return call->stream != 0 ? "iris_k_barrier" : NULL;
    case IRIS_HOST_WAIT:
        return "iris_k_wait";
    case IRIS_HOST_GRAPH:
        return "of a graph";
    default:
        return NULL;
    }
}

static void add_name(char names[IRIS_RECORD_NAME], const char *name)
{
    size_t used = strlen(names), length = strlen(name);
    const char *at = strstr(names, name);

    if (length == 0 || (at != NULL && (at == names || at[-1] == ' ') &&
                        (at[length] == ' ' || at[length] == '\0'))) {
        return;
    }
    snprintf(names + used, IRIS_RECORD_NAME - used, "%s%s",
             used == 0 ? "" : " or ", name);
}

void iris_i_record_launched_names(const struct iris_record *record,
                                  char names[IRIS_RECORD_NAME])
{
    struct last last = {.count = 0};
    struct iris_record_call call;

    names[0] = '\0';
    for (size_t i = 0; record != NULL && i < IRIS_RECORD_CALLS; i++) {
        if (iris_i_record_own_call(record, i, &call) &&
            call.op == IRIS_HOST_SYNCHRONIZE && call.end_ns != 0 &&
            call.status == IRIS_OK) {
            note_synchronized(&last, &call);
        }
    }
    for (size_t i = 0; record != NULL && i < IRIS_RECORD_CALLS; i++) {
        if (iris_i_record_own_call(record, i, &call) &&
            kernel_of(&call) != NULL && !is_done(&last, &call)) {
            add_name(names, kernel_of(&call));
        }
    }
    if (names[0] == '\0') {
        snprintf(names, IRIS_RECORD_NAME, "of a GPU");
    }
}
