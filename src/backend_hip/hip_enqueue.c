/* SPDX-License-Identifier: MIT
 *
 * Work that comes to a stream, and the host's wait for it: it watches the peers
 * and the deadline, and ends kernels that would wait for ever.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include "base/clock.h"

#include <time.h>

/* How long a host thread looks at its stream without a pause: launches are
 * short. After that it naps between looks. */
#define SPIN_NS 200000
#define NAP_NS 20000
/* Time between questions to the core. */
#define ASK_NS 2000000
/* How long ended kernels may take to drain before they are given up on. */
#define GRACE_NS 2000000000
/* Half of the calls that a stream takes before it is full. CUDA (13.0, H200)
 * holds up a call, and watches nothing meanwhile, when a stream has 1021 others
 * to do; 734 if they are kernels with 4 KB of arguments. A graph counts there
 * as one for each of its writes, waits and fills, and for what is between them:
 * as its nodes at most. */
#define HALF_FULL 256
/* All that it takes, but for what this thread does not know of, if not half are
 * such kernels. */
#define FULL 1000

/* ---- Events ---- */

/* Records an event of the stream. If a capture begins meanwhile it is part of
 * that, and good for nothing else. */
static bool record(struct hip_stream *stream, hipEvent_t *event_p)
{
    bool recorded = (*event_p != NULL ||
                     hipEventCreateWithFlags(event_p, hipEventDisableTiming) ==
                         hipSuccess) &&
                    !iris_i_hip_capturing(stream) &&
                    hipEventRecord(*event_p, stream->native) == hipSuccess &&
                    !iris_i_hip_capturing(stream);

    (void)hipGetLastError(); /* the next one may have more luck */
    return recorded;
}

/* Records the mark, behind all that those up to `turn` wait for. */
static void set_mark(struct hip_stream *stream, uint64_t turn)
{
    bool marked = record(stream, &stream->mark);

    pthread_mutex_lock(&stream->lock);
    stream->marking = false;
    stream->marked = marked ? turn : stream->marked;
    pthread_mutex_unlock(&stream->lock);
}

/* Takes on setting a mark for those who wait, and returns the last one's turn;
 * 0 if there is none, or a mark they still wait for. The lock is held. */
static uint64_t take_mark(struct hip_stream *stream)
{
    if (stream->num_waiting == 0 || stream->turns == stream->passed ||
        stream->marked > stream->passed || stream->marking) {
        return 0;
    }
    stream->marking = true;
    return stream->turns;
}

/* What the program gives a stream by its runtime's own calls sets no mark, so
 * who waits does. */
static void mark_shared(struct hip_stream *stream)
{
    uint64_t turn = 0;

    if (stream->shared) {
        pthread_mutex_lock(&stream->lock);
        turn = take_mark(stream);
        pthread_mutex_unlock(&stream->lock);
    }
    if (turn != 0) {
        set_mark(stream, turn);
    }
}

/* So many calls' work is done; the lock is held. */
static void note_done(struct hip_stream *stream, uint64_t given)
{
    if (stream->num_done < given) {
        stream->num_done = given;
    }
    if (stream->half_at <= stream->num_done) {
        stream->half_at = 0;
    }
}

/* Records the event in the middle, behind so many calls. */
static void set_half(struct hip_stream *stream, uint64_t given)
{
    bool recorded = record(stream, &stream->half);

    pthread_mutex_lock(&stream->lock);
    stream->halving = false;
    if (recorded && given > stream->num_done) {
        stream->half_at = given;
    }
    pthread_mutex_unlock(&stream->lock);
}

/* ---- Waiting on the host ---- */

/* A wait of the host: what it is for, as of its begin. */
struct turn {
    uint64_t half; /* not 0: only until so many calls' work is done */
    uint64_t number;
    uint64_t num_given;
    uint64_t num_waits;
    uint64_t stage_orphans;
    uint64_t work; /* as in struct hip_outcome, and the next */
    bool empty;
};

static void turn_begin(struct hip_stream *stream, struct turn *turn)
{
    pthread_mutex_lock(&stream->lock);
    stream->num_waiting++;
    *turn = (struct turn){
        .number = ++stream->turns,
        .num_given = stream->num_given,
        .num_waits = stream->num_waits,
        .stage_orphans = stream->stage_orphans,
        .work = iris_i_hip_fault_work(stream),
    };
    stream->stage_orphans = 0;
    pthread_mutex_unlock(&stream->lock);
}

static void turn_end(struct hip_stream *stream, const struct turn *turn,
                     bool finished)
{
    pthread_mutex_lock(&stream->lock);
    stream->num_waiting--;
    if (finished) {
        note_done(stream, turn->num_given);
        iris_i_hip_forget_waits(stream, turn->num_waits);
        iris_i_hip_stage_give((struct hip_backend *)stream->base.backend,
                              turn->stage_orphans);
    } else {
        stream->stage_orphans |= turn->stage_orphans;
    }
    pthread_mutex_unlock(&stream->lock);
}

/* hipStreamQuery(), or hipErrorNotReady: to ask a stream may block while
 * another thread's call waits for room in it, which then may be what the caller
 * has to end. A stream that is captured is not asked, since that would void the
 * capture. The lock is held. */
static hipError_t query(struct hip_stream *stream)
{
    if (stream->enqueuing != 0 || stream->marking) {
        return hipErrorNotReady;
    }
    return iris_i_hip_capturing(stream) ? hipErrorStreamCaptureUnsupported
                                        : hipStreamQuery(stream->native);
}

bool iris_i_hip_is_idle(struct hip_stream *stream)
{
    bool idle = query(stream) == hipSuccess;

    (void)hipGetLastError();
    return idle;
}

/* Whether the turn is through: hipErrorNotReady if it is not. */
static hipError_t look(struct hip_stream *stream, struct turn *turn)
{
    hipError_t error;

    pthread_mutex_lock(&stream->lock);
    if (stream->marked > stream->passed) {
        error = hipEventQuery(stream->mark);
        if (error == hipSuccess) {
            stream->passed = stream->marked;
        }
    } else {
        error = query(stream);
        if (error == hipSuccess) {
            stream->passed = stream->turns;
            turn->work = iris_i_hip_fault_work(stream);
            turn->empty = true;
        }
    }
    if (error == hipSuccess || error == hipErrorNotReady) {
        error = stream->passed >= turn->number ? hipSuccess : hipErrorNotReady;
    }
    pthread_mutex_unlock(&stream->lock);
    return error;
}

/* look() of who waits for half of a full stream. Another who does may have seen
 * the event, and recorded it anew. */
static hipError_t look_half(struct hip_stream *stream, const struct turn *turn)
{
    hipError_t error = hipSuccess;

    pthread_mutex_lock(&stream->lock);
    if (stream->num_done < turn->half) {
        error = hipEventQuery(stream->half);
        if (error != hipErrorNotReady) {
            note_done(stream, stream->half_at);
        }
    }
    pthread_mutex_unlock(&stream->lock);
    return error;
}

/* Why to stop waiting, if there is a reason; the message is set. */
static iris_status_t ask(struct hip_stream *stream, const char *what,
                         int64_t now, int64_t deadline)
{
    const struct iris_backend_params *params =
        &((const struct hip_backend *)stream->base.backend)->params;

    if (now >= deadline) {
        return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                           "rank %d: %s not done in %lld ms "
                           "(IRIS_TIMEOUT_MS); kernels that wait were ended. "
                           "Look at what its kernels wait for "
                           "(IRIS_DEVICE_TIMEOUT_MS makes them report)",
                           params->rank, what, (long long)params->timeout_ms);
    }
    return params->core_ops->keep_waiting(params->core);
}

/* look()s until the turn is through, which it returns, or an error. What makes
 * it stop waiting becomes the backend's fault; hipErrorNotReady: even so it
 * came to no end. */
static hipError_t poll(struct hip_stream *stream, const char *what,
                       struct turn *turn, iris_status_t *why_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    int64_t begin = iris_i_now_ns(), next_ask = begin + ASK_NS;
    int64_t deadline = iris_i_deadline(hip->params.timeout_ms), grace = 0;
    iris_status_t why = IRIS_OK;
    hipError_t error;

    while ((error = turn->half != 0 ? look_half(stream, turn)
                                    : look(stream, turn)) == hipErrorNotReady) {
        int64_t now = iris_i_now_ns();

        if (now - begin > SPIN_NS) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
        if (now < next_ask) {
            continue;
        }
        next_ask = now + ASK_NS;
        if (why == IRIS_OK) {
            why = ask(stream, what, now, deadline);
            if (why == IRIS_OK) {
                mark_shared(stream);
                continue;
            }
            iris_i_hip_stop_begin(hip, why);
            iris_i_hip_tell_wait(stream);
            grace = now + GRACE_NS;
        }
        iris_i_hip_force_waits(hip);
        if (now >= grace) {
            iris_i_hip_abandon(hip);
            break;
        }
    }
    if (why != IRIS_OK) {
        iris_i_hip_stop_end(hip);
    }
    *why_p = why;
    return error;
}

static bool is_capture(hipError_t error)
{
    return error == hipErrorStreamCaptureUnsupported ||
           error == hipErrorStreamCaptureInvalidated ||
           error == hipErrorStreamCaptureImplicit;
}

iris_status_t iris_i_hip_drain(struct hip_stream *stream, const char *what,
                               struct hip_outcome *end)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    struct turn turn;
    hipError_t error;

    turn_begin(stream, &turn);
    error = poll(stream, what, &turn, &end->why);
    (void)hipGetLastError();
    end->finished = error != hipErrorNotReady && !is_capture(error);
    turn_end(stream, &turn, end->finished);
    end->empty = turn.empty;
    end->work = turn.work;
    if (is_capture(error)) {
        return iris_i_hip_fail_captured(stream,
                                        "waiting for a stream on the host");
    }
    return error == hipSuccess || !end->finished
               ? IRIS_OK
               : iris_i_hip_fail(error, "rank %d: work on GPU %d failed",
                                 hip->params.rank, hip->device);
}

/* ---- Work that comes ---- */

/* Of how many calls the work is not known to be done. */
static uint64_t undone(struct hip_stream *stream, uint64_t *half_at_p)
{
    uint64_t calls;

    pthread_mutex_lock(&stream->lock);
    calls = stream->num_given - stream->num_done;
    *half_at_p = stream->half_at;
    pthread_mutex_unlock(&stream->lock);
    return calls;
}

/* Waits if the stream is full, or for all that is in it if so many calls do not
 * fit beside that. What comes into a capture needs no room. If it fails, what
 * is in the stream goes on ending until a synchronize. */
static iris_status_t make_room(struct hip_stream *stream, size_t calls)
{
    struct hip_outcome end = {.why = IRIS_OK};
    struct turn turn = {.half = 0};
    uint64_t before = undone(stream, &turn.half);

    if (before + calls <= 2 * HALF_FULL || iris_i_hip_capturing(stream)) {
        return IRIS_OK;
    }
    if (before >= 2 * HALF_FULL && turn.half != 0) {
        (void)poll(stream, HIP_WORK, &turn, &end.why);
        before = undone(stream, &turn.half);
    }
    if (end.why == IRIS_OK && before != 0 && before + calls > FULL) {
        (void)iris_i_hip_drain(stream, HIP_WORK, &end);
    }
    (void)hipGetLastError(); /* what comes next finds it, too */
    return end.why;
}

iris_status_t iris_i_hip_enqueue_begin_many(struct hip_stream *stream,
                                            size_t calls)
{
    iris_status_t status = make_room(stream, calls);
    uint64_t turn;

    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&stream->lock);
    stream->enqueuing++;
    turn = take_mark(stream);
    pthread_mutex_unlock(&stream->lock);
    if (turn != 0) {
        set_mark(stream, turn);
    }
    iris_i_hip_fault_watch(stream);
    return IRIS_OK;
}

iris_status_t iris_i_hip_enqueue_begin(struct hip_stream *stream)
{
    return iris_i_hip_enqueue_begin_many(stream, 1);
}

void iris_i_hip_enqueue_end_many(struct hip_stream *stream, size_t calls)
{
    bool captured = iris_i_hip_capturing(stream);
    uint64_t half;

    pthread_mutex_lock(&stream->lock);
    stream->num_given += captured ? 0 : calls;
    if (!captured && stream->num_given - stream->num_done >= HALF_FULL &&
        stream->half_at == 0 && !stream->halving) {
        half = stream->num_given;
        stream->halving = true;
        pthread_mutex_unlock(&stream->lock);
        set_half(stream, half);
        pthread_mutex_lock(&stream->lock);
    }
    stream->enqueuing--;
    pthread_mutex_unlock(&stream->lock);
}

void iris_i_hip_enqueue_end(struct hip_stream *stream)
{
    iris_i_hip_enqueue_end_many(stream, 1);
}
