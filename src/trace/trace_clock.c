/* SPDX-License-Identifier: MIT
 *
 * One clock for a trace: converts the device's ticks to this host's time, and
 * this host's time to rank 0's, each with its error.
 */
#include "config.h"

#include "trace/internal.h"

#include "base/base.h"
#include "context/context.h"
#include "trace/kernels.h"

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
static iris_status_t exchange(struct iris_trace *trace, iris_status_t prepared,
                              struct times *own, struct times *root_p)
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
        status = exchange(trace, status, &own, &root);
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
