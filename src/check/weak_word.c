/* SPDX-License-Identifier: MIT
 *
 * The words of the model, in a table indexed by their place, and their latest
 * writes.
 */
#include "config.h"

#include "check/internal.h"

#include <stdlib.h>
#include <string.h>

void iris_i_weak_drop(struct iris_weak_release *release)
{
    if (release != NULL && --release->users == 0) {
        free(release);
    }
}

static struct iris_weak_cell *slot_of(struct iris_weak_cell *cells, size_t max,
                                      uint64_t key)
{
    size_t i = (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (max - 1);

    while (cells[i].key != 0 && cells[i].key != key) {
        i = (i + 1) & (max - 1);
    }
    return &cells[i];
}

static bool grow(struct iris_weak_words *words)
{
    size_t max = words->max_cells == 0 ? 256 : words->max_cells * 2;
    struct iris_weak_cell *cells = calloc(max, sizeof *cells);

    if (cells == NULL) {
        words->blind = true;
        return false;
    }
    for (size_t i = 0; i < words->max_cells; i++) {
        if (words->cells[i].key != 0) {
            *slot_of(cells, max, words->cells[i].key) = words->cells[i];
        }
    }
    free(words->cells);
    words->cells = cells;
    words->max_cells = max;
    return true;
}

struct iris_weak_cell *iris_i_weak_find(const struct iris_weak_words *words,
                                        uint64_t key)
{
    struct iris_weak_cell *cell;

    if (words->max_cells == 0) {
        return NULL;
    }
    cell = slot_of(words->cells, words->max_cells, key);
    return cell->key == 0 ? NULL : cell;
}

/* The word, whose current value in memory is `content`; NULL: no memory for
 * it. */
struct iris_weak_cell *iris_i_weak_word(struct iris_weak_words *words,
                                        uint64_t key)
{
    struct iris_weak_cell *cell = iris_i_weak_find(words, key);

    if (cell == NULL) {
        if (2 * words->num_cells >= words->max_cells && !grow(words)) {
            return NULL;
        }
        cell = slot_of(words->cells, words->max_cells, key);
        cell->key = key;
        words->num_cells++;
    }
    return cell;
}

void iris_i_weak_forget(struct iris_weak_cell *cell)
{
    for (unsigned i = 0; i < cell->num_writes; i++) {
        iris_i_weak_drop(cell->writes[i].release);
    }
    cell->num_writes = cell->num_looks = 0;
}

/* The word's value at `time`. */
uint64_t iris_i_weak_value(const struct iris_weak_cell *cell, uint64_t time)
{
    uint64_t value = cell->base;

    for (unsigned i = 0; i < cell->num_writes && cell->writes[i].time <= time;
         i++) {
        value = (value & ~cell->writes[i].mask) |
                (cell->writes[i].value & cell->writes[i].mask);
    }
    return value;
}

bool iris_i_weak_is_old(const struct iris_weak_words *words, uint64_t time)
{
    return time <= words->flushed ||
           (words->age != 0 && time + words->age <= words->now);
}

/* Drops writes whose successors all lanes have seen. */
void iris_i_weak_prune(const struct iris_weak_words *words,
                       struct iris_weak_cell *cell)
{
    uint64_t covered = 0;
    unsigned kept = cell->num_writes, looks = 0;

    for (unsigned i = cell->num_writes; i-- > 0;) {
        struct iris_weak_write *write = &cell->writes[i];
        bool old = iris_i_weak_is_old(words, write->time);

        if (old && (write->mask & ~covered) == 0) {
            iris_i_weak_drop(write->release);
            continue;
        }
        covered |= old ? write->mask : 0;
        cell->writes[--kept] = *write;
    }
    cell->num_writes -= kept;
    memmove(cell->writes, cell->writes + kept,
            cell->num_writes * sizeof *cell->writes);
    for (unsigned i = 0; i < cell->num_looks; i++) {
        if (!iris_i_weak_is_old(words, cell->looks[i].time)) {
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

bool iris_i_weak_room(struct iris_weak_words *words,
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
    words->blind |= !room;
    return room;
}

void iris_i_weak_words_close(struct iris_weak_words *words)
{
    for (size_t i = 0; i < words->max_cells; i++) {
        iris_i_weak_forget(&words->cells[i]);
        free(words->cells[i].writes);
        free(words->cells[i].looks);
    }
    free(words->cells);
}
