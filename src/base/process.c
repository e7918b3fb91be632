/* SPDX-License-Identifier: MIT
 *
 * Descriptors and shared memory of this process, and the state of other processes
 * from /proc.
 *
 * The library's descriptors stay above the standard streams, which the program may
 * have closed. Its sockets are noted by number and inode, so that a forked child
 * closes its copies before fork() returns there: an open copy would keep a dead
 * rank's connections alive. Shared memory has no name, so a killed rank leaves
 * nothing behind. It is committed before it is used: an access to a full file
 * system would raise SIGBUS.
 */
#include "config.h"

#include "base/base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Descriptors and sockets ---- */

/* Sockets with higher numbers are not noted. Untouched pages take no memory. */
#define MOST 65536

/* By descriptor: the inode of the last noted socket. Sockets are closed
 * everywhere; the inode tells whether the descriptor still is that socket. */
static _Atomic uint64_t inodes[MOST];
static atomic_int most; /* no higher descriptor was noted */

static uint64_t get_inode(int fd)
{
    struct stat status;

    return fstat(fd, &status) == 0 && S_ISSOCK(status.st_mode)
               ? (uint64_t)status.st_ino
               : 0;
}

/* Runs in the child, before fork() returns there, and takes no lock. */
static void close_sockets(void)
{
    for (int fd = 0; fd <= atomic_load(&most); fd++) {
        uint64_t inode = atomic_exchange(&inodes[fd], 0);

        if (inode != 0 && get_inode(fd) == inode) {
            close(fd);
        }
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, close_sockets);
}

int iris_i_fd_socket(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int last = atomic_load(&most), noted = iris_i_fd_above_stdio(fd);

    if (noted >= 0) {
        pthread_once(&once, watch_forks);
    }
    if (noted >= 0 && noted < MOST) {
        atomic_store(&inodes[noted], get_inode(noted));
        while (noted > last &&
               !atomic_compare_exchange_weak(&most, &last, noted)) {
        }
    }
    return noted;
}

/* ---- Shared memory ---- */

/* The folder of shm_open()'s objects. With O_TMPFILE, a file there never has a
 * name, so a killed rank leaves nothing behind. */
#define SHM_DIRECTORY "/dev/shm"

iris_status_t iris_i_fail_fd(int errno_value, const char *what)
{
    struct rlimit limit = {0};

    if (errno_value != EMFILE && errno_value != ENFILE) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno_value, "%s",
                                 what);
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    return iris_i_fail_errno(
        NULL, IRIS_ERR_LIMIT, errno_value,
        "%s: no file descriptors left; raise RLIMIT_NOFILE (ulimit -n), now "
        "%llu: a rank needs about 3 for each rank of the job",
        what, (unsigned long long)limit.rlim_cur);
}

static iris_status_t fail_size(int errno_value, size_t bytes)
{
    return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno_value,
                             "cannot size shared memory to %zu bytes; lower "
                             "IRIS_HEAP_SIZE or IRIS_HEAP_RESERVE",
                             bytes);
}

static iris_status_t fail_room(int fd, int errno_value, size_t bytes)
{
    struct statvfs fs = {0};

    if (fd < 0) {
        statvfs(SHM_DIRECTORY, &fs);
    } else {
        fstatvfs(fd, &fs);
    }
    if (errno_value != ENOSPC && errno_value != ENOMEM) {
        return iris_i_fail_errno(
            NULL, IRIS_ERR_SYSTEM, errno_value,
            "cannot put memory behind shared memory in " SHM_DIRECTORY);
    }
    return iris_i_fail_errno(
        NULL, IRIS_ERR_NO_MEMORY, errno_value,
        SHM_DIRECTORY
        " has no room for %zu more bytes (%llu free of %llu); "
        "free some, allocate less, or enlarge it (mount -o remount,size=..., "
        "docker run --shm-size=...)",
        bytes, (unsigned long long)fs.f_bavail * fs.f_bsize,
        (unsigned long long)fs.f_blocks * fs.f_bsize);
}

/* Growing a file beyond RLIMIT_FSIZE would raise a signal that kills the
 * process. */
static iris_status_t check_file_limit(size_t bytes)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    getrlimit(RLIMIT_FSIZE, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                       "shared memory of %zu bytes is above RLIMIT_FSIZE "
                       "(ulimit -f), %llu bytes; raise it, or lower "
                       "IRIS_HEAP_SIZE or IRIS_HEAP_RESERVE",
                       bytes, (unsigned long long)limit.rlim_cur);
}

iris_status_t iris_i_shm_create(size_t bytes, int *fd_p)
{
    iris_status_t status = check_file_limit(bytes);
    int fd;

    if (status != IRIS_OK) {
        return status;
    }
    fd = iris_i_fd_above_stdio(
        open(SHM_DIRECTORY, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd < 0) {
        return errno == ENOSPC
                   ? fail_room(-1, errno, bytes)
                   : iris_i_fail_fd(
                         errno, "cannot make shared memory in " SHM_DIRECTORY);
    }
    if (bytes > INT64_MAX || ftruncate(fd, (off_t)bytes) != 0) {
        int ret = bytes > INT64_MAX ? EFBIG : errno;

        close(fd);
        return fail_size(ret, bytes);
    }
    *fd_p = fd;
    return IRIS_OK;
}

/* Commits all at once, so that the system undoes everything if there is not
 * enough memory. Signals are blocked: one would end the call and undo its work,
 * and a periodic one could do so forever. */
iris_status_t iris_i_shm_commit(int fd, size_t offset, size_t bytes)
{
    sigset_t all, before;
    int ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    do {
        ret = fallocate(fd, 0, (off_t)offset, (off_t)bytes) == 0 ? 0 : errno;
    } while (ret == EINTR);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ret == 0 ? IRIS_OK : fail_room(fd, ret, bytes);
}

static size_t page_up(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

void iris_i_shm_decommit(int fd, size_t offset, size_t bytes)
{
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)bytes) != 0) {
        iris_i_warning(NULL,
                       "%zu bytes of shared memory are not given back: "
                       "%s",
                       bytes, strerror(errno));
    }
}

/* A page without access precedes and follows every mapping, so that an address
 * there is known to be outside of it. */
size_t iris_i_shm_guard_bytes(void)
{
    return page_up(1);
}

void iris_i_shm_unmap(void *base, size_t bytes)
{
    size_t guard = iris_i_shm_guard_bytes();

    munmap((char *)base - guard, guard + page_up(bytes) + guard);
}

static iris_status_t fail_map(int errno_value, size_t bytes)
{
    return iris_i_fail_errno(NULL, IRIS_ERR_NO_MEMORY, errno_value,
                             "cannot map %zu bytes of shared memory; lower "
                             "IRIS_HEAP_SIZE or IRIS_HEAP_RESERVE, or raise "
                             "the limit on address space (ulimit -v)",
                             bytes);
}

/* Reserves twice the addresses and unmaps those around the range. */
iris_status_t iris_i_shm_map(int fd, size_t bytes, void **base_p)
{
    size_t guard = iris_i_shm_guard_bytes(), alignment = guard;
    size_t length = guard + page_up(bytes) + guard;
    char *range, *base, *first;

    if (length > SIZE_MAX / 4) {
        return fail_map(ENOMEM, bytes);
    }
    while (alignment <= bytes / 2) {
        alignment *= 2;
    }
    range = mmap(NULL, length + alignment, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        return fail_map(errno, bytes);
    }
    base = range + guard;
    base += (alignment - (uintptr_t)base % alignment) % alignment;
    first = base - guard;
    if (mmap(base, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             0) == MAP_FAILED) {
        int ret = errno;

        munmap(range, length + alignment);
        return fail_map(ret, bytes);
    }
    if (first > range) {
        munmap(range, (size_t)(first - range));
    }
    if (first < range + alignment) {
        munmap(first + length, (size_t)(range + alignment - first));
    }
    *base_p = base;
    return IRIS_OK;
}

/* ---- Processes ---- */

/* Address of the cached id, in memory that the kernel clears in every child. So
 * a child that was forked without the C library asks anew, too. */
static _Atomic(_Atomic(int) *) place;
static _Atomic(int) nowhere; /* used if the kernel has no such memory; stays
                              * 0 */

static _Atomic(int) *make_place(void)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _Atomic(int) *made = page, *expected = NULL;

    if (page == MAP_FAILED || madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        made = &nowhere;
    }
    if (!atomic_compare_exchange_strong(&place, &expected, made)) {
        made = expected; /* another thread's place */
    }
    if (page != MAP_FAILED && (void *)made != page) {
        munmap(page, bytes);
    }
    return made;
}

static int ask_system(_Atomic(int) *known)
{
    int pid = getpid();

    if (known == NULL) {
        known = make_place();
    }
    if (known != &nowhere) {
        atomic_store_explicit(known, pid, memory_order_relaxed);
    }
    return pid;
}

int iris_i_process_id(void)
{
    _Atomic(int) *known = atomic_load_explicit(&place, memory_order_acquire);
    int pid =
        known == NULL ? 0 : atomic_load_explicit(known, memory_order_relaxed);

    return pid != 0 ? pid : ask_system(known);
}

/* The name, in parentheses, may contain any character, but it ends at the last
 * parenthesis. */
int iris_i_process_read(int pid, struct iris_process *process_p)
{
    char path[64], text[1024];
    const char *rest;
    size_t length;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    rest = strrchr(text, ')');
    return rest != NULL &&
           sscanf(rest,
                  ") %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%*s %*s %*s %*s %" SCNu64,
                  &process_p->state, &process_p->parent,
                  &process_p->start_ticks) == 3;
}

int iris_i_process_is_stopped(int pid)
{
    struct iris_process process;

    return iris_i_process_read(pid, &process) &&
           (process.state == 'T' || process.state == 't');
}

int iris_i_process_watch(int pid)
{
    return iris_i_fd_above_stdio((int)syscall(SYS_pidfd_open, pid, 0));
}

/* ---- Threads ---- */

/* The library's own threads have such a name. */
static int is_own_thread(int pid, const char *thread)
{
    char path[320], name[32] = "";
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/task/%s/comm", pid, thread);
    file = fopen(path, "re");
    if (file == NULL) { /* the thread has ended */
        return 1;
    }
    (void)!fgets(name, sizeof name, file);
    fclose(file);
    return strncmp(name, "iris-", 5) == 0;
}

int iris_i_process_threads(int pid)
{
    struct dirent *entry;
    char path[64];
    int count = 0;
    DIR *folder;

    snprintf(path, sizeof path, "/proc/%d/task", pid);
    folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        count += entry->d_name[0] != '.' && !is_own_thread(pid, entry->d_name);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}

int iris_i_thread_start(pthread_t *thread_p, const char *name,
                        size_t stack_bytes, void *(*run)(void *arg), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                 SIGILL,  SIGTRAP, SIGSYS};
    pthread_attr_t attributes;
    sigset_t blocked, before;
    pthread_t thread;
    int ret;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(&blocked, faults[i]);
    }
    pthread_attr_init(&attributes);
    if (stack_bytes != 0) {
        pthread_attr_setstacksize(&attributes, stack_bytes);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    ret = pthread_create(&thread, &attributes, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (ret != 0) {
        return ret;
    }
    pthread_setname_np(thread, name);
    if (thread_p == NULL) {
        pthread_detach(thread);
    } else {
        *thread_p = thread;
    }
    return 0;
}
