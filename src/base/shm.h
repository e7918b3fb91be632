/* SPDX-License-Identifier: MIT
 *
 * Shared memory without names: files in /dev/shm that no directory lists. No
 * other process can collide with them or squat on them, and nothing remains
 * after a crash.
 */
#ifndef IRIS_SRC_BASE_SHM_H
#define IRIS_SRC_BASE_SHM_H

#include <stddef.h>

#include <iris/status.h>

/* A new file of `bytes` zero bytes without memory behind it. The caller closes
 * *fd_p; the file disappears with its last descriptor and mapping.
 * IRIS_ERR_LIMIT (no descriptors, or RLIMIT_FSIZE), IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_shm_create(size_t bytes, int *fd_p);

/* Commits memory to [offset, offset + bytes), so that accesses cannot raise
 * SIGBUS. IRIS_ERR_NO_MEMORY: /dev/shm is full; the message says how much is
 * left and suggests a remedy. */
iris_status_t iris_i_shm_commit(int fd, size_t offset, size_t bytes);

/* Gives that memory back to the system; the range reads as zeros. If the range
 * covers a page only in part, that part is zeroed. */
void iris_i_shm_decommit(int fd, size_t offset, size_t bytes);

/* Maps the whole file, at a multiple of the largest power of two up to `bytes`.
 * So an aligned offset of the file is aligned in memory. A page without access
 * (iris_i_shm_guard_bytes()) precedes and follows the mapping. The caller
 * unmaps. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_shm_map(int fd, size_t bytes, void **base_p);
void iris_i_shm_unmap(void *base, size_t bytes);
size_t iris_i_shm_guard_bytes(void);

/* iris_i_fail_errno() for a call that makes descriptors: EMFILE and ENFILE
 * become IRIS_ERR_LIMIT, and the message names the limit. */
iris_status_t iris_i_fail_fd(int errno_value, const char *what);

#endif /* IRIS_SRC_BASE_SHM_H */
