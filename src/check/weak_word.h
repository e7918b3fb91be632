/* SPDX-License-Identifier: MIT
 *
 * Words of 8 bytes with their latest writes.
 */
#ifndef IRIS_SRC_CHECK_WEAK_WORD_H
#define IRIS_SRC_CHECK_WEAK_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/types.h>

#define IRIS_WEAK_WORD_BYTES 8
#define IRIS_WEAK_LANES 64

/* How far each lane was. */
struct iris_weak_clock {
    uint32_t of[IRIS_WEAK_LANES];
};

/* What one lane released at one scope. */
struct iris_weak_edge {
    int rank;
    unsigned workgroup;
    unsigned lane;
    iris_scope_t scope;
    struct iris_weak_clock clock;
};

/* What a write releases: its own lane's edges, and those of the writes that a
 * chain of updates goes on from. */
struct iris_weak_release {
    unsigned users;
    unsigned count;
    struct iris_weak_edge edges[];
};

struct iris_weak_write {
    uint64_t time;
    uint64_t value;
    uint64_t mask; /* its bytes of the word, as bits */
    uint32_t clock;
    uint8_t lane;
    bool atomic;
    iris_scope_t scope;
    int rank;
    unsigned workgroup;
    struct iris_weak_release *release; /* NULL: nothing */
};

/* A lane has seen the word as it was then. */
struct iris_weak_look {
    uint64_t time;
    uint64_t mask;
    uint32_t clock;
    uint8_t lane;
};

struct iris_weak_cell {
    uint64_t key;  /* 0: free */
    uint64_t base; /* below all writes */
    struct iris_weak_write *writes;
    struct iris_weak_look *looks;
    unsigned num_writes, max_writes;
    unsigned num_looks, max_looks;
};

struct iris_weak_words {
    struct iris_weak_cell *cells;
    size_t num_cells, max_cells;
    uint64_t now;     /* counts accesses */
    uint64_t age;     /* a write is old after so many; 0: never */
    uint64_t flushed; /* what was written until then is old */
    bool blind;       /* there was no memory */
};

void iris_i_weak_words_close(struct iris_weak_words *words);

/* The word with that key, which is not 0; NULL: it is not known, or there is no
 * memory for it. */
struct iris_weak_cell *iris_i_weak_find(const struct iris_weak_words *words,
                                        uint64_t key);
struct iris_weak_cell *iris_i_weak_word(struct iris_weak_words *words,
                                        uint64_t key);

/* What the word was at `time`. */
uint64_t iris_i_weak_value(const struct iris_weak_cell *cell, uint64_t time);

/* Everybody sees what was written then. */
bool iris_i_weak_is_old(const struct iris_weak_words *words, uint64_t time);

/* Drops writes that everybody has seen the successors of. */
void iris_i_weak_prune(const struct iris_weak_words *words,
                       struct iris_weak_cell *cell);

/* Drops all of them. */
void iris_i_weak_forget(struct iris_weak_cell *cell);

/* Makes room for one more write and look; false: no memory. */
bool iris_i_weak_room(struct iris_weak_words *words,
                      struct iris_weak_cell *cell);

/* One user less; NULL is fine. */
void iris_i_weak_drop(struct iris_weak_release *release);

#endif /* IRIS_SRC_CHECK_WEAK_WORD_H */
