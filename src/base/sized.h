/* SPDX-License-Identifier: MIT
 *
 * Public structs that grow at their end. Each begins with `size_t size`, which
 * the caller's header decides. One rule says which sizes are valid.
 */
#ifndef IRIS_SRC_BASE_SIZED_H
#define IRIS_SRC_BASE_SIZED_H

#include <stddef.h>

#include <iris/status.h>

#include "base/error.h"

/* No such struct is larger. */
#define IRIS_SIZED_MOST 4096

/* Whether a struct of some header can have this size: from sizeof(size_t) to
 * IRIS_SIZED_MOST, and a multiple of a pointer's size. No field is larger than
 * a pointer and each is aligned, so that such a size cuts none in two. */
int iris_i_sized_fits(size_t size);

/* Fills the struct with `unset` bytes and sets its size. 0, and nothing is
 * written: the struct is NULL, or the size does not fit. */
int iris_i_sized_init(void *sized, size_t size, int unset);

/* Where the first byte is that is not `unset` behind the `known` bytes that
 * this library knows; 0: there is none. */
size_t iris_i_sized_unknown(const void *sized, size_t known, int unset);

/* Copies options of any header over *known_p, which the struct's own init has
 * filled and whose size is `known`; fields are unset at 0. `options` may be
 * NULL: nothing is set. IRIS_ERR_INVALID: the size does not fit, or a field is
 * set that this library does not know. `call` and `init` are public names, for
 * the message. */
iris_status_t iris_i_sized_take(const struct iris_log *log, const char *call,
                                const char *init, const void *options,
                                void *known_p);

#endif /* IRIS_SRC_BASE_SIZED_H */
