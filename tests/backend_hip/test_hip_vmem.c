/* SPDX-License-Identifier: MIT
 *
 * Heaps that grow, and memory of the program's own on them, when a call of the
 * runtime fails on one rank: all ranks are told, nothing stays mapped or open,
 * and the heaps go on alike.
 */
#include "config.h"

#include "support/hip_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/procs.h"

#define BLOCK ((size_t)6 << 20)
#define PIECE ((size_t)2 << 20)
#define OUT_OF_MEMORY "2"
#define MOST 60

/* ---- One rank ---- */

static const char *const calls[] = {
    "hipMemAddressReserve",
    "hipMemCreate",
    "hipMemExportToShareableHandle",
    "hipMemGetAllocationGranularity",
    "hipMemMap",
    "hipMemSetAccess",
};

static const char *const destructors[] = {
    "hipMemAddressFree",
    "hipMemRelease",
    "hipMemUnmap",
    "hipMemGetInfo",
};

/* 0 if the job has no such call. */
static int fail_one(const char *call, int nth, int tolerated)
{
    struct hip_held before;
    iris_status_t status;
    char list[96];
    int failed;

    hip_note(&before);
    snprintf(list, sizeof list, "%s:%d:" OUT_OF_MEMORY, call, nth);
    (void)fakehip_fail(list);
    status = hip_job();
    failed = fakehip_fail(NULL);
    if (status != (failed == 0 || tolerated ? IRIS_OK : IRIS_ERR_NO_MEMORY) ||
        (status != IRIS_OK && !harness_message_has("rank 0"))) {
        print_error("%s, call %d: %s: %s\n", call, nth,
                    iris_status_string(status), iris_last_error());
        fail();
    }
    if (hip_found(&before) != 0) {
        print_error("%s, call %d\n", call, nth);
        fail();
    }
    return failed;
}

static TEST(every_call_may_fail)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        int nth = 1;

        while (nth <= MOST && fail_one(calls[i], nth, 0) != 0) {
            nth++;
        }
        assert_true(nth > 1);
    }
    for (size_t i = 0; i < sizeof destructors / sizeof *destructors; i++) {
        (void)fail_one(destructors[i], 1, 1);
        (void)fail_one(destructors[i], 2, 1);
    }
}

/* ---- Ranks ---- */

/* Whether this process holds what it held. */
static int holds_the_same(const struct fakehip_counts *before)
{
    struct fakehip_counts now;

    fakehip_count(&now);
    CHECK_EQUAL(now.handles, before->handles);
    CHECK_EQUAL(now.allocations, before->allocations);
    CHECK_EQUAL(now.rooms, before->rooms);
    return 0;
}

/* Makes the nth of these calls from now on fail in the last rank's process. */
static int plant(iris_t *iris, const char *call, int nth)
{
    char list[96];

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (iris_rank(iris) == iris_num_ranks(iris) - 1) {
        snprintf(list, sizeof list, "%s:%d:" OUT_OF_MEMORY, call, nth);
        (void)fakehip_fail(list);
    }
    return iris_barrier(iris, NULL, NULL);
}

/* How many failed; on the last rank. */
static int unplant(iris_t *iris)
{
    int failed = -1;

    (void)iris_barrier(iris, NULL, NULL);
    if (iris_rank(iris) == iris_num_ranks(iris) - 1) {
        failed = fakehip_fail(NULL);
    }
    (void)iris_barrier(iris, NULL, NULL);
    return failed;
}

static int works(iris_t *iris, void *ptr, size_t bytes)
{
    void *remote;

    CHECK_OK(iris_memset(iris, ptr, 10 + iris_rank(iris), bytes, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
        CHECK_OK(iris_as_remote(iris, ptr, rank, &remote));
        CHECK(harness_holds(iris, remote, bytes, 10 + rank));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_free(iris, ptr);
}

static int grow(iris_t *iris, void *arg)
{
    const char *call = *(const char **)arg;
    iris_status_t status = IRIS_ERR_NO_MEMORY;
    struct iris_heap_stats before, after;
    struct fakehip_counts counts;
    void *ptr;

    CHECK_OK(iris_heap_stats(iris, &before));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    fakehip_count(&counts);
    for (int nth = 1; status != IRIS_OK; nth++) {
        CHECK(nth < MOST);
        CHECK_EQUAL(plant(iris, call, nth), 0);
        status = iris_malloc(iris, BLOCK, &ptr);
        (void)unplant(iris);
        if (status != IRIS_OK) {
            CHECK_STATUS(status, IRIS_ERR_NO_MEMORY);
            CHECK_MESSAGE("hipErrorOutOfMemory");
            CHECK_OK(iris_heap_stats(iris, &after));
            CHECK_EQUAL(after.mapped_bytes, before.mapped_bytes);
            CHECK_EQUAL(after.used_bytes, before.used_bytes);
            CHECK_EQUAL(holds_the_same(&counts), 0);
            CHECK_OK(iris_barrier(iris, NULL, NULL));
        }
    }
    return works(iris, ptr, BLOCK);
}

static void fail_alike(const char *call, int num_ranks)
{
    struct hip_held before;

    hip_note(&before);
    harness_run(num_ranks, grow, &call);
    assert_int_equal(hip_found(&before), 0);
}

static TEST(growth_that_fails_on_one_rank_fails_on_all)
{
    static const char *const rows[] = {"hipMemCreate",
                                       "hipMemMap",
                                       "hipMemSetAccess",
                                       "hipMemsetAsync",
                                       "hipMemExportToShareableHandle",
                                       "hipMemImportFromShareableHandle"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int num_ranks = 1; num_ranks <= 4; num_ranks *= 2) {
            setenv("IRIS_SPAWN", "threads", 1);
            fail_alike(rows[i], num_ranks);
            setenv("IRIS_SPAWN", "processes", 1);
            fail_alike(rows[i], num_ranks);
        }
    }
}

static int use_up(iris_t *iris, void *arg)
{
    void *ptrs[8];
    int count = 0;
    iris_status_t status = IRIS_OK;

    while (status == IRIS_OK && count < 8) {
        status = iris_malloc(iris, PIECE, &ptrs[count]);
        count += status == IRIS_OK;
    }
    /* The GPU has 10 MiB; the first piece is the library's own. */
    CHECK_STATUS(status, IRIS_ERR_NO_MEMORY);
    CHECK_EQUAL(count, 4);
    CHECK_MESSAGE("no 2097152 bytes more for the heap");
    CHECK_MESSAGE("0 of 10485760 bytes are free");
    CHECK_MESSAGE("may grow to 1073741824 (IRIS_HEAP_RESERVE)");
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(works(iris, ptrs[i], PIECE), 0);
    }
    CHECK_OK(iris_malloc(iris, 4 * PIECE, &ptrs[0]));
    return works(iris, ptrs[0], 4 * PIECE);
}

static TEST(a_gpu_without_memory_is_an_error_and_no_more)
{
    setenv("FAKEHIP_MEMORY", "10485760", 1);
    setenv("IRIS_HEAP_RESERVE", "1G", 1);
    harness_run(1, use_up, NULL);
    harness_run(2, use_up, NULL);
    setenv("IRIS_SPAWN", "processes", 1);
    harness_run(4, use_up, NULL);
}

/* A rank whose own range or mapping of a peer's stayed would keep the memory. */
static int grow_and_trim(iris_t *iris, void *arg)
{
    struct fakehip_counts before;
    size_t freed;
    void *ptr;

    CHECK_OK(iris_barrier(iris, NULL, NULL));
    fakehip_count(&before);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_malloc(iris, 3 * BLOCK, &ptr));
        CHECK_EQUAL(works(iris, ptr, 3 * BLOCK), 0);
        CHECK_OK(iris_heap_trim(iris, &freed));
        CHECK(freed >= 3 * BLOCK);
        CHECK_EQUAL(holds_the_same(&before), 0);
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(trim_gives_back_what_every_process_maps)
{
    setenv("IRIS_HEAP_RESERVE", "1G", 1);
    harness_run(1, grow_and_trim, NULL);
    harness_run(4, grow_and_trim, NULL);
    setenv("IRIS_SPAWN", "processes", 1);
    harness_run(4, grow_and_trim, NULL);
}

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

static TEST(a_start_that_fails_is_an_error)
{
    static const char *const rows[] = {"hipMemImportFromShareableHandle:1:2",
                                       "hipMemAddressReserve:2+:2",
                                       "hipMemMap:2:2", "hipMemSetAccess:2:2",
                                       "hipMemExportToShareableHandle:1:2"};

    setenv("IRIS_SPAWN", "processes", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hip_held before;

        hip_note(&before);
        (void)fakehip_fail(rows[i]); /* in the children */
        assert_int_equal(iris_spawn(NULL, 2, nothing, NULL),
                         IRIS_ERR_NO_MEMORY);
        assert_true(harness_message_has("hipErrorOutOfMemory"));
        assert_int_equal(hip_found(&before), 0);
    }
    (void)fakehip_fail(NULL);
    harness_run(2, nothing, NULL);
}

/* ---- Ranks that die, and strangers ---- */

/* Grows until something is wrong. */
static void grow_on(int rank, struct proc_report *report, void *arg)
{
    iris_status_t status = IRIS_OK;
    iris_t *iris = proc_init(report);
    void *ptr;

    if (rank < 0 || arg != NULL || iris == NULL) {
        return;
    }
    proc_reach(report, 1);
    while (status == IRIS_OK) {
        status = iris_malloc(iris, PIECE, &ptr);
    }
    proc_note(report, status);
    proc_finalize(report, iris);
}

static TEST(a_rank_that_dies_while_the_heap_grows_is_told_of)
{
    size_t trials = harness_count(200, 12);

    setenv("IRIS_HEAP_SIZE", "200M", 1);
    for (size_t trial = 0; trial < trials; trial++) {
        struct procs procs;
        int64_t death;

        procs_start(&procs, 3, grow_on, NULL);
        procs_await(&procs, 1, 1);
        usleep((unsigned)(trial * 997 % 4000));
        death = procs_kill(&procs, 1);
        procs_join(&procs);
        for (int rank = 0; rank < 3; rank += 2) {
            const struct proc_report *report = &procs.reports[rank];

            if (report->status == IRIS_ERR_NO_MEMORY) {
                continue; /* it was too late: the heap was full */
            }
            if (report->status != IRIS_ERR_PEER_LOST ||
                report->end_ns - death > 2000000000 ||
                strstr(report->message, "rank 1 ") == NULL) {
                print_error("%s: %s\n", iris_status_string(report->status),
                            report->message);
                fail();
            }
        }
        procs_free(&procs);
    }
    setenv("IRIS_HEAP_SIZE", "16M", 1);
}

/* The address of this process's only datagram socket. */
static socklen_t find_socket(struct sockaddr_un *address)
{
    for (int fd = 3; fd < 1000; fd++) {
        socklen_t bytes = sizeof *address, type_bytes = sizeof(int);
        int type = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) == 0 &&
            type == SOCK_DGRAM &&
            getsockname(fd, (struct sockaddr *)address, &bytes) == 0 &&
            address->sun_family == AF_UNIX) {
            return bytes;
        }
    }
    return 0;
}

/* Sends messages of many sizes with a descriptor each. */
static int disturb(const struct sockaddr_un *address, socklen_t length)
{
    char words[2000] = "what you have always wanted";
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec iov = {words, 0};
    struct msghdr message = {.msg_name = (void *)(uintptr_t)address,
                             .msg_namelen = length,
                             .msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};
    int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0), sent = 0;

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(2 * sizeof(int)); /* descriptor 0 */
    for (iov.iov_len = 1; iov.iov_len < sizeof words; iov.iov_len += 37) {
        sent += sendmsg(sock, &message, MSG_NOSIGNAL) > 0;
    }
    return sent;
}

static int grow_disturbed(iris_t *iris, void *arg)
{
    struct sockaddr_un address;
    socklen_t length = find_socket(&address);
    struct leaks leaks;
    void *ptr;
    int state = 1;
    pid_t pid;

    CHECK(arg == NULL && length > 0);
    leaks_note(&leaks);
    /* The fake runtime's handles: for each rank the whole pieces, and the one at
     * the end, which others may share. */
    leaks.fds += 2 * 3;
    pid = fork();
    if (pid == 0) {
        _exit(disturb(&address, length) > 0 ? 0 : 1);
    }
    CHECK(waitpid(pid, &state, 0) == pid && state == 0);
    CHECK_OK(iris_malloc(iris, BLOCK, &ptr));
    CHECK_EQUAL(works(iris, ptr, BLOCK), 0);
    return leaks_found(&leaks);
}

static TEST(strangers_do_not_disturb)
{
    setenv("IRIS_SPAWN", "processes", 1);
    setenv("IRIS_LOG_LEVEL", "error", 1);
    harness_run(3, grow_disturbed, NULL);
}

/* ---- Memory of the program's own ---- */

static int adopt(iris_t *iris, void *arg)
{
    const char *call = *(const char **)arg;
    struct fakehip_counts counts;
    int failed = 1, shared = 0;
    void *own, *symmetric;

    CHECK_EQUAL(fakehip_map(iris_device_id(iris), PIECE, 1, &own), 0);
    /* A copy needs memory, which stays. */
    CHECK_OK(iris_malloc(iris, PIECE, &symmetric));
    CHECK_OK(iris_free(iris, symmetric));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    fakehip_count(&counts);
    for (int nth = 1; failed != 0; nth++) {
        iris_status_t status;

        CHECK(nth < MOST);
        CHECK_EQUAL(plant(iris, call, nth), 0);
        status = iris_as_symmetric(iris, own, 100, &symmetric, &shared);
        failed = unplant(iris);
        CHECK_OK(iris_broadcast(iris, &failed, sizeof failed,
                                iris_num_ranks(iris) - 1, NULL));
        if (status == IRIS_OK) {
            CHECK_EQUAL(works(iris, symmetric, 100), 0);
        } else {
            CHECK_STATUS(status, IRIS_ERR_NO_MEMORY);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_EQUAL(holds_the_same(&counts), 0);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    CHECK_EQUAL(shared, getenv("FAKEHIP_VERSION") == NULL); /* else older */
    fakehip_unmap(own, PIECE);
    return 0;
}

static TEST(sharing_that_fails_on_one_rank_leaves_nothing)
{
    static const char *const rows[] = {
        "hipMemRetainAllocationHandle",
        "hipMemGetAllocationPropertiesFromHandle",
        "hipMemGetAddressRange",
        "hipMemExportToShareableHandle",
        "hipMemMap",
        "hipMemSetAccess",
        "hipMemImportFromShareableHandle",
        "hipMemUnmap",
        "hipMemRelease"};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int num_ranks = 1; num_ranks <= 4; num_ranks *= 2) {
            struct hip_held before;
            const char *call = rows[i];

            hip_note(&before);
            setenv("IRIS_SPAWN", "threads", 1);
            harness_run(num_ranks, adopt, &call);
            setenv("IRIS_SPAWN", "processes", 1);
            harness_run(num_ranks, adopt, &call);
            assert_int_equal(hip_found(&before), 0);
        }
    }
}

/* ---- Versions, allocators ---- */

static TEST(descriptors_are_given_as_the_version_takes_them)
{
    const char *call = "none";

    setenv("IRIS_SPAWN", "processes", 1);
    setenv("FAKEHIP_VERSION", "70100000", 1);
    harness_run(4, grow, &call);
    setenv("FAKEHIP_VERSION", "60342134", 1);
    harness_run(4, grow, &call);
    harness_run(4, adopt, &call);
}

static int vmem_setup(void **state)
{
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    return hip_setup(state);
}

TEST_GROUP_WITH(vmem_setup, harness_teardown, hip);
