/* SPDX-License-Identifier: MIT
 *
 * A place: the memory in which the members of one group post, private to this
 * process or shared.
 */
#ifndef IRIS_SRC_CONTROL_PLACE_H
#define IRIS_SRC_CONTROL_PLACE_H

#include "control/control.h"

/* The post of one member for one agreement. */
struct iris_post {
    _Alignas(64) atomic_ullong seq; /* number of the agreement; stored last */
    uint32_t bytes;
    unsigned char data[IRIS_POST_BYTES];
};

_Static_assert(sizeof(struct iris_post) == 4096, "a post is a page");

struct iris_place {
    _Alignas(4096) atomic_uint users; /* ranks that hold the group */
    atomic_uint wakes;                /* futex: bumped when all have posted */
    atomic_uint sleepers;             /* threads asleep on it */
    atomic_ullong num_posts;          /* total so far; an agreement adds
                                       * `expected` */
    atomic_uint failed;               /* set once; 0: not failed */
    struct iris_post posts[];         /* [2 * rank + seq % 2] */
};

/* Implementations of slots of struct iris_control_ops, for one place. _post: 1
 * if all `expected` ranks have now posted. */
int iris_i_place_post(struct iris_place *place, const struct iris_post_id *id,
                      const struct iris_part parts[2], int expected);
int iris_i_place_posted(const struct iris_place *place,
                        const struct iris_post_id *id);
size_t iris_i_place_collect(const struct iris_place *place,
                            const struct iris_post_id *id, size_t at, void *to,
                            size_t bytes);
void iris_i_place_wait(struct iris_place *place, int64_t ns,
                       int (*done)(void *arg), void *arg);
unsigned iris_i_place_fail(struct iris_place *place, unsigned mark);
int iris_i_place_prepare(struct iris_place *place);
void iris_i_place_hold(struct iris_place *place, int rank);
void iris_i_place_release(struct iris_place *place);

/* Wakes the ranks that sleep there. */
void iris_i_place_wake(struct iris_place *place);

#endif /* IRIS_SRC_CONTROL_PLACE_H */
