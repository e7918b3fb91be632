/* SPDX-License-Identifier: MIT
 *
 * The report that a job writes of itself when a deadline passes or a rank dies:
 * once, by the first rank that meets it. (The lowest live one may be stopped,
 * or wait for nothing and never notice.)
 */
#include "config.h"

#include "report/incident.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/wait.h"
#include "control/records.h"
#include "report/analyse.h"
#include "report/report_json.h"
#include "report/report_text.h"

#include <stdlib.h>
#include <string.h>

/* Log lines are of limited length, and so are the pieces of a longer one. */
static void log_lines(const struct iris_log *log, char *text)
{
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        iris_i_error(log, "%s", line);
    }
}

/* What `print` prints, for the caller to free; NULL: no memory. */
static char *render(const struct iris_report *report,
                    void (*print)(const struct iris_report *report, FILE *out),
                    size_t *bytes_p)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, bytes_p);

    if (out == NULL) {
        return NULL;
    }
    print(report, out);
    return fclose(out) == 0 ? text : NULL;
}

static void write_json(const struct iris_control *control,
                       const struct iris_report *report, const char *prefix)
{
    unsigned long long n = iris_i_records_number(control->records);
    size_t bytes = 0;
    char *text = render(report, iris_i_report_json, &bytes);
    char path[4096];
    int ret = 0;

    if ((size_t)snprintf(path, sizeof path, "%s_report_%llu.json", prefix, n) <
            sizeof path &&
        text != NULL) {
        ret = iris_i_file_write(path, text, bytes);
    }
    if (ret != 0) {
        iris_i_warning(control->log, "the report is not in %s: %s", path,
                       strerror(ret));
    }
    free(text);
}

static void print(struct iris_control *control,
                  const struct iris_report *report, const char *prefix)
{
    size_t bytes;
    char *text = render(report, iris_i_report_text, &bytes);

    if (text != NULL) {
        log_lines(control->log, text);
    }
    free(text);
    if (prefix[0] != '\0') {
        write_json(control, report, prefix);
    }
}

/* `mismatch` is the cause if that is known already, else NULL. The thread's
 * message is what its caller is about to return. */
static void write_report(struct iris_control *control, const char *prefix,
                         const char *mismatch)
{
    struct iris_report *report;

    if (iris_i_report_make(control->records->fd, IRIS_APART_MS, &report) !=
        IRIS_OK) {
        iris_i_warning(control->log, "no report of what the ranks do: %s",
                       iris_last_error());
        return;
    }
    if (mismatch != NULL) { /* one that left since then left because of it */
        report->verdict = IRIS_VERDICT_MISMATCH;
        snprintf(report->cause, sizeof report->cause, "%s", mismatch);
    }
    print(control, report, prefix);
    free(report);
}

/* A rank that fails while another one reports stays for it to be seen: it would
 * be said to have left. */
static void stay(const struct iris_control *control)
{
    struct iris_wait wait;

    iris_i_wait_moment(&wait, IRIS_STAY_MS);
    while (iris_i_records_is_reporting(control->records) &&
           iris_i_wait_tick(&wait) == IRIS_OK) {
    }
}

void iris_i_report_incident(struct iris_control *control, const char *prefix)
{
    char message[IRIS_MESSAGE_BYTES];

    if (control->records == NULL) {
        return;
    }
    if (!iris_i_records_claim(control->records, control->rank)) {
        stay(control);
        return;
    }
    snprintf(message, sizeof message, "%s", iris_last_error());
    write_report(control, prefix, NULL);
    iris_i_records_reported(control->records, control->rank);
    (void)iris_i_fail_again(IRIS_OK, message);
}

/* Whether nobody of the job has done it in the last second. */
static int take_turn(struct iris_control *control)
{
    return control->records != NULL &&
           iris_i_records_take_turn(control->records,
                                    IRIS_TURN_MS * IRIS_NS_PER_MS);
}

void iris_i_report_mismatch(struct iris_control *control, const char *prefix)
{
    char message[IRIS_MESSAGE_BYTES];

    if (take_turn(control)) {
        snprintf(message, sizeof message, "%s", iris_last_error());
        write_report(control, prefix, message);
        (void)iris_i_fail_again(IRIS_OK, message);
    }
}

void iris_i_report_asked(struct iris_control *control, const char *prefix)
{
    if (take_turn(control)) {
        write_report(control, prefix, NULL);
    }
}
