/* SPDX-License-Identifier: MIT
 *
 * Peer liveness, from what the control plane knows of processes and what ranks
 * show of themselves.
 */
#include "config.h"

#include "control/peers.h"

#include "base/wait_check.h"

#include <string.h>

enum fate { PRESENT, LEFT, DIED };

static enum fate fate_of(struct iris_control *control, int rank)
{
    /* The order matters: a rank may finalize and then end. */
    int alive = control->ops->alive(control, rank);
    unsigned state = atomic_load_explicit(
        &control->ops->board(control, rank)->state, memory_order_acquire);

    if (state == IRIS_RANK_LEFT) {
        return LEFT;
    }
    return !alive && state != IRIS_RANK_FINALIZED ? DIED : PRESENT;
}

int iris_i_peers_interrupted(const struct iris_control *control)
{
    return control->interrupted != NULL &&
           atomic_load_explicit(control->interrupted, memory_order_relaxed);
}

static int was_interrupted(struct iris_control *control, int rank)
{
    return atomic_load_explicit(
               &control->ops->board(control, rank)->interrupted,
               memory_order_relaxed) != 0;
}

/* Who made `rank`, which has left, leave. */
static int find_origin(struct iris_control *control, int rank)
{
    for (int hops = 0; hops < control->num_ranks; hops++) {
        unsigned blames = atomic_load_explicit(
            &control->ops->board(control, rank)->blames, memory_order_relaxed);

        if (blames == 0 || blames > (unsigned)control->num_ranks ||
            fate_of(control, (int)blames - 1) == PRESENT) {
            break;
        }
        rank = (int)blames - 1;
    }
    return rank;
}

iris_status_t iris_i_peers_check(struct iris_control *control, int rank)
{
    enum fate fate = fate_of(control, rank);
    char reason[IRIS_REASON_BYTES];
    int nobody = 0;

    if (fate == PRESENT) {
        return IRIS_OK;
    }
    if (fate == LEFT) {
        rank = find_origin(control, rank);
        fate = fate_of(control, rank);
    }
    atomic_compare_exchange_strong(&control->lost, &nobody, rank + 1);
    iris_i_peers_read_reason(control, rank, reason);
    if (fate == LEFT && reason[0] != '\0') {
        return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) left the job: %s; see its own "
                           "output, then restart the job",
                           rank, control->pids[rank], reason);
    }
    if (fate == LEFT && was_interrupted(control, rank)) {
        return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) was interrupted (iris_interrupt) "
                           "and left the job; restart it",
                           rank, control->pids[rank]);
    }
    if (fate == LEFT) {
        return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                           "rank %d (pid %d) left the job after an error; see "
                           "its own message, then restart the job",
                           rank, control->pids[rank]);
    }
    return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                       "rank %d (pid %d) died; the job cannot go on: finalize "
                       "and restart it",
                       rank, control->pids[rank]);
}

iris_status_t iris_i_peers_fail_ended(struct iris_control *control, int rank)
{
    int nobody = 0;

    atomic_compare_exchange_strong(&control->lost, &nobody, rank + 1);
    return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                       "rank %d (pid %d) has finalized this context and ended; "
                       "no call may count on it",
                       rank, control->pids[rank]);
}

int iris_i_peers_lost(const struct iris_control *control)
{
    return control == NULL ? -1 : atomic_load(&control->lost) - 1;
}

iris_status_t iris_i_peers_check_all(struct iris_control *control)
{
    if (control == NULL) {
        return IRIS_OK;
    }
    if (iris_i_peers_interrupted(control)) {
        return iris_i_fail(control->log, IRIS_ERR_INTERRUPTED,
                           "rank %d was interrupted (iris_interrupt); only "
                           "iris_finalize may follow",
                           control->rank);
    }
    for (int rank = 0; rank < control->num_ranks; rank++) {
        iris_status_t status =
            rank == control->rank ? IRIS_OK : iris_i_peers_check(control, rank);

        if (status != IRIS_OK) {
            return status;
        }
    }
    return IRIS_OK;
}

void iris_i_peers_ask(struct iris_control *control)
{
    if (control != NULL && control->interrupted != NULL &&
        iris_i_wait_is_ended()) {
        atomic_store_explicit(control->interrupted, 1, memory_order_relaxed);
    }
}

iris_status_t iris_i_peers_keep_waiting(struct iris_control *control)
{
    iris_i_peers_ask(control);
    return iris_i_peers_check_all(control);
}

/* Reads words that their rank may be changing as a text of up to `bytes` - 1
 * characters. */
static void read_words(const _Atomic uint64_t *words, size_t count, char *text,
                       size_t bytes)
{
    size_t length = 0;

    for (size_t i = 0; i < count && length + sizeof words[i] <= bytes; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);

        memcpy(text + length, &word, sizeof word);
        length += sizeof word;
    }
    text[length < bytes ? length : bytes - 1] = '\0';
}

static void write_words(_Atomic uint64_t *words, size_t count, const char *text)
{
    size_t left = strlen(text);

    for (size_t i = 0; i < count; i++) {
        uint64_t word = 0;
        size_t bytes = left < sizeof word ? left : sizeof word;

        memcpy(&word, text, bytes);
        text += bytes;
        left -= bytes;
        atomic_store_explicit(&words[i], word, memory_order_relaxed);
    }
}

void iris_i_peers_read_call(const struct iris_board *board, char name[64])
{
    read_words(board->name, IRIS_CALL_NAME_WORDS, name, 64);
}

void iris_i_peers_write_call(struct iris_board *board, const char *name)
{
    write_words(board->name, IRIS_CALL_NAME_WORDS, name);
}

void iris_i_peers_read_reason(struct iris_control *control, int rank,
                              char reason[IRIS_REASON_BYTES])
{
    read_words(control->ops->board(control, rank)->reason, IRIS_REASON_WORDS,
               reason, IRIS_REASON_BYTES);
    for (char *next = reason; *next != '\0'; next++) {
        if ((unsigned char)*next < ' ' || *next == 0x7f) {
            *next = ' ';
        }
    }
}

iris_status_t iris_i_peers_check_leaving(struct iris_control *control, int rank,
                                         const char *call)
{
    char reason[IRIS_REASON_BYTES];

    iris_i_peers_read_reason(control, rank, reason);
    return reason[0] == '\0'
               ? IRIS_OK
               : iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                             "rank %d (pid %d) left the job: %s; this rank "
                             "called %s, which every member has to make",
                             rank, control->pids[rank], reason, call);
}

void iris_i_peers_write_reason(struct iris_control *control, const char *reason)
{
    if (control != NULL) {
        write_words(control->ops->board(control, control->rank)->reason,
                    IRIS_REASON_WORDS, reason);
    }
}

void iris_i_peers_set_state(struct iris_control *control,
                            enum iris_rank_state state)
{
    struct iris_board *board;

    if (control == NULL) {
        return;
    }
    board = control->ops->board(control, control->rank);
    atomic_store_explicit(&board->interrupted,
                          (unsigned)iris_i_peers_interrupted(control),
                          memory_order_relaxed);
    atomic_store_explicit(&board->blames,
                          (unsigned)(iris_i_peers_lost(control) + 1),
                          memory_order_relaxed);
    atomic_store_explicit(&board->state, state, memory_order_release);
}
