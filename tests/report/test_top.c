/* SPDX-License-Identifier: MIT
 *
 * iris top beside a job: stopped and killed ranks, names of jobs, and what it
 * says when there is nothing to be shown.
 */
#include "config.h"

#include "report/script.h"

#if IRIS_ON_CPU
#include <sys/wait.h>

/* What a job with nobody to end it may take, for a test that fails. */
#define TRIES 200

/* The job that a test has started and not ended: if it failed, that is left. */
static struct job *started;
static pid_t started_as;

struct output {
    char text[65536];
    int status;
};

static void run_top(struct output *output, const char *arguments)
{
    char command[256];
    FILE *pipe;
    size_t length;

    snprintf(command, sizeof command, "./iris top %s 2>&1", arguments);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    length = fread(output->text, 1, sizeof output->text - 1, pipe);
    output->text[length] = '\0';
    output->status = WEXITSTATUS(pclose(pipe));
}

static void check_has(const struct output *output, const char *text)
{
    if (strstr(output->text, text) == NULL) {
        print_error("no \"%s\" in\n%s", text, output->text);
        fail();
    }
}

/* Runs iris top until it says so. */
static void await(struct output *output, const char *arguments,
                  const char *text)
{
    for (int i = 0; i < TRIES; i++) {
        run_top(output, arguments);
        if (strstr(output->text, text) != NULL) {
            return;
        }
    }
    check_has(output, text);
}

static pid_t start_as(struct job *job, const char *const *scripts,
                      const char *spawn)
{
    pid_t pid;

    open_job(job, scripts);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct iris_config config;

        setpgid(0, 0);
        iris_config_init(&config);
        config.spawn = spawn;
        config.job_id = "kitchen";
        config.log_level = "off";
        (void)iris_spawn(&config, count_ranks(scripts), body, job);
        _exit(0);
    }
    for (int i = 0; i < count_ranks(scripts); i++) {
        while (((volatile pid_t *)job->shared->pids)[i] == 0) {
            poll(NULL, 0, 1);
        }
    }
    started = job;
    started_as = pid;
    return pid;
}

static pid_t start(struct job *job, const char *const *scripts)
{
    return start_as(job, scripts, "processes");
}

static void end(struct job *job, pid_t pid)
{
    for (int i = 0; i < count_ranks(job->scripts); i++) {
        kill(job->shared->pids[i], SIGKILL);
    }
    waitpid(pid, NULL, 0);
    close_job(job);
    started = NULL;
}

/* After each test: the job's processes are a group of their own. */
static int end_what_is_left(void **state)
{
    if (started_as != 0 && started != NULL) {
        kill(-started_as, SIGKILL);
        started = NULL;
    }
    return 0;
}

/* Every bracket that opens is closed, outside strings. */
static void check_json(const char *text)
{
    int depth = 0, quoted = 0;

    for (const char *c = text; *c != '\0'; c++) {
        if (quoted) {
            c += *c == '\\';
            quoted = *c != '"';
            continue;
        }
        quoted = *c == '"';
        depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
        assert_true(depth > 0 || c[1] == '\n' || c[1] == '\0' || c[0] == '\n');
    }
    assert_int_equal(depth, 0);
}

static TEST_WITH(a_stopped_rank_is_shown_by_itself_and_by_others, NULL,
                 end_what_is_left)
{
    static const char *const scripts[] = {"w0=1", "T", NULL};
    static struct output output;
    struct job job;
    pid_t pid = start(&job, scripts);
    char argument[64];

    for (int i = 0; i < 2; i++) {
        snprintf(argument, sizeof argument, "%d", job.shared->pids[i]);
        await(&output, argument, "STOPPED: rank 1 (pid ");
        assert_int_equal(output.status, 3);
        check_has(&output, "is stopped, by SIGSTOP or a debugger; rank 0 can");
        check_has(&output, "): kernel step, workgroup 0 of 1, waits for "
                           "byte 0 of the allocation");
        check_has(&output, "under way: call");
    }
    snprintf(argument, sizeof argument, "--json %d", job.shared->pids[0]);
    run_top(&output, argument);
    check_json(output.text);
    check_has(&output, "{\"schema\": \"iris-report 1\", "
                       "\"verdict\": \"STOPPED\"");
    check_has(&output, "\"root\": 1");
    run_top(&output, "kitchen");
    check_has(&output, "STOPPED: ");
    run_top(&output, "");
    assert_int_equal(output.status, 0);
    check_has(&output, "kitchen");
    end(&job, pid);
}

/* In --live: the odd rank ahead, and no line longer than the terminal. */
static TEST_WITH(ranks_that_do_the_same_share_a_line, NULL, end_what_is_left)
{
    static const char *const scripts[] = {"w0=1", "w0=1", "T", NULL};
    static struct output output;
    const char *odd, *same;
    struct job job;
    pid_t pid = start(&job, scripts);
    char argument[64];

    snprintf(argument, sizeof argument, "%d", job.shared->pids[0]);
    await(&output, argument, "STOPPED: rank 2 (pid ");
    setenv("COLUMNS", "60", 1);
    snprintf(argument, sizeof argument, "--live %d | sed '/^$/q'",
             job.shared->pids[0]);
    run_top(&output, argument);
    unsetenv("COLUMNS");
    check_has(&output, "\nRANKS      CALLS/S SENT/S   HEAP WAITS  DOING\n");
    odd = strstr(output.text, "\n2  ");
    same = strstr(output.text, "\n0-1  ");
    assert_true(odd != NULL && same != NULL && odd < same);
    check_has(&output, "  kernel step, workg..\n");
    for (char *line = strtok(output.text, "\n"); line != NULL;
         line = strtok(NULL, "\n")) {
        assert_true(strlen(line) <= 60);
    }
    end(&job, pid);
}

static TEST_WITH(a_killed_rank_is_shown_by_the_others, NULL, end_what_is_left)
{
    static const char *const scripts[] = {"l", "K", NULL};
    static struct output output;
    struct job job;
    pid_t pid = start(&job, scripts);
    char argument[64];

    snprintf(argument, sizeof argument, "%d", job.shared->pids[0]);
    await(&output, argument, "LOST: rank 1 (pid ");
    assert_int_equal(output.status, 3);
    check_has(&output, "died after its iris_barrier");
    check_has(&output, "last finished: call");
    end(&job, pid);
}

/* Nobody waits: they are stopped, and do not run. */
static TEST_WITH(ranks_that_are_all_stopped_do_not_run, NULL, end_what_is_left)
{
    static const char *const spawns[] = {"processes", "threads"};
    static const char *const scripts[] = {"T l", "T l", NULL};
    static struct output output;

    for (int i = 0; i < 2; i++) {
        struct job job;
        pid_t pid = start_as(&job, scripts, spawns[i]);
        char argument[64];

        snprintf(argument, sizeof argument, "%d", job.shared->pids[0]);
        await(&output, argument, "STOPPED: ranks 0, 1 are stopped");
        assert_int_equal(output.status, 3);
        end(&job, pid);
    }
}

/* Of the process that spawned the ranks and has no job itself. */
static TEST_WITH(the_process_that_started_the_ranks_is_enough, NULL,
                 end_what_is_left)
{
    static const char *const scripts[] = {"T l", "T l", NULL};
    static struct output output;
    struct job job;
    pid_t pid = start(&job, scripts);
    char argument[64];

    assert_int_not_equal(pid, job.shared->pids[0]);
    snprintf(argument, sizeof argument, "%d", pid);
    await(&output, argument, "STOPPED: ranks 0, 1 are stopped");
    end(&job, pid);
}

static TEST_WITH(calls_are_listed_of_the_dead_too, NULL, end_what_is_left)
{
    static const char *const scripts[] = {"m l", "m K", NULL};
    static struct output output;
    struct job job;
    pid_t pid = start(&job, scripts);
    char argument[64];
    int lines = 0;

    snprintf(argument, sizeof argument, "%d", job.shared->pids[0]);
    await(&output, argument, "LOST: rank 1 (pid ");
    snprintf(argument, sizeof argument, "--calls %d", job.shared->pids[0]);
    run_top(&output, argument);
    assert_int_equal(output.status, 0);
    check_has(&output, "RANK       CALL");
    check_has(&output, "\n   1          1 ");
    check_has(&output, "malloc at heap offset ");
    for (const char *c = output.text; (c = strstr(c, "\n   1 ")) != NULL; c++) {
        lines++;
    }
    assert_true(lines > 4);
    end(&job, pid);
}

/* A program's own stay; the library's does not, when the context has gone. */
static TEST(no_handler_of_the_program_is_replaced)
{
    struct sigaction action;
    struct iris_config config;
    iris_t *iris;

    iris_config_init(&config);
    for (int own = 0; own < 2; own++) {
        signal(SIGUSR2, own ? SIG_IGN : SIG_DFL);
        assert_int_equal(iris_init(&config, &iris), IRIS_OK);
        assert_int_equal(sigaction(SIGUSR2, NULL, &action), 0);
        assert_true((action.sa_handler == SIG_IGN) == own);
        assert_true(action.sa_handler != SIG_DFL);
        assert_int_equal(iris_finalize(iris), IRIS_OK);
        assert_int_equal(sigaction(SIGUSR2, NULL, &action), 0);
        assert_true(action.sa_handler == (own ? SIG_IGN : SIG_DFL));
    }
    signal(SIGUSR2, SIG_DFL);
}

static TEST_WITH(what_cannot_be_shown_is_said, NULL, end_what_is_left)
{
    static struct output output;
    char argument[64];

    snprintf(argument, sizeof argument, "%d", getpid());
    run_top(&output, argument);
    assert_int_equal(output.status, 1);
    check_has(&output, "has no Iris job");
    run_top(&output, "99999999");
    assert_int_equal(output.status, 1);
    check_has(&output, "No such process");
    run_top(&output, "no-such-job");
    assert_int_equal(output.status, 1);
    check_has(&output, "no job no-such-job of this user");
    run_top(&output, "--live");
    assert_int_equal(output.status, 2);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);

#endif /* IRIS_ON_CPU */
