/* SPDX-License-Identifier: MIT
 *
 * Checks the arguments of a collective: options, types, sizes, buffers.
 */
#include "config.h"

#include "ccl/internal.h"

#include <iris/constants.h>
#include <iris/device/kernels/ccl_fold.h>

#include "base/base.h"
#include "context/context.h"
#include "heap/heap.h"
#include "queue/queue.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void iris_ccl_options_init_sized(struct iris_ccl_options *options, size_t size)
{
    (void)iris_i_sized_init(options, size, 0);
}

/* Checks fields whose ranges depend on nothing else. */
static iris_status_t check_ranges(const iris_t *iris,
                                  const struct iris_ccl_call *call)
{
    const struct iris_ccl_options *options = &call->options;
    const struct {
        const char *name;
        int value;
        int most;
    } fields[] = {
        {"async", options->async, 1},
        {"distribution", (int)options->distribution, IRIS_CCL_BLOCK},
        {"own_rows", options->own_rows, 1},
        {"num_rings", options->num_rings, 2},
    };

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].value < 0 || fields[i].value > fields[i].most) {
            return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                               "%s: %s is %d; pass 0 to %d", call->name,
                               fields[i].name, fields[i].value, fields[i].most);
        }
    }
    if (options->rows == 0 && (options->in_stride != 0 ||
                               options->out_stride != 0 || options->own_rows)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: in_stride, out_stride and own_rows are for "
                           "matrices; pass rows, or leave them 0",
                           call->name);
    }
    return IRIS_OK;
}

iris_status_t iris_i_ccl_take_options(iris_t *iris, struct iris_ccl_call *call,
                                      const struct iris_ccl_options *options)
{
    iris_status_t status;

    iris_ccl_options_init(&call->options);
    status =
        iris_i_sized_take(iris_i_log(iris), call->name, "iris_ccl_options_init",
                          options, &call->options);
    if (status == IRIS_OK) {
        status = iris_i_group_resolve(iris, call->options.group, &call->group);
    }
    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris_i_queue(iris), call->options.stream,
                                       &call->options.stream);
    }
    return status == IRIS_OK ? check_ranges(iris, call) : status;
}

/* ---- Types and operations ---- */

static iris_status_t fail_operation(const iris_t *iris,
                                    const struct iris_ccl_call *call)
{
    const char *name = iris_i_reduce_op_name(call->reduce);
    char number[16];

    if (strcmp(name, "?") == 0) {
        snprintf(number, sizeof number, "(%d)", (int)call->reduce);
        name = number;
    }
    return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                       "%s: op %s of %s is not defined; pass SUM, PRODUCT, MIN "
                       "or MAX of numbers, SUM of complex ones, AVG of floats "
                       "or complex ones, BAND, BOR or BXOR of integers or bool",
                       call->name, name, iris_dtype_name(call->dtype));
}

/* The factor of the result. Zero in the options means none, as in all of their
 * fields. */
static iris_status_t check_scale(const iris_t *iris, struct iris_ccl_call *call)
{
    double scale = call->options.scale;
    int kind = 0;
    int scales = iris_i_ccl_kinds[call->op].reduces &&
                 call->reduce == IRIS_REDUCE_SUM &&
                 iris_d_reduced_as(call->dtype, IRIS_REDUCE_AVG, &kind) != 0;

    if (scale != 0 && !scales) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: scale is %g, and it is for SUM of floats or "
                           "complex numbers; pass 0",
                           call->name, scale);
    }
    if (!isfinite(scale)) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: scale is %g; pass a finite number", call->name,
                           scale);
    }
    call->scale = call->reduce == IRIS_REDUCE_AVG
                      ? 1.0 / call->group->members.count
                  : scale == 0 ? 1.0
                               : scale;
    return IRIS_OK;
}

static iris_status_t check_types(const iris_t *iris, struct iris_ccl_call *call)
{
    int members = call->group->members.count;

    if (iris_dtype_size(call->dtype) == 0) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "%s: dtype %d is no element type; pass IRIS_DTYPE_F32 "
            "or the like",
            call->name, (int)call->dtype);
    }
    if (iris_i_ccl_kinds[call->op].reduces &&
        iris_d_reduced_as(call->dtype, call->reduce, &call->kind) == 0) {
        return fail_operation(iris, call);
    }
    if (iris_i_ccl_kinds[call->op].has_root &&
        (call->root < 0 || call->root >= members)) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "%s: root %d is no index of a group of %d; pass 0 to "
            "%d",
            call->name, call->root, members, members - 1);
    }
    if (call->op > IRIS_CCL_BROADCAST && call->options.rows != 0) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: rows is %zu, and it takes no matrices; pass 0",
                           call->name, call->options.rows);
    }
    return check_scale(iris, call);
}

/* ---- Buffers ---- */

/* Checks strides and sizes of a call on matrices. A stride is at least a row,
 * and a matrix must fit into memory. */
static iris_status_t check_rows(const iris_t *iris, struct iris_ccl_call *call)
{
    const struct iris_ccl_options *options = &call->options;
    size_t element = iris_dtype_size(call->dtype);
    size_t members = (size_t)call->group->members.count;
    size_t width =
        call->op == IRIS_CCL_ALL_TO_ALL ? members * call->count : call->count;
    size_t in_stride = options->in_stride == 0 ? width : options->in_stride;
    size_t out_stride = options->out_stride == 0 ? width : options->out_stride;
    size_t most = in_stride > out_stride ? in_stride : out_stride;
    size_t in_rows = options->rows, out_rows = options->rows;

    if (in_stride < width || out_stride < width) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: in_stride is %zu, out_stride %zu, and a row "
                           "has %zu elements; pass that or more, or 0",
                           call->name, options->in_stride, options->out_stride,
                           width);
    }
    if (most > 0 && options->rows > PTRDIFF_MAX / element / members / most) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: rows is %zu, of %zu elements: more than memory "
                           "can hold; check rows and strides",
                           call->name, options->rows, most);
    }
    in_rows *=
        call->op == IRIS_CCL_REDUCE_SCATTER && !options->own_rows ? members : 1;
    out_rows *= call->op == IRIS_CCL_ALL_GATHER ? members : 1;
    call->in_pitch = in_stride * element;
    call->out_pitch = out_stride * element;
    call->in_bytes = (in_rows - 1) * call->in_pitch + width * element;
    call->out_bytes = (out_rows - 1) * call->out_pitch + width * element;
    call->work_bytes = options->rows * call->bytes;
    return IRIS_OK;
}

static iris_status_t check_sizes(const iris_t *iris, struct iris_ccl_call *call)
{
    const struct iris_ccl_kind *kind = &iris_i_ccl_kinds[call->op];
    size_t element = iris_dtype_size(call->dtype);
    size_t members = (size_t)call->group->members.count;

    if (kind->pairs) {
        return iris_i_ccl_route_sizes(iris, call);
    }
    if (call->count > PTRDIFF_MAX / element / members) {
        return iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                           "%s: count %zu of %s for %zu members is more than "
                           "memory can hold; check the count",
                           call->name, call->count,
                           iris_dtype_name(call->dtype), members);
    }
    call->bytes = call->count * element;
    call->work_bytes = call->bytes;
    call->in_bytes = call->bytes * (kind->in_parts ? members : 1);
    call->out_bytes = call->bytes * (kind->out_parts ? members : 1);
    return call->options.rows == 0 ? IRIS_OK : check_rows(iris, call);
}

static iris_status_t check_buffer(const iris_t *iris,
                                  const struct iris_ccl_call *call,
                                  const struct iris_heap_range *range)
{
    size_t element = iris_dtype_size(call->dtype);
    size_t alignment = element < 8 ? element : 8;

    if (((uintptr_t)range->ptr & (alignment - 1)) != 0) {
        return iris_i_fail(
            iris_i_log(iris), IRIS_ERR_INVALID,
            "%s: %s %p is not aligned for %s; pass a multiple of "
            "%zu",
            call->name, range->name, range->ptr, iris_dtype_name(call->dtype),
            alignment);
    }
    return iris_i_heap_check_range(iris_i_heap(iris), range);
}

/* Bytes from one member's part of a buffer to the next. */
static size_t part_of(const struct iris_ccl_call *call)
{
    return call->options.rows == 0 ? call->bytes
           : call->op == IRIS_CCL_ALL_GATHER
               ? call->options.rows * call->out_pitch
               : call->options.rows * call->in_pitch;
}

/* Whether in and out overlap in a way that the call allows (*in_place_p), or an
 * error. */
static iris_status_t check_overlap(const iris_t *iris,
                                   struct iris_ccl_call *call)
{
    size_t part = (size_t)call->group->index * part_of(call);
    uintptr_t in = (uintptr_t)call->in, out = (uintptr_t)call->out;
    struct iris_ccl_route own;

    if (in >= out + call->out_bytes || out >= in + call->in_bytes) {
        return IRIS_OK;
    }
    if (iris_i_ccl_kinds[call->op].pairs) {
        iris_i_ccl_route_to(call, (uint32_t)call->group->index, &own);
        iris_i_ccl_route_from(call, (uint32_t)call->group->index, &own);
        call->in_place = call->op < IRIS_CCL_ALL_TO_ALLV &&
                         in + own.in_at == out + own.out_at;
    } else if (call->op == IRIS_CCL_ALL_GATHER) {
        call->in_place = in == out + part;
    } else if (call->op == IRIS_CCL_REDUCE_SCATTER && !call->options.own_rows) {
        call->in_place = out == in + part;
    } else {
        call->in_place = in == out;
    }
    call->in_place = call->in_place && call->in_pitch == call->out_pitch;
    return call->in_place
               ? IRIS_OK
               : iris_i_fail(iris_i_log(iris), IRIS_ERR_INVALID,
                             "%s: in %p (%zu bytes) and out %p (%zu bytes) "
                             "overlap; pass the same place, as %s takes it, or "
                             "memory apart",
                             call->name, call->in, call->in_bytes, call->out,
                             call->out_bytes, call->name);
}

/* Whether a copy of `in` in `out` serves as well. In a broadcast, only the root
 * has an `in`, and the other members do not know where it is, so it must not
 * decide the variant. Matrices are always on the heap. */
static int can_stage(const struct iris_ccl_call *call)
{
    return call->op == IRIS_CCL_BROADCAST && call->options.rows == 0;
}

static iris_status_t check_buffers(const iris_t *iris,
                                   struct iris_ccl_call *call)
{
    struct iris_heap_range in = {call->name,     "in", call->in,
                                 call->in_bytes, 0,    1};
    struct iris_heap_range out = {call->name,      "out", call->out,
                                  call->out_bytes, 1,     1};
    int is_root = call->group->index == call->root;
    int reads =
        call->in_bytes > 0 && (call->op != IRIS_CCL_BROADCAST || is_root);
    int writes =
        call->out_bytes > 0 && (call->op != IRIS_CCL_REDUCE || is_root);
    iris_status_t status = IRIS_OK;

    /* The hello may tell peers the addresses of both. */
    call->in = reads ? call->in : call->out;
    call->out = writes ? call->out : (void *)(uintptr_t)call->in;
    if (reads) {
        status = check_buffer(iris, call, &in);
    }
    if (status == IRIS_OK && writes) {
        status = check_buffer(iris, call, &out);
    }
    if (status == IRIS_OK && reads && writes) {
        status = check_overlap(iris, call);
    }
    call->in_on_heap = iris_i_heap_bytes_from(iris_i_heap(iris), call->in) > 0;
    call->on_heap = iris_i_heap_bytes_from(iris_i_heap(iris), call->out) > 0 &&
                    (call->in_on_heap || can_stage(call));
    return status;
}

iris_status_t iris_i_ccl_check(const iris_t *iris, struct iris_ccl_call *call)
{
    iris_status_t status = check_types(iris, call);

    if (status == IRIS_OK) {
        status = check_sizes(iris, call);
    }
    return status == IRIS_OK &&
                   call->count + call->out_count + call->out_bytes > 0
               ? check_buffers(iris, call)
               : status;
}
