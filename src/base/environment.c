/* SPDX-License-Identifier: MIT
 *
 * Misspelt variables: finds the nearest name of a setting.
 */
#include "config.h"

#include "base/base.h"

#include <ctype.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "IRIS_"

/* Longer names are cut: no setting's name is nearly as long. */
#define NAME_BYTES 48

/* Variables that are not the library's: those of the test suite, of the Python
 * package, of upstream, and of scripts/gpu-test. */
static int is_other(const char *name)
{
    return strncmp(name, "IRIS_TEST_", strlen("IRIS_TEST_")) == 0 ||
           strncmp(name, "IRIS_C_", strlen("IRIS_C_")) == 0 ||
           strcmp(name, "IRIS_UPSTREAM") == 0 ||
           strcmp(name, "IRIS_KERNEL_ARTIFACTS_DIR") == 0 ||
           strcmp(name, "IRIS_GPU_BUILD") == 0;
}

static int smallest(int a, int b, int c)
{
    int least = a < b ? a : b;

    return least < c ? least : c;
}

/* Characters to insert, delete or replace between `a` in upper case and `b`
 * (Levenshtein). */
static int distance(const char *a, const char *b)
{
    int row[NAME_BYTES + 1];
    int length = (int)strlen(b);

    for (int j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (int i = 1; a[i - 1] != '\0'; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int replaced =
                diagonal + (toupper((unsigned char)a[i - 1]) != b[j - 1]);

            diagonal = row[j];
            row[j] = smallest(row[j] + 1, row[j - 1] + 1, replaced);
        }
    }
    return row[length];
}

/* The setting that needs the fewest changes, at most a third of the name. If
 * the name is a setting, that setting. NULL: no setting is similar. */
static const char *nearest(const char *name)
{
    struct iris_setting_row row;
    const char *best = NULL;
    int least = (int)strlen(name) / 3 + 1;

    for (size_t i = 0; iris_i_settings_row(NULL, i, &row); i++) {
        if (strcmp(name, row.env) == 0) {
            return row.env;
        }
    }
    for (size_t i = 0; iris_i_settings_row(NULL, i, &row); i++) {
        int changes = distance(name, row.env);

        if (changes < least) {
            least = changes;
            best = row.env;
        }
    }
    return best;
}

/* Whether the entry of the environment looks like a setting but is not one. If
 * so, gives its name and the nearest setting. An empty variable counts as
 * unset. */
static int is_unknown(const char *variable, char name[NAME_BYTES + 1],
                      const char **nearest_p)
{
    size_t length = strcspn(variable, "=");

    if (strncmp(variable, PREFIX, strlen(PREFIX)) != 0 ||
        variable[length] == '\0' || variable[length + 1] == '\0') {
        return 0;
    }
    length = length < NAME_BYTES ? length : NAME_BYTES;
    memcpy(name, variable, length);
    name[length] = '\0';
    *nearest_p = nearest(name);
    return (*nearest_p == NULL || strcmp(*nearest_p, name) != 0) &&
           !is_other(name);
}

int iris_i_environment_is_unknown(const char *variable)
{
    char name[NAME_BYTES + 1];
    const char *other;

    return is_unknown(variable, name, &other);
}

static void check_one(const struct iris_log *log, const char *variable)
{
    char name[NAME_BYTES + 1];
    const char *other;

    if (!is_unknown(variable, name, &other)) {
        return;
    }
    if (other != NULL) {
        iris_i_warning(log, "%s is unknown; did you mean %s?", name, other);
    } else {
        iris_i_warning(log, "%s is unknown; iris info lists all settings",
                       name);
    }
}

void iris_i_environment_check(const struct iris_log *log)
{
    static atomic_flag checked = ATOMIC_FLAG_INIT;

    if (atomic_flag_test_and_set(&checked)) {
        return;
    }
    for (char **variable = environ; variable != NULL && *variable != NULL;
         variable++) {
        check_one(log, *variable);
    }
}
