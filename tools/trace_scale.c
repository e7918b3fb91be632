/* SPDX-License-Identifier: MIT
 *
 * Changes a trace as if more ranks had run the program: repeats each event for
 * each copy of the ranks.
 */
#include "config.h"

#include "trace_scale.h"
#include "trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranks of a list such as "0-3,6". */
static int count_members(const char *text)
{
    int count = 0;

    while (*text != '\0') {
        char *end;
        long first = strtol(text, &end, 10), last = first;

        if (*end == '-') {
            last = strtol(end + 1, &end, 10);
        }
        count += (int)(last - first) + 1;
        text = end + (*end == ',');
        if (*end != ',' && *end != '\0') {
            return -1;
        }
    }
    return count;
}

/* Writes the list with `more` added to each rank. Returns 0, or -1 if it is too
 * long. */
static int shift_members(const char *from, int more, char *to, size_t bytes)
{
    size_t length = 0;

    while (*from != '\0' && length < bytes) {
        char *end;
        long rank = strtol(from, &end, 10);

        length += (size_t)snprintf(to + length, bytes - length, "%ld%.1s",
                                   rank + more, end);
        from = end + (*end != '\0');
    }
    return length < bytes ? 0 : -1;
}

/* shift_members() for messages such as "1:4096,3:512". */
static int shift_messages(const char *from, int more, char *to, size_t bytes)
{
    uint64_t moved;
    size_t length = 0;
    int rank;

    to[0] = '\0';
    while (length < bytes &&
           (from = iris_i_next_message(from, &rank, &moved)) != NULL) {
        length += (size_t)snprintf(to + length, bytes - length, "%s%d:%llu",
                                   length == 0 ? "" : ",", rank + more,
                                   (unsigned long long)moved);
    }
    return length < bytes ? 0 : -1;
}

static int target_of(const struct trace_scale *scale, int rank, int target,
                     int copy)
{
    int apart = target - rank;

    if (!scale->is_ring) {
        return target + copy * scale->from;
    }
    apart -= 2 * apart > scale->from ? scale->from : 0;
    apart += 2 * apart < -scale->from ? scale->from : 0;
    return (rank + copy * scale->from + apart + scale->to) % scale->to;
}

static int shift_all(const struct iris_event *event, int more,
                     struct iris_event *copy)
{
    return shift_members(event->members, more, copy->members,
                         sizeof copy->members) != 0 ||
                   shift_messages(event->sends, more, copy->sends,
                                  sizeof copy->sends) != 0 ||
                   shift_messages(event->receives, more, copy->receives,
                                  sizeof copy->receives) != 0
               ? -1
               : 0;
}

int trace_scale_event(void *arg, const struct iris_event *event)
{
    const struct trace_scale *scale = arg;
    int is_collective = event->members[0] != '\0', ret = 0;
    int is_all = is_collective && count_members(event->members) == scale->from;
    struct iris_event copy = *event;

    for (int i = 0; ret == 0 && i < scale->to / scale->from; i++) {
        copy.pid = event->pid + (event->pid < 0 ? 0 : i * scale->from);
        if (is_all) {
            snprintf(copy.members, sizeof copy.members, "0-%d", scale->to - 1);
        } else if (is_collective) {
            ret = shift_all(event, i * scale->from, &copy);
        }
        if (event->target_rank >= 0 && !is_all) {
            copy.target_rank =
                is_collective
                    ? event->target_rank + i * scale->from
                    : target_of(scale, event->pid, event->target_rank, i);
        }
        ret = ret != 0 ? ret : scale->event(scale->arg, &copy);
    }
    return ret;
}
