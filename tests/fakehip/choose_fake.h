/* SPDX-License-Identifier: MIT
 *
 * Included ahead of every file of a build for the fake HIP runtime.
 */
#define IRIS_TARGET_HEADER <target_fake.h>
