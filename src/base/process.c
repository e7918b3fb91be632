/* SPDX-License-Identifier: MIT
 *
 * This process's id, and the state and threads of a process from /proc/PID.
 */
#include "config.h"

#include "base/base.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static int ask(_Atomic(int) *known)
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

    return pid != 0 ? pid : ask(known);
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

int iris_i_process_watch(int pid)
{
    return iris_i_fd_above_stdio((int)syscall(SYS_pidfd_open, pid, 0));
}

/* ---- Threads ---- */

/* The library's own threads have such a name. */
static int is_own(int pid, const char *thread)
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
        count += entry->d_name[0] != '.' && !is_own(pid, entry->d_name);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}
