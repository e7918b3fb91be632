/* SPDX-License-Identifier: MIT
 *
 * Text of other processes, made fit for a terminal.
 */
#ifndef IRIS_SRC_REPORT_ESCAPE_H
#define IRIS_SRC_REPORT_ESCAPE_H

#include <stddef.h>

/* Bytes of the character at `text`; 0 if it is not to be printed as it is: a
 * control character, or no UTF-8. */
size_t iris_i_printed_char(const char *text);

/* Escapes such bytes of a field of at most 256 bytes as "\x1b", in its place.
 * All text that is read of a job goes through here, and is cut if it gets too
 * long.
 */
void iris_i_clean(char *text, size_t bytes);

/* Adds to what is in `text`. */
void __attribute__((format(printf, 3, 4)))
iris_i_append(char *text, size_t bytes, const char *format, ...);

#endif /* IRIS_SRC_REPORT_ESCAPE_H */
