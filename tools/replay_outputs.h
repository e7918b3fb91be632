/* SPDX-License-Identifier: MIT
 *
 * The different outputs of a program, and the number of runs with each.
 */
#ifndef IRIS_TOOLS_REPLAY_OUTPUTS_H
#define IRIS_TOOLS_REPLAY_OUTPUTS_H

#include <stdbool.h>
#include <stddef.h>

struct replay_output {
    char *text;
    unsigned long count;
};

/* Must be all zero at the start. */
struct replay_outputs {
    struct replay_output *outputs;
    size_t count;
};

void replay_outputs_add(struct replay_outputs *outputs, const char *text);

/* Prints the outputs if `prints` is set, and frees them. */
void replay_outputs_end(struct replay_outputs *outputs, bool prints);

#endif /* IRIS_TOOLS_REPLAY_OUTPUTS_H */
