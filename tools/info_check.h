/* SPDX-License-Identifier: MIT
 *
 * iris-info --check. Apart from info.h, since a GPU's compiler reads it.
 */
#ifndef IRIS_TOOLS_INFO_CHECK_H
#define IRIS_TOOLS_INFO_CHECK_H

/* Runs a job of two ranks and prints how it went; 1 if it failed. */
int info_check(void);

#endif /* IRIS_TOOLS_INFO_CHECK_H */
