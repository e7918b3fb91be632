/* SPDX-License-Identifier: MIT
 *
 * Makes and maps the control segment.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t place_bytes(int num_ranks)
{
    return sizeof(struct iris_place) +
           2 * (size_t)num_ranks * sizeof(struct iris_post);
}

static size_t place_at(int num_ranks, int place)
{
    return iris_i_records_bytes(num_ranks) +
           (size_t)place * place_bytes(num_ranks);
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
    segment->bytes = place_at(num_ranks, IRIS_PLACES);
    segment->fd = fd;
    atomic_init(&segment->refs, 1);
    status = iris_i_shm_map(fd, segment->bytes, &segment->base);
    if (status != IRIS_OK) {
        free(segment);
        return status;
    }
    segment->records = (struct iris_records){fd, num_ranks, segment->base};
    *segment_p = segment;
    return IRIS_OK;
}

iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_segment **segment_p)
{
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(place_at(num_ranks, IRIS_PLACES), &fd);
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_shm_commit(fd, 0, iris_i_records_head_bytes(num_ranks));
    if (status == IRIS_OK) {
        status = iris_i_shm_commit(fd, place_at(num_ranks, 0),
                                   place_bytes(num_ranks));
    }
    if (status == IRIS_OK) {
        status = hold(fd, num_ranks, segment_p);
    }
    if (status != IRIS_OK) {
        close(fd);
        return status;
    }
    iris_i_records_init(&(*segment_p)->records);
    return IRIS_OK;
}

iris_status_t iris_i_segment_private(int num_ranks,
                                     struct iris_segment **segment_p)
{
    struct iris_segment *segment = calloc(1, sizeof *segment);

    if (segment == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    segment->num_ranks = num_ranks;
    segment->bytes = place_at(num_ranks, IRIS_PLACES);
    segment->fd = -1;
    atomic_init(&segment->refs, 1);
    segment->base = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (segment->base == MAP_FAILED) {
        free(segment);
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno,
                                 "no memory for %d ranks' messages", num_ranks);
    }
    segment->records = (struct iris_records){-1, num_ranks, segment->base};
    *segment_p = segment;
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
    if (segment->fd < 0) {
        munmap(segment->base, segment->bytes);
    } else {
        iris_i_shm_unmap(segment->base, segment->bytes);
        close(segment->fd);
    }
    free(segment);
}

struct iris_place *iris_i_segment_place(struct iris_segment *segment, int place)
{
    return (void *)((char *)segment->base +
                    place_at(segment->num_ranks, place));
}

iris_status_t iris_i_segment_commit_place(struct iris_segment *segment,
                                          int place)
{
    return segment->fd < 0
               ? IRIS_OK
               : iris_i_shm_commit(segment->fd,
                                   place_at(segment->num_ranks, place),
                                   place_bytes(segment->num_ranks));
}
