/* SPDX-License-Identifier: MIT
 *
 * Malformed values of the public structs, made from an input, given to the
 * public calls that take them. test_structs.c feeds numbers of a generator,
 * fuzz_structs.c what libFuzzer finds. run_structs.sh holds that no public struct
 * is left out.
 */
#ifndef IRIS_TESTS_FUZZ_STRUCTS_H
#define IRIS_TESTS_FUZZ_STRUCTS_H

#include <iris/iris.h>

#include "fuzz/fuzz.h"

#define FUZZ_BYTES 4096 /* of the block on the heap, and of the host's */
#define INPUT_BYTES 256 /* that a case reads at most */
#define HEAP_AHEAD 4096 /* a page ahead of a heap, which is nobody's */

/* What a case works with. Ranks make the same case at the same time, so a
 * choice depends on the input and on offsets alone, not on addresses. */
struct fuzz {
    iris_t *iris;
    struct input input;
    char *block; /* on the heap, FUZZ_BYTES */
    char *host;  /* the same off it */
    char *heap;
    size_t heap_bytes;
    int failures;
};

/* 1: out of memory, or the call failed. */
int fuzz_open(struct fuzz *fuzz, iris_t *iris);
void fuzz_close(struct fuzz *fuzz);

/* One case of whatever the input says. Failures are printed and counted. */
void fuzz_case(struct fuzz *fuzz, const uint8_t *data, size_t size);

/* ---- Between the files ---- */

/* Prints what is wrong with a call and counts it, unless `right`. */
void fuzz_expect(struct fuzz *fuzz, int right, const char *call,
                 iris_status_t status);

/* A number below `count`; one that is often at an edge. */
unsigned fuzz_choose(struct fuzz *fuzz, unsigned count);
int fuzz_one_in(struct fuzz *fuzz, unsigned count);
int64_t fuzz_edge(struct fuzz *fuzz);

/* In the block, at an edge of the heap, misaligned, or no memory at all. */
void *fuzz_place(struct fuzz *fuzz, void *data);

/* Cases of tensors (structs_tensor.c), operations and collectives
 * (structs_ops.c, with plans), and of all else (structs_calls.c). */
void fuzz_views(struct fuzz *fuzz);
void fuzz_tensor_calls(struct fuzz *fuzz);
void fuzz_creation(struct fuzz *fuzz);
void fuzz_dlpack(struct fuzz *fuzz);
void fuzz_ops(struct fuzz *fuzz);
void fuzz_ccl(struct fuzz *fuzz);
void fuzz_plans(struct fuzz *fuzz);
void fuzz_launch(struct fuzz *fuzz);
void fuzz_groups(struct fuzz *fuzz);
void fuzz_config(struct fuzz *fuzz);
void fuzz_trace(struct fuzz *fuzz);
void fuzz_values(struct fuzz *fuzz);
void fuzz_streams(struct fuzz *fuzz);

/* Of a tensor, by arithmetic of 128 bits. */
enum verdict {
    MALFORMED, /* every call refuses it */
    LEAVES,    /* it begins on the heap, or at its edge, and leaves it */
    BLOCK,     /* all within one of the two blocks */
    ON_HEAP,   /* all on the heap, but somebody else's may be there */
    ENDLESS,   /* in a block, but with more elements than a test waits for */
    UNKNOWN,   /* no telling what is there: nobody may touch it */
};
enum verdict fuzz_judge(const struct fuzz *fuzz, const iris_tensor_t *tensor);

/* Whether calls that access the memory have to refuse it; the worse of two,
 * where what nobody may touch counts most. */
int fuzz_is_bad(enum verdict verdict);
enum verdict fuzz_worse(enum verdict one, enum verdict other);

/* `count` elements at `data` as a tensor. */
iris_tensor_t fuzz_buffer(void *data, iris_dtype_t dtype, int64_t count);

/* Waits for the default stream, which has to be fine. */
void fuzz_wait(struct fuzz *fuzz);

/* A tensor in a block, with up to three fields that are something else. */
iris_tensor_t fuzz_tensor(struct fuzz *fuzz);
void fuzz_spoil(struct fuzz *fuzz, iris_tensor_t *tensor);

#endif /* IRIS_TESTS_FUZZ_STRUCTS_H */
