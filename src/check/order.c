/* SPDX-License-Identifier: MIT
 *
 * The order of operations in all kernels and hosts of a job.
 *
 * A lane is a sequence of operations: those of a workgroup, or of a host. A
 * clock holds a moment for each lane. Operations of that lane up to the moment
 * happen before the next operation of the clock's owner. Invariants: a lane's
 * own moment is the greatest of its lane, and moments never decrease.
 *
 * Edges join clocks. A write that releases keeps the lane's clock with its scope;
 * a read that acquires joins the clock of the write that it saw, if both scopes
 * span both lanes. An edge that lacks something joins loose moments only, and
 * says what it lacks. Fences, meetings of hosts and streams join clocks, too.
 *
 * Words keep their latest writes, each with its value and its release. A read
 * acquires from the writes whose value it saw. Hooks run before and after an
 * operation, not during it. While an update is in progress its value is
 * unknown, and a read acquires from it in any case. So the checker may see an
 * edge that does not exist, but it never misses one.
 *
 * Rank 0 makes an unnamed file, which the others open through /proc. Untouched
 * pages cost nothing. Clocks are arrays in its arena, with capacities that are
 * powers of two. Freed ones are kept in lists by capacity.
 */
#define _GNU_SOURCE
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- Memory ---- */

/* Attempts before the thread yields, and before it takes the lock of a dead
 * rank. */
#define SPINS 100
#define MAX_YIELDS 10000000

#define ARENA_BYTES ((size_t)4 << 30)

static const struct iris_call_type open_call = {.name = "iris_init"};

static size_t round_bytes(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

static size_t size_shared(void)
{
    return round_bytes(sizeof(struct iris_order_shared));
}

static iris_status_t make_file(size_t bytes, int *fd_p)
{
    int fd = iris_i_fd_above_stdio(memfd_create("iris-race", MFD_CLOEXEC));

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) {
        int ret = errno;

        if (fd >= 0) {
            close(fd);
        }
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, ret,
                                 "IRIS_CHECK=race: no shared memory of %zu "
                                 "bytes",
                                 bytes);
    }
    *fd_p = fd;
    return IRIS_OK;
}

static iris_status_t map_file(int fd, struct iris_order *order)
{
    int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    char *at = mmap(NULL, order->bytes, PROT_READ | PROT_WRITE,
                    flags | MAP_NORESERVE, fd, 0);

    if (at == MAP_FAILED) {
        return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno,
                                 "IRIS_CHECK: cannot map %zu bytes of "
                                 "address space; lower IRIS_HEAP_SIZE or "
                                 "IRIS_HEAP_RESERVE",
                                 order->bytes);
    }
    order->shared = (void *)at;
    order->arena = (void *)(at + size_shared());
    order->more = at + size_shared() + ARENA_BYTES;
    order->cells = (char *)order->more + order->more_bytes;
    return IRIS_OK;
}

static void init_shared(struct iris_order_shared *shared)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
    shared->arena_used = 1; /* 0 means no place */
    shared->num_edges = 1;
}

iris_status_t iris_i_order_tell(struct iris_members *members,
                                iris_status_t status, bool tells,
                                struct iris_order_place *place)
{
    struct iris_call call = {.type = &open_call, .status = status};

    if (tells) {
        call.payload = place;
        call.payload_bytes = sizeof *place;
    }
    status = iris_i_agree(members, &call);
    if (status == IRIS_OK) {
        (void)iris_i_agree_payload(members, 0, place, sizeof *place);
    }
    return status;
}

/* Another rank's part. */
static iris_status_t join_file(const struct iris_order_place *place,
                               struct iris_order *order)
{
    char path[64];
    iris_status_t status;
    int fd;

    snprintf(path, sizeof path, "/proc/%lld/fd/%llu", (long long)place->pid,
             (unsigned long long)place->number);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "IRIS_CHECK=race: cannot open %s of rank 0; "
                                 "ranks must see each other's processes",
                                 path);
    }
    status = map_file(fd, order);
    close(fd);
    return status;
}

static void size_order(const struct iris_heap *heap, size_t cell_bytes,
                       size_t more_bytes, struct iris_order *order)
{
    order->num_words = round_bytes(iris_i_heap_bytes(&heap->memory)) / 8;
    order->cell_bytes = cell_bytes;
    order->more_bytes = round_bytes(more_bytes);
    order->bytes = size_shared() + ARENA_BYTES + order->more_bytes +
                   (size_t)heap->log->num_ranks * order->num_words * cell_bytes;
}

iris_status_t iris_i_order_open(const struct iris_heap *heap,
                                iris_status_t status, size_t cell_bytes,
                                size_t more_bytes, struct iris_order *order_p)
{
    struct iris_order_place place = {.pid = getpid()};
    bool makes = heap->log->rank == 0;
    int fd = -1;

    size_order(heap, cell_bytes, more_bytes, order_p);
    if (makes && status == IRIS_OK) {
        status = make_file(order_p->bytes, &fd);
        status = status == IRIS_OK ? map_file(fd, order_p) : status;
        if (status == IRIS_OK) {
            init_shared(order_p->shared);
            place.number = (uint64_t)fd;
        }
    }
    status = iris_i_order_tell(heap->world, status, makes, &place);
    if (status == IRIS_OK) {
        status = iris_i_order_tell(heap->world,
                                   makes ? IRIS_OK : join_file(&place, order_p),
                                   makes, &place);
    }
    if (fd >= 0) {
        close(fd);
    }
    return status;
}

iris_status_t iris_i_order_open_own(const struct iris_heap *heap,
                                    size_t cell_bytes,
                                    struct iris_order *order_p)
{
    iris_status_t status;

    size_order(heap, cell_bytes, 0, order_p);
    status = map_file(-1, order_p);
    if (status == IRIS_OK) {
        init_shared(order_p->shared);
    }
    return status;
}

void iris_i_order_close(struct iris_order *order)
{
    if (order->shared != NULL) {
        munmap(order->shared, order->bytes);
    }
}

static _Thread_local bool is_held;

bool iris_i_order_is_held(void)
{
    return is_held;
}

void iris_i_order_lock(struct iris_order_shared *shared)
{
    is_held = true;
    if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD) {
        pthread_mutex_consistent(&shared->lock);
        shared->blind = true;
    }
}

void iris_i_order_unlock(struct iris_order_shared *shared)
{
    pthread_mutex_unlock(&shared->lock);
    is_held = false;
}

void iris_i_order_spin(struct iris_order_shared *shared, atomic_uint *lock)
{
    for (unsigned attempts = 0; attempts < SPINS + MAX_YIELDS; attempts++) {
        if (iris_i_order_spin_try(lock)) {
            return;
        }
        if (attempts >= SPINS) {
            sched_yield();
        }
    }
    atomic_store(&shared->blind, true);
}

/* ---- Clocks ---- */

#define LEAST_LOG 4

static unsigned find_log(uint32_t count)
{
    unsigned log = LEAST_LOG;

    while (((uint32_t)1 << log) < count) {
        log++;
    }
    return log;
}

/* Under the lock of the tables. */
static void give_room(struct iris_order *order, struct iris_order_clock *clock)
{
    uint32_t *list;

    if (clock->at == 0) {
        return;
    }
    list = &order->shared->arena_free[find_log(clock->capacity)];
    order->arena[clock->at].strict = *list;
    *list = clock->at;
    clock->at = clock->capacity = 0;
}

/* Under the lock of the tables. 0: there is no room left. */
static uint32_t take_room(struct iris_order *order, unsigned log)
{
    struct iris_order_shared *shared = order->shared;
    uint32_t at = shared->arena_free[log];

    if (at != 0) {
        shared->arena_free[log] = order->arena[at].strict;
    } else if (shared->arena_used < UINT32_C(300000000)) {
        at = shared->arena_used;
        shared->arena_used += (uint32_t)1 << log;
    } else {
        atomic_store(&shared->blind, true);
    }
    return at;
}

/* Makes room for this number of moments; the new ones are 0. */
static bool reserve_room(struct iris_order *order,
                         struct iris_order_clock *clock, uint32_t count)
{
    struct iris_order_clock larger;

    if (count <= clock->capacity) {
        return true;
    }
    larger.capacity = (uint32_t)1 << find_log(count);
    iris_i_order_spin_lock(order->shared, &order->shared->tables);
    larger.at = take_room(order, find_log(count));
    if (larger.at != 0) {
        memset(&order->arena[larger.at], 0,
               larger.capacity * sizeof *order->arena);
        memcpy(&order->arena[larger.at], &order->arena[clock->at],
               clock->capacity * sizeof *order->arena);
        give_room(order, clock);
        *clock = larger;
    }
    iris_i_order_spin_unlock(&order->shared->tables);
    return larger.at != 0;
}

static void raise_moment(struct iris_order_moment *to,
                         const struct iris_order_moment *from, uint32_t why)
{
    if (from->loose > to->loose) {
        to->loose = from->loose;
        to->why = why != 0 ? why : from->why;
    }
    if (why == 0 && from->strict > to->strict) {
        to->strict = from->strict;
    }
}

void iris_i_order_join(struct iris_order *order, struct iris_order_clock *to,
                       const struct iris_order_clock *from, uint32_t why)
{
    uint32_t num_lanes = atomic_load(&order->shared->num_lanes);
    uint32_t count = from->capacity < num_lanes ? from->capacity : num_lanes;

    if (from->at == 0 || !reserve_room(order, to, count)) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        raise_moment(&order->arena[to->at + i], &order->arena[from->at + i],
                     why);
    }
}

void iris_i_order_join_one(struct iris_order *order,
                           struct iris_order_clock *to, uint32_t lane,
                           uint32_t moment, uint32_t why)
{
    struct iris_order_moment from = {moment, moment, why};

    if (reserve_room(order, to, lane + 1)) {
        raise_moment(&order->arena[to->at + lane], &from, why);
    }
}

/* Empties the clock, which keeps its room. */
static void clear_clock(struct iris_order *order,
                        struct iris_order_clock *clock)
{
    memset(&order->arena[clock->at], 0, clock->capacity * sizeof *order->arena);
}

void iris_i_order_free(struct iris_order *order, struct iris_order_clock *clock)
{
    iris_i_order_spin_lock(order->shared, &order->shared->tables);
    give_room(order, clock);
    iris_i_order_spin_unlock(&order->shared->tables);
}

void iris_i_order_tick(struct iris_order *order, uint32_t lane)
{
    iris_i_order_join_one(order, &order->shared->lanes[lane].clock, lane,
                          iris_i_order_now(order, lane) + 1, 0);
}

void iris_i_order_renew(struct iris_order *order, uint32_t lane)
{
    static const struct iris_order_clock none;
    struct iris_order_lane *self = &order->shared->lanes[lane];
    uint32_t now = iris_i_order_now(order, lane);

    iris_i_order_spin_lock(order->shared, &self->lock);
    clear_clock(order, &self->clock);
    iris_i_order_join_one(order, &self->clock, lane, now, 0);
    iris_i_order_spin_unlock(&self->lock);
    iris_i_order_begin(order, lane, &none);
}

void iris_i_order_acquire_clock(struct iris_order *order, uint32_t lane,
                                const struct iris_order_clock *from,
                                uint32_t why)
{
    struct iris_order_lane *self = &order->shared->lanes[lane];

    iris_i_order_spin_lock(order->shared, &self->lock);
    iris_i_order_join(order, &self->clock, from, why);
    iris_i_order_spin_unlock(&self->lock);
}

/* The number of an equal edge, from number `i` on; the number of edges if no
 * edge is equal. */
static uint32_t find_edge(struct iris_order_shared *shared,
                          const struct iris_order_edge *edge, uint32_t i)
{
    uint32_t count = atomic_load(&shared->num_edges);

    while (i < count && (shared->edges[i].lack != edge->lack ||
                         shared->edges[i].release != edge->release ||
                         shared->edges[i].acquire != edge->acquire)) {
        i++;
    }
    return i;
}

uint32_t iris_i_order_edge(struct iris_order *order,
                           const struct iris_order_edge *edge)
{
    struct iris_order_shared *shared = order->shared;
    uint32_t count = atomic_load(&shared->num_edges), i;

    if (edge->lack == IRIS_ORDER_LACKS_NOTHING) {
        return 0;
    }
    i = find_edge(shared, edge, 1);
    if (i < count) {
        return i;
    }
    iris_i_order_spin_lock(shared, &shared->tables);
    i = find_edge(shared, edge, i);
    if (i == IRIS_ORDER_EDGES) {
        i--;
    } else if (i == atomic_load(&shared->num_edges)) {
        shared->edges[i] = *edge;
        atomic_store(&shared->num_edges, i + 1);
    }
    iris_i_order_spin_unlock(&shared->tables);
    return i;
}

/* Whether an operation of that scope, by a lane of `rank`, spans the other
 * rank's lanes. */
static bool is_wide(iris_scope_t scope, int rank, int other)
{
    return scope == IRIS_SCOPE_SYSTEM ||
           (scope == IRIS_SCOPE_AGENT && rank == other);
}

bool iris_i_order_spans(const struct iris_order_shared *shared,
                        iris_scope_t scope, uint32_t lane, uint32_t other)
{
    return lane == other ||
           shared->lanes[lane].first == shared->lanes[other].first ||
           is_wide(scope, shared->lanes[lane].rank, shared->lanes[other].rank);
}

/* ---- Lanes ---- */

uint32_t iris_i_order_add_lane(struct iris_order *order, int rank,
                               uint32_t stream)
{
    struct iris_order_shared *shared = order->shared;
    uint32_t number = atomic_load(&shared->num_lanes);
    struct iris_order_lane *lane = &shared->lanes[number];

    if (number == IRIS_ORDER_LANES) {
        shared->blind = true;
        return 0;
    }
    lane->rank = rank;
    lane->stream = stream;
    lane->first = number;
    atomic_store(&shared->num_lanes, number + 1);
    iris_i_order_tick(order, number);
    return number + 1;
}

void iris_i_order_begin(struct iris_order *order, uint32_t number,
                        const struct iris_order_clock *from)
{
    struct iris_order_lane *lane = &order->shared->lanes[number];

    lane->fenced = 0;
    clear_clock(order, &lane->reads[0]);
    clear_clock(order, &lane->reads[1]);
    iris_i_order_join(order, &lane->clock, from, 0);
    iris_i_order_tick(order, number);
    atomic_store(&lane->begun, iris_i_order_now(order, number));
    atomic_store(&lane->barrier, 0);
    lane->loops = lane->meets = 0;
}

/* The lane's knowledge of its first part; NULL: none. */
static struct iris_order_moment *find_first_part(struct iris_order *order,
                                                 uint32_t lane)
{
    struct iris_order_lane *self = &order->shared->lanes[lane];

    return self->parts[0] == 0
               ? NULL
               : iris_i_order_moment(order, &self->clock, self->parts[0] - 1);
}

/* The lane learns of the operations of its parts so far. */
static void join_part(struct iris_order *order, uint32_t lane, unsigned i)
{
    struct iris_order_lane *lanes = order->shared->lanes;
    uint32_t part = lanes[lane].parts[i];

    if (part != 0 && lanes[part - 1].run == lanes[lane].run) {
        iris_i_order_acquire_clock(order, lane, &lanes[part - 1].clock, 0);
        iris_i_order_tick(order, part - 1);
    }
}

static void join_parts(struct iris_order *order, uint32_t lane)
{
    const struct iris_order_moment *first;

    for (unsigned i = 0; i < IRIS_CPU_PARTS - 1; i++) {
        join_part(order, lane, i);
    }
    first = find_first_part(order, lane);
    order->shared->lanes[lane].met = first == NULL ? 0 : first->strict;
}

/* A part for the run, unless there are too many lanes. */
static void begin_part(struct iris_order *order, uint32_t lane, unsigned i)
{
    struct iris_order_lane *lanes = order->shared->lanes;
    uint32_t part = lanes[lane].parts[i];

    if (part == 0 &&
        atomic_load(&order->shared->num_lanes) < IRIS_ORDER_LANES / 2) {
        part =
            iris_i_order_add_lane(order, lanes[lane].rank, lanes[lane].stream);
        lanes[lane].parts[i] = part;
    }
    if (part != 0 && lanes[part - 1].run != lanes[lane].run) {
        lanes[part - 1].run = lanes[lane].run;
        lanes[part - 1].first = lane;
        iris_i_order_begin(order, part - 1, &lanes[lane].clock);
        lanes[lane].met =
            i == 0 ? iris_i_order_now(order, part - 1) - 1 : lanes[lane].met;
    } else if (part != 0) {
        iris_i_order_acquire_clock(order, part - 1, &lanes[lane].clock, 0);
    }
}

/* The parts learn of the lane's operations, but of the first part's only those ahead
 * of the latest meeting: outside of loops, the lane stands for all lanes and goes on
 * behind the first one. */
static void begin_loop(struct iris_order *order, uint32_t lane)
{
    struct iris_order_moment *first, saved = {0, 0, 0};

    begin_part(order, lane, 0);
    first = find_first_part(order, lane);
    if (first != NULL && first->strict > order->shared->lanes[lane].met) {
        saved = *first;
        first->strict = first->loose = order->shared->lanes[lane].met;
    }
    for (unsigned i = 1; i < IRIS_CPU_PARTS - 1; i++) {
        begin_part(order, lane, i);
    }
    if (saved.strict != 0) {
        *first = saved;
    }
    iris_i_order_tick(order, lane);
}

uint32_t iris_i_order_part(struct iris_order *order, uint32_t lane,
                           const struct iris_cpu_wg *cpu)
{
    struct iris_order_lane *self = &order->shared->lanes[lane];
    uint32_t part = 0;

    if (self->meets != cpu->meets) {
        join_parts(order, lane);
        self->meets = cpu->meets;
    }
    if (self->loops != cpu->loops) {
        begin_loop(order, lane);
        self->loops = cpu->loops;
    }
    if (cpu->part > 0) {
        part = self->parts[cpu->part - 1];
    } else {
        join_part(order, lane, 0);
    }
    return part == 0 ? lane : part - 1;
}

/* ---- Releases ---- */

static bool is_release(iris_sem_t sem)
{
    return sem == IRIS_RELEASE || sem == IRIS_ACQ_REL;
}

static bool is_acquire(iris_sem_t sem)
{
    return sem == IRIS_ACQUIRE || sem == IRIS_ACQ_REL;
}

/* Adds a clock to the grant of that rank and scope. If there are too many, the
 * last one is for all: then an order may be seen that does not exist. */
static void add_grant(struct iris_order *order,
                      struct iris_order_release *release,
                      const struct iris_order_grant *added, uint32_t why)
{
    struct iris_order_grant *grant = release->grants;
    struct iris_order_grant *end = grant + release->count;

    if (added->clock.at == 0) {
        return;
    }
    while (grant < end &&
           (grant->rank != added->rank || grant->scope != added->scope)) {
        grant++;
    }
    if (grant == release->grants + IRIS_ORDER_GRANTS) {
        grant--;
        grant->scope = IRIS_SCOPE_SYSTEM;
    } else if (grant == end) {
        grant->rank = added->rank;
        grant->scope = added->scope;
        release->count++;
    }
    iris_i_order_join(order, &grant->clock, &added->clock, why);
}

void iris_i_order_release(struct iris_order *order,
                          const struct iris_order_op *op,
                          struct iris_order_release *release)
{
    const struct iris_order_lane *lane = &order->shared->lanes[op->lane];
    bool is_one = is_release(op->sem);
    const struct iris_order_edge none = {
        is_one || (lane->fenced & IRIS_ORDER_FENCED_WG) != 0
            ? IRIS_ORDER_LACKS_RELEASE_SCOPE
            : IRIS_ORDER_LACKS_RELEASE,
        op->site, 0};
    struct iris_order_grant grant = {(uint16_t)lane->rank, (uint16_t)op->scope,
                                     lane->clock};

    for (unsigned i = 0; i < release->count; i++) {
        clear_clock(order, &release->grants[i].clock);
    }
    release->count = 0;
    release->lane = (uint16_t)op->lane;
    release->site = op->site;
    release->releases = is_one && op->scope != IRIS_SCOPE_WG;
    if (release->releases) {
        add_grant(order, release, &grant, 0);
        return;
    }
    for (unsigned i = 0; i < 2 && !is_one && op->scope != IRIS_SCOPE_WG; i++) {
        iris_scope_t scope = i == 0 ? IRIS_SCOPE_AGENT : IRIS_SCOPE_SYSTEM;

        if ((lane->fenced & 1u << i) != 0) {
            grant.scope = (uint16_t)(scope < op->scope ? scope : op->scope);
            grant.clock = lane->fences[i];
            add_grant(order, release, &grant, 0);
            release->releases = true;
        }
    }
    grant.scope = IRIS_SCOPE_SYSTEM;
    grant.clock = lane->clock;
    add_grant(order, release, &grant, iris_i_order_edge(order, &none));
}

void iris_i_order_continue(struct iris_order *order,
                           const struct iris_order_op *op,
                           struct iris_order_release *own,
                           const struct iris_order_release *before)
{
    int rank = order->shared->lanes[op->lane].rank;
    bool is_both = is_release(op->sem) && is_acquire(op->sem);

    for (unsigned i = 0; i < before->count; i++) {
        struct iris_order_grant grant = before->grants[i];

        if (!before->releases) {
            grant.rank = (uint16_t)rank;
        } else if (is_both && is_wide(op->scope, rank, grant.rank) &&
                   is_wide((iris_scope_t)grant.scope, grant.rank, rank)) {
            grant.rank = (uint16_t)rank;
            grant.scope = (uint16_t)op->scope;
        }
        add_grant(order, own, &grant, 0);
    }
    own->releases |= before->releases;
}

void iris_i_order_acquire(struct iris_order *order,
                          const struct iris_order_op *op,
                          const struct iris_order_release *release)
{
    struct iris_order_lane *lane = &order->shared->lanes[op->lane];
    uint32_t why, narrow = 0;

    for (unsigned i = 0; i < release->count; i++) {
        const struct iris_order_grant *grant = &release->grants[i];
        bool is_seen = is_wide(op->scope, lane->rank, grant->rank);
        struct iris_order_edge edge = {IRIS_ORDER_LACKS_NOTHING, release->site,
                                       op->site};

        if (!is_wide((iris_scope_t)grant->scope, grant->rank, lane->rank)) {
            edge.lack = IRIS_ORDER_LACKS_RELEASE_SCOPE;
        } else if (!is_acquire(op->sem)) {
            edge.lack = IRIS_ORDER_LACKS_ACQUIRE;
        } else if (!is_seen) {
            edge.lack = IRIS_ORDER_LACKS_ACQUIRE_SCOPE;
        }
        if (edge.lack == IRIS_ORDER_LACKS_ACQUIRE && is_seen) {
            iris_i_order_join(order, &lane->reads[grant->rank != lane->rank],
                              &grant->clock, 0);
        }
        why = release->releases ? iris_i_order_edge(order, &edge) : 0;
        if (why == 0 && narrow != 0) { /* the loose moments lack that, too */
            iris_i_order_acquire_clock(order, op->lane, &grant->clock, narrow);
        }
        narrow = edge.lack == IRIS_ORDER_LACKS_RELEASE_SCOPE ? why : narrow;
        /* Without a release the moments say what they lack. */
        iris_i_order_acquire_clock(order, op->lane, &grant->clock, why);
    }
}

void iris_i_order_drop(struct iris_order *order,
                       struct iris_order_release *release)
{
    for (unsigned i = 0; i < release->count; i++) {
        iris_i_order_free(order, &release->grants[i].clock);
    }
    release->count = 0;
}

void iris_i_order_fence(struct iris_order *order,
                        const struct iris_order_op *op)
{
    struct iris_order_lane *lane = &order->shared->lanes[op->lane];
    struct iris_order_clock *fence =
        &lane->fences[op->scope == IRIS_SCOPE_SYSTEM];

    if (is_acquire(op->sem) && op->scope != IRIS_SCOPE_WG) {
        iris_i_order_acquire_clock(order, op->lane, &lane->reads[0], 0);
        if (op->scope == IRIS_SCOPE_SYSTEM) {
            iris_i_order_acquire_clock(order, op->lane, &lane->reads[1], 0);
        }
    }
    if (!is_release(op->sem)) {
        return;
    }
    if (op->scope != IRIS_SCOPE_WG) {
        clear_clock(order, fence);
        iris_i_order_join(order, fence, &lane->clock, 0);
    }
    /* A fence includes earlier ones of no wider scope. */
    lane->fenced = op->scope == IRIS_SCOPE_SYSTEM ? 2u
                   : op->scope == IRIS_SCOPE_AGENT
                       ? (lane->fenced & 2u) | 1u
                       : lane->fenced | IRIS_ORDER_FENCED_WG;
    iris_i_order_spin_lock(order->shared, &lane->lock);
    iris_i_order_tick(order, op->lane);
    iris_i_order_spin_unlock(&lane->lock);
}

/* ---- Words ---- */

/* Whether one more word may be added. */
static bool has_room(struct iris_order_shared *shared)
{
    bool has = atomic_load(&shared->num_words) < IRIS_ORDER_WORDS / 2;

    if (!has && !atomic_load(&shared->blind)) {
        atomic_store(&shared->blind, true);
    }
    return has;
}

struct iris_order_word *iris_i_order_word(struct iris_order *order, int rank,
                                          size_t offset, bool make)
{
    struct iris_order_shared *shared = order->shared;
    uint64_t key = ((uint64_t)(unsigned)rank + 1) << 48 | (uint64_t)offset;
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);
    uint64_t seen;

    do {
        at %= IRIS_ORDER_WORDS;
        seen = atomic_load(&shared->word_keys[at]);
        if (seen == 0 && make && has_room(shared) &&
            atomic_compare_exchange_strong(&shared->word_keys[at], &seen,
                                           key)) {
            atomic_fetch_add(&shared->num_words, 1);
            seen = key;
        }
        if (seen == key) {
            return &shared->words[at];
        }
        at++;
    } while (seen != 0);
    return NULL;
}

static uint64_t cut_value(uint64_t value, size_t bytes)
{
    return bytes >= 8 ? value : value & (((uint64_t)1 << 8 * bytes) - 1);
}

/* The write whose end has not been seen yet. */
static struct iris_order_write *
find_write(struct iris_order_word *word, const struct iris_order_atomic *atomic)
{
    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        struct iris_order_write *write = &word->writes[i];

        if (write->state == IRIS_ORDER_PENDING &&
            write->release.lane == atomic->op.lane && write->id == atomic->id) {
            return write;
        }
    }
    return NULL;
}

/* Whether write `a` is dropped before write `b`. A write in progress is dropped
 * last: lanes that poll may still read its value after many updates. */
static bool goes_first(const struct iris_order_write *a,
                       const struct iris_order_write *b)
{
    return a->state != b->state ? a->state == IRIS_ORDER_KNOWN
                                : a->order < b->order;
}

static void note_lost(struct iris_order_word *word,
                      const struct iris_order_write *write)
{
    for (int i = 0; i < 2; i++) {
        uint64_t value = write->values[i];

        if (!word->lost || value < word->lost_values[0]) {
            word->lost_values[0] = value;
        }
        if (!word->lost || value > word->lost_values[1]) {
            word->lost_values[1] = value;
        }
        word->lost = true;
    }
}

/* A slot for one more write. If none is free, an old write is dropped. */
static struct iris_order_write *add_write(struct iris_order *order,
                                          struct iris_order_word *word)
{
    struct iris_order_write *write = &word->writes[0];

    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        struct iris_order_write *other = &word->writes[i];

        if (other->state == IRIS_ORDER_NONE) {
            write = other;
            break;
        }
        write = goes_first(other, write) ? other : write;
    }
    if (write->state != IRIS_ORDER_NONE) {
        note_lost(word, write);
        for (unsigned i = 0; i < write->release.count; i++) {
            iris_i_order_join(order, &word->old,
                              &write->release.grants[i].clock, 0);
        }
    }
    write->order = ++word->num_writes;
    return write;
}

void iris_i_order_write(struct iris_order *order,
                        const struct iris_order_atomic *atomic)
{
    struct iris_order_lane *lane = &order->shared->lanes[atomic->op.lane];
    struct iris_order_word *word = atomic->word;
    unsigned i;
    struct iris_order_write *write;

    if (word == NULL) {
        return;
    }
    iris_i_order_spin_lock(order->shared, &word->lock);
    write = add_write(order, word);
    write->state = IRIS_ORDER_PENDING;
    write->id = atomic->id;
    write->clock = iris_i_order_now(order, atomic->op.lane);
    write->foreseen = atomic->foreseen;
    write->values[0] = write->values[1] =
        cut_value(atomic->value, atomic->bytes);
    iris_i_order_release(order, &atomic->op, &write->release);
    iris_i_order_spin_unlock(&word->lock);
    /* The lane's next operation has a new time. */
    iris_i_order_spin_lock(order->shared, &lane->lock);
    i = lane->num_releases++ % IRIS_ORDER_RELEASES;
    lane->releases[i].clock = iris_i_order_now(order, atomic->op.lane);
    lane->releases[i].site = atomic->op.site;
    iris_i_order_tick(order, atomic->op.lane);
    iris_i_order_spin_unlock(&lane->lock);
}

/* Whether the read may have seen this write. */
static bool may_see(const struct iris_order_write *write,
                    const struct iris_order_atomic *reader, uint64_t seen)
{
    if (write->state == IRIS_ORDER_PENDING && !write->foreseen) {
        return write->release.lane != reader->op.lane ||
               write->id != reader->id;
    }
    return write->state != IRIS_ORDER_NONE &&
           (write->state == IRIS_ORDER_KNOWN ||
            write->release.lane != reader->op.lane ||
            write->id != reader->id) &&
           (write->values[0] == seen || write->values[1] == seen);
}

/* Acquires from the writes of the word whose value the read may have seen.
 * False: no write has that value. Under the word's lock. */
static bool take_writes(struct iris_order *order,
                        const struct iris_order_word *word,
                        const struct iris_order_atomic *reader, uint64_t seen)
{
    bool found = false;

    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        const struct iris_order_write *write = &word->writes[i];

        if (may_see(write, reader, seen)) {
            found |= write->state == IRIS_ORDER_KNOWN || write->foreseen;
            if (write->release.lane != reader->op.lane) {
                iris_i_order_acquire(order, &reader->op, &write->release);
            }
        }
    }
    if (!found && word->lost) {
        iris_i_order_acquire_clock(order, reader->op.lane, &word->old, 0);
    }
    return found || word->lost;
}

/* A read that acquires nothing may have seen more than the lane's clock says: no
 * later read of the lane goes behind it. */
static void raise_floor(struct iris_order_word *word,
                        const struct iris_order_atomic *reader, uint64_t seen)
{
    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        const struct iris_order_write *write = &word->writes[i];

        if (may_see(write, reader, seen) && write->order > word->floor) {
            word->floor = write->order;
        }
    }
}

bool iris_i_order_read(struct iris_order *order,
                       const struct iris_order_atomic *atomic, uint64_t seen)
{
    struct iris_order_word *word = atomic->word;
    bool found = false;

    if (word != NULL) {
        iris_i_order_spin_lock(order->shared, &word->lock);
        seen = cut_value(seen, atomic->bytes);
        found = take_writes(order, word, atomic, seen);
        if (!atomic->updates && (!is_acquire(atomic->op.sem) ||
                                 atomic->op.scope != IRIS_SCOPE_SYSTEM)) {
            raise_floor(word, atomic, seen);
        }
        iris_i_order_spin_unlock(&word->lock);
    }
    return found;
}

/* ---- Waits ---- */

enum answer { HOLDS, FAILS, UNCLEAR };

/* Whether one value is as `cmp` says to the other. An event does not say whether
 * the word has a sign. */
static enum answer compare_values(uint64_t value, iris_cmp_t cmp,
                                  uint64_t other, size_t bytes)
{
    uint64_t sign = (uint64_t)1 << (8 * bytes - 1);
    bool is_equal = value == other, is_less = value < other;

    if (cmp == IRIS_CMP_EQ || cmp == IRIS_CMP_NE) {
        return is_equal == (cmp == IRIS_CMP_EQ) ? HOLDS : FAILS;
    }
    if (((value ^ other) & sign) != 0) {
        return UNCLEAR;
    }
    return (cmp == IRIS_CMP_LT   ? is_less
            : cmp == IRIS_CMP_LE ? is_less || is_equal
            : cmp == IRIS_CMP_GT ? !is_less && !is_equal
                                 : !is_less)
               ? HOLDS
               : FAILS;
}

/* Whether no dropped write can satisfy the wait. */
static bool has_lost_none(const struct iris_order_word *word,
                          const struct iris_order_atomic *reader,
                          iris_cmp_t cmp)
{
    const uint64_t *lost = word->lost_values;

    if (!word->lost) {
        return true;
    }
    if (cmp == IRIS_CMP_EQ) {
        return reader->value < lost[0] || reader->value > lost[1];
    }
    return cmp != IRIS_CMP_NE &&
           compare_values(lost[0], cmp, reader->value, reader->bytes) ==
               FAILS &&
           compare_values(lost[1], cmp, reader->value, reader->bytes) == FAILS;
}

/* The number of the latest write of the word that happens before the reader's next
 * operation, or that another read may have told it of; 0: none. */
static uint32_t find_base(const struct iris_order *order,
                          const struct iris_order_word *word, uint32_t lane)
{
    const struct iris_order_clock *clock = &order->shared->lanes[lane].clock;
    uint32_t base = word->floor;

    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        const struct iris_order_write *write = &word->writes[i];
        const struct iris_order_moment *moment =
            iris_i_order_moment(order, clock, write->release.lane);

        if (write->state != IRIS_ORDER_NONE && write->order > base &&
            (write->release.lane == lane ||
             (moment != NULL && moment->strict >= write->clock))) {
            base = write->order;
        }
    }
    return base;
}

/* The first write that satisfies the wait, of those from the base on. NULL: the
 * base does, and something else may have reset the word since; or a write whose
 * place or value is unknown may come first. */
static const struct iris_order_write *
find_first(const struct iris_order *order, const struct iris_order_word *word,
           const struct iris_order_atomic *reader, iris_cmp_t cmp)
{
    uint32_t base = find_base(order, word, reader->op.lane);
    const struct iris_order_write *first = NULL;

    if (base == 0 && !has_lost_none(word, reader, cmp)) {
        return NULL;
    }
    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        const struct iris_order_write *write = &word->writes[i];
        enum answer answer =
            compare_values(write->values[0], cmp, reader->value, reader->bytes);

        if (write->state == IRIS_ORDER_NONE || write->order < base) {
            continue;
        }
        if (write->state == IRIS_ORDER_PENDING ||
            write->values[0] != write->values[1] || answer == UNCLEAR ||
            (write->order == base && answer == HOLDS)) {
            return NULL;
        }
        if (answer == HOLDS && (first == NULL || write->order < first->order)) {
            first = write;
        }
    }
    return first;
}

bool iris_i_order_wait(struct iris_order *order,
                       const struct iris_order_atomic *atomic, iris_cmp_t cmp,
                       uint64_t *seen)
{
    struct iris_order_word *word = atomic->word;
    const struct iris_order_write *first = NULL;

    if (word == NULL) {
        return false;
    }
    iris_i_order_spin_lock(order->shared, &word->lock);
    first = find_first(order, word, atomic, cmp);
    if (first != NULL) {
        iris_i_order_acquire(order, &atomic->op, &first->release);
        *seen = first->values[0];
    }
    iris_i_order_spin_unlock(&word->lock);
    return first != NULL;
}

/* An update continues the releases of the writes that it may have seen. */
static void continue_release(struct iris_order *order,
                             const struct iris_order_word *word,
                             struct iris_order_write *own,
                             const struct iris_order_atomic *atomic,
                             uint64_t seen)
{
    const struct iris_order_grant lost = {
        (uint16_t)order->shared->lanes[atomic->op.lane].rank,
        (uint16_t)atomic->op.scope, word->old};

    for (unsigned i = 0; i < IRIS_ORDER_WRITES; i++) {
        const struct iris_order_write *write = &word->writes[i];

        if (write != own && may_see(write, atomic, seen)) {
            iris_i_order_continue(order, &atomic->op, &own->release,
                                  &write->release);
        }
    }
    if (word->lost) {
        add_grant(order, &own->release, &lost, 0);
    }
}

void iris_i_order_written(struct iris_order *order,
                          const struct iris_order_atomic *atomic,
                          const uint64_t values[2], const uint64_t *seen)
{
    struct iris_order_word *word = atomic->word;
    struct iris_order_write *own;

    if (word == NULL) {
        return;
    }
    iris_i_order_spin_lock(order->shared, &word->lock);
    own = find_write(word, atomic); /* or it was dropped after many others */
    if (own != NULL && values == NULL) {
        own->state = IRIS_ORDER_NONE;
    } else if (own != NULL) {
        if (seen != NULL) {
            continue_release(order, word, own, atomic,
                             cut_value(*seen, atomic->bytes));
        }
        own->values[0] = cut_value(values[0], atomic->bytes);
        own->values[1] = cut_value(values[1], atomic->bytes);
        own->state = IRIS_ORDER_KNOWN;
        /* Renumbered, since others came in between. */
        own->order = ++word->num_writes;
    }
    iris_i_order_spin_unlock(&word->lock);
}

/* ---- Places ---- */

bool iris_i_order_locate(const struct iris_heap *heap,
                         const struct iris_cpu_event *event,
                         struct iris_order_range *range_p)
{
    const struct iris_heap_memory *memory = &heap->memory;

    range_p->bytes = event->bytes;
    if (iris_i_is_translated(event)) {
        range_p->offset = iris_i_heap_offset(memory, event->address);
        range_p->rank = event->target_rank;
    } else {
        range_p->rank =
            iris_i_heap_owner(memory, event->address, &range_p->offset);
    }
    return range_p->rank >= 0 && range_p->rank < heap->log->num_ranks &&
           range_p->offset < iris_i_heap_bytes(memory) &&
           range_p->bytes <= iris_i_heap_bytes(memory) - range_p->offset;
}
