/* SPDX-License-Identifier: MIT
 *
 * iris trace order: finds accesses of kernels that nothing orders, in traces of
 * GPUs and CPUs.
 *
 * A lane is a workgroup between two calls that synchronize its rank's stream. Its
 * clock has, for each other lane, the time up to which that lane's operations
 * happen before its next one, and one time for all lanes. An atomic write releases
 * to its word; a wait that held, and an atomic read, acquire from the write of the
 * value that they saw. A trace lacks fences, orders of untraced kernels, streams and
 * hosts, so that any order that is not known counts as order:
 *
 * - Every atomic releases and acquires at system scope, and a write passes on the
 *   releases of earlier writes of its word.
 * - A value that no traced write has left acquires from all lanes, up to that time.
 * - A kernel begins after all operations that had begun when it was launched, or, if
 *   its stream waits for other ranks, when the first of its operations began.
 * - Ranks' clocks differ by up to `error_ns`: a value of which there is another
 *   write so near counts as one of nobody.
 *
 * A trace of a GPU does not say which launch an operation belongs to. If there are
 * several launches on one stream between two synchronizations, all their workgroups
 * count as one lane, and an operation is behind all that had begun at the latest
 * launch before it. If streams wait or are several, or for graphs, the operations are
 * left out.
 */
#include "config.h"

#include "iris.h"
#include "trace.h"
#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MIN
#define MOST_RACES 20
#define MOST_RANKS 4096
#define MOST_BYTES (UINT64_C(1) << 60) /* of heaps: sums fit */
#define KEPT_WRITES 64   /* writes of a word that have their clocks */
#define KEPT_ACCESSES 64 /* of a granule */
#define MOST_GRANULES ((uint64_t)1 << 18)

struct part {
    uint32_t lane;
    int64_t ns;
};

struct clock {
    int64_t all; /* of all lanes */
    size_t count;
    struct part *parts; /* sorted by lane */
};

/* The operations of a workgroup between two synchronizations. */
struct lane {
    struct clock clock;
};

struct operation {
    const char *name, *kernel; /* kept by the list of names */
    int rank, target;
    int64_t workgroup;
    int64_t begin_ns, end_ns;
    uint64_t address, offset, bytes, value;
    bool is_atomic, reads, writes, acquires, acquires_all, is_update;
    int64_t lane_key; /* equal for one lane of a segment */
    uint32_t lane;
    size_t segment;   /* of its rank */
    int64_t wrote_ns; /* when the lane had written the place before */
};

/* A moment of an operation: its begin, or its end if it acquires; or a launch. */
struct moment {
    int64_t ns;
    size_t operation; /* for a launch: the lane */
    enum { ENDS, IS_LAUNCHED, BEGINS } kind;
};

/* A word that atomics write: its writes in the order of their begins. */
struct word {
    int rank;
    uint64_t offset;
    size_t *writes;
    struct clock *clocks; /* those that the latest ones released */
    size_t count, done;
    struct clock released; /* the join of them */
};

/* A call of the host. */
struct call {
    int rank;
    int64_t begin_ns, end_ns;
    enum { SYNCHRONIZES, LAUNCHES, WAITS } kind;
    bool is_graph;
    uint64_t stream;
    size_t segment;
};

/* The time of a rank from the first call behind a synchronization on. */
struct segment {
    int rank;
    int64_t begin_ns;    /* between the two calls */
    int64_t launched_ns; /* earlier operations happen before its kernel */
    int64_t first_ns;    /* the begin of its first operation */
    int num_launches;
    bool waits;    /* its kernel may begin behind work of other ranks */
    bool is_mixed; /* kernels may run at once */
    size_t lane;   /* the last lane of its operations + 1; 0: none */
};

struct granule {
    size_t *accesses;
    size_t count;
};

struct ordering {
    struct trace_figures figures;
    char **names;
    size_t num_names;
    struct operation *operations;
    size_t count, num_left;
    struct call *calls;
    size_t num_calls;
    struct segment *segments;
    size_t num_segments;
    struct lane *lanes;
    uint32_t num_lanes;
    struct moment *moments;
    size_t num_moments;
    struct word *words;
    size_t num_words;
    struct granule *granules; /* of each rank */
    uint64_t num_granules, granule_bytes;
    int num_ranks;
    int64_t error_ns;
    bool has_strangers; /* there are writes that no operation tells */
    struct race {
        size_t first, second;
        int64_t
            known_ns; /* the latest time of the writer that the reader knew */
    } races[MOST_RACES];
    int num_races;
    bool no_memory;
};

/* ---- Clocks ---- */

static int64_t get_part(const struct clock *clock, uint32_t lane)
{
    size_t low = 0, high = clock->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (clock->parts[middle].lane < lane) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < clock->count && clock->parts[low].lane == lane
               ? clock->parts[low].ns
               : NEVER;
}

static void join_clock(struct ordering *o, struct clock *to,
                       const struct clock *from)
{
    struct part *parts = malloc((to->count + from->count + 1) * sizeof *parts);
    size_t i = 0, j = 0, count = 0;

    if (parts == NULL) {
        o->no_memory = true;
        return;
    }
    while (i < to->count || j < from->count) {
        struct part one;

        if (j == from->count ||
            (i < to->count && to->parts[i].lane < from->parts[j].lane)) {
            one = to->parts[i++];
        } else if (i == to->count || from->parts[j].lane < to->parts[i].lane) {
            one = from->parts[j++];
        } else {
            one = to->parts[i++];
            one.ns = one.ns > from->parts[j].ns ? one.ns : from->parts[j].ns;
            j++;
        }
        parts[count++] = one;
    }
    free(to->parts);
    to->parts = parts;
    to->count = count;
    to->all = to->all > from->all ? to->all : from->all;
}

static void join_time(struct clock *clock, int64_t ns)
{
    clock->all = clock->all > ns ? clock->all : ns;
}

static void free_clock(struct clock *clock)
{
    free(clock->parts);
    *clock = (struct clock){.all = NEVER};
}

/* ---- Reading ---- */

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* The text, kept until the end; NULL without memory. */
static const char *keep_name(struct ordering *o, const char *text)
{
    size_t i = 0;
    char **name;

    while (i < o->num_names && strcmp(o->names[i], text) != 0) {
        i++;
    }
    if (i < o->num_names) {
        return o->names[i];
    }
    name = iris_i_grow(&o->names, &o->num_names, sizeof *name);
    if (name == NULL) {
        return NULL;
    }
    *name = strdup(text);
    o->num_names -= *name == NULL;
    return *name;
}

/* Describes the operation; false: it neither orders nor accesses memory. */
static bool describe_operation(struct operation *one,
                               const struct iris_event *event)
{
    const char *name = event->name;

    one->is_update = begins_with(name, "atomic_");
    if (strcmp(name, "barrier") == 0 ||
        strcmp(name, "workgroup collective") == 0) {
        one->acquires_all = event->ph == 'X';
        return true;
    }
    if (strcmp(name, "wait") == 0) {
        one->reads = one->acquires = event->held != 0;
        one->is_atomic = true;
    } else if (strcmp(name, "load") == 0 || strcmp(name, "get") == 0) {
        one->reads = true;
        one->acquires = one->is_atomic;
    } else if (strcmp(name, "store") == 0 || strcmp(name, "put") == 0 ||
               strcmp(name, "copy") == 0) {
        one->writes = true;
    } else if (one->is_update) {
        one->writes = one->acquires = one->is_atomic = true;
    }
    return (one->reads || one->writes) && one->target >= 0 &&
           one->target < MOST_RANKS && one->offset < MOST_BYTES &&
           one->bytes != 0 && one->bytes < MOST_BYTES;
}

static int add_operation(struct ordering *o, const struct iris_event *event)
{
    struct operation one = {.name = keep_name(o, event->name),
                            .kernel = keep_name(o, event->kernel),
                            .rank = event->pid,
                            .target = event->target_rank,
                            .workgroup = event->program_id,
                            .begin_ns = event->ts_ns,
                            .end_ns = event->ts_ns + event->dur_ns,
                            .address = event->address,
                            .offset = event->offset,
                            .bytes = event->payload,
                            .value = event->value,
                            .is_atomic = event->atomic || event->signal,
                            .wrote_ns = NEVER};
    struct operation *kept;

    /* The library's own kernels order their accesses. */
    if (begins_with(event->kernel, "iris_") ||
        !describe_operation(&one, event)) {
        return 0;
    }
    kept = iris_i_grow(&o->operations, &o->count, sizeof one);
    if (kept == NULL || one.name == NULL || one.kernel == NULL) {
        return trace_fail_memory();
    }
    *kept = one;
    o->num_ranks = one.rank >= o->num_ranks ? one.rank + 1 : o->num_ranks;
    o->num_ranks = one.target >= o->num_ranks ? one.target + 1 : o->num_ranks;
    return 0;
}

/* Whether work of the library that the call enqueues may wait for other ranks. */
static bool may_wait(const struct iris_event *event)
{
    static const char *const local[] = {
        "launch iris_k_fill", "launch iris_k_copy", "launch iris_k_transfer",
        "launch iris_k_trace", "launch iris_k_signal"};

    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++) {
        if (begins_with(event->name, local[i])) {
            return false;
        }
    }
    return strcmp(event->name, "wait on stream") == 0 ||
           strcmp(event->name, "device barrier") == 0 ||
           begins_with(event->name, "launch iris_") ||
           event->members[0] != '\0';
}

static int add_host_call(struct ordering *o, const struct iris_event *event)
{
    struct call one = {.rank = event->pid,
                       .begin_ns = event->ts_ns,
                       .end_ns = event->ts_ns + event->dur_ns,
                       .kind = WAITS,
                       .is_graph = strcmp(event->name, "graph launch") == 0,
                       .stream = event->stream};
    struct call *kept;

    if (strcmp(event->name, "synchronize") == 0) {
        one.kind = SYNCHRONIZES;
    } else if (one.is_graph || (begins_with(event->name, "launch ") &&
                                !begins_with(event->name, "launch iris_"))) {
        one.kind = LAUNCHES;
    } else if (strcmp(event->name, "signal on stream") == 0) {
        o->has_strangers = true;
    } else if (!may_wait(event)) {
        return 0;
    }
    kept = iris_i_grow(&o->calls, &o->num_calls, sizeof one);
    if (kept == NULL) {
        return trace_fail_memory();
    }
    *kept = one;
    return 0;
}

static int take_ordered(void *arg, const struct iris_event *event)
{
    struct ordering *o = arg;

    if (event->pid < 0 || event->pid >= MOST_RANKS ||
        (event->ph != 'X' && event->ph != 'i')) {
        return 0;
    }
    if (strcmp(event->cat, "iris") == 0) {
        return add_operation(o, event);
    }
    return strcmp(event->cat, "iris_host") == 0 ? add_host_call(o, event) : 0;
}

/* ---- Segments and lanes ---- */

static int compare_calls(const void *left, const void *right)
{
    const struct call *a = left, *b = right;

    return a->rank != b->rank ? a->rank - b->rank
                              : IRIS_COMPARE(a->begin_ns, b->begin_ns);
}

/* Whether kernels of the rank whose calls begin there use several streams. */
static bool has_streams(const struct ordering *o, size_t at)
{
    const struct call *first = NULL;

    for (size_t i = at;
         i < o->num_calls && o->calls[i].rank == o->calls[at].rank; i++) {
        const struct call *call = &o->calls[i];

        if (call->kind == LAUNCHES && first != NULL &&
            first->stream != call->stream) {
            return true;
        }
        first = call->kind == LAUNCHES ? call : first;
    }
    return false;
}

static struct segment *add_segment(struct ordering *o, int rank, int64_t ns)
{
    struct segment *segment =
        iris_i_grow(&o->segments, &o->num_segments, sizeof *segment);

    if (segment == NULL) {
        (void)trace_fail_memory();
        return NULL;
    }
    *segment = (struct segment){.rank = rank,
                                .begin_ns = ns,
                                .launched_ns = NEVER,
                                .first_ns = INT64_MAX};
    return segment;
}

static int find_segments(struct ordering *o)
{
    struct segment *now = NULL;
    bool is_new = true, several = false;

    iris_i_sort(o->calls, o->num_calls, sizeof *o->calls, compare_calls);
    for (size_t i = 0; i < o->num_calls; i++) {
        const struct call *call = &o->calls[i], *before = call - 1;

        if (i == 0 || call->rank != before->rank) {
            now = add_segment(o, call->rank, NEVER);
            several = has_streams(o, i);
            is_new = false;
        } else if (is_new && call->kind != SYNCHRONIZES) {
            now = add_segment(o, call->rank,
                              before->end_ns +
                                  (call->begin_ns - before->end_ns) / 2);
            is_new = false;
        }
        if (now == NULL) {
            return -1;
        }
        is_new = is_new || call->kind == SYNCHRONIZES;
        o->calls[i].segment = (size_t)(now - o->segments);
        now->waits |= call->kind == WAITS;
        now->is_mixed |= several || call->is_graph;
        if (call->kind == LAUNCHES && now->num_launches++ == 0) {
            now->launched_ns = call->begin_ns;
        }
    }
    return 0;
}

/* Whether the lanes of its operations are known. */
static bool is_clear(const struct segment *segment)
{
    return !segment->is_mixed &&
           (segment->num_launches == 1 ||
            (segment->num_launches > 1 && !segment->waits));
}

/* The segment of the operation; SIZE_MAX: its lane is not known. */
static size_t find_segment(const struct ordering *o,
                           const struct operation *one)
{
    size_t low = 0, high = o->num_segments;

    while (low < high) { /* the first one behind it */
        size_t middle = low + (high - low) / 2;
        const struct segment *segment = &o->segments[middle];

        if (segment->rank < one->rank || (segment->rank == one->rank &&
                                          segment->begin_ns <= one->begin_ns)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && o->segments[low - 1].rank == one->rank &&
                   is_clear(&o->segments[low - 1])
               ? low - 1
               : SIZE_MAX;
}

static int compare_lanes(const void *left, const void *right)
{
    const struct operation *a = left, *b = right;

    int order = IRIS_COMPARE(a->segment, b->segment);

    order = order != 0 ? order : IRIS_COMPARE(a->lane_key, b->lane_key);
    return order != 0 ? order : IRIS_COMPARE(a->begin_ns, b->begin_ns);
}

/* Leaves out operations without a lane. */
static void find_known(struct ordering *o)
{
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++) {
        struct operation *one = &o->operations[i];
        struct segment *segment;

        one->segment = find_segment(o, one);
        if (one->segment == SIZE_MAX) {
            continue;
        }
        segment = &o->segments[one->segment];
        segment->first_ns = one->begin_ns < segment->first_ns
                                ? one->begin_ns
                                : segment->first_ns;
        one->lane_key = segment->num_launches == 1 ? one->workgroup : 0;
        o->operations[kept++] = *one;
    }
    o->num_left = o->count - kept;
    o->has_strangers |= o->num_left != 0;
    o->count = kept;
}

static int find_lanes(struct ordering *o)
{
    find_known(o);
    iris_i_sort(o->operations, o->count, sizeof *o->operations, compare_lanes);
    o->lanes = calloc(o->count + 1, sizeof *o->lanes);
    if (o->lanes == NULL) {
        return trace_fail_memory();
    }
    for (size_t i = 0; i < o->count; i++) {
        struct operation *one = &o->operations[i];
        const struct operation *before = one - 1;
        struct segment *segment = &o->segments[one->segment];

        if (i == 0 || before->segment != one->segment ||
            before->lane_key != one->lane_key) {
            o->lanes[o->num_lanes++].clock.all =
                (segment->waits ? segment->first_ns : segment->launched_ns) +
                o->error_ns;
        }
        one->lane = o->num_lanes - 1;
        segment->lane = o->num_lanes;
    }
    return 0;
}

/* ---- Words ---- */

static int compare_words(const void *left, const void *right)
{
    const struct word *a = left, *b = right;

    return a->rank != b->rank ? a->rank - b->rank
                              : IRIS_COMPARE(a->offset, b->offset);
}

/* The word that others have written by atomics; NULL: nobody has. */
static struct word *find_word(const struct ordering *o,
                              const struct operation *one)
{
    const struct word key = {.rank = one->target, .offset = one->offset};

    return o->num_words == 0 ? NULL
                             : bsearch(&key, o->words, o->num_words, sizeof key,
                                       compare_words);
}

/* Lists the words, each once, and their writes. The moments are sorted. */
static int find_words(struct ordering *o)
{
    size_t kept = 0;

    o->words = calloc(o->count + 1, sizeof *o->words);
    if (o->words == NULL) {
        return trace_fail_memory();
    }
    for (size_t i = 0; i < o->count; i++) {
        const struct operation *one = &o->operations[i];

        if (one->is_atomic && one->writes) {
            o->words[o->num_words].rank = one->target;
            o->words[o->num_words++].offset = one->offset;
        }
    }
    qsort(o->words, o->num_words, sizeof *o->words, compare_words);
    for (size_t i = 0; i < o->num_words; i++) {
        if (kept == 0 ||
            compare_words(&o->words[kept - 1], &o->words[i]) != 0) {
            o->words[kept++] = o->words[i];
        }
    }
    o->num_words = kept;
    for (size_t i = 0; i < o->num_moments; i++) {
        size_t number = o->moments[i].operation;
        const struct operation *one = &o->operations[number];
        struct word *word;
        size_t *write;

        if (o->moments[i].kind != BEGINS || !one->is_atomic || !one->writes) {
            continue;
        }
        word = find_word(o, one);
        write = iris_i_grow(&word->writes, &word->count, sizeof *write);
        if (write == NULL) {
            return trace_fail_memory();
        }
        *write = number;
    }
    return 0;
}

/* Whether two words are equal, as far as both have bytes. */
static bool is_value(const struct operation *write,
                     const struct operation *read)
{
    uint64_t bytes = write->bytes < read->bytes ? write->bytes : read->bytes;
    uint64_t mask = bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;

    return ((write->value ^ read->value) & mask) == 0;
}

/* Whether a write that has not had its turn may have come before the read, as the
 * clocks of ranks differ. */
static bool is_unsure(const struct ordering *o, const struct word *word,
                      const struct operation *read)
{
    for (size_t i = word->done; i < word->count; i++) {
        const struct operation *write = &o->operations[word->writes[i]];

        if (write->begin_ns > read->end_ns + o->error_ns) {
            return false;
        }
        if (read->is_update || is_value(write, read)) {
            return true;
        }
    }
    return false;
}

/* The clock that the read acquires; NULL: it does not follow from the trace. */
static const struct clock *find_release(const struct ordering *o,
                                        const struct word *word,
                                        const struct operation *read)
{
    if (o->error_ns != 0 && is_unsure(o, word, read)) {
        return NULL;
    }
    if (read->is_update) { /* the value that it saw is not in the trace */
        return o->has_strangers ? NULL : &word->released;
    }
    for (size_t i = word->done; i-- > 0 && word->done - i <= KEPT_WRITES;) {
        if (is_value(&o->operations[word->writes[i]], read)) {
            return &word->clocks[i % KEPT_WRITES];
        }
    }
    return NULL;
}

/* Heaps begin with zeros: nobody has written those. */
static bool is_first_value(const struct ordering *o, const struct word *word,
                           const struct operation *read)
{
    return !o->has_strangers && (word == NULL || word->done == 0) &&
           read->value == 0 && !read->is_update;
}

static void acquire_word(struct ordering *o, const struct operation *read)
{
    struct clock *clock = &o->lanes[read->lane].clock;
    const struct word *word = find_word(o, read);
    const struct clock *released =
        word == NULL ? NULL : find_release(o, word, read);

    if (released != NULL) {
        join_clock(o, clock, released);
    } else if (!is_first_value(o, word, read)) {
        join_time(clock, read->end_ns + o->error_ns);
    }
}

static void release_word(struct ordering *o, const struct operation *write)
{
    const struct part own = {write->lane, write->begin_ns};
    const struct clock now = {.all = NEVER, .count = 1, .parts = (void *)&own};
    struct word *word = find_word(o, write);
    struct clock *kept;

    if (word->clocks == NULL) {
        word->clocks = calloc(KEPT_WRITES, sizeof *word->clocks);
        word->released.all = NEVER;
    }
    if (word->clocks == NULL) {
        o->no_memory = true;
        return;
    }
    join_clock(o, &word->released, &o->lanes[write->lane].clock);
    join_clock(o, &word->released, &now);
    kept = &word->clocks[word->done++ % KEPT_WRITES];
    free_clock(kept);
    join_clock(o, kept, &word->released);
}

/* ---- Accesses ---- */

static bool have_common(const struct operation *a, const struct operation *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static bool is_before(const struct ordering *o, const struct operation *a,
                      const struct operation *b)
{
    const struct clock *clock = &o->lanes[b->lane].clock;

    return a->lane == b->lane || a->begin_ns <= clock->all ||
           a->begin_ns <= get_part(clock, a->lane);
}

/* One race of each two kinds of accesses is kept. */
static void note_race(struct ordering *o, const struct operation *a,
                      const struct operation *b)
{
    int i = 0;

    while (i < o->num_races) {
        const struct operation *c = &o->operations[o->races[i].first];
        const struct operation *d = &o->operations[o->races[i].second];

        if (a->name == c->name && a->rank == c->rank &&
            a->kernel == c->kernel && a->target == c->target &&
            b->name == d->name && b->rank == d->rank &&
            b->kernel == d->kernel) {
            return;
        }
        i++;
    }
    if (i < MOST_RACES) {
        const struct operation *read = b->writes ? a : b;

        o->races[i].first = (size_t)(a - o->operations);
        o->races[i].second = (size_t)(b - o->operations);
        o->races[i].known_ns = get_part(&o->lanes[read->lane].clock,
                                        b->writes ? b->lane : a->lane);
        o->num_races++;
    }
}

/* Compares the access with the latest ones to the granule, and keeps it in place of
 * one that it covers. */
static void touch_granule(struct ordering *o, struct granule *granule,
                          struct operation *now)
{
    size_t place = granule->count;

    for (size_t i = 0; i < granule->count; i++) {
        struct operation *before = &o->operations[granule->accesses[i]];

        if (!have_common(before, now)) {
            continue;
        }
        if (before->lane == now->lane) {
            now->wrote_ns = before->writes && now->writes ? before->begin_ns
                                                          : now->wrote_ns;
            place = before->writes == now->writes &&
                            before->is_atomic == now->is_atomic &&
                            now->offset <= before->offset &&
                            now->offset + now->bytes >=
                                before->offset + before->bytes
                        ? i
                        : place;
        } else if ((before->writes || now->writes) &&
                   (!before->is_atomic || !now->is_atomic) &&
                   !is_before(o, before, now)) {
            note_race(o, before, now);
        }
    }
    if (place == KEPT_ACCESSES) {
        memmove(granule->accesses, granule->accesses + 1,
                (KEPT_ACCESSES - 1) * sizeof *granule->accesses);
        place--;
    } else if (place == granule->count &&
               iris_i_grow(&granule->accesses, &granule->count,
                           sizeof *granule->accesses) == NULL) {
        o->no_memory = true;
        return;
    }
    granule->accesses[place] = (size_t)(now - o->operations);
}

static void touch_memory(struct ordering *o, struct operation *now)
{
    struct granule *granules =
        &o->granules[(uint64_t)now->target * o->num_granules];
    uint64_t last = (now->offset + now->bytes - 1) / o->granule_bytes;

    for (uint64_t i = now->offset / o->granule_bytes; i <= last; i++) {
        touch_granule(o, &granules[i], now);
    }
}

static int make_granules(struct ordering *o)
{
    uint64_t end = 1;

    for (size_t i = 0; i < o->count; i++) {
        const struct operation *one = &o->operations[i];
        uint64_t last = one->acquires_all ? 0 : one->offset + one->bytes;

        end = last > end ? last : end;
    }
    o->granule_bytes = 256;
    while (end / o->granule_bytes >= MOST_GRANULES) {
        o->granule_bytes *= 2;
    }
    o->num_granules = end / o->granule_bytes + 1;
    o->granules =
        calloc((size_t)o->num_ranks * o->num_granules + 1, sizeof *o->granules);
    o->num_granules = o->granules == NULL ? 0 : o->num_granules;
    return o->granules == NULL ? trace_fail_memory() : 0;
}

/* ---- The walk ---- */

/* Ends first: then more is ordered. The begins of one lane keep their order. */
static int compare_moments(const void *left, const void *right)
{
    const struct moment *a = left, *b = right;

    int order = IRIS_COMPARE(a->ns, b->ns);

    order = order != 0 ? order : IRIS_COMPARE(a->kind, b->kind);
    return order != 0 ? order : IRIS_COMPARE(a->operation, b->operation);
}

static int list_moments(struct ordering *o)
{
    o->moments = calloc(2 * o->count + o->num_calls + 1, sizeof *o->moments);
    if (o->moments == NULL) {
        return trace_fail_memory();
    }
    for (size_t i = 0; i < o->count; i++) {
        const struct operation *one = &o->operations[i];

        o->moments[o->num_moments++] =
            (struct moment){one->begin_ns, i, BEGINS};
        if (one->acquires || one->acquires_all) {
            o->moments[o->num_moments++] =
                (struct moment){one->end_ns, i, ENDS};
        }
    }
    for (size_t i = 0; i < o->num_calls; i++) {
        const struct call *call = &o->calls[i];
        const struct segment *segment = &o->segments[call->segment];

        if (call->kind == LAUNCHES && segment->num_launches > 1 &&
            segment->lane != 0) {
            o->moments[o->num_moments++] =
                (struct moment){call->begin_ns, segment->lane - 1, IS_LAUNCHED};
        }
    }
    qsort(o->moments, o->num_moments, sizeof *o->moments, compare_moments);
    return 0;
}

/* A write releases when it begins; a read acquires when it ends, and is compared
 * then. A compare-and-swap that failed is no write, which a trace does not tell. */
static void pass_moment(struct ordering *o, const struct moment *moment)
{
    struct operation *one = &o->operations[moment->operation];
    bool is_end = moment->kind == ENDS;

    if (moment->kind == IS_LAUNCHED) {
        join_time(&o->lanes[moment->operation].clock, moment->ns + o->error_ns);
        return;
    }
    if (one->acquires_all) {
        if (is_end) {
            join_time(&o->lanes[one->lane].clock, one->end_ns + o->error_ns);
        }
        return;
    }
    if (!is_end && one->is_atomic && one->writes) {
        release_word(o, one);
    }
    if (is_end) {
        acquire_word(o, one);
    }
    if (is_end == one->acquires && strcmp(one->name, "atomic_cas") != 0) {
        touch_memory(o, one);
    }
}

/* ---- Report ---- */

static void print_access(const struct operation *one)
{
    printf("    %s by rank %d, workgroup %lld", one->name, one->rank,
           (long long)one->workgroup);
    if (one->kernel[0] != '\0') {
        printf(", kernel %s", one->kernel);
    }
    printf(", at %.3f us\n", (double)one->begin_ns / 1000);
}

static void print_advice(const struct operation *a, const struct operation *b,
                         int64_t known_ns)
{
    const struct operation *read = b->writes ? a : b;
    const struct operation *write = b->writes ? b : a;

    if (a->writes && b->writes) {
        printf("    two write: order them, or write to different places\n");
    } else if (known_ns == NEVER) {
        printf("    rank %d has acquired no signal of rank %d: wait for one "
               "ahead of the %s\n",
               read->rank, write->rank, read->name);
    } else if (read == a || (a->wrote_ns != NEVER && a->wrote_ns <= known_ns)) {
        printf("    rank %d may still read it: wait for its credit ahead of "
               "the next %s of rank %d\n",
               read->rank, write->name, write->rank);
    } else {
        printf("    the latest signal that rank %d acquired was set at %.3f "
               "us: set it behind the %s\n",
               read->rank, (double)known_ns / 1000, write->name);
    }
}

static void print_race(const struct ordering *o, const struct race *race)
{
    const struct operation *a = &o->operations[race->first];
    const struct operation *b = &o->operations[race->second];
    const struct iris_event event = {.cat = "iris",
                                     .pid = b->rank,
                                     .target_rank = b->target,
                                     .address = b->address,
                                     .payload = b->bytes,
                                     .ts_ns = b->begin_ns};
    uint64_t from = a->offset > b->offset ? a->offset : b->offset;
    char label[TRACE_LABEL] = "memory";

    (void)trace_label(&o->figures.spaces, &o->figures.file, &event, 1, label);
    printf("no order: %s of rank %d, from heap offset %llu on\n", label,
           b->target, (unsigned long long)from);
    print_access(a);
    print_access(b);
    print_advice(a, b, race->known_ns);
}

static void print_order(const struct ordering *o, uint64_t dropped)
{
    for (int i = 0; i < o->num_races; i++) {
        print_race(o, &o->races[i]);
    }
    printf("%d pair%s of accesses without order in %zu operations",
           o->num_races, o->num_races == 1 ? "" : "s", o->count);
    if (o->num_left != 0) {
        printf(
            "; %zu more are left out, of graphs, several streams, or kernels "
            "behind a stream's wait that no synchronize keeps apart",
            o->num_left);
    }
    if (dropped != 0) {
        printf("; the trace lacks %llu", (unsigned long long)dropped);
    }
    printf("\n");
}

static void free_order(struct ordering *o)
{
    for (size_t i = 0; i < o->num_words; i++) {
        struct word *word = &o->words[i];

        for (size_t j = 0; word->clocks != NULL && j < KEPT_WRITES; j++) {
            free(word->clocks[j].parts);
        }
        free(word->clocks);
        free(word->writes);
        free(word->released.parts);
    }
    for (uint32_t i = 0; i < o->num_lanes; i++) {
        free(o->lanes[i].clock.parts);
    }
    for (uint64_t i = 0; i < (uint64_t)o->num_ranks * o->num_granules; i++) {
        free(o->granules[i].accesses);
    }
    for (size_t i = 0; i < o->num_names; i++) {
        free(o->names[i]);
    }
    free(o->names);
    free(o->granules);
    free(o->words);
    free(o->moments);
    free(o->lanes);
    free(o->segments);
    free(o->calls);
    free(o->operations);
    trace_free(&o->figures);
}

int trace_order(char **files, int num_files)
{
    struct ordering o = {.figures = {.first_ns = INT64_MAX}};
    struct iris_trace_file total = {0};
    int ret = 0;

    for (int i = 0; ret == 0 && i < num_files; i++) {
        ret = trace_read(files[i], &o.figures, take_ordered, &o);
        iris_i_events_add_file(&total, &o.figures.file);
    }
    o.error_ns = (total.clock_error_ns > 0 ? total.clock_error_ns : 0) +
                 2 * (total.device_error_ns > 0 ? total.device_error_ns : 0);
    o.has_strangers |= total.dropped != 0;
    ret = ret == 0 ? find_segments(&o) : ret;
    ret = ret == 0 ? find_lanes(&o) : ret;
    ret = ret == 0 ? list_moments(&o) : ret;
    ret = ret == 0 ? find_words(&o) : ret;
    ret = ret == 0 ? make_granules(&o) : ret;
    for (size_t i = 0; ret == 0 && i < o.num_moments; i++) {
        pass_moment(&o, &o.moments[i]);
        ret = o.no_memory ? trace_fail_memory() : 0;
    }
    if (ret == 0) {
        print_order(&o, total.dropped);
    }
    ret = ret != 0 || o.num_races != 0;
    free_order(&o);
    return ret != 0 ? 1 : tool_close("iris trace", NULL, stdout);
}
