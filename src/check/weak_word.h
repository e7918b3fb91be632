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

/* The time of each lane that is known. */
struct iris_weak_clock {
    uint32_t of[IRIS_WEAK_LANES];
};

/* The time up to which one lane released at one scope. */
struct iris_weak_edge {
    int rank;
    unsigned workgroup;
    unsigned lane;
    iris_scope_t scope;
    struct iris_weak_clock clock;
};

/* The release of a write: the edges of its own lane, and those of the writes
 * before it in a chain of updates. */
struct iris_weak_release {
    unsigned users;
    unsigned count;
    struct iris_weak_edge edges[];
};

struct iris_weak_write {
    uint64_t time;
    uint64_t value;
    uint64_t mask; /* bit mask of the bytes that it writes */
    uint32_t clock;
    uint8_t lane;
    bool atomic;
    iris_scope_t scope;
    int rank;
    unsigned workgroup;
    struct iris_weak_release *release; /* NULL: it does not release */
};

/* A lane has seen the word's state at that time. */
struct iris_weak_look {
    uint64_t time;
    uint64_t mask;
    uint32_t clock;
    uint8_t lane;
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
    bool blind;       /* memory ran out */
};

void iris_i_weak_words_close(struct iris_weak_words *words);

/* The word with that key, which is not 0; NULL: unknown, or there is no memory
 * for it. */
struct iris_weak_cell *iris_i_weak_find(const struct iris_weak_words *words,
                                        uint64_t key);
struct iris_weak_cell *iris_i_weak_word(struct iris_weak_words *words,
                                        uint64_t key);

/* The word's value at `time`. */
uint64_t iris_i_weak_value(const struct iris_weak_cell *cell, uint64_t time);

/* Whether all lanes see a write of that time. */
bool iris_i_weak_is_old(const struct iris_weak_words *words, uint64_t time);

/* Drops writes whose successors all lanes have seen. */
void iris_i_weak_prune(const struct iris_weak_words *words,
                       struct iris_weak_cell *cell);

/* Drops all of them. */
void iris_i_weak_forget(struct iris_weak_cell *cell);

/* Makes room for one more write and look; false: no memory. */
bool iris_i_weak_room(struct iris_weak_words *words,
                      struct iris_weak_cell *cell);

/* Drops one reference; `release` may be NULL. */
void iris_i_weak_drop(struct iris_weak_release *release);

#endif /* IRIS_SRC_CHECK_WEAK_WORD_H */
