/* SPDX-License-Identifier: MIT
 *
 * Links between two ranks, which this thread plays: each side learns how the other
 * one has ended its link.
 */
#include "config.h"

#include "support/harness.h"

#include <poll.h>

#include "control/control.h"

#include <stddef.h>

#define MOST ((size_t)64 << 10)
#define RECORDS 200

/* The rank with the lower number accepts. */
enum { ACCEPTOR, CONNECTOR };

static struct side {
    struct iris_log log;
    struct iris_links links;
    struct iris_link *link;
    enum iris_link_loss loss;
    int num_taken;
} sides[2];

static struct iris_hello hellos[2];
static const struct iris_bootstrap bootstrap;

static void ignore_link(void *arg, struct iris_link *link)
{
}

static void note_loss(void *arg, struct iris_link *link,
                      enum iris_link_loss loss, const char *why)
{
    ((struct side *)arg)->loss = loss;
}

static int is_other(void *arg, int rank)
{
    return &sides[rank] != arg;
}

/* Takes and sends all that is possible now. */
static void play_side(struct side *side)
{
    enum iris_session_taken taken = IRIS_SESSION_NONE;
    const void *data;
    size_t bytes;

    if (side->links.log == NULL) {
        return; /* closed */
    }
    iris_i_links_turn(&side->links);
    while (iris_i_link_receive(&side->links, side->link) > 0) {
        while (side->link->state == IRIS_LINK_JOINED &&
               (taken = iris_i_session_take(&side->link->session, &data,
                                            &bytes)) == IRIS_SESSION_RECORD) {
            side->num_taken++;
        }
        if (taken == IRIS_SESSION_END) {
            iris_i_link_end(&side->links, side->link);
        }
    }
    while (iris_i_link_send(&side->links, side->link)) {
    }
}

static void await_state(const struct side *side, enum iris_link_state state)
{
    int64_t by_ns = iris_i_deadline(20000);

    while (side->link->state != state && iris_i_now_ns() < by_ns) {
        play_side(&sides[ACCEPTOR]);
        play_side(&sides[CONNECTOR]);
        poll(NULL, 0, 1);
    }
    assert_int_equal(side->link->state, state);
}

static int open_sides(void **state)
{
    const struct iris_rendezvous rendezvous = {
        .bootstrap = &bootstrap, .num_ranks = 2, .hellos = hellos};
    int listeners[2];

    for (int rank = 0; rank < 2; rank++) {
        hellos[rank] =
            (struct iris_hello){.rank = rank, .control = IRIS_CONTROL_UNIX};
        listeners[rank] = iris_i_stream_socket(IRIS_CONTROL_UNIX,
                                               &hellos[rank].control_address);
        assert_int_equal(iris_i_stream_listen(listeners[rank],
                                              IRIS_CONTROL_UNIX,
                                              &hellos[rank].control_address),
                         IRIS_OK);
    }
    for (int rank = 0; rank < 2; rank++) {
        struct side *side = &sides[rank];
        const struct iris_links_owner owner = {.joined = ignore_link,
                                               .left = ignore_link,
                                               .lost = note_loss,
                                               .arg = side};
        const struct iris_links_params params = {
            .log = &side->log,
            .rendezvous = &rendezvous,
            .label = "test",
            .address_at = offsetof(struct iris_hello, control_address),
            .record_bytes = MOST,
            .listener = listeners[rank],
            .is_linked = is_other};

        *side = (struct side){.log = {.rank = rank, .num_ranks = 2}};
        atomic_init(&side->log.level, IRIS_LOG_OFF);
        assert_int_equal(iris_i_links_open(&params, &owner, &side->links),
                         IRIS_OK);
        side->link = side->links.all;
    }
    await_state(&sides[ACCEPTOR], IRIS_LINK_JOINED);
    await_state(&sides[CONNECTOR], IRIS_LINK_JOINED);
    return 0;
}

static int close_sides(void **state)
{
    iris_i_links_close(&sides[ACCEPTOR].links);
    iris_i_links_close(&sides[CONNECTOR].links);
    return 0;
}

/* It was connected, so it cannot tell a rank that is out of reach for a while. */
static void check_given_up(int by)
{
    iris_i_link_leave(&sides[by].links, sides[by].link, IRIS_LINK_LOST);
    await_state(&sides[1 - by], IRIS_LINK_LOST);
    assert_int_equal(sides[1 - by].loss, IRIS_LINK_REFUSED);
}

static TEST_WITH(the_acceptor_learns_that_the_connector_gave_it_up, open_sides,
                 close_sides)
{
    check_given_up(CONNECTOR);
}

static TEST_WITH(the_connector_learns_that_the_acceptor_gave_it_up, open_sides,
                 close_sides)
{
    check_given_up(ACCEPTOR);
}

/* The side that asks joins nothing. */
static TEST_WITH(a_link_that_is_cut_while_both_live_is_resumed, open_sides,
                 close_sides)
{
    for (int by = 0; by < 2; by++) {
        shutdown(sides[by].link->session.sock, SHUT_RDWR);
        await_state(&sides[ACCEPTOR], IRIS_LINK_CUT);
        await_state(&sides[ACCEPTOR], IRIS_LINK_JOINED);
        await_state(&sides[CONNECTOR], IRIS_LINK_JOINED);
    }
}

/* It may have died before it took the record. */
static TEST_WITH(a_peer_that_closes_without_its_last_record_is_lost, open_sides,
                 close_sides)
{
    assert_true(iris_i_session_put_end(&sides[ACCEPTOR].link->session));
    assert_true(iris_i_link_send(&sides[ACCEPTOR].links, sides[ACCEPTOR].link));
    iris_i_links_close(&sides[CONNECTOR].links);
    await_state(&sides[ACCEPTOR], IRIS_LINK_LOST);
    assert_int_equal(sides[ACCEPTOR].loss, IRIS_LINK_GONE);
}

/* The connection does not take them all at once. */
static TEST_WITH(a_side_that_hears_the_end_sends_the_rest_first, open_sides,
                 close_sides)
{
    static const char data[MOST];

    for (int i = 0; i < RECORDS; i++) {
        assert_true(iris_i_session_put(&sides[CONNECTOR].link->session, data,
                                       sizeof data, NULL, 0));
    }
    assert_true(iris_i_session_put_end(&sides[ACCEPTOR].link->session));
    await_state(&sides[CONNECTOR], IRIS_LINK_ENDED);
    await_state(&sides[ACCEPTOR], IRIS_LINK_ENDED);
    assert_int_equal(sides[ACCEPTOR].num_taken, RECORDS);
}

TEST_GROUP(unit);
