/* SPDX-License-Identifier: MIT
 *
 * The weak mode: all ranks share one model and one schedule.
 *
 * One workgroup runs at a time. Before its operation, memory gets the value that
 * it should see; after it, the newest value. So memory has an old value only
 * while the running workgroup's operation lasts, and `self.sides` keep the
 * newest one. The schedule's lock guards the model and the machine.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The state that all ranks share. */
struct iris_weak_machine {
    struct iris_weak_schedule *schedule;
    struct iris_order order;
    struct iris_weak_model *model;
    int users; /* under the schedule's lock */
};

struct iris_weak {
    struct iris_weak_params params;
    struct iris_observer observer;
    struct iris_weak_machine *machine;
    struct iris_order_host host;
    uint64_t meets; /* number of calls that all ranks make */
};

/* All lanes see a write after this number of accesses. */
#define AGE 200

/* Longer accesses see the newest values. */
#define MAX_BYTES ((size_t)1 << 16)

/* A side of the current operation. */
struct side {
    struct iris_order_range range; /* bytes 0: the model does not contain this
                                   * side */
    char *memory;
    /* The newest value, while memory has an older one; NULL: it has not. */
    char *newest;
};

/* The calling thread's workgroup. */
static _Thread_local struct {
    struct iris_weak_slot *slot;
    bool is_own;
    uint32_t lane;
    uint64_t id; /* id of the current operation */
    struct side sides[2];
    unsigned behind;
} self;

/* ---- Memory ---- */

static struct side find_side(const struct iris_weak *weak,
                             const struct iris_cpu_event *event)
{
    const struct iris_heap_memory *memory = &weak->params.heap->memory;
    struct side side = {.range = {.rank = -1}};
    struct iris_order_range range;

    if (iris_i_order_locate(weak->params.heap, event, &range) &&
        range.bytes <= MAX_BYTES && memory->bases[range.rank] != 0) {
        side.range = range;
        side.memory =
            (char *)(uintptr_t)memory->bases[range.rank] + range.offset;
    }
    return side;
}

static struct iris_weak_how find_how(const struct iris_cpu_event *event)
{
    return (struct iris_weak_how){
        .atomic = event->atomic != 0,
        .update =
            event->op >= IRIS_OP_ATOMIC_ADD && event->op <= IRIS_OP_ATOMIC_MAX,
        .op = {self.lane, 0, event->sem, event->scope}};
}

static bool has_two_sides(const struct iris_cpu_event *event)
{
    return event->op == IRIS_OP_GET || event->op == IRIS_OP_PUT ||
           event->op == IRIS_OP_COPY;
}

/* Puts the values that the workgroup sees into memory. */
static void stage_side(struct iris_weak *weak, struct side *side,
                       const struct iris_weak_how *how)
{
    struct iris_weak_model *model = weak->machine->model;
    char *newest = malloc(side->range.bytes);

    if (newest == NULL) {
        return;
    }
    memcpy(newest, side->memory, side->range.bytes);
    self.behind = iris_i_weak_read(model, &side->range, how, newest);
    if (self.behind == 0) {
        free(newest);
        return;
    }
    for (size_t i = 0; i < side->range.bytes; i++) { /* swaps them */
        char seen = newest[i];

        newest[i] = side->memory[i];
        side->memory[i] = seen;
    }
    side->newest = newest;
}

static void restore_side(struct side *side)
{
    if (side->newest != NULL) {
        memcpy(side->memory, side->newest, side->range.bytes);
        free(side->newest);
        side->newest = NULL;
    }
}

/* ---- Operations ---- */

static void begin_access(struct iris_weak *weak,
                         const struct iris_cpu_event *event)
{
    struct side *side = &self.sides[event->write != 0];
    const struct iris_weak_how how = find_how(event);
    bool writes = event->write && !how.update;

    *side = find_side(weak, event);
    if (side->range.bytes == 0) {
        return;
    }
    iris_i_weak_look(weak->machine->model, self.lane, &side->range,
                     side->memory);
    if (!writes) {
        stage_side(weak, side, &how);
    }
}

/* The value in memory, in the format of events. */
static uint64_t read_value(const struct side *side)
{
    uint64_t value = 0;

    if (side->range.bytes <= sizeof value) {
        memcpy(&value, side->memory, side->range.bytes);
    }
    return value;
}

/* "inbox"+8: the name of the allocation and the offset in it. Without a name,
 * the allocation's offset on the heap. */
static void name_place(const struct iris_weak *weak,
                       const struct iris_order_range *range, char *text,
                       size_t bytes)
{
    const struct iris_heap_names *names = &weak->params.heap->names;
    char name[IRIS_NAME_BYTES + 4] = "";
    size_t start = 0, size;

    if (iris_i_heap_find(names, range->offset, &start, &size)) {
        (void)iris_i_heap_describe(names, start, name);
    }
    if (name[0] != '\0') {
        snprintf(text, bytes, "%s+%zu", name + 1, range->offset - start);
    } else {
        snprintf(text, bytes, "heap+%zu", range->offset);
    }
}

static void print_value(FILE *record, const char *word, bool is_there,
                        uint64_t value)
{
    if (is_there) {
        fprintf(record, "\t%s %llu", word, (unsigned long long)value);
    } else {
        fprintf(record, "\t%s -", word);
    }
}

/* An operation of a kernel, after its execution: a line of the recorded schedule,
 * with fields separated by tabs, which tools/replay_file.c reads. A side is NULL
 * for a fence. */
static void note_deed(const struct iris_weak *weak,
                      const struct iris_cpu_event *event,
                      const struct side *side, bool reads, bool writes)
{
    const struct iris_order_range range =
        side != NULL ? side->range : (struct iris_order_range){.rank = -1};
    FILE *record = iris_i_weak_choices(weak->machine->schedule)->record;
    char place[IRIS_NAME_BYTES + 32] = "-", text[128];
    struct iris_race_site site = {.op = event->op,
                                  .host_op = -1,
                                  .sem = event->sem,
                                  .scope = event->scope,
                                  .atomic = event->atomic != 0};

    if (record == NULL) {
        return;
    }
    iris_i_race_find_file(event->site, 0, &site);
    iris_i_race_deed(&site, text, sizeof text);
    if (side != NULL) {
        name_place(weak, &range, place, sizeof place);
    }
    fprintf(record, "did\t%d\t%u\t%s\t%d\t%zu\t%zu", event->rank,
            event->workgroup, event->kernel, range.rank, range.offset,
            range.bytes);
    print_value(record, "read", reads,
                !reads || !has_two_sides(event) ? event->seen
                                                : read_value(side));
    print_value(record, "wrote", writes, writes ? read_value(side) : 0);
    fprintf(record, "\told %u\t%s\t%s\t0x%llx\t%s\n", reads ? self.behind : 0,
            text, place, (unsigned long long)site.offsets[0], site.file);
}

static void end_write(struct iris_weak *weak,
                      const struct iris_cpu_event *event, struct side *side,
                      const struct iris_weak_how *how)
{
    free(side->newest); /* the written value is newer */
    side->newest = NULL;
    if (how->update) {
        iris_i_weak_acquire(weak->machine->model, &side->range, how);
    }
    iris_i_weak_write(weak->machine->model, &side->range, how, side->memory);
    note_deed(weak, event, side, how->update, true);
}

/* The write may overlap the bytes that were read. */
static void end_both(struct iris_weak *weak, const struct iris_cpu_event *event)
{
    struct side *from = &self.sides[0], *to = &self.sides[1];
    char *written = to->range.bytes == 0 ? NULL : malloc(to->range.bytes);
    const struct iris_weak_how how = find_how(event);

    if (written != NULL) {
        memcpy(written, to->memory, to->range.bytes);
    }
    restore_side(from);
    if (written != NULL) {
        memcpy(to->memory, written, to->range.bytes);
        free(written);
    }
    if (to->range.bytes != 0) {
        end_write(weak, event, to, &how);
    }
}

static void end_access(struct iris_weak *weak,
                       const struct iris_cpu_event *event)
{
    struct side *side = &self.sides[event->write != 0];
    const struct iris_weak_how how = find_how(event);
    struct iris_order_range word = side->range;

    if (has_two_sides(event)) {
        if (event->write) {
            end_both(weak, event);
        } else if (side->range.bytes != 0) {
            note_deed(weak, event, side, true, false);
        }
        return;
    }
    if (side->range.bytes == 0) {
        return;
    }
    if (event->write &&
        (event->op != IRIS_OP_ATOMIC_CAS || event->seen == event->expected)) {
        end_write(weak, event, side, &how);
        return;
    }
    restore_side(side);
    if (event->op ==
        IRIS_OP_WAIT) { /* the word that held, if there are several */
        word = find_side(weak, event).range;
    }
    if (event->op != IRIS_OP_WAIT || event->held) {
        iris_i_weak_acquire(weak->machine->model, &word, &how);
        note_deed(weak, event, side, true, false);
    }
}

static void pass_fence(struct iris_weak *weak,
                       const struct iris_cpu_event *event)
{
    const struct iris_weak_how how = find_how(event);

    iris_i_weak_fence(weak->machine->model, &how.op);
    note_deed(weak, event, NULL, false, false);
}

static iris_status_t observe_kernel(void *arg,
                                    const struct iris_cpu_event *event)
{
    struct iris_weak *weak = arg;
    struct iris_weak_schedule *schedule = weak->machine->schedule;
    bool is_access = event->op < IRIS_OP_OWN || event->op == IRIS_OP_WAIT;

    if (self.slot == NULL) {
        return IRIS_OK;
    }
    iris_i_weak_lock(schedule);
    if (!event->after && event->id != self.id) {
        self.id = event->id;
        iris_i_weak_yield(schedule, self.slot, false);
    }
    if (self.is_own || !is_access) {
        (void)0;
    } else if (event->op == IRIS_OP_FENCE) {
        if (!event->after) {
            pass_fence(weak, event);
        }
    } else {
        (event->after ? end_access : begin_access)(weak, event);
    }
    iris_i_weak_unlock(schedule);
    return IRIS_OK;
}

/* ---- Turns ---- */

static void enter_lane(struct iris_weak *weak, const struct iris_cpu_wg *cpu)
{
    self.id = 0;
    self.slot = iris_i_weak_enter(weak->machine->schedule, cpu->rank,
                                  cpu->launch, cpu->workgroup, &self.is_own);
    if (self.is_own) { /* the model does not see its signals */
        iris_i_weak_flush(weak->machine->model);
    } else if (self.slot != NULL) {
        self.lane = iris_i_weak_begin(weak->machine->model, &weak->host,
                                      weak->params.heap->log->num_ranks, cpu);
        iris_i_weak_tell(iris_i_weak_choices(weak->machine->schedule),
                         "begins");
    }
}

/* The value that the wait's next poll sees. */
static void poll_again(struct iris_weak *weak)
{
    const struct iris_weak_how how = {
        .atomic = true, .op = {self.lane, 0, IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM}};
    struct side *side = &self.sides[0];

    restore_side(side);
    iris_i_weak_yield(weak->machine->schedule, self.slot, true);
    if (side->range.bytes != 0) {
        iris_i_weak_look(weak->machine->model, self.lane, &side->range,
                         side->memory);
        stage_side(weak, side, &how);
    }
}

/* The workgroup's operations happen before its host's later ones. */
static void end_lane(struct iris_weak *weak)
{
    struct iris_order *order = &weak->machine->order;
    struct iris_order_lane *lanes = order->shared->lanes;

    iris_i_order_join(order, &lanes[weak->host.lane].clock,
                      &lanes[self.lane].clock, 0);
}

static void take_turn(void *arg, const struct iris_cpu_wg *cpu,
                      enum iris_turn turn)
{
    struct iris_weak *weak = arg;
    struct iris_weak_schedule *schedule = weak->machine->schedule;

    iris_i_weak_lock(schedule);
    if (turn == IRIS_TURN_BEGIN) {
        enter_lane(weak, cpu);
    } else if (self.slot != NULL && turn == IRIS_TURN_POLL) {
        if (cpu->wait_address == NULL || self.is_own) {
            self.sides[0].range.bytes = 0;
        }
        iris_i_weak_tell(iris_i_weak_choices(schedule),
                         cpu->wait_address == NULL && !self.is_own ? "spins"
                                                                   : "fails");
        poll_again(weak);
    } else if (self.slot != NULL) {
        restore_side(&self.sides[0]);
        restore_side(&self.sides[1]);
        if (!self.is_own) {
            end_lane(weak);
        }
        iris_i_weak_tell(iris_i_weak_choices(schedule), "leaves");
        iris_i_weak_exit(schedule, self.slot);
        self.slot = NULL;
    }
    iris_i_weak_unlock(schedule);
}

/* ---- Hosts ---- */

static void enter_call(struct iris_weak *weak,
                       const struct iris_host_event *event)
{
    int num_ranks = weak->params.heap->log->num_ranks;

    if (iris_i_order_enter(&weak->host, event->group) &&
        (event->group == NULL ||
         weak->params.group_size(event->group) == num_ranks)) {
        iris_i_weak_host_meets(weak->machine->schedule, event->rank,
                               ++weak->meets);
    }
}

static void leave_call(struct iris_weak *weak,
                       const struct iris_host_event *event)
{
    if (iris_i_order_leave(&weak->host)) {
        iris_i_weak_host_meets(weak->machine->schedule, event->rank, 0);
    }
}

static void observe_host_call(struct iris_weak *weak,
                              const struct iris_host_event *event)
{
    const void *stream =
        event->stream == NULL ? weak->params.default_stream : event->stream;

    switch (event->op) {
    case IRIS_HOST_LAUNCH:
        if (event->after && event->status == IRIS_OK) {
            break;
        }
        /* fall through */
    case IRIS_HOST_KERNEL:
    case IRIS_HOST_SYNCHRONIZE:
        iris_i_weak_host_works(weak->machine->schedule, event, stream);
        if (event->op == IRIS_HOST_SYNCHRONIZE && event->after) {
            iris_i_order_come(&weak->host);
        }
        break;
    default:
        if (iris_i_order_is_collective(event)) {
            (event->after ? leave_call : enter_call)(weak, event);
        }
        break;
    }
}

static void watch_host(void *arg, const struct iris_host_event *event)
{
    struct iris_weak *weak = arg;

    iris_i_weak_lock(weak->machine->schedule);
    observe_host_call(weak, event);
    iris_i_weak_unlock(weak->machine->schedule);
}

/* ---- Creating and destroying ---- */

static unsigned decide_read(void *arg, unsigned count)
{
    const struct iris_weak_question question = {.choice = IRIS_WEAK_READ,
                                                .who =
                                                    iris_i_weak_who(self.slot),
                                                .count = count};

    return iris_i_weak_decide(arg, &question);
}

static void drop_machine(struct iris_weak_machine *machine)
{
    if (machine != NULL) {
        if (machine->model != NULL) {
            iris_i_weak_model_destroy(machine->model);
        }
        iris_i_order_close(&machine->order);
        iris_i_weak_schedule_destroy(machine->schedule);
        free(machine);
    }
}

static iris_status_t make_machine(const struct iris_weak_params *params,
                                  struct iris_weak_machine **machine_p)
{
    const struct iris_weak_schedule_params how = {
        .num_ranks = params->heap->log->num_ranks,
        .threads = params->threads,
        .choices = params->choices,
    };
    struct iris_weak_machine *machine = calloc(1, sizeof *machine);
    iris_status_t status;

    if (machine == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the weak mode");
    }
    status = iris_i_order_open_own(&machine->order);
    if (status == IRIS_OK) {
        status = iris_i_weak_schedule_create(&how, &machine->schedule);
    }
    if (status == IRIS_OK) {
        struct iris_weak_choices *choices =
            iris_i_weak_choices(machine->schedule);

        machine->model = iris_i_weak_model_create(
            &machine->order, (struct iris_weak_chooser){decide_read, choices},
            /* With an age, a step would depend on all others. */
            choices->explores ? 0 : AGE);
        if (machine->model != NULL) {
            machine->users = how.num_ranks;
            *machine_p = machine;
            return IRIS_OK;
        }
        status = iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                             "no memory for the weak mode");
    }
    drop_machine(machine);
    return status;
}

/* The place of rank 0's machine. */
struct place {
    int64_t pid;
    uint64_t machine;
};

static iris_status_t share_machine(const struct iris_weak_params *params,
                                   struct iris_weak_machine **machine_p)
{
    static const struct iris_call_type type = {.name = "iris_init"};
    struct iris_members *world = params->heap->world;
    struct iris_call call = {.type = &type};
    struct place place = {.pid = getpid()};
    iris_status_t status;

    if (params->heap->log->rank == 0) {
        call.status = make_machine(params, machine_p);
        place.machine = (uintptr_t)*machine_p;
        call.payload = &place;
        call.payload_bytes = sizeof place;
    }
    status = iris_i_agree(world, &call);
    if (status != IRIS_OK) {
        drop_machine(*machine_p);
        return status;
    }
    call = (struct iris_call){.type = &type};
    (void)iris_i_agree_payload(world, 0, &place, sizeof place);
    if (place.pid != getpid()) {
        call.status = iris_i_fail(
            params->heap->log, IRIS_ERR_UNSUPPORTED,
            "%s wants all ranks in one process; start them with "
            "iris_spawn() and IRIS_SPAWN=threads",
            params->choices.newest ? "IRIS_SEED" : "IRIS_CHECK=weak");
    }
    *machine_p = (struct iris_weak_machine *)(uintptr_t)place.machine;
    status = iris_i_agree(world, &call);
    if (status != IRIS_OK && params->heap->log->rank == 0) {
        drop_machine(*machine_p);
    }
    return status;
}

iris_status_t iris_i_weak_create(const struct iris_weak_params *params,
                                 struct iris_weak **weak_p)
{
    struct iris_weak *weak = calloc(1, sizeof *weak);
    iris_status_t status;

    if (weak == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the weak mode");
    }
    weak->params = *params;
    status = share_machine(params, &weak->machine);
    if (status != IRIS_OK) {
        free(weak);
        return status;
    }
    weak->host.order = &weak->machine->order;
    weak->host.group_key = params->group_key;
    iris_i_weak_lock(weak->machine->schedule);
    weak->host.lane =
        iris_i_order_add_lane(weak->host.order, params->heap->log->rank, 0) - 1;
    iris_i_weak_unlock(weak->machine->schedule);
    weak->observer.device = observe_kernel;
    weak->observer.host = watch_host;
    weak->observer.turn = take_turn;
    weak->observer.self = weak;
    *weak_p = weak;
    return iris_i_hooks_add(params->heap->hooks, &weak->observer);
}

void iris_i_weak_last_call(struct iris_weak *weak)
{
    if (weak != NULL) {
        iris_i_weak_lock(weak->machine->schedule);
        iris_i_weak_host_left(weak->machine->schedule,
                              weak->params.heap->log->rank);
        iris_i_weak_unlock(weak->machine->schedule);
    }
}

void iris_i_weak_destroy(struct iris_weak *weak)
{
    struct iris_weak_machine *machine;
    bool is_last, is_idle;

    if (weak == NULL) {
        return;
    }
    machine = weak->machine;
    iris_i_hooks_remove(weak->params.heap->hooks, &weak->observer);
    iris_i_weak_lock(machine->schedule);
    machine->users--;
    is_last = machine->users == 0;
    is_idle = iris_i_weak_is_idle(machine->schedule);
    iris_i_weak_unlock(machine->schedule);
    if (is_idle) { /* otherwise a kernel did not end in time, and never will */
        free(weak);
    }
    if (is_last && machine->order.shared->blind) {
        iris_i_warning(NULL, "IRIS_CHECK=weak: there was more to keep than "
                             "there is room for; reads may have been older "
                             "than the model allows");
    }
    if (is_last && is_idle) {
        drop_machine(machine);
    }
}
