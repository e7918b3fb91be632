/* SPDX-License-Identifier: MIT
 *
 * What some HIP runtimes do, by name (FAKEHIP_QUIRKS): a job works all the
 * same, or says which ranks and what to do.
 */
#include "config.h"

#include "support/hip_job.h"

#include <stdlib.h>
#include <string.h>

#include "support/procs.h"

#define RANKS 3

static void work(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    (void)rank;
    (void)arg;
    if (iris != NULL) {
        iris_status_t status = hip_work(iris);
        iris_status_t met = iris_barrier(iris, NULL, NULL);

        proc_note(report, status != IRIS_OK ? status : met);
        proc_finalize(report, iris);
    }
}

/* A job of processes on a runtime with these quirks; every rank ends with the
 * status, and some rank's message has each text. */
static void run(const char *quirks, iris_status_t expected,
                const char *const texts[2])
{
    struct procs procs;
    int found[2] = {texts[0] == NULL, texts[1] == NULL};

    setenv("FAKEHIP_QUIRKS", quirks, 1);
    procs_start(&procs, RANKS, work, NULL);
    procs_join(&procs);
    unsetenv("FAKEHIP_QUIRKS");
    for (int rank = 0; rank < RANKS; rank++) {
        const struct proc_report *report = &procs.reports[rank];

        if (report->status != expected) {
            print_error("%s, rank %d: %s: %s\n", quirks, rank,
                        iris_status_string(report->status), report->message);
            fail();
        }
        for (int i = 0; i < 2; i++) {
            found[i] = found[i] || strstr(report->message, texts[i]) != NULL;
        }
    }
    for (int i = 0; i < 2; i++) {
        if (!found[i]) {
            print_error("%s: no \"%s\" in: %s\n", quirks, texts[i],
                        procs.reports[0].message);
            fail();
        }
    }
    procs_free(&procs);
}

static void run_well(const char *quirks)
{
    static const char *const none[2] = {NULL, NULL};

    run(quirks, IRIS_OK, none);
}

static void other_memory_than_the_peers_is_mapped_again_or_refused(void **state)
{
    static const char *const texts[] = {
        "is mapped on rank ", "is other memory: it begins with 0 instead of "};

    (void)state;
    run_well("wrong-memory:1");
    run("wrong-memory", IRIS_ERR_SYSTEM, texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            other_memory_than_the_peers_is_mapped_again_or_refused),
    };

    return cmocka_run_group_tests(tests, hip_setup, harness_teardown);
}
