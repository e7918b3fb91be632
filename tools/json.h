/* SPDX-License-Identifier: MIT
 *
 * Text as JSON has it.
 */
#ifndef IRIS_TOOLS_JSON_H
#define IRIS_TOOLS_JSON_H

#include <stdio.h>

/* Prints a string in quotes, escaped. UTF-8 stays as it is; a byte that is not
 * becomes the character of its number, so that the output is valid whatever the
 * text is. */
void json_string(FILE *out, const char *text);

#endif /* IRIS_TOOLS_JSON_H */
