/* SPDX-License-Identifier: MIT
 *
 * The life of a context's trace: off, on, off.
 *
 * All ranks enable it together, since its records are on the heap. Enabling
 * writes the trace words into the device context, adds the observer, and
 * measures the ranks' clocks; enabling again ends the earlier trace first.
 * Times of the device are converted to this host's clock, and these to rank
 * 0's, each with its error.
 */
#include "config.h"

#include "trace/internal.h"

#include <iris/device/layout.h>

#include "trace/kernels.h"
#include "base/base.h"
#include "context/context.h"
#include "heap/heap.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------------
 * One clock for a trace: converts the device's ticks to this host's time, and
 * this host's time to rank 0's, each with its error.
 */

/* Number of readings of the device's clock; the fastest one counts. */
#define DEVICE_READINGS 16
#define RANK_ROUNDS 8

static const struct iris_call_type clock_call = {.name = "iris_trace_enable"};

/* ---- The device's ---- */

/* The clock was read between two times of the host's clock. */
struct pair {
    int64_t ticks;
    int64_t before_ns;
    int64_t after_ns;
};

static iris_status_t read_once(struct iris_trace *trace, struct pair *pair_p)
{
    iris_t *iris = trace->iris;
    struct iris_stream *stream = iris_i_default_stream(iris);
    int64_t *place = (void *)(trace->memory + IRIS_TRACE_CLOCK_OFFSET);
    const struct iris_trace_clock_args args = {place};
    const struct iris_launch launch = {.kernel = iris_i_trace_clock_kernel(),
                                       .grid = 1,
                                       .block = 1,
                                       .args = &args,
                                       .own = true};
    iris_status_t status;

    pair_p->before_ns = iris_i_now_ns();
    status = iris_i_queue_launch(stream, &launch); /* not seen by observers */
    if (status == IRIS_OK) {
        status = iris_i_queue_synchronize(stream);
    }
    pair_p->after_ns = iris_i_now_ns();
    return status == IRIS_OK
               ? iris_i_heap_copy(&iris_i_heap(iris)->memory, &pair_p->ticks,
                                  place, sizeof *place)
               : status;
}

static iris_status_t read_clock(struct iris_trace *trace, struct pair *best_p)
{
    struct pair pair;

    best_p->before_ns = best_p->after_ns = 0;
    for (int i = 0; i < DEVICE_READINGS; i++) {
        iris_status_t status = read_once(trace, &pair);

        if (status != IRIS_OK) {
            return status;
        }
        if (i == 0 || pair.after_ns - pair.before_ns <
                          best_p->after_ns - best_p->before_ns) {
            *best_p = pair;
        }
    }
    return IRIS_OK;
}

iris_status_t iris_i_trace_measure_device(struct iris_trace *trace, int first)
{
    struct iris_trace_clock *clock = &trace->clock;
    int64_t khz = iris_i_device(trace->iris)->clock_khz, ns, error;
    struct pair pair = {0};
    iris_status_t status;

    if (khz == 0) { /* the CPU: kernels use the host's clock */
        clock->ns_per_tick = 1;
        return IRIS_OK;
    }
    status = read_clock(trace, &pair);
    if (status != IRIS_OK) {
        return status;
    }
    ns = pair.before_ns + (pair.after_ns - pair.before_ns) / 2;
    error = (pair.after_ns - pair.before_ns + 1) / 2;
    if (first) {
        clock->ticks = pair.ticks;
        clock->ns = ns;
        clock->device_error_ns = error;
        clock->ns_per_tick = 1e6 / (double)khz;
        return IRIS_OK;
    }
    /* A rate from two pairs is more exact than the nominal rate only if they
     * are far apart. */
    if (ns - clock->ns > 10000 * (error + clock->device_error_ns) &&
        pair.ticks > clock->ticks) {
        clock->ns_per_tick =
            (double)(ns - clock->ns) / (double)(pair.ticks - clock->ticks);
    }
    clock->device_error_ns =
        error > clock->device_error_ns ? error : clock->device_error_ns;
    return IRIS_OK;
}

/* ---- The ranks' ---- */

/* A rank's post: its time before this round, and after the last one. */
struct times {
    int64_t before_ns;
    int64_t after_last_ns;
};

/* One round. Every rank's `before` is earlier than every rank's time after the
 * round. That bounds the difference of the clocks from both sides. The next
 * round brings rank 0's time after this one. */
static iris_status_t exchange_clocks(struct iris_trace *trace,
                                     iris_status_t prepared, struct times *own,
                                     struct times *root_p)
{
    struct iris_members *world = &iris_i_world(trace->iris)->members;
    struct iris_call call = {.type = &clock_call, .status = prepared};
    iris_status_t status;

    own->before_ns = iris_i_now_ns();
    call.payload = own;
    call.payload_bytes = sizeof *own;
    status = iris_i_agree(world, &call);
    own->after_last_ns = iris_i_now_ns();
    if (status == IRIS_OK) {
        (void)iris_i_agree_payload(world, 0, root_p, sizeof *root_p);
    }
    return status;
}

/* Chooses 0 if the bounds allow it: ranks of one machine have one clock, and
 * then no effect comes before its cause. */
static void choose_offset(struct iris_trace_clock *clock)
{
    int64_t low = clock->least_ns, high = clock->most_ns;
    int64_t offset = low <= 0 && high >= 0 ? 0 : low + (high - low) / 2;

    clock->offset_ns = offset;
    clock->rank_error_ns =
        high - offset > offset - low ? high - offset : offset - low;
}

iris_status_t iris_i_trace_measure_ranks(struct iris_trace *trace, int first,
                                         iris_status_t status)
{
    struct iris_trace_clock *clock = &trace->clock;
    struct times own = {0}, root = {0};
    int64_t last_before = 0;

    if (first) {
        clock->least_ns = INT64_MIN / 2;
        clock->most_ns = INT64_MAX / 2;
    }
    for (int round = 0; round < RANK_ROUNDS; round++) {
        status = exchange_clocks(trace, status, &own, &root);
        if (status != IRIS_OK) {
            return status;
        }
        if (root.before_ns - own.after_last_ns > clock->least_ns) {
            clock->least_ns = root.before_ns - own.after_last_ns;
        }
        if (round > 0 && root.after_last_ns - last_before < clock->most_ns) {
            clock->most_ns = root.after_last_ns - last_before;
        }
        last_before = own.before_ns;
    }
    if (iris_i_rank(trace->iris) == 0) {
        clock->least_ns = clock->most_ns = 0;
    }
    choose_offset(clock);
    if (first) {
        clock->start_ns = root.before_ns;
    }
    return IRIS_OK;
}

/* ---- Conversion ---- */

int64_t iris_i_trace_host_ns(const struct iris_trace_clock *clock, int64_t ns)
{
    return ns + clock->offset_ns - clock->start_ns;
}

int64_t iris_i_trace_device_ns(const struct iris_trace_clock *clock,
                               int64_t ticks)
{
    int64_t since = ticks - clock->ticks;
    int64_t ns = clock->ns_per_tick == 1
                     ? since
                     : (int64_t)((double)since * clock->ns_per_tick);

    return iris_i_trace_host_ns(clock, clock->ns + ns);
}

/* ---------------------------------------------------------------------------
 * The life of a context's trace: enabling, the trace words in the device
 * context, resetting, counting.
 */

#define OP_INDEX_OFFSET (IRIS_TRACE_OP_INDEX_WORD * sizeof(int32_t))
#define MAX_EVENTS ((size_t)1 << 30)
#define MIN_CALLS 4096

static const struct iris_call_type enable_call = {
    .name = "iris_trace_enable",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};

/* ---- Counters and words ---- */

static iris_status_t zero_counters(struct iris_trace *trace)
{
    static const char zeros[IRIS_TRACE_HEADER_BYTES];

    return iris_i_heap_copy(&iris_i_heap(trace->iris)->memory, trace->memory,
                            zeros, sizeof zeros);
}

/* Writes upstream's words, and the addresses of our own columns. */
static iris_status_t write_words(struct iris_trace *trace)
{
    int64_t words[IRIS_CONTEXT_TAIL_WORDS];
    int64_t own = (int64_t)(uintptr_t)(trace->memory +
                                       iris_i_trace_offset(trace->max_events,
                                                           IRIS_TRACE_VALUE));
    int64_t *word =
        trace->iris->device_context +
        IRIS_CONTEXT_OWN(iris_i_num_ranks(trace->iris), IRIS_CONTEXT_OWN_TRACE);
    int64_t *buffers =
        words + IRIS_CONTEXT_TRACE_BUFFERS - IRIS_CONTEXT_TRACE_ENABLED;
    int64_t base = (int64_t)(uintptr_t)trace->memory;
    iris_status_t status;

    words[0] = 1;
    words[1] = (int64_t)trace->max_events;
    words[2] = base;
    words[3] = base + (int64_t)OP_INDEX_OFFSET;
    for (int i = 0; i < IRIS_CONTEXT_TRACE_NUM_BUFFERS; i++) {
        buffers[i] = base + (int64_t)iris_i_trace_offset(trace->max_events, i);
    }
    status = iris_i_heap_copy(&iris_i_heap(trace->iris)->memory, word, &own,
                              sizeof own);
    return status == IRIS_OK
               ? iris_i_layout_write_tracing(trace->iris, words,
                                             iris_i_default_stream(trace->iris))
               : status;
}

/* ---- Making and ending ---- */

static void free_trace(struct iris_trace *trace) IRIS_UNCHECKED
{
    for (unsigned i = 0; i < trace->num_kernels; i++) {
        free(trace->kernels[i]);
    }
    pthread_mutex_destroy(&trace->lock);
    free(trace->notes);
    free(trace->calls);
    free(trace);
}

/* The heap with the columns is freed soon, too. */
static void close_trace(struct iris_extension *extension)
{
    struct iris_trace *trace = (struct iris_trace *)extension;

    iris_i_hooks_remove(iris_i_hooks(trace->iris), &trace->observer);
    free_trace(trace);
}

static unsigned next_generation(void)
{
    static atomic_uint generations;

    return atomic_fetch_add(&generations, 1) + 1;
}

static iris_status_t make_trace(iris_t *iris, size_t max_events,
                                struct iris_trace **trace_p)
{
    struct iris_trace *trace;

    if (max_events == 0 || max_events > MAX_EVENTS) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "iris_trace_enable: max_events is %zu; pass 1 to %zu", max_events,
            MAX_EVENTS);
    }
    trace = calloc(1, sizeof *trace);
    if (trace != NULL) {
        trace->extension.close = close_trace;
        trace->iris = iris;
        trace->observer.device = iris_i_trace_device;
        trace->observer.host = iris_i_trace_host;
        trace->observer.self = trace;
        trace->generation = next_generation();
        trace->max_events = max_events;
        trace->max_calls =
            max_events / 2 > MIN_CALLS ? max_events / 2 : MIN_CALLS;
        trace->notes = calloc(max_events, sizeof *trace->notes);
        trace->calls = calloc(trace->max_calls, sizeof *trace->calls);
        pthread_mutex_init(&trace->lock, NULL);
    }
    if (trace == NULL || trace->notes == NULL || trace->calls == NULL) {
        if (trace != NULL) {
            free_trace(trace);
        }
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_NO_MEMORY,
                           "iris_trace_enable: no memory for %zu events; pass "
                           "a smaller max_events",
                           max_events);
    }
    *trace_p = trace;
    return IRIS_OK;
}

/* Ends a trace of an earlier iris_trace_enable(), on every rank. Kernels see
 * the change of the words before the memory is freed. */
static iris_status_t end_earlier(iris_t *iris)
{
    struct iris_trace *trace =
        (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE);
    const int64_t none[IRIS_CONTEXT_TAIL_WORDS] = {0};
    iris_status_t status;

    if (trace == NULL) {
        return IRIS_OK;
    }
    status =
        iris_i_layout_write_tracing(iris, none, iris_i_default_stream(iris));
    iris_i_hooks_remove(iris_i_hooks(iris), &trace->observer);
    status = iris_i_heap_release(iris_i_heap(iris), trace->memory, status);
    iris_i_extend(iris, IRIS_EXTENSION_TRACE, NULL);
    free_trace(trace);
    return status;
}

static iris_status_t start_trace(struct iris_trace *trace)
{
    iris_status_t status = zero_counters(trace);

    if (status == IRIS_OK) {
        status = write_words(trace);
    }
    if (status == IRIS_OK) {
        status = iris_i_trace_measure_device(trace, 1);
    }
    return status;
}

static void place_columns(struct iris_trace *trace, char *memory)
{
    trace->memory = memory;
    for (int i = 0; i < IRIS_TRACE_COLUMNS; i++) {
        trace->columns[i] = memory + iris_i_trace_offset(trace->max_events, i);
    }
}

/* Reports the memory that is needed, if this rank's heap has too little. */
static iris_status_t fail_full(iris_t *iris, size_t max_events,
                               iris_status_t status)
{
    size_t bytes = iris_i_trace_bytes(max_events);
    struct iris_heap_stats stats;

    iris_i_heap_stats(iris_i_heap(iris), &stats);
    return status != IRIS_ERR_NO_MEMORY || stats.largest_free_bytes >= bytes
               ? status
               : iris_i_fail(iris_i_log(iris), status,
                             "iris_trace_enable: %zu events take %zu bytes of "
                             "the symmetric heap, where %zu of %zu bytes are "
                             "free, %zu in one piece; pass a smaller "
                             "max_events, or raise IRIS_HEAP_SIZE or "
                             "IRIS_HEAP_RESERVE",
                             max_events, bytes, stats.free_bytes,
                             stats.heap_bytes, stats.largest_free_bytes);
}

static iris_status_t enable_trace(iris_t *iris, size_t max_events)
{
    struct iris_trace *trace = NULL;
    struct iris_heap_request request = {.type = &enable_call,
                                        .alignment = IRIS_ALIGNMENT};
    void *memory;
    iris_status_t status;

    request.checked = make_trace(iris, max_events, &trace);
    request.bytes = trace != NULL ? iris_i_trace_bytes(max_events) : max_events;
    status = iris_i_heap_allocate(iris_i_heap(iris), &request, &memory);
    if (status != IRIS_OK) {
        if (trace == NULL) {
            return status;
        }
        free_trace(trace);
        return fail_full(iris, max_events, status);
    }
    place_columns(trace, memory);
    iris_i_extend(iris, IRIS_EXTENSION_TRACE, &trace->extension);
    status = start_trace(trace);
    if (status == IRIS_OK) {
        status = iris_i_hooks_add(iris_i_hooks(iris), &trace->observer);
    }
    return iris_i_trace_measure_ranks(trace, 1, status);
}

iris_status_t iris_trace_enable(iris_t *iris, size_t max_events)
{
    iris_status_t status = iris_i_enter(iris, "iris_trace_enable");

    if (status == IRIS_OK) {
        status = end_earlier(iris);
    }
    return status == IRIS_OK ? enable_trace(iris, max_events) : status;
}

/* ---- Queries and reset ---- */

iris_status_t iris_trace_reset(iris_t *iris)
{
    struct iris_trace *trace = iris_i_trace_of(iris, "iris_trace_reset");

    if (trace == NULL) {
        return IRIS_ERR_STATE;
    }
    trace->generation = next_generation(); /* threads drop their open events */
    atomic_store(&trace->num_threads, 0);
    atomic_store(&trace->num_calls, 0);
    return zero_counters(trace);
}

static uint64_t get_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

iris_status_t iris_trace_counts(iris_t *iris,
                                struct iris_trace_counts *counts_p)
{
    struct iris_trace *trace = iris_i_trace_of(iris, "iris_trace_counts");
    uint64_t device, host;
    iris_status_t status;

    if (trace == NULL) {
        return IRIS_ERR_STATE;
    }
    status = iris_i_heap_synchronize(&iris_i_heap(iris)->memory);
    if (status == IRIS_OK) {
        status = iris_i_trace_count(trace, &device);
    }
    if (status == IRIS_OK && counts_p != NULL) {
        host = atomic_load(&trace->num_calls);
        counts_p->device_events = get_least(device, trace->max_events);
        counts_p->host_events = get_least(host, trace->max_calls);
        counts_p->dropped =
            device + host - counts_p->device_events - counts_p->host_events;
    }
    return status;
}
