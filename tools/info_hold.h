/* SPDX-License-Identifier: MIT
 *
 * A kernel that can be stopped. Apart from info_explain.h, since a GPU's
 * compiler reads it.
 */
#ifndef IRIS_TOOLS_INFO_HOLD_H
#define IRIS_TOOLS_INFO_HOLD_H

#include <iris/iris.h>

/* Launches a kernel on the default stream that loads a word of this rank's
 * heap. */
iris_status_t info_hold(iris_t *iris, void *word);

#endif /* IRIS_TOOLS_INFO_HOLD_H */
