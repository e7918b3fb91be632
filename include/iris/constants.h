/* SPDX-License-Identifier: MIT
 *
 * The headers' macros as functions, for bindings, which do not see macros. Each
 * returns the value of the library that is loaded. All are local and cannot
 * fail.
 *
 * @use local; never blocks; apart
 * @param num_ranks  number of ranks, from 1
 */
#ifndef IRIS_CONSTANTS_H
#define IRIS_CONSTANTS_H

#include <iris/status.h>
#include <iris/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes of an element. 0 for an unknown type. */
IRIS_API size_t iris_dtype_size(iris_dtype_t dtype);

/** Name of an element type, such as "bf16". Never NULL; the string is static.
 *  An unknown value gives "?". */
IRIS_API const char *iris_dtype_name(iris_dtype_t dtype);

/** sizeof(struct iris_config). Allocate this number of bytes, and pass it to
 *  iris_config_init_sized() before iris_config_set(). */
IRIS_API size_t iris_config_size(void);

/** IRIS_CONTEXT_WORDS() of <iris/device/layout.h>: the number of int64 words in
 *  the device context of a job of num_ranks ranks. 0 if num_ranks is less
 *  than 1. */
IRIS_API size_t iris_context_words(int num_ranks);

/** IRIS_ALIGNMENT, in bytes. */
IRIS_API size_t iris_alignment(void);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_CONSTANTS_H */
