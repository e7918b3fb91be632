/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime as late as HIP's documents allow (FAKEHIP_LATE): what a
 * stream does begins and ends late, copies read or write at the last moment,
 * callbacks run in another thread, and queries may know of the end later.
 */
#include "config.h"

#include "fake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fake_stream.h"

/* A pause is at most so long. */
#define PAUSE_NS 150000

/* A number below `limit`, which the seed and the order of calls decide; 0 if
 * the runtime is not late. */
static unsigned draw(unsigned limit)
{
    static _Atomic uint64_t state;
    uint64_t seed = (uint64_t)fake_setting("FAKEHIP_LATE", 0);
    uint64_t value;

    if (seed == 0) {
        return 0;
    }
    value = (atomic_fetch_add(&state, 1) + seed * 1000003) *
            UINT64_C(0x9e3779b97f4a7c15);
    value ^= value >> 31;
    value *= UINT64_C(0xbf58476d1ce4e5b9);
    return (unsigned)((value >> 33) % limit);
}

/* Every other time. */
static void pause_a_while(void)
{
    if (draw(2) == 1) {
        nanosleep(&(struct timespec){.tv_nsec = draw(PAUSE_NS)}, NULL);
    }
}

/* ---- Copies ---- */

/* Reads at once, and writes later. */
static bool write_late(char *dst, const char *src, size_t bytes)
{
    char *read = malloc(bytes);

    if (read == NULL) {
        return false;
    }
    memcpy(read, src, bytes);
    pause_a_while();
    memcpy(dst, read, bytes);
    free(read);
    return true;
}

static void copy_word(void *dst, const void *src, size_t bytes)
{
    if (bytes == 8) {
        atomic_store((_Atomic uint64_t *)dst,
                     atomic_load((_Atomic uint64_t *)(uintptr_t)src));
    } else if (bytes == 4) {
        atomic_store((_Atomic uint32_t *)dst,
                     atomic_load((_Atomic uint32_t *)(uintptr_t)src));
    } else if (bytes == 2) {
        atomic_store((_Atomic uint16_t *)dst,
                     atomic_load((_Atomic uint16_t *)(uintptr_t)src));
    } else {
        atomic_store((_Atomic uint8_t *)dst,
                     atomic_load((_Atomic uint8_t *)(uintptr_t)src));
    }
}

/* Single words whole, as a GPU's engines do: something may wait for them. */
void fake_copy(void *dst, const void *src, size_t bytes)
{
    bool torn = bytes >= 4096 && fake_setting("FAKEHIP_TORN_COPIES", 0);
    size_t half = 0;

    pause_a_while();
    if ((bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) &&
        ((uintptr_t)dst | (uintptr_t)src) % bytes == 0) {
        copy_word(dst, src, bytes);
        return;
    }
    bytes -= torn ? 64 : 0;
    switch (draw(3)) {
    case 1:
        if (write_late(dst, src, bytes)) {
            return;
        }
        break;
    case 2: /* the end first */
        half = bytes / 2;
        memmove((char *)dst + half, (const char *)src + half, bytes - half);
        pause_a_while();
        bytes = half;
        break;
    default:
        break;
    }
    memmove(dst, src, bytes);
}

/* ---- Callbacks ---- */

struct call {
    hipStream_t stream;
    const struct fake_op *op;
};

/* One at a time, whatever the stream, as in HIP's one thread for them. */
static void *call_main(void *argument)
{
    static pthread_mutex_t one_lock = PTHREAD_MUTEX_INITIALIZER;
    const struct call *call = argument;
    const struct fake_op *op = call->op;

    pause_a_while();
    pthread_mutex_lock(&one_lock);
    fake_in_callback = true;
    op->callback(call->stream, op->error, op->argument);
    fake_in_callback = false;
    pthread_mutex_unlock(&one_lock);
    return NULL;
}

void fake_call_back(hipStream_t stream, const struct fake_op *op)
{
    struct call call = {stream, op};
    pthread_t thread;

    if (fake_setting("FAKEHIP_LATE", 0) != 0 &&
        pthread_create(&thread, NULL, call_main, &call) == 0) {
        pthread_join(thread, NULL);
        pause_a_while();
        return;
    }
    fake_in_callback = true;
    op->callback(stream, op->error, op->argument);
    fake_in_callback = false;
}

/* ---- Queries ---- */

hipError_t fake_stream_done(const struct ihipStream_t *stream, uint64_t target)
{
    bool skips = fake_quirk("query-before-callback");
    uint64_t done = stream->completed;

    for (const struct fake_op *op = stream->head;
         done < target && op != NULL && op->kind == FAKE_CALLBACK && skips;
         op = op->next) {
        done++;
    }
    return done < target || draw(3) == 1 ? hipErrorNotReady : fake_lost();
}
