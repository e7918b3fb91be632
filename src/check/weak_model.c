/* SPDX-License-Identifier: MIT
 *
 * Words of 8 bytes with their latest writes, and lanes with clocks. A lane's
 * clock says, for each lane, which operations happen before this lane's next
 * one. A read may see any write that is not older than the newest write that
 * happens before it. Writes to a word are ordered by the time of their
 * execution.
 */
#include "config.h"

#include "check/internal.h"

#include <stdlib.h>
#include <string.h>

#define NUM_SCOPES 3
#define MAX_RANKS 64
#define NUM_MEETINGS 64

/* A call of hosts, identified by its number. Later calls reuse it. */
struct meeting {
    uint64_t key;
    uint64_t number;
    struct iris_weak_clock clock;
};

struct lane {
    int rank;
    unsigned workgroup;
    struct iris_weak_clock clock;
    struct iris_weak_clock
        read[NUM_SCOPES]; /* for an acquire fence, indexed by the necessary
                           * scope */
    struct iris_weak_clock
        released[NUM_SCOPES]; /* by release fences, indexed by their scope */
};

struct iris_weak_model {
    struct iris_weak_chooser chooser;
    struct iris_weak_words words;
    struct lane lanes[IRIS_WEAK_LANES];
    struct iris_weak_clock hosts[MAX_RANKS];
    struct meeting meetings[NUM_MEETINGS];
};

/* ---- Clocks ---- */

static void join(struct iris_weak_clock *into,
                 const struct iris_weak_clock *from)
{
    for (size_t i = 0; i < IRIS_WEAK_LANES; i++) {
        into->of[i] = into->of[i] > from->of[i] ? into->of[i] : from->of[i];
    }
}

static bool is_zero(const struct iris_weak_clock *clock)
{
    static const struct iris_weak_clock zero;

    return memcmp(clock, &zero, sizeof zero) == 0;
}

/* The narrowest scope that includes both. */
static iris_scope_t scope_between(const struct lane *lane, int rank,
                                  unsigned workgroup)
{
    return lane->rank != rank             ? IRIS_SCOPE_SYSTEM
           : lane->workgroup != workgroup ? IRIS_SCOPE_AGENT
                                          : IRIS_SCOPE_WG;
}

/* ---- Releases of writes ---- */

/* Adds an edge of this lane. If the release has one with the same lane and
 * scope, extends it: its earlier operations happen before this one. */
static void add_edge(struct iris_weak_release *release, const struct lane *lane,
                     unsigned number, iris_scope_t scope,
                     const struct iris_weak_clock *clock)
{
    struct iris_weak_edge *edge = release->edges;

    if (is_zero(clock)) {
        return;
    }
    while (edge < release->edges + release->count &&
           (edge->lane != number || edge->scope != scope)) {
        edge++;
    }
    if (edge == release->edges + release->count) {
        *edge = (struct iris_weak_edge){.rank = lane->rank,
                                        .workgroup = lane->workgroup,
                                        .lane = number,
                                        .scope = scope};
        release->count++;
    }
    join(&edge->clock, clock);
}

static struct iris_weak_release *
release_of(struct iris_weak_model *model, unsigned number,
           const struct iris_weak_how *how,
           const struct iris_weak_release *chain)
{
    const struct lane *lane = &model->lanes[number];
    unsigned count = chain == NULL ? 0 : chain->count;
    struct iris_weak_release *release;

    if (!how->atomic) {
        return NULL;
    }
    release =
        malloc(sizeof *release + (count + NUM_SCOPES) * sizeof *release->edges);
    if (release == NULL) {
        model->words.blind = true;
        return NULL;
    }
    release->users = 1;
    release->count = count;
    if (count != 0) {
        memcpy(release->edges, chain->edges, count * sizeof *chain->edges);
    }
    if (how->sem == IRIS_RELEASE || how->sem == IRIS_ACQ_REL) {
        add_edge(release, lane, number, how->scope, &lane->clock);
    } else {
        for (int scope = 0; scope <= (int)how->scope; scope++) {
            add_edge(release, lane, number, (iris_scope_t)scope,
                     &lane->released[scope]);
        }
    }
    if (release->count == 0) {
        iris_i_weak_drop(release);
        return NULL;
    }
    return release;
}

/* ---- One word of a range ---- */

static uint64_t key_of(int rank, size_t offset)
{
    return ((uint64_t)(unsigned)rank + 1) << 48 |
           (uint64_t)(offset / IRIS_WEAK_WORD_BYTES);
}

/* The part of a range in one word. */
struct part {
    uint64_t key;
    uint64_t mask;
    size_t at;     /* offset in the range */
    size_t within; /* the word */
    size_t bytes;
};

static struct part first_part(const struct iris_weak_range *range)
{
    return (struct part){.key = key_of(range->rank, range->offset),
                         .within = range->offset % IRIS_WEAK_WORD_BYTES};
}

static bool next_part(const struct iris_weak_range *range, struct part *part)
{
    if (part->bytes != 0) {
        part->at += part->bytes;
        part->within = 0;
        part->key++;
    }
    if (part->at >= range->bytes) {
        return false;
    }
    part->bytes = IRIS_WEAK_WORD_BYTES - part->within;
    if (part->bytes > range->bytes - part->at) {
        part->bytes = range->bytes - part->at;
    }
    part->mask = (UINT64_MAX >> (64 - 8 * part->bytes)) << (8 * part->within);
    return true;
}

static uint64_t load_part(const struct part *part, const void *bytes)
{
    uint64_t value = 0;

    memcpy((char *)&value + part->within, (const char *)bytes + part->at,
           part->bytes);
    return value;
}

/* Whether the write happens before the lane's next operation. */
static bool knows(const struct iris_weak_model *model, unsigned lane,
                  unsigned by, uint32_t clock)
{
    return by == lane || model->lanes[lane].clock.of[by] >= clock;
}

/* The oldest state of the word that the lane may see. */
static uint64_t oldest_for(const struct iris_weak_model *model, unsigned lane,
                           const struct iris_weak_cell *cell, uint64_t mask)
{
    uint64_t time = 0;

    for (unsigned i = 0; i < cell->num_writes; i++) {
        const struct iris_weak_write *write = &cell->writes[i];

        if ((write->mask & mask) != 0 &&
            (knows(model, lane, write->lane, write->clock) ||
             iris_i_weak_is_old(&model->words, write->time))) {
            time = write->time;
        }
    }
    for (unsigned i = 0; i < cell->num_looks; i++) {
        const struct iris_weak_look *look = &cell->looks[i];

        if ((look->mask & mask) != 0 && look->time > time &&
            knows(model, lane, look->lane, look->clock)) {
            time = look->time;
        }
    }
    return time;
}

/* Whether an update must see the write: each scope includes the other lane. */
static bool is_ordered(const struct iris_weak_model *model, unsigned number,
                       const struct iris_weak_how *how,
                       const struct iris_weak_write *write)
{
    iris_scope_t needed =
        scope_between(&model->lanes[number], write->rank, write->workgroup);

    return write->atomic && how->scope >= needed && write->scope >= needed;
}

/* The choice of a state that a lane will see of a word. */
struct choice {
    unsigned lane;
    const struct iris_weak_cell *cell;
    uint64_t mask;
    uint64_t time;   /* time of the chosen state */
    unsigned behind; /* number of newer writes */
};

static void choose(struct iris_weak_model *model,
                   const struct iris_weak_how *how, struct choice *choice)
{
    const struct iris_weak_cell *cell = choice->cell;
    uint64_t time = oldest_for(model, choice->lane, cell, choice->mask);
    unsigned later = 0;

    for (unsigned i = 0; i < cell->num_writes; i++) {
        const struct iris_weak_write *write = &cell->writes[i];

        if ((write->mask & choice->mask) == 0 || write->time <= time) {
            continue;
        }
        later++;
        if (how->update && is_ordered(model, choice->lane, how, write)) {
            time = write->time;
            later = 0;
        }
    }
    choice->behind =
        later == 0 ? 0 : model->chooser.choose(model->chooser.arg, later + 1);
    for (unsigned i = 0; i < cell->num_writes && later > choice->behind; i++) {
        if (cell->writes[i].time > time &&
            (cell->writes[i].mask & choice->mask) != 0) {
            time = cell->writes[i].time;
            later--;
        }
    }
    choice->time = time;
}

/* ---- Accesses ---- */

void iris_i_weak_look(struct iris_weak_model *model, unsigned lane,
                      const struct iris_weak_range *range, const void *memory)
{
    struct part part = first_part(range);

    model->words.now++;
    model->lanes[lane].clock.of[lane]++;
    while (next_part(range, &part)) {
        struct iris_weak_cell *cell = iris_i_weak_word(&model->words, part.key);
        uint64_t content = load_part(&part, memory);

        if (cell == NULL) {
            return;
        }
        iris_i_weak_prune(&model->words, cell);
        if ((iris_i_weak_value(cell, UINT64_MAX) & part.mask) != content) {
            cell->base =
                (iris_i_weak_value(cell, UINT64_MAX) & ~part.mask) | content;
            iris_i_weak_forget(cell);
        }
    }
}

unsigned iris_i_weak_read(struct iris_weak_model *model, unsigned lane,
                          const struct iris_weak_range *range,
                          const struct iris_weak_how *how, void *seen)
{
    struct part part = first_part(range);
    unsigned most = 0;

    while (next_part(range, &part)) {
        struct iris_weak_cell *cell = iris_i_weak_find(&model->words, part.key);
        struct choice choice = {.lane = lane, .cell = cell, .mask = part.mask};
        uint64_t value;

        if (cell == NULL || !iris_i_weak_room(&model->words, cell)) {
            continue;
        }
        choose(model, how, &choice);
        value = iris_i_weak_value(cell, choice.time);
        memcpy((char *)seen + part.at, (char *)&value + part.within,
               part.bytes);
        cell->looks[cell->num_looks++] = (struct iris_weak_look){
            choice.time, part.mask, model->lanes[lane].clock.of[lane],
            (uint8_t)lane};
        most = most > choice.behind ? most : choice.behind;
    }
    return most;
}

/* The write that the lane's latest read of the word saw; NULL: none. */
static const struct iris_weak_write *
seen_write(const struct iris_weak_cell *cell, unsigned lane, uint64_t mask)
{
    const struct iris_weak_write *seen = NULL;
    uint64_t time = 0;

    for (unsigned i = 0; i < cell->num_looks; i++) {
        if (cell->looks[i].lane == lane && (cell->looks[i].mask & mask) != 0) {
            time = cell->looks[i].time;
        }
    }
    for (unsigned i = 0; i < cell->num_writes; i++) {
        if (cell->writes[i].time <= time &&
            (cell->writes[i].mask & mask) != 0) {
            seen = &cell->writes[i];
        }
    }
    return seen;
}

void iris_i_weak_acquire(struct iris_weak_model *model, unsigned number,
                         const struct iris_weak_range *range,
                         const struct iris_weak_how *how)
{
    struct lane *lane = &model->lanes[number];
    struct part part = first_part(range);
    bool acquires = how->sem == IRIS_ACQUIRE || how->sem == IRIS_ACQ_REL;

    while (how->atomic && next_part(range, &part)) {
        const struct iris_weak_cell *cell =
            iris_i_weak_find(&model->words, part.key);
        const struct iris_weak_write *write =
            cell == NULL ? NULL : seen_write(cell, number, part.mask);
        const struct iris_weak_release *release =
            write == NULL ? NULL : write->release;

        for (unsigned i = 0; release != NULL && i < release->count; i++) {
            const struct iris_weak_edge *edge = &release->edges[i];
            iris_scope_t needed =
                scope_between(lane, edge->rank, edge->workgroup);

            if (edge->scope >= needed && how->scope >= needed) {
                join(acquires ? &lane->clock : &lane->read[needed],
                     &edge->clock);
            }
        }
    }
}

void iris_i_weak_write(struct iris_weak_model *model, unsigned number,
                       const struct iris_weak_range *range,
                       const struct iris_weak_how *how, const void *written)
{
    const struct lane *lane = &model->lanes[number];
    struct part part = first_part(range);

    while (next_part(range, &part)) {
        struct iris_weak_cell *cell = iris_i_weak_find(&model->words, part.key);
        const struct iris_weak_write *before;

        if (cell == NULL || !iris_i_weak_room(&model->words, cell)) {
            continue;
        }
        before = how->update ? seen_write(cell, number, part.mask) : NULL;
        cell->writes[cell->num_writes] = (struct iris_weak_write){
            .time = model->words.now,
            .value = load_part(&part, written),
            .mask = part.mask,
            .clock = lane->clock.of[number],
            .lane = (uint8_t)number,
            .atomic = how->atomic,
            .scope = how->scope,
            .rank = lane->rank,
            .workgroup = lane->workgroup,
            .release = release_of(model, number, how,
                                  before == NULL ? NULL : before->release),
        };
        cell->num_writes++;
    }
}

void iris_i_weak_fence(struct iris_weak_model *model, unsigned number,
                       const struct iris_weak_how *how)
{
    struct lane *lane = &model->lanes[number];
    bool acquires = how->sem == IRIS_ACQUIRE || how->sem == IRIS_ACQ_REL;
    bool releases = how->sem == IRIS_RELEASE || how->sem == IRIS_ACQ_REL;

    model->words.now++;
    lane->clock.of[number]++;
    for (int scope = 0; acquires && scope <= (int)how->scope; scope++) {
        join(&lane->clock, &lane->read[scope]);
    }
    for (int scope = 0; releases && scope <= (int)how->scope; scope++) {
        lane->released[scope] = lane->clock;
    }
}

/* ---- Lanes and hosts ---- */

void iris_i_weak_begin(struct iris_weak_model *model, unsigned number, int rank,
                       unsigned workgroup)
{
    struct lane *lane = &model->lanes[number];

    lane->rank = rank;
    lane->workgroup = workgroup;
    memset(lane->read, 0, sizeof lane->read);
    memset(lane->released, 0, sizeof lane->released);
    join(&lane->clock, &model->hosts[rank % MAX_RANKS]);
    lane->clock.of[number]++;
}

void iris_i_weak_end(struct iris_weak_model *model, unsigned number)
{
    join(&model->hosts[model->lanes[number].rank % MAX_RANKS],
         &model->lanes[number].clock);
}

static struct meeting *meeting_of(struct iris_weak_model *model, uint64_t key,
                                  uint64_t number)
{
    struct meeting *meeting =
        &model->meetings[(key * 5 + number) % NUM_MEETINGS];

    if (meeting->key != key || meeting->number != number) {
        *meeting = (struct meeting){.key = key, .number = number};
    }
    return meeting;
}

void iris_i_weak_come(struct iris_weak_model *model, int rank, uint64_t group,
                      uint64_t number)
{
    join(&meeting_of(model, group, number)->clock,
         &model->hosts[rank % MAX_RANKS]);
}

void iris_i_weak_leave(struct iris_weak_model *model, int rank, uint64_t group,
                       uint64_t number)
{
    join(&model->hosts[rank % MAX_RANKS],
         &meeting_of(model, group, number)->clock);
}

void iris_i_weak_flush(struct iris_weak_model *model)
{
    model->words.flushed = model->words.now;
}

/* ---- Creating and destroying ---- */

struct iris_weak_model *
iris_i_weak_model_create(struct iris_weak_chooser chooser, uint64_t age)
{
    struct iris_weak_model *model = calloc(1, sizeof *model);

    if (model != NULL) {
        model->chooser = chooser;
        model->words.age = age;
    }
    return model;
}

void iris_i_weak_model_destroy(struct iris_weak_model *model)
{
    if (model == NULL) {
        return;
    }
    iris_i_weak_words_close(&model->words);
    free(model);
}
