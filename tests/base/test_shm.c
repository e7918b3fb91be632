/* SPDX-License-Identifier: MIT
 *
 * Shared memory that is full: an error with its remedy, never SIGBUS, and
 * everything works again once there is room. Each test has a small /dev/shm of
 * its own; where not even a user namespace allows that, it is skipped.
 */
#include "config.h"

#include "support/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/leaks.h"
#include "support/mounts.h"

#define FILLER "/dev/shm/filler"

static unsigned long long free_bytes(void)
{
    struct statvfs fs = {0};

    statvfs("/dev/shm", &fs);
    return (unsigned long long)fs.f_bfree * fs.f_bsize;
}

/* Makes the filler so large that about `bytes` stay free. */
static int fill(unsigned long long bytes)
{
    int fd = open(FILLER, O_CREAT | O_RDWR, 0600);
    unsigned long long now = free_bytes();
    off_t size;

    CHECK(fd >= 0);
    size = lseek(fd, 0, SEEK_END);
    if (now > bytes) {
        CHECK_EQUAL(posix_fallocate(fd, size, (off_t)(now - bytes)), 0);
    }
    close(fd);
    return 0;
}

/* Runs fn(way) in a child with a small /dev/shm, for ranks made in each way. */
static void with_small_shm(const char *options, int (*fn)(const char *way))
{
    static const char *const ways[] = {"threads", "processes"};

    for (int way = 0; way < 2; way++) {
        pid_t pid;
        int how;

        fflush(NULL);
        pid = fork();
        if (pid == 0) {
            struct leaks before;
            unsigned long long free_before;

            if (!mounts_small("/dev/shm", options)) {
                exit(77);
            }
            leaks_note(&before);
            free_before = free_bytes();
            exit(fn(ways[way]) != 0 || leaks_found(&before) != 0 ||
                 free_bytes() != free_before);
        }
        assert_int_equal(waitpid(pid, &how, 0), pid);
        if (WIFEXITED(how) && WEXITSTATUS(how) == 77) {
            print_message("cannot mount a /dev/shm of its own: nothing done\n");
            skip();
        }
        assert_int_equal(how, 0);
    }
}

static void configure(struct iris_config *config, const char *way)
{
    iris_config_init(config);
    config->spawn = way;
    config->heap_bytes = 64 << 20; /* more than there will ever be */
}

static int check_no_room(void)
{
    CHECK_MESSAGE("/dev/shm has no room for");
    CHECK_MESSAGE("mount -o remount,size=");
    CHECK_MESSAGE("docker run --shm-size");
    return 0;
}

/* Allocates until the memory, not the heap, is at its end, and touches all. */
static int allocate_all(iris_t *iris, void *arg)
{
    char *blocks[64], *ptr = arg;
    struct iris_heap_stats stats;
    iris_status_t status;
    int count = 0, again = 0;

    while ((status = iris_malloc(iris, 1 << 20, (void **)&ptr)) == IRIS_OK) {
        memset(ptr, count, 1 << 20);
        blocks[count++] = ptr;
        CHECK(count < 64);
        ptr = arg;
    }
    CHECK_STATUS(status, IRIS_ERR_NO_MEMORY);
    CHECK_EQUAL(check_no_room(), 0);
    CHECK_MESSAGE("/2]");
    CHECK(ptr == arg);
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.num_allocs, count);
    CHECK(count >= 4);
    /* One large piece fails as a whole and takes nothing. */
    CHECK_STATUS(iris_malloc(iris, 32 << 20, (void **)&ptr),
                 IRIS_ERR_NO_MEMORY);
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(blocks[i][0], i);
        CHECK_EQUAL(blocks[i][(1 << 20) - 1], i);
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    /* What was freed is still backed, so the same can be had again. */
    while (again < count) {
        CHECK_OK(iris_calloc(iris, 1, 1 << 20, (void **)&blocks[again]));
        again++;
    }
    while (again > 0) {
        CHECK_OK(iris_free(iris, blocks[--again]));
    }
    return 0;
}

static int exhaust(const char *way)
{
    struct iris_config config;

    configure(&config, way);
    CHECK_OK(iris_spawn(&config, 2, allocate_all, &config));
    return 0;
}

static TEST(malloc_says_that_shared_memory_is_full)
{
    with_small_shm("size=16m", exhaust);
}

/* The filler goes while the job runs, and comes back. */
static int allocate_after(iris_t *iris, void *arg)
{
    void *ptr = arg, *kept;

    CHECK_OK(iris_malloc(iris, 1000, &kept));
    CHECK_STATUS(iris_malloc(iris, 4 << 20, &ptr), IRIS_ERR_NO_MEMORY);
    CHECK_EQUAL(check_no_room(), 0);
    CHECK_STATUS(iris_calloc(iris, 4, 1 << 20, &ptr), IRIS_ERR_NO_MEMORY);
    CHECK(ptr == arg);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (iris_rank(iris) == 0) {
        CHECK_EQUAL(unlink(FILLER), 0);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_calloc(iris, 4, 1 << 20, &ptr));
    memset(ptr, 1, 4 << 20);
    CHECK_OK(iris_free(iris, ptr));
    return iris_free(iris, kept);
}

static int recover(const char *way)
{
    struct iris_config config;

    configure(&config, way);
    CHECK_EQUAL(fill(3 << 20), 0);
    CHECK_OK(iris_spawn(&config, 2, allocate_after, &config));
    return 0;
}

static TEST(malloc_works_again_once_there_is_room)
{
    with_small_shm("size=16m", recover);
}

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

/* With less and less room, init works or says why not; never anything else. */
static int init_in_little_room(const char *way)
{
    struct iris_config config;
    int failed = 0;

    configure(&config, way);
    for (int kib = 640; kib >= 0; kib -= 16) {
        iris_status_t status;

        CHECK_EQUAL(fill((unsigned long long)kib << 10), 0);
        status = iris_spawn(&config, 3, nothing, NULL);
        if (status != IRIS_OK) {
            CHECK_STATUS(status, IRIS_ERR_NO_MEMORY);
            CHECK_EQUAL(check_no_room(), 0);
            CHECK_MESSAGE("/3]");
            failed++;
        }
    }
    CHECK(failed > 0 && failed < 41);
    CHECK_EQUAL(unlink(FILLER), 0);
    CHECK_OK(iris_spawn(&config, 3, nothing, NULL));
    return 0;
}

static TEST(init_says_that_shared_memory_is_full)
{
    with_small_shm("size=4m", init_in_little_room);
}

static int create_groups(iris_t *iris, void *arg)
{
    static const int all[] = {0, 1};
    iris_group_t *groups[64];
    iris_status_t status;
    int count = 0;

    while ((status = iris_group_create(iris, all, 2, &groups[count])) ==
           IRIS_OK) {
        count++;
    }
    CHECK_STATUS(status, IRIS_ERR_NO_MEMORY);
    CHECK_EQUAL(check_no_room(), 0);
    CHECK(count < 63);
    while (count > 0) {
        CHECK_OK(iris_barrier(iris, NULL, groups[--count]));
        CHECK_OK(iris_group_destroy(iris, groups[count]));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

static int exhaust_groups(const char *way)
{
    struct iris_config config;

    configure(&config, way);
    CHECK_EQUAL(fill(400 << 10), 0);
    CHECK_OK(iris_spawn(&config, 2, create_groups, NULL));
    CHECK_EQUAL(unlink(FILLER), 0);
    return 0;
}

static TEST(groups_say_that_shared_memory_is_full)
{
    with_small_shm("size=4m", exhaust_groups);
}

static int init_without_inodes(const char *way)
{
    struct iris_config config;

    configure(&config, way);
    CHECK_EQUAL(fill(free_bytes()), 0); /* takes the last inode */
    CHECK_STATUS(iris_spawn(&config, 2, nothing, NULL), IRIS_ERR_NO_MEMORY);
    CHECK_EQUAL(check_no_room(), 0);
    CHECK_EQUAL(unlink(FILLER), 0);
    return 0;
}

static TEST(files_run_out_like_memory)
{
    with_small_shm("size=4m,nr_inodes=2", init_without_inodes);
}

static int init_without_shm(const char *way)
{
    struct iris_config config;

    configure(&config, way);
    CHECK_EQUAL(mount("/proc", "/dev/shm", NULL, MS_BIND, NULL), 0);
    CHECK_STATUS(iris_spawn(&config, 2, nothing, NULL), IRIS_ERR_BACKEND);
    CHECK_MESSAGE("must be a writable tmpfs");
    CHECK_EQUAL(umount2("/dev/shm", MNT_DETACH), 0);
    return 0;
}

static TEST(without_a_tmpfs_the_backend_says_what_it_needs)
{
    with_small_shm("size=4m", init_without_shm);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
