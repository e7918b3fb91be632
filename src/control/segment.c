/* SPDX-License-Identifier: MIT
 *
 * The control segment's making, mapping and layout:
 * ranks, then group slots, each on pages of its own.
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

static size_t ranks_bytes(int num_ranks)
{
    size_t bytes = (size_t)num_ranks * sizeof(struct iris_control_rank);

    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static size_t group_bytes(int num_ranks)
{
    return sizeof(struct iris_control_group) +
           2 * (size_t)num_ranks * sizeof(struct iris_control_slot);
}

static size_t segment_bytes(int num_ranks)
{
    return ranks_bytes(num_ranks) + IRIS_GROUP_SLOTS * group_bytes(num_ranks);
}

static iris_status_t hold(int fd, int num_ranks,
                          struct iris_control **control_p)
{
    struct iris_control *control = calloc(1, sizeof *control);
    iris_status_t status;

    if (control == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    control->num_ranks = num_ranks;
    control->bytes = segment_bytes(num_ranks);
    control->fd = fd;
    atomic_init(&control->refs, 1);
    status = iris_i_shm_map(fd, control->bytes, &control->base);
    if (status != IRIS_OK) {
        free(control);
        return status;
    }
    *control_p = control;
    return IRIS_OK;
}

iris_status_t iris_i_control_create(int num_ranks,
                                    struct iris_control **control_p)
{
    size_t first = ranks_bytes(num_ranks) + group_bytes(num_ranks);
    iris_status_t status;
    int fd;

    status = iris_i_shm_create(segment_bytes(num_ranks), &fd);
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_shm_commit(fd, 0, first);
    if (status == IRIS_OK) {
        status = hold(fd, num_ranks, control_p);
    }
    if (status != IRIS_OK) {
        close(fd);
    }
    return status;
}

iris_status_t iris_i_control_attach(int fd, int num_ranks,
                                    struct iris_control **control_p)
{
    return hold(fd, num_ranks, control_p);
}

void iris_i_control_retain(struct iris_control *control, int refs)
{
    atomic_fetch_add_explicit(&control->refs, refs, memory_order_relaxed);
}

void iris_i_control_release(struct iris_control *control)
{
    if (control == NULL || atomic_fetch_sub_explicit(
                               &control->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    munmap(control->base, control->bytes);
    close(control->fd);
    free(control);
}

struct iris_control_rank *iris_i_control_rank(struct iris_control *control,
                                              int rank)
{
    return (struct iris_control_rank *)control->base + rank;
}

struct iris_control_group *iris_i_control_group(struct iris_control *control,
                                                int slot)
{
    return (void *)((char *)control->base + ranks_bytes(control->num_ranks) +
                    (size_t)slot * group_bytes(control->num_ranks));
}

iris_status_t iris_i_control_back_group(struct iris_control *control, int slot)
{
    size_t bytes = group_bytes(control->num_ranks);

    return iris_i_shm_commit(
        control->fd, ranks_bytes(control->num_ranks) + (size_t)slot * bytes,
        bytes);
}
