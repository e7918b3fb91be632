/* SPDX-License-Identifier: MIT
 *
 * Makes text of other processes safe for a terminal.
 */
#ifndef IRIS_SRC_REPORT_ESCAPE_H
#define IRIS_SRC_REPORT_ESCAPE_H

#include <stddef.h>

/* Bytes of the character at `text`. 0 if it must not be printed directly: a
 * control character, or not UTF-8. */
size_t iris_i_printed_char(const char *text);

/* Escapes such bytes as "\x1b", in place, in a field of at most 256 bytes. All
 * text from a job's records passes through here. It is cut if it gets too
 * long. */
void iris_i_clean(char *text, size_t bytes);

/* Appends to `text`. */
void __attribute__((format(printf, 3, 4)))
iris_i_append(char *text, size_t bytes, const char *format, ...);

#endif /* IRIS_SRC_REPORT_ESCAPE_H */
