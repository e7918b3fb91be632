/* SPDX-License-Identifier: MIT
 *
 * The interface of src/check: the checks of `IRIS_CHECK`; observers.
 */
#ifndef IRIS_SRC_CHECK_CHECK_H
#define IRIS_SRC_CHECK_CHECK_H

#include <iris/device/watch/op.h>
#include <iris/status.h>
#include <iris/types.h>

#include "base/base.h"
#include "control/control.h"
#include "heap/heap.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- race_site.c ---- */

/* One place in the code with one kind of access. Constant. */
struct iris_race_site {
    struct iris_source source;
    enum iris_op op;
    int32_t host_op; /* -1: in a kernel */
    iris_sem_t sem;
    iris_scope_t scope;
    bool atomic;
    char kernel[64];
};

/* ---- bounds.c ---- */

/* Bytes left free between two allocations while bounds are checked, besides the
 * rounding: an access past the end of one does not reach the next. The same on
 * all ranks, like the setting. */
#define IRIS_RED_ZONE_BYTES ((size_t)1024)

struct iris_bounds;

/* 0: bounds are not checked. */
size_t iris_i_bounds_red_zone(const struct iris_settings *settings);

/* Starts to watch a heap that is connected and has no allocations yet. Its
 * hooks report the allocations. The heap outlives the checker.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT */
iris_status_t iris_i_bounds_create(const struct iris_heap *heap,
                                   struct iris_bounds **bounds_p);

/* No kernel of the context is running. `bounds` may be NULL. */
void iris_i_bounds_destroy(struct iris_bounds *bounds);

/* ---- Parameters of race and weak ---- */

struct iris_check_params {
    const struct iris_heap *heap; /* connected; without allocations */
    const void *default_stream;
    /* A number that is equal for groups of the same ranks in the same order. */
    uint64_t (*group_key)(const void *group);
    int (*group_size)(const void *group);
    const char *prefix;       /* prefix of <prefix>_races.json; empty: no
                               * file */
    const char *suppressions; /* path of the file; empty: no file */
    bool is_scheduled;        /* choices decide on the order of the run: */
    unsigned threads;         /* workgroups of one kernel that run at once */
    uint64_t seed;
    const char *follow; /* a file of choices; empty: no file */
    const char *record; /* the file to write; empty: no file */
};

/* ---- weak.c ---- */

struct iris_weak;

/* newest: no read returns an old value. Collective over the job. The caller keeps the objects in `params` until
 * iris_i_weak_destroy(). IRIS_ERR_UNSUPPORTED: ranks are processes;
 * IRIS_ERR_CONFIG: a file of choices cannot be read or written, or is from another
 * program, number of ranks or check; IRIS_ERR_NO_MEMORY. */
iris_status_t iris_i_weak_create(const struct iris_check_params *params,
                                 bool newest, struct iris_weak **weak_p);

/* The rank makes no more calls except those that end it. `weak` may be NULL. */
void iris_i_weak_last_call(struct iris_weak *weak);

/* No kernel of the context is running. `weak` may be NULL. */
void iris_i_weak_destroy(struct iris_weak *weak);

/* ---- race.c ---- */

/* IRIS_CHECK=race: an observer that finds unordered accesses to the same place,
 * between all ranks of the job (docs/checking.md). */

struct iris_race;

/* Starts the checker of this rank. Collective over the job. The caller keeps
 * the objects in `params` until iris_i_race_destroy(). Returns IRIS_ERR_LIMIT,
 * and the statuses of iris_i_race_suppressions_open() and
 * iris_i_order_open(). */
iris_status_t iris_i_race_create(const struct iris_check_params *params,
                                 struct iris_race **race_p);

/* IRIS_ERR_RACE if any rank has found a race. Rank 0 writes the file. All ranks
 * have ended their work. `race` may be NULL: IRIS_OK. */
iris_status_t iris_i_race_verdict(struct iris_race *race);

/* No kernel of the context is running. `race` may be NULL. */
void iris_i_race_destroy(struct iris_race *race);

#endif /* IRIS_SRC_CHECK_CHECK_H */
