/* SPDX-License-Identifier: MIT
 *
 * The contract of backends as tests: what is asked of each.
 */
#ifndef IRIS_TESTS_CONTRACT_H
#define IRIS_TESTS_CONTRACT_H

/* Runs the tests on the backend of that name; NULL: on each that this build has
 * and that runs here. How many failed. */
int contract_run(const char *name);

#endif /* IRIS_TESTS_CONTRACT_H */
