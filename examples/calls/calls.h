/* SPDX-License-Identifier: MIT
 *
 * The programs of this folder make each public call at least once; the manual pages
 * quote their paragraphs. Each runs on two ranks and ends with 0.
 */
#ifndef IRIS_EXAMPLES_CALLS_H
#define IRIS_EXAMPLES_CALLS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <iris/device.h>
#include <iris/iris.h>

/* Ends the program with the message of a call that failed. */
static inline void check(iris_status_t status)
{
    if (status != IRIS_OK) {
        fprintf(stderr, "%s: %s\n", iris_status_string(status),
                iris_last_error());
        exit(1);
    }
}

/* Ends the program if a result is wrong. */
#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)
static inline void expect(int holds, const char *what, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d: not true: %s\n", line, what);
        exit(1);
    }
}

#endif /* IRIS_EXAMPLES_CALLS_H */
