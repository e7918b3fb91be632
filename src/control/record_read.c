/* SPDX-License-Identifier: MIT
 *
 * Reads the entries of a flight record. The record belongs to another process,
 * so its numbers may be anything.
 */
#include "config.h"

#include "control/records.h"

#include <string.h>

static void copy_name(const struct iris_record *record, unsigned number,
                      char name[IRIS_RECORD_NAME])
{
    static const char not_kept[] = "(name not kept)";
    int is_kept = number != 0 && number <= IRIS_RECORD_KERNELS &&
                  atomic_load_explicit(&record->kernels[number - 1].known,
                                       memory_order_acquire) != 0;

    memset(name, 0, IRIS_RECORD_NAME);
    if (is_kept) {
        memcpy(name, record->kernels[number - 1].name, IRIS_RECORD_NAME - 1);
    } else if (number != 0) {
        memcpy(name, not_kept, sizeof not_kept);
    }
}

static struct iris_call_what what_of(const struct iris_call_copy *copy)
{
    struct iris_call_what what;

    memcpy(&what, &copy->words[IRIS_CALL_WHAT], sizeof what);
    return what;
}

unsigned iris_i_record_kernel_number(const struct iris_call_copy *copy)
{
    return what_of(copy).kernel;
}

int iris_i_record_call(const struct iris_record *record,
                       const struct iris_ticks_scale *scale,
                       const struct iris_call_copy *copy,
                       struct iris_record_call *call_p)
{
    uint64_t state = copy->mark % (1u << IRIS_MARK_STATUS);
    const uint64_t *words = copy->words;
    struct iris_call_what what = what_of(copy);

    if (state != IRIS_CALL_IN && state != IRIS_CALL_DONE) {
        return 0;
    }
    *call_p = (struct iris_record_call){
        .id = copy->mark >> IRIS_MARK_ID,
        .begin_ns = iris_i_ticks_ns(scale, words[IRIS_CALL_BEGIN]),
        .stream = words[IRIS_CALL_STREAM],
        .offset = words[IRIS_CALL_OFFSET],
        .bytes = words[IRIS_CALL_BYTES],
        .value = words[IRIS_CALL_VALUE],
        .op = what.op,
        .cmp = what.cmp,
        .target_rank = what.op == IRIS_HOST_LAUNCH ? -1 : (int32_t)what.number,
        .grid = what.op == IRIS_HOST_LAUNCH ? what.number : 0,
    };
    if (state == IRIS_CALL_DONE) {
        call_p->status = (int8_t)(copy->mark >> IRIS_MARK_STATUS);
        call_p->end_ns = words[IRIS_CALL_END] == 0
                             ? call_p->begin_ns
                             : iris_i_ticks_ns(scale, words[IRIS_CALL_END]);
    }
    copy_name(record, what.kernel, call_p->kernel);
    return 1;
}

void iris_i_record_stream(const struct iris_record *record,
                          const struct iris_ticks_scale *scale,
                          const struct iris_stream_now *now,
                          struct iris_record_stream *stream_p)
{
    stream_p->number = now->number;
    stream_p->begun = now->begun;
    stream_p->done = now->done;
    stream_p->begin_ns = iris_i_ticks_ns(scale, now->begin_ticks);
    stream_p->grid = now->what.number;
    copy_name(record, now->what.kernel, stream_p->kernel);
}

int iris_i_record_own_call(const struct iris_record *record, size_t i,
                           struct iris_record_call *call_p)
{
    static const struct iris_ticks_scale ticks = {.ns_per_tick = UINT64_C(1)
                                                                 << 32};
    const struct iris_call_cell *cell = &record->calls_ring[i];
    struct iris_call_copy copy;

    copy.mark = atomic_load_explicit(&cell->mark, memory_order_acquire);
    for (int w = 0; w < IRIS_CALL_WORDS; w++) {
        copy.words[w] =
            atomic_load_explicit(&cell->words[w], memory_order_relaxed);
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&cell->mark, memory_order_relaxed) ==
               copy.mark &&
           iris_i_record_call(record, &ticks, &copy, call_p);
}
