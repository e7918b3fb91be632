/* SPDX-License-Identifier: MIT
 *
 * The messages of a trace: every byte that went from one rank to another is in
 * one of them.
 *
 * - A signal that a wait saw is a message to the waiting rank. It has its own
 *   bytes and those of all puts, stores and atomics of its workgroup to that
 *   rank since the workgroup's last signal to it.
 * - A workgroup's loads and gets from one rank, between two of its signals or
 *   waits, are a message from that rank. No operation there waits for it.
 * - A copy on a stream is a message.
 * - Signals, copies, exchanges and compare-and-swaps have their own costs.
 * - A collective is a message from each member to each other (see
 *   iris_i_transfers()): members make the same calls in the same order. In calls
 *   of messages, the first message that a member sends to another is the first
 *   that the other receives from it, and so on. All sends and receives of a call
 *   are one step of its track. The track is the stream that ran its kernel, and
 *   the step's time is that of the kernels before it. If the trace has no runs,
 *   the track is the host's.
 * - Writes without a later signal are a message for which the other rank does
 *   not wait.
 */
#include "config.h"

#include "sim.h"
#include "trace.h"
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stream_run; /* a launch, or a kernel's run */
struct active_run; /* a run with operations of its own */

struct streams {
    struct stream_run *launches, *runs;
    struct active_run *active;
    size_t num_launches, num_runs, num_active;
};

struct call;

struct calls {
    struct call *calls;
    size_t count;
};

struct pile;

struct messages {
    struct iris_flows flows;
    struct pile *piles; /* a hash table of bytes that go together */
    size_t num_piles, num_places;
    struct sim_item_cost
        *costs; /* costs of signals, indexed by their place + 1 */
    size_t num_costs;
    struct calls calls; /* of collectives */
    struct streams streams;
};

/* ---- Items ---- */

/* Adds both ends of a message of send->bytes. Returns 0, or -1 without memory. */
static int add_items(struct sim_items *items, const struct sim_item *send,
                     const struct sim_item *receive)
{
    uint64_t tag = items->count / 2 + 1;

    for (int is_send = 1; is_send >= 0; is_send--) {
        struct sim_item *item =
            iris_i_grow(&items->items, &items->count, sizeof *item);

        if (item == NULL) {
            return -1;
        }
        *item = is_send ? *send : *receive;
        item->is_send = is_send;
        item->peer = is_send ? receive->rank : send->rank;
        item->bytes = send->bytes;
        item->tag = tag;
    }
    return 0;
}

struct sim_item make_item(const struct iris_flow_end *at)
{
    struct sim_item item = {.rank = at->pid, .begin_ns = at->ns, .ns = at->ns};

    memcpy(item.tid, at->tid, sizeof item.tid);
    return item;
}

struct sim_item make_network_item(int rank, int64_t ns)
{
    struct sim_item item = {.rank = rank, .begin_ns = ns, .ns = ns};

    return item;
}

/* ---- Streams ---- */

struct stream_run {
    int pid;
    char tid[20];
    uint64_t stream, id;
    int64_t ts_ns, dur_ns;
    int is_collective; /* a kernel of the library's collectives */
    int64_t computed;  /* of a run: see find_stream() */
    size_t run;        /* of a launch; SIZE_MAX: unknown */
};

/* Ranks number their runs alike. */
struct active_run {
    int pid;
    uint64_t id;
};

static int add_run(struct stream_run **runs, size_t *count,
                   const struct iris_event *event)
{
    struct stream_run *run = iris_i_grow(runs, count, sizeof *run);

    if (run == NULL) {
        return -1;
    }
    *run = (struct stream_run){
        .pid = event->pid,
        .stream = event->stream,
        .id = event->id,
        .ts_ns = event->ts_ns,
        .dur_ns = event->dur_ns,
        .is_collective = strncmp(event->kernel, "iris_k_ccl_", 11) == 0,
        .run = SIZE_MAX};
    memcpy(run->tid, event->tid, sizeof run->tid - 1);
    return 0;
}

/* Records the event's facts about streams. Returns 0, or -1 without memory. */
static int add_to_streams(struct streams *streams,
                          const struct iris_event *event)
{
    size_t last = streams->num_active;
    struct active_run *active;

    if (strcmp(event->cat, "iris_kernel") == 0) {
        return add_run(&streams->runs, &streams->num_runs, event);
    }
    if (strncmp(event->name, "launch ", 7) == 0) {
        return add_run(&streams->launches, &streams->num_launches, event);
    }
    if (event->launch == 0 ||
        (last > 0 && streams->active[last - 1].pid == event->pid &&
         streams->active[last - 1].id == event->launch)) {
        return 0;
    }
    active =
        iris_i_grow(&streams->active, &streams->num_active, sizeof *active);
    if (active == NULL) {
        return -1;
    }
    *active = (struct active_run){event->pid, event->launch};
    return 0;
}

/* ---- Joining ---- */

static int compare_active(const void *left, const void *right)
{
    const struct active_run *a = left, *b = right;

    return a->pid != b->pid ? a->pid - b->pid : IRIS_COMPARE(a->id, b->id);
}

static int compare_stream(const struct stream_run *a,
                          const struct stream_run *b)
{
    return a->pid != b->pid ? a->pid - b->pid
                            : IRIS_COMPARE(a->stream, b->stream);
}

static int compare_by_stream(const void *left, const void *right)
{
    const struct stream_run *a = left, *b = right;
    int order = compare_stream(a, b);

    return order != 0 ? order : IRIS_COMPARE(a->ts_ns, b->ts_ns);
}

static int compare_by_track(const void *left, const void *right)
{
    const struct stream_run *a = left, *b = right;
    int order = a->pid != b->pid ? a->pid - b->pid : strcmp(a->tid, b->tid);

    return order != 0 ? order : IRIS_COMPARE(a->ts_ns, b->ts_ns);
}

/* How many from `first` on are of the same stream. */
static size_t count_stream(const struct stream_run *runs, size_t count,
                           size_t first)
{
    size_t end = first;

    while (end < count && compare_stream(&runs[end], &runs[first]) == 0) {
        end++;
    }
    return end - first;
}

/* A kernel with operations of its own may have waited: it counts as none. Runs
 * differ by 1 ns at least, which keeps them in order. */
static void sum_up_streams(struct streams *streams)
{
    struct stream_run *runs = streams->runs;
    int64_t computed = 0;

    for (size_t i = 0; i < streams->num_runs; i++) {
        struct active_run key = {runs[i].pid, runs[i].id};
        int is_active;

        computed =
            i > 0 && compare_stream(&runs[i], &runs[i - 1]) == 0 ? computed : 0;
        runs[i].computed = computed;
        is_active = streams->num_active > 0 &&
                    bsearch(&key, streams->active, streams->num_active,
                            sizeof key, compare_active) != NULL;
        computed +=
            1 + (is_active || runs[i].is_collective ? 0 : runs[i].dur_ns);
    }
}

/* A stream that lacks a launch or a run, which may have been dropped, is left
 * alone. */
static void join_streams(struct streams *streams)
{
    struct stream_run *launches = streams->launches, *runs = streams->runs;
    size_t first = 0, run = 0;

    iris_i_sort(streams->active, streams->num_active, sizeof *streams->active,
                compare_active);
    iris_i_sort(launches, streams->num_launches, sizeof *launches,
                compare_by_stream);
    iris_i_sort(runs, streams->num_runs, sizeof *runs, compare_by_stream);
    sum_up_streams(streams);
    while (first < streams->num_launches && run < streams->num_runs) {
        int order = compare_stream(&launches[first], &runs[run]);
        size_t count = count_stream(launches, streams->num_launches, first);
        size_t num_runs = count_stream(runs, streams->num_runs, run);

        for (size_t i = 0; order == 0 && count == num_runs && i < count; i++) {
            launches[first + i].run = run + i;
        }
        first += order <= 0 ? count : 0;
        run += order >= 0 ? num_runs : 0;
    }
    iris_i_sort(launches, streams->num_launches, sizeof *launches,
                compare_by_track);
}

/* Writes to *computed_p how many ns of kernels without communication the stream
 * of the call had run before the call's own kernel, and a number for each
 * kernel before it. Returns the track of the stream; NULL: the trace does not
 * say where the call took place. */
static const char *find_stream(const struct streams *streams,
                               const struct iris_event *call,
                               int64_t *computed_p)
{
    struct stream_run key = {.pid = call->pid, .ts_ns = call->ts_ns};
    size_t low = 0, high = streams->num_launches;

    memcpy(key.tid, call->tid, sizeof key.tid - 1);
    while (low < high) { /* the first launch after the call began */
        size_t middle = low + (high - low) / 2;

        if (compare_by_track(&streams->launches[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < streams->num_launches; low++) {
        const struct stream_run *launch = &streams->launches[low];

        if (launch->pid != key.pid || strcmp(launch->tid, key.tid) != 0 ||
            launch->ts_ns > call->ts_ns + call->dur_ns) {
            break;
        }
        if (launch->is_collective && launch->run != SIZE_MAX) {
            *computed_p = streams->runs[launch->run].computed;
            return streams->runs[launch->run].tid;
        }
    }
    return NULL;
}

/* ---- Collectives ---- */

/* A rank's call of a collective. */
struct call {
    struct iris_event event; /* its fields, without the raw text */
    size_t order;            /* in the file */
    uint64_t number;         /* index among this rank's calls with these
                              * members */
    int has_messages;        /* it says what it sends and receives */
    const char *stream;      /* the track that ran it; NULL: not known */
    int64_t computed;        /* ns of kernels before it there */
};

/* Keeps a collective's event. Returns 0, or -1 without memory. */
static int add_call(struct calls *calls, const struct iris_event *event)
{
    struct call *call = iris_i_grow(&calls->calls, &calls->count, sizeof *call);

    if (call == NULL) {
        return -1;
    }
    call->event = *event;
    call->order = calls->count - 1;
    call->has_messages = iris_i_is_messages(event);
    return 0;
}

/* All that the call sends and receives is one step of its track. */
static struct sim_item make_call_item(const struct calls *calls,
                                      const struct call *call)
{
    struct iris_flow_end at = iris_i_flow_end(&call->event, call->event.ts_ns);
    struct sim_item item = make_item(&at);

    if (call->stream != NULL) {
        snprintf(item.tid, sizeof item.tid, "%s", call->stream);
        item.begin_ns = item.ns = call->computed;
        item.from_start = 1;
    }
    item.batch = (uint64_t)(call - calls->calls) + 1;
    return item;
}

/* ---- Calls of all members ---- */

/* Calls of messages come last. */
static int compare_group(const struct call *a, const struct call *b)
{
    return a->has_messages != b->has_messages
               ? a->has_messages - b->has_messages
               : strcmp(a->event.members, b->event.members);
}

static int compare_by_rank(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    int order = compare_group(a, b);

    order = order != 0 ? order : a->event.pid - b->event.pid;
    return order != 0 ? order : IRIS_COMPARE(a->order, b->order);
}

static int compare_by_number(const void *left, const void *right)
{
    const struct call *a = left, *b = right;
    int order = compare_group(a, b);

    order = order != 0 ? order : IRIS_COMPARE(a->number, b->number);
    return order != 0 ? order : a->event.pid - b->event.pid;
}

static void number_calls(const struct calls *list)
{
    struct call *calls = list->calls;

    iris_i_sort(calls, list->count, sizeof *calls, compare_by_rank);
    for (size_t i = 1; i < list->count; i++) {
        if (calls[i].event.pid == calls[i - 1].event.pid &&
            compare_group(&calls[i], &calls[i - 1]) == 0) {
            calls[i].number = calls[i - 1].number + 1;
        }
    }
    iris_i_sort(calls, list->count, sizeof *calls, compare_by_number);
}

struct listing {
    const struct calls *calls;
    struct sim_items *items;
    const struct call *call;
};

static int list_transfer(void *arg, const struct iris_transfer_of *transfer)
{
    const struct listing *listing = arg;
    const struct calls *calls = listing->calls;
    struct call key = *listing->call;
    const struct call *peer;
    struct sim_item send = make_call_item(calls, listing->call), receive;

    key.event.pid = transfer->to;
    peer = bsearch(&key, calls->calls, calls->count, sizeof key,
                   compare_by_number);
    receive = peer != NULL ? make_call_item(calls, peer)
                           : make_network_item(transfer->to, send.ns);
    send.bytes = transfer->bytes;
    return add_items(listing->items, &send, &receive);
}

/* ---- Calls of messages ---- */

/* One call's part of a message. */
struct half {
    const struct call *call;
    int from, to;
    uint64_t bytes;
};

struct halves {
    struct half *halves;
    size_t count;
};

static int compare_pairs(const struct half *a, const struct half *b)
{
    int order = strcmp(a->call->event.members, b->call->event.members);

    order = order != 0 ? order : a->from - b->from;
    return order != 0 ? order : a->to - b->to;
}

static int compare_halves(const void *left, const void *right)
{
    const struct half *a = left, *b = right;
    int order = compare_pairs(a, b);

    return order != 0 ? order : IRIS_COMPARE(a->call->order, b->call->order);
}

static int add_halves(struct halves *halves, const struct call *call,
                      int is_send)
{
    const char *text = is_send ? call->event.sends : call->event.receives;
    uint64_t bytes;
    int peer;

    while ((text = iris_i_next_message(text, &peer, &bytes)) != NULL) {
        struct half *half =
            iris_i_grow(&halves->halves, &halves->count, sizeof *half);

        if (half == NULL) {
            return -1;
        }
        *half = (struct half){call, is_send ? call->event.pid : peer,
                              is_send ? peer : call->event.pid, bytes};
    }
    return 0;
}

static int find_halves(const struct calls *calls, int is_send,
                       struct halves *halves_p)
{
    for (size_t i = 0; i < calls->count; i++) {
        if (calls->calls[i].has_messages &&
            add_halves(halves_p, &calls->calls[i], is_send) != 0) {
            return -1;
        }
    }
    iris_i_sort(halves_p->halves, halves_p->count, sizeof *halves_p->halves,
                compare_halves);
    return 0;
}

/* A message that no call receives has an end of the network. */
static int join_halves(const struct calls *calls, const struct halves *sends,
                       const struct halves *receives, struct sim_items *items)
{
    size_t k = 0;

    for (size_t i = 0; i < sends->count; i++) {
        const struct half *half = &sends->halves[i];
        struct sim_item send = make_call_item(calls, half->call);
        struct sim_item receive = make_network_item(half->to, send.ns);

        while (k < receives->count &&
               compare_pairs(&receives->halves[k], half) < 0) {
            k++;
        }
        if (k < receives->count &&
            compare_pairs(&receives->halves[k], half) == 0) {
            receive = make_call_item(calls, receives->halves[k++].call);
        }
        send.bytes = half->bytes;
        if (add_items(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Adds the ends of all messages. Returns 0, or -1 without memory. */
static int list_calls(struct calls *calls, const struct streams *streams,
                      struct sim_items *items)
{
    struct listing listing = {calls, items, NULL};
    struct halves sends = {NULL, 0}, receives = {NULL, 0};
    int ret = 0;

    number_calls(calls);
    for (size_t i = 0; i < calls->count; i++) {
        struct call *call = &calls->calls[i];

        call->stream = find_stream(streams, &call->event, &call->computed);
    }
    for (size_t i = 0; ret == 0 && i < calls->count; i++) {
        listing.call = &calls->calls[i];
        if (!listing.call->has_messages) {
            ret =
                iris_i_transfers(&listing.call->event, list_transfer, &listing);
        }
    }
    if (ret == 0 && (find_halves(calls, 1, &sends) != 0 ||
                     find_halves(calls, 0, &receives) != 0 ||
                     join_halves(calls, &sends, &receives, items) != 0)) {
        ret = -1;
    }
    free(sends.halves);
    free(receives.halves);
    return ret;
}

/* Bytes of one workgroup's operations (or of one call's) that are one message.
 * A pile with from = to has no bytes: it counts the workgroup's signals and
 * waits, in `phase`. */
struct pile {
    int is_used;
    int pid; /* the rank that did it */
    int from, to;
    uint64_t launch;
    int64_t program_id;
    uint64_t phase;
    uint64_t bytes;
    struct sim_item_cost cost;
    int64_t until_ns;        /* the end of the last atomic in `cost` */
    struct iris_flow_end at; /* time and place of the latest operation */
};

static int open_messages(struct messages *messages)
{
    memset(messages, 0, sizeof *messages);
    return iris_i_flows_open(&messages->flows);
}

static void close_messages(struct messages *messages)
{
    free(messages->calls.calls);
    free(messages->streams.launches);
    free(messages->streams.runs);
    free(messages->streams.active);
    free(messages->piles);
    free(messages->costs);
    iris_i_flows_close(&messages->flows);
}

/* ---- Piles ---- */

static int is_pile(const struct pile *a, const struct pile *b)
{
    return a->pid == b->pid && a->from == b->from && a->to == b->to &&
           a->launch == b->launch && a->program_id == b->program_id &&
           (a->from == a->to || a->phase == b->phase);
}

/* Where the pile is, or the free place for it. A phase pile's `phase` counts,
 * so that it is not part of its key. */
static struct pile *find_pile_place(struct pile *piles, size_t num_places,
                                    const struct pile *key)
{
    uint64_t hash = (uint64_t)key->pid * 1000003 + key->launch;
    size_t at;

    hash = hash * 1000003 + (uint64_t)key->program_id;
    hash = hash * 1000003 + (uint64_t)key->from;
    hash = hash * 1000003 + (uint64_t)key->to;
    hash = hash * 1000003 + (key->from == key->to ? 0 : key->phase);
    at = (size_t)(hash * 0x9e3779b97f4a7c15u >> 20) & (num_places - 1);
    while (piles[at].is_used && !is_pile(&piles[at], key)) {
        at = (at + 1) & (num_places - 1);
    }
    return &piles[at];
}

static int grow_piles(struct messages *messages)
{
    size_t num_places =
        messages->num_places == 0 ? 1024 : 2 * messages->num_places;
    struct pile *piles = calloc(num_places, sizeof *piles);

    if (piles == NULL) {
        return -1;
    }
    for (size_t i = 0; i < messages->num_places; i++) {
        if (messages->piles[i].is_used) {
            *find_pile_place(piles, num_places, &messages->piles[i]) =
                messages->piles[i];
        }
    }
    free(messages->piles);
    messages->piles = piles;
    messages->num_places = num_places;
    return 0;
}

/* NULL: no memory. */
static struct pile *find_pile(struct messages *messages, const struct pile *key)
{
    struct pile *pile;

    if (2 * messages->num_piles >= messages->num_places &&
        grow_piles(messages) != 0) {
        return NULL;
    }
    pile = find_pile_place(messages->piles, messages->num_places, key);
    if (!pile->is_used) {
        *pile = *key;
        pile->is_used = 1;
        messages->num_piles++;
    }
    return pile;
}

static struct pile make_pile_key(const struct iris_event *event, int from,
                                 int to)
{
    struct pile key = {.pid = event->pid,
                       .from = from,
                       .to = to,
                       .launch = event->launch,
                       .program_id = event->program_id};

    return key;
}

/* How many signals and waits the event's workgroup has had. */
static uint64_t *find_phase(struct messages *messages,
                            const struct iris_event *event)
{
    struct pile key = make_pile_key(event, event->pid, event->pid);
    struct pile *pile = find_pile(messages, &key);

    return pile == NULL ? NULL : &pile->phase;
}

/* ---- Taking events ---- */

/* A trace does not say whether a program used an atomic's result. These two are
 * taken to need it, others not. */
static int waits_for_result(const struct iris_event *event)
{
    return strcmp(event->name, "atomic_cas") == 0 ||
           strcmp(event->name, "atomic_xchg") == 0;
}

static int is_copy(const struct iris_event *event)
{
    return strcmp(event->name, "put on stream") == 0 ||
           strcmp(event->name, "get on stream") == 0;
}

/* Lanes' atomics at the same time count once. */
static void add_cost(struct pile *pile, const struct iris_event *event)
{
    int64_t begin = event->ts_ns, end = event->ts_ns + event->dur_ns;

    pile->cost.is_copy = is_copy(event);
    if (!event->signal && waits_for_result(event)) {
        pile->cost.waits_before = 1;
        begin = begin > pile->until_ns ? begin : pile->until_ns;
        pile->cost.before_ns += end > begin ? end - begin : 0;
        pile->until_ns = end > begin ? end : begin;
    }
}

struct taking {
    struct messages *messages;
    const struct iris_event *event;
};

static int add_bytes(void *arg, const struct iris_transfer_of *transfer)
{
    const struct taking *taking = arg;
    const struct iris_event *event = taking->event;
    struct pile key = make_pile_key(event, transfer->from, transfer->to);
    struct pile *pile;
    uint64_t *phase;

    if (transfer->from == transfer->to) {
        return 0;
    }
    if (strcmp(event->cat, "iris") != 0) { /* a call by itself */
        key.program_id = (int64_t)taking->messages->num_piles;
        key.launch = UINT64_MAX;
    } else if (iris_i_is_fetch(event)) {
        phase = find_phase(taking->messages, event);
        if (phase == NULL) {
            return -1;
        }
        key.phase = *phase;
    }
    pile = find_pile(taking->messages, &key);
    if (pile == NULL) {
        return -1;
    }
    pile->bytes += transfer->bytes;
    add_cost(pile, event);
    pile->at = iris_i_flow_end(event, event->ts_ns);
    return 0;
}

/* The signal takes all earlier puts of its workgroup to that rank. */
static int take_pile(struct messages *messages, const struct iris_event *event)
{
    struct iris_flow_list *signals = &messages->flows.signals;
    struct iris_flow_point *signal = &signals->points[signals->count - 1];
    struct pile key = make_pile_key(event, event->pid, event->target_rank);
    struct sim_item_cost *cost;
    struct pile *pile;

    if (event->target_rank == event->pid) {
        return 0;
    }
    pile = find_pile(messages, &key);
    cost = iris_i_grow(&messages->costs, &messages->num_costs, sizeof *cost);
    if (pile == NULL || cost == NULL) {
        return -1;
    }
    *cost = pile->cost;
    cost->is_release = 1;
    cost->waits_itself = waits_for_result(event);
    cost->own_ns = event->dur_ns;
    signal->cost = messages->num_costs;
    signal->bytes = pile->bytes;
    pile->bytes = 0;
    memset(&pile->cost, 0, sizeof pile->cost);
    return 0;
}

/* Takes an event into account, in the order of the file. Returns 0, or -1
 * without memory. */
static int add_message_event(void *arg, const struct iris_event *event)
{
    struct messages *messages = arg;
    struct taking taking = {messages, event};
    size_t num_signals = messages->flows.signals.count;
    size_t num_waits = messages->flows.waits.count;
    uint64_t *phase;

    if (add_to_streams(&messages->streams, event) != 0) {
        return -1;
    }
    if (iris_i_is_collective(event)) {
        return add_call(&messages->calls, event);
    }
    if (iris_i_flows_add(&messages->flows, event) != 0 ||
        iris_i_transfers(event, add_bytes, &taking) != 0) {
        return -1;
    }
    if (messages->flows.signals.count == num_signals &&
        messages->flows.waits.count == num_waits) {
        return 0;
    }
    phase = find_phase(messages, event);
    if (phase == NULL) {
        return -1;
    }
    ++*phase;
    return messages->flows.signals.count > num_signals
               ? take_pile(messages, event)
               : 0;
}

/* ---- Listing messages ---- */

/* The signal's item, with its bytes and cost, which only the first one has. */
static struct sim_item take_signal(const struct messages *messages,
                                   struct iris_flow_point *signal)
{
    struct sim_item item = make_item(&signal->at);

    item.bytes = signal->bytes;
    if (signal->cost != 0) {
        item.cost = messages->costs[signal->cost - 1];
    }
    signal->bytes = signal->cost = 0;
    return item;
}

/* A signal that several waits saw has its bytes in the first one's message. */
static int list_waits(struct messages *messages, struct sim_items *items)
{
    struct iris_flows *flows = &messages->flows;

    for (size_t i = 0; i < flows->waits.count; i++) {
        const struct iris_flow_point *wait = &flows->waits.points[i];
        const struct iris_flow_point *found =
            iris_i_flows_signal_of(flows, wait);
        struct sim_item send, receive;

        if (found == NULL || found->at.pid == wait->at.pid) {
            continue;
        }
        send = take_signal(
            messages, &flows->signals.points[found - flows->signals.points]);
        receive = make_item(&wait->at);
        receive.begin_ns = wait->begin_ns;
        if (add_items(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Signals that no wait saw. */
static int list_signals(struct messages *messages, struct sim_items *items)
{
    const struct iris_flow_list *signals = &messages->flows.signals;

    for (size_t i = 0; i < signals->count; i++) {
        struct iris_flow_point *signal = &signals->points[i];
        struct sim_item send = take_signal(messages, signal);
        struct sim_item receive =
            make_network_item(signal->rank, signal->at.ns);

        if (send.bytes != 0 && add_items(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

static int list_piles(const struct messages *messages, struct sim_items *items)
{
    for (size_t i = 0; i < messages->num_places; i++) {
        const struct pile *pile = &messages->piles[i];
        struct sim_item send = make_network_item(pile->from, pile->at.ns);
        struct sim_item receive = make_network_item(pile->to, pile->at.ns);

        if (pile->bytes == 0) {
            continue;
        }
        *(pile->from == pile->pid ? &send : &receive) = make_item(&pile->at);
        send.bytes = pile->bytes;
        send.cost = pile->cost;
        if (add_items(items, &send, &receive) != 0) {
            return -1;
        }
    }
    return 0;
}

/* Lists all ends of all messages, after all events are known. Returns 0, or -1
 * without memory. */
static int list_messages(struct messages *messages, struct sim_items *items_p)
{
    iris_i_flows_sort(&messages->flows);
    join_streams(&messages->streams);
    return list_waits(messages, items_p) != 0 ||
                   list_signals(messages, items_p) != 0 ||
                   list_piles(messages, items_p) != 0 ||
                   list_calls(&messages->calls, &messages->streams, items_p) !=
                       0
               ? -1
               : 0;
}

/* ---- Reading ---- */

int sim_messages_read(const char *path, struct sim_items *items_p,
                      int *num_ranks_p)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct messages messages;
    int ret;

    if (open_messages(&messages) != 0) {
        return -1;
    }
    ret = trace_read(path, &figures, add_message_event, &messages);
    *num_ranks_p = figures.num_ranks;
    if (ret == 0) {
        ret = list_messages(&messages, items_p);
    }
    close_messages(&messages);
    trace_free(&figures);
    return ret;
}
