/* SPDX-License-Identifier: MIT
 *
 * The page of iris trace report, without its data.
 */
#ifndef IRIS_TOOLS_TRACE_PAGE_H
#define IRIS_TOOLS_TRACE_PAGE_H

/* Until the data, a JSON object, and behind it. */
extern const char trace_page_begin[], trace_page_end[];

#endif /* IRIS_TOOLS_TRACE_PAGE_H */
