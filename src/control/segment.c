/* SPDX-License-Identifier: MIT
 *
 * The control segment's making, mapping and layout:
 * boards, then places, each on pages of its own.
 */
#include "config.h"

#include "control/segment.h"

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

static size_t segment_bytes(int num_ranks)
{
    return boards_bytes(num_ranks) + IRIS_PLACES * place_bytes(num_ranks);
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
    segment->bytes = segment_bytes(num_ranks);
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
    size_t first = boards_bytes(num_ranks) + place_bytes(num_ranks);
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(segment_bytes(num_ranks), &fd);
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_shm_commit(fd, 0, first);
    if (status == IRIS_OK) {
        status = hold(fd, num_ranks, segment_p);
    }
    if (status != IRIS_OK) {
        close(fd);
    }
    return status;
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

struct iris_board *iris_i_segment_board(struct iris_segment *segment, int rank)
{
    return (struct iris_board *)segment->base + rank;
}

struct iris_place *iris_i_segment_place(struct iris_segment *segment, int place)
{
    return (void *)((char *)segment->base + boards_bytes(segment->num_ranks) +
                    (size_t)place * place_bytes(segment->num_ranks));
}

iris_status_t iris_i_segment_commit_place(struct iris_segment *segment,
                                          int place)
{
    size_t bytes = place_bytes(segment->num_ranks);

    return iris_i_shm_commit(
        segment->fd, boards_bytes(segment->num_ranks) + (size_t)place * bytes,
        bytes);
}
