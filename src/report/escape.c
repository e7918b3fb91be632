/* SPDX-License-Identifier: MIT
 *
 * Makes text of other processes safe for a terminal. A record may contain any
 * bytes: a job id or a kernel's name could move the cursor or fake a line.
 */
#include "config.h"

#include "report/report.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Whether a code point is printed. Control characters of ASCII and Latin 1 are
 * not, nor are characters that change the direction of writing or separate
 * lines. */
static int is_printed(uint32_t code)
{
    return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && code != 0x61c &&
           code != 0x200e && code != 0x200f &&
           !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2066 && code <= 0x2069);
}

size_t iris_i_printed_char(const char *text)
{
    uint32_t code = 0;
    size_t bytes = iris_i_utf8_char(text, &code);

    return bytes != 0 && is_printed(code) ? bytes : 0;
}

void iris_i_clean(char *text, size_t bytes)
{
    char raw[256];
    size_t used = 0;

    snprintf(raw, sizeof raw, "%.*s", (int)(bytes - 1), text);
    for (const char *c = raw; *c != '\0';) {
        size_t length = iris_i_printed_char(c);
        char piece[8];

        if (length == 0) {
            length = 1;
            snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)*c);
        } else {
            snprintf(piece, sizeof piece, "%.*s", (int)length, c);
        }
        if (used + strlen(piece) >= bytes) {
            break;
        }
        memcpy(text + used, piece, strlen(piece));
        used += strlen(piece);
        c += length;
    }
    text[used] = '\0';
}

/* If the text is too long, it ends with a whole character. */
void iris_i_append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text), at;
    va_list list;
    int length;

    va_start(list, format);
    length = iris_i_vprint(text + used, bytes - used, format, list);
    va_end(list);
    if (length < 0 || (size_t)length < bytes - used) {
        return;
    }
    at = strlen(text);
    while (at > used && ((unsigned char)text[at - 1] & 0xc0) == 0x80) {
        at--;
    }
    if (at > used && iris_i_printed_char(text + at - 1) == 0) {
        text[at - 1] = '\0';
    }
}
