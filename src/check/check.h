/* SPDX-License-Identifier: MIT
 *
 * The interface of src/check: the checks of `IRIS_CHECK`; observers.
 */
#ifndef IRIS_SRC_CHECK_CHECK_H
#define IRIS_SRC_CHECK_CHECK_H

#include <iris/device/op.h>
#include <iris/status.h>
#include <iris/types.h>

#include "base/base.h"
#include "control/control.h"
#include "heap/heap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- race_caller.c ---- */

/* The place in the program that calls the library. */

#define IRIS_RACE_FRAMES 12

/* Return addresses of the calling thread, innermost first, followed by NULL. A
 * shared library leaves out its own frames and keeps one: the program's call. A
 * library that is linked into the program keeps all; later, symbols tell which
 * are its own. */
struct iris_race_caller {
    const void *frames[IRIS_RACE_FRAMES];
};

void iris_i_race_caller(struct iris_race_caller *caller_p);

/* ---- race_memory.c ---- */

/* The state that all ranks of a job share while they look for races: one piece
 * of shared memory, mapped by each rank, without pointers. Its lock guards all
 * of it, with these exceptions. Spin locks guard the parts that kernels'
 * operations use: the shadow (`granules`), each word, the arena and the edges
 * (`tables`). The thread that runs a lane uses the lane without the common lock;
 * the lane's lock guards the members that reports read, while they change. Some
 * members are atomic. */

#define IRIS_RACE_LANES 4096
#define IRIS_RACE_SITES 4096
#define IRIS_RACE_WORDS \
    32768 /* twice the words used by atomics; a power of two */
#define IRIS_RACE_GROUPS 1024
#define IRIS_RACE_MEETINGS 8
#define IRIS_RACE_EDGES 1024
#define IRIS_RACE_REPORTS 256
#define IRIS_RACE_WRITES 4
#define IRIS_RACE_CELLS 4
#define IRIS_RACE_RELEASES 8
#define IRIS_RACE_GRANULES 4096 /* locks of the shadow; a power of two */

/* One lane's knowledge of another. Operations up to `strict` happen before its
 * next one. Those up to `loose` would, if every atomic were a release and an
 * acquire at system scope; `why` is the edge that lacked this. */
struct iris_race_moment {
    uint32_t strict;
    uint32_t loose;
    uint32_t why;
};

/* A clock: a moment for each lane from 0 on, without those of later lanes. */
struct iris_race_clock {
    uint32_t at; /* offset in the arena; 0: empty */
    uint32_t capacity;
};

/* A lane: the consecutive workgroups of a stream with the same number, or a
 * rank's host. */
struct iris_race_lane {
    int32_t rank;
    uint32_t stream; /* number in its context; 0: the host */
    uint32_t workgroup;
    atomic_uint lock; /* guards the releases and the clock */
    /* The latest releases: the lane's time at each, and the site. */
    struct {
        uint32_t clock;
        uint32_t site;
    } releases[IRIS_RACE_RELEASES];
    uint32_t num_releases;
    uint64_t run; /* id of its current kernel run */
    struct iris_race_clock clock;
    struct iris_race_clock fence; /* released by later atomic writes */
    uint32_t fence_scope;         /* + 1; 0: no such fence */
    /* For a later acquire fence: the moments from this rank, and from others. */
    struct iris_race_clock near;
    struct iris_race_clock far;
};

/* One place in the code with one kind of access. Constant. */
struct iris_race_site {
    /* Offsets in the file. A host call has those of its callers
     * (race_caller.h), followed by 0. */
    uint64_t offsets[IRIS_RACE_FRAMES];
    enum iris_op op;
    int32_t host_op; /* -1: in a kernel */
    iris_sem_t sem;
    iris_scope_t scope;
    bool atomic;
    char kernel[64];
    char file[256];
};

/* A write of a word that atomics access. */
struct iris_race_write {
    uint64_t values[2]; /* its value is one of them */
    uint64_t id;        /* id of the operation, while its value is unknown */
    uint64_t order;     /* number among the writes of the word */
    uint32_t state;     /* enum iris_race_state */
    bool foreseen;      /* its value is known although it is pending */
    uint32_t lane;
    uint32_t site;
    bool releases;
    iris_scope_t scope; /* the release's, else the write's */
    struct iris_race_clock clock;
};

enum iris_race_state {
    IRIS_RACE_NONE,
    IRIS_RACE_PENDING,
    IRIS_RACE_KNOWN,
};

struct iris_race_word {
    atomic_uint lock;
    uint64_t num_writes;
    bool lost; /* a write was dropped; `old` has its clock */
    struct iris_race_write writes[IRIS_RACE_WRITES];
    struct iris_race_clock old;
};

/* One collective call of a group. */
struct iris_race_meeting {
    uint64_t number; /* number of the call, from 1 */
    bool cleared;    /* the memory that it allocated counts as new */
    struct iris_race_clock clock;
};

struct iris_race_group {
    uint64_t key; /* key of the group; 0: free */
    struct iris_race_meeting meetings[IRIS_RACE_MEETINGS];
};

/* The property that an edge lacks. */
enum iris_race_lack {
    IRIS_RACE_LACKS_NOTHING,
    IRIS_RACE_LACKS_RELEASE,
    IRIS_RACE_LACKS_ACQUIRE,
    IRIS_RACE_LACKS_RELEASE_SCOPE,
    IRIS_RACE_LACKS_ACQUIRE_SCOPE,
    IRIS_RACE_LACKS_ATOMIC, /* a plain store writes the flag */
    /* Not edges, but properties of the two accesses: */
    IRIS_RACE_LACKS_LIFE,    /* the memory was freed */
    IRIS_RACE_LACKS_MIXED,   /* one is atomic, the other plain */
    IRIS_RACE_LACKS_SCOPE,   /* both are atomic, one at too narrow a scope */
    IRIS_RACE_LACKS_SIZE,    /* both are atomic, on different words */
    IRIS_RACE_LACKS_LATER,   /* the release came before the access */
    IRIS_RACE_LACKS_STREAM,  /* two streams of one rank, or a stream and the
                              * host */
    IRIS_RACE_LACKS_ANSWER,  /* it overwrites data that another lane still
                              * reads */
    IRIS_RACE_LACKS_WRITERS, /* two write */
    IRIS_RACE_LACKS_WAIT,
};

struct iris_race_edge {
    enum iris_race_lack lack;
    uint32_t release; /* sites */
    uint32_t acquire;
};

/* One access to bytes of a word, in the shadow. mask 0: unused. */
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
    struct iris_race_access accesses[2]; /* the earlier one, the later one */
    struct iris_race_edge edge;
    int32_t rank; /* the rank that owns the memory */
    int32_t finder;
    uint64_t offset;
    uint64_t count;
    atomic_bool suppressed; /* the finder decides this before its work ends */
};

struct iris_race_shared {
    pthread_mutex_t lock;  /* the common lock; robust */
    atomic_uint num_found; /* may be read without the lock */
    atomic_bool blind;     /* a table was full: races may be missed */
    atomic_uint granules[IRIS_RACE_GRANULES]; /* 1: taken */
    atomic_uint num_lanes;
    uint32_t num_sites;
    atomic_uint num_edges; /* edges below it never change */
    atomic_uint num_words;
    atomic_uint tables; /* lock of the arena's lists and for new edges */
    uint32_t arena_used;
    uint32_t arena_free[16]; /* free lists by size; 0: empty */
    struct iris_race_lane lanes[IRIS_RACE_LANES];
    struct iris_race_site sites[IRIS_RACE_SITES];
    /* Rank and offset of each word, + 1; 0: free. A separate array, for the
     * search. Set once. */
    _Atomic uint64_t word_keys[IRIS_RACE_WORDS];
    struct iris_race_word words[IRIS_RACE_WORDS];
    struct iris_race_group groups[IRIS_RACE_GROUPS];
    struct iris_race_edge edges[IRIS_RACE_EDGES];
    struct iris_race_found found[IRIS_RACE_REPORTS];
};

/* A rank's mapping of the shared memory. */
struct iris_race_memory {
    struct iris_race_shared *shared;
    struct iris_race_moment *arena;
    struct iris_race_access *shadow; /* CELLS for each 8 bytes of each heap */
    size_t heap_bytes;
    size_t bytes;
};

/* Rank 0 makes it and all ranks map it. Collective among `members`.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM, and the statuses of agreements */
iris_status_t iris_i_race_memory_open(struct iris_members *members, int rank,
                                      int num_ranks, size_t heap_bytes,
                                      struct iris_race_memory *memory_p);
void iris_i_race_memory_close(struct iris_race_memory *memory);

/* If a rank dies with the lock, its update is incomplete: races may be missed
 * from then on. */
void iris_i_race_lock(struct iris_race_shared *shared);
void iris_i_race_unlock(struct iris_race_shared *shared);

/* Takes a spin lock, for a short time. A thread that holds one takes another
 * only in this order: a word's, a granule's, a lane's, `tables`. It does not take
 * the common lock. If a lock is not released for seconds, its holder has
 * died. */
static inline bool iris_i_race_spin_try(atomic_uint *lock)
{
    return atomic_load_explicit(lock, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(lock, 1, memory_order_acquire) == 0;
}

void iris_i_race_spin(struct iris_race_shared *shared, atomic_uint *lock);

static inline void iris_i_race_spin_lock(struct iris_race_shared *shared,
                                         atomic_uint *lock)
{
    if (!iris_i_race_spin_try(lock)) {
        iris_i_race_spin(shared, lock);
    }
}

static inline void iris_i_race_spin_unlock(atomic_uint *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

/* ---- race_site.c ---- */

/* A rank's own table of the sites that it has met. Under the lock. */
#define IRIS_RACE_KNOWN_SITES (2 * IRIS_RACE_SITES)
struct iris_race_key {
    const void *address;
    const char *kernel;
    uint64_t how;
};

struct iris_race_key iris_i_race_key(const struct iris_cpu_event *event);
bool iris_i_race_is_same_key(const struct iris_race_key *a,
                             const struct iris_race_key *b);

struct iris_race_sites {
    struct {
        struct iris_race_key key;
        uint32_t number; /* 0: free */
    } known[IRIS_RACE_KNOWN_SITES];
};

/* The site's number; 0: there are too many. */
uint32_t iris_i_race_site(struct iris_race_memory *memory,
                          struct iris_race_sites *sites,
                          const struct iris_cpu_event *event);
uint32_t iris_i_race_host_site(struct iris_race_memory *memory,
                               struct iris_race_sites *sites,
                               enum iris_host_op op,
                               const struct iris_race_caller *caller);

/* Sets element i of the site's files: the file that contains the code, and the
 * offset in it. */
void iris_i_race_find_file(const void *address, unsigned i,
                           struct iris_race_site *site);

/* "file.c:12", or "program+0x12ab" without addr2line or debug information;
 * empty: unknown. May take about 10 ms. The lock is not held. */
void iris_i_race_line(const struct iris_race_site *site, char *text,
                      size_t bytes);

/* The site's operation: "store", "atomic add, release, system scope". */
void iris_i_race_deed(const struct iris_race_site *site, char *text,
                      size_t bytes);

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

/* ---- weak_choice.c ---- */

struct iris_weak_choices_params {
    uint64_t seed;
    const char *follow; /* a file of choices; empty: no file */
    const char *record; /* the file to write; empty: no file */
    bool newest;        /* no read returns an old value */
    int num_ranks;
};

/* A workgroup of the kernel that a stream runs. */
struct iris_weak_who {
    int rank;        /* -1: none */
    unsigned stream; /* number in the rank */
    unsigned workgroup;
};

struct iris_weak_choices {
    uint64_t random;
    bool newest;
    unsigned stay; /* one turn in this number goes to another workgroup */
    uint64_t num_decisions;
    struct iris_weak_count *counts; /* number of each workgroup's decisions */
    size_t num_counts;
    struct iris_weak_decision *follow; /* sorted; NULL: the seed decides */
    size_t num_follow;
    FILE *record; /* NULL: do not record */
    /* iris replay --explore: these choices in this order, then the defaults */
    bool explores;
    struct iris_weak_step *script;
    size_t num_script, next_script;
};

enum iris_weak_choice {
    IRIS_WEAK_GO_ON, /* the next workgroup; 0: the one that ran last */
    IRIS_WEAK_TURN,  /* the next one after a failed poll; 0: the next in line */
    IRIS_WEAK_READ,  /* the age of a value; 0: the newest */
};

struct iris_weak_question {
    enum iris_weak_choice choice;
    struct iris_weak_who who;         /* the workgroup that ran last, or that
                                       * reads */
    unsigned count;                   /* of answers */
    const struct iris_weak_who *next; /* the possible next workgroups; NULL
                                       * for a read */
};

/* *choices is all zero. Close it in any case. IRIS_ERR_NO_MEMORY;
 * IRIS_ERR_CONFIG: a file cannot be read or written, or is from another
 * program, number of ranks or check. */
iris_status_t
iris_i_weak_choices_open(const struct iris_weak_choices_params *params,
                         struct iris_weak_choices *choices);
void iris_i_weak_choices_close(struct iris_weak_choices *choices);

/* An answer, from 0 to count - 1; it is recorded. */
unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            const struct iris_weak_question *question);

/* Adds a line about the running workgroup, if iris replay explores. */
void iris_i_weak_tell(const struct iris_weak_choices *choices,
                      const char *text);

/* Records that the next choice is made before every workgroup has come, so the
 * run may not replay. */
void iris_i_weak_early(const struct iris_weak_choices *choices);

/* ---- weak.c ---- */

struct iris_weak;

struct iris_weak_params {
    const struct iris_heap *heap; /* connected; without allocations */
    const void *default_stream;
    /* A number that is equal for groups of the same ranks in the same order. */
    uint64_t (*group_key)(const void *group);
    int (*group_size)(const void *group);
    unsigned threads; /* workgroups of one kernel that run at once */
    struct iris_weak_choices_params choices;
};

/* Collective over the job. The caller keeps the objects in `params` until
 * iris_i_weak_destroy(). Returns IRIS_ERR_UNSUPPORTED if ranks are processes,
 * and the statuses of iris_i_weak_choices_open(). */
iris_status_t iris_i_weak_create(const struct iris_weak_params *params,
                                 struct iris_weak **weak_p);

/* The rank makes no more calls except those that end it. `weak` may be NULL. */
void iris_i_weak_last_call(struct iris_weak *weak);

/* No kernel of the context is running. `weak` may be NULL. */
void iris_i_weak_destroy(struct iris_weak *weak);

/* ---- race.c ---- */

/* IRIS_CHECK=race: an observer that finds unordered accesses to the same place,
 * between all ranks of the job (docs/checking.md). */

struct iris_race;

struct iris_race_params {
    const struct iris_heap *heap; /* connected; without allocations */
    const void *default_stream;
    /* A number that is equal for groups of the same ranks in the same order. */
    uint64_t (*group_key)(const void *group);
    const char *prefix;       /* prefix of <prefix>_races.json; empty: no
                               * file */
    const char *suppressions; /* path of the file; empty: no file */
};

/* Starts the checker of this rank. Collective over the job. The caller keeps
 * the objects in `params` until iris_i_race_destroy(). Returns IRIS_ERR_LIMIT,
 * and the statuses of iris_i_race_suppressions_open() and
 * iris_i_race_memory_open(). */
iris_status_t iris_i_race_create(const struct iris_race_params *params,
                                 struct iris_race **race_p);

/* IRIS_ERR_RACE if any rank has found a race. Rank 0 writes the file. All ranks
 * have ended their work. `race` may be NULL: IRIS_OK. */
iris_status_t iris_i_race_verdict(struct iris_race *race);

/* No kernel of the context is running. `race` may be NULL. */
void iris_i_race_destroy(struct iris_race *race);

#endif /* IRIS_SRC_CHECK_CHECK_H */
