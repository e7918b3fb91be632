/* SPDX-License-Identifier: MIT
 *
 * Where the program calls the library.
 */
#ifndef IRIS_SRC_CHECK_RACE_CALLER_H
#define IRIS_SRC_CHECK_RACE_CALLER_H

#define IRIS_RACE_FRAMES 12

/* Return addresses of the calling thread, innermost first; behind them NULL. A
 * shared library leaves out its own frames, and keeps one: the program's call.
 * A library that is linked into the program keeps all: symbols must tell later
 * which are its own. */
struct iris_race_caller {
    const void *frames[IRIS_RACE_FRAMES];
};

void iris_i_race_caller(struct iris_race_caller *caller_p);

#endif /* IRIS_SRC_CHECK_RACE_CALLER_H */
