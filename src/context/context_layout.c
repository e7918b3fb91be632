/* SPDX-License-Identifier: MIT
 *
 * The library's own memory at the start of every heap: the device context, then
 * the device halves of groups.
 */
#include "config.h"

#include "context/context.h"

#include <iris/device/layout.h>

#include "queue/queue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAX_DELAY_US 1000000 /* below 2^32 ticks of every clock */

static size_t round_up(size_t bytes)
{
    return (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
}

static size_t context_bytes(int num_ranks)
{
    return round_up(IRIS_CONTEXT_ALL_WORDS(num_ranks) * sizeof(int64_t));
}

static size_t group_bytes(int num_ranks)
{
    return round_up(iris_i_group_bytes((size_t)num_ranks));
}

IRIS_STATIC_ASSERT(IRIS_RANKS_MAX <= IRIS_CONTEXT_READABLE &&
                       IRIS_CONTEXT_READABLE <=
                           IRIS_PLACES * 2 * IRIS_DEV_GROUP_LANES,
                   "kernels read no heap base from behind the heap");

static size_t layout_bytes(int num_ranks)
{
    return IRIS_CONTEXT_OFFSET + context_bytes(num_ranks) +
           IRIS_PLACES * group_bytes(num_ranks);
}

/* If the program sets the size of its memory, that memory begins at a multiple
 * of the largest alignment. So alignment costs the program nothing. */
struct iris_layout_sizes
iris_i_layout_sizes(const struct iris_settings *settings, int num_ranks)
{
    struct iris_layout_sizes sizes = {.heap_bytes =
                                          (size_t)settings->heap_bytes.number,
                                      .own_bytes = layout_bytes(num_ranks)};

    if (settings->heap_usable.number) {
        sizes.own_bytes =
            (sizes.own_bytes + IRIS_ALIGNMENT_MAX - 1) & -IRIS_ALIGNMENT_MAX;
        sizes.heap_bytes = round_up(sizes.heap_bytes) + sizes.own_bytes;
    }
    if (settings->trace.text[0] != '\0') { /* the program loses no memory */
        sizes.heap_bytes += IRIS_TRACE_HEAP_BYTES;
    }
    return sizes;
}

size_t iris_i_layout_least(const struct iris_settings *settings, int num_ranks)
{
    return settings->heap_usable.number ? 1 : 2 * layout_bytes(num_ranks);
}

struct iris_dev_group *iris_i_layout_group(const iris_t *iris, int place)
{
    return (void *)(iris_i_heap_base(&iris->heap.memory) + IRIS_CONTEXT_OFFSET +
                    context_bytes(iris->log.num_ranks) +
                    (size_t)place * group_bytes(iris->log.num_ranks));
}

size_t iris_i_layout_id_offset(int num_ranks)
{
    return IRIS_CONTEXT_OFFSET +
           IRIS_CONTEXT_OWN(num_ranks, IRIS_CONTEXT_OWN_ID) * sizeof(int64_t);
}

iris_status_t iris_i_layout_write_id(iris_t *iris, uint64_t *id_p)
{
    char *place = iris_i_heap_base(&iris->heap.memory);
    uint64_t id;

    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) {
        return iris_i_fail_errno(&iris->log, IRIS_ERR_SYSTEM, errno,
                                 "no random number for the heap");
    }
    *id_p = id | 1; /* differs from that of empty memory */
    return iris_i_heap_copy(&iris->heap.memory,
                            place +
                                iris_i_layout_id_offset(iris->log.num_ranks),
                            id_p, sizeof *id_p);
}

/* Reads the longest delay of this rank's operations from IRIS_DEVICE_DELAY. */
static iris_status_t read_delay(iris_t *iris, int64_t *us_p)
{
    const char *text = iris->settings->device_delay.text;
    int64_t us = 0;

    while (*text != '\0') {
        int rank, most, length = 0;

        if (sscanf(text, "%9d:%9d%n", &rank, &most, &length) != 2 || rank < 0 ||
            most < 0 || most > MAX_DELAY_US ||
            (text[length] != '\0' && text[length] != ',')) {
            return iris_i_fail(&iris->log, IRIS_ERR_CONFIG,
                               "IRIS_DEVICE_DELAY: \"%s\" does not begin with "
                               "RANK:MICROSECONDS, of at most %d microseconds",
                               text, MAX_DELAY_US);
        }
        us = rank == iris->log.rank ? most : us;
        text += length + (text[length] == ',');
    }
    *us_p = us;
    return IRIS_OK;
}

/* Leaves out the id, which is the last word: peers may be reading it. */
iris_status_t iris_i_layout_write_context(iris_t *iris)
{
    int num_ranks = iris->log.num_ranks;
    size_t bytes = iris_i_layout_id_offset(num_ranks) - IRIS_CONTEXT_OFFSET;
    int64_t delay_us = 0, *own, *words;
    iris_status_t status = read_delay(iris, &delay_us);

    if (status != IRIS_OK) {
        return status;
    }
    words = calloc(1, bytes);
    if (words == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY, "no memory");
    }
    words[IRIS_CONTEXT_RANK] = iris->log.rank;
    words[IRIS_CONTEXT_NUM_RANKS] = num_ranks;
    memcpy(&words[IRIS_CONTEXT_HEAP_BASES],
           iris_i_heap_bases(&iris->heap.memory),
           (size_t)num_ranks * sizeof(int64_t));
    own = words + IRIS_CONTEXT_WORDS(num_ranks);
    own[IRIS_CONTEXT_OWN_WATCH] = (int64_t)iris->device.watch;
    own[IRIS_CONTEXT_OWN_TIMEOUT] =
        iris->settings->device_timeout_ms.number * iris->device.clock_khz;
    own[IRIS_CONTEXT_OWN_NOTE] = IRIS_OLD_MS * iris->device.clock_khz;
    own[IRIS_CONTEXT_OWN_DELAY] = delay_us * iris->device.clock_khz / 1000;
    iris->device_context =
        (void *)(iris_i_heap_base(&iris->heap.memory) + IRIS_CONTEXT_OFFSET);
    iris->queue.context = iris->device_context;
    status = iris_i_heap_copy(&iris->heap.memory, iris->device_context, words,
                              bytes);
    free(words);
    return status;
}

iris_status_t iris_i_layout_write_tracing(iris_t *iris, const int64_t *words,
                                          struct iris_stream *stream)
{
    int64_t *place =
        iris->device_context + IRIS_CONTEXT_TRACE_ENABLED + iris->log.num_ranks;
    iris_status_t status = iris_i_stream_synchronize(&iris->queue, stream);

    if (status == IRIS_OK) {
        status = iris_i_fail_on(
            &iris->log,
            iris_i_queue_copy(stream, place, words,
                              IRIS_CONTEXT_TAIL_WORDS * sizeof *words));
    }
    return status == IRIS_OK ? iris_i_stream_synchronize(&iris->queue, stream)
                             : status;
}
