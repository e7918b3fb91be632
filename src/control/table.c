/* SPDX-License-Identifier: MIT
 *
 * The table of a node: boards, flight records and posts in one piece of shared
 * memory, with a row for each rank of the job.
 *
 *   header   one page: the layout, and the choice of the rank that reports
 *   boards   one for each rank: its state (struct iris_shown)
 *   records  one for each rank: its flight record, committed when it opens
 *   places   one for each group: two posts of each rank, committed with the
 *            group
 *
 * When the job shrinks, its ranks move to a new table behind the old one in the
 * same file. The first header of the file tells readers the offset of the newest
 * table, and the memory of the older ones is given back.
 *
 * - Only the rank itself writes its board, its record and its posts.
 * - Nobody takes a lock. The state of a board is stored last, as a release; so
 *   is the number of a post. A post is valid until its rank posts the agreement
 *   after the next one there.
 * - The segment is unnamed. It goes with the last process that maps it.
 */
#include "config.h"

#include "control/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

/* Flag in the word that names the reporting rank: the report is not
 * finished. */
#define WRITING ((uint64_t)1 << 32)

_Static_assert(sizeof(struct iris_records_header) <= PAGE, "one page");

/* ---- Layout ---- */

static size_t round_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

size_t iris_i_board_at(int rank)
{
    return PAGE + (size_t)rank * sizeof(struct iris_board);
}

static size_t count_head_bytes(int num_ranks)
{
    return round_pages(iris_i_board_at(num_ranks));
}

size_t iris_i_records_at(int num_ranks, int rank)
{
    return count_head_bytes(num_ranks) +
           (size_t)rank * round_pages(sizeof(struct iris_record));
}

size_t iris_i_records_bytes(int num_ranks)
{
    return iris_i_records_at(num_ranks, num_ranks);
}

static void init_records(const struct iris_table *records)
{
    struct iris_records_header *header = records->header;

    /* The rest is zero, or in use: the other ranks may be in the table. */
    header->magic = IRIS_RECORDS_MAGIC;
    header->version = IRIS_RECORDS_VERSION;
    header->num_ranks = (uint32_t)records->num_ranks;
    header->bytes = iris_i_records_bytes(records->num_ranks);
    header->record_bytes = sizeof(struct iris_record);
    header->start_ns = iris_i_now_ns();
}

struct iris_board *iris_i_records_board(const struct iris_table *records,
                                        int rank)
{
    return (void *)((char *)records->header + iris_i_board_at(rank));
}

struct iris_record *iris_i_records_open(const struct iris_table *records,
                                        int rank)
{
    size_t at = iris_i_records_at(records->num_ranks, rank);

    return iris_i_shm_commit(records->fd, records->at + at,
                             round_pages(sizeof(struct iris_record))) == IRIS_OK
               ? (void *)((char *)records->header + at)
               : NULL;
}

/* ---- The reporting rank ---- */

int iris_i_records_claim(const struct iris_table *records, int rank)
{
    uint64_t nobody = 0;

    return atomic_compare_exchange_strong(&records->header->reported, &nobody,
                                          ((uint64_t)rank + 1) | WRITING);
}

void iris_i_records_reported(const struct iris_table *records, int rank)
{
    atomic_store(&records->header->reported, (uint64_t)rank + 1);
}

int iris_i_records_is_reporting(const struct iris_table *records)
{
    return (atomic_load(&records->header->reported) & WRITING) != 0;
}

void iris_i_records_forget(const struct iris_table *records, int rank)
{
    uint64_t ours = (uint64_t)rank + 1;

    if (records != NULL) {
        atomic_compare_exchange_strong(&records->header->reported, &ours, 0);
    }
}

int iris_i_records_take_turn(const struct iris_table *records, int64_t ns)
{
    struct iris_records_header *header = records->header;
    int64_t now = iris_i_now_ns(), last = atomic_load(&header->last_ns);

    return (last == 0 || now - last > ns) &&
           atomic_compare_exchange_strong(&header->last_ns, &last, now);
}

unsigned long long iris_i_records_number(const struct iris_table *records)
{
    return atomic_fetch_add(&records->header->num_reports, 1);
}

/* ---- Ranks of other hosts ---- */

void iris_i_records_mark_elsewhere(const struct iris_table *records, int rank)
{
    atomic_fetch_or(&records->header->elsewhere[rank / 64],
                    (uint64_t)1 << rank % 64);
}

int iris_i_records_has_far(const struct iris_table *records)
{
    for (size_t i = 0; i < (IRIS_RANKS_MAX + 63) / 64; i++) {
        if (atomic_load(&records->header->elsewhere[i]) != 0) {
            return 1;
        }
    }
    return 0;
}

/* Sequentially consistent with the hub's announcement that it sleeps, so that
 * at least one of the two sees the other's store. */
void iris_i_records_tell_hub(const struct iris_table *records, int is_urgent)
{
    struct iris_records_header *header = records->header;

    if (is_urgent) {
        atomic_fetch_add(&header->hub_wakes, 1);
        if (atomic_load(&header->hub_sleeps)) {
            iris_i_futex_wake(&header->hub_wakes);
        }
    }
}

void iris_i_records_mark(const struct iris_table *records, int rank,
                         unsigned parts, uint64_t places)
{
    struct iris_board *board = iris_i_records_board(records, rank);

    if (parts != 0) {
        atomic_fetch_or(&board->new_parts, parts);
    }
    if (places != 0) {
        atomic_fetch_or(&board->new_posts, places);
    }
    atomic_fetch_or(&records->header->new_ranks[rank / 64],
                    (uint64_t)1 << rank % 64);
    iris_i_records_tell_hub(records,
                            places != 0 || (parts & IRIS_SHOW_URGENT) != 0);
}

/* ---- Boards ---- */

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
    if (parts & IRIS_SHOW_HOLDS) {
        atomic_store_explicit(&board->holds, shown->holds,
                              memory_order_release);
    }
    if (parts & IRIS_SHOW_STATE) {
        SET(board->interrupted, shown->interrupted);
        SET(board->blames, shown->blames);
        atomic_store_explicit(&board->state, shown->state,
                              memory_order_release);
    }
    if (parts & IRIS_SHOW_ENDED) {
        SET(board->cut_by, shown->cut_by);
        atomic_store_explicit(&board->ended, shown->ended,
                              memory_order_release);
    }
}

void iris_i_board_read(const struct iris_board *board, unsigned parts,
                       struct iris_shown *shown_p)
{
    if (parts & IRIS_SHOW_ENDED) {
        shown_p->ended =
            atomic_load_explicit(&board->ended, memory_order_acquire);
        shown_p->cut_by = GET(board->cut_by);
    }
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
    if (parts & IRIS_SHOW_HOLDS) {
        shown_p->holds =
            atomic_load_explicit(&board->holds, memory_order_acquire);
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

/* ---- Places ---- */

struct iris_post *iris_i_place_slot(struct iris_place *place, int rank,
                                    uint64_t seq)
{
    return &place->posts[2 * rank + (int)(seq % 2)];
}

static const struct iris_post *find_post(const struct iris_place *place,
                                         const struct iris_post_id *id)
{
    return &place->posts[2 * id->rank + (int)(id->seq % 2)];
}

/* Sequentially consistent with the sleeper's announcement, so that at least one
 * of the two sees the other's store. */
void iris_i_place_wake(struct iris_place *place)
{
    atomic_fetch_add(&place->wakes, 1);
    if (atomic_load(&place->sleepers) != 0) {
        iris_i_futex_wake(&place->wakes);
    }
}

/* Skips unchanged words from two agreements ago: peers still have those lines
 * cached. */
static void put_part(unsigned char *to, const struct iris_part *part)
{
    if (part->bytes != 0 && memcmp(to, part->data, part->bytes) != 0) {
        memcpy(to, part->data, part->bytes);
    }
}

int iris_i_place_post(struct iris_place *place, const struct iris_post_id *id,
                      const struct iris_part parts[2], int expected)
{
    struct iris_post *post = iris_i_place_slot(place, id->rank, id->seq);
    uint32_t bytes = (uint32_t)(parts[0].bytes + parts[1].bytes);

    post->expected = (uint32_t)expected;
    put_part(post->data, &parts[0]);
    put_part(post->data + parts[0].bytes, &parts[1]);
    if (post->bytes != bytes) {
        post->bytes = bytes;
    }
    atomic_store_explicit(&post->seq, id->seq, memory_order_release);
    /* Only the last rank to post wakes the others, each once. */
    if ((atomic_fetch_add(&place->num_posts, 1) + 1) % (unsigned)expected !=
        0) {
        return 0;
    }
    iris_i_place_wake(place);
    return 1;
}

int iris_i_place_posted(const struct iris_place *place,
                        const struct iris_post_id *id)
{
    return atomic_load_explicit(&find_post(place, id)->seq,
                                memory_order_acquire) >= id->seq;
}

size_t iris_i_place_collect(const struct iris_place *place,
                            const struct iris_post_id *id, size_t at, void *to,
                            size_t bytes)
{
    const struct iris_post *post = find_post(place, id);
    size_t all;

    if (!iris_i_place_posted(place, id)) {
        return 0;
    }
    all = post->bytes < sizeof post->data ? post->bytes : sizeof post->data;
    if (at < all) {
        memcpy(to, post->data + at, bytes < all - at ? bytes : all - at);
    }
    return all;
}

void iris_i_place_wait(struct iris_place *place, int64_t ns,
                       int (*done)(void *arg), void *arg)
{
    unsigned seen;

    atomic_fetch_add(&place->sleepers, 1);
    seen = atomic_load(&place->wakes);
    if (!done(arg)) {
        iris_i_futex_wait(&place->wakes, seen, ns);
    }
    atomic_fetch_sub(&place->sleepers, 1);
}

unsigned iris_i_place_fail(struct iris_place *place, unsigned mark)
{
    unsigned none = 0;

    if (mark != 0) {
        atomic_compare_exchange_strong(&place->failed, &none, mark);
        iris_i_place_wake(place);
    }
    return atomic_load_explicit(&place->failed, memory_order_acquire);
}

void iris_i_place_reset(struct iris_place *place)
{
    atomic_store(&place->failed, 0);
    atomic_store(&place->num_posts, 0);
    atomic_fetch_add(&place->generation, 1);
}

void iris_i_place_clear(struct iris_place *place, int rank)
{
    for (uint64_t parity = 0; parity < 2; parity++) {
        atomic_store_explicit(&iris_i_place_slot(place, rank, parity)->seq, 0,
                              memory_order_relaxed);
    }
}

/* ---- Memory ---- */

static size_t count_place_bytes(int num_ranks)
{
    return sizeof(struct iris_place) +
           2 * (size_t)num_ranks * sizeof(struct iris_post);
}

static size_t locate_place(int num_ranks, int place)
{
    return iris_i_records_bytes(num_ranks) +
           (size_t)place * count_place_bytes(num_ranks);
}

static iris_status_t hold_table(int fd, size_t at, int num_ranks,
                                struct iris_table **segment_p)
{
    struct iris_table *segment = calloc(1, sizeof *segment);
    iris_status_t status;
    void *base;

    if (segment == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    segment->num_ranks = num_ranks;
    segment->bytes = locate_place(num_ranks, IRIS_PLACES);
    segment->fd = fd;
    segment->at = at;
    atomic_init(&segment->refs, 1);
    status = iris_i_shm_map(fd, at + segment->bytes, &base);
    if (status != IRIS_OK) {
        free(segment);
        return status;
    }
    segment->header = (void *)((char *)base + at);
    *segment_p = segment;
    return IRIS_OK;
}

static iris_status_t commit_table(int fd, size_t at, int num_ranks)
{
    iris_status_t status =
        iris_i_shm_commit(fd, at, count_head_bytes(num_ranks));

    return status == IRIS_OK
               ? iris_i_shm_commit(fd, at + locate_place(num_ranks, 0),
                                   count_place_bytes(num_ranks))
               : status;
}

iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_table **segment_p)
{
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(locate_place(num_ranks, IRIS_PLACES), &fd);
    if (status != IRIS_OK) {
        return status;
    }
    status = commit_table(fd, 0, num_ranks);
    if (status == IRIS_OK) {
        status = hold_table(fd, 0, num_ranks, segment_p);
    }
    if (status != IRIS_OK) {
        close(fd);
        return status;
    }
    init_records(*segment_p);
    return IRIS_OK;
}

/* Each rank commits the same memory, so the order does not matter. */
iris_status_t iris_i_segment_follow(const struct iris_table *old, int num_ranks,
                                    struct iris_table **segment_p)
{
    size_t at = old->at + old->bytes;
    int fd = iris_i_fd_above_stdio(fcntl(old->fd, F_DUPFD_CLOEXEC, 0));
    iris_status_t status;

    if (fd < 0) {
        return iris_i_fail_fd(errno, "cannot keep the control segment");
    }
    status = commit_table(fd, at, num_ranks);
    if (status == IRIS_OK) {
        status = hold_table(fd, at, num_ranks, segment_p);
    }
    if (status != IRIS_OK) {
        close(fd);
    }
    return status;
}

void iris_i_segment_show(const struct iris_table *segment)
{
    struct iris_records_header *first =
        (void *)((char *)segment->header - segment->at);

    init_records(segment);
    atomic_store(&first->newest, segment->at);
}

void iris_i_segment_drop_old(const struct iris_table *segment)
{
    if (segment->at > PAGE) {
        iris_i_shm_decommit(segment->fd, PAGE, segment->at - PAGE);
    }
}

iris_status_t iris_i_segment_attach(int fd, int num_ranks,
                                    struct iris_table **segment_p)
{
    return hold_table(fd, 0, num_ranks, segment_p);
}

void iris_i_segment_retain(struct iris_table *segment, int refs)
{
    atomic_fetch_add_explicit(&segment->refs, refs, memory_order_relaxed);
}

void iris_i_segment_release(struct iris_table *segment)
{
    if (segment == NULL || atomic_fetch_sub_explicit(
                               &segment->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    iris_i_shm_unmap((char *)segment->header - segment->at,
                     segment->at + segment->bytes);
    close(segment->fd);
    free(segment);
}

struct iris_place *iris_i_segment_place(struct iris_table *segment, int place)
{
    return (void *)((char *)segment->header +
                    locate_place(segment->num_ranks, place));
}

iris_status_t iris_i_segment_commit_place(struct iris_table *segment, int place)
{
    return iris_i_shm_commit(
        segment->fd, segment->at + locate_place(segment->num_ranks, place),
        count_place_bytes(segment->num_ranks));
}
