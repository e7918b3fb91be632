/* SPDX-License-Identifier: MIT
 *
 * The collectives, and the way of each call: a table of their parts, the
 * variant, the number of workgroups.
 *
 * The variant is the first of these that is set: the call's option, IRIS_CCL,
 * the tuning file's first rule that fits, the table below. Members compare
 * their variants in the call's first meeting. The tuning file is read once for
 * a context, by the first collective.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/ccl_args.h>

#include "ccl/ccl.h"
#include "context/context.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * A table of the collectives: name, parts, variants and kinds of packets of
 * each.
 */

#define COPIED (IRIS_CCL_ON_HEAP | IRIS_CCL_ROWS | IRIS_CCL_STAGES)
#define ADDED (IRIS_CCL_ON_HEAP | IRIS_CCL_BY_NAME)
#define ADDED_APART (ADDED | IRIS_CCL_APART | IRIS_CCL_ONLY_SUM)

const struct iris_ccl_kind iris_i_ccl_kinds[IRIS_CCL_NUM_OPS] = {
    [IRIS_CCL_ALL_REDUCE] = {.name = "iris_all_reduce",
                             .rule_name = "all_reduce",
                             .reduces = 1,
                             .exchange = IRIS_CCL_REDUCE_ONE,
                             .variants = {{IRIS_CCL_ONE_SHOT,
                                           IRIS_CCL_ON_HEAP | IRIS_CCL_APART},
                                          {IRIS_CCL_TWO_SHOT, COPIED},
                                          {IRIS_CCL_ONE_SHOT_PACKET, 0},
                                          {IRIS_CCL_TWO_SHOT_PACKET, 0},
                                          {IRIS_CCL_ATOMIC, ADDED_APART},
                                          {IRIS_CCL_SPINLOCK, ADDED_APART},
                                          {IRIS_CCL_RING, ADDED}}},
    [IRIS_CCL_ALL_GATHER] = {.name = "iris_all_gather",
                             .rule_name = "all_gather",
                             .out_parts = 1,
                             .exchange = IRIS_CCL_GATHER,
                             .variants = {{IRIS_CCL_PUSH, COPIED},
                                          {IRIS_CCL_PULL, COPIED},
                                          {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_REDUCE_SCATTER] = {.name = "iris_reduce_scatter",
                                 .rule_name = "reduce_scatter",
                                 .reduces = 1,
                                 .in_parts = 1,
                                 .exchange = IRIS_CCL_REDUCE_PARTS,
                                 .variants = {{IRIS_CCL_DIRECT, COPIED},
                                              {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_ALL_TO_ALL] =
        {.name = "iris_all_to_all",
         .rule_name = "all_to_all",
         .in_parts = 1,
         .out_parts = 1,
         .exchange = IRIS_CCL_SWAP,
         .variants = {{IRIS_CCL_PUSH, COPIED | IRIS_CCL_APART},
                      {IRIS_CCL_PULL, COPIED | IRIS_CCL_APART},
                      {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_BROADCAST] = {.name = "iris_ccl_broadcast",
                            .rule_name = "broadcast",
                            .has_root = 1,
                            .exchange = IRIS_CCL_SPREAD,
                            .variants = {{IRIS_CCL_PUSH, COPIED},
                                         {IRIS_CCL_PULL, COPIED},
                                         {IRIS_CCL_PACKET, 0}}},
    [IRIS_CCL_REDUCE] = {.name = "iris_reduce",
                         .reduces = 1,
                         .has_root = 1,
                         .exchange = IRIS_CCL_REDUCE_ONE,
                         .variants = {{IRIS_CCL_ONE_SHOT,
                                       IRIS_CCL_ON_HEAP | IRIS_CCL_APART},
                                      {IRIS_CCL_TWO_SHOT, COPIED},
                                      {IRIS_CCL_ONE_SHOT_PACKET, 0},
                                      {IRIS_CCL_TWO_SHOT_PACKET, 0}}},
    [IRIS_CCL_GATHER_TO] = {.name = "iris_gather", .has_root = 1, .pairs = 1},
    [IRIS_CCL_SCATTER_FROM] = {.name = "iris_scatter",
                               .has_root = 1,
                               .pairs = 1},
    [IRIS_CCL_ALL_GATHERV] = {.name = "iris_all_gatherv", .pairs = 1},
    [IRIS_CCL_ALL_TO_ALLV] = {.name = "iris_all_to_allv", .pairs = 1},
    [IRIS_CCL_SEND] = {.name = "iris_send", .pairs = 1},
    [IRIS_CCL_RECV] = {.name = "iris_recv", .pairs = 1},
    [IRIS_CCL_SEND_RECV] = {.name = "iris_send_recv", .pairs = 1},
};

/* ---------------------------------------------------------------------------
 * Chooses how a collective is done: the variant that the call or the
 * environment asks for, else the table's; and the number of workgroups.
 */

/* The default choice: the first row that fits. The file choices has these rows
 * as iris bench --tune writes them. */
#define ANY_BYTES SIZE_MAX
#define ANY_MEMBERS INT32_MAX
static const struct iris_ccl_rule table[] = {
#include "src/ccl/choices.inc"
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

iris_ccl_variant_t iris_i_ccl_set_variant(const iris_t *iris,
                                          enum iris_ccl_op op)
{
    const char *name = iris_i_ccl_kinds[op].rule_name;
    size_t length = strlen(name);
    iris_ccl_variant_t variant = IRIS_CCL_AUTO;

    for (const char *c = iris_i_settings(iris)->ccl.text; *c != '\0';
         c += strcspn(c, ","), c += *c == ',') {
        if (strncmp(c, name, length) != 0 || c[length] != '=') {
            continue;
        }
#define ROW(NAME, value, word)                               \
    if (strncmp(c + length + 1, word, strlen(word)) == 0 &&  \
        strchr(",", c[length + 1 + strlen(word)]) != NULL) { \
        variant = IRIS_CCL_##NAME;                           \
    }
        IRIS_CCL_VARIANT_ROWS(ROW)
#undef ROW
    }
    return variant;
}

/* The variant that the call asks for, else the setting's. */
static iris_ccl_variant_t find_asked(const iris_t *iris,
                                     const struct iris_ccl_call *call)
{
    const struct iris_ccl_options *options = &call->options;
    const iris_ccl_variant_t of[IRIS_CCL_NUM_OPS] = {
        options->all_reduce, options->all_gather, options->reduce_scatter,
        options->all_to_all, options->broadcast};
    enum iris_ccl_op op = ruled_as(call);

    return of[op] != IRIS_CCL_AUTO ? of[op] : iris_i_ccl_set_variant(iris, op);
}

/* The variant's requirements on buffers; -1: the collective has no such
 * variant. */
static int find_needs(enum iris_ccl_op op, iris_ccl_variant_t variant)
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
static int may_stage(const iris_t *iris, const struct iris_ccl_call *call)
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

static int meets_needs(const struct iris_ccl_call *call, int needs)
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
static iris_ccl_variant_t choose_last(enum iris_ccl_op op)
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

iris_ccl_variant_t iris_i_ccl_table_variant(enum iris_ccl_op op, int gpu,
                                            int members, size_t bytes)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (is_for(&table[i], op, gpu, members, bytes)) {
            return table[i].variant;
        }
    }
    return choose_last(op);
}

/* Whether a rule's variant can do the call. Members' buffers may differ, but
 * their variants may not. So on a CPU, variants that need the heap are used
 * only on request. */
static int serves_call(const iris_t *iris, const struct iris_ccl_call *call,
                       iris_ccl_variant_t variant)
{
    int needed = find_needs(call->op, variant);

    return meets_needs(call, needed) &&
           (on_gpu(iris) || !(needed & IRIS_CCL_ON_HEAP) ||
            (needed & IRIS_CCL_STAGES) || call->options.rows != 0);
}

/* The first rule whose variant can do the call, or that refers to the table;
 * NULL: none. */
static const struct iris_ccl_rule *find_rule(const iris_t *iris,
                                             const struct iris_ccl_call *call,
                                             const struct iris_ccl_rule *rules,
                                             size_t count)
{
    const enum iris_ccl_op op = ruled_as(call);
    const int gpu = on_gpu(iris);
    const int members = call->group->members.count;
    const size_t bytes = call->options.rows == 0 ? call->bytes : ANY_BYTES;

    for (size_t i = 0; i < count; i++) {
        if (is_for(&rules[i], op, gpu, members, bytes) &&
            (rules[i].variant == IRIS_CCL_AUTO ||
             serves_call(iris, call, rules[i].variant))) {
            return &rules[i];
        }
    }
    return NULL;
}

/* The tuning file's rule. NULL: there is no rule for this call and its buffers,
 * or the rule refers to the table. */
static const struct iris_ccl_rule *find_tuned(const iris_t *iris,
                                              const struct iris_ccl_call *call)
{
    const struct iris_ccl *ccl = iris_i_ccl_of(iris);
    const struct iris_ccl_tuning *tuning = ccl == NULL ? NULL : ccl->tuning;
    const struct iris_ccl_rule *rule =
        tuning == NULL ? NULL
                       : find_rule(iris, call, tuning->rules, tuning->count);

    return rule != NULL && rule->variant != IRIS_CCL_AUTO ? rule : NULL;
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

/* `rule` is the table's. */
static iris_ccl_variant_t choose_default(const iris_t *iris,
                                         const struct iris_ccl_call *call,
                                         const struct iris_ccl_rule *rule)
{
    iris_ccl_variant_t variant =
        rule != NULL ? rule->variant : choose_last(call->op);

    if (call->options.rows != 0) { /* the only variant, possible or not */
        return iris_i_ccl_table_variant(ruled_as(call), on_gpu(iris),
                                        call->group->members.count, ANY_BYTES);
    }
    /* Packets in several steps are the last resort: each step waits for all
     * members. */
    if (ruled_as(call) == IRIS_CCL_ALL_REDUCE &&
        ((call->on_heap && !call->by_packets) || call->stages) &&
        call->bytes > iris_i_ccl_step_bytes(call, variant)) {
        return IRIS_CCL_TWO_SHOT;
    }
    return variant;
}

/* The most workgroups for a call. */
static int max_cus(const iris_t *iris, const struct iris_ccl_call *call)
{
    return call->workspace == NULL ? iris_i_device(iris)->num_cus
                                   : call->workspace->max_cus;
}

static void choose_best(const iris_t *iris, struct iris_ccl_call *call)
{
    const struct iris_ccl_rule *tuned = find_tuned(iris, call);
    const struct iris_ccl_rule *rule =
        tuned != NULL
            ? tuned
            : find_rule(iris, call, table, sizeof table / sizeof *table);

    call->variant =
        tuned != NULL ? tuned->variant : choose_default(iris, call, rule);
    if (rule != NULL && rule->variant == call->variant && call->cus == 0) {
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
    iris_ccl_variant_t variant = find_asked(iris, call);
    int needed = find_needs(call->op, variant);

    call->stages = may_stage(iris, call);
    call->by_packets =
        on_gpu(iris) && iris_i_ccl_kinds[call->op].reduces && is_float8(call);
    if (call->op == IRIS_CCL_REDUCE && needed < 0 &&
        find_needs(IRIS_CCL_ALL_REDUCE, variant) >= 0) {
        variant = IRIS_CCL_AUTO; /* a variant that does not keep the order */
    }
    if (variant == IRIS_CCL_AUTO) {
        choose_best(iris, call);
        variant = call->variant;
        needed = find_needs(call->op, variant);
    }
    if (needed < 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: it has no variant %s (%d); pass one that "
                           "iris/ccl.h lists for it, or IRIS_CCL_AUTO",
                           call->name, iris_ccl_variant_name(variant),
                           (int)variant);
    }
    if (!meets_needs(call, needed)) {
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

/* ---------------------------------------------------------------------------
 * The tuning file: the best variants on this machine, one on each line.
 * docs/collectives.md has its format.
 */

enum { FIELDS = 6 };
#define FORMAT 2 /* a file without a format line has format 1 */
#define FIELD_BYTES 32

struct line {
    const char *path;
    int number;
    char fields[FIELDS + 1][FIELD_BYTES]; /* one more than allowed */
};

static iris_status_t reject_field(const iris_t *iris, const struct line *line,
                                  const char *field, const char *accepts)
{
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                       "IRIS_CCL_TUNING: %s:%d: '%s' is not %s", line->path,
                       line->number, field, accepts);
}

/* A number, or `any`, which means the maximum `most`. */
static int parse_number(const char *text, size_t most, size_t *number_p)
{
    char *end;
    unsigned long long number;

    if (strcmp(text, "any") == 0) {
        *number_p = most;
        return 1;
    }
    errno = 0;
    number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        number > most) {
        return 0;
    }
    *number_p = (size_t)number;
    return 1;
}

static iris_status_t parse_device(const iris_t *iris, const struct line *line,
                                  int *on_gpu_p)
{
    *on_gpu_p = strcmp(line->fields[1], "gpu") == 0;
    return *on_gpu_p || strcmp(line->fields[1], "cpu") == 0
               ? IRIS_OK
               : reject_field(iris, line, line->fields[1],
                              "a device: gpu or cpu");
}

/* "=4": exactly four members. "4": one to four. */
static iris_status_t parse_members(const iris_t *iris, const struct line *line,
                                   struct iris_ccl_rule *rule_p)
{
    const char *text = line->fields[2];
    size_t members;

    if (!parse_number(text + (text[0] == '='), INT_MAX, &members) ||
        members == 0 || strcmp(text, "=any") == 0) {
        return reject_field(
            iris, line, text,
            "a number of members: 1 or more, or any; with = ahead "
            "of it: no fewer");
    }
    rule_p->members = text[0] == '=' ? -(int)members : (int)members;
    return IRIS_OK;
}

static iris_status_t parse_way(const iris_t *iris, const struct line *line,
                               struct iris_ccl_rule *rule_p)
{
    const char(*fields)[FIELD_BYTES] = line->fields;
    size_t cus;

    if (!parse_number(fields[3], SIZE_MAX, &rule_p->bytes)) {
        return reject_field(iris, line, fields[3], "a number of bytes, or any");
    }
    rule_p->variant = iris_i_ccl_find_variant(rule_p->op, fields[4]);
    if (rule_p->variant == IRIS_CCL_AUTO && strcmp(fields[4], "auto") != 0) {
        return reject_field(iris, line, fields[4],
                            "auto, or a variant of it that keeps the order of "
                            "addition (docs/collectives.md)");
    }
    if (!parse_number(fields[5], INT_MAX, &cus) || cus == INT_MAX) {
        return reject_field(
            iris, line, fields[5],
            "a number of workgroups, 0 for as many as are worth it");
    }
    rule_p->cus = (int)cus;
    return IRIS_OK;
}

static iris_status_t parse_rule(const iris_t *iris, const struct line *line,
                                struct iris_ccl_rule *rule_p)
{
    int op = iris_i_ccl_find_op(line->fields[0]);
    iris_status_t status;

    if (op < 0) {
        return reject_field(
            iris, line, line->fields[0],
            "format or a collective: all_reduce, all_gather, "
            "reduce_scatter, all_to_all or broadcast; write the "
            "file anew with iris bench --tune");
    }
    rule_p->op = (enum iris_ccl_op)op;
    status = parse_device(iris, line, &rule_p->on_gpu);
    if (status == IRIS_OK) {
        status = parse_members(iris, line, rule_p);
    }
    return status == IRIS_OK ? parse_way(iris, line, rule_p) : status;
}

static void mix_hash(struct iris_ccl_tuning *tuning, const uint64_t *words,
                     size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tuning->hash = (tuning->hash ^ words[i]) * 0xd6e8feb86659fd93u;
        tuning->hash ^= tuning->hash >> 32;
    }
}

static iris_status_t add_rule(const iris_t *iris,
                              const struct iris_ccl_rule *rule,
                              struct iris_ccl_tuning *tuning)
{
    const uint64_t words[] = {(uint64_t)rule->op,      (uint64_t)rule->on_gpu,
                              (uint64_t)rule->members, rule->bytes,
                              (uint64_t)rule->variant, (uint64_t)rule->cus};
    struct iris_ccl_rule *rules =
        realloc(tuning->rules, (tuning->count + 1) * sizeof *rules);

    if (rules == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "no memory for the rules of IRIS_CCL_TUNING");
    }
    rules[tuning->count++] = *rule;
    tuning->rules = rules;
    mix_hash(tuning, words, sizeof words / sizeof words[0]);
    return IRIS_OK;
}

/* "format 2". A later version's --tune may write another number. */
static iris_status_t check_format(const iris_t *iris, const struct line *line)
{
    size_t format;

    return parse_number(line->fields[1], INT_MAX, &format) && format >= 1 &&
                   format <= FORMAT
               ? IRIS_OK
               : iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                             "IRIS_CCL_TUNING: %s:%d: format '%s' is of "
                             "another version of Iris; this one reads 1 to "
                             "%d: write the file anew with iris bench --tune",
                             line->path, line->number, line->fields[1], FORMAT);
}

/* One line without its comment: a rule, the format, or nothing. */
static iris_status_t take_line(const iris_t *iris, struct line *line,
                               char *text, struct iris_ccl_tuning *tuning)
{
    static const char blanks[] = " \t\r\n";
    struct iris_ccl_rule rule = {0};
    char *rest = text, *field;
    iris_status_t status;
    int count = 0;

    text[strcspn(text, "#")] = '\0';
    while (count <= FIELDS && (field = strsep(&rest, blanks)) != NULL) {
        if (field[0] != '\0') {
            snprintf(line->fields[count++], FIELD_BYTES, "%s", field);
        }
    }
    if (count == 0) {
        return IRIS_OK;
    }
    if (count == 2 && strcmp(line->fields[0], "format") == 0) {
        return check_format(iris, line);
    }
    if (count != FIELDS) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                           "IRIS_CCL_TUNING: %s:%d: %d words or more; a rule "
                           "has %d: op device members bytes variant cus",
                           line->path, line->number, count, FIELDS);
    }
    status = parse_rule(iris, line, &rule);
    return status == IRIS_OK ? add_rule(iris, &rule, tuning) : status;
}

static iris_status_t read_file(const iris_t *iris,
                               struct iris_ccl_tuning *tuning_p)
{
    struct line line = {.path = iris_i_settings(iris)->ccl_tuning.text};
    iris_status_t status = IRIS_OK;
    char *text = NULL;
    size_t bytes = 0;
    FILE *file;

    if (line.path[0] == '\0') {
        return IRIS_OK;
    }
    file = fopen(line.path, "re");
    if (file == NULL) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                           "IRIS_CCL_TUNING: %s cannot be opened: %s; name a "
                           "file that iris bench --tune wrote, or unset it",
                           line.path, strerror(errno));
    }
    while (status == IRIS_OK && getline(&text, &bytes, file) >= 0) {
        line.number++;
        status = take_line(iris, &line, text, tuning_p);
    }
    if (status == IRIS_OK && ferror(file)) {
        status = iris_i_fail(iris_i_log(iris), IRIS_ERR_CONFIG,
                             "IRIS_CCL_TUNING: %s cannot be read: %s; name a "
                             "file that iris bench --tune wrote, or unset it",
                             line.path, strerror(errno));
    }
    free(text);
    fclose(file);
    return status;
}

static void close_tuning(struct iris_extension *extension)
{
    struct iris_ccl_tuning *tuning = (struct iris_ccl_tuning *)extension;

    free(tuning->rules);
    free(tuning);
}

iris_status_t iris_i_ccl_tuning(iris_t *iris, struct iris_ccl_tuning **tuning_p)
{
    struct iris_ccl_tuning *tuning =
        (struct iris_ccl_tuning *)iris_i_extension(iris, IRIS_EXTENSION_TUNING);
    iris_status_t status;

    if (tuning == NULL) {
        tuning = calloc(1, sizeof *tuning);
        if (tuning == NULL) {
            return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                               "no memory for the rules of IRIS_CCL_TUNING");
        }
        tuning->extension.close = close_tuning;
        status = read_file(iris, tuning);
        if (status != IRIS_OK) {
            close_tuning(&tuning->extension);
            return status;
        }
        iris_i_extend(iris, IRIS_EXTENSION_TUNING, &tuning->extension);
    }
    *tuning_p = tuning;
    return IRIS_OK;
}
