/* SPDX-License-Identifier: MIT
 *
 * Planted hangs: each rank plays a script, somebody waits for what does not
 * come, and the report that the job writes at the deadline or at a death names
 * the cause. With ranks as threads and as processes.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 16
#define DEADLINE_MS 500
#define NEVER_MS 60000
#define LOCK 9
#define COUNT 10
#define RANKS 4

/* The steps of a script, by spaces:
 *   wN=V wN>V   a kernel waits for word N of its rank to be == V, >= V
 *   sN,V,R      a kernel sets word N of rank R to V
 *   SN,V,R      the stream does
 *   aN,V,R      a kernel adds
 *   WN>V        the stream waits
 *   L           a kernel takes the lock of rank 0, and keeps it
 *   PG          a kernel of G workgroups whose every one waits for all
 *   B R G       a barrier, an all-reduce, an all-gather on the stream
 *   b m         a barrier of the host, an iris_malloc
 *   2           the next steps are on another stream
 *   y           waits for the streams
 *   l           stays outside until the report is there
 *   T K E       stops its process, kills it, returns an error */
struct hang {
    const char *name;
    const char *scripts[RANKS]; /* NULL: no such rank */
    int host;                   /* the deadline is the host's */
    int processes;              /* only as those */
    const char *verdict;
    const char *cause[3]; /* what its sentence has */
};

struct shared {
    pid_t pids[RANKS];
};

struct job {
    const struct hang *hang;
    struct shared *shared;
};

struct step_args {
    const int64_t *context;
    uint64_t *words;
    uint64_t value;
    int32_t word;
    int32_t rank;
    int32_t what;
    int32_t unused;
};

IRIS_KERNEL(step, struct step_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *word = args->words + args->word;

    if (!iris_wg_leader(wg)) {
        return;
    }
    switch (args->what) {
    case '=':
        (void)iris_wait_until_u64(dev, word, IRIS_CMP_EQ, args->value);
        break;
    case '>':
        (void)iris_wait_until_u64(dev, word, IRIS_CMP_GE, args->value);
        break;
    case 's':
        iris_signal_set(dev, word, args->value, args->rank);
        break;
    case 'a':
        iris_signal_add(dev, word, args->value, args->rank);
        break;
    case 'L':
        while (iris_atomic_cas(dev, word, 0, 1, 0, IRIS_ACQUIRE,
                               IRIS_SCOPE_SYSTEM) != 0) {
        }
        break;
    default:
        iris_signal_add(dev, word, 1, dev.rank);
        (void)iris_wait_until_u64(dev, word, IRIS_CMP_GE, wg.num_wgs);
        break;
    }
}

/* ---- Playing ---- */

struct player {
    iris_t *iris;
    const struct job *job;
    iris_stream_t *stream;
    iris_stream_t *other;
    uint64_t *words;
    float *data;
};

static int is_reported(void)
{
    static const char mark[] = "] job ";
    char path[320], *text = calloc(1, 65536);
    FILE *file;
    int found = 0;

    snprintf(path, sizeof path, "%s/stderr", harness_folder());
    file = fopen(path, "r");
    if (file != NULL && text != NULL) {
        (void)!fread(text, 1, 65535, file);
        found = strstr(text, mark) != NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    free(text);
    return found;
}

/* Gives up in the end, so that a test that fails ends. */
static int stay_outside(void)
{
    for (int ms = 0; ms < 30000 && !is_reported(); ms++) {
        poll(NULL, 0, 1);
    }
    return 0;
}

static int launch(struct player *player, int what, const int *numbers)
{
    struct step_args args = {.context = iris_device_context(player->iris),
                             .words = player->words,
                             .what = what,
                             .word = numbers[0],
                             .value = (uint64_t)numbers[1],
                             .rank = numbers[2]};
    unsigned grid = 1;

    if (what == 'P') {
        grid = (unsigned)numbers[0];
        args.word = COUNT;
    } else if (what == 'L') {
        args.word = LOCK;
    }
    return iris_launch(player->iris, step, grid, 1, &args, sizeof args,
                       player->stream);
}

static int play_stream(struct player *player, const char *text,
                       const int *numbers)
{
    iris_t *iris = player->iris;

    switch (text[0]) {
    case 'S':
        return iris_signal_on_stream(iris, player->words + numbers[0],
                                     (uint64_t)numbers[1], numbers[2],
                                     player->stream);
    case 'W':
        return iris_wait_on_stream(iris, player->words + numbers[0],
                                   IRIS_CMP_GE, (uint64_t)numbers[1],
                                   player->stream);
    case 'B':
        return iris_device_barrier(iris, player->stream, NULL);
    case 'R':
        return iris_all_reduce(iris, player->data, player->data + 64, 64,
                               IRIS_DTYPE_F32, IRIS_REDUCE_SUM, NULL);
    case 'G':
        return iris_all_gather(iris, player->data, player->data + 64, 16,
                               IRIS_DTYPE_F32, NULL);
    default:
        return launch(player, text[0] == 'w' ? text[2] : text[0], numbers);
    }
}

static int play_step(struct player *player, const char *text)
{
    int numbers[3] = {0, 0, 0};
    void *ptr;

    (void)sscanf(text + 1, "%d%*[=>,]%d,%d", &numbers[0], &numbers[1],
                 &numbers[2]);
    switch (text[0]) {
    case 'b':
        return iris_barrier(player->iris, NULL, NULL);
    case 'm':
        return iris_malloc(player->iris, 64, &ptr);
    case 'y':
        return iris_stream_synchronize(player->iris, player->stream);
    case '2':
        player->stream = player->other;
        return 0;
    case 'l':
        return stay_outside();
    case 'T':
        return raise(SIGSTOP);
    case 'K':
        return raise(SIGKILL);
    case 'E':
        return 1;
    default:
        return play_stream(player, text, numbers);
    }
}

static int play(struct player *player, const char *script)
{
    char copy[128], *rest = NULL;
    int status = 0;

    snprintf(copy, sizeof copy, "%s", script);
    for (char *text = strtok_r(copy, " ", &rest); text != NULL && status == 0;
         text = strtok_r(NULL, " ", &rest)) {
        status = play_step(player, text);
    }
    for (int i = 0; i < 2 && status == 0; i++) {
        status = iris_stream_synchronize(player->iris,
                                         i == 0 ? NULL : player->other);
    }
    return status;
}

/* A rank that is stopped must end, too. */
static void let_go(const struct job *job)
{
    for (int i = 0; i < RANKS; i++) {
        if (job->shared->pids[i] != 0 && job->shared->pids[i] != getpid()) {
            kill(job->shared->pids[i], SIGCONT);
        }
    }
}

static int body(iris_t *iris, void *arg)
{
    const struct job *job = arg;
    struct player player = {.iris = iris, .job = job};
    int status;

    job->shared->pids[iris_rank(iris)] = getpid();
    CHECK_OK(iris_calloc(iris, WORDS, sizeof(uint64_t),
                         (void **)&player.words));
    CHECK_OK(iris_calloc(iris, 512, sizeof(float), (void **)&player.data));
    CHECK_OK(iris_stream_create(iris, &player.other));
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    status = play(&player, job->hang->scripts[iris_rank(iris)]);
    if (status != 0) {
        let_go(job);
    }
    return status;
}

/* ---- The hangs ---- */

static const struct hang hangs[] = {
#include "report/hangs.def"
};

static int count_ranks(const struct hang *hang)
{
    int count = 0;

    while (count < RANKS && hang->scripts[count] != NULL) {
        count++;
    }
    return count;
}

/* The line of the report with its cause, for the caller to free; NULL. */
static char *cause_of(const char *text)
{
    static const char *const verdicts[] = {"] RUNNING: ", "] LATE: ",
                                           "] STOPPED: ", "] HUNG: ",
                                           "] LOST: "};

    for (int i = 0; i < 5; i++) {
        const char *at = strstr(text, verdicts[i]);

        if (at != NULL) {
            return strndup(at + 2, strcspn(at + 2, "\n"));
        }
    }
    return NULL;
}

static int is_named(const struct hang *hang, const char *cause)
{
    if (cause == NULL ||
        strncmp(cause, hang->verdict, strlen(hang->verdict)) != 0) {
        return 0;
    }
    for (int i = 0; i < 3 && hang->cause[i] != NULL; i++) {
        if (strstr(cause, hang->cause[i]) == NULL) {
            return 0;
        }
    }
    return 1;
}

static int run(const struct hang *hang, const char *spawn)
{
    struct harness_capture capture;
    struct iris_config config;
    struct job job = {.hang = hang};
    char *cause;
    iris_status_t status;
    int named;

    job.shared = mmap(NULL, sizeof *job.shared, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(job.shared != MAP_FAILED);
    iris_config_init(&config);
    config.spawn = spawn;
    config.timeout_ms = hang->host ? DEADLINE_MS : NEVER_MS;
    config.device_timeout_ms = hang->host ? 0 : DEADLINE_MS;
    harness_capture(&capture);
    status = iris_spawn(&config, count_ranks(hang), body, &job);
    harness_captured(&capture);
    munmap(job.shared, sizeof *job.shared);
    cause = cause_of(capture.text);
    named = status != IRIS_OK && is_named(hang, cause);
    if (!named) {
        print_error("%s, %s: \"%s\" is not %s with \"%s\" in\n%s", hang->name,
                    spawn, cause == NULL ? "nothing" : cause, hang->verdict,
                    hang->cause[0], capture.text);
    } else if (getenv("IRIS_TEST_SHOW") != NULL) {
        print_message("%s, %s: %s\n", hang->name, spawn, cause);
    }
    free(cause);
    free(capture.text);
    return named;
}

static void the_report_names_the_cause(void **state)
{
    const char *only = getenv("IRIS_TEST_HANG");
    int wrong = 0;

    (void)state;
    for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
        if (only != NULL && strcmp(only, hangs[i].name) != 0) {
            continue;
        }
        if (!hangs[i].processes) {
            wrong += !run(&hangs[i], "threads");
        }
        wrong += !run(&hangs[i], "processes");
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_report_names_the_cause),
    };

    return cmocka_run_group_tests(tests, harness_cpu_setup, harness_teardown);
}
