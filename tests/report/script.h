/* SPDX-License-Identifier: MIT
 *
 * Scripts that ranks play, for tests of reports: who waits for what, and who
 * does not do it.
 */
#ifndef IRIS_TESTS_REPORT_SCRIPT_H
#define IRIS_TESTS_REPORT_SCRIPT_H

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++, and kernels that only CPUs run */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define WORDS 16
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
 *   uN          a kernel waits for word N to be >= 2^63, unsigned
 *   B R G       a barrier, an all-reduce, an all-gather on the stream
 *   pG          a barrier of the host in group G, 1 or 2, which the last two
 *               ranks make
 *   dG rG       the same, and an all-reduce, on the stream
 *   b m         a barrier of the host, an iris_malloc
 *   n H         names the words, starts a thread that does nothing
 *   2           the next steps are on another stream
 *   y           waits for the streams
 *   l           stays outside until the report is there
 *   c h         a kernel runs, the host stays outside, for two more reports
 *   U           sends SIGUSR2 to its process, twice
 *   T K E       stops its process, kills it, returns an error */
struct shared {
    pid_t pids[RANKS];
    atomic_int reports; /* that somebody has made of the job */
    atomic_int ended;
    int wrong; /* that call it hung */
    int judged;
};

struct job {
    const char *const *scripts;
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
    atomic_int *reports;
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
    case 'u':
        (void)iris_wait_until_u64(dev, word, IRIS_CMP_GE, (uint64_t)1 << 63);
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
    case 'c':
        for (int end = atomic_load(args->reports) + 2;
             atomic_load(args->reports) < end;) {
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
    iris_group_t *groups[2];
    pthread_t helper;
    int has_helper;
    atomic_int helper_ends;
};

/* Gives up in the end, so that a test that fails ends. */
static int stay_outside(void)
{
    for (int ms = 0; ms < 30000 && !harness_is_logged("] job "); ms++) {
        poll(NULL, 0, 1);
    }
    return 0;
}

static int launch(struct player *player, int what, const int *numbers)
{
    struct step_args args = {.context = iris_device_context(player->iris),
                             .words = player->words,
                             .reports = &player->job->shared->reports,
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

static int reduce_in_group(struct player *player, int group)
{
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.group = player->groups[group];
    return iris_all_reduce(player->iris, player->data, player->data + 64, 64,
                           IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &options);
}

/* One of which Iris does not know what it may do. */
static void *do_nothing(void *end)
{
    while (atomic_load((atomic_int *)end) == 0) {
        poll(NULL, 0, 1);
    }
    return NULL;
}

static int play_stream(struct player *player, const char *text,
                       const int *numbers)
{
    iris_t *iris = player->iris;

    switch (text[0]) {
    case 'd':
        return iris_device_barrier(iris, player->stream,
                                   player->groups[numbers[0] - 1]);
    case 'r':
        return reduce_in_group(player, numbers[0] - 1);
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
    case 'p':
        return iris_barrier(player->iris, NULL, player->groups[numbers[0] - 1]);
    case 'n':
        return iris_name(player->iris, player->words, "inbox");
    case 'H':
        player->has_helper = pthread_create(&player->helper, NULL, do_nothing,
                                            &player->helper_ends) == 0;
        return !player->has_helper;
    case '2':
        player->stream = player->other;
        return 0;
    case 'l':
        return stay_outside();
    case 'h':
        for (int end = atomic_load(&player->job->shared->reports) + 2;
             atomic_load(&player->job->shared->reports) < end;) {
            poll(NULL, 0, 1);
        }
        return 0;
    case 'U':
        return kill(getpid(), SIGUSR2) != 0 || kill(getpid(), SIGUSR2) != 0;
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

static iris_status_t make_groups(struct player *player)
{
    int n = iris_num_ranks(player->iris), rank = iris_rank(player->iris);
    const int ranks[2] = {n - 2, n - 1};
    struct iris_ccl_options options;
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < 2 && n >= 2 && status == IRIS_OK; i++) {
        status = iris_group_create(player->iris, ranks, rank >= n - 2 ? 2 : 0,
                                   &player->groups[i]);
    }
    if (status == IRIS_OK) {
        status = iris_ccl_prepare(player->iris);
    }
    iris_ccl_options_init(&options);
    options.group = player->groups[0];
    return status == IRIS_OK && options.group != NULL
               ? iris_all_reduce_preamble(player->iris, &options)
               : status;
}

static int body(iris_t *iris, void *arg)
{
    const struct job *job = arg;
    struct player player = {.iris = iris, .job = job};
    int status;

    job->shared->pids[iris_rank(iris)] = getpid();
    CHECK_OK(
        iris_calloc(iris, WORDS, sizeof(uint64_t), (void **)&player.words));
    CHECK_OK(iris_calloc(iris, 512, sizeof(float), (void **)&player.data));
    CHECK_OK(iris_stream_create(iris, &player.other));
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    CHECK_OK(make_groups(&player));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    status = play(&player, job->scripts[iris_rank(iris)]);
    if (player.has_helper) {
        atomic_store(&player.helper_ends, 1);
        pthread_join(player.helper, NULL);
    }
    if (status != 0) {
        let_go(job);
    }
    return status;
}

static int count_ranks(const char *const *scripts)
{
    int count = 0;

    while (count < RANKS && scripts[count] != NULL) {
        count++;
    }
    return count;
}

static void open_job(struct job *job, const char *const *scripts)
{
    job->scripts = scripts;
    job->shared = mmap(NULL, sizeof *job->shared, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(job->shared != MAP_FAILED);
}

static void close_job(struct job *job)
{
    munmap(job->shared, sizeof *job->shared);
}

#endif /* IRIS_ON_CPU */

#endif /* IRIS_TESTS_REPORT_SCRIPT_H */
