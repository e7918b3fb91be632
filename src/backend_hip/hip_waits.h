/* SPDX-License-Identifier: MIT
 *
 * A list of the waits that streams do without a kernel: a fault ends them.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_WAITS_H
#define IRIS_SRC_BACKEND_HIP_HIP_WAITS_H

#include "backend_hip/hip.h"

/* Lists the stream's next wait, and numbers it; false: there are too many. The
 * second function undoes it if the runtime has not accepted the wait. The
 * stream's lock is held. */
bool iris_i_hip_list_wait(struct hip_stream *stream, struct hip_wait *wait);
void iris_i_hip_unlist_wait(struct hip_stream *stream);

/* After a fault: writes the values that streams wait for without a kernel. It
 * leaves out waits that are over, since their memory may have been reused. A
 * stream may miss the first of two values for one word: call it again until the
 * streams are done. */
void iris_i_hip_end_waits(struct hip_backend *hip);

/* The stream's own wait, as the end of a sentence; empty if it does not
 * wait. */
void iris_i_hip_describe_wait(struct hip_stream *stream, char *text,
                              size_t bytes);

/* Copies a word, independently of all streams that wait. */
bool iris_i_hip_copy_word(struct hip_backend *hip, void *to, const void *from);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_WAITS_H */
