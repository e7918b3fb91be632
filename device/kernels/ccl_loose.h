/* SPDX-License-Identifier: MIT
 *
 * all_reduce without an order: by atomics, under locks, and around a ring, for
 * comparison. The ring is that of Patarasuk and Yuan, "Bandwidth optimal
 * all-reduce algorithms for clusters of workstations" (2009).
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_LOOSE_H
#define IRIS_DEVICE_KERNELS_CCL_LOOSE_H

#include <iris/device/core/amo.h>
#include <iris/device/kernels/ccl_combine.h>

/* The state of one workgroup. A workgroup works on its own elements only, the
 * same ones on every member, so workgroups need not wait for each other. */
typedef struct iris_d_ccl_loose {
    iris_wg_t wg;
    iris_d_ccl_t ccl;
    iris_d_ccl_tables_t tables;
    const struct iris_ccl_reduce_args *args;
} iris_d_ccl_loose_t;

/* to[i] = a[i] op b[i], for `bytes` bytes. Called by all lanes. Passes the
 * addresses in spare words of the tables. */
IRIS_DEVICE void iris_d_ccl_merge(const iris_d_ccl_loose_t *loose,
                                  const char *a, const char *b, char *to,
                                  size_t bytes)
{
    iris_wg_t wg = loose->wg;
    iris_d_u64_t *spare =
        (iris_d_u64_t *)(uintptr_t)loose->tables.out + loose->ccl.count;
    iris_d_ccl_work_t work;

    iris_wg_barrier(wg); /* the words are not in use */
    if (iris_wg_leader(wg)) {
        spare[0] = (uint64_t)(uintptr_t)a;
        spare[1] = (uint64_t)(uintptr_t)b;
        spare[2] = (uint64_t)(uintptr_t)to;
    }
    iris_wg_barrier(wg);
    work.ccl = loose->ccl;
    work.ccl.count = 2;
    work.ccl.index = 0;
    work.tables.in = spare;
    work.tables.out = spare + 2;
    work.share.begin = 0;
    work.share.bytes = bytes;
    work.copies = 1;
    work.turn = 0;
    work.to = 0;
    work.kind = (enum iris_d_kind)loose->args->kind;
    work.op = (iris_reduce_op_t)loose->args->op;
    IRIS_LANES (wg, k, (bytes + IRIS_CCL_PIECE - 1) / IRIS_CCL_PIECE) {
        size_t at = k * IRIS_CCL_PIECE, left = bytes - at;

        iris_d_ccl_reduce(&work, loose->args, at,
                          left < IRIS_CCL_PIECE ? left : IRIS_CCL_PIECE);
    }
}

/* ---- Every member adds to every output ----------------------------------- */

/* Sets this rank's output to 0, before any member can have added to it. */
IRIS_DEVICE void iris_d_ccl_zero(iris_wg_t wg,
                                 const struct iris_ccl_reduce_args *args)
{
    char *out = (char *)iris_d_global((uintptr_t)args->out);

    IRIS_LANES (wg, k, (args->bytes + IRIS_CCL_PIECE - 1) / IRIS_CCL_PIECE) {
        size_t at = k * IRIS_CCL_PIECE, left = args->bytes - at;

        left = left < IRIS_CCL_PIECE ? left : IRIS_CCL_PIECE;
        for (size_t i = 0; i < left; i++) {
            out[at + i] = 0;
        }
    }
    iris_wg_barrier(wg);
}

IRIS_DEVICE void iris_d_ccl_add(const iris_d_ccl_loose_t *loose,
                                const char *from, char *to)
{
    const struct iris_ccl_reduce_args *args = loose->args;
    iris_d_amo_t how =
        iris_d_amo_of(IRIS_OP_ATOMIC_ADD, (enum iris_d_kind)args->kind, 0,
                      IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    size_t bytes = iris_d_kind_bytes(how.kind);

    IRIS_LANES (loose->wg, k,
                (args->bytes + IRIS_CCL_PIECE - 1) / IRIS_CCL_PIECE) {
        size_t at = k * IRIS_CCL_PIECE, left = args->bytes - at;

        left = left < IRIS_CCL_PIECE ? left : IRIS_CCL_PIECE;
        for (size_t i = 0; i < left; i += bytes) {
            uint64_t own = iris_d_load((void *)(uintptr_t)(from + at + i),
                                       bytes, how.order);

            (void)iris_d_update(to + at + i, own, how);
        }
    }
}

/* Takes member i's lock for this workgroup. Called by one lane; acquires. */
IRIS_DEVICE void iris_d_ccl_lock(const iris_d_ccl_loose_t *loose,
                                 iris_d_u64_t *lock)
{
    iris_d_condition_t free =
        iris_d_ccl_condition(IRIS_D_KIND_u64, IRIS_CMP_EQ, 0);

    do {
        (void)iris_d_wait(loose->ccl.dev, lock, free);
    } while (iris_d_cas_u64(lock, 0, 1,
                            iris_d_order(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM)) !=
             0);
}

IRIS_DEVICE void iris_d_ccl_add_locked(const iris_d_ccl_loose_t *loose,
                                       uint32_t member, const char *from,
                                       char *to)
{
    iris_d_u64_t *lock = (iris_d_u64_t *)iris_d_ccl_peer(
                             &loose->ccl, member, &loose->ccl.space->locks) +
                         loose->wg.id;

    if (iris_wg_leader(loose->wg)) {
        iris_d_ccl_lock(loose, lock);
    }
    iris_d_ccl_merge(loose, to, from, to, loose->args->bytes);
    iris_wg_barrier(loose->wg);
    if (iris_wg_leader(loose->wg)) {
        iris_d_store_u64(lock, 0,
                         iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    }
    iris_wg_barrier(loose->wg);
}

IRIS_DEVICE void iris_d_ccl_add_to_all(const iris_d_ccl_loose_t *loose)
{
    const iris_d_ccl_t *ccl = &loose->ccl;
    const char *from = iris_d_ccl_at(loose->tables.in, ccl->index);

    for (uint32_t i = 0; i < ccl->count; i++) {
        uint32_t member = iris_d_ccl_after(ccl, i);
        char *to = iris_d_ccl_at(loose->tables.out, member);

        if (loose->args->shape == IRIS_CCL_LOCKED) {
            iris_d_ccl_add_locked(loose, member, from, to);
        } else {
            iris_d_ccl_add(loose, from, to);
        }
    }
}

/* ---- Around a ring ------------------------------------------------------- */

/* Ends a step and begins the next: the next member in the ring sees this
 * workgroup's writes, and this workgroup sees the previous member's. */
IRIS_DEVICE void iris_d_ccl_pass(iris_d_ccl_loose_t *loose, uint32_t before,
                                 uint32_t behind)
{
    iris_d_ccl_t *ccl = &loose->ccl;
    size_t first = (size_t)loose->wg.id * ccl->count;

    iris_wg_barrier(loose->wg);
    if (iris_wg_leader(loose->wg)) {
        iris_d_store_u64(
            (iris_d_u64_t *)iris_d_ccl_peer(ccl, behind, &ccl->space->byes) +
                first + ccl->index,
            ccl->epoch, iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
        (void)iris_d_wait(
            ccl->dev,
            (iris_d_u64_t *)iris_d_ccl_own(ccl, &ccl->space->byes) + first +
                before,
            iris_d_ccl_condition(IRIS_D_KIND_u64, IRIS_CMP_GE, ccl->epoch));
    }
    iris_wg_barrier(loose->wg);
    ccl->epoch++;
}

IRIS_DEVICE void iris_d_ccl_take_share(const iris_d_ccl_loose_t *loose,
                                       const char *from, char *to, size_t bytes)
{
    IRIS_LANES (loose->wg, k, (bytes + IRIS_CCL_PIECE - 1) / IRIS_CCL_PIECE) {
        size_t at = k * IRIS_CCL_PIECE, left = bytes - at;

        left = left < IRIS_CCL_PIECE ? left : IRIS_CCL_PIECE;
#if IRIS_ON_CPU
        iris_d_copy_bytes(to + at, from + at, left);
#else
        iris_d_block_t block;

        iris_d_ccl_load(&block, from + at, left);
        iris_d_ccl_store(to + at, &block, left);
#endif
    }
}

/* In step s, this rank combines its own share with the one that the previous
 * member combined in step s - 1. So each share visits all members, and the last
 * one has its sum. Then the sums go around. A sum overwrites only a share that
 * has visited all members, so no member still reads it. */
IRIS_DEVICE void iris_d_ccl_go_around(iris_d_ccl_loose_t *loose)
{
    uint32_t count = loose->ccl.count, index = loose->ccl.index;
    iris_bool_t turned = loose->args->rings == 2 && (loose->wg.id & 1) != 0;
    uint32_t behind = iris_d_ccl_after(&loose->ccl, turned ? count - 1 : 1);
    uint32_t before = iris_d_ccl_after(&loose->ccl, turned ? 1 : count - 1);
    uint32_t place = turned ? count - index : index; /* index in this ring */
    const char *own = iris_d_ccl_at(loose->tables.in, index);
    const char *first = iris_d_ccl_at(loose->tables.in, before);
    const char *theirs = iris_d_ccl_at(loose->tables.out, before);
    char *out = iris_d_ccl_at(loose->tables.out, index);

    for (uint32_t s = 0; s < 2 * (count - 1); s++) {
        uint32_t back = s < count - 1 ? s + 1 : s - (count - 1);
        iris_d_ccl_share_t share = iris_d_ccl_share(
            (place + count - back) % count, count, loose->args->bytes);

        if (s > 0) {
            iris_d_ccl_pass(loose, before, behind);
        }
        if (s < count - 1) {
            iris_d_ccl_merge(loose, (s == 0 ? first : theirs) + share.begin,
                             own + share.begin, out + share.begin, share.bytes);
        } else {
            iris_d_ccl_take_share(loose, theirs + share.begin,
                                  out + share.begin, share.bytes);
        }
    }
    loose->ccl.epoch++;
}

/* One step of the workgroup, and one more for a ring; loose->ccl is filled
 * in. */
IRIS_DEVICE void iris_d_ccl_loose_step(iris_d_ccl_loose_t *loose)
{
    const struct iris_ccl_reduce_args *args = loose->args;

    loose->ccl.epoch++;
    if (args->shape != IRIS_CCL_RINGED) {
        iris_d_ccl_zero(loose->wg, args);
    }
    loose->tables =
        iris_d_ccl_meet(loose->wg, &loose->ccl, args->in, args->out);
    if (args->shape == IRIS_CCL_RINGED) {
        iris_d_ccl_go_around(loose);
    } else {
        iris_d_ccl_add_to_all(loose);
    }
    iris_d_ccl_bye(loose->wg, &loose->ccl);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_LOOSE_H */
