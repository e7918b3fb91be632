/* SPDX-License-Identifier: MIT
 *
 * Chooses how a collective is done: the variant that the call or the
 * environment asks for, else the table's; and the number of workgroups.
 */
#include "config.h"

#include "ccl/internal.h"

#include "context/context.h"

#include <string.h>

/* The default choice: the first row that fits. Rows of GPUs for up to four
 * members are those that were fastest on four H200 on 2026-11-27. */
#define KB ((size_t)1 << 10)
#define ANY_BYTES SIZE_MAX
#define ANY_MEMBERS INT32_MAX
static const struct iris_ccl_rule table[] = {
    {IRIS_CCL_ALL_REDUCE, 1, 2, 1024 * KB, IRIS_CCL_ONE_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 1, 4, 256 * KB, IRIS_CCL_ONE_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 1, 4, 1024 * KB, IRIS_CCL_TWO_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 1, 8, 64 * KB, IRIS_CCL_ONE_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 1, 8, 512 * KB, IRIS_CCL_TWO_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 1, ANY_MEMBERS, 4 * KB, IRIS_CCL_ONE_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 1, ANY_MEMBERS, 256 * KB, IRIS_CCL_TWO_SHOT_PACKET,
     0},
    {IRIS_CCL_ALL_REDUCE, 0, ANY_MEMBERS, 64, IRIS_CCL_ONE_SHOT_PACKET, 0},
    {IRIS_CCL_ALL_REDUCE, 0, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_TWO_SHOT, 0},
    {IRIS_CCL_ALL_REDUCE, 1, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_TWO_SHOT, 0},
    {IRIS_CCL_ALL_GATHER, 1, 2, 1024 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_GATHER, 1, 4, 512 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_GATHER, 1, 8, 128 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_GATHER, 1, ANY_MEMBERS, 32 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_GATHER, 1, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_PUSH, 0},
    {IRIS_CCL_ALL_GATHER, 0, ANY_MEMBERS, 64, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_GATHER, 0, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_PULL, 0},
    {IRIS_CCL_REDUCE_SCATTER, 1, 2, 1024 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_REDUCE_SCATTER, 1, 4, 512 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_REDUCE_SCATTER, 1, 8, 128 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_REDUCE_SCATTER, 1, ANY_MEMBERS, 32 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_REDUCE_SCATTER, 1, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_DIRECT, 0},
    {IRIS_CCL_REDUCE_SCATTER, 0, ANY_MEMBERS, 32, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_REDUCE_SCATTER, 0, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_DIRECT, 0},
    {IRIS_CCL_ALL_TO_ALL, 1, 2, 1024 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_TO_ALL, 1, 4, 512 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_TO_ALL, 1, 8, 128 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_TO_ALL, 1, ANY_MEMBERS, 32 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_TO_ALL, 1, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_PUSH, 0},
    {IRIS_CCL_ALL_TO_ALL, 0, ANY_MEMBERS, 64, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_ALL_TO_ALL, 0, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_PULL, 0},
    {IRIS_CCL_BROADCAST, 1, 2, 1024 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_BROADCAST, 1, 8, 128 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_BROADCAST, 1, ANY_MEMBERS, 32 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_BROADCAST, 1, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_PULL, 0},
    {IRIS_CCL_BROADCAST, 0, ANY_MEMBERS, 1 * KB, IRIS_CCL_PACKET, 0},
    {IRIS_CCL_BROADCAST, 0, ANY_MEMBERS, ANY_BYTES, IRIS_CCL_PULL, 0},
};

const char *iris_ccl_variant_name(iris_ccl_variant_t variant)
{
    switch (variant) {
#define CASE(NAME, value, name) \
    case IRIS_CCL_##NAME:       \
        return name;
        IRIS_CCL_VARIANT_ROWS(CASE)
#undef CASE
    }
    return "?";
}

static int on_gpu(const iris_t *iris)
{
    return iris_i_device(iris)->wavefront > 1;
}

/* The collective whose settings and rules apply to the call. */
static enum iris_ccl_op ruled_as(const struct iris_ccl_call *call)
{
    return call->op == IRIS_CCL_REDUCE ? IRIS_CCL_ALL_REDUCE : call->op;
}

/* The variant that the call asks for, else the environment's. The names are the
 * settings' own choices. */
static iris_ccl_variant_t asked(const iris_t *iris,
                                const struct iris_ccl_call *call)
{
    const struct iris_ccl_options *options = &call->options;
    const struct iris_settings *settings = iris_i_settings(iris);
    const struct {
        iris_ccl_variant_t variant;
        const char *setting;
    } of[IRIS_CCL_NUM_OPS] = {
        {options->all_reduce, settings->all_reduce.text},
        {options->all_gather, settings->all_gather.text},
        {options->reduce_scatter, settings->reduce_scatter.text},
        {options->all_to_all, settings->all_to_all.text},
        {options->broadcast, settings->ccl_broadcast.text},
    };
    enum iris_ccl_op op = ruled_as(call);

    if (of[op].variant != IRIS_CCL_AUTO) {
        return of[op].variant;
    }
#define ROW(NAME, value, name)               \
    if (strcmp(of[op].setting, name) == 0) { \
        return IRIS_CCL_##NAME;              \
    }
    IRIS_CCL_VARIANT_ROWS(ROW)
#undef ROW
    return IRIS_CCL_AUTO;
}

/* The variant's requirements on buffers; -1: the collective has no such
 * variant. */
static int needs(enum iris_ccl_op op, iris_ccl_variant_t variant)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[op];

    for (size_t i = 0; kind->variants[i].variant != IRIS_CCL_AUTO; i++) {
        if (kind->variants[i].variant == variant) {
            return kind->variants[i].needs;
        }
    }
    return -1;
}

int iris_i_ccl_find_op(const char *name)
{
    int op = IRIS_CCL_BROADCAST;

    while (op >= 0 && strcmp(iris_i_ccl_kinds[op].rule_name, name) != 0) {
        op--;
    }
    return op;
}

iris_ccl_variant_t iris_i_ccl_find_variant(enum iris_ccl_op op,
                                           const char *name)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[op];
    size_t i = 0;

    while (kind->variants[i].variant != IRIS_CCL_AUTO &&
           strcmp(iris_ccl_variant_name(kind->variants[i].variant), name) !=
               0) {
        i++;
    }
    return (kind->variants[i].needs & IRIS_CCL_BY_NAME)
               ? IRIS_CCL_AUTO
               : kind->variants[i].variant;
}

/* Whether input off the heap is copied through workspaces. A single member on
 * the CPU needs no workspace, and accepts the same buffers as larger groups. */
static int stages(const iris_t *iris, const struct iris_ccl_call *call)
{
    return call->options.rows == 0 &&
           (call->workspace == NULL ? !on_gpu(iris)
                                    : call->workspace->stage_bytes > 0);
}

static int is_float8(const struct iris_ccl_call *call)
{
    return call->dtype == IRIS_DTYPE_F8E4M3 || call->dtype == IRIS_DTYPE_F8E5M2;
}

/* Whether variants that round at each member are no good for it. */
static int rounds_once(const struct iris_ccl_call *call)
{
    return call->reduce == IRIS_REDUCE_AVG || call->options.scale != 0 ||
           is_float8(call);
}

static int can(const struct iris_ccl_call *call, int needs)
{
    if ((needs & IRIS_CCL_STAGES) && call->stages) {
        return 1;
    }
    return needs >= 0 &&
           !((needs & IRIS_CCL_ON_HEAP) &&
             (!call->on_heap || call->by_packets)) &&
           !((needs & IRIS_CCL_APART) && call->in_place) &&
           !((needs & IRIS_CCL_ONLY_SUM) && call->reduce != IRIS_REDUCE_SUM) &&
           !((needs & IRIS_CCL_BY_NAME) && rounds_once(call)) &&
           !(!(needs & IRIS_CCL_ROWS) && call->options.rows != 0);
}

/* A variant of the collective that accepts any buffers. */
static iris_ccl_variant_t fallback(enum iris_ccl_op op)
{
    return op == IRIS_CCL_ALL_REDUCE || op == IRIS_CCL_REDUCE
               ? IRIS_CCL_TWO_SHOT_PACKET
               : IRIS_CCL_PACKET;
}

/* Whether a rule applies to such a call. */
static int is_for(const struct iris_ccl_rule *rule, enum iris_ccl_op op,
                  int gpu, int members, size_t bytes)
{
    return rule->op == op && rule->on_gpu == gpu &&
           (rule->members < 0 ? rule->members == -members
                              : rule->members >= members) &&
           rule->bytes >= bytes;
}

static int fits(const iris_t *iris, const struct iris_ccl_call *call,
                const struct iris_ccl_rule *rule)
{
    return is_for(rule, ruled_as(call), on_gpu(iris),
                  call->group->members.count,
                  call->options.rows == 0 ? call->bytes : ANY_BYTES);
}

iris_ccl_variant_t iris_i_ccl_table_variant(enum iris_ccl_op op, int gpu,
                                            int members, size_t bytes)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (is_for(&table[i], op, gpu, members, bytes)) {
            return table[i].variant;
        }
    }
    return fallback(op);
}

/* Whether a rule's variant can do the call. Members' buffers may differ, but
 * their variants may not. So on a CPU, variants that need the heap are used
 * only on request. */
static int serves(const iris_t *iris, const struct iris_ccl_call *call,
                  iris_ccl_variant_t variant)
{
    int needed = needs(call->op, variant);

    return can(call, needed) &&
           (on_gpu(iris) || !(needed & IRIS_CCL_ON_HEAP) ||
            (needed & IRIS_CCL_STAGES) || call->options.rows != 0);
}

/* The tuning file's rule. NULL: there is no rule for this call and its buffers,
 * or the rule refers to the table. */
static const struct iris_ccl_rule *tuned(const iris_t *iris,
                                         const struct iris_ccl_call *call)
{
    const struct iris_ccl *ccl = iris_i_ccl_of(iris);
    const struct iris_ccl_tuning *tuning = ccl == NULL ? NULL : ccl->tuning;

    for (size_t i = 0; tuning != NULL && i < tuning->count; i++) {
        const struct iris_ccl_rule *rule = &tuning->rules[i];

        if (!fits(iris, call, rule)) {
            continue;
        }
        if (rule->variant == IRIS_CCL_AUTO) {
            return NULL;
        }
        if (serves(iris, call, rule->variant)) {
            return rule;
        }
    }
    return NULL;
}

size_t iris_i_ccl_step_bytes(const struct iris_ccl_call *call,
                             iris_ccl_variant_t variant)
{
    size_t slot = call->workspace == NULL ? SIZE_MAX / IRIS_CCL_UNIT_BYTES
                                          : call->workspace->slot_bytes;

    return variant == IRIS_CCL_TWO_SHOT_PACKET
               ? (size_t)call->group->members.count * (slot / 2)
               : slot;
}

static iris_ccl_variant_t best(const iris_t *iris,
                               const struct iris_ccl_call *call)
{
    const struct iris_ccl_rule *rule = table;

    while (!fits(iris, call, rule)) {
        rule++;
    }
    if (call->options.rows != 0) {
        return rule->variant; /* the only variant, possible or not */
    }
    /* Packets in several steps are the last resort: each step waits for all
     * members. */
    if (ruled_as(call) == IRIS_CCL_ALL_REDUCE &&
        ((call->on_heap && !call->by_packets) || call->stages) &&
        call->bytes > iris_i_ccl_step_bytes(call, rule->variant)) {
        return IRIS_CCL_TWO_SHOT;
    }
    return can(call, needs(call->op, rule->variant)) ? rule->variant
                                                     : fallback(call->op);
}

/* The most workgroups for a call. */
static int max_cus(const iris_t *iris, const struct iris_ccl_call *call)
{
    return call->workspace == NULL ? iris_i_device(iris)->num_cus
                                   : call->workspace->max_cus;
}

static void choose_best(const iris_t *iris, struct iris_ccl_call *call)
{
    const struct iris_ccl_rule *rule = tuned(iris, call);

    call->variant = rule != NULL ? rule->variant : best(iris, call);
    if (rule != NULL && call->cus == 0) {
        call->cus =
            rule->cus < max_cus(iris, call) ? rule->cus : max_cus(iris, call);
    }
}

static iris_status_t check_cus(const iris_t *iris,
                               const struct iris_ccl_call *call)
{
    if (call->options.num_cus < 0 ||
        call->options.num_cus > max_cus(iris, call)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: num_cus is %d; pass 1 to %d, or 0 for as many "
                           "as are worth it",
                           call->name, call->options.num_cus,
                           max_cus(iris, call));
    }
    return IRIS_OK;
}

static iris_status_t choose_variant(const iris_t *iris,
                                    struct iris_ccl_call *call)
{
    iris_ccl_variant_t variant = asked(iris, call);
    int needed = needs(call->op, variant);

    call->stages = stages(iris, call);
    call->by_packets =
        on_gpu(iris) && iris_i_ccl_kinds[call->op].reduces && is_float8(call);
    if (call->op == IRIS_CCL_REDUCE && needed < 0 &&
        needs(IRIS_CCL_ALL_REDUCE, variant) >= 0) {
        variant = IRIS_CCL_AUTO; /* a variant that does not keep the order */
    }
    if (variant == IRIS_CCL_AUTO) {
        choose_best(iris, call);
        variant = call->variant;
        needed = needs(call->op, variant);
    }
    if (needed < 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: it has no variant %s (%d); pass one that "
                           "iris/ccl.h lists for it, or IRIS_CCL_AUTO",
                           call->name, iris_ccl_variant_name(variant),
                           (int)variant);
    }
    if (!can(call, needed)) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "%s: variant %s needs %s; pass such, or IRIS_CCL_AUTO", call->name,
            iris_ccl_variant_name(variant),
            (needed & IRIS_CCL_ON_HEAP) && !call->on_heap
                ? "in and out on the symmetric heap (iris_malloc)"
            : (needed & IRIS_CCL_APART) && call->in_place
                ? "in and out that are not the same memory"
            : (needed & IRIS_CCL_ONLY_SUM) && call->reduce != IRIS_REDUCE_SUM
                ? "operation SUM"
            : (needed & IRIS_CCL_BY_NAME) && rounds_once(call)
                ? "neither AVG nor a scale, and a type of 16 bits or more"
            : (needed & IRIS_CCL_ON_HEAP) && call->by_packets
                ? "a type of 16 bits or more on GPUs"
                : "buffers without rows");
    }
    call->variant = variant;
    call->staged =
        (needed & IRIS_CCL_STAGES) && call->stages &&
        (!call->on_heap || (call->op == IRIS_CCL_ALL_TO_ALL && call->in_place));
    return IRIS_OK;
}

iris_status_t iris_i_ccl_choose(const iris_t *iris, struct iris_ccl_call *call)
{
    iris_status_t status = check_cus(iris, call);

    call->cus = call->options.num_cus;
    return status != IRIS_OK || iris_i_ccl_kinds[call->op].pairs
               ? status
               : choose_variant(iris, call);
}

unsigned iris_i_ccl_grid(const iris_t *iris, const struct iris_ccl_call *call,
                         size_t bytes, size_t bytes_per_wg)
{
    size_t worth = (bytes + bytes_per_wg - 1) / bytes_per_wg;
    size_t most = call->cus > 0             ? (size_t)call->cus
                  : call->workspace == NULL ? (size_t)max_cus(iris, call)
                                            : (size_t)call->workspace->best_cus;

    if (call->cus > 0 && !on_gpu(iris)) {
        return (unsigned)most; /* tests may ask for more than are useful */
    }
    worth = worth < 1 ? 1 : worth;
    return (unsigned)(worth < most ? worth : most);
}
