/* SPDX-License-Identifier: MIT
 *
 * Prints litmus tests for herd7, in the language LISA; iris.bell and iris.cat have
 * the model.
 *
 *     herd FOLDER     writes each test to a file of its name
 *     herd            prints name and verdict of each test
 */
#include "litmus_run.h"

#include <stdbool.h>
#include <stdio.h>

static const char *word_of(const struct litmus_step *step)
{
    static const char *const names[LITMUS_WORDS] = {"x", "y", "f", "g"};

    return names[step->word];
}

/* In brackets: plain accesses have a scope, too, which has no effect. */
static const char *order_of(const struct litmus_step *step)
{
    static const char *const scopes[] = {
        [WG] = "wg", [AG] = "agent", [SYS] = "system"};
    static const char *const orders[] = {[RLX] = "relaxed",
                                         [ACQ] = "acquire",
                                         [REL] = "release",
                                         [AR] = "acq_rel"};
    static char text[32];
    bool is_plain = step->op == LITMUS_STORE || step->op == LITMUS_LOAD;

    snprintf(text, sizeof text, "[%s,%s]",
             is_plain ? "plain" : orders[step->sem], scopes[step->scope]);
    return text;
}

static bool is_half(const struct litmus_step *step)
{
    return step->op == LITMUS_SET_HALF || step->op == LITMUS_GET_HALF;
}

static bool reads(const struct litmus_step *step)
{
    return step->op == LITMUS_LOAD || step->op == LITMUS_GET ||
           step->op == LITMUS_GET_HALF || step->op == LITMUS_ADD ||
           step->op == LITMUS_EXCHANGE;
}

/* The next step of a test, or NULL; *at is 0 at first. */
static const struct litmus_step *next_step(const struct litmus_test *test,
                                           int *at, int *thread)
{
    *thread = *at / LITMUS_STEPS;
    return *thread == LITMUS_THREADS
               ? NULL
               : &test->threads[*thread].steps[(*at)++ % LITMUS_STEPS];
}

/* The model has words that are read and written as a whole, of 32 bits. */
static bool can_print(const struct litmus_test *test)
{
    const struct litmus_step *step;
    bool is_small = true;
    int at = 0, thread;

    while ((step = next_step(test, &at, &thread)) != NULL) {
        is_small &= step->value <= UINT32_MAX && !is_half(step);
    }
    return is_small;
}

/* `wait_reg` is the register of a wait, which sees the value that it waits for. */
static void print_step(FILE *out, const struct litmus_step *step, int wait_reg)
{
    const char *word = word_of(step), *order = order_of(step);
    unsigned long long value = step->value;

    switch (step->op) {
    case LITMUS_STORE:
    case LITMUS_SET:
    case LITMUS_SET_HALF:
        fprintf(out, "w%s %s %llu", order, word, value);
        break;
    case LITMUS_LOAD:
    case LITMUS_GET:
    case LITMUS_GET_HALF:
        fprintf(out, "r%s r%d %s", order, step->reg, word);
        break;
    case LITMUS_WAIT:
        fprintf(out, "r%s r%d %s", order, wait_reg, word);
        break;
    case LITMUS_ADD:
        fprintf(out, "rmw%s r%d (add r%d %llu) %s", order, step->reg, step->reg,
                value, word);
        break;
    case LITMUS_EXCHANGE:
        fprintf(out, "rmw%s r%d %llu %s", order, step->reg, value, word);
        break;
    case LITMUS_FENCE:
        fprintf(out, "f%s", order);
        break;
    case LITMUS_PUT_SIGNAL:
    case LITMUS_END:
        break;
    }
}

/* A thread's steps, with a put_signal as the two that it is. */
static int steps_of(const struct litmus_thread *thread,
                    struct litmus_step *steps)
{
    static const struct litmus_step put_signal[] = {ST(X, 1),
                                                    SET(F, 1, REL, SYS)};
    int count = 0;

    for (int i = 0; i < LITMUS_STEPS; i++) {
        if (thread->steps[i].op == LITMUS_PUT_SIGNAL) {
            steps[count++] = put_signal[0];
            steps[count++] = put_signal[1];
        } else if (thread->steps[i].op != LITMUS_END) {
            steps[count++] = thread->steps[i];
        }
    }
    return count;
}

static void print_programs(FILE *out, const struct litmus_test *test)
{
    struct litmus_step steps[LITMUS_THREADS][2 * LITMUS_STEPS] = {0};
    int threads = litmus_threads(test), rows = 0;

    for (int i = 0; i < threads; i++) {
        int count = steps_of(&test->threads[i], steps[i]);

        rows = count > rows ? count : rows;
        fprintf(out, "%s P%d", i == 0 ? "" : " |", i);
    }
    for (int row = 0; row < rows; row++) {
        fputs(";\n", out);
        for (int i = 0; i < threads; i++) {
            fputs(i == 0 ? " " : " | ", out);
            print_step(out, &steps[i][row], LITMUS_REGISTERS);
        }
    }
    fputs(";\n", out);
}

static void print_scopes(FILE *out, const struct litmus_test *test)
{
    fputs("scopes: (system", out);
    for (int rank = 0; rank < litmus_ranks(test); rank++) {
        bool is_open = false;

        for (int i = 0; i < litmus_threads(test); i++) {
            if (test->threads[i].rank == rank) {
                fprintf(out, "%s (wg P%d)", is_open ? "" : " (agent", i);
                is_open = true;
            }
        }
        fputs(is_open ? ")" : "", out);
    }
    fputs(")\n", out);
}

/* All registers; executions where a wait sees its value; the outcome. */
static void print_outcome(FILE *out, const struct litmus_test *test)
{
    const struct litmus_step *step;
    const char *before = "filter ";
    int at, thread;

    fputs("locations [", out);
    for (at = 0; (step = next_step(test, &at, &thread)) != NULL;) {
        if (reads(step)) {
            fprintf(out, "%d:r%d; ", thread, step->reg);
        }
    }
    fputs("]\n", out);
    for (at = 0; (step = next_step(test, &at, &thread)) != NULL;) {
        if (step->op == LITMUS_WAIT) {
            fprintf(out, "%s%d:r%d = %d", before, thread, LITMUS_REGISTERS,
                    (int)step->value);
            before = " /\\ ";
        }
    }
    before = "\nexists (";
    for (at = 0; (step = next_step(test, &at, &thread)) != NULL;) {
        if (reads(step) && test->outcome[step->reg] != LITMUS_ANY) {
            fprintf(out, "%s%d:r%d = %d", before, thread, step->reg,
                    (int)test->outcome[step->reg]);
            before = " /\\ ";
        }
    }
    fputs(")\n", out);
}

static int write_test(const char *folder, const char *name,
                      const struct litmus_test *test)
{
    char path[512];
    FILE *out;

    snprintf(path, sizeof path, "%s/%s.litmus", folder, name);
    out = fopen(path, "w");
    if (out == NULL) {
        perror(path);
        return 1;
    }
    fprintf(out, "LISA %s\n{ x = 0; y = 0; f = 0; g = 0; }\n", name);
    print_programs(out, test);
    print_scopes(out, test);
    print_outcome(out, test);
    return fclose(out) != 0;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 0; i < NUM_LITMUS; i++) {
        const struct litmus_test *test = &litmus_tests[i];
        char name[64], *blank;

        snprintf(name, sizeof name, "%s", test->name);
        while ((blank = strchr(name, ' ')) != NULL) {
            *blank = '_';
        }
        if (argc == 1) {
            printf("%s|%s|%s\n", test->name, name,
                   !can_print(test)             ? "left out"
                   : test->verdict == FORBIDDEN ? "Never"
                   : test->verdict == ALLOWED   ? "Sometimes"
                                                : "unseen");
        } else if (can_print(test)) {
            failed |= write_test(argv[1], name, test);
        }
    }
    return failed;
}
