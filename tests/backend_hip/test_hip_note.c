/* SPDX-License-Identifier: MIT
 *
 * What a lane of a GPU notes of a wait that goes on: what reports have of it
 * while it does and at a deadline, and that one which has ended is over.
 */
#include "config.h"

#include "support/hip_job.h"

#include "context/context.h"
#include "control/records.h"
#include "report/report.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WAIT                                                       \
    "kernel wait_for, workgroup 0, waits for byte 0 of \"inbox\" " \
    "to be == 5; it is 3 all along, "

struct look {
    iris_t *iris;
    uint64_t *word;
    int ends_wait; /* once the wait has been seen */
    atomic_int over;
    char cause[IRIS_REPORT_CAUSE]; /* the first that has the wait */
};

/* In place of iris top. */
static void *look(void *arg)
{
    struct look *self = arg;
    struct iris_report *report;

    while (!atomic_load(&self->over) && self->cause[0] == '\0') {
        if (iris_i_report_make(self->iris->control->records->fd, 100,
                               &report) != IRIS_OK) {
            continue;
        }
        if (strstr(report->cause, "kernel wait_for") != NULL) {
            memcpy(self->cause, report->cause, sizeof self->cause);
        }
        free(report);
    }
    if (self->ends_wait) { /* the host's memory is the fake GPU's */
        atomic_store((_Atomic uint64_t *)self->word, 5);
    }
    return NULL;
}

static int body(iris_t *iris, void *arg)
{
    struct look *self = arg;
    struct iris_report *report;
    iris_stream_t *stream;
    pthread_t thread;

    CHECK_EQUAL(hip_make_word(iris, &self->word, &stream), 0);
    CHECK_OK(iris_name(iris, self->word, "inbox"));
    CHECK_OK(hip_wait_for(iris, self->word, 5, stream));
    self->iris = iris;
    CHECK_EQUAL(pthread_create(&thread, NULL, look, self), 0);
    CHECK_STATUS(iris_stream_synchronize(iris, stream),
                 self->ends_wait ? IRIS_OK : IRIS_ERR_TIMEOUT);
    atomic_store(&self->over, 1);
    pthread_join(thread, NULL);
    if (!self->ends_wait) {
        CHECK_OK(iris_clear_error(iris));
        return 0;
    }
    poll(NULL, 0, 600); /* as long as a lane may stay away */
    CHECK_OK(hip_wait_for(iris, self->word, 5, stream));
    CHECK_OK(iris_i_report_read(iris->control->records->fd, &report));
    CHECK_EQUAL(report->ranks[0].num_waits, 0);
    free(report);
    return 0;
}

static TEST(a_wait_on_a_gpu_is_in_reports)
{
    struct look self = {.ends_wait = 0};
    struct harness_capture capture;

    setenv("IRIS_TIMEOUT_MS", "2000", 1);
    harness_capture(&capture);
    harness_run(1, body, &self);
    harness_captured(&capture);
    assert_non_null(strstr(self.cause, WAIT));
    assert_non_null(strstr(self.cause, "only this one is known"));
    if (strstr(capture.text, "HUNG: rank 0: " WAIT) == NULL) {
        print_error("%s\n", capture.text);
        fail();
    }
    assert_non_null(strstr(capture.text, "not certain"));
    free(capture.text);
}

static TEST(a_wait_that_has_ended_is_over)
{
    struct look self = {.ends_wait = 1};

    setenv("IRIS_TIMEOUT_MS", "60000", 1);
    harness_run(1, body, &self);
    assert_non_null(strstr(self.cause, WAIT));
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
