/* SPDX-License-Identifier: MIT
 *
 * The waits that streams do without a kernel, as a list: a fault ends them.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_WAITS_H
#define IRIS_SRC_BACKEND_HIP_HIP_WAITS_H

#include "backend_hip/hip.h"

/* Lists a wait that the stream does next, and numbers it; false: there are too
 * many. The second: the runtime has not taken the one that was listed last. The
 * stream's lock is held. */
bool iris_i_hip_list_wait(struct hip_stream *stream, struct hip_wait *wait);
void iris_i_hip_unlist_wait(struct hip_stream *stream);

/* After a fault: writes what streams wait for without a kernel, but for waits
 * that are over, whose memory may be something else's by now. A stream may miss
 * the first of two for one word: call it again until they are done. */
void iris_i_hip_end_waits(struct hip_backend *hip);

/* What the stream itself waits for, as the end of a sentence; or nothing. */
void iris_i_hip_describe_wait(struct hip_stream *stream, char *text,
                              size_t bytes);

/* Copies a word beside all streams that wait. */
bool iris_i_hip_copy_word(struct hip_backend *hip, void *to, const void *from);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_WAITS_H */
