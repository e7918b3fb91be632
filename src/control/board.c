/* SPDX-License-Identifier: MIT
 *
 * Writing and reading boards, word by word.
 */
#include "config.h"

#include "control/internal.h"

#include <string.h>

#define SET(field, value) \
    atomic_store_explicit(&(field), value, memory_order_relaxed)
#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)

static void write_words(_Atomic uint64_t *words, size_t count, const char *text)
{
    size_t left = strnlen(text, count * sizeof *words);

    for (size_t i = 0; i < count; i++) {
        uint64_t word = 0;
        size_t bytes = left < sizeof word ? left : sizeof word;

        memcpy(&word, text, bytes);
        text += bytes;
        left -= bytes;
        SET(words[i], word);
    }
}

/* `text` has one byte more than the words. */
static void read_words(const _Atomic uint64_t *words, size_t count, char *text)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t word = GET(words[i]);

        memcpy(text + i * sizeof word, &word, sizeof word);
    }
    text[count * sizeof *words] = '\0';
}

void iris_i_board_write(struct iris_board *board, unsigned parts,
                        const struct iris_shown *shown)
{
    if (parts & IRIS_SHOW_BUSY) {
        SET(board->busy, shown->busy);
    }
    if (parts & IRIS_SHOW_CALLS) {
        SET(board->calls, shown->calls);
    }
    if ((parts & ~(unsigned)(IRIS_SHOW_BUSY | IRIS_SHOW_CALLS)) == 0) {
        return; /* the usual case in a collective call */
    }
    if (parts & IRIS_SHOW_NAME) {
        write_words(board->name, IRIS_CALL_NAME_WORDS, shown->name);
    }
    if (parts & IRIS_SHOW_ID) {
        SET(board->id, shown->id);
    }
    if (parts & IRIS_SHOW_ELSEWHERE) {
        atomic_store(&board->elsewhere, shown->elsewhere);
    }
    if (parts & IRIS_SHOW_REASON) {
        write_words(board->reason, IRIS_REASON_WORDS, shown->reason);
    }
    if (parts & IRIS_SHOW_WAITS) {
        atomic_store_explicit(&board->waits, shown->waits,
                              memory_order_release);
    }
    if (parts & IRIS_SHOW_STATE) {
        SET(board->interrupted, shown->interrupted);
        SET(board->blames, shown->blames);
        atomic_store_explicit(&board->state, shown->state,
                              memory_order_release);
    }
}

void iris_i_board_read(const struct iris_board *board, unsigned parts,
                       struct iris_shown *shown_p)
{
    if (parts & IRIS_SHOW_STATE) {
        shown_p->state =
            atomic_load_explicit(&board->state, memory_order_acquire);
        shown_p->interrupted = GET(board->interrupted);
        shown_p->blames = GET(board->blames);
    }
    if (parts & IRIS_SHOW_WAITS) {
        shown_p->waits =
            atomic_load_explicit(&board->waits, memory_order_acquire);
    }
    if (parts & IRIS_SHOW_NAME) {
        read_words(board->name, IRIS_CALL_NAME_WORDS, shown_p->name);
    }
    if (parts & IRIS_SHOW_CALLS) {
        shown_p->calls = GET(board->calls);
    }
    if (parts & IRIS_SHOW_BUSY) {
        shown_p->busy = GET(board->busy);
    }
    if (parts & IRIS_SHOW_STREAMS) {
        shown_p->streams = GET(board->streams);
    }
    if (parts & IRIS_SHOW_ID) {
        shown_p->id = GET(board->id);
    }
    if (parts & IRIS_SHOW_ELSEWHERE) {
        shown_p->elsewhere = atomic_load(&board->elsewhere);
    }
    if (parts & IRIS_SHOW_REASON) {
        read_words(board->reason, IRIS_REASON_WORDS, shown_p->reason);
    }
}
