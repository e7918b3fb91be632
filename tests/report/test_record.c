/* SPDX-License-Identifier: MIT
 *
 * The flight record as readers have it: calls that are over, still in, or of a
 * process that died in them; names of kernels; times.
 */
#include "config.h"

#include "support/harness.h"

#include "base/base.h"
#include "control/internal.h"
#include "report/report.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS IRIS_RECORD_CALLS

struct rank {
    struct iris_table *segment;
    struct iris_record *record;
    struct iris_record_call calls[CALLS];
    int count; /* of them */
};

static struct rank *make_rank(void)
{
    struct rank *rank = calloc(1, sizeof *rank);

    assert_non_null(rank);
    assert_int_equal(iris_i_segment_create(1, &rank->segment), IRIS_OK);
    rank->record = iris_i_records_open(rank->segment, 0);
    assert_non_null(rank->record);
    iris_i_record_open(rank->record, 0, "");
    return rank;
}

static void drop(struct rank *rank)
{
    iris_i_segment_release(rank->segment);
    free(rank);
}

static void read_calls(struct rank *rank)
{
    rank->count = iris_i_report_calls(rank->segment->fd, 0, rank->calls);
    assert_true(rank->count >= 0);
}

/* Every field of a call follows from its id. */
static struct iris_host_event event_of(uint64_t id)
{
    return (struct iris_host_event){
        .id = id,
        .op = id % 2 == 0 ? IRIS_HOST_SIGNAL : IRIS_HOST_LAUNCH,
        .stream = (const void *)(uintptr_t)(id << 20),
        .bytes = id + 1,
        .cmp = (iris_cmp_t)(id % 6),
        .grid = (unsigned)id + 2,
        .target_rank = (int)id + 3,
        .kernel = id % 2 == 0 ? NULL : "step",
        .status = id % 3 == 0 ? IRIS_ERR_INTERRUPTED : IRIS_OK};
}

static void begin(struct rank *rank, uint64_t id)
{
    const struct iris_host_event event = event_of(id);

    iris_i_record_begin(rank->record, &event, id + 4, id + 5);
}

static void end(struct rank *rank, uint64_t id, int timed)
{
    const struct iris_host_event event = event_of(id);

    iris_i_record_end(rank->record, &event, id + 6, timed);
}

static void check_call(const struct iris_record_call *call)
{
    const struct iris_host_event event = event_of(call->id);
    int is_in = call->end_ns == 0, launches = event.op == IRIS_HOST_LAUNCH;

    assert_true(call->stream == (uintptr_t)event.stream);
    assert_true(call->bytes == event.bytes);
    assert_true(call->value == call->id + 5);
    assert_true(call->offset == call->id + 6 ||
                (is_in && call->offset == call->id + 4));
    assert_int_equal(call->op, event.op);
    assert_int_equal(call->cmp, event.cmp);
    assert_int_equal(call->grid, launches ? event.grid : 0);
    assert_int_equal(call->target_rank, launches ? -1 : event.target_rank);
    assert_string_equal(call->kernel, launches ? "step" : "");
    assert_int_equal(call->status, is_in ? IRIS_OK : event.status);
}

/* ---- Calls ---- */

static TEST(the_newest_calls_are_kept)
{
    struct rank *rank = make_rank();
    uint64_t last = 3 * CALLS + 7;

    for (uint64_t id = 1; id <= last; id++) {
        begin(rank, id);
        end(rank, id, id % 5 == 0);
    }
    read_calls(rank);
    assert_int_equal(rank->count, CALLS);
    for (int i = 0; i < CALLS; i++) {
        assert_true(rank->calls[i].id == last - CALLS + 1 + (uint64_t)i);
        assert_true(rank->calls[i].end_ns != 0);
        check_call(&rank->calls[i]);
        assert_true(rank->calls[i].id % 5 == 0 ||
                    rank->calls[i].end_ns == rank->calls[i].begin_ns);
    }
    drop(rank);
}

static TEST(a_call_is_in_until_it_ends)
{
    struct rank *rank = make_rank();
    struct iris_report *report;
    int64_t before = iris_i_now_ns();

    begin(rank, 1);
    begin(rank, 2);
    end(rank, 1, 0);
    assert_int_equal(iris_i_report_read(rank->segment->fd, &report), IRIS_OK);
    assert_int_equal(report->ranks[0].num_open, 1);
    assert_true(report->ranks[0].open[0].id == 2);
    assert_true(report->ranks[0].finished.id == 1);
    assert_true(report->ranks[0].host_calls == 2);
    check_call(&report->ranks[0].open[0]);
    assert_true(report->ranks[0].open[0].begin_ns > before - IRIS_NS_PER_MS);
    assert_true(report->ranks[0].open[0].begin_ns <
                report->now_ns + IRIS_NS_PER_MS);
    free(report);
    end(rank, 2, 1);
    read_calls(rank);
    assert_true(rank->calls[1].end_ns > rank->calls[1].begin_ns);
    drop(rank);
}

/* Its place may be a newer call's by then. */
static TEST(an_end_that_comes_late_changes_no_other_call)
{
    struct rank *rank = make_rank();

    begin(rank, 5);
    begin(rank, 5 + CALLS);
    end(rank, 5, 1);
    read_calls(rank);
    assert_int_equal(rank->count, 1);
    assert_true(rank->calls[0].id == 5 + CALLS);
    assert_true(rank->calls[0].end_ns == 0);
    check_call(&rank->calls[0]);
    drop(rank);
}

/* By SIGKILL, in call 2; and while it wrote down call 3. */
static TEST(a_rank_that_died_is_still_in_its_call)
{
    struct rank *rank = make_rank();
    struct iris_report *report;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        iris_i_record_open(rank->record, 0, "");
        begin(rank, 1);
        end(rank, 1, 1);
        begin(rank, 2);
        atomic_store(&rank->record->calls_ring[3].words[IRIS_CALL_BYTES], 99);
        atomic_store(&rank->record->calls_ring[3].mark,
                     3 << IRIS_MARK_ID | IRIS_CALL_WRITING);
        kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(iris_i_report_read(rank->segment->fd, &report), IRIS_OK);
    assert_int_equal(report->ranks[0].process, IRIS_PROCESS_GONE);
    assert_int_equal(report->ranks[0].num_open, 1);
    assert_true(report->ranks[0].open[0].id == 2);
    check_call(&report->ranks[0].open[0]);
    assert_true(report->ranks[0].finished.id == 1);
    free(report);
    drop(rank);
}

/* Its place was written again after the copy had begun, with a new kernel. */
static TEST(a_call_that_changed_meanwhile_is_read_again)
{
    struct rank *rank = make_rank();
    struct iris_record_copy *copy = aligned_alloc(64, sizeof *copy);
    struct iris_record_call call;

    assert_non_null(copy);
    begin(rank, 2);
    assert_int_equal(iris_i_records_copy(rank->segment->fd, 1, 0, copy), 1);
    begin(rank, 3);
    begin(rank, 2 + CALLS);
    for (uint64_t i = 2; i <= 3; i++) {
        copy->last.calls_ring[i].mark = rank->record->calls_ring[i].mark;
        copy->record.calls_ring[i].words[IRIS_CALL_BYTES] = 99;
        assert_int_equal(iris_i_records_take_call(copy, i, &call), 1);
        assert_true(call.id == (i == 2 ? 2 + CALLS : 3));
        check_call(&call);
    }
    free(copy);
    drop(rank);
}

/* ---- Two threads of one rank ---- */

/* In each round they make fewer calls than the record has places, so that none
 * of them is held up for longer than it may be. */
#define ROUNDS 300
#define PER_ROUND (CALLS / 2)

struct two {
    struct rank *rank;
    atomic_uint_fast64_t last_id;
    pthread_barrier_t round;
};

static void *make_calls(void *arg)
{
    struct two *two = arg;

    for (int i = 0; i < ROUNDS * PER_ROUND; i++) {
        uint64_t id = atomic_fetch_add(&two->last_id, 1) + 1;

        if (i % PER_ROUND == 0) {
            pthread_barrier_wait(&two->round);
        }
        begin(two->rank, id);
        end(two->rank, id, id % 7 == 0);
    }
    return NULL;
}

static TEST(two_threads_write_whole_calls)
{
    static struct two two; /* threads may outlive a test that fails */
    struct rank *rank = make_rank();
    pthread_t threads[2];

    two.rank = rank;
    pthread_barrier_init(&two.round, NULL, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, make_calls, &two),
                         0);
    }
    while (atomic_load(&two.last_id) < 2 * ROUNDS * PER_ROUND) {
        read_calls(rank);
        for (int i = 0; i < rank->count; i++) {
            check_call(&rank->calls[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&two.round);
    read_calls(rank);
    assert_int_equal(rank->count, CALLS);
    for (int i = 0; i < CALLS; i++) {
        check_call(&rank->calls[i]);
        assert_true(rank->calls[i].end_ns != 0);
    }
    drop(rank);
}

/* ---- Names ---- */

static void launch(struct rank *rank, uint64_t id, const char *kernel)
{
    const struct iris_host_event event = {.id = id, .kernel = kernel};

    iris_i_record_begin(rank->record, &event, 0, 0);
    iris_i_record_end(rank->record, &event, 0, 0);
}

/* As it is when a module is unloaded and another one comes to its place. */
static TEST(two_kernels_may_have_their_names_at_one_address)
{
    char name[2 * IRIS_RECORD_NAME] = "first";
    struct rank *rank = make_rank();

    launch(rank, 1, name);
    launch(rank, 2, strcpy(name, "second"));
    memset(name, 'x', sizeof name - 1);
    launch(rank, 3, name);
    launch(rank, 4, name);
    read_calls(rank);
    assert_string_equal(rank->calls[0].kernel, "first");
    assert_string_equal(rank->calls[1].kernel, "second");
    assert_int_equal(strlen(rank->calls[2].kernel), IRIS_RECORD_NAME - 1);
    assert_string_equal(rank->calls[3].kernel, rank->calls[2].kernel);
    for (int i = 0, names = 0; i < IRIS_RECORD_KERNELS; i++) {
        names += (int)atomic_load(&rank->record->kernels[i].known);
        assert_true(names <= 3);
    }
    drop(rank);
}

static TEST(a_name_that_finds_no_place_is_not_another_one)
{
    static char names[2 * IRIS_RECORD_KERNELS][16];
    struct rank *rank = make_rank();
    int kept = 0;

    for (int i = 0; i < 2 * IRIS_RECORD_KERNELS; i++) {
        snprintf(names[i], sizeof names[i], "kernel %d", i);
        launch(rank, (uint64_t)i + 1, names[i]);
    }
    read_calls(rank);
    assert_int_equal(rank->count, 2 * IRIS_RECORD_KERNELS);
    for (int i = 0; i < rank->count; i++) {
        if (strcmp(rank->calls[i].kernel, names[i]) == 0) {
            kept++;
        } else {
            assert_string_equal(rank->calls[i].kernel, "(name not kept)");
        }
    }
    assert_true(kept > IRIS_RECORD_KERNELS / 2);
    drop(rank);
}

/* ---- Times ---- */

static TEST(without_a_counter_times_are_the_clocks)
{
    struct rank *rank;
    int had_counter;
    int64_t before, after;

    drop(make_rank()); /* decides */
    had_counter = iris_i_ticks_count;
    iris_i_ticks_count = 0;
    rank = make_rank();
    before = iris_i_now_ns();
    begin(rank, 1);
    end(rank, 1, 1);
    after = iris_i_now_ns();
    read_calls(rank);
    assert_true(before <= rank->calls[0].begin_ns);
    assert_true(rank->calls[0].begin_ns <= rank->calls[0].end_ns);
    assert_true(rank->calls[0].end_ns <= after);
    drop(rank);
    iris_i_ticks_count = had_counter;
}

/* As is due after a while: the record is calibrated in passing. */
static TEST(the_scale_follows_the_clock)
{
    struct rank *rank = make_rank();
    uint64_t seq;

    atomic_store(&rank->record->scale_span, 0);
    seq = atomic_load(&rank->record->scale.seq);
    begin(rank, 1);
    assert_true(atomic_load(&rank->record->scale.seq) > seq);
    assert_true(atomic_load(&rank->record->scale_span) != 0);
    drop(rank);
}

/* ---- Versions ---- */

static TEST(a_reader_says_that_the_record_is_of_another_version)
{
    struct rank *rank = make_rank();
    struct iris_records_header *header = rank->segment->header;
    char text[64];
    int num_ranks;

    for (int change = -1; change <= 1; change += 2) {
        header->version = IRIS_RECORDS_VERSION + (uint32_t)change;
        assert_int_equal(iris_i_records_check(rank->segment->fd, &num_ranks),
                         IRIS_ERR_MISMATCH);
        snprintf(text, sizeof text, "is of layout %u, this is %u",
                 header->version, IRIS_RECORDS_VERSION);
        assert_non_null(strstr(iris_last_error(), text));
        assert_int_equal(iris_i_report_calls(rank->segment->fd, 0, rank->calls),
                         -1);
    }
    drop(rank);
}

TEST_GROUP(unit);
