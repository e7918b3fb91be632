/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/check: the checks of `IRIS_CHECK`; observers.
 */
#ifndef IRIS_SRC_CHECK_INTERNAL_H
#define IRIS_SRC_CHECK_INTERNAL_H

#include <iris/status.h>
#include <iris/types.h>

#include <iris/device/watch/cpu.h>

#include "check/check.h"
#include "heap/heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- order.c ---- */

/* The state that all ranks of a job share: one piece of shared memory, mapped by
 * each rank, without pointers. Its lock guards all of it, with these exceptions.
 * Spin locks guard the parts that kernels' operations use: each word, the arena
 * and the edges (`tables`). The thread that runs a lane uses the lane without the
 * common lock; the lane's lock guards the members that reports read, while they
 * change. Some members are atomic. */

#define IRIS_ORDER_LANES 4096
#define IRIS_ORDER_WORDS \
    32768 /* twice the words used by atomics; a power of two */
#define IRIS_ORDER_GROUPS 1024
#define IRIS_ORDER_MEETINGS 8
#define IRIS_ORDER_EDGES 1024
#define IRIS_ORDER_WRITES 4
#define IRIS_ORDER_RELEASES 8
#define IRIS_ORDER_GRANTS 2

/* One lane's knowledge of another. Operations up to `strict` happen before its
 * next one. Those up to `loose` would, if every atomic were a release and an
 * acquire at system scope; `why` is the edge that lacked this. */
struct iris_order_moment {
    uint32_t strict;
    uint32_t loose;
    uint32_t why;
};

/* A clock: a moment for each lane from 0 on, without those of later lanes. */
struct iris_order_clock {
    uint32_t at; /* offset in the arena; 0: empty */
    uint32_t capacity;
};

/* A lane: the consecutive workgroups of a stream with the same number, or a
 * rank's host. */
struct iris_order_lane {
    int32_t rank;
    uint32_t stream;  /* number in its context; 0: the host */
    atomic_uint lock; /* guards the releases and the clock */
    /* The latest releases: the lane's time at each, and the site. */
    struct {
        uint32_t clock;
        uint32_t site;
    } releases[IRIS_ORDER_RELEASES];
    uint32_t num_releases;
    uint64_t run; /* id of its current kernel run */
    /* For parts of the workgroup's lanes: the lane of the first one, which is this
     * one itself outside of parts; and that lane's parts (lanes + 1), with the
     * loops and the meetings that they have begun. */
    uint32_t first;
    uint32_t parts[IRIS_CPU_PARTS - 1];
    unsigned loops;
    unsigned meets;
    uint32_t met;        /* the first part's time at the latest meeting */
    atomic_uint begun;   /* its time at the begin of the run */
    atomic_uint barrier; /* the site of the run's latest barrier; 0: none */
    struct iris_order_clock clock;
    /* Released by fences for later atomic writes: those of agent scope, and
     * those of system scope. `fenced` has a bit for each. */
    struct iris_order_clock fences[2];
    uint32_t fenced;
    /* For a later acquire fence: the moments from its rank, and from others. */
    struct iris_order_clock reads[2];
};

#define IRIS_ORDER_FENCED_WG 4u /* a fence released at workgroup scope */

/* A clock that one rank's lanes have released at one scope. */
struct iris_order_grant {
    uint16_t rank;
    uint16_t scope; /* not the workgroup's, which is of one lane */
    struct iris_order_clock clock;
};

/* The release of a write: the grants of its own lane, and those of the writes
 * before it in a chain of updates. All zero: none. */
struct iris_order_release {
    uint16_t lane; /* of the write */
    uint8_t count;
    bool releases; /* false: the moments of its clocks are loose */
    uint32_t site;
    struct iris_order_grant grants[IRIS_ORDER_GRANTS];
};

/* A write of a word that atomics access. */
struct iris_order_write {
    uint64_t values[2]; /* its value is one of them */
    uint64_t id;        /* id of the operation, while its value is unknown */
    uint32_t order;     /* number among the writes of the word */
    uint32_t clock;     /* its lane's time */
    uint8_t state;      /* enum iris_order_state */
    bool foreseen;      /* its value is known although it is pending */
    struct iris_order_release release;
};

enum iris_order_state {
    IRIS_ORDER_NONE,
    IRIS_ORDER_PENDING,
    IRIS_ORDER_KNOWN,
};

struct iris_order_word {
    atomic_uint lock;
    uint32_t num_writes;
    uint64_t first; /* the value that was there before any known write */
    bool has_first;
    uint32_t floor; /* the latest write that a read saw without an acquire */
    bool lost;      /* a write was dropped; `old` has its clock */
    uint64_t lost_values[2]; /* the least one and the greatest one */
    struct iris_order_write writes[IRIS_ORDER_WRITES];
    struct iris_order_clock old;
};

/* One collective call of a group. */
struct iris_order_meeting {
    uint64_t number; /* number of the call, from 1 */
    bool cleared;    /* the memory that it allocated counts as new */
    struct iris_order_clock clock;
};

struct iris_order_group {
    uint64_t key; /* key of the group; 0: free */
    struct iris_order_meeting meetings[IRIS_ORDER_MEETINGS];
};

/* A lock, a barrier and the like, which order threads of a process. */
#define IRIS_ORDER_SYNCS 8192
struct iris_order_sync {
    uint64_t key; /* process and address; 0: free */
    struct iris_order_clock clock;
    struct iris_order_clock arriving; /* at a barrier of `count` members */
    uint32_t arrived;
    uint32_t count;
};

/* The property that an edge lacks. */
enum iris_order_lack {
    IRIS_ORDER_LACKS_NOTHING,
    IRIS_ORDER_LACKS_RELEASE,
    IRIS_ORDER_LACKS_ACQUIRE,
    IRIS_ORDER_LACKS_RELEASE_SCOPE,
    IRIS_ORDER_LACKS_ACQUIRE_SCOPE,
    IRIS_ORDER_LACKS_ATOMIC, /* a plain store writes the flag */
    /* Not edges, but properties of the two accesses: */
    IRIS_ORDER_LACKS_LIFE,    /* the memory was freed */
    IRIS_ORDER_LACKS_MIXED,   /* one is atomic, the other plain */
    IRIS_ORDER_LACKS_SCOPE,   /* both are atomic, one at too narrow a scope */
    IRIS_ORDER_LACKS_SIZE,    /* both are atomic, on different words */
    IRIS_ORDER_LACKS_LATER,   /* the release came before the access */
    IRIS_ORDER_LACKS_STREAM,  /* two streams of one rank, or a stream and the
                              * host */
    IRIS_ORDER_LACKS_THREADS, /* two threads of one host */
    IRIS_ORDER_LACKS_MEETING, /* two lanes of one workgroup */
    IRIS_ORDER_LACKS_COVER,   /* the signal came from another lane of the
                              * writer's workgroup */
    IRIS_ORDER_LACKS_CREDIT,  /* it overwrites data that another lane still
                              * reads */
    IRIS_ORDER_LACKS_SIGNAL,  /* the signal came from another lane of the
                              * writer's rank */
    IRIS_ORDER_LACKS_MEMBER,  /* a barrier is between, without one of the two */
    IRIS_ORDER_LACKS_WRITERS, /* two write */
    IRIS_ORDER_LACKS_WAIT,
};

struct iris_order_edge {
    enum iris_order_lack lack;
    uint32_t release; /* sites */
    uint32_t acquire;
};

struct iris_order_shared {
    pthread_mutex_t lock; /* the common lock; robust */
    atomic_bool blind;    /* a table was full: races may be missed */
    atomic_uint num_lanes;
    atomic_uint num_edges; /* edges below it never change */
    atomic_uint num_words;
    atomic_uint tables; /* lock of the arena's lists and for new edges */
    uint32_t arena_used;
    uint32_t arena_free[16]; /* free lists by size; 0: empty */
    struct iris_order_lane lanes[IRIS_ORDER_LANES];
    /* Rank and offset of each word, + 1; 0: free. A separate array, for the
     * search. Set once. */
    _Atomic uint64_t word_keys[IRIS_ORDER_WORDS];
    struct iris_order_word words[IRIS_ORDER_WORDS];
    struct iris_order_group groups[IRIS_ORDER_GROUPS];
    struct iris_order_edge edges[IRIS_ORDER_EDGES];
    struct iris_order_sync syncs[IRIS_ORDER_SYNCS];
};

/* A rank's mapping of the shared memory. */
struct iris_order {
    struct iris_order_shared *shared;
    struct iris_order_moment *arena;
    void *more; /* shared, for the user; zeroed */
    size_t more_bytes;
    char *cells; /* for each 8 bytes of each heap, the user's cell; zeroed */
    size_t cell_bytes;
    size_t num_words; /* of a heap */
    size_t bytes;
};

/* The cell of the 8 bytes there. */
static inline void *iris_i_order_cell(const struct iris_order *order, int rank,
                                      size_t offset)
{
    return order->cells +
           ((size_t)rank * order->num_words + offset / 8) * order->cell_bytes;
}

/* Rank 0 makes it and all ranks map it. Collective; `status` is this rank's so
 * far. IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM, and the statuses of agreements */
iris_status_t iris_i_order_open(const struct iris_heap *heap,
                                iris_status_t status, size_t cell_bytes,
                                size_t more_bytes, struct iris_order *order_p);
/* In this process only. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_order_open_own(const struct iris_heap *heap,
                                    size_t cell_bytes,
                                    struct iris_order *order_p);

/* Agrees on the status; the rank that tells gives the others a number. */
struct iris_order_place {
    int64_t pid;
    uint64_t number;
};
iris_status_t iris_i_order_tell(struct iris_members *members,
                                iris_status_t status, bool tells,
                                struct iris_order_place *place);
void iris_i_order_close(struct iris_order *order);

/* If a rank dies with the lock, its update is incomplete: races may be missed
 * from then on. */
void iris_i_order_lock(struct iris_order_shared *shared)
    IRIS_ACQUIRES(shared->lock);
void iris_i_order_unlock(struct iris_order_shared *shared)
    IRIS_RELEASES(shared->lock);
/* Whether this thread holds one. */
bool iris_i_order_is_held(void);

/* Takes a spin lock, for a short time. A thread that holds one takes another
 * only in this order: a word's, a granule's, that of races, a lane's, `tables`. It does not take
 * the common lock. If a lock is not released for seconds, its holder has
 * died. */
static inline bool iris_i_order_spin_try(atomic_uint *lock)
{
    return atomic_load_explicit(lock, memory_order_relaxed) == 0 &&
           atomic_exchange_explicit(lock, 1, memory_order_acquire) == 0;
}

void iris_i_order_spin(struct iris_order_shared *shared, atomic_uint *lock);

static inline void iris_i_order_spin_lock(struct iris_order_shared *shared,
                                          atomic_uint *lock)
{
    if (!iris_i_order_spin_try(lock)) {
        iris_i_order_spin(shared, lock);
    }
}

static inline void iris_i_order_spin_unlock(atomic_uint *lock)
{
    atomic_store_explicit(lock, 0, memory_order_release);
}

/* A clock's users exclude each other: by the lock, or by the word's or lane's. */

/* The moment of a lane; NULL: the clock does not contain it. */
static inline struct iris_order_moment *
iris_i_order_moment(const struct iris_order *order,
                    const struct iris_order_clock *clock, uint32_t lane)
{
    return lane < clock->capacity ? &order->arena[clock->at + lane] : NULL;
}

/* Adds the contents of `from`. For an edge that lacks something (`why` is not
 * 0), adds only loose moments. */
void iris_i_order_join(struct iris_order *order, struct iris_order_clock *to,
                       const struct iris_order_clock *from, uint32_t why);

/* The same for one lane's moment. */
void iris_i_order_join_one(struct iris_order *order,
                           struct iris_order_clock *to, uint32_t lane,
                           uint32_t moment, uint32_t why);

/* Gives its room back. */
void iris_i_order_free(struct iris_order *order,
                       struct iris_order_clock *clock);

/* A lane's own time, and its next time. A new time separates its operations so
 * far from the later ones. */
static inline uint32_t iris_i_order_now(const struct iris_order *order,
                                        uint32_t lane)
{
    const struct iris_order_moment *own =
        iris_i_order_moment(order, &order->shared->lanes[lane].clock, lane);

    return own == NULL ? 0 : own->strict;
}
void iris_i_order_tick(struct iris_order *order, uint32_t lane);

/* The lane of a thread that has ended is a new thread's, which knows nothing. */
void iris_i_order_renew(struct iris_order *order, uint32_t lane);

/* The lane acquires the contents of a clock. */
void iris_i_order_acquire_clock(struct iris_order *order, uint32_t lane,
                                const struct iris_order_clock *from,
                                uint32_t why);

/* The number of an edge that lacks something; 0 if it lacks nothing. */
uint32_t iris_i_order_edge(struct iris_order *order,
                           const struct iris_order_edge *edge);

/* Whether the scope of an atomic by `lane` includes the other lane. */
bool iris_i_order_spans(const struct iris_order_shared *shared,
                        iris_scope_t scope, uint32_t lane, uint32_t other);

/* An atomic or a fence of a lane. */
struct iris_order_op {
    uint32_t lane;
    uint32_t site;
    iris_sem_t sem;
    iris_scope_t scope;
};

/* The following are called by the thread that runs the lane, or under the
 * lock. */

/* Before a write: its release; an update continues that of the write before
 * it. */
void iris_i_order_release(struct iris_order *order,
                          const struct iris_order_op *op,
                          struct iris_order_release *release);
void iris_i_order_continue(struct iris_order *order,
                           const struct iris_order_op *op,
                           struct iris_order_release *own,
                           const struct iris_order_release *before);

/* After a read: the release of the write that it saw. */
void iris_i_order_acquire(struct iris_order *order,
                          const struct iris_order_op *op,
                          const struct iris_order_release *release);

void iris_i_order_fence(struct iris_order *order,
                        const struct iris_order_op *op);

/* Gives the release's room back; it is nothing then. */
void iris_i_order_drop(struct iris_order *order,
                       struct iris_order_release *release);

/* An atomic of a word. */
struct iris_order_atomic {
    struct iris_order_op op;
    struct iris_order_word *word; /* iris_i_order_word() */
    int rank;                     /* whose word */
    size_t offset;
    size_t bytes;
    uint64_t id;   /* number of the operation in its lane */
    bool updates;  /* it also writes; the order of its write says as much */
    bool foreseen; /* before a write: its value is known */
    uint64_t value;
};

/* The word at that place; `make`: creates it. NULL: not found. */
struct iris_order_word *iris_i_order_word(struct iris_order *order, int rank,
                                          size_t offset, bool make);

/* Before a write or update: records its release. */
void iris_i_order_write(struct iris_order *order,
                        const struct iris_order_atomic *atomic);

/* After it: the word's new value (one of two if it is unknown; NULL: a
 * compare-and-swap has failed, so there was no write), and the value that an
 * update saw. An update continues the release of the write that it saw. */
void iris_i_order_written(struct iris_order *order,
                          const struct iris_order_atomic *atomic,
                          const uint64_t values[2], const uint64_t *seen);

/* After a read, or the read of an update: acquires the release of the value's
 * writer. False: the writer is unknown. */
bool iris_i_order_read(struct iris_order *order,
                       const struct iris_order_atomic *atomic, uint64_t seen);

/* After a wait that held for these values: acquires the release of the write that
 * was the first to satisfy it, and puts its value into *seen. False: that write is
 * unknown, and nothing is acquired. */
bool iris_i_order_wait(struct iris_order *order,
                       const struct iris_order_atomic *atomic, iris_cmp_t cmp,
                       uint64_t *seen);

/* A range of bytes on a rank's heap. */
struct iris_order_range {
    int rank;
    size_t offset;
    size_t bytes;
};

/* The range that the operation accesses; false: it is on no heap. */
bool iris_i_order_locate(const struct iris_heap *heap,
                         const struct iris_cpu_event *event,
                         struct iris_order_range *range_p);

/* All under the lock. */

/* A lane + 1; 0: there are too many. */
uint32_t iris_i_order_add_lane(struct iris_order *order, int rank,
                               uint32_t stream);

/* By the thread that runs the lane: its lane for that part of the workgroup's
 * lanes. All lanes of the workgroup learn of each other's operations in meetings,
 * and of the first one's when a loop begins. */
uint32_t iris_i_order_part(struct iris_order *order, uint32_t lane,
                           const struct iris_cpu_wg *cpu);

/* The lane begins a run, after the operations of that clock. */
void iris_i_order_begin(struct iris_order *order, uint32_t lane,
                        const struct iris_order_clock *from);

/* ---- order_host.c ---- */

/* A collective call, by its group's number and its own number; number 0: no
 * call. */
struct iris_order_call {
    uint32_t group;
    uint64_t number;
};

/* A collective on a stream: the meeting by which others learn of this rank's
 * work, and the one by which this rank learns of theirs. */
struct iris_order_exchange {
    bool is_one;
    struct iris_order_call tells;
    struct iris_order_call hears;
};

/* The buffers of an enqueued collective. */
struct iris_order_buffers {
    const void *in;
    size_t in_bytes; /* 0: it reads no buffer, or an unknown one */
    const void *out;
    size_t out_bytes;
    uint32_t site; /* of the call */
};

/* Enqueued work. */
struct iris_order_work {
    uint64_t id; /* id of the host's event */
    enum iris_host_op op;
    uint32_t site; /* site of the call; 0: its kernel is the program's */
    struct iris_order_clock clock;       /* the host's clock at the call */
    struct iris_order_exchange exchange; /* the collective that it is part of */
    struct iris_order_buffers buffers;   /* buffers of its first kernel */
};

/* Workgroups of a launch that are distinguished. Those whose ids differ by a
 * multiple of this count as one. */
#define IRIS_ORDER_WGS 256

struct iris_order_stream {
    const void *stream;
    uint32_t number;                /* from 1 */
    struct iris_order_clock clock;  /* clock of the finished work */
    uint64_t run;                   /* id of the running kernel; 0: none */
    bool shares_lanes;              /* it has more workgroups than lanes */
    struct iris_order_work now;     /* the running work, without its clock */
    uint32_t lanes[IRIS_ORDER_WGS]; /* + 1 */
    struct iris_order_work *work;   /* first in, first out */
    size_t num_work;
};

/* A rank's host: its collective calls, and its streams. */
struct iris_order_host {
    struct iris_order *order;
    uint64_t (*group_key)(const void *group);
    const void *default_stream;
    uint32_t
        lane; /* the lane of the thread that made the latest call or access */
    unsigned depth;                    /* number of nested calls in progress */
    struct iris_order_call call;       /* the outermost one */
    uint64_t calls[IRIS_ORDER_GROUPS]; /* number of calls made */
    struct iris_order_stream **streams;
    uint32_t num_streams;
    struct iris_order_exchange enqueuing;
    struct iris_order_buffers buffers; /* buffers for its first kernel */
    uint32_t outer; /* site of the current call that may launch kernels */
};

void iris_i_order_open_host(struct iris_order_host *host,
                            struct iris_order *order,
                            const struct iris_check_params *params);
void iris_i_order_close_host(struct iris_order_host *host);

/* The order by an event of this rank's host or streams; `site` is that of the
 * call. Returns the stream on which work begins, if any. */
struct iris_order_stream *
iris_i_order_observe(struct iris_order_host *host,
                     const struct iris_host_event *event, uint32_t site);

/* The stream of a kernel's run; NULL: not found. */
struct iris_order_stream *
iris_i_order_find_run(const struct iris_order_host *host, uint64_t run);

/* The lane of a workgroup + 1; it begins after the stream's earlier work. 0:
 * there are too many. */
uint32_t iris_i_order_lane(struct iris_order_host *host,
                           struct iris_order_stream *stream, uint64_t run,
                           uint32_t workgroup);

/* The meeting of a call. It replaces one of long ago. */
struct iris_order_meeting *
iris_i_order_meeting(struct iris_order *order,
                     const struct iris_order_call *call);

/* ---- Shared by the ranks' race checkers ---- */

#define IRIS_RACE_SITES 4096
#define IRIS_RACE_REPORTS 256
#define IRIS_RACE_CELLS 4
#define IRIS_RACE_GRANULES 4096 /* locks of the shadow; a power of two */

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
#define IRIS_RACE_IS_AGAIN 8u /* the lane has written the place before */
#define IRIS_RACE_SCOPE_SHIFT 4

struct iris_race_found {
    struct iris_race_access accesses[2]; /* the earlier one, the later one */
    struct iris_order_edge edge;
    int32_t rank; /* the rank that owns the memory */
    int32_t finder;
    uint64_t offset;
    uint64_t count;
    atomic_bool suppressed; /* the finder decides this before its work ends */
};

/* `lock` guards the sites and the races that were found. */
struct iris_race_shared {
    atomic_uint granules[IRIS_RACE_GRANULES]; /* spin locks of the shadow */
    atomic_uint lock;                         /* a spin lock, too */
    uint32_t num_sites;                       /* without number 0 */
    struct iris_race_site sites[IRIS_RACE_SITES];
    atomic_uint num_found; /* may be read without the lock */
    struct iris_race_found found[IRIS_RACE_REPORTS];
};

struct iris_race;

/* ---- race_site.c ---- */

/* A rank's own table of the sites that it has met. It only grows, and readers need
 * no lock. */
#define IRIS_RACE_KNOWN_SITES (2 * IRIS_RACE_SITES)
struct iris_race_sites {
    struct iris_race_known {
        const void *address;
        const char *kernel;
        uint64_t how;
        atomic_uint number; /* set last; 0: free */
    } known[IRIS_RACE_KNOWN_SITES];
};

/* The site's number; 0: there are too many. */
uint32_t iris_i_race_site(struct iris_race *race,
                          const struct iris_cpu_event *event);
uint32_t iris_i_race_host_site(struct iris_race *race, enum iris_host_op op,
                               const struct iris_caller *caller);

/* The site's operation: "store", "atomic add, release, system scope". */
void iris_i_race_deed(const struct iris_race_site *site, char *text,
                      size_t bytes);

/* Races of one access, found while a granule was locked: one of each two
 * sites. */
#define IRIS_RACE_CAUGHT 16
struct iris_race_caught {
    unsigned count;
    struct iris_race_caught_one {
        struct iris_race_access before, now;
        int rank;
        size_t offset; /* of the word */
        unsigned times;
    } races[IRIS_RACE_CAUGHT];
};

/* ---- The state of one rank while it looks for races ---- */

struct iris_race_suppression {
    char *pattern;
    unsigned line;
    bool used;
};

/* An empty list is all zero. */
struct iris_race_suppressions {
    struct iris_race_suppression *list;
    size_t count;
};

/* Memory on no heap that work on a stream accesses: from the call on, until the
 * host knows that the work has ended. Then the memory may have other uses. */
struct iris_race_outside {
    uintptr_t from, to;
    uint64_t id; /* of the call */
    const void *stream;
    bool begun; /* the access has its lane and its clock */
    bool ended; /* the host knows that it has ended */
    struct iris_race_access access;
};

/* The threads of a rank's host. The arrays are race_thread.c's. */
#define IRIS_RACE_THREADS 512
struct iris_race_threads {
    uint32_t first;         /* lane of the thread that made the checker */
    bool are_one;           /* they all count as that one */
    atomic_bool must_merge; /* from the next access on */
    uint32_t number;        /* number of threads so far */
    uint32_t num_lanes;
    /* Lanes of ended threads, first in, first out. */
    uint32_t first_ended, num_ended;
    uint16_t ended[IRIS_RACE_THREADS];
};

struct iris_race {
    uint64_t serial; /* number among the checkers of this process, from 1 */
    const struct iris_heap *heap;
    struct iris_check_params params;
    struct iris_race_suppressions suppressions;
    struct iris_observer observer;
    struct iris_order order; /* a word's cell: IRIS_RACE_CELLS accesses */
    struct iris_race_shared *shared;
    struct iris_race_sites sites;
    struct iris_order_host host;
    struct iris_race_threads threads;
    struct iris_race_outside *outside;
    size_t num_outside;
    bool allocates;       /* a nested call allocates: fills that nobody enqueued
                           * belong to it */
    size_t free_bytes;    /* size of the allocation that is being freed */
    atomic_uint num_seen; /* races already considered for printing */
};

/* ---- race_thread.c ---- */

/* Ordinary accesses are told in these ranges: 0: of heaps, 1: of other memory. */
void iris_i_race_watch_range(unsigned i, uintptr_t low, uintptr_t high);
void iris_i_race_watch_heaps(const struct iris_heap *heap);

/* Sets the owner of the heap as an operation of the device API does; false: the
 * address is on no heap. */
bool iris_i_race_place(const struct iris_heap *heap,
                       struct iris_cpu_event *event);

/* The checker receives accesses by the process; the calling thread is the first of
 * its host. */
void iris_i_race_watch_process(struct iris_race *race);
void iris_i_race_leave_process(struct iris_race *race);

/* The thread makes calls for that rank. */
void iris_i_race_bind_thread(struct iris_race *race);

/* The checker of a kernel's rank; NULL: none. */
struct iris_race *iris_i_race_of_kernel(const struct iris_cpu_wg *cpu);

/* The checker of the thread. If there is only one checker, or with `any`, it also
 * covers threads that have not called Iris. It lives until the caller leaves it;
 * NULL: none. */
struct iris_race *iris_i_race_use_checker(bool any);
void iris_i_race_leave_checker(void);

/* Under the common lock: the thread's lane, which is the host's from now on; and
 * its number for reports. */
uint32_t iris_i_race_lane(struct iris_race *race);
uint32_t iris_i_race_thread(const struct iris_race *race);

/* The rank's threads count as one from now on. */
void iris_i_race_merge(struct iris_race *race);

/* All operations of the rank's threads so far happen before the lane's next. */
void iris_i_race_acquire_all(struct iris_race *race, uint32_t lane);

/* ---- race_interpose.c, of libiris_check.a ---- */

extern atomic_bool iris_i_race_has_threads; /* the program has more than one */

/* Before main(). */
void iris_i_race_interpose(void);

/* ---- race_report.c ---- */

/* The races found, each once, with the missing order and its place. */

/* Reads the file; an empty path is allowed. Close *list_p in any case.
 * IRIS_ERR_CONFIG: the file cannot be read, or a line is malformed;
 * IRIS_ERR_NO_MEMORY. */
iris_status_t
iris_i_race_suppressions_open(const struct iris_log *log, const char *path,
                              struct iris_race_suppressions *list_p);
void iris_i_race_suppressions_close(struct iris_race_suppressions *list);

/* Whether `iriscc --check` compiled any part of the program. */
bool iris_i_race_is_watched(void);

/* Keeps the races for reports. */
void iris_i_race_note(struct iris_race *race,
                      const struct iris_race_caught *caught);

/* Logs the races that this rank has found and not logged yet. The lock is not
 * held. */
void iris_i_race_print(struct iris_race *race);

/* ---- weak.c ---- */

/* Watches an ordinary access of a kernel (iris_cpu_plain()). */
void iris_i_weak_plain(const struct iris_cpu_wg *cpu,
                       const struct iris_cpu_event *access);

/* ---- weak_schedule.c ---- */

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
    /* tests/check/explorer.c: `follow` in its order, then the defaults */
    bool explores;
    size_t next_followed;
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

/* An answer, from 0 to count - 1; it is recorded. */
unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            const struct iris_weak_question *question);

/* Adds a line about the running workgroup, if tests/check/explorer.c runs it. */
void iris_i_weak_tell(const struct iris_weak_choices *choices,
                      const char *text);

struct iris_weak_schedule;
struct iris_weak_slot;

/* IRIS_ERR_NO_MEMORY, IRIS_ERR_CONFIG */
iris_status_t
iris_i_weak_schedule_create(const struct iris_check_params *params, bool newest,
                            struct iris_weak_schedule **schedule_p);
void iris_i_weak_schedule_destroy(struct iris_weak_schedule *schedule);

/* Held around all calls below. */
void iris_i_weak_lock(struct iris_weak_schedule *schedule);
void iris_i_weak_unlock(struct iris_weak_schedule *schedule);

/* The choices, under the lock. */
struct iris_weak_choices *
iris_i_weak_choices(struct iris_weak_schedule *schedule);

/* A launch, a wait for the stream, or a kernel's run: no workgroup is chosen while
 * a rank's host may still add work. */
void iris_i_weak_host_works(struct iris_weak_schedule *schedule,
                            const struct iris_host_event *event,
                            const void *stream);
/* The host is in a call that all ranks make, the rank's `number`th; 0: it has
 * returned. */
void iris_i_weak_host_meets(struct iris_weak_schedule *schedule, int rank,
                            uint64_t number);
/* The host makes no more calls. */
void iris_i_weak_host_left(struct iris_weak_schedule *schedule, int rank);

/* A workgroup's thread enters, and returns when it is its turn; gives others a
 * turn; leaves. NULL: no memory, so it runs with the others. *is_own_p: the
 * kernel is the library's. */
struct iris_weak_slot *iris_i_weak_enter(struct iris_weak_schedule *schedule,
                                         int rank, uint64_t run,
                                         unsigned workgroup, bool *is_own_p);
void iris_i_weak_yield(struct iris_weak_schedule *schedule,
                       struct iris_weak_slot *slot, bool polls);
void iris_i_weak_exit(struct iris_weak_schedule *schedule,
                      struct iris_weak_slot *slot);

/* The workgroup's operation begins or has ended. */
void iris_i_weak_enter_operation(struct iris_weak_slot *slot, bool enters);

/* NULL: none. */
struct iris_weak_who iris_i_weak_who(const struct iris_weak_slot *slot);

/* Whether there is no workgroup. */
bool iris_i_weak_is_idle(const struct iris_weak_schedule *schedule);

#endif /* IRIS_SRC_CHECK_INTERNAL_H */
