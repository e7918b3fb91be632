/* SPDX-License-Identifier: MIT
 *
 * Sessions: records over connections that end at random bytes arrive once and
 * in order, also if their data is lent; acknowledgements free and return it;
 * nonsense ends a session.
 */
#include "config.h"

#include <iris/iris.h>

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/link.h"
#include "support/harness.h"

#define MOST 5000
#define RECORDS 3000

/* One side, and the numbers of its next records. */
struct side {
    struct iris_session session;
    uint64_t put;
    uint64_t taken;
    int on_loan;
};

static struct side sides[2];
static uint64_t random_state;

static uint64_t draw(uint64_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (random_state >> 11) % bound;
}

static void connect_sides(void)
{
    int socks[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(iris_i_session_resume(&sides[i].session, socks[i],
                                          sides[1 - i].session.received));
    }
}

static void disconnect_sides(void)
{
    for (int i = 0; i < 2; i++) {
        close(sides[i].session.sock);
        sides[i].session.sock = -1;
    }
}

static int begin(void **state)
{
    random_state = 88172645463325252u;
    for (int i = 0; i < 2; i++) {
        sides[i] = (struct side){.put = 0};
        assert_true(iris_i_session_open(&sides[i].session, MOST));
    }
    connect_sides();
    return 0;
}

static int end(void **state)
{
    disconnect_sides();
    for (int i = 0; i < 2; i++) {
        iris_i_session_close(&sides[i].session);
    }
    return 0;
}

static size_t size_of(uint64_t number)
{
    return (size_t)(number * 2654435761u % (number % 7 == 0 ? MOST - 8 : 60));
}

static void put_one(struct side *side)
{
    static unsigned char data[MOST];
    uint64_t number = side->put++;

    memset(data, (int)(number % 251), size_of(number));
    assert_true(iris_i_session_put(&side->session, &number, sizeof number, data,
                                   size_of(number)));
}

/* Data that the session returns may change at once. */
static void overwrite(struct side *side, const void *data)
{
    memset((void *)(uintptr_t)data, 0xff, 8);
    free((void *)(uintptr_t)data);
    side->on_loan--;
}

static void lend_one(struct side *side)
{
    uint64_t number = side->put;
    size_t bytes = size_of(number);
    unsigned char *data = malloc(bytes + 8);

    memset(data, (int)(number % 251), bytes);
    if (iris_i_session_lend(&side->session, &number, sizeof number, data,
                            bytes)) {
        side->on_loan++;
        side->put++;
    } else {
        assert_int_equal(side->session.num_lent, IRIS_SESSION_LENT);
        free(data);
        put_one(side);
    }
}

static void take_back(struct side *side, int recalls)
{
    const void *data;

    while ((data = iris_i_session_returned(&side->session)) != NULL) {
        overwrite(side, data);
    }
    if (recalls) {
        assert_true(iris_i_session_recall(&side->session, &data));
        assert_int_equal(data != NULL, side->on_loan > 0);
        if (data != NULL) {
            overwrite(side, data);
        }
    }
}

/* Takes what has arrived; each record is the next one. */
static void take_all(struct side *side)
{
    const unsigned char *at;
    const void *record;
    size_t bytes;

    while (iris_i_session_take(&side->session, &record, &bytes) ==
           IRIS_SESSION_RECORD) {
        uint64_t number = side->taken++;

        at = record;
        assert_int_equal(bytes, sizeof number + size_of(number));
        assert_memory_equal(at, &number, sizeof number);
        for (size_t i = sizeof number; i < bytes; i++) {
            assert_int_equal(at[i], number % 251);
        }
    }
    assert_true(iris_i_session_tell(&side->session));
}

/* A connection that ends loses all that the other side has not read. */
static void play(int cuts, uint64_t lends)
{
    while (sides[0].taken < RECORDS || sides[1].taken < RECORDS) {
        struct side *side = &sides[draw(2)];

        for (uint64_t i = draw(4); i > 0 && side->put < RECORDS; i--) {
            if (draw(8) < lends) {
                lend_one(side);
            } else {
                put_one(side);
            }
        }
        take_back(side, draw(4) < lends);
        assert_true(iris_i_session_send(&side->session) >= 0);
        if (draw(2) == 0 && iris_i_session_receive(&side->session) > 0) {
            take_all(side);
        }
        if (cuts && draw(5) == 0) {
            disconnect_sides();
            connect_sides();
        }
    }
}

static TEST(records_arrive_once_and_in_order)
{
    play(0, 0);
}

static TEST(records_arrive_once_and_in_order_over_many_connections)
{
    play(1, 0);
}

/* All data comes back, early or late. */
static TEST(lent_data_arrives_over_many_connections_and_is_returned)
{
    play(1, 3);
    for (int i = 0; i < 2; i++) {
        iris_i_session_abandon(&sides[i].session);
        take_back(&sides[i], 0);
        assert_int_equal(sides[i].on_loan, 0);
        assert_int_equal(iris_i_session_pending(&sides[i].session), 0);
    }
}

/* Nothing else copies it, and a recall copies it once. */
static TEST(lent_data_stays_in_place_until_it_is_acknowledged)
{
    unsigned char data[64] = {1};
    const void *back;

    assert_true(iris_i_session_lend(&sides[0].session, "", 0, data, 64));
    assert_int_equal(sides[0].session.copied, 8);
    assert_int_equal(iris_i_session_send(&sides[0].session), 1);
    assert_null(iris_i_session_returned(&sides[0].session));
    assert_true(iris_i_session_recall(&sides[0].session, &back));
    assert_ptr_equal(back, data);
    assert_true(iris_i_session_recall(&sides[0].session, &back));
    assert_null(back);
    assert_int_equal(iris_i_session_receive(&sides[1].session), 1);
    assert_int_equal(
        iris_i_session_take(&sides[1].session, &back, &(size_t){0}),
        IRIS_SESSION_RECORD);
    put_one(&sides[1]);
    assert_int_equal(iris_i_session_send(&sides[1].session), 1);
    assert_int_equal(iris_i_session_receive(&sides[0].session), 1);
    take_all(&sides[0]);
    assert_null(iris_i_session_returned(&sides[0].session));
    assert_int_equal(sides[0].session.num_lent, 0);
}

static TEST(an_acknowledgement_frees_what_is_kept)
{
    put_one(&sides[0]);
    assert_true(iris_i_session_pending(&sides[0].session) > 0);
    assert_int_equal(iris_i_session_send(&sides[0].session), 1);
    assert_int_equal(iris_i_session_receive(&sides[1].session), 1);
    take_all(&sides[1]);
    put_one(&sides[1]);
    assert_int_equal(iris_i_session_send(&sides[1].session), 1);
    assert_int_equal(iris_i_session_receive(&sides[0].session), 1);
    take_all(&sides[0]);
    assert_int_equal(iris_i_session_pending(&sides[0].session), 0);
}

static TEST(a_side_that_only_receives_acknowledges_too)
{
    for (int i = 0; i < 20000; i++) {
        put_one(&sides[0]);
        for (int k = 0; k < 2; k++) {
            assert_true(iris_i_session_send(&sides[k].session) >= 0);
            if (iris_i_session_receive(&sides[1 - k].session) > 0) {
                take_all(&sides[1 - k]);
            }
        }
    }
    assert_true(iris_i_session_pending(&sides[0].session) < 1 << 20);
}

static TEST(nobody_resumes_with_bytes_that_do_not_exist)
{
    put_one(&sides[0]);
    assert_int_equal(iris_i_session_resume(&sides[0].session, 99, 1), 0);
    assert_int_equal(iris_i_session_send(&sides[0].session), 1);
    assert_int_equal(
        iris_i_session_resume(&sides[0].session, 99, sides[0].session.end + 1),
        0);
    assert_int_not_equal(sides[0].session.sock, 99);
}

static TEST(nonsense_ends_a_session)
{
    const uint32_t large[2] = {MOST + 1, 0}, ahead[2] = {0, 1};
    const void *record;
    size_t bytes;

    assert_int_equal(write(sides[0].session.sock, large, sizeof large),
                     sizeof large);
    assert_int_equal(write(sides[1].session.sock, ahead, sizeof ahead),
                     sizeof ahead);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(iris_i_session_receive(&sides[i].session), 1);
        assert_int_equal(
            iris_i_session_take(&sides[i].session, &record, &bytes),
            IRIS_SESSION_NONSENSE);
    }
}

static TEST(the_other_side_learns_of_the_end)
{
    const void *record;
    size_t bytes;

    put_one(&sides[0]);
    assert_true(iris_i_session_put_end(&sides[0].session));
    assert_int_equal(iris_i_session_send(&sides[0].session), 1);
    assert_int_equal(iris_i_session_receive(&sides[1].session), 1);
    assert_int_equal(iris_i_session_take(&sides[1].session, &record, &bytes),
                     IRIS_SESSION_RECORD);
    assert_int_equal(iris_i_session_take(&sides[1].session, &record, &bytes),
                     IRIS_SESSION_END);
}

/* The other side closes when it has taken the last record. */
static TEST(nothing_follows_the_last_record)
{
    struct iris_session *session = &sides[0].session;
    uint64_t end;

    assert_true(iris_i_session_put_end(session));
    end = session->end;
    session->applied += 1 << 20;
    assert_true(iris_i_session_tell(session));
    assert_int_equal(session->end, end);
}

TEST_GROUP_WITH(begin, end, unit);
