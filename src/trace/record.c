/* SPDX-License-Identifier: MIT
 *
 * Recording: the columns of a context's records, the names of events, and their
 * contents.
 *
 * Kernels on GPUs write into the columns by themselves. On CPUs an observer of
 * the hooks writes the same columns; calls of the host go to a separate array.
 * A record gets its place by one atomic addition and is not moved. Records that
 * do not fit are dropped and counted. Names are copied at their first use, under
 * a lock, and stay until the trace ends.
 */
#include "config.h"

#include "trace/internal.h"

#include <iris/device/watch/op.h>
#include <iris/device/watch/record.h>

#include "base/base.h"
#include "context/context.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * The records of one context: lookup, the layout of its columns, and reading
 * them from the device.
 */

struct iris_trace *iris_i_trace_of(const iris_t *iris, const char *call)
{
    if (iris_i_enter(iris, call) != IRIS_OK) {
        return NULL;
    }
    if (iris_i_extension(iris, IRIS_EXTENSION_TRACE) == NULL) {
        (void)iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                          "%s: tracing is not enabled; call iris_trace_enable "
                          "first",
                          call);
    }
    return (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE);
}

/* ---- Layout ---- */

static size_t find_width(enum iris_trace_column column)
{
    switch (column) {
    case IRIS_TRACE_TIMESTAMP:
    case IRIS_TRACE_ADDRESS:
    case IRIS_TRACE_END:
    case IRIS_TRACE_VALUE:
    case IRIS_TRACE_WHAT:
        return sizeof(int64_t);
    default:
        return sizeof(int32_t);
    }
}

size_t iris_i_trace_offset(size_t max_events, enum iris_trace_column column)
{
    size_t offset = IRIS_TRACE_HEADER_BYTES;

    for (int i = 0; i < (int)column; i++) {
        size_t bytes = max_events * find_width(i);

        offset +=
            (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
    }
    return offset;
}

size_t iris_i_trace_bytes(size_t max_events)
{
    return iris_i_trace_offset(max_events, IRIS_TRACE_COLUMNS);
}

/* ---- Reading ---- */

/* Copies from the columns to host memory. On the CPU, this works even if the
 * backend has a fault. */
static iris_status_t read_records(const struct iris_trace *trace, void *to,
                                  const void *from, size_t bytes)
{
    if (iris_i_is_gpu(trace->iris)) {
        return iris_i_heap_copy(&iris_i_heap(trace->iris)->memory, to, from,
                                bytes);
    }
    memcpy(to, from, bytes);
    return IRIS_OK;
}

iris_status_t iris_i_trace_count(struct iris_trace *trace, uint64_t *count_p)
{
    uint32_t count;
    iris_status_t status =
        read_records(trace, &count, trace->memory, sizeof count);

    if (status == IRIS_OK) {
        *count_p = count;
    }
    return status;
}

iris_status_t iris_i_trace_chunk_open(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk)
{
    memset(chunk, 0, sizeof *chunk);
    chunk->memory = malloc(iris_i_trace_bytes(IRIS_TRACE_CHUNK));
    if (chunk->memory == NULL) {
        return iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_NO_MEMORY,
                           "no memory to write the trace");
    }
    for (int i = 0; i < IRIS_TRACE_COLUMNS; i++) {
        chunk->columns[i] =
            chunk->memory + iris_i_trace_offset(IRIS_TRACE_CHUNK, i);
    }
    return IRIS_OK;
}

iris_status_t iris_i_trace_chunk_read(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk,
                                      size_t first, size_t count)
{
    count = count < IRIS_TRACE_CHUNK ? count : IRIS_TRACE_CHUNK;
    for (int i = 0; i < IRIS_TRACE_COLUMNS; i++) {
        size_t width = find_width(i);
        const char *from = trace->memory +
                           iris_i_trace_offset(trace->max_events, i) +
                           first * width;
        iris_status_t status =
            read_records(trace, chunk->columns[i], from, count * width);

        if (status != IRIS_OK) {
            return status;
        }
    }
    return IRIS_OK;
}

void iris_i_trace_row(const struct iris_trace_chunk *chunk, size_t i,
                      int64_t row[IRIS_TRACE_COLUMNS])
{
    i %= IRIS_TRACE_CHUNK;
    for (int k = 0; k < IRIS_TRACE_COLUMNS; k++) {
        row[k] = find_width(k) == sizeof(int64_t)
                     ? ((const int64_t *)(const void *)chunk->columns[k])[i]
                     : ((const int32_t *)(const void *)chunk->columns[k])[i];
    }
}

/* ---------------------------------------------------------------------------
 * Names of kernels, copied at their first use, and of the library's and the
 * program's events.
 */

/* The number of a kernel's name, which is copied; 0: no name. */
static uint32_t name_kernel(struct iris_trace *trace, const char *name,
                            unsigned most)
{
    unsigned i = 0;

    if (name == NULL) {
        return 0;
    }
    pthread_mutex_lock(&trace->lock);
    while (i < trace->num_kernels && strcmp(trace->kernels[i], name) != 0) {
        i++;
    }
    if (i == trace->num_kernels && i < most) {
        trace->kernels[i] = strdup(name);
        trace->num_kernels += trace->kernels[i] != NULL;
    }
    i = i < trace->num_kernels ? i + 1 : 0;
    pthread_mutex_unlock(&trace->lock);
    return i;
}

/* ---- Events ---- */

static const struct {
    int event;
    const char *name;
} own_names[] = {
    {IRIS_OP_LOAD, "load"},
    {IRIS_OP_STORE, "store"},
    {IRIS_OP_GET, "get"},
    {IRIS_OP_PUT, "put"},
    {IRIS_OP_COPY, "copy"},
    {IRIS_OP_ATOMIC_ADD, "atomic_add"},
    {IRIS_OP_ATOMIC_SUB, "atomic_sub"},
    {IRIS_OP_ATOMIC_CAS, "atomic_cas"},
    {IRIS_OP_ATOMIC_XCHG, "atomic_xchg"},
    {IRIS_OP_ATOMIC_XOR, "atomic_xor"},
    {IRIS_OP_ATOMIC_AND, "atomic_and"},
    {IRIS_OP_ATOMIC_OR, "atomic_or"},
    {IRIS_OP_ATOMIC_MIN, "atomic_min"},
    {IRIS_OP_ATOMIC_MAX, "atomic_max"},
    {IRIS_TRACE_FETCH, "fetch"},
    {IRIS_TRACE_COMPUTE, "compute"},
    {IRIS_TRACE_REDUCE, "reduce"},
    {IRIS_TRACE_WAIT, "wait"},
    {IRIS_TRACE_BARRIER, "barrier"},
    {IRIS_OP_COLLECTIVE, "workgroup collective"},
};

/* The program's own name of the event, or NULL. */
static char *own_name(struct iris_trace *trace, int event)
    IRIS_REQUIRES(trace->lock)
{
    for (unsigned i = 0; i < trace->num_names; i++) {
        if (trace->names[i].event == event) {
            return trace->names[i].name;
        }
    }
    return NULL;
}

const char *iris_i_trace_event_name(struct iris_trace *trace, int event,
                                    char text[IRIS_TRACE_NAME_BYTES])
{
    const char *own;

    pthread_mutex_lock(&trace->lock);
    own = own_name(trace, event);
    snprintf(text, IRIS_TRACE_NAME_BYTES, "%s", own != NULL ? own : "");
    pthread_mutex_unlock(&trace->lock);
    if (own != NULL) {
        return text;
    }
    for (size_t i = 0; i < sizeof own_names / sizeof own_names[0]; i++) {
        if (own_names[i].event == event) {
            return own_names[i].name;
        }
    }
    snprintf(text, IRIS_TRACE_NAME_BYTES, "unknown_%d", event);
    return text;
}

/* The peer whose heap contains the address, as mapped on this rank; -1:
 * none. */
static int peer_at(const struct iris_heap *heap, const void *address)
{
    size_t offset;
    int rank = iris_i_heap_owner(&heap->memory, address, &offset);

    return rank == heap->log->rank ? -1 : rank;
}

int iris_i_trace_target(const iris_t *iris, const struct iris_host_event *event)
{
    const struct iris_heap *heap = iris_i_heap(iris);
    int rank = event->target_rank;

    if (rank >= 0 ||
        (event->op != IRIS_HOST_COPY && event->op != IRIS_HOST_SET)) {
        return rank;
    }
    rank = peer_at(heap, event->address);
    return rank >= 0 || event->op == IRIS_HOST_SET
               ? rank
               : peer_at(heap, event->source);
}

static const char *copy_name(const iris_t *iris,
                             const struct iris_host_event *event)
{
    int target = iris_i_trace_target(iris, event);

    if (target < 0 || target == iris_i_rank(iris)) {
        return "host copy";
    }
    return peer_at(iris_i_heap(iris), event->address) >= 0 ? "put on stream"
                                                           : "get on stream";
}

static const char *plain_name(const iris_t *iris,
                              const struct iris_host_event *event)
{
    switch (event->op) {
    case IRIS_HOST_COPY:
        return copy_name(iris, event);
    case IRIS_HOST_SET:
        return "host set";
    case IRIS_HOST_SIGNAL:
        return "signal on stream";
    case IRIS_HOST_WAIT:
        return "wait on stream";
    case IRIS_HOST_BARRIER:
        return event->stream != NULL ? "device barrier" : "host barrier";
    case IRIS_HOST_BROADCAST:
        return "host broadcast";
    default:
        return iris_i_host_op_name((int)event->op);
    }
}

/* Names chosen by a program may have any length. */
void iris_i_trace_call_name(const iris_t *iris,
                            const struct iris_host_event *event,
                            const char *kernel,
                            char text[IRIS_TRACE_CALL_BYTES])
{
    switch (event->op) {
    case IRIS_HOST_KERNEL:
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%.100s", kernel);
        break;
    case IRIS_HOST_LAUNCH:
        snprintf(text, IRIS_TRACE_CALL_BYTES, "launch %.100s", kernel);
        break;
    case IRIS_HOST_FUSED:
        kernel += strncmp(kernel, "iris_", 5) == 0 ? 5 : 0;
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%.60s", kernel);
        break;
    case IRIS_HOST_COLLECTIVE:
        kernel += strncmp(kernel, "iris_", 5) == 0 ? 5 : 0;
        kernel += strncmp(kernel, "ccl_", 4) == 0 ? 4 : 0;
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%.60s %zu %.20s", kernel,
                 event->count, event->type);
        break;
    default:
        snprintf(text, IRIS_TRACE_CALL_BYTES, "%s", plain_name(iris, event));
    }
}

static iris_status_t set_name(struct iris_trace *trace, int event,
                              const char *name)
{
    char *own;

    pthread_mutex_lock(&trace->lock);
    own = own_name(trace, event);
    if (own == NULL && trace->num_names < IRIS_TRACE_NAMES) {
        trace->names[trace->num_names].event = event;
        own = trace->names[trace->num_names++].name;
    }
    if (own != NULL) {
        snprintf(own, IRIS_TRACE_NAME_BYTES, "%s", name);
    }
    pthread_mutex_unlock(&trace->lock);
    return own != NULL ? IRIS_OK
                       : iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_LIMIT,
                                     "iris_trace_name: %d events have names "
                                     "already; give several events one id",
                                     IRIS_TRACE_NAMES);
}

iris_status_t iris_trace_name(iris_t *iris, int event, const char *name)
{
    struct iris_trace *trace = iris_i_trace_of(iris, "iris_trace_name");

    if (trace == NULL) {
        return IRIS_ERR_STATE;
    }
    if (event < IRIS_TRACE_EVENT_MIN || event > IRIS_TRACE_EVENT_MAX) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "iris_trace_name: event %d is not for programs; pass %d to %d",
            event, IRIS_TRACE_EVENT_MIN, IRIS_TRACE_EVENT_MAX);
    }
    if (name == NULL || strlen(name) >= IRIS_TRACE_NAME_BYTES) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "iris_trace_name: name is %s; pass at most %d "
                           "characters",
                           name == NULL ? "NULL" : "too long",
                           IRIS_TRACE_NAME_BYTES - 1);
    }
    return set_name(trace, event, name);
}

/* ---------------------------------------------------------------------------
 * Collectives in a trace: members and messages, kept as text, because a group
 * may be destroyed before the trace is written.
 */

/* The ranks of a group as text, such as "0-3,6". Empty if the text is too
 * long. */
static void print_members(const struct iris_group *group, char *text,
                          size_t bytes)
{
    int count = group->members.count;
    size_t length = 0;

    for (int i = 0; i < count && length < bytes; i++) {
        int first = i;

        while (i + 1 < count && group->ranks[i + 1] == group->ranks[i] + 1) {
            i++;
        }
        length += (size_t)snprintf(
            text + length, bytes - length, i == first ? "%s%d" : "%s%d-%d",
            first == 0 ? "" : ",", group->ranks[first], group->ranks[i]);
    }
    if (length >= bytes) {
        text[0] = '\0';
    }
}

/* The bytes that the call sends to each other member, or receives from it, such
 * as "1:4096,3:512". Empty if the text is too long. */
static void print_messages(const struct iris_host_event *event, int from,
                           char *text, size_t bytes)
{
    const struct iris_group *group = event->group;
    size_t length = 0;

    text[0] = '\0';
    for (int i = 0; i < group->members.count && length < bytes; i++) {
        uint64_t moved = event->bytes_with(event->call, i, from);

        if (moved != 0 && group->ranks[i] != event->rank) {
            length +=
                (size_t)snprintf(text + length, bytes - length, "%s%d:%llu",
                                 length == 0 ? "" : ",", group->ranks[i],
                                 (unsigned long long)moved);
        }
    }
    if (length >= bytes) {
        text[0] = '\0';
    }
}

/* Leaves half of the slots for texts to the names of kernels. */
static uint32_t keep_messages(struct iris_trace *trace,
                              const struct iris_host_event *event, int from)
{
    char text[IRIS_EVENT_MEMBERS];

    print_messages(event, from, text, sizeof text);
    return text[0] == '\0' ? 0
                           : name_kernel(trace, text, IRIS_TRACE_KERNELS / 2);
}

/* Records the members of a call that begins and, for a call of messages, the
 * bytes for and from each. */
static void describe_collective(struct iris_trace *trace,
                                struct iris_trace_call *call)
{
    const struct iris_group *group = call->event.group;
    const char *name = call->event.kernel;
    char text[IRIS_EVENT_MEMBERS];

    if ((call->event.op != IRIS_HOST_COLLECTIVE &&
         call->event.op != IRIS_HOST_BARRIER) ||
        group == NULL) {
        return;
    }
    print_members(group, text, sizeof text);
    call->members = name_kernel(trace, text, IRIS_TRACE_KERNELS);
    if (call->event.op == IRIS_HOST_BARRIER) {
        return;
    }
    if (strcmp(name, "iris_ccl_broadcast") == 0 ||
        strcmp(name, "iris_reduce") == 0) {
        call->event.target_rank = group->ranks[call->event.value];
    }
    if (call->event.bytes_with != NULL) {
        call->sends = keep_messages(trace, &call->event, 0);
        call->receives = keep_messages(trace, &call->event, 1);
    }
}

/* ---------------------------------------------------------------------------
 * Recording on the CPU. Operations of kernels are recorded where GPUs record
 * theirs, calls of the host in a separate array.
 */

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

static void enter_thread(struct iris_trace *trace)
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

static void push_open(const struct open *open)
{
    if (mine.num_open == MAX_OPEN) {
        memmove(&mine.open[0], &mine.open[1],
                sizeof mine.open - sizeof mine.open[0]);
        mine.num_open--;
    }
    mine.open[mine.num_open++] = *open;
}

/* Whether the event began on this thread. If so, *open_p has its slot. */
static bool pop_open(struct open *open_p)
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

static int32_t *get_words(const struct iris_trace *trace,
                          enum iris_trace_column column)
{
    return (void *)trace->columns[column];
}

static int64_t *get_longs(const struct iris_trace *trace,
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

static uint64_t pack_event(const struct iris_cpu_event *event)
{
    return (uint64_t)event->op | (event->write ? IRIS_D_WRITE : 0) |
           (event->held ? IRIS_D_HELD : 0) |
           (event->atomic ? IRIS_D_ATOMIC : 0) |
           (uint64_t)(event->sem & 15) << 16 |
           (uint64_t)(event->scope & 15) << 20 |
           (uint64_t)(event->cmp & 15) << 24 |
           (uint64_t)event->bytes << IRIS_D_BYTES_SHIFT;
}

static void fill_row(struct iris_trace *trace, size_t slot,
                     const struct iris_cpu_event *event)
{
    get_words(trace, IRIS_TRACE_EVENT_ID)[slot] = (int32_t)event->op;
    get_words(trace, IRIS_TRACE_PID)[slot] = (int32_t)event->workgroup;
    get_words(trace, IRIS_TRACE_PID_M)[slot] = (int32_t)event->workgroup;
    get_words(trace, IRIS_TRACE_PID_N)[slot] = 0;
    get_words(trace, IRIS_TRACE_CUR_RANK)[slot] = event->rank;
    get_words(trace, IRIS_TRACE_TARGET_RANK)[slot] = event->target_rank;
    get_words(trace, IRIS_TRACE_XCC_ID)[slot] = 0;
    get_words(trace, IRIS_TRACE_CU_ID)[slot] = (int32_t)mine.number;
    get_longs(trace, IRIS_TRACE_ADDRESS)[slot] =
        (int64_t)(uintptr_t)event->address;
    get_longs(trace, IRIS_TRACE_END)[slot] = 0;
    get_words(trace, IRIS_TRACE_PAYLOAD)[slot] =
        iris_d_record_payload(event->bytes);
    get_longs(trace, IRIS_TRACE_VALUE)[slot] = (int64_t)event->value;
    get_longs(trace, IRIS_TRACE_WHAT)[slot] = (int64_t)pack_event(event);
    if (mine.kernel != event->kernel) {
        mine.kernel = event->kernel;
        mine.kernel_number =
            name_kernel(trace, event->kernel, IRIS_TRACE_KERNELS);
    }
    trace->notes[slot].launch = event->launch;
    trace->notes[slot].kernel = mine.kernel_number;
    trace->notes[slot].lanes = 1;
    get_longs(trace, IRIS_TRACE_TIMESTAMP)[slot] = iris_i_now_ns();
}

/* The clock may return the same value twice, and an end of 0 means that there
 * is no end. */
static int64_t end_after(int64_t begun)
{
    int64_t now = iris_i_now_ns();

    return now > begun ? now : begun + 1;
}

static void begin_event(struct iris_trace *trace,
                        const struct iris_cpu_event *event, struct open *open)
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
    get_words(trace, IRIS_TRACE_OP_INDEX)[open->slot] = (int32_t)op_index;
    push_open(open);
    fill_row(trace, open->slot, event);
}

static void end_event(struct iris_trace *trace,
                      const struct iris_cpu_event *event, size_t slot)
{
    int64_t *ends = get_longs(trace, IRIS_TRACE_END);

    ends[slot] = end_after(get_longs(trace, IRIS_TRACE_TIMESTAMP)[slot]);
    get_longs(trace, IRIS_TRACE_WHAT)[slot] = (int64_t)pack_event(event);
    get_longs(trace, IRIS_TRACE_VALUE)[slot] = (int64_t)iris_d_record_value(
        event->op, event->value, event->seen, event->expected);
    if (event->op == IRIS_OP_WAIT && event->held) {
        get_longs(trace, IRIS_TRACE_ADDRESS)[slot] =
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
    int64_t begun = get_longs(trace, IRIS_TRACE_TIMESTAMP)[series->slot];
    int64_t since = series->lanes - series->looked, now = iris_i_now_ns();
    int64_t ns = series->looked_ns +
                 (series->looked_ns - begun) * since / series->looked;

    if (since > 0) {
        get_longs(trace, IRIS_TRACE_END)[series->slot] = ns < now ? ns : now;
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
static void look_at_series(struct iris_trace *trace, struct series *series)
{
    uint32_t lanes = series->lanes;
    int64_t last = series->looked_ns;

    if (lanes % SERIES_LOOK != 0 && (lanes & (lanes - 1)) != 0) {
        return;
    }
    series->looked = lanes;
    series->looked_ns = iris_i_now_ns();
    get_longs(trace, IRIS_TRACE_END)[series->slot] = series->looked_ns;
    if (series->looked_ns - last > SERIES_PAUSE_NS) {
        /* Other work took time: the next access begins a new series. */
        series->next = 0;
    }
}

/* Whether the access continues a series. */
static bool join_series(struct iris_trace *trace,
                        const struct iris_cpu_event *event)
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
    get_words(trace, IRIS_TRACE_PAYLOAD)[series->slot] =
        iris_d_record_payload(series->lanes * event->bytes);
    mine.joined = event->id;
    look_at_series(trace, series);
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
    series->looked_ns = get_longs(trace, IRIS_TRACE_END)[slot];
}

iris_status_t iris_i_trace_device(void *self,
                                  const struct iris_cpu_event *event)
{
    struct iris_trace *trace = self;
    struct open open = {.id = event->id,
                        .launch = event->launch,
                        .workgroup = event->workgroup};

    enter_thread(trace);
    if (!is_recorded(event)) {
        if (event->op == IRIS_OP_FENCE || event->op == IRIS_OP_BARRIER) {
            end_all_series(trace);
        }
        return IRIS_OK;
    }
    if (!event->after) {
        if (!join_series(trace, event)) {
            begin_event(trace, event, &open);
        }
    } else if (mine.joined == event->id && mine.joined != 0) {
        mine.joined = 0;
    } else if (pop_open(&open)) {
        end_event(trace, event, open.slot);
        if (may_join(event)) {
            begin_series(trace, open.slot, event);
        }
    }
    return IRIS_OK;
}

/* ---- Calls of the host ---- */

/* A slot for a call; NULL: there is no more space. */
static struct iris_trace_call *take_call(struct iris_trace *trace,
                                         struct open *open)
{
    struct iris_trace_call *call;

    enter_thread(trace);
    open->slot = atomic_fetch_add(&trace->num_calls, 1);
    if (open->slot >= trace->max_calls) {
        return NULL;
    }
    call = &trace->calls[open->slot];
    *call = (struct iris_trace_call){.thread = mine.number};
    for (unsigned i = mine.num_open; i-- > 0;) {
        call->outer =
            mine.open[i].is_call ? mine.open[i].slot + 1 : call->outer;
    }
    push_open(open);
    return call;
}

void iris_i_trace_host(void *self, const struct iris_host_event *event)
{
    struct iris_trace *trace = self;
    struct open open = {.id = event->id, .is_call = true};
    struct iris_trace_call *call;

    if (iris_i_trace_is_command(event)) {
        return;
    }
    if (!event->after) {
        call = take_call(trace, &open);
        if (call != NULL) {
            call->event = *event;
            call->kernel =
                name_kernel(trace, event->kernel, IRIS_TRACE_KERNELS);
            describe_collective(trace, call);
            call->begin_ns = iris_i_now_ns();
        }
        return;
    }
    enter_thread(trace);
    if (pop_open(&open)) {
        call = &trace->calls[open.slot];
        call->event.status = event->status;
        call->event.address = event->address;
        call->event.group = event->group;
        call->end_ns = end_after(call->begin_ns);
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
    call = take_call(trace, &open);
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

        call->end_ns = end_after(call->begin_ns);
    }
}
