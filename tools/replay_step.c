/* SPDX-License-Identifier: MIT
 *
 * Two steps depend on each other if they use the same word and one of them
 * writes it. The first step of a workgroup sees the effects of its rank's
 * earlier workgroups. The library's own kernels make all writes visible to all.
 */
#include "config.h"

#include "replay_step.h"

#include <string.h>

struct replay_effect replay_effect_of(const struct replay_schedule *schedule,
                                      const struct replay_step *step,
                                      unsigned lane)
{
    struct replay_effect effect = {.lane = lane,
                                   .rank = step->who.rank,
                                   .begins = step->begins,
                                   .leaves = step->leaves,
                                   .is_own = step->is_own};

    effect.accesses =
        replay_alloc(NULL, step->num_ops * sizeof *effect.accesses);
    for (size_t i = 0; i < step->num_ops; i++) {
        const struct replay_op *op = &schedule->ops[step->first_op + i];

        if (op->target >= 0 && op->bytes != 0) {
            effect.accesses[effect.num_accesses++] = (struct replay_access){
                op->target, op->offset / 8, (op->offset + op->bytes - 1) / 8,
                op->writes};
        }
    }
    return effect;
}

struct replay_effect replay_copy(const struct replay_effect *effect)
{
    struct replay_effect copy = *effect;
    size_t bytes = effect->num_accesses * sizeof *copy.accesses;

    copy.accesses = replay_alloc(NULL, bytes);
    memcpy(copy.accesses, effect->accesses, bytes);
    return copy;
}

bool replay_depend(const struct replay_effect *a, const struct replay_effect *b)
{
    if (a->lane == b->lane || a->is_own || b->is_own ||
        (a->rank == b->rank &&
         ((a->begins && b->leaves) || (a->leaves && b->begins)))) {
        return true;
    }
    for (size_t i = 0; i < a->num_accesses; i++) {
        for (size_t k = 0; k < b->num_accesses; k++) {
            const struct replay_access *x = &a->accesses[i];
            const struct replay_access *y = &b->accesses[k];

            if ((x->writes || y->writes) && x->target == y->target &&
                x->first <= y->last && y->first <= x->last) {
                return true;
            }
        }
    }
    return false;
}

static bool is_same_lane(const struct replay_step *a,
                         const struct replay_step *b)
{
    return a->who.rank == b->who.rank && a->who.stream == b->who.stream &&
           a->who.workgroup == b->who.workgroup;
}

/* Whether the step reads the same value at the same place in the code as the
 * step before, or does nothing at all. */
static bool repeats(const struct replay_schedule *schedule,
                    const struct replay_step *before,
                    const struct replay_step *step)
{
    const struct replay_op *a = &schedule->ops[before->first_op];
    const struct replay_op *b = &schedule->ops[step->first_op];

    if (step->begins || step->leaves || step->is_own) {
        return false;
    }
    return step->num_ops == 0 ||
           (step->num_ops == 1 && before->num_ops == 1 && !b->writes &&
            a->code == b->code && replay_is_same(a, b));
}

/* Marks the steps that repeat step `at` in a loop. The loop is certain up to
 * the last step that spins, and one repetition after it. A step that repeats an
 * old value equals the one that read it earlier. */
static void mark_loop(const struct replay_schedule *schedule, size_t at,
                      bool *idle)
{
    const struct replay_step *first = &schedule->steps[at];
    size_t known = at, i = at + 1;
    bool spins = false;

    for (; i < schedule->num_steps; i++) {
        const struct replay_step *step = &schedule->steps[i];

        if (is_same_lane(first, step)) {
            if (!repeats(schedule, first, step)) {
                break;
            }
            idle[i] |=
                step->num_ops == 1 && schedule->ops[step->first_op].behind != 0;
            spins |= step->spins;
            known = spins ? i : known;
        }
    }
    for (i = at + 1; i <= known; i++) {
        idle[i] |= is_same_lane(first, &schedule->steps[i]);
    }
}

void replay_find_idle(const struct replay_schedule *schedule, bool *idle)
{
    for (size_t i = 0; i < schedule->num_steps; i++) {
        idle[i] = schedule->steps[i].fails && schedule->steps[i].num_ops == 0;
    }
    for (size_t i = 0; i < schedule->num_steps; i++) {
        if (!idle[i] && schedule->steps[i].num_ops == 1) {
            mark_loop(schedule, i, idle);
        }
    }
}
