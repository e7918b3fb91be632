/* SPDX-License-Identifier: MIT
 *
 * Recording on the CPU. Operations of kernels are recorded where GPUs record
 * theirs, calls of the host in a separate array.
 */
#include "config.h"

#include "trace/internal.h"

#include <iris/device/watch/record.h>

#include "base/base.h"
#include "context/context.h"

#include <stdio.h>
#include <string.h>

/* The open operations and calls of one thread, the latest last. An ended kernel
 * leaves some behind: the oldest are dropped first. */
#define MAX_OPEN 32

/* Accesses of a lane loop that become one event: each has the address after the
 * last one's, and equals it in everything else. A loop that copies and adds has
 * three such series at once. */
#define MAX_SERIES 4
#define SERIES_BYTES ((uint64_t)1 << 30)
#define SERIES_ACCESS 16 /* most bytes of one access */
#define SERIES_LOOK 32   /* accesses between readings of the clock */
#define SERIES_PAUSE_NS 50000

struct series {
    size_t slot; /* slot of its event */
    enum iris_op op;
    int target_rank;
    size_t bytes; /* bytes of one access */
    uintptr_t next;
    uint32_t lanes;
    uint32_t looked; /* `lanes` at the last reading of the clock */
    int64_t looked_ns;
};

struct open {
    uint64_t id;     /* id of the event, the same before and after */
    uint64_t launch; /* of an operation; 0 for a call */
    unsigned workgroup;
    bool is_call;
    size_t slot;
};

static _Thread_local struct {
    unsigned generation; /* identifies the trace */
    unsigned number;     /* number of the thread, in that trace */
    unsigned num_open;
    struct open open[MAX_OPEN];
    const char *kernel; /* the last kernel's name, and its number */
    uint32_t kernel_number;
    uint64_t launch; /* the launch to which the series belong */
    unsigned workgroup;
    unsigned num_series;
    unsigned oldest; /* index of the next one to replace */
    uint64_t joined; /* id of the current access, if it joined a series */
    struct series series[MAX_SERIES];
} mine;

static void enter(struct iris_trace *trace)
{
    if (mine.generation != trace->generation) {
        mine.generation = trace->generation;
        mine.number = atomic_fetch_add(&trace->num_threads, 1);
        mine.num_open = 0;
        mine.num_series = 0;
        mine.joined = 0;
        mine.kernel = NULL;
    }
}

static void push(const struct open *open)
{
    if (mine.num_open == MAX_OPEN) {
        memmove(&mine.open[0], &mine.open[1],
                sizeof mine.open - sizeof mine.open[0]);
        mine.num_open--;
    }
    mine.open[mine.num_open++] = *open;
}

/* Whether the event began on this thread. If so, *open_p has its slot. */
static bool pop(struct open *open_p)
{
    for (unsigned i = mine.num_open; i-- > 0;) {
        const struct open *open = &mine.open[i];

        if (open->id == open_p->id && open->launch == open_p->launch &&
            open->workgroup == open_p->workgroup &&
            open->is_call == open_p->is_call) {
            open_p->slot = open->slot;
            mine.num_open = i;
            return true;
        }
    }
    return false;
}

/* ---- Operations of kernels ---- */

static int32_t *words(const struct iris_trace *trace,
                      enum iris_trace_column column)
{
    return (void *)trace->columns[column];
}

static int64_t *longs(const struct iris_trace *trace,
                      enum iris_trace_column column)
{
    return (void *)trace->columns[column];
}

/* An operation with two sides is recorded once: with the side that may be far,
 * or for a workgroup's collective with its result. Fences and barriers of
 * workgroups have no context on a GPU, so they are never recorded. */
static bool is_recorded(const struct iris_cpu_event *event)
{
    switch (event->op) {
    case IRIS_OP_FENCE:
        return false;
    case IRIS_OP_BARRIER:
        return event->scope == IRIS_SCOPE_SYSTEM;
    case IRIS_OP_GET:
        return !event->write;
    case IRIS_OP_PUT:
    case IRIS_OP_COPY:
    case IRIS_OP_COLLECTIVE:
        return event->write != 0;
    default:
        return true;
    }
}

static uint64_t packed(const struct iris_cpu_event *event)
{
    return (uint64_t)event->op | (event->write ? IRIS_D_WRITE : 0) |
           (event->held ? IRIS_D_HELD : 0) | (uint64_t)(event->sem & 15) << 16 |
           (uint64_t)(event->scope & 15) << 20 |
           (uint64_t)(event->cmp & 15) << 24 |
           (uint64_t)event->bytes << IRIS_D_BYTES_SHIFT;
}

static void fill(struct iris_trace *trace, size_t slot,
                 const struct iris_cpu_event *event)
{
    words(trace, IRIS_TRACE_EVENT_ID)[slot] = (int32_t)event->op;
    words(trace, IRIS_TRACE_PID)[slot] = (int32_t)event->workgroup;
    words(trace, IRIS_TRACE_PID_M)[slot] = (int32_t)event->workgroup;
    words(trace, IRIS_TRACE_PID_N)[slot] = 0;
    words(trace, IRIS_TRACE_CUR_RANK)[slot] = event->rank;
    words(trace, IRIS_TRACE_TARGET_RANK)[slot] = event->target_rank;
    words(trace, IRIS_TRACE_XCC_ID)[slot] = 0;
    words(trace, IRIS_TRACE_CU_ID)[slot] = (int32_t)mine.number;
    longs(trace, IRIS_TRACE_ADDRESS)[slot] = (int64_t)(uintptr_t)event->address;
    longs(trace, IRIS_TRACE_END)[slot] = 0;
    words(trace, IRIS_TRACE_PAYLOAD)[slot] =
        iris_d_record_payload(event->bytes);
    longs(trace, IRIS_TRACE_VALUE)[slot] = (int64_t)event->value;
    longs(trace, IRIS_TRACE_WHAT)[slot] = (int64_t)packed(event);
    if (mine.kernel != event->kernel) {
        mine.kernel = event->kernel;
        mine.kernel_number = iris_i_trace_kernel(trace, event->kernel);
    }
    trace->notes[slot].launch = event->launch;
    trace->notes[slot].kernel = mine.kernel_number;
    trace->notes[slot].lanes = 1;
    longs(trace, IRIS_TRACE_TIMESTAMP)[slot] = iris_i_now_ns();
}

/* The clock may return the same value twice, and an end of 0 means that there
 * is no end. */
static int64_t end_of(int64_t begun)
{
    int64_t now = iris_i_now_ns();

    return now > begun ? now : begun + 1;
}

static void begin(struct iris_trace *trace, const struct iris_cpu_event *event,
                  struct open *open)
{
    _Atomic uint32_t *counters = (void *)trace->memory;
    uint32_t op_index;

    if (iris_d_record_full(
            atomic_load_explicit(counters, memory_order_relaxed))) {
        return;
    }
    open->slot = atomic_fetch_add(counters, 1);
    op_index = atomic_fetch_add(&counters[IRIS_TRACE_OP_INDEX_WORD], 1);
    if (open->slot >= trace->max_events) {
        return;
    }
    words(trace, IRIS_TRACE_OP_INDEX)[open->slot] = (int32_t)op_index;
    push(open);
    fill(trace, open->slot, event);
}

static void end(struct iris_trace *trace, const struct iris_cpu_event *event,
                size_t slot)
{
    int64_t *ends = longs(trace, IRIS_TRACE_END);

    ends[slot] = end_of(longs(trace, IRIS_TRACE_TIMESTAMP)[slot]);
    longs(trace, IRIS_TRACE_WHAT)[slot] = (int64_t)packed(event);
    longs(trace, IRIS_TRACE_VALUE)[slot] = (int64_t)iris_d_record_value(
        event->op, event->value, event->seen, event->expected);
    if (event->op == IRIS_OP_WAIT && event->held) {
        longs(trace, IRIS_TRACE_ADDRESS)[slot] =
            (int64_t)(uintptr_t)event->address;
    }
}

/* ---- Series of accesses ---- */

/* Plain accesses of lanes, which a GPU's compiler may also join. Bulk copies
 * are larger. */
static bool may_join(const struct iris_cpu_event *event)
{
    return event->op <= IRIS_OP_COPY && event->bytes <= SERIES_ACCESS &&
           event->sem == IRIS_RELAXED;
}

/* Ends the event at its estimated end: that of the last access for which the
 * clock was read, plus the same time for each later access. */
static void end_series(struct iris_trace *trace, struct series *series)
{
    int64_t begun = longs(trace, IRIS_TRACE_TIMESTAMP)[series->slot];
    int64_t since = series->lanes - series->looked, now = iris_i_now_ns();
    int64_t ns = series->looked_ns +
                 (series->looked_ns - begun) * since / series->looked;

    if (since > 0) {
        longs(trace, IRIS_TRACE_END)[series->slot] = ns < now ? ns : now;
    }
}

/* Called before an event that is not part of a series. */
static void end_all_series(struct iris_trace *trace)
{
    for (unsigned i = 0; i < mine.num_series; i++) {
        end_series(trace, &mine.series[i]);
    }
    mine.num_series = 0;
    mine.joined = 0;
}

static struct series *series_of(const struct iris_cpu_event *event)
{
    for (unsigned i = 0; i < mine.num_series; i++) {
        struct series *series = &mine.series[i];

        if (series->next == (uintptr_t)event->address &&
            series->op == event->op &&
            series->target_rank == event->target_rank &&
            series->bytes == event->bytes &&
            series->lanes * series->bytes < SERIES_BYTES) {
            return series;
        }
    }
    return NULL;
}

/* After an access that joined: reads the clock now and then. */
static void look(struct iris_trace *trace, struct series *series)
{
    uint32_t lanes = series->lanes;
    int64_t last = series->looked_ns;

    if (lanes % SERIES_LOOK != 0 && (lanes & (lanes - 1)) != 0) {
        return;
    }
    series->looked = lanes;
    series->looked_ns = iris_i_now_ns();
    longs(trace, IRIS_TRACE_END)[series->slot] = series->looked_ns;
    if (series->looked_ns - last > SERIES_PAUSE_NS) {
        /* Other work took time: the next access begins a new series. */
        series->next = 0;
    }
}

/* Whether the access continues a series. */
static bool join(struct iris_trace *trace, const struct iris_cpu_event *event)
{
    struct series *series;

    if (mine.launch != event->launch || mine.workgroup != event->workgroup ||
        !may_join(event)) {
        end_all_series(trace);
        return false;
    }
    series = series_of(event);
    if (series == NULL) {
        return false;
    }
    series->lanes++;
    series->next += event->bytes;
    trace->notes[series->slot].lanes = series->lanes;
    words(trace, IRIS_TRACE_PAYLOAD)[series->slot] =
        iris_d_record_payload(series->lanes * event->bytes);
    mine.joined = event->id;
    look(trace, series);
    return true;
}

/* A plain access with its own event may be the first of a series. */
static void begin_series(struct iris_trace *trace, size_t slot,
                         const struct iris_cpu_event *event)
{
    struct series *series;

    mine.launch = event->launch;
    mine.workgroup = event->workgroup;
    if (mine.num_series < MAX_SERIES) {
        series = &mine.series[mine.num_series++];
    } else {
        series = &mine.series[mine.oldest++ % MAX_SERIES];
        end_series(trace, series);
    }
    *series = (struct series){.slot = slot,
                              .op = event->op,
                              .target_rank = event->target_rank,
                              .bytes = event->bytes,
                              .next = (uintptr_t)event->address + event->bytes,
                              .lanes = 1,
                              .looked = 1};
    series->looked_ns = longs(trace, IRIS_TRACE_END)[slot];
}

iris_status_t iris_i_trace_device(void *self,
                                  const struct iris_cpu_event *event)
{
    struct iris_trace *trace = self;
    struct open open = {.id = event->id,
                        .launch = event->launch,
                        .workgroup = event->workgroup};

    enter(trace);
    if (!is_recorded(event)) {
        if (event->op == IRIS_OP_FENCE || event->op == IRIS_OP_BARRIER) {
            end_all_series(trace);
        }
        return IRIS_OK;
    }
    if (!event->after) {
        if (!join(trace, event)) {
            begin(trace, event, &open);
        }
    } else if (mine.joined == event->id && mine.joined != 0) {
        mine.joined = 0;
    } else if (pop(&open)) {
        end(trace, event, open.slot);
        if (may_join(event)) {
            begin_series(trace, open.slot, event);
        }
    }
    return IRIS_OK;
}

/* ---- Calls of the host ---- */

/* A slot for a call; NULL: there is no more space. */
static struct iris_trace_call *take(struct iris_trace *trace, struct open *open)
{
    struct iris_trace_call *call;

    enter(trace);
    open->slot = atomic_fetch_add(&trace->num_calls, 1);
    if (open->slot >= trace->max_calls) {
        return NULL;
    }
    push(open);
    call = &trace->calls[open->slot];
    *call = (struct iris_trace_call){.thread = mine.number};
    return call;
}

void iris_i_trace_host(void *self, const struct iris_host_event *event)
{
    struct iris_trace *trace = self;
    struct open open = {.id = event->id, .is_call = true};
    struct iris_trace_call *call;

    if (event->op >= IRIS_HOST_RUN_COPY) { /* no call */
        return;
    }
    if (!event->after) {
        call = take(trace, &open);
        if (call != NULL) {
            call->event = *event;
            call->kernel = iris_i_trace_kernel(trace, event->kernel);
            iris_i_trace_collective(trace, call);
            call->begin_ns = iris_i_now_ns();
        }
        return;
    }
    enter(trace);
    if (pop(&open)) {
        call = &trace->calls[open.slot];
        call->event.status = event->status;
        call->event.address = event->address;
        call->event.group = event->group;
        call->end_ns = end_of(call->begin_ns);
    }
}

uint64_t iris_trace_begin(iris_t *iris, int event)
{
    struct iris_trace *trace =
        iris_i_enter(iris, "iris_trace_begin") == IRIS_OK
            ? (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE)
            : NULL;
    struct open open = {.is_call = true};
    struct iris_trace_call *call;

    if (trace == NULL) {
        return 0;
    }
    call = take(trace, &open);
    if (call == NULL) {
        return 0;
    }
    mine.num_open--; /* the program has the slot */
    call->event.rank = iris_i_rank(iris);
    call->event.target_rank = -1;
    call->user = event;
    call->begin_ns = iris_i_now_ns();
    return open.slot + 1;
}

void iris_trace_end(iris_t *iris, uint64_t span)
{
    struct iris_trace *trace =
        span != 0 && iris_i_enter(iris, "iris_trace_end") == IRIS_OK
            ? (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE)
            : NULL;

    if (trace != NULL && span <= trace->max_calls) {
        struct iris_trace_call *call = &trace->calls[span - 1];

        call->end_ns = end_of(call->begin_ns);
    }
}
