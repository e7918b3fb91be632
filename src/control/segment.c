/* SPDX-License-Identifier: MIT
 *
 * The control segment's making, mapping and layout:
 * the header, boards, places and records, each on pages of its own.
 */
#include "config.h"

#include "control/segment.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)

static size_t boards_bytes(int num_ranks)
{
    size_t bytes = (size_t)num_ranks * sizeof(struct iris_board);

    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t place_bytes(int num_ranks)
{
    return sizeof(struct iris_place) +
           2 * (size_t)num_ranks * sizeof(struct iris_post);
}

static size_t record_bytes(void)
{
    return (sizeof(struct iris_record) + PAGE - 1) / PAGE * PAGE;
}

_Static_assert(sizeof(struct iris_segment_header) <= PAGE, "one page");

size_t iris_i_segment_board_at(int rank)
{
    return PAGE + (size_t)rank * sizeof(struct iris_board);
}

static size_t place_at(int num_ranks, int place)
{
    return PAGE + boards_bytes(num_ranks) +
           (size_t)place * place_bytes(num_ranks);
}

size_t iris_i_segment_record_at(int num_ranks, int rank)
{
    return place_at(num_ranks, IRIS_PLACES) + (size_t)rank * record_bytes();
}

size_t iris_i_segment_bytes(int num_ranks)
{
    return iris_i_segment_record_at(num_ranks, num_ranks);
}

static iris_status_t hold(int fd, int num_ranks,
                          struct iris_segment **segment_p)
{
    struct iris_segment *segment = calloc(1, sizeof *segment);
    iris_status_t status;

    if (segment == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    segment->num_ranks = num_ranks;
    segment->bytes = iris_i_segment_bytes(num_ranks);
    segment->fd = fd;
    atomic_init(&segment->refs, 1);
    status = iris_i_shm_map(fd, segment->bytes, &segment->base);
    if (status != IRIS_OK) {
        free(segment);
        return status;
    }
    *segment_p = segment;
    return IRIS_OK;
}

iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_segment **segment_p)
{
    size_t first = place_at(num_ranks, 1);
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(iris_i_segment_bytes(num_ranks), &fd);
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_shm_commit(fd, 0, first);
    if (status == IRIS_OK) {
        status = hold(fd, num_ranks, segment_p);
    }
    if (status != IRIS_OK) {
        close(fd);
        return status;
    }
    *iris_i_segment_header(*segment_p) = (struct iris_segment_header){
        .magic = IRIS_SEGMENT_MAGIC,
        .version = IRIS_SEGMENT_VERSION,
        .num_ranks = (uint32_t)num_ranks,
        .bytes = iris_i_segment_bytes(num_ranks),
        .record_bytes = sizeof(struct iris_record),
        .start_ns = iris_i_now_ns(),
    };
    return IRIS_OK;
}

iris_status_t iris_i_segment_attach(int fd, int num_ranks,
                                    struct iris_segment **segment_p)
{
    return hold(fd, num_ranks, segment_p);
}

void iris_i_segment_retain(struct iris_segment *segment, int refs)
{
    atomic_fetch_add_explicit(&segment->refs, refs, memory_order_relaxed);
}

void iris_i_segment_release(struct iris_segment *segment)
{
    if (segment == NULL || atomic_fetch_sub_explicit(
                               &segment->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    iris_i_shm_unmap(segment->base, segment->bytes);
    close(segment->fd);
    free(segment);
}

struct iris_segment_header *iris_i_segment_header(struct iris_segment *segment)
{
    return segment->base;
}

struct iris_board *iris_i_segment_board(struct iris_segment *segment, int rank)
{
    return (void *)((char *)segment->base + iris_i_segment_board_at(rank));
}

struct iris_place *iris_i_segment_place(struct iris_segment *segment, int place)
{
    return (void *)((char *)segment->base +
                    place_at(segment->num_ranks, place));
}

iris_status_t iris_i_segment_commit_place(struct iris_segment *segment,
                                          int place)
{
    return iris_i_shm_commit(segment->fd, place_at(segment->num_ranks, place),
                             place_bytes(segment->num_ranks));
}

struct iris_record *iris_i_segment_open_record(struct iris_segment *segment,
                                               int rank)
{
    size_t at = iris_i_segment_record_at(segment->num_ranks, rank);

    return iris_i_shm_commit(segment->fd, at, record_bytes()) == IRIS_OK
               ? (void *)((char *)segment->base + at)
               : NULL;
}
