/* SPDX-License-Identifier: MIT
 *
 * Delta debugging: leaves out parts of the choices, first half of them and last
 * a single one. It begins at the end, because leaving out a choice renumbers
 * later ones. After each run that fails, it goes on with the choices of that
 * run.
 */
#include "config.h"

#include "replay_shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shrinking {
    const struct replay_program *program;
    const char *failure;
    struct replay_result *result; /* the shortest run so far */
    unsigned runs;
};

/* Tries a run without the choices from `begin` to `end`. Returns 1 if it fails;
 * it is then *s->result. Returns 0 if it does not fail, and -1 after printing a
 * message. */
static int try_without(struct shrinking *s, size_t begin, size_t end)
{
    const struct replay_schedule *from = &s->result->schedule;
    size_t count = from->num_choices - (end - begin);
    struct replay_choice *choices =
        replay_alloc(NULL, (count + 1) * sizeof *choices);
    struct replay_result result;
    int ret;

    memcpy(choices, from->choices, begin * sizeof *choices);
    memcpy(choices + begin, from->choices + end,
           (from->num_choices - end) * sizeof *choices);
    ret = replay_run(s->program, from, choices, count, &result);
    s->runs++;
    free(choices);
    if (ret == 0 && result.has_schedule &&
        result.schedule.num_choices < from->num_choices &&
        replay_has_failure(&result, s->failure)) {
        replay_drop(s->result);
        *s->result = result;
        return 1;
    }
    replay_drop(&result);
    return ret;
}

/* Leaves out `chunk` choices at a time. Returns the number of successes, or -1. */
static int pass(struct shrinking *s, size_t chunk)
{
    size_t end = s->result->schedule.num_choices;
    int count = 0;

    while (end > 0) {
        size_t begin = end > chunk ? end - chunk : 0;
        int ret = try_without(s, begin, end);

        if (ret < 0) {
            return -1;
        }
        count += ret;
        end = begin;
        if (end > s->result->schedule.num_choices) {
            end = s->result->schedule.num_choices;
        }
    }
    return count;
}

/* Runs the shortest schedule once more. Returns 0, 1 if it does not fail now,
 * or -1. */
static int verify(struct shrinking *s)
{
    const struct replay_schedule *from = &s->result->schedule;
    struct replay_result result;
    int ret =
        replay_run(s->program, from, from->choices, from->num_choices, &result);

    s->runs++;
    if (ret == 0 &&
        (!result.has_schedule || !replay_has_failure(&result, s->failure))) {
        ret = 1;
    }
    replay_drop(&result);
    return ret;
}

int replay_shrink(const struct replay_program *program, const char *failure,
                  struct replay_result *result, unsigned *runs_p)
{
    struct shrinking s = {program, failure, result, 0};
    size_t chunk = result->schedule.num_choices;
    int count = 0;

    while (chunk >= 1 && count >= 0) {
        count = pass(&s, chunk);
        if (count == 0 || chunk > 1) {
            chunk /= 2;
        }
    }
    count = count < 0 ? -1 : verify(&s);
    *runs_p = s.runs;
    return count;
}
