/* SPDX-License-Identifier: MIT
 *
 * Included ahead of kernels for the CPU, whatever a build's CC is for.
 */
#undef IRIS_TARGET_HEADER
