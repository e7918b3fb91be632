/* SPDX-License-Identifier: MIT
 *
 * Bugs of places: two ranks write to the same bytes, or treat them as different
 * things.
 */
#ifndef IRIS_TESTS_CHECK_BUGS_PLACES_H
#define IRIS_TESTS_CHECK_BUGS_PLACES_H

#include "check/bug.h"

/* ---- Overlaps: ranks 0 and 1 write to rank 1 ---- */

BUG(puts_overlap, "order of writers", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_wg_put(wg, d, &x[64], x, wrong ? 68 : 64, 1));
    } else if (d.rank == 1) {
        OTHER(iris_wg_put(wg, d, &x[64], &x[16], 64, 1));
    }
}

BUG(slots_too_near, "order of writers", 1, 2)
{
    size_t slot = wrong ? 12 : 16;

    if (d.rank == 0) {
        ONE(iris_wg_put(wg, d, &x[64], x, 64, 1));
    } else if (d.rank == 1) {
        OTHER(iris_wg_put(wg, d, &x[64], &x[slot], 64, 1));
    }
}

BUG(slot_of_another, "order of writers", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_store(d, &x[d.rank], 1, 1));
    } else if (d.rank == 1) {
        OTHER(iris_store(d, &x[wrong ? 0 : d.rank], 2, 1));
    }
}

BUG(half_of_an_element, "order of writers", 1, 2)
{
    int16_t *half = (int16_t *)(void *)x;

    if (d.rank == 0) {
        ONE(iris_store(d, x, 1, 1));
    } else if (d.rank == 1) {
        OTHER(iris_store(d, &half[wrong ? 1 : 2], (int16_t)2, 1));
    }
}

BUG(mask_too_wide, "order of writers", 1, 2)
{
    for (int i = 0; i < 8; i++) {
        iris_bool_t is_mine = i % 2 == d.rank || (wrong && i == 3);

        if (d.rank == 0) {
            ONE(iris_store_masked(d, &x[i], 1, 1, is_mine));
        } else if (d.rank == 1) {
            OTHER(iris_store_masked(d, &x[i], 2, 1, is_mine));
        }
    }
}

/* The kernel ends in the middle of a loop's block. */
BUG(loops_overlap, "order of writers", 1, 2)
{
    if (d.rank == 0) {
        for (int i = 0; i < 100; i++) {
            ONE(iris_store(d, &x[i], 1, 1));
        }
    } else if (d.rank == 1) {
        for (int i = wrong ? 99 : 100; i < 200; i++) {
            OTHER(iris_store(d, &x[i], 2, 1));
        }
    }
}

BUG(tiles_overlap, "order of writers", 1, 2)
{
    iris_tile_t from = iris_tile(&x[128], 4, 4, 4, 4);

    if (d.rank == 0) {
        ONE(iris_wg_tile_put(wg, d, from, iris_tile(x, 4, 4, 8, 4), 1));
    } else if (d.rank == 1) {
        int32_t *to = &x[wrong ? 3 : 4];

        OTHER(iris_wg_tile_put(wg, d, from, iris_tile(to, 4, 4, 8, 4), 1));
    }
}

BUG(rows_overlap, "order of writers", 1, 2)
{
    iris_tile_t from = iris_tile(&x[128], 4, 4, 4, 4);
    iris_tile_t to = iris_tile(x, 4, 4, wrong ? 6 : 8, 4);

    if (d.rank == 0) {
        ONE(iris_wg_tile_put(wg, d, from, to, 1));
    } else if (d.rank == 1) {
        for (int row = 0; row < 4; row++) {
            OTHER(iris_store(d, &x[row * 8 + 5], 1, 1));
        }
    }
}

BUG(workgroups_overlap, "order of writers", 2, 2)
{
    size_t share = wrong ? 36 : 32;

    if (d.rank == 0 && wg.id == 0) {
        ONE(iris_wg_put(wg, d, &x[64], x, share, 1));
    } else if (d.rank == 0) {
        OTHER(iris_wg_put(wg, d, &x[72], &x[8], 32, 1));
    }
}

BUG(put_beside_load, NULL, 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_put(d, &x[64], &x[4], 1));
    } else if (d.rank == 1) {
        OTHER(iris_load(d, &x[wrong ? 4 : 5], 1));
    }
}

BUG(get_beside_store, NULL, 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_wg_get(wg, d, x, &x[64], 64, 1));
    } else if (d.rank == 1) {
        OTHER(iris_store(d, &x[wrong ? 15 : 16], 1, 1));
    }
}

/* What a get writes, read by a peer. */
BUG(get_into_what_is_read, NULL, 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_wg_get(wg, d, x, &x[64], 64, 1));
    } else if (d.rank == 1) {
        OTHER(iris_load(d, &x[wrong ? 79 : 80], 0));
    }
}

/* A third rank copies what two others have. */
BUG(copy_of_what_is_written, NULL, 1, 3)
{
    if (d.rank == 0) {
        ONE(iris_copy(d, x, &x[1], 1, 2));
    } else if (d.rank == 1) {
        OTHER(iris_store(d, &x[wrong ? 0 : 1], 1, 1));
    }
}

BUG(copy_to_what_is_read, NULL, 1, 3)
{
    if (d.rank == 0) {
        ONE(iris_wg_copy(wg, d, x, &x[16], 64, 1, 2));
    } else if (d.rank == 2) {
        OTHER(iris_load(d, &x[wrong ? 31 : 32], 2));
    }
}

/* ---- Atomics ---- */

BUG(store_beside_add, "atomic access", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_atomic_add(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1 && wrong) {
        OTHER(iris_store(d, f, 1, 1));
    } else if (d.rank == 1) {
        iris_atomic_add(d, f, 1, 1, RLX, SYS);
    }
}

BUG(load_beside_add, "atomic access", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_atomic_add(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1 && wrong) {
        OTHER(iris_load(d, f, 1));
    } else if (d.rank == 1) {
        iris_atomic_load(d, f, 1, RLX, SYS);
    }
}

BUG(bulk_beside_add, "atomic access", 1, 2)
{
    if (d.rank == 0) {
        ONE(iris_atomic_add(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1) {
        OTHER(iris_wg_put(wg, d, &f[4], &f[wrong ? 0 : 1], 8, 1));
    }
}

BUG(get_beside_exchange, "atomic access", 1, 2)
{
    uint64_t value;

    if (d.rank == 0) {
        ONE(iris_atomic_xchg(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1 && wrong) {
        OTHER(iris_get(d, f, &value, 1));
    } else if (d.rank == 1) {
        iris_load_volatile(d, f, 1);
    }
}

BUG(counter_of_agent, "wider scope", 1, 2)
{
    iris_scope_t scope = wrong ? AGENT : SYS;

    if (d.rank == 0) {
        ONE(iris_atomic_add(d, f, 1, 1, RLX, scope));
    } else if (d.rank == 1) {
        OTHER(iris_atomic_add(d, f, 1, 1, RLX, scope));
    }
}

BUG(counter_of_workgroup, "wider scope", 2, 2)
{
    iris_scope_t scope = wrong ? IRIS_SCOPE_WG : AGENT;

    if (d.rank == 0 && wg.id == 0) {
        ONE(iris_atomic_max(d, f, 1, 0, RLX, scope));
    } else if (d.rank == 0) {
        OTHER(iris_atomic_max(d, f, 2, 0, RLX, scope));
    }
}

BUG(exchange_of_agent, "wider scope", 1, 2)
{
    iris_scope_t scope = wrong ? AGENT : SYS;

    if (d.rank == 0) {
        ONE(iris_atomic_xchg(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1) {
        OTHER(iris_atomic_cas(d, f, 0, 2, 1, RLX, scope));
    }
}

BUG(atomics_of_two_sizes, "one size", 1, 2)
{
    uint32_t *low = (uint32_t *)(void *)f;

    if (d.rank == 0) {
        ONE(iris_atomic_add(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1 && wrong) {
        OTHER(iris_atomic_add(d, low, 1, 1, RLX, SYS));
    } else if (d.rank == 1) {
        iris_atomic_add(d, f, 1, 1, RLX, SYS);
    }
}

BUG(flag_of_two_sizes, "one size", 1, 2)
{
    uint32_t *high = (uint32_t *)(void *)f + 1;

    if (d.rank == 0) {
        ONE(iris_atomic_store(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1) {
        OTHER(iris_atomic_or(d, high + (wrong ? 0 : 1), 1, 1, RLX, SYS));
    }
}

/* A word is set up plainly while a peer counts in it already. */
BUG(reset_beside_add, NULL, 1, 2)
{
    if (d.rank == 0) {
        if (!wrong) {
            wait_for(d, &f[1], 1);
        }
        ONE(iris_atomic_add(d, f, 1, 1, RLX, SYS));
    } else if (d.rank == 1) {
        OTHER(iris_store(d, f, 0, 1));
        iris_signal_set(d, &f[1], 1, 0);
    }
}

#endif /* IRIS_TESTS_CHECK_BUGS_PLACES_H */
