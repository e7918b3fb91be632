/* SPDX-License-Identifier: MIT
 *
 * What the ranks of a job know together while races are looked for: one piece
 * of shared memory, mapped by each. It has no pointers. Its lock guards all of
 * it, with three exceptions: the shadow has locks of its own (`granules`), a
 * lane's clock is read by the thread that runs the lane without a lock, and some
 * members are atomic.
 */
#ifndef IRIS_SRC_CHECK_RACE_MEMORY_H
#define IRIS_SRC_CHECK_RACE_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/types.h>
#include <iris/device/op.h>

#include "check/race_caller.h"
#include "control/agree.h"

#define IRIS_RACE_LANES 4096
#define IRIS_RACE_SITES 4096
#define IRIS_RACE_WORDS 16384 /* that atomics order by; a power of two */
#define IRIS_RACE_GROUPS 1024
#define IRIS_RACE_MEETINGS 8
#define IRIS_RACE_EDGES 1024
#define IRIS_RACE_REPORTS 256
#define IRIS_RACE_WRITES 4
#define IRIS_RACE_CELLS 4
#define IRIS_RACE_RELEASES 8
#define IRIS_RACE_GRANULES 4096 /* locks of the shadow; a power of two */

/* What one lane knows of another: everything up to `strict` happens before what
 * it does next. Up to `loose` it would if every atomic were a release and an
 * acquire at system scope; `why` is the edge that fell short of it. */
struct iris_race_moment {
    uint32_t strict;
    uint32_t loose;
    uint32_t why;
};

/* A clock: a moment for each lane from 0 on, none for those behind. */
struct iris_race_clock {
    uint32_t at; /* place in the arena; 0: empty */
    uint32_t capacity;
};

/* A workgroup of a stream, one after another in order, or a rank's host. */
struct iris_race_lane {
    int32_t rank;
    uint32_t stream; /* number in its context; 0: the host */
    uint32_t workgroup;
    /* The latest releases: the lane's time then, and the site. */
    struct {
        uint32_t clock;
        uint32_t site;
    } releases[IRIS_RACE_RELEASES];
    uint32_t num_releases;
    uint64_t run; /* the kernel's that it is in */
    struct iris_race_clock clock;
    struct iris_race_clock fence; /* what later atomic writes release */
    uint32_t fence_scope;         /* + 1; 0: no such fence */
    struct iris_race_clock near;  /* what an acquire fence would take: of the */
    struct iris_race_clock far;   /* own rank, of others */
};

/* One place in the code that does one thing. Never changes. */
struct iris_race_site {
    /* In the file; a host call's are those of its callers (race_caller.h), with
     * 0 behind them. */
    uint64_t offsets[IRIS_RACE_FRAMES];
    enum iris_op op;
    int32_t host_op; /* -1: a kernel's */
    iris_sem_t sem;
    iris_scope_t scope;
    bool atomic;
    char kernel[64];
    char file[256];
};

/* A write of a word that atomics order by. */
struct iris_race_write {
    uint64_t values[2]; /* it has one of them */
    uint64_t id;        /* of the operation, while its value is not known */
    uint64_t order;     /* among the writes of the word */
    uint32_t state;     /* enum iris_race_state */
    bool foreseen;      /* its value is known though it is pending */
    uint32_t lane;
    uint32_t site;
    bool releases;
    iris_scope_t scope; /* of the release, else of the write */
    struct iris_race_clock clock;
};

enum iris_race_state {
    IRIS_RACE_NONE,
    IRIS_RACE_PENDING,
    IRIS_RACE_KNOWN,
};

struct iris_race_word {
    uint64_t num_writes;
    bool lost; /* a write was forgotten; `old` has its clock */
    struct iris_race_write writes[IRIS_RACE_WRITES];
    struct iris_race_clock old;
};

/* One collective call of a group. */
struct iris_race_meeting {
    uint64_t number; /* of the call, from 1 */
    bool cleared;    /* the memory that it allocated is new */
    struct iris_race_clock clock;
};

struct iris_race_group {
    uint64_t key; /* of its members; 0: free */
    struct iris_race_meeting meetings[IRIS_RACE_MEETINGS];
};

/* What an edge lacks. */
enum iris_race_lack {
    IRIS_RACE_LACKS_NOTHING,
    IRIS_RACE_LACKS_RELEASE,
    IRIS_RACE_LACKS_ACQUIRE,
    IRIS_RACE_LACKS_RELEASE_SCOPE,
    IRIS_RACE_LACKS_ACQUIRE_SCOPE,
    IRIS_RACE_LACKS_ATOMIC, /* the flag is written by a plain store */
    /* No edge, but of the accesses themselves: */
    IRIS_RACE_LACKS_LIFE,    /* the memory is freed */
    IRIS_RACE_LACKS_MIXED,   /* one is atomic, the other plain */
    IRIS_RACE_LACKS_SCOPE,   /* both are atomic, one at too narrow a scope */
    IRIS_RACE_LACKS_SIZE,    /* both are atomic, of different words */
    IRIS_RACE_LACKS_LATER,   /* a release came before the access */
    IRIS_RACE_LACKS_STREAM,  /* two streams of one rank, or its host */
    IRIS_RACE_LACKS_ANSWER,  /* it overwrites what another still reads */
    IRIS_RACE_LACKS_WRITERS, /* two write */
    IRIS_RACE_LACKS_WAIT,
};

struct iris_race_edge {
    enum iris_race_lack lack;
    uint32_t release; /* sites */
    uint32_t acquire;
};

/* One access to bytes of a word, as the shadow has it. mask 0: none. */
struct iris_race_access {
    uint32_t clock;
    uint32_t site;
    uint32_t workgroup;
    uint16_t lane;
    uint8_t mask;
    uint8_t kind; /* IRIS_RACE_IS_WRITE and so on, and scope << 4 */
};

#define IRIS_RACE_IS_WRITE 1u
#define IRIS_RACE_IS_ATOMIC 2u
#define IRIS_RACE_IS_FREE 4u
#define IRIS_RACE_SCOPE_SHIFT 4

struct iris_race_found {
    struct iris_race_access accesses[2]; /* the earlier, the later */
    struct iris_race_edge edge;
    int32_t rank; /* whose memory */
    int32_t finder;
    uint64_t offset;
    uint64_t count;
    atomic_bool suppressed; /* the finder says so before its work ends */
};

struct iris_race_shared {
    pthread_mutex_t lock;  /* of all below; robust */
    atomic_uint num_found; /* read without it, too */
    atomic_bool blind;     /* something was full: races may be missed */
    atomic_uint granules[IRIS_RACE_GRANULES]; /* 1: taken */
    uint32_t num_lanes;
    uint32_t num_sites;
    uint32_t num_edges;
    uint32_t num_words;
    uint32_t arena_used;
    uint32_t arena_free[16]; /* by size; 0: none */
    struct iris_race_lane lanes[IRIS_RACE_LANES];
    struct iris_race_site sites[IRIS_RACE_SITES];
    /* Of each word rank and offset, + 1; 0: free. Apart, for the search. */
    uint64_t word_keys[IRIS_RACE_WORDS];
    struct iris_race_word words[IRIS_RACE_WORDS];
    struct iris_race_group groups[IRIS_RACE_GROUPS];
    struct iris_race_edge edges[IRIS_RACE_EDGES];
    struct iris_race_found found[IRIS_RACE_REPORTS];
};

/* A rank's mapping of it. */
struct iris_race_memory {
    struct iris_race_shared *shared;
    struct iris_race_moment *arena;
    struct iris_race_access *shadow; /* CELLS for each 8 bytes of each heap */
    size_t heap_bytes;
    size_t bytes;
};

/* Rank 0 makes it and all map it. Collective among `members`.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM and what agreements give */
iris_status_t iris_i_race_memory_open(struct iris_members *members, int rank,
                                      int num_ranks, size_t heap_bytes,
                                      struct iris_race_memory *memory_p);
void iris_i_race_memory_close(struct iris_race_memory *memory);

/* A rank that died with the lock leaves what it knew half written: races may be
 * missed from then on. */
void iris_i_race_lock(struct iris_race_shared *shared);
void iris_i_race_unlock(struct iris_race_shared *shared);

/* The same for one of `granules`, for a few instructions. Nothing is locked while
 * it is held. One that nobody gives back for seconds was left by a rank that
 * died. */
void iris_i_race_lock_granule(struct iris_race_shared *shared,
                              atomic_uint *granule);
void iris_i_race_unlock_granule(atomic_uint *granule);

#endif /* IRIS_SRC_CHECK_RACE_MEMORY_H */
