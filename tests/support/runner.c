/* SPDX-License-Identifier: MIT
 *
 * The main function of a folder's tests. Each test runs in a process of its
 * own, which leads a process group: a test that dies, exits or takes too long
 * fails alone, and its processes end with it. Results are in the Test Anything
 * Protocol; a test's output is shown if it fails.
 *
 * Under a launcher this process is one rank of several, which run the same
 * tests in the same order: it forks nothing. Nor does it with --together, which
 * scripts/gpu-test uses: a process takes seconds to open a GPU.
 */
#include "config.h"

#include "support/runner.h"

#include "support/harness.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The linker's: the pointers that TEST_FILE() put into the section. */
extern const struct harness_file *const __start_iris_tests[];
extern const struct harness_file *const __stop_iris_tests[];

static const char usage[] =
    "usage: run [--list | --together] [-v] [-k PATTERN] [FILE]...\n"
    "Runs a folder's tests, or those of each FILE, such as test_alloc.\n"
    "  --list      print files with their kinds, and their tests\n"
    "  --together  all in this process, which opens its GPUs once\n"
    "  -k PATTERN  only the tests that have PATTERN in their sentence\n"
    "  -v          show the output of each test, not of failed ones alone\n"
    "IRIS_TEST_TIMEOUT is the seconds that a test may take (default: 300).\n"
    "Exit status: 0; 1 if a test failed; 2 for a wrong command line; 77 if "
    "all\n"
    "tests were left out.\n";

static struct {
    int is_list;
    int is_together;
    int is_verbose;
    const char *pattern; /* NULL: every test */
    char **files;        /* none: every file */
    int num_files;
} options;

static struct {
    int number; /* of the last test */
    int num_failed;
    int num_skipped;
} totals;

static volatile pid_t running; /* what a signal to the runner ends, too */

/* The file's name without folder and ending, for the caller to free. */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *stem = strdup(slash != NULL ? slash + 1 : path);
    size_t length = strlen(stem);

    if (length > 2 && strcmp(stem + length - 2, ".c") == 0) {
        stem[length - 2] = '\0';
    }
    return stem;
}

static int has_name(const struct harness_file *file, const char *name)
{
    char *stem = stem_of(file->path), *wanted = stem_of(name);
    int is_same = strcmp(stem, wanted) == 0;

    free(stem);
    free(wanted);
    return is_same;
}

static int is_wanted_file(const struct harness_file *file)
{
    int is_wanted = options.num_files == 0;

    for (int i = 0; i < options.num_files; i++) {
        is_wanted |= has_name(file, options.files[i]);
    }
    return is_wanted;
}

static void make_sentence(char *text)
{
    for (; *text != '\0'; text++) {
        *text = *text == '_' ? ' ' : *text;
    }
}

static int is_wanted_test(const char *name)
{
    char text[RUNNER_NAME_BYTES], pattern[RUNNER_NAME_BYTES];

    if (options.pattern == NULL) {
        return 1;
    }
    snprintf(text, sizeof text, "%s", name);
    snprintf(pattern, sizeof pattern, "%s", options.pattern);
    make_sentence(text);
    make_sentence(pattern);
    return strstr(text, pattern) != NULL;
}

static void end_running(int number)
{
    if (running > 0) {
        kill(-running, SIGKILL);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* The file's main function in a process of its own, whose output is `output`. */
static pid_t start(const struct harness_file *file, FILE *output)
{
    pid_t parent = getpid(), pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        perror("run: no process for a test");
        exit(1);
    }
    if (pid != 0) {
        setpgid(pid, pid); /* whichever of the two is first */
        running = pid;
        return pid;
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(fileno(output), STDOUT_FILENO);
    dup2(fileno(output), STDERR_FILENO);
    fclose(output);
    exit(file->run());
}

/* Waits for the process; returns 0 and ends its group if it takes too long. */
static int await_end(pid_t pid, int seconds, int *state_p)
{
    struct timespec left = {.tv_sec = seconds}, now, end;
    sigset_t child;
    int is_late = 0;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    while (waitpid(pid, state_p, WNOHANG) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        left.tv_sec = end.tv_sec - now.tv_sec;
        is_late = left.tv_sec <= 0;
        if (is_late) {
            kill(-pid, SIGKILL);
            waitpid(pid, state_p, 0);
            break;
        }
        (void)sigtimedwait(&child, NULL, &left);
    }
    kill(-pid, SIGKILL); /* what it has left behind */
    running = 0;
    return !is_late;
}

static int seconds_of_a_test(void)
{
    const char *text = getenv("IRIS_TEST_TIMEOUT");
    int seconds = text != NULL ? atoi(text) : 0;

    return seconds > 0 ? seconds : 300;
}

/* Why the process failed; NULL if it has not. */
static const char *find_failure(int state, int is_late, char text[80])
{
    const struct runner_orders *orders = runner_orders;

    if (is_late) {
        snprintf(text, 80, "took more than %d s", seconds_of_a_test());
    } else if (WIFSIGNALED(state)) {
        snprintf(text, 80, "died of signal %d, %s", WTERMSIG(state),
                 strsignal(WTERMSIG(state)));
    } else if (WEXITSTATUS(state) == 77) {
        return NULL;
    } else if (WEXITSTATUS(state) != 0) {
        snprintf(text, 80, "exit status %d", WEXITSTATUS(state));
    } else if (orders->mode == RUN_ONE && orders->state == NOT_STARTED) {
        snprintf(text, 80, "the file's main function has not run it");
    } else if (orders->mode == RUN_ONE && orders->state == STARTED) {
        snprintf(text, 80, "its process exited before its end");
    } else {
        return NULL;
    }
    return text;
}

/* Each line as a comment. The reason of a skip is a line of the output, too. */
static void show(FILE *output, char reason[200], int is_shown)
{
    char line[2000];

    rewind(output);
    while (fgets(line, sizeof line, output) != NULL) {
        const char *found = strstr(line, "left out");

        line[strcspn(line, "\n")] = '\0';
        if (found != NULL && reason[0] == '\0') {
            snprintf(reason, 200, "%.199s", line);
        }
        if (is_shown) {
            printf("# %s\n", line);
        }
    }
}

static void report(const char *stem, const char *name, const char *failure,
                   int is_skipped, FILE *output)
{
    char sentence[RUNNER_NAME_BYTES], reason[200] = "";

    snprintf(sentence, sizeof sentence, "%s", name);
    make_sentence(sentence);
    show(output, reason, failure != NULL || options.is_verbose);
    if (failure != NULL) {
        printf("# %s: %s: %s\n", stem, sentence, failure);
    }
    printf("%s %d - %s: %s%s%s\n", failure != NULL ? "not ok" : "ok",
           ++totals.number, stem, sentence, is_skipped ? " # SKIP " : "",
           is_skipped ? reason : "");
    fflush(stdout);
    totals.num_failed += failure != NULL;
    totals.num_skipped += is_skipped;
}

/* Runs the file's main function by the orders; reports a failure, and a skip. A
 * file whose main function leaves everything out has no tests. */
static void run_one(const struct harness_file *file, int number)
{
    struct runner_orders *orders = runner_orders;
    char text[80], name[RUNNER_NAME_BYTES], *stem = stem_of(file->path);
    FILE *output = tmpfile();
    const char *failure;
    int state = 0, is_late, is_skipped;

    if (output == NULL) {
        perror("run: no file for a test's output");
        exit(1);
    }
    snprintf(name, sizeof name, "%s",
             number >= 0 ? orders->names[number] : "all of it");
    orders->mode = number >= 0 ? RUN_ONE : LIST;
    orders->wanted = number;
    orders->num_tests = 0;
    orders->state = NOT_STARTED;
    is_late = !await_end(start(file, output), seconds_of_a_test(), &state);
    failure = find_failure(state, is_late, text);
    is_skipped =
        failure == NULL && (orders->state == SKIPPED ||
                            (WIFEXITED(state) && WEXITSTATUS(state) == 77));
    if (number >= 0 || failure != NULL || (is_skipped && !options.is_list)) {
        report(stem, name, failure, is_skipped, output);
    }
    free(stem);
    fclose(output);
}

static int list_file(const struct harness_file *file)
{
    char *stem = stem_of(file->path);
    int num_wanted = 0;

    run_one(file, -1);
    if (options.is_list) {
        printf("%s %s\n", stem, file->kind);
    }
    for (int i = 0; i < runner_orders->num_tests; i++) {
        char sentence[RUNNER_NAME_BYTES];

        snprintf(sentence, sizeof sentence, "%s", runner_orders->names[i]);
        make_sentence(sentence);
        num_wanted += is_wanted_test(sentence);
        if (options.is_list && is_wanted_test(sentence)) {
            printf("    %s\n", sentence);
        }
    }
    free(stem);
    return num_wanted;
}

static void run_file(const struct harness_file *file)
{
    list_file(file);
    for (int i = 0, count = runner_orders->num_tests; i < count; i++) {
        if (is_wanted_test(runner_orders->names[i])) {
            run_one(file, i);
        }
    }
}

static void filter_launched(void)
{
    static char filter[RUNNER_NAME_BYTES + 2];

    if (options.pattern != NULL) {
        snprintf(filter, sizeof filter, "*%.150s*", options.pattern);
        for (char *text = filter; *text != '\0'; text++) {
            *text = *text == ' ' ? '_' : *text;
        }
        cmocka_set_test_filter(filter);
    }
}

/* In this process, as one rank of a launcher's. Left out is what runs nothing in this job. */
static int run_launched(const struct harness_file *file, int *num_ended_p)
{
    char *kept[1024] = {NULL}; /* a file's settings end with it */
    int ret;

    for (int i = 0; i < 1023 && environ[i] != NULL; i++) {
        kept[i] = strdup(environ[i]);
    }
    ret = file->run();
    clearenv();
    for (int i = 0; kept[i] != NULL; i++) {
        putenv(kept[i]);
    }
    *num_ended_p += runner_orders->num_ended;
    runner_orders->num_ended = runner_orders->num_tests = 0;
    return ret == 77 ? 0 : ret;
}

static int parse(int argc, char **argv)
{
    int option = 1;

    for (; option < argc && argv[option][0] == '-'; option++) {
        if (strcmp(argv[option], "--list") == 0) {
            options.is_list = 1;
        } else if (strcmp(argv[option], "--together") == 0) {
            options.is_together = 1;
        } else if (strcmp(argv[option], "-v") == 0) {
            options.is_verbose = 1;
        } else if (strcmp(argv[option], "-k") == 0 && option + 1 < argc) {
            options.pattern = argv[++option];
        } else if (strcmp(argv[option], "--help") == 0) {
            fputs(usage, stdout);
            exit(0);
        } else {
            return 0;
        }
    }
    options.files = argv + option;
    options.num_files = argc - option;
    return 1;
}

/* A name of no file would be a test that passes without a word. */
static int are_files_known(void)
{
    int are_known = 1;

    for (int i = 0; i < options.num_files; i++) {
        int is_known = 0;

        for (const struct harness_file *const *file = __start_iris_tests;
             file < __stop_iris_tests; file++) {
            is_known |= has_name(*file, options.files[i]);
        }
        if (!is_known) {
            fprintf(stderr, "run: this program has no file %s\n",
                    options.files[i]);
        }
        are_known &= is_known;
    }
    return are_known;
}

static int run_all(int is_launched)
{
    int failed = 0, num_ended = 0;

    for (const struct harness_file *const *file = __start_iris_tests;
         file < __stop_iris_tests; file++) {
        if (!is_wanted_file(*file)) {
            continue;
        }
        if (is_launched) {
            failed |= run_launched(*file, &num_ended);
        } else if (options.is_list) {
            list_file(*file);
        } else {
            run_file(*file);
        }
    }
    if (is_launched) {
        return failed != 0 ? 1 : num_ended == 0 ? 77 : 0;
    }
    return 0;
}

int main(int argc, char **argv)
{
    sigset_t child;
    int ret;

    if (!parse(argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (!are_files_known()) {
        return 2;
    }
    if ((options.is_together || harness_launched() != 0) && !options.is_list) {
        filter_launched();
        return run_all(1);
    }
    runner_orders = mmap(NULL, sizeof *runner_orders, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (runner_orders == MAP_FAILED) {
        perror("run");
        return 1;
    }
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signal(SIGINT, end_running);
    signal(SIGTERM, end_running);
    ret = run_all(0);
    if (!options.is_list) {
        printf("1..%d\n", totals.number);
    }
    return totals.num_failed > 0                                     ? 1
           : ret != 0                                                ? ret
           : !options.is_list && totals.number == totals.num_skipped ? 77
                                                                     : 0;
}
