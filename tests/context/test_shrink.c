/* SPDX-License-Identifier: MIT
 *
 * iris_shrink() and iris_revoke(): the ranks that are left go on over the same
 * heaps, whichever ranks die, and whenever.
 */
#include "config.h"

#include "support/harness.h"
#include "support/procs.h"
#include "support/wait_kernel.h"

#if IRIS_ON_CPU
#include "context/context.h"
#include "control/control.h"
#include "control/records.h"
#include "heap/heap.h"
#include "report/report.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS_MAX 4
#define BOUND_NS 2000000000
#define PATTERN 4096

/* What a rank does until it is told to end. */
struct job {
    iris_t *iris;
    iris_stream_t *stream;
    uint64_t *in;
    uint64_t *out;
    unsigned char *pattern;
    uint64_t values[2]; /* of copies, which may be late */
    unsigned char seen[PATTERN];
    int first_rank;
    int ids[RANKS_MAX]; /* the first rank of each rank that is left */
    uint64_t step;
    int ends;
};

/* Shared by all processes of a test. */
struct order {
    atomic_int stop;
    atomic_int num_shrunk;
    int way; /* how ranks wait for each other */
};

static struct order *share_order(int way)
{
    struct order *order = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(order, MAP_FAILED);
    order->way = way;
    return order;
}

static uint64_t sum_ids(const struct job *job)
{
    uint64_t sum = 0;

    for (int rank = 0; rank < iris_num_ranks(job->iris); rank++) {
        sum += UINT64_C(1) << (8 * job->ids[rank]);
    }
    return sum;
}

static iris_status_t open_job(struct job *job)
{
    iris_t *iris = job->iris;
    iris_status_t status;

    job->first_rank = iris_rank(iris);
    for (int rank = 0; rank < RANKS_MAX; rank++) {
        job->ids[rank] = rank;
    }
    status = iris_calloc(iris, 2, sizeof(uint64_t), (void **)&job->in);
    if (status == IRIS_OK) {
        status = iris_calloc(iris, 2, sizeof(uint64_t), (void **)&job->out);
    }
    if (status == IRIS_OK) {
        status = iris_malloc(iris, PATTERN, (void **)&job->pattern);
    }
    if (status == IRIS_OK) {
        status = iris_stream_create(iris, &job->stream);
    }
    if (status == IRIS_OK) {
        status =
            iris_memset(iris, job->pattern, job->first_rank + 1, PATTERN, NULL);
    }
    return status == IRIS_OK ? iris_barrier(iris, NULL, NULL) : status;
}

/* The sum of the ranks' bytes, over those that are left. */
static iris_status_t add_up(struct job *job, struct order *order)
{
    iris_t *iris = job->iris;
    struct iris_ccl_options options;
    iris_status_t status;

    iris_ccl_options_init(&options);
    options.stream = job->stream;
    job->values[0] = UINT64_C(1) << (8 * job->first_rank);
    job->values[1] = iris_rank(iris) == 0 && atomic_load(&order->stop);
    status = iris_memcpy(iris, job->in, job->values, sizeof job->values,
                         job->stream);
    if (status == IRIS_OK) {
        status = iris_all_reduce(iris, job->in, job->out, 2, IRIS_DTYPE_U64,
                                 IRIS_REDUCE_SUM, &options);
    }
    if (status == IRIS_OK) {
        status = iris_memcpy(iris, job->values, job->out, sizeof job->values,
                             job->stream);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, job->stream);
    }
    if (status == IRIS_OK && job->values[0] != sum_ids(job)) {
        print_error("rank %d, step %llu: sum %llx instead of %llx\n",
                    job->first_rank, (unsigned long long)job->step,
                    (unsigned long long)job->values[0],
                    (unsigned long long)sum_ids(job));
        return IRIS_ERR_RACE; /* no call here returns it */
    }
    job->ends = status == IRIS_OK && job->values[1] != 0;
    return status;
}

static iris_status_t use_group(struct job *job)
{
    int members[RANKS_MAX], count = iris_num_ranks(job->iris);
    iris_group_t *group;
    iris_status_t status;

    for (int i = 0; i < count; i++) {
        members[i] = count - 1 - i;
    }
    status = iris_group_create(job->iris, members, count, &group);
    if (status == IRIS_OK) {
        status = iris_device_barrier(job->iris, job->stream, group);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(job->iris, job->stream);
    }
    return status == IRIS_OK ? iris_group_destroy(job->iris, group) : status;
}

static iris_status_t use_heap(struct job *job)
{
    iris_status_t status;
    void *ptr;

    status = iris_malloc(job->iris, 100000, &ptr);
    if (status != IRIS_OK) {
        return status;
    }
    return job->step % 2 ? iris_free(job->iris, ptr)
                         : iris_free_later(job->iris, ptr);
}

/* Reads the next rank's pattern. */
static iris_status_t use_neighbour(struct job *job)
{
    iris_t *iris = job->iris;
    int next = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    iris_status_t status;

    memset(job->seen, 0, sizeof job->seen);
    status = iris_get_on_stream(iris, job->seen, job->pattern, PATTERN, next,
                                job->stream);
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, job->stream);
    }
    for (int i = 0; status == IRIS_OK && i < PATTERN; i++) {
        if (job->seen[i] != job->ids[next] + 1) {
            print_error("rank %d: byte %d of rank %d is %d\n", job->first_rank,
                        i, job->ids[next], job->seen[i]);
            return IRIS_ERR_RACE;
        }
    }
    return status;
}

static iris_status_t make_step(struct job *job, struct order *order)
{
    iris_status_t status = IRIS_OK;

    switch (order->way == 0 ? job->step % 5 : (unsigned)order->way) {
    case 1:
        status = iris_device_barrier(job->iris, job->stream, NULL);
        break;
    case 2:
        status = use_group(job);
        break;
    case 3:
        status = use_heap(job);
        break;
    case 4:
        status = use_neighbour(job);
        break;
    default:
        status = iris_barrier(job->iris, NULL, NULL);
        break;
    }
    return status == IRIS_OK ? add_up(job, order) : status;
}

/* Shrinks, and agrees on the step. */
static iris_status_t go_on(struct job *job, struct order *order)
{
    int former[RANKS_MAX], ids[RANKS_MAX];
    iris_status_t status = iris_shrink(job->iris, former);

    if (status != IRIS_OK) {
        return status;
    }
    memcpy(ids, job->ids, sizeof ids);
    for (int rank = 0; rank < iris_num_ranks(job->iris); rank++) {
        job->ids[rank] = ids[former[rank]];
    }
    if (job->ids[iris_rank(job->iris)] != job->first_rank) {
        print_error("rank %d is now rank %d, which was rank %d\n",
                    job->first_rank, iris_rank(job->iris),
                    job->ids[iris_rank(job->iris)]);
        return IRIS_ERR_RACE;
    }
    atomic_fetch_add(&order->num_shrunk, 1);
    return iris_broadcast(job->iris, &job->step, sizeof job->step, 0, NULL);
}

static int is_loss(iris_status_t status)
{
    return status == IRIS_ERR_PEER_LOST || status == IRIS_ERR_REVOKED;
}

/* Works until the order to stop, which the ranks get in the same step. */
static iris_status_t work(struct job *job, struct order *order,
                          struct proc_report *report)
{
    iris_status_t status = open_job(job);
    int has_opened = status == IRIS_OK;

    while (has_opened && !job->ends) {
        status = make_step(job, order);
        while (is_loss(status)) {
            status = go_on(job, order);
        }
        if (status != IRIS_OK) {
            break;
        }
        job->step++;
        proc_reach(report, 1 + RANKS_MAX - iris_num_ranks(job->iris));
    }
    return status;
}

static void body(int rank, struct proc_report *report, void *arg)
{
    struct job job = {.iris = proc_init(report)};
    struct order *order = arg;

    if (job.iris == NULL) {
        return;
    }
    proc_note(report, work(&job, order, report));
    report->value = (int64_t)sum_ids(&job);
    proc_finalize(report, job.iris);
}

/* A plan: which of how many ranks die, and the times between, in us. */
struct plan {
    int num_ranks;
    int num_victims;
    int victims[RANKS_MAX];
    unsigned pauses[RANKS_MAX];
    int way;
};

static void check_survivor(const struct proc_report *report, uint64_t sum)
{
    if (report->status != IRIS_OK || report->finalize_status != IRIS_OK) {
        print_error("%s: %s\n", iris_status_string(report->status),
                    report->message);
    }
    assert_int_equal(report->status, IRIS_OK);
    assert_int_equal(report->finalize_status, IRIS_OK);
    assert_int_equal(report->value, (int64_t)sum);
}

static void run_plan(const struct plan *plan)
{
    struct order *order = share_order(plan->way);
    int lives[RANKS_MAX] = {0};
    uint64_t sum = 0;
    struct procs procs;

    procs_start(&procs, plan->num_ranks, body, order);
    for (int rank = 0; rank < plan->num_ranks; rank++) {
        procs_await(&procs, rank, 1 + RANKS_MAX - plan->num_ranks);
        lives[rank] = 1;
    }
    for (int i = 0; i < plan->num_victims; i++) {
        usleep(plan->pauses[i]);
        lives[plan->victims[i]] = 0;
        (void)procs_kill(&procs, plan->victims[i]);
    }
    for (int rank = 0; rank < plan->num_ranks; rank++) {
        if (lives[rank]) {
            procs_await(&procs, rank,
                        1 + RANKS_MAX - plan->num_ranks + plan->num_victims);
            sum += UINT64_C(1) << (8 * rank);
        }
    }
    atomic_store(&order->stop, 1);
    procs_join(&procs);
    for (int rank = 0; rank < plan->num_ranks; rank++) {
        if (lives[rank]) {
            check_survivor(&procs.reports[rank], sum);
        }
    }
    procs_free(&procs);
    munmap(order, sizeof *order);
}

static TEST(survivors_go_on_wherever_a_rank_dies)
{
    for (int way = 1; way <= 5; way++) {
        const struct plan plan = {
            .num_ranks = 3, .num_victims = 1, .victims = {way % 3}, .way = way};

        run_plan(&plan);
    }
}

/* In a long run 300 kills. Two deaths may come while the first is dealt with. */
static TEST(every_job_ends_with_the_sums_of_its_survivors)
{
    size_t kills = 0, all = harness_count(300, 8);

    srand(58);
    while (kills < all) {
        struct plan plan = {.num_ranks = 2 + rand() % (RANKS_MAX - 1)};
        int order[RANKS_MAX] = {0, 1, 2, 3};

        plan.num_victims = 1 + rand() % (plan.num_ranks - 1);
        for (int i = 0; i < plan.num_victims; i++) {
            int j = i + rand() % (plan.num_ranks - i), victim = order[j];

            order[j] = order[i];
            plan.victims[i] = victim;
            plan.pauses[i] = (unsigned)rand() % (rand() % 2 ? 20000 : 1000);
        }
        run_plan(&plan);
        kills += (size_t)plan.num_victims;
    }
}

/* ---- Ranks as threads, and calls one by one ---- */

/* Checks the context after a shrink: every part works with the ranks left. */
static int check_context(iris_t *iris, int num_ranks)
{
    struct order order = {.way = 0};
    struct job job = {.iris = iris};
    struct iris_report *report;
    iris_tensor_t ones;
    iris_status_t status;

    CHECK_EQUAL(iris_num_ranks(iris), num_ranks);
    CHECK_EQUAL(iris_lost_rank(iris), -1);
    CHECK_OK(open_job(&job));
    for (; job.step < 10; job.step++) {
        status = make_step(&job, &order);
        CHECK_OK(status);
    }
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(4, 4), NULL, &ones));
    CHECK_OK(iris_free(iris, ones.data));
    CHECK_OK(iris_i_report_read(iris_i_heap(iris)->memory.control->records->fd,
                                &report));
    num_ranks = report->num_ranks;
    free(report);
    CHECK_EQUAL(num_ranks, iris_num_ranks(iris));
    return 0;
}

/* Products in each way, with this workspace or the library's own. */
static int use_products(iris_t *iris, iris_ops_workspace_t **workspace_p)
{
    static const int ways[] = {1, 2};
    struct iris_ops_options options;
    float seen[64];
    iris_tensor_t ones, out;

    iris_ops_options_init(&options);
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(8, 8), NULL, &ones));
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(8, 8), NULL, &out));
    for (int way = 0; way < 2; way++) {
        options.chunks = ways[way];
        CHECK_OK(iris_matmul_all_reduce(iris, &ones, &ones, &out, &options));
        CHECK_OK(harness_read(iris, seen, out.data, sizeof seen));
        CHECK_EQUAL(seen[0], 8 * iris_num_ranks(iris));
        CHECK_EQUAL(seen[63], 8 * iris_num_ranks(iris));
    }
    if (*workspace_p == NULL) {
        CHECK_OK(iris_matmul_all_reduce_preamble(iris, &ones, &ones, &out,
                                                 &options, workspace_p));
    } else { /* of the former ranks */
        options.workspace = *workspace_p;
        CHECK_STATUS(iris_matmul_all_reduce(iris, &ones, &ones, &out, &options),
                     IRIS_ERR_INVALID);
        CHECK_MESSAGE("not a live one");
    }
    return 0;
}

/* After a shrink a plan of the former ranks can only be destroyed. */
static int use_old_plan(iris_t *iris, iris_plan_t *plan)
{
    iris_plan_state_t state;

    CHECK_STATUS(iris_plan_begin(iris, plan, NULL, NULL), IRIS_ERR_STATE);
    CHECK_MESSAGE("before iris_shrink(); destroy it and make another");
    CHECK_STATUS(iris_plan_end(iris, plan), IRIS_ERR_STATE);
    CHECK_STATUS(iris_plan_state(iris, plan, &state), IRIS_ERR_STATE);
    CHECK_STATUS(iris_plan_abort(iris, plan), IRIS_ERR_STATE);
    CHECK(iris_plan_device(iris, plan) == NULL);
    CHECK_OK(iris_plan_destroy(iris, plan));
    return 0;
}

/* A job whose rank `victim` leaves by an error. */
struct loss {
    int num_ranks;
    int victim;
    atomic_int num_whole; /* survivors that found all as it should be */
};

static int survive(iris_t *iris, struct loss *loss)
{
    int former[RANKS_MAX], rank = iris_rank(iris);
    iris_ops_workspace_t *workspace = NULL;
    iris_group_t *group;
    iris_plan_t *plan;
    uint64_t *word;
    struct iris_plan_segment segment = {.to_rank = 1, .bytes = sizeof *word};

    CHECK_OK(iris_calloc(iris, 2, sizeof *word, (void **)&word));
    CHECK_OK(iris_group_create(iris, &rank, 1, &group));
    segment.src = word;
    segment.dst = word + 1;
    CHECK_OK(iris_plan_create(iris, &segment, 1, NULL, &plan));
    CHECK_OK(iris_plan_begin(iris, plan, NULL, NULL));
    CHECK_OK(iris_plan_abort(iris, plan));
    CHECK_EQUAL(use_products(iris, &workspace), 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (rank == loss->victim) {
        return 3;
    }
    CHECK_OK(launch_wait(iris, word));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_PEER_LOST);
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_PEER_LOST);
    CHECK_OK(iris_shrink(iris, former));
    CHECK_EQUAL(former[iris_rank(iris)], rank);
    CHECK_EQUAL(iris_rank(iris), rank - (rank > loss->victim));
    CHECK_STATUS(iris_barrier(iris, NULL, group), IRIS_ERR_INVALID);
    CHECK_EQUAL(use_old_plan(iris, plan), 0);
    CHECK_EQUAL(use_products(iris, &workspace), 0);
    if (check_context(iris, loss->num_ranks - 1) != 0) {
        return 1;
    }
    atomic_fetch_add(&loss->num_whole, 1);
    return 0;
}

static int survive_body(iris_t *iris, void *arg)
{
    return survive(iris, arg);
}

static TEST(rank_threads_go_on_when_one_leaves)
{
    for (int num_ranks = 2; num_ranks <= RANKS_MAX; num_ranks++) {
        for (int victim = 0; victim < num_ranks; victim++) {
            struct loss loss = {num_ranks, victim, 0};

            assert_int_equal(iris_spawn(NULL, num_ranks, survive_body, &loss),
                             IRIS_ERR_PEER_LOST);
            assert_non_null(strstr(iris_last_error(), "returned 3"));
            assert_int_equal(loss.num_whole, num_ranks - 1);
        }
    }
}

/* One rank revokes the job while the others wait in a kernel or on the host. */
static int revoke_body(iris_t *iris, void *arg)
{
    int *is_host = arg, former[RANKS_MAX], rank = iris_rank(iris);
    int num_ranks = iris_num_ranks(iris);
    uint64_t *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    if (rank == num_ranks - 1) {
        CHECK_OK(iris_revoke(iris));
        CHECK_OK(iris_revoke(iris));
    } else if (*is_host) {
        CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_REVOKED);
    } else {
        CHECK_OK(launch_wait(iris, word));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_REVOKED);
    }
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_REVOKED);
    CHECK(harness_message_has("rank"));
    for (int round = 0; round < 3; round++) { /* without a loss, too */
        CHECK_OK(iris_shrink(iris, former));
        CHECK_EQUAL(former[rank], rank);
    }
    CHECK_OK(iris_free(iris, word));
    return check_context(iris, num_ranks);
}

static TEST(a_rank_that_revokes_wakes_all_others)
{
    for (int is_host = 0; is_host < 2; is_host++) {
        harness_run(2, revoke_body, &is_host);
        harness_run(RANKS_MAX, revoke_body, &is_host);
        setenv("IRIS_SPAWN", "processes", 1);
        harness_run(3, revoke_body, &is_host);
        unsetenv("IRIS_SPAWN");
    }
}

/* Rank 1 is killed, and rank 2 while rank 0 waits for it in iris_shrink(). */
static void late_body(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris == NULL) {
        return;
    }
    proc_reach(report, 1);
    if (rank != 0) {
        for (;;) {
            pause();
        }
    }
    report->value = iris_barrier(iris, NULL, NULL);
    proc_reach(report, 2);
    proc_note(report, iris_shrink(iris, NULL));
    report->value = report->value == IRIS_ERR_PEER_LOST &&
                    report->status == IRIS_OK && check_context(iris, 1) == 0;
    proc_finalize(report, iris);
}

static TEST(a_rank_may_die_while_others_shrink)
{
    struct procs procs;
    int64_t death_ns;

    procs_start(&procs, 3, late_body, NULL);
    for (int rank = 0; rank < 3; rank++) {
        procs_await(&procs, rank, 1);
    }
    (void)procs_kill(&procs, 1);
    procs_await(&procs, 0, 2);
    usleep(20000);
    death_ns = procs_now_ns(); /* not before that */
    (void)procs_kill(&procs, 2);
    procs_join(&procs);
    assert_int_equal(procs.reports[0].status, IRIS_OK);
    assert_true(procs.reports[0].end_ns > death_ns);
    assert_true(procs.reports[0].end_ns - death_ns < BOUND_NS);
    assert_int_equal(procs.reports[0].value, 1);
    assert_int_equal(procs.reports[0].finalize_status, IRIS_OK);
    procs_free(&procs);
}

/* A planted fault: one rank has an allocation that the others do not have. */
static int differ_body(iris_t *iris, void *arg)
{
    size_t offset;

    if (iris_rank(iris) == 1) {
        CHECK_OK(iris_i_alloc_take(iris_i_heap(iris)->names.alloc, 4096,
                                   IRIS_ALIGNMENT, &offset));
    }
    CHECK_STATUS(iris_shrink(iris, NULL), IRIS_ERR_MISMATCH);
    CHECK(harness_message_has("iris_shrink(allocations 1"));
    CHECK(harness_message_has("iris_shrink(allocations 2"));
    (void)arg;
    return IRIS_ERR_MISMATCH;
}

static TEST(heaps_that_differ_are_found)
{
    assert_int_equal(iris_spawn(NULL, 3, differ_body, NULL), IRIS_ERR_MISMATCH);
}

/* Rank 1 never comes. */
static int absent_body(iris_t *iris, void *arg)
{
    atomic_int *is_over = arg;

    if (iris_rank(iris) == 1) {
        while (!atomic_load(is_over)) {
            poll(NULL, 0, 1);
        }
        CHECK_STATUS(iris_shrink(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK(harness_message_has("rank 0 gave up"));
    } else {
        CHECK_STATUS(iris_shrink(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK(harness_message_has("rank 1 has not come to iris_shrink"));
        atomic_store(is_over, 1);
    }
    return IRIS_ERR_TIMEOUT;
}

static TEST(a_living_rank_that_does_not_come_is_named)
{
    atomic_int is_over = 0;

    setenv("IRIS_TIMEOUT_MS", "300", 1);
    assert_int_equal(iris_spawn(NULL, 2, absent_body, &is_over),
                     IRIS_ERR_TIMEOUT);
}

static int refused_body(iris_t *iris, void *arg)
{
    if (arg == NULL) {
        CHECK_OK(iris_trace_enable(iris, 1000));
    }
    CHECK_STATUS(iris_shrink(iris, NULL), IRIS_ERR_UNSUPPORTED);
    CHECK(harness_message_has(arg == NULL ? "iris_trace_disable" : arg));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

static TEST(what_cannot_shrink_says_so)
{
    harness_run(2, refused_body, NULL);
    setenv("IRIS_NODES", "2", 1);
    harness_run(2, refused_body, "several nodes");
    unsetenv("IRIS_NODES");
    setenv("IRIS_CHECK", "race", 1);
    harness_run(2, refused_body, "IRIS_CHECK");
    unsetenv("IRIS_CHECK");
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
#endif
