/* SPDX-License-Identifier: MIT
 *
 * What the fuzz programs share: input that is read bit by bit, and conditions
 * that must hold. libFuzzer calls LLVMFuzzerTestOneInput() with inputs that
 * reach new code.
 */
#ifndef IRIS_TESTS_FUZZ_FUZZ_H
#define IRIS_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* abort() makes libFuzzer keep the input. */
#define REQUIRE(condition)                                               \
    do {                                                                 \
        if (!(condition)) {                                              \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, \
                    #condition);                                         \
            abort();                                                     \
        }                                                                \
    } while (0)

struct input {
    const uint8_t *data;
    size_t left;
};

/* At most `bytes`, fewer at the end; returns how many. */
static inline size_t input_take(struct input *input, void *to, size_t bytes)
{
    bytes = bytes < input->left ? bytes : input->left;
    memcpy(to, input->data, bytes);
    input->data += bytes;
    input->left -= bytes;
    return bytes;
}

/* The next number of so many bytes, at most 8; 0 at the end. */
static inline uint64_t input_number(struct input *input, size_t bytes)
{
    uint64_t number = 0;

    input_take(input, &number, bytes);
    return number;
}

#endif /* IRIS_TESTS_FUZZ_FUZZ_H */
