/* SPDX-License-Identifier: MIT
 *
 * The values that reads may see.
 *
 * Words of 8 bytes keep their latest writes in the order of their execution, and
 * looks: the time of the newest write that a lane has seen. A read may see any
 * write that is not older than the newest write, or look, that happens before it.
 * A lane's clock says, for each lane, which operations happen before this lane's
 * next one. Writes that all lanes see are dropped, so a word's base is the value
 * before all writes that it keeps.
 */
#include "config.h"

#include "check/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Words ---- */

#define WORD_BYTES 8

struct iris_weak_write {
    uint64_t time;
    uint64_t value;
    uint64_t mask; /* bit mask of the bytes that it writes */
    uint32_t clock;
    uint32_t lane;
    bool atomic;
    iris_scope_t scope;
    struct iris_order_release release; /* an atomic write has one */
};

/* A lane has seen the word's state at that time. */
struct iris_weak_look {
    uint64_t time;
    uint64_t mask;
    uint32_t clock;
    uint32_t lane;
};

struct iris_weak_cell {
    uint64_t key;  /* 0: free */
    uint64_t base; /* value before all writes */
    struct iris_weak_write *writes;
    struct iris_weak_look *looks;
    unsigned num_writes, max_writes;
    unsigned num_looks, max_looks;
};

struct iris_weak_words {
    struct iris_weak_cell *cells;
    size_t num_cells, max_cells;
    uint64_t now;     /* number of accesses so far */
    uint64_t age;     /* a write is old after this number of accesses; 0:
                       * never */
    uint64_t flushed; /* all writes up to this time are old */
    struct iris_order *order;
};

static struct iris_weak_cell *find_slot(struct iris_weak_cell *cells,
                                        size_t max, uint64_t key)
{
    size_t i = (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (max - 1);

    while (cells[i].key != 0 && cells[i].key != key) {
        i = (i + 1) & (max - 1);
    }
    return &cells[i];
}

static bool grow_words(struct iris_weak_words *words)
{
    size_t max = words->max_cells == 0 ? 256 : words->max_cells * 2;
    struct iris_weak_cell *cells = calloc(max, sizeof *cells);

    if (cells == NULL) {
        words->order->shared->blind = true;
        return false;
    }
    for (size_t i = 0; i < words->max_cells; i++) {
        if (words->cells[i].key != 0) {
            *find_slot(cells, max, words->cells[i].key) = words->cells[i];
        }
    }
    free(words->cells);
    words->cells = cells;
    words->max_cells = max;
    return true;
}

static struct iris_weak_cell *find_cell(const struct iris_weak_words *words,
                                        uint64_t key)
{
    struct iris_weak_cell *cell;

    if (words->max_cells == 0) {
        return NULL;
    }
    cell = find_slot(words->cells, words->max_cells, key);
    return cell->key == 0 ? NULL : cell;
}

/* The word, whose current value in memory is `content`; NULL: no memory for
 * it. */
static struct iris_weak_cell *add_cell(struct iris_weak_words *words,
                                       uint64_t key)
{
    struct iris_weak_cell *cell = find_cell(words, key);

    if (cell == NULL) {
        if (2 * words->num_cells >= words->max_cells && !grow_words(words)) {
            return NULL;
        }
        cell = find_slot(words->cells, words->max_cells, key);
        cell->key = key;
        words->num_cells++;
    }
    return cell;
}

static void forget_cell(const struct iris_weak_words *words,
                        struct iris_weak_cell *cell)
{
    for (unsigned i = 0; i < cell->num_writes; i++) {
        iris_i_order_drop(words->order, &cell->writes[i].release);
    }
    cell->num_writes = cell->num_looks = 0;
}

/* The word's value at `time`. */
static uint64_t value_cell(const struct iris_weak_cell *cell, uint64_t time)
{
    uint64_t value = cell->base;

    for (unsigned i = 0; i < cell->num_writes && cell->writes[i].time <= time;
         i++) {
        value = (value & ~cell->writes[i].mask) |
                (cell->writes[i].value & cell->writes[i].mask);
    }
    return value;
}

static bool is_old_time(const struct iris_weak_words *words, uint64_t time)
{
    return time <= words->flushed ||
           (words->age != 0 && time + words->age <= words->now);
}

/* Drops writes whose successors all lanes have seen. */
static void prune_cell(const struct iris_weak_words *words,
                       struct iris_weak_cell *cell)
{
    uint64_t covered = 0;
    unsigned kept = cell->num_writes, looks = 0;

    for (unsigned i = cell->num_writes; i-- > 0;) {
        struct iris_weak_write *write = &cell->writes[i];
        bool old = is_old_time(words, write->time);

        if (old && (write->mask & ~covered) == 0) {
            iris_i_order_drop(words->order, &write->release);
            continue;
        }
        covered |= old ? write->mask : 0;
        cell->writes[--kept] = *write;
    }
    cell->num_writes -= kept;
    memmove(cell->writes, cell->writes + kept,
            cell->num_writes * sizeof *cell->writes);
    for (unsigned i = 0; i < cell->num_looks; i++) {
        if (!is_old_time(words, cell->looks[i].time)) {
            cell->looks[looks++] = cell->looks[i];
        }
    }
    cell->num_looks = looks;
}

/* Makes room for one more of `count` items; false: no memory. */
static bool make_room(void **items, size_t bytes, unsigned count, unsigned *max)
{
    unsigned more = *max * 2 + 4;
    void *larger;

    if (count < *max) {
        return true;
    }
    larger = realloc(*items, more * bytes);
    if (larger == NULL) {
        return false;
    }
    *items = larger;
    *max = more;
    return true;
}

static bool make_cell_room(struct iris_weak_words *words,
                           struct iris_weak_cell *cell)
{
    void *writes = cell->writes, *looks = cell->looks;
    bool room = make_room(&writes, sizeof *cell->writes, cell->num_writes,
                          &cell->max_writes);

    cell->writes = writes;
    room = make_room(&looks, sizeof *cell->looks, cell->num_looks,
                     &cell->max_looks) &&
           room;
    cell->looks = looks;
    if (!room) {
        words->order->shared->blind = true;
    }
    return room;
}

struct iris_weak_model {
    struct iris_weak_chooser chooser;
    struct iris_order *order;
    struct iris_weak_words words;
    uint32_t lanes[IRIS_WEAK_LANES]; /* + 1; 0: not used yet */
};

/* ---- One word of a range ---- */

/* The part of a range in one word. */
struct part {
    uint64_t key;
    uint64_t mask;
    size_t at;     /* offset in the range */
    size_t within; /* the word */
    size_t bytes;
};

static struct part begin_parts(const struct iris_order_range *range)
{
    return (struct part){.key = ((uint64_t)(unsigned)range->rank + 1) << 48 |
                                (uint64_t)(range->offset / WORD_BYTES),
                         .within = range->offset % WORD_BYTES};
}

static bool next_part(const struct iris_order_range *range, struct part *part)
{
    if (part->bytes != 0) {
        part->at += part->bytes;
        part->within = 0;
        part->key++;
    }
    if (part->at >= range->bytes) {
        return false;
    }
    part->bytes = WORD_BYTES - part->within;
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
static bool knows_write(const struct iris_weak_model *model, uint32_t lane,
                        uint32_t by, uint32_t clock)
{
    const struct iris_order_moment *moment = iris_i_order_moment(
        model->order, &model->order->shared->lanes[lane].clock, by);

    return by == lane || (moment != NULL && moment->strict >= clock);
}

/* The oldest state of the word that the lane may see. */
static uint64_t find_oldest(const struct iris_weak_model *model, uint32_t lane,
                            const struct iris_weak_cell *cell, uint64_t mask)
{
    uint64_t time = 0;

    for (unsigned i = 0; i < cell->num_writes; i++) {
        const struct iris_weak_write *write = &cell->writes[i];

        if ((write->mask & mask) != 0 &&
            (knows_write(model, lane, write->lane, write->clock) ||
             is_old_time(&model->words, write->time))) {
            time = write->time;
        }
    }
    for (unsigned i = 0; i < cell->num_looks; i++) {
        const struct iris_weak_look *look = &cell->looks[i];

        if ((look->mask & mask) != 0 && look->time > time &&
            knows_write(model, lane, look->lane, look->clock)) {
            time = look->time;
        }
    }
    return time;
}

/* Whether an update must see the write: each scope includes the other lane. */
static bool must_see(const struct iris_weak_model *model,
                     const struct iris_order_op *op,
                     const struct iris_weak_write *write)
{
    const struct iris_order_shared *shared = model->order->shared;

    return write->atomic &&
           iris_i_order_spans(shared, op->scope, op->lane, write->lane) &&
           iris_i_order_spans(shared, write->scope, write->lane, op->lane);
}

/* The choice of a state that a lane will see of a word. */
struct choice {
    const struct iris_weak_cell *cell;
    uint64_t mask;
    uint64_t time;   /* time of the chosen state */
    unsigned behind; /* number of newer writes */
};

static void choose_state(struct iris_weak_model *model,
                         const struct iris_weak_how *how, struct choice *choice)
{
    const struct iris_weak_cell *cell = choice->cell;
    uint64_t time = find_oldest(model, how->op.lane, cell, choice->mask);
    unsigned later = 0;

    for (unsigned i = 0; i < cell->num_writes; i++) {
        const struct iris_weak_write *write = &cell->writes[i];

        if ((write->mask & choice->mask) == 0 || write->time <= time) {
            continue;
        }
        later++;
        if (how->update && must_see(model, &how->op, write)) {
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

void iris_i_weak_look(struct iris_weak_model *model, uint32_t lane,
                      const struct iris_order_range *range, const void *memory)
{
    struct part part = begin_parts(range);

    model->words.now++;
    iris_i_order_tick(model->order, lane);
    while (next_part(range, &part)) {
        struct iris_weak_cell *cell = add_cell(&model->words, part.key);
        uint64_t content = load_part(&part, memory);

        if (cell == NULL) {
            return;
        }
        prune_cell(&model->words, cell);
        if ((value_cell(cell, UINT64_MAX) & part.mask) != content) {
            cell->base = (value_cell(cell, UINT64_MAX) & ~part.mask) | content;
            forget_cell(&model->words, cell);
        }
    }
}

unsigned iris_i_weak_read(struct iris_weak_model *model,
                          const struct iris_order_range *range,
                          const struct iris_weak_how *how, void *seen)
{
    struct part part = begin_parts(range);
    unsigned most = 0;

    while (next_part(range, &part)) {
        struct iris_weak_cell *cell = find_cell(&model->words, part.key);
        struct choice choice = {.cell = cell, .mask = part.mask};
        uint64_t value;

        if (cell == NULL || !make_cell_room(&model->words, cell)) {
            continue;
        }
        choose_state(model, how, &choice);
        value = value_cell(cell, choice.time);
        memcpy((char *)seen + part.at, (char *)&value + part.within,
               part.bytes);
        cell->looks[cell->num_looks++] = (struct iris_weak_look){
            choice.time, part.mask,
            iris_i_order_now(model->order, how->op.lane), how->op.lane};
        most = most > choice.behind ? most : choice.behind;
    }
    return most;
}

/* The write that the lane's latest read of the word saw; NULL: none. */
static const struct iris_weak_write *
find_seen(const struct iris_weak_cell *cell, uint32_t lane, uint64_t mask)
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

void iris_i_weak_acquire(struct iris_weak_model *model,
                         const struct iris_order_range *range,
                         const struct iris_weak_how *how)
{
    struct part part = begin_parts(range);

    while (how->atomic && next_part(range, &part)) {
        const struct iris_weak_cell *cell = find_cell(&model->words, part.key);
        const struct iris_weak_write *write =
            cell == NULL ? NULL : find_seen(cell, how->op.lane, part.mask);

        if (write != NULL) {
            iris_i_order_acquire(model->order, &how->op, &write->release);
        }
    }
}

void iris_i_weak_write(struct iris_weak_model *model,
                       const struct iris_order_range *range,
                       const struct iris_weak_how *how, const void *written)
{
    struct part part = begin_parts(range);

    while (next_part(range, &part)) {
        struct iris_weak_cell *cell = find_cell(&model->words, part.key);
        const struct iris_weak_write *before;
        struct iris_weak_write *write;

        if (cell == NULL || !make_cell_room(&model->words, cell)) {
            continue;
        }
        before = how->update ? find_seen(cell, how->op.lane, part.mask) : NULL;
        write = &cell->writes[cell->num_writes++];
        *write = (struct iris_weak_write){
            .time = model->words.now,
            .value = load_part(&part, written),
            .mask = part.mask,
            .clock = iris_i_order_now(model->order, how->op.lane),
            .lane = how->op.lane,
            .atomic = how->atomic,
            .scope = how->op.scope,
        };
        if (how->atomic) {
            iris_i_order_release(model->order, &how->op, &write->release);
        }
        if (how->atomic && before != NULL) {
            iris_i_order_continue(model->order, &how->op, &write->release,
                                  &before->release);
        }
    }
}

void iris_i_weak_fence(struct iris_weak_model *model,
                       const struct iris_order_op *op)
{
    model->words.now++;
    iris_i_order_tick(model->order, op->lane);
    iris_i_order_fence(model->order, op);
}

/* ---- Lanes ---- */

uint32_t iris_i_weak_begin(struct iris_weak_model *model,
                           const struct iris_order_host *host, int num_ranks,
                           const struct iris_cpu_wg *cpu)
{
    struct iris_order_lane *lanes = model->order->shared->lanes;
    unsigned count =
        num_ranks < IRIS_WEAK_LANES ? IRIS_WEAK_LANES / (unsigned)num_ranks : 1;
    unsigned slot = ((unsigned)cpu->rank * count + cpu->workgroup % count) %
                    IRIS_WEAK_LANES;
    uint32_t lane;

    if (model->lanes[slot] == 0) {
        model->lanes[slot] = iris_i_order_add_lane(model->order, cpu->rank, 0);
    }
    lane = model->lanes[slot] != 0 ? model->lanes[slot] - 1 : host->lane;
    lanes[lane].rank = cpu->rank;
    iris_i_order_begin(model->order, lane, &lanes[host->lane].clock);
    return lane;
}

void iris_i_weak_flush(struct iris_weak_model *model)
{
    model->words.flushed = model->words.now;
}

/* ---- Creating and destroying ---- */

struct iris_weak_model *
iris_i_weak_model_create(struct iris_order *order,
                         struct iris_weak_chooser chooser, uint64_t age)
{
    struct iris_weak_model *model = calloc(1, sizeof *model);

    if (model != NULL) {
        model->chooser = chooser;
        model->order = model->words.order = order;
        model->words.age = age;
    }
    return model;
}

void iris_i_weak_model_destroy(struct iris_weak_model *model)
{
    struct iris_weak_words *words = &model->words;

    for (size_t i = 0; i < words->max_cells; i++) {
        forget_cell(words, &words->cells[i]);
        free(words->cells[i].writes);
        free(words->cells[i].looks);
    }
    free(words->cells);
    free(model);
}
