/* SPDX-License-Identifier: MIT
 *
 * Public structs that grow at their end. Each begins with `size_t size`, which
 * the caller's header sets. One rule says which sizes are valid.
 */
#ifndef IRIS_SRC_BASE_SIZED_H
#define IRIS_SRC_BASE_SIZED_H

#include <stddef.h>

#include <iris/status.h>

#include "base/error.h"

/* No such struct is larger. */
#define IRIS_SIZED_MOST 4096

/* Whether a struct of any header version can have this size: from
 * sizeof(size_t) to IRIS_SIZED_MOST, and a multiple of a pointer's size. No
 * field is larger than a pointer and each is aligned, so such a size splits
 * none. */
int iris_i_sized_fits(size_t size);

/* Fills the struct with `unset` bytes and sets its size. Returns 0 and writes
 * nothing if the struct is NULL or the size is not valid. */
int iris_i_sized_init(void *sized, size_t size, int unset);

/* Offset of the first byte that is not `unset` after the `known` bytes that
 * this library knows, or 0 if all those bytes are `unset`. */
size_t iris_i_sized_unknown(const void *sized, size_t known, int unset);

/* Copies options of any header version over *known_p. The struct's init
 * function has filled *known_p, whose size is `known`; unset fields are 0.
 * `options` may be NULL: then nothing is set. IRIS_ERR_INVALID: the size is not
 * valid, or a field is set that this library does not know. `call` and `init`
 * are public names, for the message. */
iris_status_t iris_i_sized_take(const struct iris_log *log, const char *call,
                                const char *init, const void *options,
                                void *known_p);

#endif /* IRIS_SRC_BASE_SIZED_H */
