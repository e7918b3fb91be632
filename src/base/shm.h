/* SPDX-License-Identifier: MIT
 *
 * Shared memory without names: files in /dev/shm that no directory lists, so
 * that nothing can collide, be squatted on, or be left behind.
 */
#ifndef IRIS_SRC_BASE_SHM_H
#define IRIS_SRC_BASE_SHM_H

#include <stddef.h>

#include <iris/status.h>

/* A new file of `bytes` zero bytes with no memory behind it yet. The caller
 * closes *fd_p; the file goes with its last descriptor and mapping.
 * IRIS_ERR_LIMIT (no descriptors, or RLIMIT_FSIZE), IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_shm_create(size_t bytes, int *fd_p);

/* Commits memory to [offset, offset + bytes), so that touching it cannot
 * raise SIGBUS. IRIS_ERR_NO_MEMORY: /dev/shm is full; the message says how much
 * is left and what helps. */
iris_status_t iris_i_shm_commit(int fd, size_t offset, size_t bytes);

/* Gives that memory back to the system; the range reads as zeros. A page that
 * the range has a part of only is zeroed there. */
void iris_i_shm_decommit(int fd, size_t offset, size_t bytes);

/* Maps the whole file, at a multiple of the largest power of two up to `bytes`:
 * what is aligned in the file is aligned in memory. Ahead of it and behind it
 * are iris_i_shm_guard_bytes(), a page, that nobody can touch. The caller
 * unmaps. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_shm_map(int fd, size_t bytes, void **base_p);
void iris_i_shm_unmap(void *base, size_t bytes);
size_t iris_i_shm_guard_bytes(void);

/* iris_i_fail_errno() for a call that makes descriptors: EMFILE and ENFILE are
 * IRIS_ERR_LIMIT, and the message says which limit. */
iris_status_t iris_i_fail_fd(int errno_value, const char *what);

#endif /* IRIS_SRC_BASE_SHM_H */
