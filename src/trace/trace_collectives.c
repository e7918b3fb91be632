/* SPDX-License-Identifier: MIT
 *
 * Collectives in a trace: members and messages as text.
 */
#include "config.h"

#include "trace/internal.h"

#include "context/context.h"

#include <stdio.h>
#include <string.h>

/* The ranks of a group as text, such as "0-3,6". Empty if the text is too
 * long. */
static void print_members(const struct iris_group *group, char *text,
                          size_t bytes)
{
    int count = group->members.count;
    size_t length = 0;

    for (int i = 0; i < count && length < bytes; i++) {
        int first = i;

        while (i + 1 < count && group->ranks[i + 1] == group->ranks[i] + 1) {
            i++;
        }
        length += (size_t)snprintf(
            text + length, bytes - length, i == first ? "%s%d" : "%s%d-%d",
            first == 0 ? "" : ",", group->ranks[first], group->ranks[i]);
    }
    if (length >= bytes) {
        text[0] = '\0';
    }
}

/* The bytes that the call sends to each other member, or receives from it, such
 * as "1:4096,3:512". Empty if the text is too long. */
static void print_messages(const struct iris_host_event *event, int from,
                           char *text, size_t bytes)
{
    const struct iris_group *group = event->group;
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < group->members.count && length < bytes; i++) {
        uint64_t moved = event->bytes_with(event->call, i, from);

        if (moved != 0 && group->ranks[i] != event->rank) {
            length +=
                (size_t)snprintf(text + length, bytes - length, "%s%d:%llu",
                                 length == 0 ? "" : ",", group->ranks[i],
                                 (unsigned long long)moved);
        }
    }
    if (length >= bytes) {
        text[0] = '\0';
    }
}

/* Leaves half of the slots for texts to the names of kernels. */
static uint32_t keep_messages(struct iris_trace *trace,
                              const struct iris_host_event *event, int from)
{
    char text[IRIS_EVENT_MEMBERS];

    print_messages(event, from, text, sizeof text);
    return text[0] == '\0' || trace->num_kernels >= IRIS_TRACE_KERNELS / 2
               ? 0
               : iris_i_trace_kernel(trace, text);
}

void iris_i_trace_collective(struct iris_trace *trace,
                             struct iris_trace_call *call)
{
    const struct iris_group *group = call->event.group;
    const char *name = call->event.kernel;
    char text[IRIS_EVENT_MEMBERS];

    if (call->event.op != IRIS_HOST_COLLECTIVE || group == NULL) {
        return;
    }
    print_members(group, text, sizeof text);
    call->members = iris_i_trace_kernel(trace, text);
    if (strcmp(name, "iris_ccl_broadcast") == 0 ||
        strcmp(name, "iris_reduce") == 0) {
        call->event.target_rank = group->ranks[call->event.value];
    }
    if (call->event.bytes_with != NULL) {
        call->sends = keep_messages(trace, &call->event, 0);
        call->receives = keep_messages(trace, &call->event, 1);
    }
}
