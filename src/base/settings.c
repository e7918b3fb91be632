/* SPDX-License-Identifier: MIT
 *
 * Settings: their table, the texts that each accepts, and the origin of each value.
 *
 * A setting is a row of IRIS_CONFIG_ROWS in <iris/context.h>. Its value is the
 * program's, from struct iris_config; else the environment's; else the default. All
 * three are texts for one parser. The first value that does not parse is the error,
 * and the rest are loaded all the same, so that the rank can still find its peers and
 * tell them.
 *
 * The program may have been compiled with a shorter or a longer struct: each public
 * struct that grows begins with its size, and bytes that this library does not know
 * have to be unset. Variables that look like settings and are not are warned about
 * once, with the nearest name.
 */
#include "config.h"

#include "base/base.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- Public structs that grow at their end ---- */

static size_t get_size(const void *sized)
{
    size_t size;

    memcpy(&size, sized, sizeof size);
    return size;
}

int iris_i_sized_fits(size_t size)
{
    return size >= sizeof size && size <= IRIS_SIZED_MOST &&
           size % sizeof(void *) == 0;
}

int iris_i_sized_init(void *sized, size_t size, int unset)
{
    if (sized == NULL || !iris_i_sized_fits(size)) {
        return 0;
    }
    memset(sized, unset, size);
    memcpy(sized, &size, sizeof size);
    return 1;
}

size_t iris_i_sized_unknown(const void *sized, size_t known, int unset)
{
    const unsigned char *bytes = sized;
    size_t size = get_size(sized);

    for (size_t i = known; i < size; i++) {
        if (bytes[i] != (unsigned char)unset) {
            return i;
        }
    }
    return 0;
}

iris_status_t iris_i_sized_take(const struct iris_log *log, const char *call,
                                const char *init, const void *options,
                                void *known_p)
{
    size_t known = get_size(known_p);
    size_t size = options == NULL ? 0 : get_size(options);

    if (options == NULL) {
        return IRIS_OK;
    }
    if (!iris_i_sized_fits(size)) {
        return iris_i_fail(log, IRIS_ERR_INVALID,
                           "%s: options of %zu bytes; call %s() before setting "
                           "fields",
                           call, size, init);
    }
    if (iris_i_sized_unknown(options, known, 0) != 0) {
        return iris_i_fail(log, IRIS_ERR_INVALID,
                           "%s: options set a field at byte %zu that this "
                           "library does not know; leave it out, or use a "
                           "library as new as the header",
                           call, iris_i_sized_unknown(options, known, 0));
    }
    memcpy(known_p, options, size < known ? size : known);
    return IRIS_OK;
}

/* ---- The table, and the parser of each kind of value ---- */

/* A LIST is some of the choices, separated by commas. */
enum setting_kind { STRING, CHOICE, LIST, BYTES, MS, COUNT, RANK, FLAG };

/* One setting: its row of the table, and the places of its values. */
struct setting_entry {
    struct iris_setting_row help;
    const char *field; /* its name */
    enum setting_kind kind;
    size_t config_offset;  /* offset in struct iris_config */
    size_t setting_offset; /* offset in struct iris_settings */
};

static const struct setting_entry settings_table[] = {
#define ROW(field, kind, env, value, choices, help) \
    {{env, value, choices, help, NULL, NULL},       \
     #field,                                        \
     kind,                                          \
     offsetof(struct iris_config, field),           \
     offsetof(struct iris_settings, field)},
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
};

static const size_t settings_count =
    sizeof settings_table / sizeof settings_table[0];

/* Whether values are texts; they are numbers otherwise. */
static int is_text(const struct setting_entry *row)
{
    return row->kind == STRING || row->kind == CHOICE || row->kind == LIST;
}

int iris_i_setting_is_secret(const struct iris_setting_row *row)
{
    return strcmp(row->env, "IRIS_JOB_SECRET") == 0;
}

/* Whether the first `length` characters of `text` are one of the
 * space-separated words of `choices`. *number_p is then its index. */
static int find_word(const char *choices, const char *text, size_t length,
                     int64_t *number_p)
{
    int64_t number = 0;

    for (const char *c = choices; *c != '\0'; c += strcspn(c, " ")) {
        c += strspn(c, " ");
        if (strcspn(c, " ") == length && strncasecmp(c, text, length) == 0) {
            *number_p = number;
            return 1;
        }
        number++;
    }
    return 0;
}

static int find_choice(const char *choices, const char *text, int64_t *number_p)
{
    return find_word(choices, text, strlen(text), number_p);
}

/* Whether `text` is empty, or choices with commas between them. */
static int find_choices(const char *choices, const char *text)
{
    int64_t ignored;

    while (*text != '\0') {
        size_t length = strcspn(text, ",");

        if (!find_word(choices, text, length, &ignored) ||
            (text[length] == ',' && text[length + 1] == '\0')) {
            return 0;
        }
        text += length + (text[length] == ',');
    }
    return 1;
}

static int parse_flag(const char *text, int64_t *number_p)
{
    int is_set = find_choice("1 true yes", text, number_p);

    if (!is_set && !find_choice("0 false no", text, number_p)) {
        return 0;
    }
    *number_p = is_set;
    return 1;
}

/* A decimal integer from `least` on, followed by K, M or G if `units` is
 * set. */
static int parse_number(const char *text, int64_t least, int units,
                        int64_t *number_p)
{
    const char *unit_names = "KMG", *unit = NULL;
    int64_t number;
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return 0;
    }
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno != 0) {
        return 0;
    }
    if (units && *end != '\0') {
        unit = strchr(unit_names, *end >= 'a' ? *end - 'a' + 'A' : *end);
        if (unit == NULL || (end[1] != '\0' && strcasecmp(end + 1, "B") != 0 &&
                             strcasecmp(end + 1, "iB") != 0)) {
            return 0;
        }
    } else if (*end != '\0') {
        return 0;
    }
    for (const char *u = unit_names; unit != NULL && u <= unit; u++) {
        if (number > INT64_MAX / 1024) {
            return 0;
        }
        number *= 1024;
    }
    *number_p = number;
    return number >= least;
}

/* The values that a row accepts. */
static const char *describe_accepted(const struct setting_entry *row)
{
    static const char *const texts[] = {
        [STRING] = "a shorter text",
        [BYTES] = "a size such as 64M, 1G or 1048576",
        [MS] = "milliseconds, 0 for none",
        [COUNT] = "an integer from 1",
        [RANK] = "an integer from 0",
        [FLAG] = "1, true, yes, 0, false or no",
    };

    return row->kind == CHOICE || row->kind == LIST ? row->help.choices
                                                    : texts[row->kind];
}

/* Whether the text is a valid value of the row. If so, and if it is a number,
 * setting->number gets it. */
static int parse_setting(const struct setting_entry *row, const char *text,
                         struct iris_setting *setting)
{
    if (strlen(text) >= sizeof setting->text) {
        return 0;
    }
    switch (row->kind) {
    case BYTES: /* 0 is valid only if it is the default */
        return parse_number(text, strcmp(row->help.value, "0") != 0, 1,
                            &setting->number);
    case MS:
    case RANK:
        return parse_number(text, 0, 0, &setting->number) &&
               setting->number <= INT32_MAX;
    case COUNT:
        return parse_number(text, 1, 0, &setting->number) &&
               setting->number <= INT32_MAX;
    case FLAG:
        return parse_flag(text, &setting->number);
    case CHOICE:
        return find_choice(row->help.choices, text, &setting->number);
    case LIST:
        return find_choices(row->help.choices, text);
    case STRING:
        break;
    }
    return 1;
}

/* ---- The program's configuration ---- */

/* Value of all bytes after the fields that this library knows. */
#define UNSET_BYTE 0xff

#define PREFIX "IRIS_"

/* The row's field in the configuration. NULL if the program is so old that its
 * struct has no such field. */
static void *get_field(const struct setting_entry *row,
                       const struct iris_config *config)
{
    size_t end = row->config_offset +
                 (is_text(row) ? sizeof(const char *) : sizeof(int64_t));

    return end > config->size ? NULL
                              : (char *)(uintptr_t)config + row->config_offset;
}

static void unset_field(const struct setting_entry *row, void *field)
{
    if (is_text(row)) {
        *(const char **)field = NULL;
    } else {
        *(int64_t *)field = -1;
    }
}

void iris_config_init_sized(struct iris_config *config, size_t size)
{
    if (!iris_i_sized_init(config, size, UNSET_BYTE)) {
        return;
    }
    for (size_t i = 0; i < settings_count; i++) {
        void *field = get_field(&settings_table[i], config);

        if (field != NULL) {
            unset_field(&settings_table[i], field);
        }
    }
}

/* Whether iris_config_init() initialised it, and no field is set that only a
 * newer library knows. IRIS_ERR_CONFIG */
static iris_status_t check_config(const struct iris_config *config)
{
    if (config == NULL) {
        return IRIS_OK;
    }
    if (!iris_i_sized_fits(config->size)) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "the configuration says that it has %zu bytes; call "
                           "iris_config_init on it first",
                           config->size);
    }
    if (iris_i_sized_unknown(config, sizeof *config, UNSET_BYTE) != 0) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "the program has set a field of the configuration "
                           "that came after version %s of this library; "
                           "install the version that the program was compiled "
                           "for",
                           iris_version());
    }
    return IRIS_OK;
}

static const struct setting_entry *find_row(const char *name)
{
    for (size_t i = 0; i < settings_count; i++) {
        const struct setting_entry *row = &settings_table[i];

        if (strcasecmp(name, row->field) == 0 ||
            strcasecmp(name, row->help.env + strlen(PREFIX)) == 0) {
            return row;
        }
    }
    return NULL;
}

static iris_status_t fail_name(const char *name)
{
    char names[IRIS_MESSAGE_BYTES / 2] = "";
    size_t length = 0;

    for (size_t i = 0; i < settings_count; i++) {
        length += (size_t)snprintf(names + length, sizeof names - length, " %s",
                                   settings_table[i].field);
        if (length >= sizeof names) {
            break;
        }
    }
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "iris_config_set: no setting is called \"%.60s\"; there "
                       "are:%s",
                       name, names);
}

static iris_status_t set_field(const struct setting_entry *row, void *field,
                               const char *value)
{
    struct iris_setting setting;

    if (value == NULL) {
        unset_field(row, field);
        return IRIS_OK;
    }
    if (!parse_setting(row, value, &setting)) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "iris_config_set: %s=\"%.60s\" does not parse; it "
                           "takes: %s",
                           row->field,
                           iris_i_setting_is_secret(&row->help) ? "..." : value,
                           describe_accepted(row));
    }
    if (is_text(row)) {
        *(const char **)field = value;
    } else {
        *(int64_t *)field = setting.number;
    }
    return IRIS_OK;
}

iris_status_t iris_config_set(struct iris_config *config, const char *name,
                              const char *value)
{
    const struct setting_entry *row;
    iris_status_t status;
    void *field;

    if (config == NULL || name == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_config_set: %s is NULL",
                           config == NULL ? "config" : "name");
    }
    status = check_config(config);
    if (status != IRIS_OK) {
        return status;
    }
    row = find_row(name);
    if (row == NULL) {
        return fail_name(name);
    }
    field = get_field(row, config);
    if (field == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "iris_config_set: the program's struct iris_config "
                           "ends before %s; compile it with the headers of "
                           "version %s",
                           row->field, iris_version());
    }
    return set_field(row, field, value);
}

/* ---- Values and their origins ---- */

/* The program's text for a row, or NULL. Numbers are printed into `buffer`, so
 * that one parser checks all origins. */
static const char *argument_text(const struct setting_entry *row,
                                 const struct iris_config *config, char *buffer,
                                 size_t buffer_bytes)
{
    const void *field = config == NULL ? NULL : get_field(row, config);

    if (field == NULL) {
        return NULL;
    }
    if (is_text(row)) {
        return *(const char *const *)field;
    }
    if (*(const int64_t *)field == -1) {
        return NULL;
    }
    snprintf(buffer, buffer_bytes, "%lld", (long long)*(const int64_t *)field);
    return buffer;
}

static void set_value(const struct setting_entry *row, const char *text,
                      enum iris_origin origin, struct iris_setting *setting)
{
    setting->origin = origin;
    snprintf(setting->text, sizeof setting->text, "%s", text);
    if (row->kind == CHOICE || row->kind == LIST) {
        for (char *c = setting->text; *c != '\0'; c++) {
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        }
    }
}

static iris_status_t reject_value(const struct setting_entry *row,
                                  const char *origin, const char *text)
{
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "%s%s=\"%.60s\" does not parse; it takes: %s", origin,
                       row->help.env,
                       iris_i_setting_is_secret(&row->help) ? "..." : text,
                       describe_accepted(row));
}

/* A row's variable, or NULL. IRIS_SIMULATION=1 is upstream's name for
 * IRIS_BACKEND=sim. */
static iris_status_t read_variable(const struct setting_entry *row,
                                   const char **text_p)
{
    static const struct setting_entry upstream = {
        .help = {.env = "IRIS_SIMULATION"}, .kind = FLAG};
    const char *asked = getenv(upstream.help.env);
    struct iris_setting is_sim = {.number = 0};

    *text_p = getenv(row->help.env);
    if (strcmp(row->help.env, "IRIS_BACKEND") != 0 || asked == NULL ||
        asked[0] == '\0') {
        return IRIS_OK;
    }
    if (!parse_setting(&upstream, asked, &is_sim)) {
        return reject_value(&upstream, "environment variable ", asked);
    }
    if (is_sim.number == 0) {
        return IRIS_OK;
    }
    if (*text_p != NULL && **text_p != '\0' &&
        strcasecmp(*text_p, "sim") != 0) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "IRIS_SIMULATION asks for the sim backend but "
                           "IRIS_BACKEND for \"%.60s\"; unset one of them",
                           *text_p);
    }
    *text_p = "sim";
    return IRIS_OK;
}

static iris_status_t load_row(const struct setting_entry *row,
                              const struct iris_config *config,
                              struct iris_setting *setting)
{
    char buffer[32];
    enum iris_origin origin = IRIS_ORIGIN_ARGUMENT;
    const char *text = argument_text(row, config, buffer, sizeof buffer);
    struct iris_setting given = {.number = 0};
    iris_status_t status = IRIS_OK;

    setting->number = 0;
    parse_setting(row, row->help.value, setting);
    set_value(row, row->help.value, IRIS_ORIGIN_DEFAULT, setting);
    if (text == NULL) {
        origin = IRIS_ORIGIN_ENVIRONMENT;
        status = read_variable(row, &text);
    }
    if (status != IRIS_OK || text == NULL ||
        (text[0] == '\0' && !is_text(row)) ||
        (text[0] == '\0' && origin == IRIS_ORIGIN_ENVIRONMENT)) {
        return status;
    }
    if (!parse_setting(row, text, &given)) {
        return reject_value(row,
                            origin == IRIS_ORIGIN_ARGUMENT
                                ? "configuration value for "
                                : "environment variable ",
                            text);
    }
    setting->number = given.number;
    set_value(row, text, origin, setting);
    return IRIS_OK;
}

iris_status_t iris_i_settings_load(const struct iris_config *config,
                                   struct iris_settings *settings_p)
{
    iris_status_t first = check_config(config);

    config = first == IRIS_OK ? config : NULL;
    for (size_t i = 0; i < settings_count; i++) {
        struct iris_setting *setting =
            (void *)((char *)settings_p + settings_table[i].setting_offset);
        char kept[IRIS_MESSAGE_BYTES];

        snprintf(kept, sizeof kept, "%s", iris_last_error());
        if (load_row(&settings_table[i], config, setting) != IRIS_OK) {
            if (first != IRIS_OK) {
                iris_i_fail_again(first, kept);
            }
            first = IRIS_ERR_CONFIG;
        }
    }
    return first;
}

int iris_i_settings_row(const struct iris_settings *settings, size_t i,
                        struct iris_setting_row *row_p)
{
    if (i >= settings_count) {
        return 0;
    }
    *row_p = settings_table[i].help;
    row_p->takes = settings_table[i].kind == STRING
                       ? "any text"
                       : describe_accepted(&settings_table[i]);
    if (settings != NULL) {
        row_p->setting = (const void *)((const char *)settings +
                                        settings_table[i].setting_offset);
    }
    return 1;
}

const char *iris_i_origin_string(enum iris_origin origin)
{
    return origin == IRIS_ORIGIN_ENVIRONMENT ? "environment"
           : origin == IRIS_ORIGIN_ARGUMENT  ? "argument"
                                             : "default";
}

/* ---- Misspelt variables ---- */

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

int iris_i_count_changes(const char *a, const char *b)
{
    int length = (int)strlen(b), row[length + 1];

    for (int j = 0; j <= length; j++) {
        row[j] = j;
    }
    for (int i = 0; a[i] != '\0'; i++) {
        int corner = i;

        row[0] = i + 1;
        for (int j = 0; j < length; j++) {
            int least = corner + (toupper((unsigned char)a[i]) !=
                                  toupper((unsigned char)b[j]));

            corner = row[j + 1];
            least = least < corner + 1 ? least : corner + 1;
            row[j + 1] = least < row[j] + 1 ? least : row[j] + 1;
        }
    }
    return row[length];
}

/* The setting that needs the fewest changes, at most a third of the name. If
 * the name is a setting, that setting. NULL: no setting is similar. */
static const char *find_nearest(const char *name)
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
        int changes = iris_i_count_changes(name, row.env);

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
static int find_unknown(const char *variable, char name[NAME_BYTES + 1],
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
    *nearest_p = find_nearest(name);
    return (*nearest_p == NULL || strcmp(*nearest_p, name) != 0) &&
           !is_other(name);
}

int iris_i_environment_is_unknown(const char *variable)
{
    char name[NAME_BYTES + 1];
    const char *other;

    return find_unknown(variable, name, &other);
}

static void check_one(const struct iris_log *log, const char *variable)
{
    char name[NAME_BYTES + 1];
    const char *other;

    if (!find_unknown(variable, name, &other)) {
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
