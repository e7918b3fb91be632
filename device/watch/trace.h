/* SPDX-License-Identifier: MIT
 *
 * The program's own events in traces of its kernels. <iris/trace.h> has the
 * host's part.
 *
 * @use lane; never blocks
 * @param span  result of iris_dev_trace_begin()
 */
#ifndef IRIS_DEVICE_TRACE_H
#define IRIS_DEVICE_TRACE_H

#include <iris/device/watch/hook.h>

/** An event that a kernel delimits by a begin and an end. */
typedef struct iris_dev_trace_span {
    uint64_t id; /* on a GPU, its slot */
    uint64_t what;
} iris_dev_trace_span_t;

/** Begins an event of the program's own: an id of <iris/trace.h>, or another
 *  from 1024 to 4095 to which iris_trace_name() gives a name. Any lane; each
 *  that calls records one. Orders nothing; does nothing where nothing is
 *  recorded. */
IRIS_DEVICE iris_dev_trace_span_t iris_dev_trace_begin(iris_dev_t dev,
                                                       int event)
{
    iris_dev_trace_span_t span = {0, (uint64_t)event & 0xfff};

    (void)dev;
    IRIS_D_HOOK(dev.watched,
                span.id = IRIS_D_CALL(before_span, dev, span.what));
    return span;
}

/** Ends it; the same lane. */
IRIS_DEVICE void iris_dev_trace_end(iris_dev_t dev, iris_dev_trace_span_t span)
{
    (void)dev, (void)span;
    IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_span, dev, span.id, span.what));
}

#endif /* IRIS_DEVICE_TRACE_H */
