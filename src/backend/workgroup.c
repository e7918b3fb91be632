/* SPDX-License-Identifier: MIT
 *
 * The functions that a kernel on a CPU thread calls (iris/device/watch/cpu.h): its
 * identity, whether to go on waiting, and its observers.
 *
 * A running workgroup lives in the stack frame that called the kernel, and the thread
 * points to it. The kernel leaves by returning, or by a jump out of it: after the
 * stop of its job, a deadline, or an access that an observer refuses. Each poll of a
 * wait asks for these; long waits are noted in the flight record. Observers are told
 * of single accesses, and of a series of plain accesses by few events.
 */
#include "config.h"

#include "backend/backend.h"

#include "base/base.h"
#include "base/processor.h"
#include <iris/device/core/far.h>
#include <iris/device/watch/hook.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/core/value.h>

#include <sched.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* ---- Series of plain accesses ---- */

/* They begin and end here; device/watch/series.h continues them. No access of a series
 * needs a check: its block contains an access that was checked, and heaps consist
 * of whole blocks. */

static void tell_series(struct iris_cpu_series *series,
                        struct iris_hooks *hooks)
{
    if (series->event.bytes != 0) {
        (void)iris_i_hooks_device(hooks, &series->event);
        series->event.address = series->next;
        series->event.bytes = 0;
    }
}

/* Ordinary accesses have series of their own, behind those of the device API: their
 * loops have more sites. */
#define ORDINARY_SERIES 8
#define ALL_SERIES (IRIS_CPU_SERIES + ORDINARY_SERIES)

/* The series that ends for a new one, from number `first` on: an earlier block of
 * the same, else each in turn. */
static struct iris_cpu_series *choose_series(struct iris_cpu_wg *cpu,
                                             const struct iris_cpu_event *event,
                                             uint64_t what, unsigned first)
{
    unsigned end = first == 0 ? IRIS_CPU_SERIES : ALL_SERIES;

    for (unsigned i = first; i < end; i++) {
        if (cpu->series[i].what == what &&
            cpu->series[i].event.site == event->site &&
            cpu->series[i].event.target_rank == event->target_rank) {
            return &cpu->series[i];
        }
    }
    return &cpu->series[first + cpu->next_series++ % (end - first)];
}

/* Begins a series behind a plain access, of which observers have the event.
 * `what` is iris_d_packed() of it. */
static void begin_series(struct iris_cpu_wg *cpu, struct iris_hooks *hooks,
                         const struct iris_cpu_event *event, uint64_t what,
                         unsigned first)
{
    struct iris_cpu_series *series = choose_series(cpu, event, what, first);

    tell_series(series, hooks);
    series->next = (const char *)event->address + event->bytes;
    series->room = -(uintptr_t)series->next % IRIS_CPU_SERIES_BYTES;
    series->what = what;
    series->event = *event;
    series->event.address = series->next;
    series->event.bytes = 0;
}

void iris_i_cpu_series_tell(struct iris_cpu_wg *cpu, struct iris_hooks *hooks)
{
    for (unsigned i = 0; cpu->series != NULL && i < ALL_SERIES; i++) {
        tell_series(&cpu->series[i], hooks);
    }
}

/* ---- Workgroups ---- */

/* If an observer schedules the workgroups, the clock is read only once per this
 * number of polls. */
#define POLLS_PER_LOOK 256

/* A poll that looks for messages of other nodes counts as this number: it takes
 * longer. */
#define POLLS_OF_CARRY 4

/* A running workgroup. It lives in the stack frame that called the kernel. */
struct workgroup {
    struct iris_cpu_wg cpu;
    const struct iris_cpu_job *job;
    struct iris_wait wait;      /* type NULL: no long wait */
    int64_t wait_end_ns;        /* time limit of the wait */
    struct iris_wait_note note; /* its note in the flight record */
    jmp_buf end;
};

/* Thread-local, like the processor that the thread simulates: kernels reach it
 * without an argument. NULL outside a kernel. */
static _Thread_local struct workgroup *current;

const struct iris_cpu_wg *
iris_i_cpu_running(const struct iris_backend_params **params_p)
{
    if (current == NULL) {
        return NULL;
    }
    *params_p = current->job->params;
    return &current->cpu;
}

struct iris_cpu_wg *iris_cpu_self(void)
{
    return current != NULL ? &current->cpu : NULL;
}

/* The accesses so far belong to the part of lanes before. A loop that was left by a
 * jump has not told its end. */
void iris_cpu_lanes(int part)
{
    struct iris_cpu_wg *cpu = iris_cpu_self();

    if (cpu == NULL || cpu->watched == 0 || part == cpu->part) {
        return;
    }
    iris_i_cpu_series_tell(cpu, current->job->params->hooks);
    cpu->meets += part == IRIS_CPU_MEET || (part < 0 && cpu->part != 0);
    cpu->loops += part == IRIS_CPU_LOOP;
    cpu->part = part < 0 ? 0 : part;
}

/* The word that a spin loop accesses; it may be on any rank. */
static int64_t read_spun(const struct iris_cpu_wg *cpu)
{
    const void *at = cpu->spin_address;

    if (at == NULL || (cpu->spin_bytes != 4 && cpu->spin_bytes != 8)) {
        return 0;
    }
    return cpu->spin_bytes == 8
               ? atomic_load_explicit((const _Atomic int64_t *)at,
                                      memory_order_relaxed)
               : (int64_t)atomic_load_explicit((const _Atomic int32_t *)at,
                                               memory_order_relaxed);
}

/* The word that the workgroup waits for; if it does not wait, the word on which
 * it repeats operations. */
static void take_word(struct iris_wait_note *note,
                      const struct iris_cpu_wg *cpu)
{
    int waits = cpu->wait_address != NULL;

    note->op = waits ? (int)cpu->wait_op : 0;
    note->address = waits ? cpu->wait_address : cpu->spin_address;
    note->bytes = waits ? cpu->wait_bytes : cpu->spin_bytes;
    note->is_unsigned = cpu->wait_unsigned;
    note->cmp = cpu->wait_cmp;
    note->value = cpu->wait_value;
    note->seen = waits ? cpu->wait_seen : read_spun(cpu);
}

/* Writes the current wait to the flight record. Nothing records the end of a
 * wait: readers see that its time no longer changes. */
static void note_wait(struct workgroup *self, int64_t now, int ended)
{
    const struct iris_backend_params *params = self->job->params;
    struct iris_wait_note *note = &self->note;
    const struct iris_cpu_wg *cpu = &self->cpu;
    int64_t begin = self->wait.type == NULL ? now : self->wait.begin_ns;

    if (note->begin_ns != begin ||
        (cpu->wait_address != NULL && (note->address != cpu->wait_address ||
                                       note->value != cpu->wait_value))) {
        note->is_known = 0;
    }
    note->ended = ended;
    take_word(note, cpu);
    note->begin_ns = begin;
    note->now_ns = now;
    if (!ended || note->begun == 0) {
        self->job->ops->progress(self->job->stream, cpu, note->grid,
                                 &note->begun, &note->done);
    }
    params->core_ops->note_wait(params->core, note);
}

/* Lets the proxy free the slot of the answer for which the workgroup waited. */
static void leave_awaited(struct iris_cpu_wg *cpu)
{
    if (cpu->awaited != 0) {
        iris_d_ring_leave(cpu->ring, cpu->awaited - 1);
    }
    cpu->awaited = 0;
}

/* Leaves the kernel, after noting the workgroup's wait for the host. The
 * kernel's stack frames are dropped without cleanup. */
static _Noreturn void end_workgroup(struct workgroup *self)
{
    leave_awaited(&self->cpu);
    self->job->ops->ended(self->job->stream, &self->cpu);
    _longjmp(self->end, 1);
}

static _Noreturn void end_by_stop(struct workgroup *self, iris_status_t status,
                                  enum iris_cpu_stop why)
{
    if (why != IRIS_CPU_STOP_REFUSED) { /* before the others have ended */
        note_wait(self, iris_i_now_ns(), 1);
    }
    self->job->ops->stop(self->job->stream, status, why, &self->cpu);
    end_workgroup(self);
}

iris_status_t iris_i_cpu_late(const struct iris_backend_params *params)
{
    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "rank %d: the stream is not done after %lld ms "
                       "(IRIS_TIMEOUT_MS)",
                       params->rank, (long long)params->waiter->timeout_ms);
}

/* ---- Long waits ---- */

static void keep_note(struct iris_wait *wait, enum iris_wait_phase phase)
{
    (void)phase;
    note_wait(wait->arg, wait->now_ns, 0);
}

/* Reports the wait's own limit, or the limit of the host thread that runs the
 * stream while it waits for it. */
static iris_status_t fail_late(const struct iris_wait *wait)
{
    const struct workgroup *self = wait->arg;
    const struct iris_backend_params *params = self->job->params;

    return wait->now_ns < self->wait_end_ns
               ? iris_i_cpu_late(params)
               : iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                             "rank %d: a wait in a kernel is not over after "
                             "%lld ms (IRIS_DEVICE_TIMEOUT_MS)",
                             params->rank,
                             (long long)params->device_timeout_ms);
}

/* Only a wait for a word has its own limit, and only a thread that waits for
 * the stream warns. */
static void begin_wait(struct workgroup *self)
{
    static const struct iris_wait_type for_word = {
        .pace = IRIS_PACE_WORKGROUP, .late = fail_late, .note = keep_note};
    const struct iris_backend_params *params = self->job->params;
    int64_t host_ns = self->job->deadline_ns, now = iris_i_now_ns();
    int64_t ms = self->cpu.wait_address == NULL ? 0 : params->device_timeout_ms;
    struct iris_wait *wait = &self->wait;

    iris_i_wait_begin(wait, &for_word, params->waiter, "the host", self);
    self->wait_end_ns = ms == 0 ? INT64_MAX : now + ms * IRIS_NS_PER_MS;
    wait->deadline_ns = host_ns != 0 && host_ns < self->wait_end_ns
                            ? host_ns
                            : self->wait_end_ns;
    wait->warn_ns = host_ns == 0 ? INT64_MAX : 0;
    iris_i_wait_start(wait);
}

/* ---- Accesses ---- */

/* The required alignment of the address; the bulk operations need none. */
static size_t alignment_of(const struct iris_cpu_event *event)
{
    switch (event->op) {
    case IRIS_OP_GET:
    case IRIS_OP_PUT:
    case IRIS_OP_COPY:
    case IRIS_OP_FENCE:
    case IRIS_OP_BARRIER:
    case IRIS_OP_COLLECTIVE:
        return 1;
    default:
        break;
    }
    if (event->bytes >= sizeof(uint64_t)) {
        return sizeof(uint64_t);
    }
    return event->bytes == 0 ? 1 : event->bytes;
}

/* Checks whether a workgroup may do the operation of the event. A GPU would
 * fault or corrupt memory; a CPU reports the error. */
static iris_status_t check_access(const struct iris_cpu_wg *cpu,
                                  const struct iris_cpu_event *event)
{
    uintptr_t offset = (uintptr_t)event->address - (uintptr_t)cpu->heap_base;
    bool of_a_rank = event->op != IRIS_OP_FENCE && event->op != IRIS_OP_BARRIER;
    char why[160];

    if (of_a_rank && (uint32_t)event->target_rank >= (uint32_t)cpu->num_ranks) {
        snprintf(why, sizeof why,
                 "the rank is out of range; the job has ranks 0 to %d",
                 cpu->num_ranks - 1);
        return iris_i_fail_access(event, IRIS_ERR_INVALID, why);
    }
    if (iris_i_is_translated(event) &&
        (event->bytes > cpu->heap_bytes ||
         offset > cpu->heap_bytes - event->bytes)) {
        snprintf(why, sizeof why,
                 "that %s this rank's heap (%p, %zu bytes); pass this "
                 "rank's own pointer from iris_malloc",
                 offset < cpu->heap_bytes ? "goes past the end of"
                                          : "is not on",
                 (const void *)cpu->heap_base, cpu->heap_bytes);
        return iris_i_fail_access(event, IRIS_ERR_INVALID, why);
    }
    if ((uintptr_t)event->address % alignment_of(event) != 0) {
        snprintf(why, sizeof why,
                 "the address is misaligned; it must be a multiple of %zu",
                 alignment_of(event));
        return iris_i_fail_access(event, IRIS_ERR_INVALID, why);
    }
    return IRIS_OK;
}

static uint64_t pack_access(const struct iris_cpu_event *event)
{
    iris_d_access_t access = iris_d_reads(event->op, 0, event->bytes);

    access.write = event->write;
    access.order = iris_d_order(event->sem, event->scope);
    return iris_d_packed(access);
}

bool iris_i_cpu_series_take(struct iris_cpu_wg *cpu, struct iris_hooks *hooks,
                            const struct iris_cpu_event *event)
{
    uint64_t what = pack_access(event);

    if (cpu->series == NULL || event->bytes > sizeof cpu->words) {
        return false;
    }
    for (unsigned i = IRIS_CPU_SERIES; i < ALL_SERIES; i++) {
        struct iris_cpu_series *series = &cpu->series[i];

        if (series->next == event->address && series->what == what &&
            series->room >= event->bytes && series->event.site == event->site &&
            series->event.target_rank == event->target_rank) {
            series->next = (const char *)series->next + event->bytes;
            series->room -= event->bytes;
            series->event.bytes += event->bytes;
            return true;
        }
    }
    begin_series(cpu, hooks, event, what, IRIS_CPU_SERIES);
    return false;
}

void iris_cpu_observe(struct iris_cpu_wg *cpu,
                      const struct iris_cpu_event *event)
{
    struct iris_hooks *hooks = current->job->params->hooks;
    bool is_plain = iris_d_is_plain(event);
    iris_status_t status = IRIS_OK;

    if (!is_plain) {
        iris_i_cpu_series_tell(cpu, hooks);
    }
    if (cpu->watched != 0) { /* first: a checker's message has more details */
        status = iris_i_hooks_device(hooks, event);
    }
    if (status == IRIS_OK && !event->after) {
        status = check_access(cpu, event);
    }
    if (status == IRIS_OK && is_plain && cpu->series != NULL) {
        begin_series(cpu, hooks, event, pack_access(event), 0);
    }
    if (status != IRIS_OK) {
        end_by_stop(current, status, IRIS_CPU_STOP_REFUSED);
    }
}

void iris_cpu_end(struct iris_cpu_wg *cpu, const char *why)
{
    if (cpu == NULL) {
        return;
    }
    end_by_stop(current,
                iris_i_fail(NULL, IRIS_ERR_INVALID,
                            "rank %d: kernel %s, workgroup %u: %s", cpu->rank,
                            cpu->kernel, cpu->workgroup, why),
                IRIS_CPU_STOP_REFUSED);
}

void iris_cpu_mismatch(struct iris_cpu_wg *cpu,
                       const struct iris_dev_mismatch *mismatch)
{
    char text[IRIS_MESSAGE_BYTES];
    iris_status_t status;

    if (cpu == NULL) {
        return;
    }
    status = iris_i_mismatch_describe(mismatch, text, sizeof text);
    end_by_stop(current, iris_i_fail(NULL, status, "%s", text),
                IRIS_CPU_STOP_REFUSED);
}

/* ---- Requests to other nodes ---- */

void iris_cpu_posted(struct iris_cpu_wg *cpu, enum iris_op op, size_t bytes)
{
    const struct iris_far *far = current->job->params->far;

    (void)cpu;
    far->posted(far->steps, op, bytes);
}

/* 1: it carried a request or a message. */
static int carry_messages(const struct workgroup *self)
{
    const struct iris_far *far = self->job->params->far;

    return self->cpu.ring != NULL && far->carry(far->steps) > 0;
}

void iris_cpu_poll(struct iris_cpu_wg *cpu)
{
    struct workgroup *self = current;
    iris_status_t status;

    if (cpu == NULL || self == NULL) {
        sched_yield();
        return;
    }
    if (atomic_load_explicit(self->job->stopped, memory_order_relaxed) !=
        IRIS_OK) {
        note_wait(self, iris_i_now_ns(), 1);
        end_workgroup(self);
    }
    if (cpu->watched != 0 &&
        iris_i_hooks_turn(self->job->params->hooks, cpu, IRIS_TURN_POLL) &&
        cpu->polls++ % POLLS_PER_LOOK != 0) {
        return;
    }
    cpu->polls += cpu->ring == NULL ? 1 : POLLS_OF_CARRY;
    if (cpu->polls <= iris_i_paces[IRIS_PACE_WORKGROUP].pauses) {
        self->wait.type = NULL; /* a new wait, or possibly one */
        if (!carry_messages(self)) {
            iris_d_pause();
        }
        return;
    }
    if (self->wait.type == NULL) {
        begin_wait(self);
    }
    status = iris_i_wait_turn(&self->wait);
    if (status != IRIS_OK) {
        end_by_stop(self, status,
                    self->wait.now_ns < self->wait_end_ns
                        ? IRIS_CPU_STOP_ASKED
                        : IRIS_CPU_STOP_EXPIRED);
    }
    (void)carry_messages(self);
}

/* Runs the kernel's code in the default floating-point environment, as on a GPU,
 * so that all ranks compute the same bits. The thread may have another one.
 * end_workgroup() returns to here. Variables that change in between are in
 * memory, since kernels have their address. */
static void enter_kernel(const struct iris_cpu_job *job, struct workgroup *self,
                         const iris_wg_t *wg)
{
    uint64_t fp = iris_i_fp_enter();

    if (_setjmp(self->end) == 0) {
        job->kernel->cpu_entry(wg, job->args);
        if (self->cpu.posted) { /* the end of a kernel releases */
            iris_d_far_flush(&self->cpu);
        }
    }
    iris_i_fp_leave(fp);
}

void iris_i_cpu_job_run(const struct iris_cpu_job *job, uint32_t id)
{
    const struct iris_backend_params *params = job->params;
    struct workgroup self = {
        .cpu =
            {
                .rank = params->rank,
                .num_ranks = params->num_ranks,
                .heap_base = job->heap.base,
                .heap_bytes = job->heap.bytes,
                .kernel = job->kernel->name,
                .workgroup = id,
                .watched = iris_i_hooks_watch_device(params->hooks),
                .launch = job->event,
                .ring = params->far == NULL ? NULL : params->far->ring,
            },
        .job = job,
        .note = {.slot = -1,
                 .stream = job->stream,
                 .kernel = job->kernel->name,
                 .workgroup = id,
                 .grid = job->grid,
                 .own = job->own},
    };
    const iris_wg_t wg = {.id = id,
                          .num_wgs = job->grid,
                          .num_lanes = job->block,
                          .cpu = &self.cpu};
    struct iris_cpu_series series[ALL_SERIES]; /* used while watched */

    current = &self;
    if (self.cpu.watched != 0) {
        if (iris_i_hooks_take_series(params->hooks)) {
            memset(series, 0, sizeof series);
            self.cpu.series = series;
        }
        (void)iris_i_hooks_turn(params->hooks, &self.cpu, IRIS_TURN_BEGIN);
    }
    enter_kernel(job, &self, &wg);
    if (self.cpu.watched != 0) {
        iris_i_cpu_series_tell(&self.cpu, params->hooks);
        (void)iris_i_hooks_turn(params->hooks, &self.cpu, IRIS_TURN_END);
    }
    if (self.cpu.ring != NULL) {
        params->far->leave(params->far->steps);
    }
    current = NULL;
    if (self.note.slot >= 0) {
        params->core_ops->wait_over(params->core, &self.note);
    }
}

void iris_i_cpu_job_begin(struct iris_cpu_job *job,
                          struct iris_host_event *event)
{
    *event = (struct iris_host_event){
        .op = IRIS_HOST_KERNEL,
        .rank = job->params->rank,
        .target_rank = -1,
        .stream = job->stream,
        .kernel = job->kernel->name,
        .grid = job->grid,
        .block = job->block,
        .value = job->call,
    };
    iris_i_hooks_before(job->params->hooks, event);
    job->event = event->id;
}

void iris_i_cpu_job_end(const struct iris_cpu_job *job,
                        struct iris_host_event *event, iris_status_t status)
{
    /* The status that ended it, if it was ended. */
    int stopped = atomic_load(job->stopped);

    (void)iris_i_hooks_after(job->params->hooks, event,
                             status == IRIS_OK ? (iris_status_t)stopped
                                               : status);
}
