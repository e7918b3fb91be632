/* SPDX-License-Identifier: MIT
 *
 * The order of operations in all kernels and hosts of a job.
 *
 * A lane is a sequence of operations: those of a workgroup, or of a host. A
 * clock holds a moment for each lane. Operations of that lane up to the moment
 * happen before the next operation of the clock's owner. Invariants: a lane's
 * own moment is the greatest of its lane, and moments never decrease.
 *
 * Edges join clocks. A write that releases keeps the lane's clock with its scope;
 * a read that acquires joins the clock of the write that it saw, if both scopes
 * span both lanes. An edge that lacks something joins loose moments only, and
 * says what it lacks. Fences, meetings of hosts and streams join clocks, too.
 *
 * Words keep their latest writes, each with its value and its release. A read
 * acquires from the writes whose value it saw. Hooks run before and after an
 * operation, not during it. While an update is in progress its value is
 * unknown, and a read acquires from it in any case. So the checker may see an
 * edge that does not exist, but it never misses one.
 *
 * Rank 0 makes an unnamed file, which the others open through /proc. Untouched
 * pages cost nothing. Clocks are arrays in its arena, with capacities that are
 * powers of two. Freed ones are kept in lists by capacity.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Memory ---- */

/* Attempts before the thread yields, and before it takes the lock of a dead
 * rank. */
#define SPINS 100
#define MAX_YIELDS 10000000

#define ARENA_BYTES ((size_t)4 << 30)

static const struct iris_call_type open_call = {.name = "iris_init"};

/* The place of rank 0's file. */
struct place {
    int64_t pid;
    int64_t fd;
};

static size_t round_bytes(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static size_t size_shared(void)
{
    return round_bytes(sizeof(struct iris_race_shared));
}

static size_t size_shadow(size_t heap_bytes)
{
    return round_bytes(heap_bytes) / 8 * IRIS_RACE_CELLS *
           sizeof(struct iris_race_access);
}

static iris_status_t make_file(size_t bytes, int *fd_p)
{
    int fd = iris_i_fd_above_stdio(memfd_create("iris-race", MFD_CLOEXEC));

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        int ret = errno;

        if (fd >= 0) {
            close(fd);
        }
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, ret,
                                 "IRIS_CHECK=race: no shared memory of %zu "
                                 "bytes",
                                 bytes);
    }
    *fd_p = fd;
    return IRIS_OK;
}

static iris_status_t map_file(int fd, size_t heap_bytes,
                              struct iris_race_memory *memory)
{
    char *at = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_NORESERVE, fd, 0);

    if (at == MAP_FAILED) {
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno,
                                 "IRIS_CHECK=race: cannot map %zu bytes of "
                                 "address space; lower IRIS_HEAP_SIZE",
                                 memory->bytes);
    }
    memory->shared = (void *)at;
    memory->arena = (void *)(at + size_shared());
    memory->shadow = (void *)(at + size_shared() + ARENA_BYTES);
    memory->heap_bytes = heap_bytes;
    return IRIS_OK;
}

static void init_shared(struct iris_race_shared *shared)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    shared->arena_used = 1; /* 0 means no place */
    shared->num_sites = 1;
    shared->num_edges = 1;
}

/* This rank's part: the others have received the place of rank 0's file. */
static iris_status_t join_file(struct iris_members *members, size_t heap_bytes,
                               struct iris_race_memory *memory)
{
    struct place place = {0, -1};
    char path[64];
    iris_status_t status;
    int fd;

    (void)iris_i_agree_payload(members, 0, &place, sizeof place);
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)place.pid,
             (long long)place.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "IRIS_CHECK=race: cannot open %s of rank 0; "
                                 "ranks must see each other's processes",
                                 path);
    }
    status = map_file(fd, heap_bytes, memory);
    close(fd);
    return status;
}

iris_status_t iris_i_race_memory_open(struct iris_members *members, int rank,
                                      int num_ranks, size_t heap_bytes,
                                      struct iris_race_memory *memory_p)
{
    struct iris_call call = {.type = &open_call};
    struct place place = {getpid(), -1};
    iris_status_t status;
    int fd = -1;

    memory_p->bytes = size_shared() + ARENA_BYTES +
                      (size_t)num_ranks * size_shadow(heap_bytes);
    if (rank == 0) {
        call.status = make_file(memory_p->bytes, &fd);
        call.status = call.status == IRIS_OK
                          ? map_file(fd, heap_bytes, memory_p)
                          : call.status;
        if (call.status == IRIS_OK) {
            init_shared(memory_p->shared);
            place.fd = fd;
            call.payload = &place;
            call.payload_bytes = sizeof place;
        }
    }
    status = iris_i_agree(members, &call);
    if (status == IRIS_OK) {
        call = (struct iris_call){.type = &open_call};
        call.status =
            rank == 0 ? IRIS_OK : join_file(members, heap_bytes, memory_p);
        status = iris_i_agree(members, &call);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

void iris_i_race_memory_close(struct iris_race_memory *memory)
{
    if (memory->shared != NULL) {
        munmap(memory->shared, memory->bytes);
    }
}

void iris_i_race_lock(struct iris_race_shared *shared)
{
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&shared->lock);
        shared->blind = true;
    }
}

void iris_i_race_unlock(struct iris_race_shared *shared)
{
    pthread_mutex_unlock(&shared->lock);
}

void iris_i_race_spin(struct iris_race_shared *shared, atomic_uint *lock)
{
    for (unsigned attempts = 0; attempts < SPINS + MAX_YIELDS; attempts++) {
        if (iris_i_race_spin_try(lock)) {
            return;
        }
        if (attempts >= SPINS) {
            sched_yield();
        }
    }
    atomic_store(&shared->blind, true);
}

/* ---- Clocks ---- */

#define LEAST_LOG 4

static unsigned find_log(uint32_t count)
{
    unsigned log = LEAST_LOG;

    while (((uint32_t)1 << log) < count) {
        log++;
    }
    return log;
}

/* Under the lock of the tables. */
static void give_room(struct iris_race_memory *memory,
                      struct iris_race_clock *clock)
{
    uint32_t *list;

    if (clock->at == 0) {
        return;
    }
    list = &memory->shared->arena_free[find_log(clock->capacity)];
    memory->arena[clock->at].strict = *list;
    *list = clock->at;
    clock->at = clock->capacity = 0;
}

/* Under the lock of the tables. 0: there is no room left. */
static uint32_t take_room(struct iris_race_memory *memory, unsigned log)
{
    struct iris_race_shared *shared = memory->shared;
    uint32_t at = shared->arena_free[log];

    if (at != 0) {
        shared->arena_free[log] = memory->arena[at].strict;
    } else if (shared->arena_used < UINT32_C(300000000)) {
        at = shared->arena_used;
        shared->arena_used += (uint32_t)1 << log;
    } else {
        atomic_store(&shared->blind, true);
    }
    return at;
}

/* Makes room for this number of moments; the new ones are 0. */
static bool reserve_room(struct iris_race_memory *memory,
                         struct iris_race_clock *clock, uint32_t count)
{
    struct iris_race_clock larger;

    if (count <= clock->capacity) {
        return true;
    }
    larger.capacity = (uint32_t)1 << find_log(count);
    iris_i_race_spin_lock(memory->shared, &memory->shared->tables);
    larger.at = take_room(memory, find_log(count));
    if (larger.at != 0) {
        memset(&memory->arena[larger.at], 0,
               larger.capacity * sizeof *memory->arena);
        memcpy(&memory->arena[larger.at], &memory->arena[clock->at],
               clock->capacity * sizeof *memory->arena);
        give_room(memory, clock);
        *clock = larger;
    }
    iris_i_race_spin_unlock(&memory->shared->tables);
    return larger.at != 0;
}

static void raise_moment(struct iris_race_moment *to,
                         const struct iris_race_moment *from, uint32_t why)
{
    if (from->loose > to->loose) {
        to->loose = from->loose;
        to->why = why != 0 ? why : from->why;
    }
    if (why == 0 && from->strict > to->strict) {
        to->strict = from->strict;
    }
}

void iris_i_race_join(struct iris_race_memory *memory,
                      struct iris_race_clock *to,
                      const struct iris_race_clock *from, uint32_t why)
{
    uint32_t num_lanes = atomic_load(&memory->shared->num_lanes);
    uint32_t count = from->capacity < num_lanes ? from->capacity : num_lanes;

    if (from->at == 0 || !reserve_room(memory, to, count)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        raise_moment(&memory->arena[to->at + i], &memory->arena[from->at + i],
                     why);
    }
}

void iris_i_race_join_one(struct iris_race_memory *memory,
                          struct iris_race_clock *to, uint32_t lane,
                          uint32_t moment, uint32_t why)
{
    struct iris_race_moment from = {moment, moment, why};

    if (reserve_room(memory, to, lane + 1)) {
        raise_moment(&memory->arena[to->at + lane], &from, why);
    }
}

void iris_i_race_clear(struct iris_race_memory *memory,
                       struct iris_race_clock *clock)
{
    memset(&memory->arena[clock->at], 0,
           clock->capacity * sizeof *memory->arena);
}

void iris_i_race_free(struct iris_race_memory *memory,
                      struct iris_race_clock *clock)
{
    iris_i_race_spin_lock(memory->shared, &memory->shared->tables);
    give_room(memory, clock);
    iris_i_race_spin_unlock(&memory->shared->tables);
}

void iris_i_race_tick(struct iris_race_memory *memory, uint32_t lane)
{
    iris_i_race_join_one(memory, &memory->shared->lanes[lane].clock, lane,
                         iris_i_race_now(memory, lane) + 1, 0);
}

/* The number of an equal edge, from number `i` on; the number of edges if no
 * edge is equal. */
static uint32_t find_edge(struct iris_race_shared *shared,
                          const struct iris_race_edge *edge, uint32_t i)
{
    uint32_t count = atomic_load(&shared->num_edges);

    while (i < count && (shared->edges[i].lack != edge->lack ||
                         shared->edges[i].release != edge->release ||
                         shared->edges[i].acquire != edge->acquire)) {
        i++;
    }
    return i;
}

uint32_t iris_i_race_edge(struct iris_race_memory *memory,
                          const struct iris_race_edge *edge)
{
    struct iris_race_shared *shared = memory->shared;
    uint32_t count = atomic_load(&shared->num_edges), i;

    if (edge->lack == IRIS_RACE_LACKS_NOTHING) {
        return 0;
    }
    i = find_edge(shared, edge, 1);
    if (i < count) {
        return i;
    }
    iris_i_race_spin_lock(shared, &shared->tables);
    i = find_edge(shared, edge, i);
    if (i == IRIS_RACE_EDGES) {
        i--;
    } else if (i == atomic_load(&shared->num_edges)) {
        shared->edges[i] = *edge;
        atomic_store(&shared->num_edges, i + 1);
    }
    iris_i_race_spin_unlock(&shared->tables);
    return i;
}

bool iris_i_race_spans(const struct iris_race_shared *shared,
                       iris_scope_t scope, uint32_t lane, uint32_t other)
{
    return scope == IRIS_SCOPE_WG ? lane == other
           : scope == IRIS_SCOPE_AGENT
               ? shared->lanes[lane].rank == shared->lanes[other].rank
               : true;
}

/* ---- Words ---- */

/* Whether one more word may be added. */
static bool has_room(struct iris_race_shared *shared)
{
    bool has = atomic_load(&shared->num_words) < IRIS_RACE_WORDS / 2;

    if (!has && !atomic_load(&shared->blind)) {
        atomic_store(&shared->blind, true);
    }
    return has;
}

struct iris_race_word *iris_i_race_word(struct iris_race_memory *memory,
                                        int rank, size_t offset, bool make)
{
    struct iris_race_shared *shared = memory->shared;
    uint64_t key = (uint64_t)rank * memory->heap_bytes + offset + 1;
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    uint64_t seen;

    do {
        at %= IRIS_RACE_WORDS;
        seen = atomic_load(&shared->word_keys[at]);
        if (seen == 0 && make && has_room(shared) &&
            atomic_compare_exchange_strong(&shared->word_keys[at], &seen,
                                           key)) {
            atomic_fetch_add(&shared->num_words, 1);
            seen = key;
        }
        if (seen == key) {
            return &shared->words[at];
        }
        at++;
    } while (seen != 0);
    return NULL;
}

/* The lane acquires the contents of a clock. */
static void acquire_clock(struct iris_race_memory *memory, uint32_t lane,
                          const struct iris_race_clock *from, uint32_t why)
{
    struct iris_race_lane *self = &memory->shared->lanes[lane];

    iris_i_race_spin_lock(memory->shared, &self->lock);
    iris_i_race_join(memory, &self->clock, from, why);
    iris_i_race_spin_unlock(&self->lock);
}

static uint64_t cut_value(uint64_t value, size_t bytes)
{
    return bytes >= 8 ? value : value & (((uint64_t)1 << 8 * bytes) - 1);
}

static bool is_release(iris_sem_t sem)
{
    return sem == IRIS_RELEASE || sem == IRIS_ACQ_REL;
}

static bool is_acquire(iris_sem_t sem)
{
    return sem == IRIS_ACQUIRE || sem == IRIS_ACQ_REL;
}

/* The write whose end has not been seen yet. */
static struct iris_race_write *find_write(struct iris_race_word *word,
                                          const struct iris_race_atomic *atomic)
{
    for (unsigned i = 0; i < IRIS_RACE_WRITES; i++) {
        struct iris_race_write *write = &word->writes[i];

        if (write->state == IRIS_RACE_PENDING && write->lane == atomic->lane &&
            write->id == atomic->id) {
            return write;
        }
    }
    return NULL;
}

/* Whether write `a` is dropped before write `b`. A write in progress is dropped
 * last: lanes that poll may still read its value after many updates. */
static bool goes_first(const struct iris_race_write *a,
                       const struct iris_race_write *b)
{
    return a->state != b->state ? a->state == IRIS_RACE_KNOWN
                                : a->order < b->order;
}

/* A slot for one more write. If none is free, an old write is dropped. */
static struct iris_race_write *add_write(struct iris_race_memory *memory,
                                         struct iris_race_word *word)
{
    struct iris_race_write *write = &word->writes[0];

    for (unsigned i = 0; i < IRIS_RACE_WRITES; i++) {
        struct iris_race_write *other = &word->writes[i];

        if (other->state == IRIS_RACE_NONE) {
            write = other;
            break;
        }
        write = goes_first(other, write) ? other : write;
    }
    if (write->state != IRIS_RACE_NONE) {
        word->lost = true;
        iris_i_race_join(memory, &word->old, &write->clock, 0);
    }
    iris_i_race_clear(memory, &write->clock);
    write->order = ++word->num_writes;
    return write;
}

/* Records a release by the lane, whose next operation has a new time. */
static void note_release(struct iris_race_memory *memory,
                         const struct iris_race_atomic *atomic)
{
    struct iris_race_lane *lane = &memory->shared->lanes[atomic->lane];
    unsigned i = lane->num_releases % IRIS_RACE_RELEASES;

    iris_i_race_spin_lock(memory->shared, &lane->lock);
    lane->releases[i].clock = iris_i_race_now(memory, atomic->lane);
    lane->releases[i].site = atomic->site;
    lane->num_releases++;
    iris_i_race_tick(memory, atomic->lane);
    iris_i_race_spin_unlock(&lane->lock);
}

void iris_i_race_write(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic)
{
    struct iris_race_word *word = atomic->word;
    struct iris_race_lane *lane = &memory->shared->lanes[atomic->lane];
    struct iris_race_write *write;

    if (word == NULL) {
        return;
    }
    iris_i_race_spin_lock(memory->shared, &word->lock);
    write = add_write(memory, word);
    write->state = IRIS_RACE_PENDING;
    write->lane = atomic->lane;
    write->id = atomic->id;
    write->site = atomic->site;
    write->foreseen = atomic->foreseen;
    write->values[0] = write->values[1] =
        cut_value(atomic->value, atomic->bytes);
    write->releases = is_release(atomic->sem);
    write->scope = atomic->scope;
    if (write->releases) {
        iris_i_race_join(memory, &write->clock, &lane->clock, 0);
    } else {
        struct iris_race_edge none = {IRIS_RACE_LACKS_RELEASE, atomic->site, 0};

        if (lane->fence_scope != 0) {
            write->releases = true;
            write->scope = (iris_scope_t)(lane->fence_scope - 1);
            iris_i_race_join(memory, &write->clock, &lane->fence, 0);
        }
        iris_i_race_join(memory, &write->clock, &lane->clock,
                         iris_i_race_edge(memory, &none));
    }
    iris_i_race_spin_unlock(&word->lock);
    note_release(memory, atomic);
}

/* The edge from the write to the reader with its order; 0: a full one. */
static uint32_t find_lack_of(struct iris_race_memory *memory,
                             const struct iris_race_write *write,
                             const struct iris_race_atomic *reader,
                             bool acquired)
{
    struct iris_race_edge edge = {IRIS_RACE_LACKS_NOTHING, write->site,
                                  reader->site};

    if (!write->releases) { /* the moments of the clock tell it */
        return 0;
    }
    if (!iris_i_race_spans(memory->shared, write->scope, write->lane,
                           reader->lane)) {
        edge.lack = IRIS_RACE_LACKS_RELEASE_SCOPE;
    } else if (!acquired) {
        edge.lack = IRIS_RACE_LACKS_ACQUIRE;
    } else if (!iris_i_race_spans(memory->shared, reader->scope, reader->lane,
                                  write->lane)) {
        edge.lack = IRIS_RACE_LACKS_ACQUIRE_SCOPE;
    }
    return iris_i_race_edge(memory, &edge);
}

/* Keeps the part of a relaxed read that a later fence may acquire. */
static void keep_read(struct iris_race_memory *memory,
                      const struct iris_race_write *write,
                      const struct iris_race_atomic *reader)
{
    struct iris_race_lane *lane = &memory->shared->lanes[reader->lane];
    bool near = memory->shared->lanes[write->lane].rank == lane->rank;

    if (iris_i_race_spans(memory->shared, write->scope, write->lane,
                          reader->lane)) {
        iris_i_race_join(memory, near ? &lane->near : &lane->far, &write->clock,
                         0);
    }
}

static void take_write(struct iris_race_memory *memory,
                       const struct iris_race_write *write,
                       const struct iris_race_atomic *reader)
{
    bool acquired = is_acquire(reader->sem);

    if (write->lane == reader->lane) {
        return;
    }
    if (!acquired) {
        keep_read(memory, write, reader);
    }
    acquire_clock(memory, reader->lane, &write->clock,
                  find_lack_of(memory, write, reader, acquired));
}

/* Whether the read may have seen this write. */
static bool may_see(const struct iris_race_write *write,
                    const struct iris_race_atomic *reader, uint64_t seen)
{
    if (write->state == IRIS_RACE_PENDING && !write->foreseen) {
        return write->lane != reader->lane || write->id != reader->id;
    }
    return write->state != IRIS_RACE_NONE &&
           (write->state == IRIS_RACE_KNOWN || write->lane != reader->lane ||
            write->id != reader->id) &&
           (write->values[0] == seen || write->values[1] == seen);
}

/* Acquires from the writes of the word whose value the read may have seen.
 * False: no write has that value. Under the word's lock. */
static bool take_writes(struct iris_race_memory *memory,
                        const struct iris_race_word *word,
                        const struct iris_race_atomic *reader, uint64_t seen)
{
    bool found = false;

    for (unsigned i = 0; i < IRIS_RACE_WRITES; i++) {
        const struct iris_race_write *write = &word->writes[i];

        if (may_see(write, reader, seen)) {
            found |= write->state == IRIS_RACE_KNOWN || write->foreseen;
            take_write(memory, write, reader);
        }
    }
    if (!found && word->lost) {
        acquire_clock(memory, reader->lane, &word->old, 0);
    }
    return found || word->lost;
}

bool iris_i_race_read(struct iris_race_memory *memory,
                      const struct iris_race_atomic *atomic, uint64_t seen)
{
    struct iris_race_word *word = atomic->word;
    bool found = false;

    if (word != NULL) {
        iris_i_race_spin_lock(memory->shared, &word->lock);
        found =
            take_writes(memory, word, atomic, cut_value(seen, atomic->bytes));
        iris_i_race_spin_unlock(&word->lock);
    }
    return found;
}

/* An update continues the releases of the writes that it may have seen. */
static void continue_release(struct iris_race_memory *memory,
                             const struct iris_race_word *word,
                             struct iris_race_write *own,
                             const struct iris_race_atomic *atomic,
                             uint64_t seen)
{
    for (unsigned i = 0; i < IRIS_RACE_WRITES; i++) {
        const struct iris_race_write *write = &word->writes[i];

        if (write != own && may_see(write, atomic, seen)) {
            iris_i_race_join(memory, &own->clock, &write->clock, 0);
            if (write->releases && !own->releases) {
                own->releases = true;
                own->scope = write->scope;
            }
        }
    }
    if (word->lost) {
        iris_i_race_join(memory, &own->clock, &word->old, 0);
    }
}

void iris_i_race_written(struct iris_race_memory *memory,
                         const struct iris_race_atomic *atomic,
                         const uint64_t values[2], const uint64_t *seen)
{
    struct iris_race_word *word = atomic->word;
    struct iris_race_write *own;

    if (word == NULL) {
        return;
    }
    iris_i_race_spin_lock(memory->shared, &word->lock);
    own = find_write(word, atomic);
    if (own != NULL) { /* else it was dropped after many others */
        if (seen != NULL) {
            continue_release(memory, word, own, atomic,
                             cut_value(*seen, atomic->bytes));
        }
        own->values[0] = cut_value(values[0], atomic->bytes);
        own->values[1] = cut_value(values[1], atomic->bytes);
        own->state = IRIS_RACE_KNOWN;
        /* Renumbered, since others came in between. */
        own->order = ++word->num_writes;
    }
    iris_i_race_spin_unlock(&word->lock);
}

void iris_i_race_unwritten(struct iris_race_memory *memory,
                           const struct iris_race_atomic *atomic)
{
    struct iris_race_word *word = atomic->word;
    struct iris_race_write *own;

    if (word == NULL) {
        return;
    }
    iris_i_race_spin_lock(memory->shared, &word->lock);
    own = find_write(word, atomic);
    if (own != NULL) {
        own->state = IRIS_RACE_NONE;
    }
    iris_i_race_spin_unlock(&word->lock);
}

void iris_i_race_fence(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic)
{
    struct iris_race_lane *lane = &memory->shared->lanes[atomic->lane];

    if (is_acquire(atomic->sem) && atomic->scope != IRIS_SCOPE_WG) {
        acquire_clock(memory, atomic->lane, &lane->near, 0);
        if (atomic->scope == IRIS_SCOPE_SYSTEM) {
            acquire_clock(memory, atomic->lane, &lane->far, 0);
        }
    }
    if (is_release(atomic->sem)) {
        iris_i_race_clear(memory, &lane->fence);
        iris_i_race_join(memory, &lane->fence, &lane->clock, 0);
        lane->fence_scope = (uint32_t)atomic->scope + 1;
        iris_i_race_spin_lock(memory->shared, &lane->lock);
        iris_i_race_tick(memory, atomic->lane);
        iris_i_race_spin_unlock(&lane->lock);
    }
}

/* ---- Meetings ---- */

static uint32_t find_group(struct iris_race *race, uint64_t key)
{
    struct iris_race_shared *shared = race->memory.shared;
    uint32_t i = 0;

    while (i < IRIS_RACE_GROUPS && shared->groups[i].key != key &&
           shared->groups[i].key != 0) {
        i++;
    }
    if (i == IRIS_RACE_GROUPS) {
        shared->blind = true;
    } else {
        shared->groups[i].key = key;
    }
    return i;
}

uint32_t iris_i_race_group_of(struct iris_race *race, const void *group,
                              bool on_stream)
{
    uint64_t members = group == NULL ? 1 : race->group_key(group);

    return find_group(race, 2 * members + on_stream);
}

struct iris_race_call iris_i_race_next_call(struct iris_race *race,
                                            uint32_t group)
{
    struct iris_race_call call = {0, 0};

    if (group < IRIS_RACE_GROUPS) {
        call.group = group;
        call.number = ++race->calls[group];
    }
    return call;
}

uint32_t iris_i_race_pair_of(struct iris_race *race, const void *group,
                             int from, int to)
{
    uint64_t members = group == NULL ? 1 : race->group_key(group);
    uint64_t pair = (uint64_t)(uint32_t)from << 32 | (uint32_t)to;

    return find_group(race,
                      2 * members + (pair + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

struct iris_race_meeting *iris_i_race_meeting(struct iris_race *race,
                                              const struct iris_race_call *call)
{
    struct iris_race_group *group = &race->memory.shared->groups[call->group];
    struct iris_race_meeting *meeting =
        &group->meetings[call->number % IRIS_RACE_MEETINGS];

    if (meeting->number < call->number) {
        iris_i_race_clear(&race->memory, &meeting->clock);
        meeting->number = call->number;
        meeting->cleared = false;
    }
    return meeting;
}
