/* SPDX-License-Identifier: MIT
 *
 * For iris trace report: the member that came last to each barrier of the hosts.
 *
 * The nth barrier of a group is the same one on all its members. A barrier counts
 * only if the trace has it on each member, and if none of them left it before
 * the last one came: otherwise the trace lacks some.
 */
#include "config.h"

#include "trace.h"
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 1024

struct trace_group {
    char members[IRIS_EVENT_MEMBERS];
    struct trace_meeting *meetings;
    size_t num_meetings;
    size_t nth[MAX_RANKS]; /* the number of each rank's next barrier */
};

static int is_barrier(const struct iris_event *event)
{
    return event->members[0] != '\0' && event->pid >= 0 &&
           event->pid < MAX_RANKS && strcmp(event->name, "host barrier") == 0;
}

static int count_members(const char *text)
{
    long first, last;
    int count = 0;

    while ((text = trace_next_range(text, &first, &last)) != NULL) {
        count += (int)(last - first) + 1;
    }
    return count;
}

static struct trace_group *find_group(struct trace_barriers *barriers,
                                      const char *members)
{
    for (size_t i = 0; i < barriers->num_groups; i++) {
        if (strcmp(barriers->groups[i].members, members) == 0) {
            return &barriers->groups[i];
        }
    }
    return NULL;
}

static struct trace_group *add_group(struct trace_barriers *barriers,
                                     const char *members)
{
    struct trace_group *group =
        iris_i_grow(&barriers->groups, &barriers->num_groups, sizeof *group);

    if (group != NULL) {
        memcpy(group->members, members, sizeof group->members);
    }
    return group;
}

/* The group's nth, new ones included; NULL: no memory. */
static struct trace_meeting *find_meeting(struct trace_group *group, size_t nth)
{
    struct trace_meeting *meeting;

    if (nth < group->num_meetings) {
        return &group->meetings[nth];
    }
    meeting =
        iris_i_grow(&group->meetings, &group->num_meetings, sizeof *meeting);
    if (meeting != NULL) {
        *meeting = (struct trace_meeting){
            .first_ns = INT64_MAX, .last_ns = INT64_MIN, .end_ns = INT64_MAX};
    }
    return meeting;
}

int trace_barriers_add(struct trace_barriers *barriers,
                       const struct iris_event *event)
{
    int64_t end_ns = event->ts_ns + event->dur_ns;
    struct trace_meeting *meeting = NULL;
    struct trace_group *group;

    if (!is_barrier(event)) {
        return 0;
    }
    group = find_group(barriers, event->members);
    group = group != NULL ? group : add_group(barriers, event->members);
    if (group != NULL) {
        meeting = find_meeting(group, group->nth[event->pid]++);
    }
    if (meeting == NULL) {
        return -1;
    }
    meeting->count++;
    if (event->ts_ns > meeting->last_ns) {
        meeting->last_ns = event->ts_ns;
        meeting->last = event->pid;
    }
    if (event->ts_ns < meeting->first_ns) {
        meeting->first_ns = event->ts_ns;
    }
    meeting->end_ns = end_ns < meeting->end_ns ? end_ns : meeting->end_ns;
    return 0;
}

void trace_barriers_rewind(struct trace_barriers *barriers)
{
    for (size_t i = 0; i < barriers->num_groups; i++) {
        memset(barriers->groups[i].nth, 0, sizeof barriers->groups[i].nth);
    }
}

const struct trace_meeting *trace_barriers_next(struct trace_barriers *barriers,
                                                const struct iris_event *event)
{
    struct trace_group *group =
        is_barrier(event) ? find_group(barriers, event->members) : NULL;
    const struct trace_meeting *meeting;

    if (group == NULL || group->nth[event->pid] == group->num_meetings) {
        return NULL;
    }
    meeting = &group->meetings[group->nth[event->pid]++];
    return meeting->count == count_members(group->members) &&
                   meeting->last_ns <= meeting->end_ns
               ? meeting
               : NULL;
}

void trace_barriers_free(struct trace_barriers *barriers)
{
    for (size_t i = 0; i < barriers->num_groups; i++) {
        free(barriers->groups[i].meetings);
    }
    free(barriers->groups);
}
