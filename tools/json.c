/* SPDX-License-Identifier: MIT
 *
 * Text as JSON has it.
 */
#include "config.h"

#include "json.h"

/* Bytes of the UTF-8 character of more than one byte at `c`; 0: it is none
 * (RFC 3629: no longer form than needed, no surrogates, up to U+10FFFF). */
static int utf8_bytes(const unsigned char *c)
{
    int bytes = c[0] >= 0xc2 && c[0] <= 0xdf   ? 2
                : c[0] >= 0xe0 && c[0] <= 0xef ? 3
                : c[0] >= 0xf0 && c[0] <= 0xf4 ? 4
                                               : 0;

    if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
        (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f)) {
        return 0;
    }
    for (int i = 1; i < bytes; i++) {
        if ((c[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return bytes;
}

void json_string(FILE *out, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    fputc('"', out);
    while (*c != '\0') {
        int bytes = utf8_bytes(c);

        if (bytes > 0) {
            fwrite(c, 1, (size_t)bytes, out);
            c += bytes;
            continue;
        }
        if (*c == '"' || *c == '\\') {
            fprintf(out, "\\%c", *c);
        } else if (*c < 0x20 || *c >= 0x7f) {
            fprintf(out, "\\u%04x", *c);
        } else {
            fputc(*c, out);
        }
        c++;
    }
    fputc('"', out);
}
