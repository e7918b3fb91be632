/* SPDX-License-Identifier: MIT
 *
 * Settings: the program's argument, else the environment, else the default,
 * each with its origin.
 */
#ifndef IRIS_SRC_BASE_SETTINGS_H
#define IRIS_SRC_BASE_SETTINGS_H

#include <iris/context.h>

#define IRIS_SETTING_BYTES 512

enum iris_origin {
    IRIS_ORIGIN_DEFAULT,
    IRIS_ORIGIN_ENVIRONMENT,
    IRIS_ORIGIN_ARGUMENT,
};

/* Values of CHOICE settings that files other than their parser use: X(setting,
 * NAME, number, word). The number is the word's index among the choices in the
 * table of <iris/context.h>. */
/* clang-format off */
#define IRIS_CHOICE_ROWS(X)                                                    \
    X(allocator,      ALLOCATOR_POOL,           0, "pool")                     \
    X(allocator,      ALLOCATOR_TORCH,          1, "torch")                    \
    X(allocator,      ALLOCATOR_VMEM,           2, "vmem")                     \
    X(sim_device,     SIM_DEVICE_AUTO,          0, "auto")                     \
    X(sim_device,     SIM_DEVICE_CPU,           1, "cpu")                      \
    X(sim_device,     SIM_DEVICE_GPU,           2, "gpu")                      \
    X(check,          CHECK_NONE,               0, "none")                     \
    X(check,          CHECK_BOUNDS,             1, "bounds")                   \
    X(check,          CHECK_RACE,               2, "race")                     \
    X(check,          CHECK_WEAK,               3, "weak")                     \
    X(bootstrap,      BOOTSTRAP_AUTO,           0, "auto")                     \
    X(bootstrap,      BOOTSTRAP_MPI,            1, "mpi")                      \
    X(bootstrap,      BOOTSTRAP_ENV,            2, "env")                      \
    X(spawn,          SPAWN_THREADS,            0, "threads")                  \
    X(spawn,          SPAWN_PROCESSES,          1, "processes")                \
    X(transport,      TRANSPORT_AUTO,           0, "auto")                     \
    X(transport,      TRANSPORT_NONE,           1, "none")                     \
    X(transport,      TRANSPORT_SOCKET,         2, "socket")                   \
    X(transport,      TRANSPORT_MPI,            3, "mpi")                      \
    X(transport,      TRANSPORT_MPI_MESSAGES,   4, "mpi-messages")
/* clang-format on */

enum iris_choice {
#define IRIS_CHOICE_ENUM(setting, NAME, number, word) \
    IRIS_CHOICE_##NAME = number,
    IRIS_CHOICE_ROWS(IRIS_CHOICE_ENUM)
#undef IRIS_CHOICE_ENUM
};

/* One resolved value: text for STRING and CHOICE, else a number (its text is
 * the original spelling). For a CHOICE, the number is its index among the
 * choices, as in enum iris_choice. */
struct iris_setting {
    enum iris_origin origin;
    int64_t number;
    char text[IRIS_SETTING_BYTES];
};

struct iris_settings {
#define IRIS_SETTING_FIELD(field, kind, env, value, choices, help) \
    struct iris_setting field;
    IRIS_CONFIG_ROWS(IRIS_SETTING_FIELD)
#undef IRIS_SETTING_FIELD
};

/* One row of the table, for help texts. `setting` is NULL when there are no
 * settings to show. */
struct iris_setting_row {
    const char *env;
    const char *value; /* the default */
    const char *choices;
    const char *help;
    const struct iris_setting *setting;
};

/* Resolves every row; `config` may be NULL. IRIS_ERR_CONFIG names the first
 * variable or field that does not parse, and the values that it accepts.
 * *settings_p then holds the default for that row and is otherwise complete, so
 * that the rank can still find its peers and tell them. */
iris_status_t iris_i_settings_load(const struct iris_config *config,
                                   struct iris_settings *settings_p);

/* Row `i` of the table; 0 when there are no more. */
int iris_i_settings_row(const struct iris_settings *settings, size_t i,
                        struct iris_setting_row *row_p);

/* "default", "environment" or "argument". */
const char *iris_i_origin_string(enum iris_origin origin);

#endif /* IRIS_SRC_BASE_SETTINGS_H */
