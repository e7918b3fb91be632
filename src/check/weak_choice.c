/* SPDX-License-Identifier: MIT
 *
 * Choices by a seed or as a file says, and the file of those that were made.
 */
#include "config.h"

#include "check/weak_choice.h"

#include "base/error.h"

#include <errno.h>
#include <stdlib.h>

/* A choice that is not 0. */
struct iris_weak_decision {
    uint64_t number;
    unsigned value;
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

static unsigned as_told(struct iris_weak_choices *choices, uint64_t number,
                        unsigned count)
{
    while (choices->next_follow < choices->num_follow &&
           choices->follow[choices->next_follow].number < number) {
        choices->next_follow++;
    }
    return choices->next_follow < choices->num_follow &&
                   choices->follow[choices->next_follow].number == number
               ? choices->follow[choices->next_follow].value % count
               : 0;
}

unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            enum iris_weak_choice choice, unsigned count)
{
    uint64_t number;
    unsigned value;

    if (count <= 1 || (choices->newest && choice == IRIS_WEAK_READ)) {
        return 0;
    }
    number = ++choices->num_decisions;
    value = choices->follow == NULL ? by_chance(choices, choice, count)
                                    : as_told(choices, number, count);
    if (choices->record != NULL && value != 0) {
        fprintf(choices->record, "%s %llu %u %u\n",
                choice == IRIS_WEAK_READ ? "read" : "turn",
                (unsigned long long)number, value, count);
        fflush(choices->record);
    }
    return value;
}

/* ---- Files ---- */

/* Lines of other words tell people what happened. */
static iris_status_t read_choices(struct iris_weak_choices *choices,
                                  const char *path)
{
    FILE *file = fopen(path, "re");
    size_t max = 16;
    char line[512];

    if (file == NULL) {
        return iris_i_fail_errno(NULL, IRIS_ERR_CONFIG, errno,
                                 "IRIS_REPLAY: cannot read %s", path);
    }
    choices->follow = malloc(max * sizeof *choices->follow);
    while (choices->follow != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long long number;
        unsigned value;

        if (sscanf(line, "turn %llu %u", &number, &value) != 2 &&
            sscanf(line, "read %llu %u", &number, &value) != 2) {
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
            choices->follow[choices->num_follow++] =
                (struct iris_weak_decision){number, value};
        }
    }
    fclose(file);
    return choices->follow != NULL
               ? IRIS_OK
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
        iris_status_t status = read_choices(choices, params->follow);

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
    fprintf(choices->record, "schedule seed %llu\n",
            (unsigned long long)params->seed);
    return IRIS_OK;
}

void iris_i_weak_choices_close(struct iris_weak_choices *choices)
{
    if (choices->record != NULL) {
        int failed = ferror(choices->record);

        if (fclose(choices->record) != 0 || failed) {
            iris_i_warning(NULL, "IRIS_SCHEDULE: the file is not complete; "
                                 "is the disk full?");
        }
    }
    free(choices->follow);
}
