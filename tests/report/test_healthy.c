/* SPDX-License-Identifier: MIT
 *
 * Slow programs that get on: whoever makes reports of them all along, and takes
 * every wait for an old one, never calls them hung.
 */
#include "config.h"

#include "report/script.h"

#if IRIS_ON_CPU
#if IRIS_ON_CPU /* C that is no C++ */
#include "report/report.h"
#endif

#include <sys/wait.h>

/* Between the two readings of a report. */
#define APART_MS 20

static const char *const programs[][RANKS] = {
    {"w0=1", "c s0,1,0"},
    {"w0=1", "h s0,1,0"},
    {"w0=1 s0,1,1", "c s0,1,0 w0=1"},
    {"c s0,1,1 w0=1", "w0=1 c s0,1,0"},
    {"b", "h b"},
    {"b", "c y b", "b"},
    {"m", "h m", "c m"},
    {"B", "c B"},
    {"B B", "h B c B"},
    {"R", "c R"},
    {"R G", "h R c G", "c R G"},
    {"w0>3", "c a0,1,0", "h a0,2,0"},
    {"W0>1", "h S0,1,0"},
    {"w0=1", "2 c s0,1,0"},
    {"w0=1 2 w1=1", "c s0,1,0 h s1,1,0"},
    {"2 w0=1 y", "w1=1 s0,1,0", "c s1,1,1"},
    {"w0=1 s0,1,1", "w0=1 s0,1,2", "c s0,1,0 w0=1"},
    {"P4", "c"},
    {"c L y b", "h b", "c b"},
    {"w0=1 y b", "c s0,1,0 y b", "h b"},
    {"c 2 c", "c"},
    {"w0=1 2 c s0,1,0"},
    {"w1=1 2 c s0,1,1", "w0=1 s1,1,0"},
    {"2 c s0,1,0 w1=1", "w2=1 s1,1,0", "h s2,1,1"},
};

/* Of the job of the test's process or of one of its ranks'; -1. */
static int open_segment(const struct shared *shared)
{
    int fd = iris_i_report_open(getppid(), 0);

    for (int i = 0; i < RANKS && fd < 0; i++) {
        fd = shared->pids[i] == 0 ? -1 : iris_i_report_open(shared->pids[i], 0);
    }
    return fd;
}

static void judge(const struct job *job, struct iris_report *report,
                  const struct iris_report *before)
{
    report->old_ns = 0;
    iris_i_report_judge(report, before);
    job->shared->judged++;
    if (report->verdict > IRIS_VERDICT_LATE) {
        printf("\"%s\" \"%s\" is called %s\n", job->scripts[0], job->scripts[1],
               iris_i_verdict_name(report->verdict));
        iris_i_report_text(report, stdout);
        job->shared->wrong++;
    }
}

/* In a process of its own, like iris top. */
static void watch(const struct job *job)
{
    while (!atomic_load(&job->shared->ended)) {
        struct iris_report *before = NULL, *report = NULL;
        int fd = open_segment(job->shared);

        if (fd >= 0 && iris_i_report_read(fd, &before) == IRIS_OK) {
            poll(NULL, 0, APART_MS);
            if (iris_i_report_read(fd, &report) == IRIS_OK) {
                judge(job, report, before);
            }
        }
        free(before);
        free(report);
        if (fd >= 0) {
            close(fd);
        }
        atomic_fetch_add(&job->shared->reports, 1);
        poll(NULL, 0, 1);
    }
    fflush(stdout);
    _exit(0);
}

static void run(const char *const *program, const char *spawn)
{
    struct iris_config config;
    struct job job;
    iris_status_t status;
    pid_t watcher;

    open_job(&job, program);
    iris_config_init(&config);
    config.spawn = spawn;
    watcher = fork();
    if (watcher == 0) {
        watch(&job);
    }
    status = iris_spawn(&config, count_ranks(program), body, &job);
    atomic_store(&job.shared->ended, 1);
    waitpid(watcher, NULL, 0);
    if (status != IRIS_OK) {
        print_error("%s %s: %s\n", program[0], program[1], iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
    assert_int_equal(job.shared->wrong, 0);
    assert_true(job.shared->judged > 0);
    close_job(&job);
}

static TEST(a_slow_program_is_not_called_hung)
{
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        run(programs[i], "threads");
        run(programs[i], "processes");
    }
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);

#endif /* IRIS_ON_CPU */
