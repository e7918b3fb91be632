/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/check: the checks of `IRIS_CHECK`; observers.
 */
#ifndef IRIS_SRC_CHECK_INTERNAL_H
#define IRIS_SRC_CHECK_INTERNAL_H

#include <iris/status.h>
#include <iris/types.h>

#include "check/check.h"
#include "heap/heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- race_clock.c ---- */

/* A clock's users exclude each other: by the lock, or by the word's or lane's. */

/* The moment of a lane; NULL: the clock does not contain it. */
static inline struct iris_race_moment *
iris_i_race_moment(const struct iris_race_memory *memory,
                   const struct iris_race_clock *clock, uint32_t lane)
{
    return lane < clock->capacity ? &memory->arena[clock->at + lane] : NULL;
}

/* Adds the contents of `from`. For an edge that lacks something (`why` is not
 * 0), adds only loose moments. */
void iris_i_race_join(struct iris_race_memory *memory,
                      struct iris_race_clock *to,
                      const struct iris_race_clock *from, uint32_t why);

/* The same for one lane's moment. */
void iris_i_race_join_one(struct iris_race_memory *memory,
                          struct iris_race_clock *to, uint32_t lane,
                          uint32_t moment, uint32_t why);

/* Empties the clock, which keeps its room. */
void iris_i_race_clear(struct iris_race_memory *memory,
                       struct iris_race_clock *clock);

/* Gives its room back. */
void iris_i_race_free(struct iris_race_memory *memory,
                      struct iris_race_clock *clock);

/* A lane's own time, and its next time. A new time separates its operations so
 * far from the later ones. */
static inline uint32_t iris_i_race_now(const struct iris_race_memory *memory,
                                       uint32_t lane)
{
    const struct iris_race_moment *own =
        iris_i_race_moment(memory, &memory->shared->lanes[lane].clock, lane);

    return own == NULL ? 0 : own->strict;
}
void iris_i_race_tick(struct iris_race_memory *memory, uint32_t lane);

/* The number of an edge that lacks something; 0 if it lacks nothing. */
uint32_t iris_i_race_edge(struct iris_race_memory *memory,
                          const struct iris_race_edge *edge);

/* Whether the scope of an atomic by `lane` includes the other lane. */
bool iris_i_race_spans(const struct iris_race_shared *shared,
                       iris_scope_t scope, uint32_t lane, uint32_t other);

/* ---- race_shadow.c ---- */

/* A range of bytes on a rank's heap that is accessed. */
struct iris_race_range {
    int rank;
    size_t offset;
    size_t bytes;
};

/* Receives an access that races with an earlier one at `offset`. */
typedef void (*iris_race_tell_t)(void *arg,
                                 const struct iris_race_access *before,
                                 const struct iris_race_access *now, int rank,
                                 size_t offset);

/* Compares the access with the earlier ones and keeps it. All of its members
 * except the mask are set. Called by the thread that runs the access's lane, or
 * under the lock. `tell` takes no lock. */
void iris_i_race_touch(struct iris_race_memory *memory,
                       const struct iris_race_range *range,
                       const struct iris_race_access *access,
                       iris_race_tell_t tell, void *arg);

/* The latest plain write of the 8 bytes there; false: unknown. */
bool iris_i_race_last_plain(const struct iris_race_memory *memory, int rank,
                            size_t offset, struct iris_race_access *plain_p);

/* Removes all accesses to that range. */
void iris_i_race_forget(struct iris_race_memory *memory,
                        const struct iris_race_range *range);

/* ---- race_suppress.c ---- */

/* IRIS_CHECK_SUPPRESSIONS: a file of known races that are not reported. Each
 * line is `race:PATTERN`. The pattern may match any part of a report's lines
 * about the place and the two accesses; `*` matches any text. */

struct iris_log;
struct iris_race_story;

struct iris_race_suppression {
    char *pattern;
    unsigned line;
    bool used;
};

/* An empty list is all zero. */
struct iris_race_suppressions {
    struct iris_race_suppression *list;
    size_t count;
};

/* Reads the file; an empty path is allowed. Close *list_p in any case.
 * IRIS_ERR_CONFIG: the file cannot be read, or a line is malformed;
 * IRIS_ERR_NO_MEMORY. */
iris_status_t
iris_i_race_suppressions_open(const struct iris_log *log, const char *path,
                              struct iris_race_suppressions *list_p);
void iris_i_race_suppressions_close(struct iris_race_suppressions *list);

/* Whether a line of the file matches the race. The line then counts as used. */
bool iris_i_race_is_suppressed(const struct iris_race_suppressions *list,
                               const struct iris_race_story *story);

/* Warns about lines that were not used. */
void iris_i_race_tell_unused(const struct iris_race_suppressions *list,
                             const struct iris_log *log, const char *path);

/* ---- Race state ---- */

/* The state of one rank while it looks for races. */

/* Workgroups of a launch that are distinguished. Those whose ids differ by a
 * multiple of this count as one. */
#define IRIS_RACE_WGS 256

/* A collective call, by its group's number and its own number; number 0: no
 * call. */
struct iris_race_call {
    uint32_t group;
    uint64_t number;
};

/* A collective on a stream: the meeting by which others learn of this rank's
 * work, and the one by which this rank learns of theirs. */
struct iris_race_exchange {
    bool is_one;
    struct iris_race_call tells;
    struct iris_race_call hears;
};

/* The buffers of an enqueued collective. */
struct iris_race_buffers {
    const void *in;
    size_t in_bytes; /* 0: it reads no buffer, or an unknown one */
    const void *out;
    size_t out_bytes;
    uint32_t site; /* of the call */
};

/* Enqueued work. */
struct iris_race_work {
    uint64_t id; /* id of the host's event */
    enum iris_host_op op;
    uint32_t site; /* site of the call; 0: its kernel is the program's */
    struct iris_race_clock clock;       /* the host's clock at the call */
    struct iris_race_exchange exchange; /* the collective that it is part of */
    struct iris_race_buffers buffers;   /* buffers of its first kernel */
};

struct iris_race_stream {
    const void *stream;
    uint32_t number;              /* from 1 */
    struct iris_race_clock clock; /* clock of the finished work */
    uint64_t run;                 /* id of the running kernel; 0: none */
    bool shares_lanes;            /* it has more workgroups than lanes */
    uint32_t site;                /* site of the call that enqueued the
                                   * running work */
    struct iris_race_exchange exchange;
    struct iris_race_buffers buffers; /* buffers of the running kernel */
    uint32_t lanes[IRIS_RACE_WGS];    /* + 1 */
    struct iris_race_work *work;      /* first in, first out */
    size_t num_work;
    size_t capacity;
};

struct iris_race {
    uint64_t serial; /* number among the checkers of this process, from 1 */
    const struct iris_heap *heap;
    const void *default_stream;
    uint64_t (*group_key)(const void *group);
    const char *prefix;            /* prefix of the files of races; empty: no
                                    * files */
    const char *suppressions_path; /* empty: none */
    struct iris_race_suppressions suppressions;
    struct iris_observer observer;
    struct iris_race_memory memory;
    struct iris_race_sites sites;
    uint32_t host; /* its lane */
    struct iris_race_stream **streams;
    uint32_t num_streams;
    uint64_t calls[IRIS_RACE_GROUPS]; /* number of calls made */
    unsigned depth;                   /* number of nested collective calls in
                                       * progress */
    struct iris_race_call call;       /* the outermost one */
    bool
        allocates; /* a nested call allocates: fills that nobody enqueued belong
                     * to it */
    struct iris_race_exchange enqueuing;
    struct iris_race_buffers buffers; /* buffers for its first kernel */
    uint32_t outer;       /* site of the current call that may launch kernels */
    size_t free_bytes;    /* size of the allocation that is being freed */
    atomic_uint num_seen; /* races already considered for printing */
};

/* ---- race_report.c ---- */

/* The races found, each once, with the missing order and its place. */

/* iris_race_tell_t, with the struct iris_race as its argument. */
void iris_i_race_note(void *race, const struct iris_race_access *before,
                      const struct iris_race_access *now, int rank,
                      size_t offset);

/* Logs the races that this rank has found and not logged yet. The lock is not
 * held. */
void iris_i_race_print(struct iris_race *race);

#define IRIS_RACE_LINE_BYTES 160

/* The texts of a race. */
struct iris_race_story {
    char place[256];
    char accesses[2][320]; /* the earlier one, the later one */
    const char *missing;   /* "release" */
    char lack[320];        /* the necessary change */
};

/* May take about 10 ms. The lock is not held. */
void iris_i_race_tell(const struct iris_race *race,
                      const struct iris_race_found *found,
                      struct iris_race_story *story_p);

/* ---- race_lane.c ---- */

/* All under the lock. */

/* A lane + 1; 0: there are too many. */
uint32_t iris_i_race_add_lane(struct iris_race *race, uint32_t stream,
                              uint32_t workgroup);

/* The stream; NULL means the default one. Returns NULL without memory. */
struct iris_race_stream *iris_i_race_stream(struct iris_race *race,
                                            const void *stream);

/* The stream of a kernel's run; NULL: not found. */
struct iris_race_stream *iris_i_race_stream_of(const struct iris_race *race,
                                               uint64_t run);

/* The lane of a workgroup + 1; it begins after the stream's earlier work. 0:
 * there are too many. */
uint32_t iris_i_race_lane(struct iris_race *race,
                          struct iris_race_stream *stream, uint64_t run,
                          uint32_t workgroup);

/* The run has ended: its workgroups' operations happen before later work of the
 * stream. */
void iris_i_race_end_run(struct iris_race *race,
                         struct iris_race_stream *stream);

/* ---- race_device.c ---- */

/* The device function of an observer whose self is a struct iris_race. */
iris_status_t iris_i_race_device(void *race,
                                 const struct iris_cpu_event *event);

/* An access of the rank's host. The event's kernel is "". */
void iris_i_race_of_host(struct iris_race *race,
                         const struct iris_cpu_event *event);

/* ---- race_meet.c ---- */

/* All under the lock. */

/* The number of the group, which all members find by this key (not 0).
 * IRIS_RACE_GROUPS: there are too many. */
uint32_t iris_i_race_group(struct iris_race *race, uint64_t key);

/* The number that counts a group's calls on the host, or its calls on streams.
 * NULL: all ranks. */
uint32_t iris_i_race_group_of(struct iris_race *race, const void *group,
                              bool on_stream);

/* The number that counts the messages from one member to another. */
uint32_t iris_i_race_pair_of(struct iris_race *race, const void *group,
                             int from, int to);

/* This rank's next call of the group; IRIS_RACE_GROUPS: none. */
struct iris_race_call iris_i_race_next_call(struct iris_race *race,
                                            uint32_t group);

/* The meeting of a call. It replaces one of long ago. */
struct iris_race_meeting *
iris_i_race_meeting(struct iris_race *race, const struct iris_race_call *call);

/* ---- race_plain.c ---- */

/* From here to the end, this checker receives accesses by the process, too. */
void iris_i_race_plain_begin(struct iris_race *race);
void iris_i_race_plain_end(struct iris_race *race);

/* The calling thread's accesses outside kernels belong to this rank's host. */
void iris_i_race_plain_host(struct iris_race *race);

/* ---- weak_word.c ---- */

#define IRIS_WEAK_WORD_BYTES 8
#define IRIS_WEAK_LANES 64

/* The time of each lane that is known. */
struct iris_weak_clock {
    uint32_t of[IRIS_WEAK_LANES];
};

/* The time up to which one lane released at one scope. */
struct iris_weak_edge {
    int rank;
    unsigned workgroup;
    unsigned lane;
    iris_scope_t scope;
    struct iris_weak_clock clock;
};

/* The release of a write: the edges of its own lane, and those of the writes
 * before it in a chain of updates. */
struct iris_weak_release {
    unsigned users;
    unsigned count;
    struct iris_weak_edge edges[];
};

struct iris_weak_write {
    uint64_t time;
    uint64_t value;
    uint64_t mask; /* bit mask of the bytes that it writes */
    uint32_t clock;
    uint8_t lane;
    bool atomic;
    iris_scope_t scope;
    int rank;
    unsigned workgroup;
    struct iris_weak_release *release; /* NULL: it does not release */
};

/* A lane has seen the word's state at that time. */
struct iris_weak_look {
    uint64_t time;
    uint64_t mask;
    uint32_t clock;
    uint8_t lane;
};

struct iris_weak_cell {
    uint64_t key;  /* 0: free */
    uint64_t base; /* value before all writes */
    struct iris_weak_write *writes;
    struct iris_weak_look *looks;
    unsigned num_writes, max_writes;
    unsigned num_looks, max_looks;
};

struct iris_weak_words {
    struct iris_weak_cell *cells;
    size_t num_cells, max_cells;
    uint64_t now;     /* number of accesses so far */
    uint64_t age;     /* a write is old after this number of accesses; 0:
                       * never */
    uint64_t flushed; /* all writes up to this time are old */
    bool blind;       /* memory ran out */
};

void iris_i_weak_words_close(struct iris_weak_words *words);

/* The word with that key, which is not 0; NULL: unknown, or there is no memory
 * for it. */
struct iris_weak_cell *iris_i_weak_find(const struct iris_weak_words *words,
                                        uint64_t key);
struct iris_weak_cell *iris_i_weak_word(struct iris_weak_words *words,
                                        uint64_t key);

/* The word's value at `time`. */
uint64_t iris_i_weak_value(const struct iris_weak_cell *cell, uint64_t time);

/* Whether all lanes see a write of that time. */
bool iris_i_weak_is_old(const struct iris_weak_words *words, uint64_t time);

/* Drops writes whose successors all lanes have seen. */
void iris_i_weak_prune(const struct iris_weak_words *words,
                       struct iris_weak_cell *cell);

/* Drops all of them. */
void iris_i_weak_forget(struct iris_weak_cell *cell);

/* Makes room for one more write and look; false: no memory. */
bool iris_i_weak_room(struct iris_weak_words *words,
                      struct iris_weak_cell *cell);

/* Drops one reference; `release` may be NULL. */
void iris_i_weak_drop(struct iris_weak_release *release);

/* ---- race_file.c ---- */

/* The files of races: <prefix>_races.json, and <prefix>_races.sarif for code
 * hosts and editors. */

/* Writes both, with all races; a warning if it cannot. */
void iris_i_race_write_file(const struct iris_race *race);

/* ---- race_host.c ---- */

/* The host function of an observer whose self is a struct iris_race. */
void iris_i_race_host(void *race, const struct iris_host_event *event);

/* ---- race_known.c ---- */

/* Numbers that a thread has learned under the lock: those of its workgroup's
 * lane and of sites. With them it checks plain accesses without the lock. */

/* Learns the lane of the event's workgroup. No other thread runs it
 * meanwhile. */
void iris_i_race_learn_lane(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t lane);
void iris_i_race_learn_site(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t site);

/* False: the thread has not learned both. */
bool iris_i_race_knows(const struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t *lane_p,
                       uint32_t *site_p);

/* ---- race_stream.c ---- */

/* All under the lock. */

struct iris_race_clock *iris_i_race_host_clock(const struct iris_race *race);

/* The part of a heap that the range covers; false: it is on no heap. */
bool iris_i_race_range_of(const struct iris_race *race, const void *address,
                          size_t bytes, struct iris_race_range *range_p);

/* An access by a host call, or by its work on a stream. */
void iris_i_race_touch_by(struct iris_race *race,
                          const struct iris_race_range *range, uint32_t lane,
                          uint32_t site, unsigned kind);

/* Before a launch, copy or fill, and after one that failed. */
void iris_i_race_enqueue(struct iris_race *race,
                         const struct iris_host_event *event);
void iris_i_race_call_off(struct iris_race *race,
                          const struct iris_host_event *event);
void iris_i_race_enqueue_collective(struct iris_race *race,
                                    const struct iris_host_event *event,
                                    uint32_t site);

/* The commands that a stream's thread runs. */
void iris_i_race_run_kernel(struct iris_race *race,
                            const struct iris_host_event *event);
void iris_i_race_run_copy(struct iris_race *race,
                          const struct iris_host_event *event);
void iris_i_race_pass_mark(struct iris_race *race,
                           const struct iris_host_event *event);

/* ---- race_sync.c ---- */

/* An atomic or a fence of a lane. */
struct iris_race_atomic {
    struct iris_race_word *word; /* iris_i_race_word() */
    uint32_t lane;
    uint32_t site;
    int rank; /* whose word */
    size_t offset;
    size_t bytes;
    iris_sem_t sem;
    iris_scope_t scope;
    uint64_t id;   /* number of the operation in its lane */
    bool foreseen; /* before a write: its value is known */
    uint64_t value;
};

/* The word at that place; `make`: creates it. NULL: not found. */
struct iris_race_word *iris_i_race_word(struct iris_race_memory *memory,
                                        int rank, size_t offset, bool make);

/* The following are called by the thread that runs the lane, or under the
 * lock. */

/* Before a write or update: records its release. */
void iris_i_race_write(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic);

/* After it: the word's new value (one of two if it is unknown), and the value
 * that an update saw. An update continues the release of the write that it
 * saw. */
void iris_i_race_written(struct iris_race_memory *memory,
                         const struct iris_race_atomic *atomic,
                         const uint64_t values[2], const uint64_t *seen);

/* After a compare-and-swap that failed: there was no write. */
void iris_i_race_unwritten(struct iris_race_memory *memory,
                           const struct iris_race_atomic *atomic);

/* After a read, or the read of an update: acquires the release of the value's
 * writer. */
void iris_i_race_read(struct iris_race_memory *memory,
                      const struct iris_race_atomic *atomic, uint64_t seen);

void iris_i_race_fence(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic);

/* ---- weak_model.c ---- */

struct iris_weak_model;

/* A place on a rank's heap. */
struct iris_weak_range {
    int rank;
    size_t offset;
    size_t bytes;
};

/* The order and scope of an access or fence. */
struct iris_weak_how {
    bool atomic;
    bool update; /* the read of an atomic that also writes */
    iris_sem_t sem;
    iris_scope_t scope;
};

/* Chooses one of `count` results, from 0 to count - 1; 0 is the newest. */
struct iris_weak_chooser {
    unsigned (*choose)(void *arg, unsigned count);
    void *arg;
};

/* All lanes see a write at the latest `age` steps after it; 0: possibly never.
 * NULL: no memory. */
struct iris_weak_model *
iris_i_weak_model_create(struct iris_weak_chooser chooser, uint64_t age);
void iris_i_weak_model_destroy(struct iris_weak_model *model);

/* The lane begins and ends. It begins with the clock of its rank's host, and
 * adds its own clock to the host's at its end. `lane` < IRIS_WEAK_LANES. */
void iris_i_weak_begin(struct iris_weak_model *model, unsigned lane, int rank,
                       unsigned workgroup);
void iris_i_weak_end(struct iris_weak_model *model, unsigned lane);

/* A rank's host enters the group's call with this number, which orders all
 * members' hosts, and returns from it. */
void iris_i_weak_come(struct iris_weak_model *model, int rank, uint64_t group,
                      uint64_t number);
void iris_i_weak_leave(struct iris_weak_model *model, int rank, uint64_t group,
                       uint64_t number);

/* All lanes see all earlier writes. */
void iris_i_weak_flush(struct iris_weak_model *model);

/* Before any access of the lane: the current contents of memory. If memory was
 * written without the model, all lanes see that write. */
void iris_i_weak_look(struct iris_weak_model *model, unsigned lane,
                      const struct iris_weak_range *range, const void *memory);

/* A read: *seen gets the value that the lane sees, range->bytes long. Each
 * aligned word of 8 bytes is seen as a whole. Returns the number of writes that
 * are newer than the oldest word seen. */
unsigned iris_i_weak_read(struct iris_weak_model *model, unsigned lane,
                          const struct iris_weak_range *range,
                          const struct iris_weak_how *how, void *seen);

/* The latest read of that word acquires the release of its writer. */
void iris_i_weak_acquire(struct iris_weak_model *model, unsigned lane,
                         const struct iris_weak_range *range,
                         const struct iris_weak_how *how);

/* Call this after a write. */
void iris_i_weak_write(struct iris_weak_model *model, unsigned lane,
                       const struct iris_weak_range *range,
                       const struct iris_weak_how *how, const void *written);

void iris_i_weak_fence(struct iris_weak_model *model, unsigned lane,
                       const struct iris_weak_how *how);

/* ---- weak_schedule.c ---- */

struct iris_weak_schedule;
struct iris_weak_slot;

struct iris_weak_schedule_params {
    int num_ranks;
    unsigned threads; /* workgroups of one kernel that run at once */
    struct iris_weak_choices_params choices;
};

/* A run of a kernel. */
struct iris_weak_run {
    uint64_t id;
    unsigned grid;
    bool is_own; /* a kernel of the library */
};

/* IRIS_ERR_NO_MEMORY, and the statuses of iris_i_weak_choices_open(). */
iris_status_t
iris_i_weak_schedule_create(const struct iris_weak_schedule_params *params,
                            struct iris_weak_schedule **schedule_p);
void iris_i_weak_schedule_destroy(struct iris_weak_schedule *schedule);

/* Held around all calls below. */
void iris_i_weak_lock(struct iris_weak_schedule *schedule);
void iris_i_weak_unlock(struct iris_weak_schedule *schedule);

/* The choices, under the lock. */
struct iris_weak_choices *
iris_i_weak_choices(struct iris_weak_schedule *schedule);

/* Operations of a rank's host: no workgroup is chosen while it may still add
 * work. */
void iris_i_weak_enqueued(struct iris_weak_schedule *schedule, int rank,
                          const void *stream, int by);
void iris_i_weak_run_begins(struct iris_weak_schedule *schedule, int rank,
                            const void *stream,
                            const struct iris_weak_run *run);
void iris_i_weak_run_ends(struct iris_weak_schedule *schedule, int rank,
                          uint64_t run);
/* The host waits for the stream; NULL: it no longer waits. */
void iris_i_weak_host_waits(struct iris_weak_schedule *schedule, int rank,
                            const void *stream);
/* The host is in a call that all ranks make, the rank's `number`th; 0: it has
 * returned. */
void iris_i_weak_host_meets(struct iris_weak_schedule *schedule, int rank,
                            uint64_t number);
/* The host makes no more calls. */
void iris_i_weak_host_left(struct iris_weak_schedule *schedule, int rank);

/* A workgroup's thread enters, and returns when it is its turn; gives others a
 * turn; leaves. NULL: no memory, so it runs with the others. *is_own_p: the
 * kernel is the library's. */
struct iris_weak_slot *iris_i_weak_enter(struct iris_weak_schedule *schedule,
                                         int rank, uint64_t run,
                                         unsigned workgroup, bool *is_own_p);
void iris_i_weak_yield(struct iris_weak_schedule *schedule,
                       struct iris_weak_slot *slot, bool polls);
void iris_i_weak_exit(struct iris_weak_schedule *schedule,
                      struct iris_weak_slot *slot);

/* NULL: none. */
struct iris_weak_who iris_i_weak_who(const struct iris_weak_slot *slot);

/* Whether there is no workgroup. */
bool iris_i_weak_is_idle(const struct iris_weak_schedule *schedule);

/* ---- Weak state ---- */

/* The state of a rank in the weak mode. */

#define IRIS_WEAK_GROUPS 64

/* The state that all ranks share. */
struct iris_weak_machine {
    struct iris_weak_schedule *schedule;
    struct iris_weak_model *model;
    int users; /* under the schedule's lock */
};

struct iris_weak {
    struct iris_weak_params params;
    struct iris_observer observer;
    struct iris_weak_machine *machine;
    int depth; /* number of nested collective calls in progress */
    uint64_t meets;
    struct {
        uint64_t key;
        uint64_t calls;
    } groups[IRIS_WEAK_GROUPS];
    uint64_t group, number; /* those of the call in progress */
};

/* ---- weak_host.c ---- */

/* The host function of an observer whose self is a struct iris_weak. */
void iris_i_weak_host(void *weak, const struct iris_host_event *event);

/* ---- weak_note.c ---- */

/* An operation of a kernel, after its execution. */
struct iris_weak_deed {
    const struct iris_weak_range *range; /* NULL: a fence */
    bool reads;
    bool writes;
    uint64_t seen;    /* the value read, at most 8 bytes; else 0 */
    uint64_t written; /* the value written, at most 8 bytes; else 0 */
    unsigned behind;  /* number of writes newer than the value read */
};

/* Adds a line to the recorded schedule, if it is recorded. Under the schedule's
 * lock. */
void iris_i_weak_note(const struct iris_weak *weak,
                      const struct iris_cpu_event *event,
                      const struct iris_weak_deed *deed);

#endif /* IRIS_SRC_CHECK_INTERNAL_H */
