/* SPDX-License-Identifier: MIT
 *
 * A curve of times by ranks as an SVG picture.
 */
#ifndef IRIS_TOOLS_SIM_CURVE_H
#define IRIS_TOOLS_SIM_CURVE_H

#include <stddef.h>
#include <stdio.h>

struct sim_point {
    double ranks, us;
};

/* Both axes are logarithmic; times and ranks are above 0. */
void sim_curve_write(const char *title, const struct sim_point *points,
                     size_t count, FILE *file);

#endif /* IRIS_TOOLS_SIM_CURVE_H */
