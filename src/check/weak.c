/* SPDX-License-Identifier: MIT
 *
 * The weak mode: all ranks share one model and one schedule.
 *
 * One workgroup runs at a time. Before its operation, memory gets the value that
 * it should see; after it, the newest value. So memory has an old value only
 * while the running workgroup's operation lasts, and `self.sides` keep the
 * newest one. The schedule's lock guards the model and the machine.
 *
 * Words of 8 bytes keep their latest writes in one order, and looks: the time of
 * the newest write that a lane has seen. A write takes a place behind all writes
 * and looks that happen before it; those behind it may have run earlier. A read
 * may see any write that is not older than the newest write, or look, that happens
 * before it.
 * Writes that all lanes see are dropped, so a word's base is the value before all
 * writes that it keeps. Under IRIS_CHECK=race with a seed there is only the
 * schedule: reads return the newest values, and a series of plain accesses is one
 * step, since only a race could tell.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD_BYTES 8

/* The time that an access takes. A write that is put between two others has a time
 * between theirs. */
#define STEP ((uint64_t)1 << 20)

/* All lanes see a write after this number of accesses. */
#define AGE 200

/* Longer accesses see the newest values. */
#define MAX_BYTES ((size_t)1 << 16)

struct weak_write {
    uint64_t time;
    uint64_t value;
    uint64_t mask; /* bit mask of the bytes that it writes */
    uint32_t clock;
    uint32_t lane;
    bool atomic;
    bool update; /* no other write comes between it and the one that it read */
    iris_scope_t scope;
    struct iris_order_release release; /* an atomic write has one */
};

/* A lane has seen the word's state at that time. */
struct weak_look {
    uint64_t time;
    uint64_t mask;
    uint32_t clock;
    uint32_t lane;
};

struct weak_cell {
    uint64_t base; /* value before all writes */
    struct weak_write *writes;
    struct weak_look *looks;
    unsigned num_writes, num_looks;
    bool is_used;
    struct weak_cell *next; /* the machine's list of used ones */
};

/* The state that all ranks share. */
struct iris_weak_machine {
    struct iris_weak_schedule *schedule;
    struct iris_order order; /* its cells are struct weak_cell */
    uint64_t now;            /* number of accesses so far, times STEP */
    uint64_t age;            /* a write is old after this time; 0: never */
    uint64_t flushed;        /* all writes up to this time are old */
    struct weak_cell *used;
    int users; /* under the schedule's lock */
};

struct iris_weak {
    struct iris_check_params params;
    bool newest;
    struct iris_observer observer;
    struct iris_weak_machine *machine;
    struct iris_order_host host;
    uint64_t meets; /* number of calls that all ranks make */
};

/* The order of an access. */
struct weak_how {
    bool atomic;
    bool update; /* the read of an atomic that also writes */
    struct iris_order_op op;
};

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
    uint64_t last_id; /* the greatest id of a plain access that was noted */
    uint64_t id;      /* id of the current operation */
    struct side sides[2];
    unsigned behind;
    struct iris_weak *weak;
    /* An ordinary access is told before it happens. It ends when the next
     * operation begins. */
    bool is_open;
    struct iris_cpu_event open;
    uint64_t num_plain;
} self;

/* ---- Words ---- */

static void forget_cell(struct iris_weak_machine *machine,
                        struct weak_cell *cell)
{
    for (unsigned i = 0; i < cell->num_writes; i++) {
        iris_i_order_drop(&machine->order, &cell->writes[i].release);
    }
    cell->num_writes = cell->num_looks = 0;
}

/* The word's value at `time`. */
static uint64_t get_value(const struct weak_cell *cell, uint64_t time)
{
    uint64_t value = cell->base;

    for (unsigned i = 0; i < cell->num_writes && cell->writes[i].time <= time;
         i++) {
        value = (value & ~cell->writes[i].mask) |
                (cell->writes[i].value & cell->writes[i].mask);
    }
    return value;
}

static bool is_old_time(const struct iris_weak_machine *machine, uint64_t time)
{
    return time <= machine->flushed ||
           (machine->age != 0 && time + machine->age <= machine->now);
}

/* Drops writes whose successors all lanes have seen. */
static void prune_cell(struct iris_weak_machine *machine,
                       struct weak_cell *cell)
{
    uint64_t covered = 0;
    unsigned kept = cell->num_writes, looks = 0;

    for (unsigned i = cell->num_writes; i-- > 0;) {
        struct weak_write *write = &cell->writes[i];
        bool old = is_old_time(machine, write->time);

        if (old && (write->mask & ~covered) == 0) {
            iris_i_order_drop(&machine->order, &write->release);
            continue;
        }
        covered |= old ? write->mask : 0;
        cell->writes[--kept] = *write;
    }
    cell->num_writes -= kept;
    if (kept != 0) {
        memmove(cell->writes, cell->writes + kept,
                cell->num_writes * sizeof *cell->writes);
    }
    for (unsigned i = 0; i < cell->num_looks; i++) {
        if (!is_old_time(machine, cell->looks[i].time)) {
            cell->looks[looks++] = cell->looks[i];
        }
    }
    cell->num_looks = looks;
}

/* Makes room for one more write and look; false: no memory. */
static bool reserve_cell(struct iris_weak_machine *machine,
                         struct weak_cell *cell)
{
    bool has_room =
        iris_i_reserve(&cell->writes, cell->num_writes, sizeof *cell->writes) &&
        iris_i_reserve(&cell->looks, cell->num_looks, sizeof *cell->looks);

    if (!cell->is_used) {
        cell->is_used = true;
        cell->next = machine->used;
        machine->used = cell;
    }
    if (!has_room) {
        machine->order.shared->blind = true;
    }
    return has_room;
}

/* ---- One word of a range ---- */

/* The part of a range in one word. */
struct part {
    struct weak_cell *cell;
    uint64_t mask;
    size_t at;     /* offset in the range */
    size_t within; /* the word */
    size_t bytes;
};

/* Begins with a part that is all zero. */
static bool next_part(const struct iris_weak_machine *machine,
                      const struct iris_order_range *range, struct part *part)
{
    part->at += part->bytes;
    if (part->at >= range->bytes) {
        return false;
    }
    part->cell = iris_i_order_cell(&machine->order, range->rank,
                                   range->offset + part->at);
    part->within = (range->offset + part->at) % WORD_BYTES;
    part->bytes = WORD_BYTES - part->within;
    if (part->bytes > range->bytes - part->at) {
        part->bytes = range->bytes - part->at;
    }
    part->mask = (UINT64_MAX >> (64 - 8 * part->bytes)) << (8 * part->within);
    return true;
}

static uint64_t load_part(const struct part *part, const void *bytes)
{
    uint64_t value = 0;

    memcpy((char *)&value + part->within, (const char *)bytes + part->at,
           part->bytes);
    return value;
}

/* Whether the write happens before the lane's next operation. */
static bool knows_write(const struct iris_weak_machine *machine, uint32_t lane,
                        uint32_t by, uint32_t clock)
{
    const struct iris_order_moment *moment = iris_i_order_moment(
        &machine->order, &machine->order.shared->lanes[lane].clock, by);

    return by == lane || (moment != NULL && moment->strict >= clock);
}

/* The oldest state of the word that the lane may see. */
static uint64_t find_oldest(const struct iris_weak_machine *machine,
                            uint32_t lane, const struct weak_cell *cell,
                            uint64_t mask)
{
    uint64_t time = 0;

    for (unsigned i = 0; i < cell->num_writes; i++) {
        const struct weak_write *write = &cell->writes[i];

        if ((write->mask & mask) != 0 &&
            (knows_write(machine, lane, write->lane, write->clock) ||
             is_old_time(machine, write->time))) {
            time = write->time;
        }
    }
    for (unsigned i = 0; i < cell->num_looks; i++) {
        const struct weak_look *look = &cell->looks[i];

        if ((look->mask & mask) != 0 && look->time > time &&
            knows_write(machine, lane, look->lane, look->clock)) {
            time = look->time;
        }
    }
    return time;
}

/* Whether an update must see the write: each scope includes the other lane. */
static bool must_see(const struct iris_weak_machine *machine,
                     const struct iris_order_op *op,
                     const struct weak_write *write)
{
    const struct iris_order_shared *shared = machine->order.shared;

    return write->atomic &&
           iris_i_order_spans(shared, op->scope, op->lane, write->lane) &&
           iris_i_order_spans(shared, write->scope, write->lane, op->lane);
}

/* An answer from 0 to count - 1; 0 is the newest. */
static unsigned decide_place(const struct iris_weak_machine *machine,
                             unsigned count)
{
    const struct iris_weak_question question = {.choice = IRIS_WEAK_READ,
                                                .who =
                                                    iris_i_weak_who(self.slot),
                                                .count = count};

    return iris_i_weak_decide(iris_i_weak_choices(machine->schedule),
                              &question);
}

/* The choice of a state that a lane will see of a word. */
struct choice {
    const struct weak_cell *cell;
    uint64_t mask;
    uint64_t time;   /* time of the chosen state */
    unsigned behind; /* number of newer writes */
};

static void choose_state(struct iris_weak_machine *machine,
                         const struct weak_how *how, struct choice *choice)
{
    const struct weak_cell *cell = choice->cell;
    uint64_t time = find_oldest(machine, how->op.lane, cell, choice->mask);
    unsigned later = 0;

    for (unsigned i = 0; i < cell->num_writes; i++) {
        const struct weak_write *write = &cell->writes[i];

        if ((write->mask & choice->mask) == 0 || write->time <= time) {
            continue;
        }
        later++;
        if (how->update && must_see(machine, &how->op, write)) {
            time = write->time;
            later = 0;
        }
    }
    choice->behind = later == 0 ? 0 : decide_place(machine, later + 1);
    for (unsigned i = 0; i < cell->num_writes && later > choice->behind; i++) {
        if (cell->writes[i].time > time &&
            (cell->writes[i].mask & choice->mask) != 0) {
            time = cell->writes[i].time;
            later--;
        }
    }
    choice->time = time;
}

/* ---- Accesses ---- */

/* Before any access of the lane: the current contents of memory. If memory was
 * written without the model, all lanes see that write. */
static void look_at(struct iris_weak_machine *machine, uint32_t lane,
                    const struct iris_order_range *range, const void *memory)
{
    struct part part = {0};

    machine->now += STEP;
    iris_i_order_tick(&machine->order, lane);
    while (next_part(machine, range, &part)) {
        struct weak_cell *cell = part.cell;
        uint64_t content = load_part(&part, memory);

        prune_cell(machine, cell);
        if ((get_value(cell, UINT64_MAX) & part.mask) != content) {
            cell->base = (get_value(cell, UINT64_MAX) & ~part.mask) | content;
            forget_cell(machine, cell);
        }
    }
}

/* Each aligned word of 8 bytes is seen as a whole. Returns the number of writes
 * that are newer than the oldest word seen. */
static unsigned read_range(struct iris_weak_machine *machine,
                           const struct iris_order_range *range,
                           const struct weak_how *how, void *seen)
{
    struct part part = {0};
    unsigned most = 0;

    while (next_part(machine, range, &part)) {
        struct weak_cell *cell = part.cell;
        struct choice choice = {.cell = cell, .mask = part.mask};
        uint64_t value;

        if (!reserve_cell(machine, cell)) {
            continue;
        }
        choose_state(machine, how, &choice);
        value = get_value(cell, choice.time);
        memcpy((char *)seen + part.at, (char *)&value + part.within,
               part.bytes);
        cell->looks[cell->num_looks++] = (struct weak_look){
            choice.time, part.mask,
            iris_i_order_now(&machine->order, how->op.lane), how->op.lane};
        most = most > choice.behind ? most : choice.behind;
    }
    return most;
}

/* The write that the lane's latest read of the word saw; NULL: none. */
static const struct weak_write *find_seen(const struct weak_cell *cell,
                                          uint32_t lane, uint64_t mask)
{
    const struct weak_write *seen = NULL;
    uint64_t time = 0;

    for (unsigned i = 0; i < cell->num_looks; i++) {
        if (cell->looks[i].lane == lane && (cell->looks[i].mask & mask) != 0) {
            time = cell->looks[i].time;
        }
    }
    for (unsigned i = 0; i < cell->num_writes; i++) {
        if (cell->writes[i].time <= time &&
            (cell->writes[i].mask & mask) != 0) {
            seen = &cell->writes[i];
        }
    }
    return seen;
}

/* The latest read of that word acquires the release of its writer. */
static void acquire_word(struct iris_weak_machine *machine,
                         const struct iris_order_range *range,
                         const struct weak_how *how)
{
    struct part part = {0};

    while (how->atomic && next_part(machine, range, &part)) {
        const struct weak_write *write =
            find_seen(part.cell, how->op.lane, part.mask);

        if (write != NULL) {
            iris_i_order_acquire(&machine->order, &how->op, &write->release);
        }
    }
}

/* A place for a new write that is no update: the number of the word's writes that
 * come behind it. It is directly before a write to the same bytes, or the newest. */
static unsigned choose_place(const struct iris_weak_machine *machine,
                             const struct weak_how *how,
                             const struct weak_cell *cell, uint64_t mask)
{
    uint64_t oldest = find_oldest(machine, how->op.lane, cell, mask);
    unsigned count = cell->num_writes, places[AGE + 1] = {0}, n = 1;

    for (unsigned later = 1; later <= count && n <= AGE; later++) {
        const struct weak_write *write = &cell->writes[count - later];

        if (write->time <= oldest) {
            break;
        }
        if ((write->mask & mask) != 0 && !write->update) {
            places[n++] = later;
        }
    }
    return n == 1 ? 0 : places[decide_place(machine, n)];
}

/* Puts a write into the word's order, and returns it. Without time between two
 * others it becomes the newest. */
static struct weak_write *insert_write(const struct iris_weak_machine *machine,
                                       struct weak_cell *cell, unsigned later)
{
    unsigned at = cell->num_writes - later;
    uint64_t before = at == 0 ? 0 : cell->writes[at - 1].time;
    uint64_t time = machine->now;

    if (later != 0) {
        time = before + (cell->writes[at].time - before) / 2;
    }
    if (later != 0 && time == before) {
        at = cell->num_writes;
        time = machine->now;
    }
    memmove(&cell->writes[at + 1], &cell->writes[at],
            (cell->num_writes - at) * sizeof *cell->writes);
    cell->num_writes++;
    cell->writes[at] = (struct weak_write){.time = time};
    return &cell->writes[at];
}

static unsigned count_behind(const struct weak_cell *cell,
                             const struct weak_write *write)
{
    unsigned count = 0;

    for (const struct weak_write *one = write + 1;
         one < cell->writes + cell->num_writes; one++) {
        count += (one->mask & write->mask) != 0;
    }
    return count;
}

/* After a write, which is in memory; memory gets the newest value. Returns the
 * largest number of writes that come behind it, of its words. */
static unsigned write_range(struct iris_weak_machine *machine,
                            const struct iris_order_range *range,
                            const struct weak_how *how, char *memory)
{
    struct part part = {0};
    unsigned most = 0;

    while (next_part(machine, range, &part)) {
        struct weak_cell *cell = part.cell;
        const struct weak_write *before;
        struct weak_write *write;
        unsigned later;
        uint64_t value;

        if (!reserve_cell(machine, cell)) {
            continue;
        }
        before = how->update ? find_seen(cell, how->op.lane, part.mask) : NULL;
        later = how->update ? 0 : choose_place(machine, how, cell, part.mask);
        write = insert_write(machine, cell, later);
        write->value = load_part(&part, memory);
        write->mask = part.mask;
        write->clock = iris_i_order_now(&machine->order, how->op.lane);
        write->lane = how->op.lane;
        write->atomic = how->atomic;
        write->update = how->update;
        write->scope = how->op.scope;
        if (how->atomic) {
            iris_i_order_release(&machine->order, &how->op, &write->release);
        }
        if (how->atomic && before != NULL) {
            iris_i_order_continue(&machine->order, &how->op, &write->release,
                                  &before->release);
        }
        value = get_value(cell, UINT64_MAX);
        memcpy(memory + part.at, (char *)&value + part.within, part.bytes);
        later = count_behind(cell, write);
        most = most > later ? most : later;
    }
    return most;
}

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

static struct weak_how find_how(const struct iris_cpu_event *event)
{
    return (struct weak_how){.atomic = event->atomic != 0,
                             .update = event->op >= IRIS_OP_ATOMIC_ADD &&
                                       event->op <= IRIS_OP_ATOMIC_MAX,
                             .op = {self.lane, 0, event->sem, event->scope}};
}

static bool has_two_sides(const struct iris_cpu_event *event)
{
    return event->op == IRIS_OP_GET || event->op == IRIS_OP_PUT ||
           event->op == IRIS_OP_COPY;
}

/* Puts the values that the workgroup sees into memory. */
static void stage_side(struct iris_weak *weak, struct side *side,
                       const struct weak_how *how)
{
    char *newest = malloc(side->range.bytes);

    if (newest == NULL) {
        return;
    }
    memcpy(newest, side->memory, side->range.bytes);
    self.behind = read_range(weak->machine, &side->range, how, newest);
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
    const struct weak_how how = find_how(event);
    bool writes = event->write && !how.update;

    *side = find_side(weak, event);
    if (side->range.bytes == 0 || weak->newest) {
        return;
    }
    look_at(weak->machine, self.lane, &side->range, side->memory);
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
                      const struct side *side, bool reads, bool writes,
                      uint64_t written)
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
    iris_i_source_find(&(struct iris_caller){{event->site}}, &site.source);
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
    print_value(record, "wrote", writes, written);
    fprintf(record, "\told %u\t%s\t%s\t0x%llx\t%s\n",
            side != NULL ? self.behind : 0, text, place,
            (unsigned long long)site.source.offsets[0], site.source.file);
}

static void end_write(struct iris_weak *weak,
                      const struct iris_cpu_event *event, struct side *side,
                      const struct weak_how *how)
{
    uint64_t written = read_value(side);
    unsigned behind = 0;

    free(side->newest); /* the written value is newer */
    side->newest = NULL;
    if (how->update && !weak->newest) {
        acquire_word(weak->machine, &side->range, how);
    }
    if (!weak->newest) {
        behind = write_range(weak->machine, &side->range, how, side->memory);
    }
    self.behind = how->update ? self.behind : behind;
    note_deed(weak, event, side, how->update, true, written);
}

/* The write may overlap the bytes that were read. */
static void end_both(struct iris_weak *weak, const struct iris_cpu_event *event)
{
    struct side *from = &self.sides[0], *to = &self.sides[1];
    char *written = to->range.bytes == 0 ? NULL : malloc(to->range.bytes);
    const struct weak_how how = find_how(event);

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
    const struct weak_how how = find_how(event);
    struct iris_order_range word = side->range;

    if (has_two_sides(event)) {
        if (event->write) {
            end_both(weak, event);
        } else if (side->range.bytes != 0) {
            note_deed(weak, event, side, true, false, 0);
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
        if (!weak->newest) {
            acquire_word(weak->machine, &word, &how);
        }
        note_deed(weak, event, side, true, false, 0);
    }
}

static void pass_fence(struct iris_weak *weak,
                       const struct iris_cpu_event *event)
{
    const struct weak_how how = find_how(event);

    weak->machine->now += STEP;
    iris_i_order_tick(&weak->machine->order, self.lane);
    iris_i_order_fence(&weak->machine->order, &how.op);
    note_deed(weak, event, NULL, false, false, 0);
}

static void end_plain_access(struct iris_weak *weak)
{
    if (self.is_open) {
        self.is_open = false;
        self.open.after = 1;
        self.open.seen = read_value(&self.sides[self.open.write != 0]);
        end_access(weak, &self.open);
    }
}

/* A plain access under IRIS_CHECK=race, ahead of it; or the rest of a series, which
 * has the id of the access that began it, behind the accesses. */
static void note_plain(const struct iris_weak *weak,
                       const struct iris_cpu_event *event)
{
    struct side *side = &self.sides[event->write != 0];
    struct iris_cpu_event seen = *event;

    if (iris_i_weak_choices(weak->machine->schedule)->record == NULL) {
        return;
    }
    *side = find_side(weak, event);
    seen.seen = read_value(side);
    if (side->range.bytes != 0) {
        note_deed(weak, &seen, side, !event->write, event->write,
                  has_two_sides(event)
                      ? read_value(&self.sides[0])
                      : (event->id <= self.last_id ? seen.seen : event->value));
    }
    self.last_id = event->id > self.last_id ? event->id : self.last_id;
}

static iris_status_t observe_kernel(void *arg,
                                    const struct iris_cpu_event *event)
{
    struct iris_weak *weak = arg;
    struct iris_weak_schedule *schedule = weak->machine->schedule;
    bool is_access = event->op < IRIS_OP_OWN || event->op == IRIS_OP_WAIT;
    bool is_whole = weak->newest && iris_d_is_plain(event);

    if (self.slot == NULL) {
        return IRIS_OK;
    }
    iris_i_weak_lock(schedule);
    end_plain_access(weak);
    if (!event->after && event->id != self.id) {
        self.id = event->id;
        iris_i_weak_yield(schedule, self.slot, false);
    }
    iris_i_weak_enter_operation(self.slot, !event->after && !is_whole);
    if (is_whole) {
        if (!self.is_own && !event->after) {
            note_plain(weak, event);
        }
    } else if (!self.is_own && is_access && event->op != IRIS_OP_FENCE) {
        (event->after ? end_access : begin_access)(weak, event);
    } else if (!self.is_own && is_access && !event->after) {
        pass_fence(weak, event);
    }
    iris_i_weak_unlock(schedule);
    return IRIS_OK;
}

void iris_i_weak_plain(const struct iris_cpu_wg *cpu,
                       const struct iris_cpu_event *access)
{
    struct iris_weak *weak = self.weak;
    struct iris_cpu_event event = *access;

    if (self.slot == NULL || self.is_own || weak->newest ||
        !iris_i_race_place(weak->params.heap, &event)) {
        return;
    }
    event.kernel = cpu->kernel;
    event.workgroup = cpu->workgroup;
    event.launch = cpu->launch;
    self.num_plain += !access->after;
    event.id = UINT64_MAX - self.num_plain; /* other ids count up */
    (void)observe_kernel(weak, &event);
    self.is_open = !event.atomic && event.op != IRIS_OP_FENCE;
    self.open = event;
}

/* ---- Turns ---- */

static void enter_lane(struct iris_weak *weak, const struct iris_cpu_wg *cpu)
{
    struct iris_weak_machine *machine = weak->machine;
    struct iris_order_stream *stream;
    uint32_t lane;

    self.id = 0;
    self.last_id = 0;
    self.is_open = false;
    self.weak = weak;
    self.slot = iris_i_weak_enter(machine->schedule, cpu->rank, cpu->launch,
                                  cpu->workgroup, &self.is_own);
    if (self.is_own) { /* the model does not see its signals */
        machine->flushed = machine->now;
    } else if (self.slot != NULL) {
        stream = iris_i_order_find_run(&weak->host, cpu->launch);
        lane = stream == NULL ? 0
                              : iris_i_order_lane(&weak->host, stream,
                                                  cpu->launch, cpu->workgroup);
        self.lane = lane == 0 ? weak->host.lane : lane - 1;
        iris_i_weak_tell(iris_i_weak_choices(machine->schedule), "begins");
    }
}

/* The value that the wait's next poll sees. */
static void poll_again(struct iris_weak *weak)
{
    const struct weak_how how = {
        .atomic = true, .op = {self.lane, 0, IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM}};
    struct side *side = &self.sides[0];

    restore_side(side);
    iris_i_weak_yield(weak->machine->schedule, self.slot, true);
    if (side->range.bytes != 0 && !weak->newest) {
        look_at(weak->machine, self.lane, &side->range, side->memory);
        stage_side(weak, side, &how);
    }
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
        end_plain_access(weak);
        restore_side(&self.sides[0]);
        restore_side(&self.sides[1]);
        iris_i_weak_tell(iris_i_weak_choices(schedule), "leaves");
        iris_i_weak_exit(schedule, self.slot);
        self.slot = NULL;
    }
    iris_i_weak_unlock(schedule);
}

/* ---- Hosts ---- */

/* A call of all ranks is a meeting for the schedule, too. */
static void watch_host(void *arg, const struct iris_host_event *event)
{
    struct iris_weak *weak = arg;
    struct iris_weak_schedule *schedule = weak->machine->schedule;
    const struct iris_check_params *params = &weak->params;
    unsigned depth = weak->host.depth;

    iris_i_weak_lock(schedule);
    (void)iris_i_order_observe(&weak->host, event, 0);
    if (event->op == IRIS_HOST_KERNEL || event->op == IRIS_HOST_SYNCHRONIZE ||
        (event->op == IRIS_HOST_LAUNCH &&
         (!event->after || event->status != IRIS_OK))) {
        iris_i_weak_host_works(schedule, event,
                               event->stream == NULL ? params->default_stream
                                                     : event->stream);
    } else if (depth == 0 && weak->host.depth == 1 &&
               (event->group == NULL || params->group_size(event->group) ==
                                            params->heap->log->num_ranks)) {
        iris_i_weak_host_meets(schedule, event->rank, ++weak->meets);
    } else if (depth == 1 && weak->host.depth == 0) {
        iris_i_weak_host_meets(schedule, event->rank, 0);
    }
    iris_i_weak_unlock(schedule);
}

/* ---- Creating and destroying ---- */

static void drop_machine(struct iris_weak_machine *machine)
{
    if (machine == NULL) {
        return;
    }
    for (struct weak_cell *cell = machine->used; cell != NULL;
         cell = cell->next) {
        free(cell->writes);
        free(cell->looks);
    }
    iris_i_order_close(&machine->order);
    iris_i_weak_schedule_destroy(machine->schedule);
    free(machine);
}

static iris_status_t make_machine(const struct iris_check_params *params,
                                  bool newest,
                                  struct iris_weak_machine **machine_p)
{
    struct iris_weak_machine *machine = calloc(1, sizeof *machine);
    iris_status_t status;

    if (machine == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the weak mode");
    }
    status = iris_i_order_open_own(params->heap, sizeof(struct weak_cell),
                                   &machine->order);
    if (status == IRIS_OK) {
        status =
            iris_i_weak_schedule_create(params, newest, &machine->schedule);
    }
    if (status != IRIS_OK) {
        drop_machine(machine);
        return status;
    }
    /* With an age, an explorer's step would depend on all others. */
    machine->age =
        iris_i_weak_choices(machine->schedule)->explores ? 0 : AGE * STEP;
    machine->users = params->heap->log->num_ranks;
    *machine_p = machine;
    return IRIS_OK;
}

/* Rank 0 makes the machine, and the others get its place. */
static iris_status_t share_machine(struct iris_weak *weak)
{
    const struct iris_heap *heap = weak->params.heap;
    bool makes = heap->log->rank == 0;
    struct iris_order_place place = {.pid = getpid()};
    iris_status_t status =
        makes ? make_machine(&weak->params, weak->newest, &weak->machine)
              : IRIS_OK;

    place.number = (uintptr_t)weak->machine;
    status = iris_i_order_tell(heap->world, status, makes, &place);
    if (status == IRIS_OK) {
        if (place.pid != getpid()) {
            status = iris_i_fail(
                heap->log, IRIS_ERR_UNSUPPORTED,
                "%s wants all ranks in one process; start them with "
                "iris_spawn() and IRIS_SPAWN=threads",
                weak->newest ? "IRIS_SEED" : "IRIS_CHECK=weak");
        }
        status = iris_i_order_tell(heap->world, status, makes, &place);
    }
    if (status != IRIS_OK && makes) {
        drop_machine(weak->machine);
    }
    weak->machine = (struct iris_weak_machine *)(uintptr_t)place.number;
    return status;
}

iris_status_t iris_i_weak_create(const struct iris_check_params *params,
                                 bool newest, struct iris_weak **weak_p)
{
    struct iris_weak *weak = calloc(1, sizeof *weak);
    iris_status_t status;

    if (weak == NULL) {
        return iris_i_fail(params->heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory for the weak mode");
    }
    weak->params = *params;
    weak->newest = newest;
    status = share_machine(weak);
    if (status != IRIS_OK) {
        free(weak);
        return status;
    }
    iris_i_weak_lock(weak->machine->schedule);
    iris_i_order_open_host(&weak->host, &weak->machine->order, params);
    iris_i_weak_unlock(weak->machine->schedule);
    weak->observer.device = observe_kernel;
    weak->observer.takes_series = newest;
    weak->observer.host = watch_host;
    weak->observer.turn = take_turn;
    weak->observer.self = weak;
    *weak_p = weak;
    iris_i_race_watch_heaps(params->heap);
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
        iris_i_order_close_host(&weak->host);
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
