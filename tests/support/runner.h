/* SPDX-License-Identifier: MIT
 *
 * What the runner tells the harness in a test's process, and is told.
 */
#ifndef IRIS_TESTS_RUNNER_H
#define IRIS_TESTS_RUNNER_H

/* How far a test has come. ENDED: it returned; skips have a state of their own,
 * since a test that calls exit(0) has not passed. */
enum runner_state { NOT_STARTED, STARTED, SKIPPED, ENDED };

#define RUNNER_MAX_TESTS 256 /* of a file */
#define RUNNER_NAME_BYTES 160

/* In memory that the runner shares with the test's process. */
struct runner_orders {
    enum { RUN_ALL, RUN_ONE, LIST } mode;
    int wanted; /* RUN_ONE: the number of the test in its file */
    int num_tests;
    char names[RUNNER_MAX_TESTS][RUNNER_NAME_BYTES];
    enum runner_state state;
    int num_ended;
};

extern struct runner_orders *runner_orders;

#endif /* IRIS_TESTS_RUNNER_H */
