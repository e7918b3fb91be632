/* SPDX-License-Identifier: MIT
 *
 * Rank 0: accepts connections to the control plane over sockets.
 */
#include "config.h"

#include "control/internal.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Connections without a proof at once, besides one of each rank. */
#define STRANGERS 64

void iris_i_hub_close_listener(struct iris_hub *hub)
{
    iris_i_gate_close(&hub->gate);
    if (hub->listener >= 0) {
        close(hub->listener);
        hub->listener = -1;
    }
    if (hub->spare >= 0) {
        close(hub->spare);
        hub->spare = -1;
    }
}

/* The reason to refuse a rank that has proven the secret; NULL: none. */
static const char *find_objection(const struct iris_hub *hub,
                                  const struct iris_rank_claims *claims)
{
    if (claims->num_ranks != hub->num_ranks || claims->rank <= 0 ||
        claims->rank >= hub->num_ranks) {
        return "is no rank of this job that is to come";
    }
    if (hub->links[claims->rank].sock >= 0 ||
        atomic_load(&hub->copy.ended[claims->rank])) {
        return "has a rank that has connected already";
    }
    return NULL;
}

static const char *admit_peer(void *arg, const struct iris_proof_claims *theirs,
                              struct iris_proof_claims *own_p)
{
    struct iris_rank_claims claims;

    (void)own_p;
    if (theirs->bytes != sizeof claims) {
        return "is of another version of Iris";
    }
    memcpy(&claims, theirs->data, sizeof claims);
    return find_objection(arg, &claims);
}

iris_status_t iris_i_hub_open_gate(struct iris_hub *hub)
{
    iris_status_t status = iris_i_gate_open(
        &hub->gate, hub->listener, &hub->key, hub->num_ranks + STRANGERS);

    hub->gate.admit = admit_peer;
    hub->gate.arg = hub;
    return status;
}

static void send_board(struct iris_hub *hub, struct iris_link *link, int shower)
{
    unsigned char body[IRIS_MESSAGE_SHOWN_BYTES];
    struct iris_part pieces[2] = {{body, 0}, {NULL, 0}};
    struct iris_message_head head;
    struct iris_shown shown = {0};

    iris_i_board_read(iris_i_hub_board(&hub->copy, shower), IRIS_SHOW_ALL,
                      &shown);
    pieces[0].bytes = iris_i_message_pack(IRIS_SHOW_ALL, &shown, body);
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, shower, 0, IRIS_SHOW_ALL,
                               pieces[0].bytes);
    (void)iris_i_link_put(link, &head, pieces);
}

/* The connection is a rank's. It gets the states that the others have published
 * so far. No rank posts before all are here. */
static void welcome_rank(struct iris_hub *hub,
                         const struct iris_gate_entry *entry)
{
    struct iris_rank_claims claims;
    struct iris_link *link;

    memcpy(&claims, entry->claims.data, sizeof claims);
    if (find_objection(hub, &claims) != NULL) { /* it came twice at once */
        close(entry->sock);
        return;
    }
    link = &hub->links[claims.rank];
    pthread_mutex_lock(&hub->lock);
    iris_i_link_open(link, entry->sock, claims.rank);
    for (int shower = 0; shower < hub->num_ranks; shower++) {
        if (shower != claims.rank) {
            send_board(hub, link, shower);
        }
    }
    (void)iris_i_link_flush(link);
    pthread_mutex_unlock(&hub->lock);
    hub->num_here++;
}

/* Uses the reserved descriptor to tell a rank why it is refused. */
static void refuse_one(struct iris_hub *hub)
{
    if (hub->spare >= 0) {
        close(hub->spare);
        iris_i_gate_turn_away(&hub->gate);
        hub->spare = fcntl(hub->listener, F_DUPFD_CLOEXEC, 0);
    }
}

void iris_i_hub_accept(struct iris_hub *hub)
{
    unsigned failed = hub->gate.num_failed;
    struct iris_gate_entry entry;
    iris_status_t status;

    do {
        status = iris_i_gate_step(&hub->gate, &entry);
        if (entry.sock >= 0) {
            welcome_rank(hub, &entry);
        }
    } while (entry.sock >= 0);
    if (status == IRIS_ERR_LIMIT) {
        refuse_one(hub);
    }
    /* The first one only, since anybody can cause them. */
    if (failed == 0 && hub->gate.num_failed != 0) {
        iris_i_warning(hub->log,
                       "refused a connection to the control plane: the other "
                       "side %s",
                       hub->gate.why);
    }
    if (hub->num_here == hub->num_ranks - 1) {
        iris_i_hub_close_listener(hub);
    }
}
