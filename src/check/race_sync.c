/* SPDX-License-Identifier: MIT
 *
 * Words keep their latest writes, each with its value and its release. A read
 * acquires from the writes whose value it saw. Hooks run before and after an
 * operation, not during it. While an update is in progress its value is
 * unknown, and a read acquires from it in any case. So the checker may see an
 * edge that does not exist, but it never misses one.
 */
#include "config.h"

#include "check/internal.h"

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
static void acquire(struct iris_race_memory *memory, uint32_t lane,
                    const struct iris_race_clock *from, uint32_t why)
{
    struct iris_race_lane *self = &memory->shared->lanes[lane];

    iris_i_race_spin_lock(memory->shared, &self->lock);
    iris_i_race_join(memory, &self->clock, from, why);
    iris_i_race_spin_unlock(&self->lock);
}

static uint64_t low_bytes(uint64_t value, size_t bytes)
{
    return bytes >= 8 ? value : value & (((uint64_t)1 << 8 * bytes) - 1);
}

static bool releases(iris_sem_t sem)
{
    return sem == IRIS_RELEASE || sem == IRIS_ACQ_REL;
}

static bool acquires(iris_sem_t sem)
{
    return sem == IRIS_ACQUIRE || sem == IRIS_ACQ_REL;
}

/* The write whose end has not been seen yet. */
static struct iris_race_write *find_own(struct iris_race_word *word,
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
static struct iris_race_write *next_write(struct iris_race_memory *memory,
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
    write = next_write(memory, word);
    write->state = IRIS_RACE_PENDING;
    write->lane = atomic->lane;
    write->id = atomic->id;
    write->site = atomic->site;
    write->foreseen = atomic->foreseen;
    write->values[0] = write->values[1] =
        low_bytes(atomic->value, atomic->bytes);
    write->releases = releases(atomic->sem);
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
static uint32_t edge_to(struct iris_race_memory *memory,
                        const struct iris_race_write *write,
                        const struct iris_race_atomic *reader, bool acquired)
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
static void keep_for_fence(struct iris_race_memory *memory,
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

static void take(struct iris_race_memory *memory,
                 const struct iris_race_write *write,
                 const struct iris_race_atomic *reader)
{
    bool acquired = acquires(reader->sem);

    if (write->lane == reader->lane) {
        return;
    }
    if (!acquired) {
        keep_for_fence(memory, write, reader);
    }
    acquire(memory, reader->lane, &write->clock,
            edge_to(memory, write, reader, acquired));
}

/* Whether the read may have seen this write. */
static bool may_be(const struct iris_race_write *write,
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

/* A flag that plain stores write orders nothing, but the program expects it
 * to. */
static void take_plain(struct iris_race_memory *memory,
                       const struct iris_race_atomic *reader)
{
    struct iris_race_lane *lane = &memory->shared->lanes[reader->lane];
    struct iris_race_access plain;
    struct iris_race_edge edge = {IRIS_RACE_LACKS_ATOMIC, 0, reader->site};

    if (iris_i_race_last_plain(memory, reader->rank, reader->offset, &plain) &&
        plain.lane != reader->lane) {
        uint32_t why;

        edge.release = plain.site;
        why = iris_i_race_edge(memory, &edge);
        iris_i_race_spin_lock(memory->shared, &lane->lock);
        iris_i_race_join_one(memory, &lane->clock, plain.lane, plain.clock,
                             why);
        iris_i_race_spin_unlock(&lane->lock);
    }
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

        if (may_be(write, reader, seen)) {
            found |= write->state == IRIS_RACE_KNOWN || write->foreseen;
            take(memory, write, reader);
        }
    }
    if (!found && word->lost) {
        acquire(memory, reader->lane, &word->old, 0);
    }
    return found || word->lost;
}

void iris_i_race_read(struct iris_race_memory *memory,
                      const struct iris_race_atomic *atomic, uint64_t seen)
{
    struct iris_race_word *word = atomic->word;
    bool found = false;

    if (word != NULL) {
        iris_i_race_spin_lock(memory->shared, &word->lock);
        found =
            take_writes(memory, word, atomic, low_bytes(seen, atomic->bytes));
        iris_i_race_spin_unlock(&word->lock);
    }
    if (!found) {
        take_plain(memory, atomic);
    }
}

/* An update continues the releases of the writes that it may have seen. */
static void continue_releases(struct iris_race_memory *memory,
                              const struct iris_race_word *word,
                              struct iris_race_write *own,
                              const struct iris_race_atomic *atomic,
                              uint64_t seen)
{
    for (unsigned i = 0; i < IRIS_RACE_WRITES; i++) {
        const struct iris_race_write *write = &word->writes[i];

        if (write != own && may_be(write, atomic, seen)) {
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
    own = find_own(word, atomic);
    if (own != NULL) { /* else it was dropped after many others */
        if (seen != NULL) {
            continue_releases(memory, word, own, atomic,
                              low_bytes(*seen, atomic->bytes));
        }
        own->values[0] = low_bytes(values[0], atomic->bytes);
        own->values[1] = low_bytes(values[1], atomic->bytes);
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
    own = find_own(word, atomic);
    if (own != NULL) {
        own->state = IRIS_RACE_NONE;
    }
    iris_i_race_spin_unlock(&word->lock);
}

void iris_i_race_fence(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic)
{
    struct iris_race_lane *lane = &memory->shared->lanes[atomic->lane];

    if (acquires(atomic->sem) && atomic->scope != IRIS_SCOPE_WG) {
        acquire(memory, atomic->lane, &lane->near, 0);
        if (atomic->scope == IRIS_SCOPE_SYSTEM) {
            acquire(memory, atomic->lane, &lane->far, 0);
        }
    }
    if (releases(atomic->sem)) {
        iris_i_race_clear(memory, &lane->fence);
        iris_i_race_join(memory, &lane->fence, &lane->clock, 0);
        lane->fence_scope = (uint32_t)atomic->scope + 1;
        iris_i_race_spin_lock(memory->shared, &lane->lock);
        iris_i_race_tick(memory, atomic->lane);
        iris_i_race_spin_unlock(&lane->lock);
    }
}
