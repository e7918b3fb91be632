/* SPDX-License-Identifier: MIT
 *
 * The library's sockets, and what a forked child does with its copies.
 */
#include "config.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/stat.h>

/* Sockets with higher numbers are not noted. Untouched pages take no memory. */
#define MOST 65536

/* By descriptor: the inode of the last noted socket. Sockets are closed
 * everywhere; the inode tells whether the descriptor still is that socket. */
static _Atomic uint64_t inodes[MOST];
static atomic_int most; /* no higher descriptor was noted */

static uint64_t inode_of(int fd)
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

        if (inode != 0 && inode_of(fd) == inode) {
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
        atomic_store(&inodes[noted], inode_of(noted));
        while (noted > last &&
               !atomic_compare_exchange_weak(&most, &last, noted)) {
        }
    }
    return noted;
}
