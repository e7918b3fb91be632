/* SPDX-License-Identifier: MIT
 *
 * Choices from a seed or from a file, and the recorded file of choices.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/check.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Identifies the nth turn after one of the workgroup's, or the workgroup's nth
 * read with a choice. So a choice keeps its name if others are left out. */
struct iris_weak_decision {
    bool is_read;
    struct iris_weak_who who;
    uint64_t nth;
    struct iris_weak_who next; /* of a turn */
    unsigned behind;           /* for a read: number of newer writes */
};

struct iris_weak_count {
    struct iris_weak_who who;
    uint64_t of[2]; /* counts of turns and of reads */
};

/* A choice of a script. */
struct iris_weak_step {
    bool is_read;
    struct iris_weak_who next;
    unsigned behind;
};

static uint64_t next_random(struct iris_weak_choices *choices)
{
    uint64_t z = choices->random += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static unsigned by_chance(struct iris_weak_choices *choices,
                          enum iris_weak_choice choice, unsigned count)
{
    unsigned one_in = choice == IRIS_WEAK_GO_ON  ? choices->stay
                      : choice == IRIS_WEAK_READ ? 2
                                                 : 1;

    if (next_random(choices) % one_in != 0) {
        return 0;
    }
    return choice == IRIS_WEAK_TURN
               ? (unsigned)(next_random(choices) % count)
               : 1 + (unsigned)(next_random(choices) % (count - 1));
}

static int compare_who(struct iris_weak_who a, struct iris_weak_who b)
{
    return a.rank != b.rank ? (a.rank > b.rank) - (a.rank < b.rank)
           : a.stream != b.stream
               ? (a.stream > b.stream) - (a.stream < b.stream)
               : (a.workgroup > b.workgroup) - (a.workgroup < b.workgroup);
}

/* The number of the decision among the workgroup's, from 1. */
static uint64_t count(struct iris_weak_choices *choices,
                      struct iris_weak_who who, bool is_read)
{
    struct iris_weak_count *counts = choices->counts;
    size_t i = 0;

    while (i < choices->num_counts && compare_who(counts[i].who, who) != 0) {
        i++;
    }
    if (i == choices->num_counts) {
        counts = realloc(counts, (i + 1) * sizeof *counts);
        if (counts == NULL) {
            return 0;
        }
        counts[i] = (struct iris_weak_count){.who = who};
        choices->counts = counts;
        choices->num_counts++;
    }
    return ++counts[i].of[is_read];
}

static int compare(const void *left, const void *right)
{
    const struct iris_weak_decision *a = left, *b = right;
    int who = compare_who(a->who, b->who);

    return a->is_read != b->is_read ? a->is_read - b->is_read
           : who != 0               ? who
                                    : (a->nth > b->nth) - (a->nth < b->nth);
}

/* The index of the workgroup in the line; 0: it does not wait for its turn. */
static unsigned index_of(const struct iris_weak_question *question,
                         struct iris_weak_who who)
{
    unsigned i = question->count;

    while (i > 0 && compare_who(question->next[i - 1], who) != 0) {
        i--;
    }
    return i == 0 ? 0 : i - 1;
}

static unsigned as_told(const struct iris_weak_choices *choices,
                        const struct iris_weak_question *question, uint64_t nth)
{
    const struct iris_weak_decision key = {
        .is_read = question->next == NULL, .who = question->who, .nth = nth};
    const struct iris_weak_decision *told = bsearch(
        &key, choices->follow, choices->num_follow, sizeof key, compare);

    if (told == NULL) {
        return 0;
    }
    return told->is_read ? (told->behind < question->count ? told->behind : 0)
                         : index_of(question, told->next);
}

/* The script's answer. */
static unsigned explore(struct iris_weak_choices *choices,
                        const struct iris_weak_question *question)
{
    const struct iris_weak_step *step =
        choices->next_script < choices->num_script
            ? &choices->script[choices->next_script]
            : NULL;

    if (step == NULL || step->is_read != (question->next == NULL)) {
        return 0;
    }
    choices->next_script++;
    return !step->is_read                   ? index_of(question, step->next)
           : step->behind < question->count ? step->behind
                                            : 0;
}

/* Records every answer, together with the possible ones. */
static void record_step(FILE *file, const struct iris_weak_question *question,
                        unsigned answer)
{
    const struct iris_weak_who *next = question->next;

    if (next == NULL) {
        fprintf(file, "step old %u of %u\n", answer, question->count);
        return;
    }
    fprintf(file, "step run %d %u %u of", next[answer].rank,
            next[answer].stream, next[answer].workgroup);
    for (unsigned i = 0; i < question->count; i++) {
        fprintf(file, " %d %u %u,", next[i].rank, next[i].stream,
                next[i].workgroup);
    }
    fprintf(file, "\n");
}

void iris_i_weak_early(const struct iris_weak_choices *choices)
{
    if (choices->record != NULL) {
        fprintf(choices->record, "early\n");
    }
}

void iris_i_weak_tell(const struct iris_weak_choices *choices, const char *text)
{
    if (choices->explores && choices->record != NULL) {
        fprintf(choices->record, "step %s\n", text);
    }
}

static void record(FILE *file, const struct iris_weak_question *question,
                   uint64_t nth, unsigned answer)
{
    const struct iris_weak_who *who = &question->who, *next;

    fprintf(file, "%s %d %u %u %llu ", question->next == NULL ? "read" : "turn",
            who->rank, who->stream, who->workgroup, (unsigned long long)nth);
    if (question->next == NULL) {
        fprintf(file, "old %u of %u\n", answer, question->count);
    } else {
        next = &question->next[answer];
        fprintf(file, "to %d %u %u\n", next->rank, next->stream,
                next->workgroup);
    }
}

unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            const struct iris_weak_question *question)
{
    unsigned answer = choices->explores ? explore(choices, question) : 0;
    uint64_t nth;

    if (choices->explores && choices->record != NULL) {
        record_step(choices->record, question, answer);
    }
    if (question->count <= 1 ||
        (choices->newest && question->choice == IRIS_WEAK_READ)) {
        return 0;
    }
    choices->num_decisions++;
    nth = count(choices, question->who, question->next == NULL);
    if (!choices->explores) {
        answer = choices->follow == NULL
                     ? by_chance(choices, question->choice, question->count)
                     : as_told(choices, question, nth);
    }
    if (choices->record != NULL && answer != 0) {
        record(choices->record, question, nth, answer);
    }
    return answer;
}

/* ---- Files ---- */

static const char *check_of(const struct iris_weak_choices_params *params)
{
    return params->newest ? "race" : "weak";
}

/* Whether the first line of a file has this program's name, number of ranks and
 * check. */
static iris_status_t
compare_header(const struct iris_weak_choices_params *params, const char *line)
{
    char check[16], program[256];
    int ranks;

    if (sscanf(line, "schedule seed %*u check %15s ranks %d program %255[^\n]",
               check, &ranks, program) != 3 ||
        (strcmp(check, check_of(params)) == 0 && ranks == params->num_ranks &&
         strcmp(program, program_invocation_short_name) == 0)) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "IRIS_REPLAY: %s was recorded by %s with %d ranks and "
                       "IRIS_CHECK=%s; this is %s with %d ranks and "
                       "IRIS_CHECK=%s",
                       params->follow, program, ranks, check,
                       program_invocation_short_name, params->num_ranks,
                       check_of(params));
}

static bool read_decision(const char *line, struct iris_weak_decision *told)
{
    unsigned long long nth;

    *told = (struct iris_weak_decision){.is_read = line[0] == 'r'};
    if (sscanf(line, "turn %d %u %u %llu to %d %u %u", &told->who.rank,
               &told->who.stream, &told->who.workgroup, &nth, &told->next.rank,
               &told->next.stream, &told->next.workgroup) != 7 &&
        sscanf(line, "read %d %u %u %llu old %u", &told->who.rank,
               &told->who.stream, &told->who.workgroup, &nth,
               &told->behind) != 5) {
        return false;
    }
    told->nth = nth;
    return true;
}

/* A line of a script: "step run 0 0 0", "step old 1". */
static void read_step(struct iris_weak_choices *choices, const char *line)
{
    struct iris_weak_step step = {
        .is_read = sscanf(line, "step old %u", &step.behind) == 1};
    struct iris_weak_step *larger;

    if (!step.is_read && sscanf(line, "step run %d %u %u", &step.next.rank,
                                &step.next.stream, &step.next.workgroup) != 3) {
        return;
    }
    larger = realloc(choices->script,
                     (choices->num_script + 1) * sizeof *choices->script);
    if (larger != NULL) {
        choices->script = larger;
        choices->script[choices->num_script++] = step;
    }
}

/* Lines with other words are for people. */
static iris_status_t read_choices(struct iris_weak_choices *choices,
                                  const struct iris_weak_choices_params *params)
{
    const char *path = params->follow;
    iris_status_t status = IRIS_OK;
    FILE *file = fopen(path, "re");
    size_t max = 16;
    char line[512];

    if (file == NULL) {
        return iris_i_fail_errno(NULL, IRIS_ERR_CONFIG, errno,
                                 "IRIS_REPLAY: cannot read %s", path);
    }
    choices->follow = malloc(max * sizeof *choices->follow);
    while (choices->follow != NULL && fgets(line, sizeof line, file) != NULL) {
        struct iris_weak_decision told;

        if (strncmp(line, "schedule ", 9) == 0) {
            status = compare_header(params, line);
        }
        choices->explores |= strcmp(line, "explore\n") == 0;
        read_step(choices, line);
        if (!read_decision(line, &told)) {
            continue;
        }
        if (choices->num_follow == max) {
            void *larger =
                realloc(choices->follow, (max *= 2) * sizeof *choices->follow);

            if (larger == NULL) {
                free(choices->follow);
            }
            choices->follow = larger;
        }
        if (choices->follow != NULL) {
            choices->follow[choices->num_follow++] = told;
        }
    }
    fclose(file);
    if (choices->follow != NULL) {
        qsort(choices->follow, choices->num_follow, sizeof *choices->follow,
              compare);
    }
    return choices->follow != NULL
               ? status
               : iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                             "no memory for the choices in %s", path);
}

iris_status_t
iris_i_weak_choices_open(const struct iris_weak_choices_params *params,
                         struct iris_weak_choices *choices)
{
    choices->newest = params->newest;
    choices->random = params->seed;
    choices->stay = 1 + (unsigned)(next_random(choices) % 4);
    if (params->follow[0] != '\0') {
        iris_status_t status = read_choices(choices, params);

        if (status != IRIS_OK) {
            return status;
        }
    }
    if (params->record[0] == '\0') {
        return IRIS_OK;
    }
    choices->record = fopen(params->record, "we");
    if (choices->record == NULL) {
        return iris_i_fail_errno(NULL, IRIS_ERR_CONFIG, errno,
                                 "IRIS_SCHEDULE: cannot write %s",
                                 params->record);
    }
    /* After a crash, the file has complete lines. */
    setvbuf(choices->record, NULL, _IOLBF, 0);
    fprintf(choices->record,
            "schedule seed %llu check %s ranks %d program %s\n",
            (unsigned long long)params->seed, check_of(params),
            params->num_ranks, program_invocation_short_name);
    return IRIS_OK;
}

void iris_i_weak_choices_close(struct iris_weak_choices *choices)
{
    if (choices->record != NULL) {
        int failed;

        fprintf(choices->record, "end %llu\n",
                (unsigned long long)choices->num_decisions);
        failed = ferror(choices->record);
        if (fclose(choices->record) != 0 || failed) {
            iris_i_warning(NULL, "IRIS_SCHEDULE: the file is not complete; "
                                 "is the disk full?");
        }
    }
    free(choices->follow);
    free(choices->counts);
    free(choices->script);
}
