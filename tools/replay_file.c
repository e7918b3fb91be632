/* SPDX-License-Identifier: MIT
 *
 * Reads and writes schedules. src/check/weak_choice.c and weak_note.c record
 * them.
 */
#include "config.h"

#include "replay_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_FIELDS 14 /* fields in the line of an operation */

void *replay_alloc(void *old, size_t bytes)
{
    void *memory = realloc(old, bytes == 0 ? 1 : bytes);

    if (memory == NULL) {
        fprintf(stderr, "iris replay: no memory\n");
        exit(2);
    }
    return memory;
}

void *replay_grow(void *items, size_t count, size_t bytes)
{
    bool is_full = count == 0 || (count >= 16 && (count & (count - 1)) == 0);

    return is_full ? replay_alloc(items, (count < 16 ? 16 : 2 * count) * bytes)
                   : items;
}

static char *read_text(const char *path, size_t *bytes_p)
{
    FILE *file = fopen(path, "re");
    size_t bytes = 0, got;
    char *text = NULL;

    if (file == NULL) {
        fprintf(stderr, "iris replay: %s: %s\n", path, strerror(errno));
        return NULL;
    }
    do {
        text = replay_alloc(text, bytes + 65536 + 1);
        got = fread(text + bytes, 1, 65536, file);
        bytes += got;
    } while (got != 0);
    text[bytes] = '\0';
    *bytes_p = bytes;
    if (ferror(file)) {
        fprintf(stderr, "iris replay: %s: %s\n", path, strerror(errno));
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* "read 7" or, without a value, "read -". */
static bool read_value(const char *field, const char *word, uint64_t *value_p)
{
    unsigned long long value;
    char name[8];

    if (sscanf(field, "%7s %llu", name, &value) != 2 ||
        strcmp(name, word) != 0) {
        return false;
    }
    *value_p = value;
    return true;
}

/* Parses a line "did", whose fields are separated by tabs. */
static bool read_op(char *line, struct replay_op *op)
{
    char *fields[NUM_FIELDS];
    int count = 0;

    for (char *at = line; at != NULL && count < NUM_FIELDS; count++) {
        fields[count] = at;
        at = strchr(at, '\t');
        if (at != NULL) {
            *at++ = '\0';
        }
    }
    if (count != NUM_FIELDS) {
        return false;
    }
    *op = (struct replay_op){.rank = atoi(fields[1]),
                             .workgroup = (unsigned)atoi(fields[2]),
                             .kernel = fields[3],
                             .target = atoi(fields[4]),
                             .offset = strtoull(fields[5], NULL, 10),
                             .bytes = strtoull(fields[6], NULL, 10),
                             .deed = fields[10],
                             .place = fields[11],
                             .code = strtoull(fields[12], NULL, 16),
                             .file = fields[13]};
    op->reads = read_value(fields[7], "read", &op->seen);
    op->writes = read_value(fields[8], "wrote", &op->written);
    return sscanf(fields[9], "old %u", &op->behind) == 1;
}

/* "step run 0 0 0 of 0 0 0, 1 0 0," */
static bool read_run(const char *line, struct replay_step *step)
{
    struct replay_who *who = &step->who;
    const char *at = strstr(line, " of");

    *step = (struct replay_step){0};
    if (at == NULL || sscanf(line, "step run %d %u %u", &who->rank,
                             &who->stream, &who->workgroup) != 3) {
        return false;
    }
    for (at += 3; *at != '\0'; at = strchr(at, ',') + 1) {
        who = &step->next[step->num_next];
        if (step->num_next == REPLAY_MOST_NEXT || strchr(at, ',') == NULL ||
            sscanf(at, "%d %u %u", &who->rank, &who->stream, &who->workgroup) !=
                3) {
            return false;
        }
        step->num_next++;
    }
    return true;
}

/* Parses another line about the latest step. */
static bool read_step(const char *line, struct replay_step *step)
{
    unsigned i = step->num_reads;

    step->begins |= strcmp(line, "step begins") == 0;
    step->leaves |= strcmp(line, "step leaves") == 0;
    step->fails |= strcmp(line, "step fails") == 0;
    step->spins |= strcmp(line, "step spins") == 0;
    step->is_own |= strcmp(line, "step own") == 0;
    if (strncmp(line, "step old", 8) == 0) {
        step->num_reads++;
        return i < REPLAY_MOST_READS &&
               sscanf(line, "step old %u of %u", &step->old[i],
                      &step->num_values[i]) == 2;
    }
    return true;
}

static bool read_line(struct replay_schedule *schedule, char *line)
{
    struct replay_step *last = schedule->num_steps == 0
                                   ? NULL
                                   : &schedule->steps[schedule->num_steps - 1];

    if (strncmp(line, "step run", 8) == 0) {
        schedule->steps = replay_grow(schedule->steps, schedule->num_steps,
                                      sizeof *schedule->steps);
        last = &schedule->steps[schedule->num_steps++];
        if (!read_run(line, last)) {
            return false;
        }
        last->first_op = schedule->num_ops;
        return true;
    }
    if (strncmp(line, "step ", 5) == 0) {
        return last != NULL && read_step(line, last);
    }

    if (strncmp(line, "did\t", 4) == 0) {
        schedule->ops = replay_grow(schedule->ops, schedule->num_ops,
                                    sizeof *schedule->ops);
        if (last != NULL) {
            last->num_ops++;
        }
        return read_op(line, &schedule->ops[schedule->num_ops++]);
    }
    if (strncmp(line, "turn ", 5) == 0 || strncmp(line, "read ", 5) == 0) {
        schedule->choices =
            replay_grow(schedule->choices, schedule->num_choices,
                        sizeof *schedule->choices);
        schedule->choices[schedule->num_choices++].text = line;
        return true;
    }
    if (strcmp(line, "early") == 0) {
        schedule->is_early = true;
        return true;
    }
    schedule->has_end |= strncmp(line, "end ", 4) == 0;
    return schedule->has_end;
}

static int read_lines(const char *path, struct replay_schedule *schedule,
                      char *line)
{
    size_t number = 1;
    char *end = strchr(line, '\n');

    if (sscanf(line, "schedule seed %llu check %15s ranks %d program %255[^\n]",
               &schedule->seed, schedule->check, &schedule->num_ranks,
               schedule->program) != 4) {
        fprintf(stderr,
                "iris replay: %s is no schedule; IRIS_SCHEDULE=FILE records "
                "one\n",
                path);
        return -1;
    }
    while (end != NULL && end[1] != '\0') {
        line = end + 1;
        end = strchr(line, '\n');
        number++;
        if (end != NULL) {
            *end = '\0';
        }
        if (end == NULL || !read_line(schedule, line)) {
            break;
        }
    }
    if (end == NULL || end[1] != '\0') {
        fprintf(stderr, "iris replay: %s is damaged or truncated in line %zu\n",
                path, number);
        return -1;
    }
    return 0;
}

int replay_open(const char *path, struct replay_schedule *schedule)
{
    size_t bytes;

    *schedule = (struct replay_schedule){.text = read_text(path, &bytes)};
    if (schedule->text == NULL) {
        return -1;
    }
    if (read_lines(path, schedule, schedule->text) != 0) {
        replay_close(schedule);
        return -1;
    }
    return 0;
}

void replay_close(struct replay_schedule *schedule)
{
    free(schedule->text);
    free(schedule->choices);
    free(schedule->ops);
    free(schedule->steps);
    *schedule = (struct replay_schedule){0};
}

int replay_write(const char *path, const struct replay_schedule *header,
                 const struct replay_choice *choices, size_t num_choices)
{
    FILE *file = fopen(path, "we");
    bool failed = file == NULL;

    if (!failed) {
        if (header->num_ranks != 0) {
            fprintf(file, "schedule seed %llu check %s ranks %d program %s\n",
                    header->seed, header->check, header->num_ranks,
                    header->program);
        }
        for (size_t i = 0; i < num_choices; i++) {
            fprintf(file, "%s\n", choices[i].text);
        }
        fprintf(file, "end %zu\n", num_choices);
        failed = ferror(file) != 0;
        failed |= fclose(file) != 0;
    }
    if (failed) {
        fprintf(stderr, "iris replay: cannot write %s: %s\n", path,
                strerror(errno));
    }
    return failed ? -1 : 0;
}

bool replay_is_same(const struct replay_op *a, const struct replay_op *b)
{
    return a->rank == b->rank && a->workgroup == b->workgroup &&
           a->target == b->target && a->offset == b->offset &&
           a->bytes == b->bytes && a->reads == b->reads &&
           a->writes == b->writes && a->seen == b->seen &&
           a->written == b->written && strcmp(a->deed, b->deed) == 0;
}
