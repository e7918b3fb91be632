/* SPDX-License-Identifier: MIT
 *
 * The C locale for this thread, in which numbers have a decimal point. Files
 * and messages of the library look the same in every locale of the program.
 */
#ifndef IRIS_SRC_BASE_C_LOCALE_H
#define IRIS_SRC_BASE_C_LOCALE_H

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>

/* Returns the thread's locale, for iris_i_c_locale_leave(). Calls may nest. The
 * C library has an object for this locale, so newlocale() allocates nothing. */
static inline locale_t iris_i_c_locale_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void iris_i_c_locale_leave(locale_t before)
{
    (void)uselocale(before);
}

/* vsnprintf() in the C locale. */
static inline int iris_i_vprint(char *text, size_t bytes, const char *format,
                                va_list args)
    __attribute__((format(printf, 3, 0)));
static inline int iris_i_vprint(char *text, size_t bytes, const char *format,
                                va_list args)
{
    locale_t before = iris_i_c_locale_enter();
    int length = vsnprintf(text, bytes, format, args);

    iris_i_c_locale_leave(before);
    return length;
}

/* snprintf() in the C locale. */
static inline int iris_i_print(char *text, size_t bytes, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));
static inline int iris_i_print(char *text, size_t bytes, const char *format,
                               ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = iris_i_vprint(text, bytes, format, args);
    va_end(args);
    return length;
}

#endif /* IRIS_SRC_BASE_C_LOCALE_H */
