/* SPDX-License-Identifier: MIT
 *
 * The place in the program that calls the library.
 */
#ifndef IRIS_SRC_CHECK_RACE_CALLER_H
#define IRIS_SRC_CHECK_RACE_CALLER_H

#define IRIS_RACE_FRAMES 12

/* Return addresses of the calling thread, innermost first, followed by NULL. A
 * shared library leaves out its own frames and keeps one: the program's call. A
 * library that is linked into the program keeps all; later, symbols tell which
 * are its own. */
struct iris_race_caller {
    const void *frames[IRIS_RACE_FRAMES];
};

void iris_i_race_caller(struct iris_race_caller *caller_p);

#endif /* IRIS_SRC_CHECK_RACE_CALLER_H */
