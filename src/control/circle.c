/* SPDX-License-Identifier: MIT
 *
 * Deadlock of calls in different groups: ranks that wait for each other in a
 * circle. It is reported at once.
 */
#include "config.h"

#include "control/internal.h"

#include <stdio.h>
#include <string.h>

/* Longer circles end at the deadline. */
#define WAITS_MAX 16

/* The contents of a board's `waits`: place, awaited rank, and agreement. 0: the
 * rank does not wait. */
#define PLACE_BITS 8
#define RANK_BITS 16

static uint64_t word_of(int place, int rank, uint64_t seq)
{
    return seq << (PLACE_BITS + RANK_BITS) | (uint64_t)place << RANK_BITS |
           ((uint64_t)rank + 1);
}

static int rank_in(uint64_t word)
{
    return (int)(word & ((1u << RANK_BITS) - 1)) - 1;
}

static int place_in(uint64_t word)
{
    return (int)(word >> RANK_BITS & ((1u << PLACE_BITS) - 1));
}

_Static_assert(IRIS_PLACES <= 1 << PLACE_BITS, "a word names every place");

static void show(const struct iris_members *members, uint64_t word)
{
    struct iris_control *control = members->control;

    if (control->own.waits == word) {
        return;
    }
    control->own.waits = word;
    control->ops->publish(control, IRIS_SHOW_WAITS, &control->own);
}

void iris_i_circle_leave(const struct iris_members *members)
{
    show(members, 0);
}

/* The waits of the other ranks in a circle, starting with the awaited rank. */
struct circle {
    int count;
    uint64_t words[WAITS_MAX];
};

/* The rank for which `rank` waits, if that one has not posted there; else -1.
 * This stays true until the awaited rank posts, or a member gives up. */
static int waits_for(struct iris_control *control, int rank, uint64_t *word_p)
{
    struct iris_shown shown;
    struct iris_post_id id;

    control->ops->read(control, rank, IRIS_SHOW_WAITS, &shown);
    id = (struct iris_post_id){place_in(shown.waits), rank_in(shown.waits),
                               shown.waits >> (PLACE_BITS + RANK_BITS)};
    if (shown.waits == 0 || id.rank < 0 || id.rank >= control->num_ranks ||
        id.place >= IRIS_PLACES || control->ops->posted(control, &id)) {
        return -1;
    }
    *word_p = shown.waits;
    return id.rank;
}

/* Follows the waits from `absent`. Returns whether they lead back to this
 * rank. */
static int follow(struct iris_control *control, int absent,
                  struct circle *circle_p)
{
    circle_p->count = 0;
    while (absent >= 0 && absent != control->rank) {
        if (circle_p->count == WAITS_MAX) {
            return 0;
        }
        absent =
            waits_for(control, absent, &circle_p->words[circle_p->count++]);
    }
    return absent >= 0;
}

/* Whether two walks found the same waits. */
static int same(const struct circle *one, const struct circle *other)
{
    return one->count == other->count &&
           memcmp(one->words, other->words,
                  (size_t)one->count * sizeof one->words[0]) == 0;
}

/* "group 1 (ranks 0, 2)", in at least 32 bytes. */
static void print_group(const struct iris_members *members, char *text,
                        size_t bytes)
{
    size_t length =
        (size_t)snprintf(text, bytes, "group %d (ranks", members->place);

    for (int i = 0; i < members->count && length < bytes; i++) {
        length += (size_t)snprintf(text + length, bytes - length, "%s %d",
                                   i == 0 ? "" : ",", members->ranks[i]);
    }
    if (length + 2 < bytes) {
        snprintf(text + length, bytes - length, ")");
    } else {
        snprintf(text + bytes - 6, 6, " ...)");
    }
}

static iris_status_t fail(const struct iris_members *members, const char *call,
                          int absent, const struct circle *circle)
{
    struct iris_control *control = members->control;
    unsigned mark =
        ((unsigned)-IRIS_ERR_MISMATCH << 16) | ((unsigned)control->rank + 1);
    struct iris_shown shown;
    char text[600], group[100];
    size_t length;

    print_group(members, group, sizeof group);
    length = (size_t)snprintf(text, sizeof text,
                              "rank %d waits in %s of %s for rank %d",
                              control->rank, call, group, absent);
    for (int i = 0; i < circle->count; i++) {
        control->ops->read(control, absent, IRIS_SHOW_NAME, &shown);
        absent = rank_in(circle->words[i]);
        if (length + 100 < sizeof text) {
            length += (size_t)snprintf(
                text + length, sizeof text - length,
                ", which waits in %s of group %d for rank %d", shown.name,
                place_in(circle->words[i]), absent);
        }
    }
    /* Marks our own place first: a member that learns of another place may go
     * on to this one. */
    control->ops->fail(control, members->place, mark);
    for (int i = 0; i < circle->count; i++) {
        control->ops->fail(control, place_in(circle->words[i]), mark);
    }
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "%s: these calls are of different groups, and none of "
                       "them can end; make the same calls in the same order on "
                       "every rank",
                       text);
}

iris_status_t iris_i_circle_told(const struct iris_members *members, int rank)
{
    struct iris_control *control = members->control;
    char group[100];

    print_group(members, group, sizeof group);
    return iris_i_fail(control->log, IRIS_ERR_MISMATCH,
                       "rank %d%s calls, or finalizes its contexts, in another "
                       "order than its peers, one of which waits in %s; make "
                       "the same calls in the same order on every rank",
                       rank, rank == control->rank ? ", this one," : "", group);
}

/* While this walks from wait to wait, one may end and another begin. A second
 * walk with the same result shows that none has ended. This rank's own wait may
 * have ended, too: `absent` has posted since, and waits for this rank in its
 * next call. It posts before it waits, so its post has arrived by now. */
iris_status_t iris_i_circle_check(const struct iris_members *members,
                                  const char *call, int absent)
{
    struct iris_control *control = members->control;
    struct circle circle, again;

    show(members, word_of(members->place, absent, members->seq));
    return follow(control, absent, &circle) &&
                   follow(control, absent, &again) && same(&circle, &again) &&
                   !iris_i_agree_has_come(members, absent)
               ? fail(members, call, absent, &circle)
               : IRIS_OK;
}
