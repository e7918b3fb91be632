/* SPDX-License-Identifier: MIT
 *
 * Files that are written whole or not at all: what is there afterwards, with
 * and without unnamed files, when the disk is full, and among others' links.
 */
#include "config.h"

#include "base/base.h"
#include "support/harness.h"
#include "support/mounts.h"
#include "trace/trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

/* Calls that a signal interrupts: each second one, once this is not 0. */
static int num_calls;

static int is_interrupted(void)
{
    errno = EINTR;
    return num_calls != 0 && num_calls++ % 2 != 0;
}

int openat(int dir, const char *name, int flags, ...)
{
    return is_interrupted() ? -1
                            : (int)syscall(SYS_openat, dir, name, flags, 0644);
}

int flock(int fd, int how)
{
    return is_interrupted() ? -1 : (int)syscall(SYS_flock, fd, how);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t at)
{
    return is_interrupted() ? -1 : syscall(SYS_pread64, fd, data, bytes, at);
}

/* Runs fn() in a child, which may change what only a process can. */
static void in_child(int (*fn)(void))
{
    pid_t pid;
    int how = -1;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        _exit(fn());
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    if (WIFEXITED(how) && WEXITSTATUS(how) == SKIPPED) {
        print_message("not allowed on this system: nothing done\n");
        skip();
    }
    assert_int_equal(how, 0);
}

/* From now on no file system has unnamed files. 0 if that cannot be had. */
static int forbid_unnamed(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                 offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof code[0], code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0 &&
           open("/tmp", O_TMPFILE | O_WRONLY, 0600) < 0;
}

static void path_of(const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", harness_folder(), name);
}

/* Entries of the harness's folder. */
static int count_files(void)
{
    DIR *dir = opendir(harness_folder());
    int count = 0;

    while (dir != NULL && readdir(dir) != NULL) {
        count++;
    }
    closedir(dir);
    return count - 2;
}

static int put(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQUAL(fclose(file), 0);
    return 0;
}

static int holds(const char *path, const char *expected)
{
    char *text = harness_read_file(path);

    CHECK(text != NULL && strcmp(text, expected) == 0);
    free(text);
    return 0;
}

/* A new file, an old one replaced, and one in the current folder. */
static int write_three(void)
{
    char path[512];
    struct stat stat_buffer;

    path_of("new", path);
    umask(027);
    CHECK_EQUAL(iris_i_file_write(path, "first", 5), 0);
    CHECK_EQUAL(holds(path, "first"), 0);
    CHECK_EQUAL(stat(path, &stat_buffer), 0);
    CHECK_EQUAL(stat_buffer.st_mode & 07777, 0640);
    CHECK_EQUAL(iris_i_file_write(path, "2nd", 3), 0);
    CHECK_EQUAL(holds(path, "2nd"), 0);
    CHECK_EQUAL(unlink(path), 0);
    CHECK_EQUAL(chdir(harness_folder()), 0);
    CHECK_EQUAL(iris_i_file_write("here", "", 0), 0);
    CHECK_EQUAL(holds("here", ""), 0);
    CHECK_EQUAL(count_files(), 1);
    CHECK_EQUAL(unlink("here"), 0);
    return 0;
}

static TEST(a_file_is_replaced_whole_with_the_mode_of_the_umask)
{
    in_child(write_three);
}

static int write_three_aside(void)
{
    return forbid_unnamed() ? write_three() : SKIPPED;
}

static TEST(without_unnamed_files_it_is_the_same)
{
    in_child(write_three_aside);
}

static int write_interrupted(void)
{
    num_calls = 1;
    return write_three();
}

static int write_aside_interrupted(void)
{
    num_calls = 1;
    return write_three_aside();
}

static int copy_interrupted(void)
{
    if (chroot(harness_folder()) != 0) { /* without /proc, which names files */
        return SKIPPED;
    }
    num_calls = 1;
    CHECK_EQUAL(iris_i_file_write("/copied", "text", 4), 0);
    CHECK_EQUAL(holds("/copied", "text"), 0);
    CHECK_EQUAL(unlink("/copied"), 0);
    return 0;
}

static TEST(signals_interrupt_no_writer)
{
    in_child(write_interrupted);
    in_child(write_aside_interrupted);
    in_child(copy_interrupted);
}

/* Links to a victim, at the path itself and at names a program might write
 * aside to. */
static int write_among_links(void)
{
    char path[512], victim[512], aside[600];

    path_of("file", path);
    path_of("victim", victim);
    snprintf(aside, sizeof aside, "%s.%ld.tmp", path, (long)getpid());
    CHECK_EQUAL(put(victim, "dear"), 0);
    CHECK_EQUAL(symlink(victim, path), 0);
    CHECK_EQUAL(symlink(victim, aside), 0);
    CHECK_EQUAL(iris_i_file_write(path, "mine", 4), 0);
    CHECK_EQUAL(holds(victim, "dear"), 0);
    CHECK_EQUAL(holds(path, "mine"), 0);
    CHECK_EQUAL(count_files(), 3);
    CHECK_EQUAL(unlink(aside) | unlink(path) | unlink(victim), 0);
    return 0;
}

static int write_aside_among_links(void)
{
    return forbid_unnamed() ? write_among_links() : SKIPPED;
}

static TEST(links_of_others_lead_nowhere)
{
    in_child(write_among_links);
    in_child(write_aside_among_links);
}

/* A process that is killed while it writes a file, or a trace. */
static void be_killed(int traces)
{
    struct iris_file file;
    struct iris_out out;
    char path[512];

    path_of("whole", path);
    if (fork() != 0) {
        wait(NULL);
        return;
    }
    if (traces) {
        iris_i_out_open(&out, path);
        iris_i_out_print(&out, "half of");
    } else if (iris_i_file_open(path, &file) == 0) {
        (void)!write(file.fd, "half of", 7);
    }
    kill(getpid(), SIGKILL);
}

static int write_and_be_killed(void)
{
    be_killed(0);
    CHECK_EQUAL(count_files(), 0);
    be_killed(1);
    CHECK_EQUAL(count_files(), 0);
    return 0;
}

/* What is left then goes with the next file, but nobody's who still writes. */
static int write_aside_and_be_killed(void)
{
    struct iris_file file;
    char path[512], other[512];

    if (!forbid_unnamed()) {
        return SKIPPED;
    }
    path_of("mine", path);
    path_of("other", other);
    CHECK_EQUAL(iris_i_file_open(path, &file), 0);
    be_killed(0);
    be_killed(1);
    CHECK_EQUAL(count_files(), 2); /* mine, and the last one's */
    CHECK_EQUAL(iris_i_file_write(other, "other", 5), 0);
    CHECK_EQUAL(count_files(), 2);
    CHECK_EQUAL(write(file.fd, "mine", 4), 4);
    CHECK_EQUAL(iris_i_file_close(&file, path, 1), 0);
    CHECK_EQUAL(holds(path, "mine"), 0);
    CHECK_EQUAL(count_files(), 2);
    CHECK_EQUAL(unlink(path) | unlink(other), 0);
    return 0;
}

static TEST(a_writer_that_is_killed_leaves_nothing_for_long)
{
    in_child(write_and_be_killed);
    in_child(write_aside_and_be_killed);
}

static int write_on_a_full_disk(void)
{
    static char zeros[4096];
    char path[512], filler[512];
    int fd;

    if (!mounts_small(harness_folder(), "size=64k")) {
        return SKIPPED;
    }
    path_of("old", path);
    path_of("filler", filler);
    CHECK_EQUAL(put(path, "kept"), 0);
    fd = open(filler, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (write(fd, zeros, sizeof zeros) > 0) {
    }
    close(fd);
    for (int way = 0; way < 2; way++) {
        CHECK_EQUAL(iris_i_file_write(path, "new", 3), ENOSPC);
        CHECK_EQUAL(holds(path, "kept"), 0);
        CHECK_EQUAL(count_files(), 2);
        if (!forbid_unnamed()) {
            return SKIPPED;
        }
    }
    return 0;
}

static TEST(a_full_disk_is_an_error_that_leaves_nothing)
{
    in_child(write_on_a_full_disk);
}

static TEST(what_cannot_be_a_file_is_an_error)
{
    char path[512], huge[PATH_MAX + 8];

    path_of("folder", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(iris_i_file_write(path, "x", 1), EISDIR);
    assert_int_equal(rmdir(path), 0);
    path_of("no/folder", path);
    assert_int_equal(iris_i_file_write(path, "x", 1), ENOENT);
    memset(huge, '/', sizeof huge);
    huge[sizeof huge - 1] = '\0';
    assert_int_equal(iris_i_file_write(huge, "x", 1), ENAMETOOLONG);
    assert_int_equal(count_files(), 0);
}

TEST_GROUP(unit);
