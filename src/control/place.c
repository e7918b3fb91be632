/* SPDX-License-Identifier: MIT
 *
 * Posting at a place, and waiting for posts.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"

#include <string.h>

static struct iris_post *slot_of(struct iris_place *place, int rank,
                                 uint64_t seq)
{
    return &place->posts[2 * rank + (int)(seq % 2)];
}

static const struct iris_post *post_of(const struct iris_place *place,
                                       const struct iris_post_id *id)
{
    return &place->posts[2 * id->rank + (int)(id->seq % 2)];
}

/* Sequentially consistent with the sleeper's announcement, so that at least one
 * of the two sees the other's store. */
void iris_i_place_wake(struct iris_place *place)
{
    atomic_fetch_add(&place->wakes, 1);
    if (atomic_load(&place->sleepers) != 0) {
        iris_i_futex_wake(&place->wakes);
    }
}

/* Skips unchanged words from two agreements ago: peers still have those lines
 * cached. */
static void put(unsigned char *to, const struct iris_part *part)
{
    if (part->bytes != 0 && memcmp(to, part->data, part->bytes) != 0) {
        memcpy(to, part->data, part->bytes);
    }
}

int iris_i_place_post(struct iris_place *place, const struct iris_post_id *id,
                      const struct iris_part parts[2], int expected)
{
    struct iris_post *post = slot_of(place, id->rank, id->seq);
    uint32_t bytes = (uint32_t)(parts[0].bytes + parts[1].bytes);

    put(post->data, &parts[0]);
    put(post->data + parts[0].bytes, &parts[1]);
    if (post->bytes != bytes) {
        post->bytes = bytes;
    }
    atomic_store_explicit(&post->seq, id->seq, memory_order_release);
    /* Only the last rank to post wakes the others, each once. */
    if ((atomic_fetch_add(&place->num_posts, 1) + 1) % (unsigned)expected !=
        0) {
        return 0;
    }
    iris_i_place_wake(place);
    return 1;
}

int iris_i_place_posted(const struct iris_place *place,
                        const struct iris_post_id *id)
{
    return atomic_load_explicit(&post_of(place, id)->seq,
                                memory_order_acquire) >= id->seq;
}

size_t iris_i_place_collect(const struct iris_place *place,
                            const struct iris_post_id *id, size_t at, void *to,
                            size_t bytes)
{
    const struct iris_post *post = post_of(place, id);
    size_t all;

    if (!iris_i_place_posted(place, id)) {
        return 0;
    }
    all = post->bytes < sizeof post->data ? post->bytes : sizeof post->data;
    if (at < all) {
        memcpy(to, post->data + at, bytes < all - at ? bytes : all - at);
    }
    return all;
}

void iris_i_place_wait(struct iris_place *place, int64_t ns,
                       int (*done)(void *arg), void *arg)
{
    unsigned seen;

    atomic_fetch_add(&place->sleepers, 1);
    seen = atomic_load(&place->wakes);
    if (!done(arg)) {
        iris_i_futex_wait(&place->wakes, seen, ns);
    }
    atomic_fetch_sub(&place->sleepers, 1);
}

unsigned iris_i_place_fail(struct iris_place *place, unsigned mark)
{
    unsigned none = 0;

    if (mark != 0) {
        atomic_compare_exchange_strong(&place->failed, &none, mark);
        iris_i_place_wake(place);
    }
    return atomic_load_explicit(&place->failed, memory_order_acquire);
}

int iris_i_place_prepare(struct iris_place *place)
{
    if (atomic_load_explicit(&place->users, memory_order_acquire) != 0) {
        return 0;
    }
    atomic_store(&place->failed, 0);
    atomic_store(&place->num_posts, 0);
    return 1;
}

/* Clears the data that the place's last holders left of this rank. */
void iris_i_place_hold(struct iris_place *place, int rank)
{
    for (uint64_t parity = 0; parity < 2; parity++) {
        atomic_store_explicit(&slot_of(place, rank, parity)->seq, 0,
                              memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&place->users, 1, memory_order_relaxed);
}

void iris_i_place_release(struct iris_place *place)
{
    atomic_fetch_sub_explicit(&place->users, 1, memory_order_release);
}
