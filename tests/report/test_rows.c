/* SPDX-License-Identifier: MIT
 *
 * Records of ranks of another node: a row that arrives here equals the record
 * there, does not count if a part is missing, and is written nowhere else.
 */
#include "config.h"

#include "support/harness.h"

#include "control/internal.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAR 1 /* the rank of the other host; rank 0 reads */
#define RANKS 2

/* Two hosts' files of records. */
struct hosts {
    struct iris_table *here;
    struct iris_table *there;
    struct iris_record *record; /* the far rank's own */
    uint64_t hash;              /* of the last row */
    uint64_t count;             /* rows that have come */
    size_t sent;                /* messages */
    size_t lost;                /* number of the message to lose; 0: none */
};

static struct hosts *make_hosts(void)
{
    struct hosts *hosts = calloc(1, sizeof *hosts);

    assert_non_null(hosts);
    assert_int_equal(iris_i_segment_create(RANKS, &hosts->here), IRIS_OK);
    assert_int_equal(iris_i_segment_create(RANKS, &hosts->there), IRIS_OK);
    iris_i_records_mark_elsewhere(hosts->here, FAR);
    hosts->record = iris_i_records_open(hosts->there, FAR);
    assert_non_null(hosts->record);
    snprintf(hosts->record->host, sizeof hosts->record->host, "over-there");
    iris_i_record_open(hosts->record, FAR, "job");
    return hosts;
}

static void drop(struct hosts *hosts)
{
    iris_i_segment_release(hosts->here);
    iris_i_segment_release(hosts->there);
    free(hosts);
}

static void deliver(void *arg, const struct iris_message_head *head,
                    const void *body)
{
    struct hosts *hosts = arg;
    unsigned char message[IRIS_MESSAGE_MOST];
    struct iris_message_head taken;

    memcpy(message, head, sizeof *head);
    memcpy(message + sizeof *head, body, head->bytes);
    assert_int_equal(
        iris_i_message_take(message, sizeof *head + head->bytes, RANKS, &taken),
        sizeof *head + head->bytes);
    if (++hosts->sent != hosts->lost) {
        iris_i_row_take(hosts->here, &taken, message + sizeof *head,
                        &hosts->count);
    }
}

static void send_row(struct hosts *hosts)
{
    iris_i_row_send(hosts->there, FAR, &hosts->hash, deliver, hosts);
}

/* The far rank, as a reader of this host sees it. */
static struct iris_report_rank look(struct hosts *hosts)
{
    struct iris_report_rank rank;
    struct iris_report *report;

    assert_int_equal(iris_i_report_read(hosts->here->fd, &report), IRIS_OK);
    rank = report->ranks[FAR];
    free(report);
    return rank;
}

static void call(struct hosts *hosts, uint64_t id, const char *kernel)
{
    const struct iris_host_event event = {.id = id,
                                          .op = IRIS_HOST_LAUNCH,
                                          .kernel = kernel,
                                          .grid = (unsigned)id};

    iris_i_record_begin(hosts->record, &event, IRIS_RECORD_NOWHERE, 0);
    iris_i_record_end(hosts->record, &event, IRIS_RECORD_NOWHERE, 1);
}

static int wait_for(struct hosts *hosts, int slot, int64_t value)
{
    const struct iris_record_wait wait = {.kind = IRIS_WAIT_KERNEL,
                                          .begin_ns = 1,
                                          .update_ns = 2,
                                          .value = value,
                                          .name = "step"};

    return iris_i_record_wait(hosts->record, slot, &wait);
}

/* ---- Tests ---- */

static TEST(a_row_reads_like_the_record)
{
    struct hosts *hosts = make_hosts();
    struct iris_report_rank rank;
    int slot;

    for (uint64_t id = 1; id <= 3 * IRIS_RECORD_CALLS; id++) {
        call(hosts, id, "step");
    }
    slot = wait_for(hosts, -1, 41);
    send_row(hosts);
    rank = look(hosts);
    assert_true(rank.known && rank.is_elsewhere);
    assert_int_equal(rank.pid, getpid());
    assert_string_equal(rank.host, "over-there");
    assert_string_equal(rank.job, "job");
    assert_true(rank.threads >= 1);
    assert_true(rank.finished.id == 3 * IRIS_RECORD_CALLS);
    assert_string_equal(rank.finished.kernel, "step");
    assert_int_equal(rank.num_waits, 1);
    assert_true(rank.waits[0].value == 41);

    /* The next row has no trace of it. */
    iris_i_record_wait_over(hosts->record, slot, 0);
    call(hosts, 3 * IRIS_RECORD_CALLS + 1, "other");
    send_row(hosts);
    rank = look(hosts);
    assert_int_equal(rank.num_waits, 0);
    assert_string_equal(rank.finished.kernel, "other");
    drop(hosts);
}

static TEST(a_call_in_progress_is_sent_however_old_it_is)
{
    const struct iris_host_event blocked = {.id = 1,
                                            .op = IRIS_HOST_SYNCHRONIZE};
    struct hosts *hosts = make_hosts();
    struct iris_report_rank rank;

    iris_i_record_begin(hosts->record, &blocked, IRIS_RECORD_NOWHERE, 0);
    for (uint64_t id = 2; id < IRIS_RECORD_CALLS; id++) {
        call(hosts, id, "step");
    }
    send_row(hosts);
    rank = look(hosts);
    assert_int_equal(rank.num_open, 1);
    assert_true(rank.open[0].id == 1);

    iris_i_record_end(hosts->record, &blocked, IRIS_RECORD_NOWHERE, 1);
    send_row(hosts);
    assert_int_equal(look(hosts).num_open, 0);
    drop(hosts);
}

/* ---- No rows ---- */

static void make_old(struct hosts *hosts)
{
    const int64_t old_ns =
        iris_i_now_ns() - 2 * IRIS_ROW_OLD_MS * IRIS_NS_PER_MS;

    assert_int_equal(pwrite(hosts->here->fd, &old_ns, sizeof old_ns,
                            (off_t)(iris_i_records_at(RANKS, FAR) +
                                    offsetof(struct iris_record, arrived_ns))),
                     sizeof old_ns);
}

static TEST(a_rank_without_new_rows_is_not_known)
{
    struct hosts *hosts = make_hosts();
    struct iris_report_rank rank;

    assert_false(look(hosts).known);
    send_row(hosts);
    assert_true(look(hosts).known);
    make_old(hosts);
    rank = look(hosts);
    assert_false(rank.known);
    assert_int_equal(rank.pid, getpid()); /* from the old row */
    send_row(hosts);                      /* which has not changed */
    assert_true(look(hosts).known);
    drop(hosts);
}

/* Any part may be lost on the way: also the first one, after an older row. */
static TEST(a_row_with_a_missing_part_does_not_count)
{
    struct hosts *hosts = make_hosts();
    size_t whole;

    call(hosts, 1, "step");
    send_row(hosts);
    whole = hosts->sent;
    assert_true(whole > 3);
    assert_true(look(hosts).known);
    for (size_t part = 1; part <= whole; part++) {
        make_old(hosts);
        hosts->lost = hosts->sent + part;
        hosts->hash = 0;
        send_row(hosts);
        assert_false(look(hosts).known);
    }
    hosts->hash = 0;
    send_row(hosts);
    assert_true(look(hosts).known);
    drop(hosts);
}

static TEST(a_rank_whose_connection_has_ended_is_lost)
{
    struct hosts *hosts = make_hosts();
    struct iris_report_rank rank;

    iris_i_row_end(hosts->here, FAR, 77, "over-there");
    rank = look(hosts);
    assert_true(iris_i_rank_is_lost(&rank));
    assert_int_equal(rank.pid, 77);
    assert_string_equal(rank.host, "over-there");
    drop(hosts);
}

/* ---- Any bytes ---- */

static TEST(a_message_writes_to_the_copy_only)
{
    static const uint64_t places[] = {0, offsetof(struct iris_record, rank) - 1,
                                      sizeof(struct iris_record) - 7,
                                      sizeof(struct iris_record),
                                      UINT64_MAX - 3};
    struct hosts *hosts = make_hosts();
    const size_t bytes = hosts->here->bytes;
    unsigned char *before = malloc(bytes);
    const unsigned char body[8] = {1, 2, 3, 4, 5, 6, 7, 8};

    assert_non_null(before);
    assert_int_equal(pread(hosts->here->fd, before, bytes, 0), bytes);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const struct iris_message_head head = iris_i_message_head(
            IRIS_MESSAGE_ROW, FAR, 0, places[i], sizeof body);
        unsigned char *after = malloc(bytes);

        assert_non_null(after);
        iris_i_row_take(hosts->here, &head, body, &hosts->count);
        assert_int_equal(pread(hosts->here->fd, after, bytes, 0), bytes);
        assert_memory_equal(before, after, bytes);
        free(after);
    }
    free(before);
    drop(hosts);
}

static void say(struct hosts *hosts, enum iris_message_type type,
                uint64_t value, const void *body, size_t bytes)
{
    const struct iris_message_head head =
        iris_i_message_head(type, FAR, 0, value, bytes);

    iris_i_row_take(hosts->here, &head, body, &hosts->count);
}

/* A sanitizer finds overflows. */
static TEST(a_row_may_have_any_numbers)
{
    static const int64_t times[] = {0, INT64_MAX, INT64_MIN, INT64_MIN / 4 * 3,
                                    INT64_MAX / 4 * 3};
    const int32_t number = INT32_MIN;
    struct hosts *hosts = make_hosts();

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const struct iris_message_row_end end = {times[i], 2 * sizeof number};
        struct iris_report_rank rank;

        say(hosts, IRIS_MESSAGE_ROW, offsetof(struct iris_record, rank),
            &number, sizeof number);
        say(hosts, IRIS_MESSAGE_ROW, offsetof(struct iris_record, num_threads),
            &number, sizeof number);
        say(hosts, IRIS_MESSAGE_ROW_END, 0, &end, sizeof end);
        rank = look(hosts);
        assert_true(rank.known);
        assert_int_equal(rank.threads, 0);
        assert_int_equal(rank.helpers, 0);
    }
    drop(hosts);
}

TEST_GROUP(unit);
