/* SPDX-License-Identifier: MIT
 *
 * The test harness: making ranks and reporting from them.
 */
#include "config.h"

#include "support/harness.h"

#include "base/base.h"
#include "context/context.h"
#include "job/internal.h"
#include "support/leaks.h"
#include "support/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

int harness_is_long(void)
{
    const char *text = getenv("IRIS_TEST_LONG");

    return text != NULL && strcmp(text, "1") == 0;
}

int harness_setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char prefix[300];

    snprintf(folder, sizeof folder, "%.200s/iris-test-XXXXXX",
             tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(prefix, sizeof prefix, "%s/iris", folder);
    setenv("IRIS_HEAP_BASES_PREFIX", prefix, 0);
    setenv("IRIS_HEAP_SIZE", "16M", 0);
    setenv("IRIS_TIMEOUT_MS", harness_is_long() ? "3600000" : "60000", 0);
    setenv("IRIS_LOG_LEVEL", "warning", 0);
    leaks_note_files();
    return 0;
}

int harness_cpu_setup(void **state)
{
    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "cpu", 1);
    return harness_setup(state);
}

int harness_gpu_setup(void **state)
{
    if (!harness_has_gpu()) {
        printf("left out: needs a GPU\n");
        return 77;
    }
    return harness_setup(state);
}

int harness_teardown(void **state)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    const char *prefix;
    char path[600];

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%.255s", folder, entry->d_name);
            unlink(path);
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    leaks_forget_files();
    prefix = getenv("IRIS_HEAP_BASES_PREFIX");
    if (prefix != NULL && strncmp(prefix, folder, strlen(folder)) == 0) {
        unsetenv("IRIS_HEAP_BASES_PREFIX"); /* another group may follow */
    }
    return rmdir(folder);
}

const char *harness_folder(void)
{
    return folder;
}

#define CAPTURE_BYTES (1 << 20)

void harness_capture(struct harness_capture *capture)
{
    char path[320];

    snprintf(path, sizeof path, "%s/stderr", folder);
    capture->text = NULL;
    capture->saved = dup(STDERR_FILENO);
    capture->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    assert_true(capture->file >= 0);
    dup2(capture->file, STDERR_FILENO);
}

const char *harness_captured(struct harness_capture *capture)
{
    ssize_t bytes;

    dup2(capture->saved, STDERR_FILENO);
    close(capture->saved);
    capture->text = malloc(CAPTURE_BYTES);
    bytes = pread(capture->file, capture->text, CAPTURE_BYTES - 1, 0);
    capture->text[bytes < 0 ? 0 : bytes] = '\0';
    close(capture->file);
    return capture->text;
}

char *harness_read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t room = 0;

    if (file == NULL) {
        return NULL;
    }
    if (getdelim(&text, &room, '\0', file) < 0) { /* it is empty */
        free(text);
        text = strdup("");
    }
    fclose(file);
    return text;
}

int harness_is_logged(const char *text)
{
    char path[320], *all;
    int found;

    snprintf(path, sizeof path, "%s/stderr", folder);
    all = harness_read_file(path);
    found = all != NULL && strstr(all, text) != NULL;
    free(all);
    return found;
}

int harness_await_logged(const char *text)
{
    int found = harness_is_logged(text);

    for (int ms = 0; !found && ms < 10000; ms++) {
        poll(NULL, 0, 1);
        found = harness_is_logged(text);
    }
    return found;
}

iris_t *harness_init(void)
{
    iris_t *iris = NULL;
    iris_status_t status = iris_init(NULL, &iris);

    if (status != IRIS_OK) {
        print_error("%s\n", iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
    return iris;
}

int harness_open_again(iris_t *iris, const struct iris_config *config,
                       iris_t **context_p)
{
    struct iris_bootstrap bootstrap;
    char key[IRIS_KEY_BYTES] = "";

    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_i_bootstrap_random_key(key));
    }
    CHECK_OK(iris_broadcast(iris, key, sizeof key, 0, NULL));
    iris_i_bootstrap_thread(key, iris_rank(iris), iris_num_ranks(iris),
                            &bootstrap);
    CHECK_OK(iris_i_init(config, &bootstrap, context_p));
    CHECK_EQUAL(iris_rank(*context_p), iris_rank(iris));
    CHECK_EQUAL(iris_num_ranks(*context_p), iris_num_ranks(iris));
    return 0;
}

struct iris_heap_stats harness_stats(const iris_t *iris)
{
    struct iris_heap_stats stats = {0};

    (void)iris_heap_stats(iris, &stats);
    return stats;
}

struct iris_config harness_sim_config(const char *check)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = "threads";
    config.backend = "sim";
    config.sim_device = "cpu";
    config.heap_bytes = 16 << 20;
    config.heap_bases_files = 0;
    config.check = check;
    config.log_level = "off";
    return config;
}

void harness_in_child(int (*fn)(void *), void *arg)
{
    pid_t pid;
    int how;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit(fn(arg));
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
}

int harness_launched(void)
{
    const char *rank = getenv("IRIS_RANK");
    const char *count = rank != NULL ? getenv("IRIS_NUM_RANKS")
                                     : getenv("OMPI_COMM_WORLD_SIZE");

    if (count == NULL && getenv("RANK") != NULL) {
        count = getenv("WORLD_SIZE");
    }
    return count == NULL ? 0 : atoi(count);
}

/* What the current test's calls of harness_run() came to. */
static int runs;
static atomic_int *left_out; /* shared with rank processes, which say so, too */
static char why_left_out[80];

/* Whether this run can have so many ranks. A machine may have fewer GPUs than a
 * test has ranks. */
int harness_fits(int num_ranks)
{
    const char *most = getenv("IRIS_TEST_MAX_RANKS");
    int launched = harness_launched();

    if (launched != 0 && launched != num_ranks) {
        snprintf(why_left_out, sizeof why_left_out,
                 "%d ranks, the launcher made %d", num_ranks, launched);
        return 0;
    }
    if (most != NULL && num_ranks > atoi(most)) {
        snprintf(why_left_out, sizeof why_left_out,
                 "%d ranks, IRIS_TEST_MAX_RANKS is %d", num_ranks, atoi(most));
        return 0;
    }
    return 1;
}

int harness_run(int num_ranks, iris_rank_fn body, void *arg)
{
    int left_out_before = *left_out;
    iris_status_t status;

    if (!harness_fits(num_ranks)) {
        atomic_fetch_add(left_out, 1);
        return 0;
    }
    status = iris_spawn(NULL, num_ranks, body, arg);
    if (status != IRIS_OK) {
        print_error("%d ranks: %s: %s\n", num_ranks, iris_status_string(status),
                    iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
    runs += *left_out == left_out_before;
    return 1;
}

static struct runner_orders no_orders;
struct runner_orders *runner_orders = &no_orders;

void harness_skip(const char *file, int line)
{
    runner_orders->state = SKIPPED;
    _skip(file, line);
}

static void run_case(void **state)
{
    CMUnitTestFunction test = *(CMUnitTestFunction *)*state;

    if (left_out == NULL) {
        left_out = mmap(NULL, sizeof *left_out, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(left_out, MAP_FAILED);
    }
    runs = 0;
    *left_out = 0;
    why_left_out[0] = '\0';
    *state = NULL;
    runner_orders->state = STARTED;
    test(state);
    if (runs == 0 && *left_out > 0) {
        if (why_left_out[0] != '\0') {
            print_message("left out: %s\n", why_left_out);
        }
        skip();
    }
    runner_orders->state = ENDED;
    runner_orders->num_ended++;
}

/* The linker's: the pointers that TEST() put into the section. */
extern const struct harness_case *const __start_iris_cases[];
extern const struct harness_case *const __stop_iris_cases[];

static int compare_lines(const void *a, const void *b)
{
    const struct harness_case *const *one = a, *const *other = b;

    return (*one)->line - (*other)->line;
}

/* Compilers put a file's cases into the section in any order. */
static size_t find_cases(const char *path, struct CMUnitTest *tests)
{
    const struct harness_case *found[RUNNER_MAX_TESTS];
    size_t count = 0;

    for (const struct harness_case *const *entry = __start_iris_cases;
         entry < __stop_iris_cases; entry++) {
        if (strcmp((*entry)->path, path) == 0) {
            assert_true(count < RUNNER_MAX_TESTS);
            found[count++] = *entry;
        }
    }
    qsort(found, count, sizeof *found, compare_lines);
    for (size_t i = 0; i < count; i++) {
        tests[i] =
            (struct CMUnitTest){found[i]->name, run_case, found[i]->before,
                                found[i]->after, (void *)&found[i]->test};
    }
    return count;
}

int harness_run_file(const char *path, CMFixtureFunction setup,
                     CMFixtureFunction teardown)
{
    struct runner_orders *orders = runner_orders;
    struct CMUnitTest tests[RUNNER_MAX_TESTS];
    size_t count = find_cases(path, tests), first = (size_t)orders->num_tests;
    size_t wanted = (size_t)orders->wanted - first;
    int ret = 0;

    assert_true(first + count <= RUNNER_MAX_TESTS);
    for (size_t i = 0; i < count; i++) {
        snprintf(orders->names[orders->num_tests++], RUNNER_NAME_BYTES, "%s",
                 tests[i].name);
    }
    if (count == 0) {
        printf("left out: this build has none of these tests\n");
        return 77;
    }
    if (orders->mode == LIST || (orders->mode == RUN_ONE && wanted >= count)) {
        return 0;
    }
    if (setup != NULL) {
        ret = setup(NULL);
    }
    if (ret != 0) {
        return ret;
    }
    return orders->mode == RUN_ALL
               ? _cmocka_run_group_tests(path, tests, count, NULL, teardown)
               : _cmocka_run_group_tests(path, &tests[wanted], 1, NULL,
                                         teardown);
}

void harness_run_each(const int *ranks, iris_rank_fn body)
{
    for (; *ranks != 0; ranks++) {
        if (*ranks == ALL_RANKS) {
            harness_run_all(body, NULL);
        } else {
            harness_run(*ranks, body, NULL);
        }
    }
}

void harness_run_all(iris_rank_fn body, void *arg)
{
    const char *most = getenv("IRIS_TEST_MAX_RANKS");
    int launched = harness_launched();
    int here = launched != 0 || most == NULL ? launched : atoi(most);

    for (int num_ranks = 1; num_ranks <= 8; num_ranks *= 2) {
        harness_run(num_ranks, body, arg);
        if (here > num_ranks && here < 2 * num_ranks && here < 8) {
            harness_run(here, body, arg);
        }
    }
}

int harness_run_sim(int num_ranks, iris_rank_fn body, void *arg)
{
    const char *backend = getenv("IRIS_BACKEND");
    char kept[32];
    int ran;

    snprintf(kept, sizeof kept, "%s", backend != NULL ? backend : "");
    setenv("IRIS_BACKEND", "sim", 1);
    ran = harness_run(num_ranks, body, arg);
    if (backend != NULL) {
        setenv("IRIS_BACKEND", kept, 1);
    } else {
        unsetenv("IRIS_BACKEND");
    }
    return ran;
}

size_t harness_count(size_t count, size_t sample)
{
    const char *text = getenv("IRIS_TEST_SCALE");
    size_t scale = text != NULL ? strtoul(text, NULL, 10) : 1;
    size_t wanted = harness_is_long() ? count : sample;

    /* Nothing of a loop is a test of something else, so one round stays. */
    return scale <= 1 || wanted == 0 ? wanted : (wanted - 1) / scale + 1;
}

int harness_on_gpu(const iris_t *iris)
{
    return iris->device.wavefront > 1;
}

static int has_gpu(void)
{
    const struct iris_bootstrap bootstrap = {.how = "test", .num_ranks = 1};
    struct iris_placement placement;
    struct iris_settings settings;

    return iris_i_settings_load(NULL, &settings) == IRIS_OK &&
           iris_i_place(&settings, &bootstrap, &placement) == IRIS_OK &&
           placement.type->is_gpu;
}

int harness_has_gpu(void)
{
    int state = 0;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(has_gpu() ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &state, 0) == pid && WIFEXITED(state) &&
           WEXITSTATUS(state) == 0;
}

int harness_left_out(const char *body, const char *why)
{
    fprintf(stderr, "%s: left out on a GPU: %s\n", body, why);
    atomic_fetch_add(left_out, 1);
    return 0;
}

iris_status_t harness_read(iris_t *iris, void *to, const void *from_heap,
                           size_t bytes)
{
    iris_status_t status = iris_memcpy(iris, to, from_heap, bytes, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

iris_status_t harness_write(iris_t *iris, void *to_heap, const void *from,
                            size_t bytes)
{
    iris_status_t status = iris_memcpy(iris, to_heap, from, bytes, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

int harness_holds(iris_t *iris, const void *from_heap, size_t bytes, int value)
{
    unsigned char *seen = malloc(bytes);
    size_t i = 0;

    if (seen == NULL || harness_read(iris, seen, from_heap, bytes) != IRIS_OK) {
        fprintf(stderr, "%zu bytes cannot be read: %s\n", bytes,
                seen == NULL ? "no memory" : iris_last_error());
    } else {
        while (i < bytes && seen[i] == value) {
            i++;
        }
        if (i < bytes) {
            fprintf(stderr, "byte %zu of %zu is %d, expected %d\n", i, bytes,
                    seen[i], value);
        }
    }
    free(seen);
    return i == bytes;
}

int harness_failed(const char *file, int line, const char *what, long long seen,
                   long long expected)
{
    fprintf(stderr, "%s:%d: %s: %lld, expected %lld\n", file, line, what, seen,
            expected);
    return 1;
}

int harness_failed_status(const char *file, int line, const char *call,
                          iris_status_t seen, iris_status_t expected)
{
    fprintf(stderr, "%s:%d: %s: %s, expected %s\n    %s\n", file, line, call,
            iris_status_string(seen), iris_status_string(expected),
            iris_last_error());
    return 1;
}

int harness_message_has(const char *text)
{
    return strstr(iris_last_error(), text) != NULL;
}

static int lacks(const char *file, int line, const char *what, const char *text)
{
    if (harness_message_has(text)) {
        return 0;
    }
    fprintf(stderr, "%s:%d: the message lacks its %s, \"%s\": %s\n", file, line,
            what, text, iris_last_error());
    return 1;
}

int harness_lacks(const char *file, int line, const iris_t *iris,
                  const char *argument, const char *remedy)
{
    char rank[32];

    snprintf(rank, sizeof rank, "[%d/%d]", iris_rank(iris),
             iris_num_ranks(iris));
    return lacks(file, line, "rank", rank) |
           lacks(file, line, "argument", argument) |
           lacks(file, line, "remedy", remedy);
}
