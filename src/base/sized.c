/* SPDX-License-Identifier: MIT
 *
 * Public structs that grow at their end: the rule for their sizes.
 */
#include "config.h"

#include "base/base.h"

#include <string.h>

static size_t size_of(const void *sized)
{
    size_t size;

    memcpy(&size, sized, sizeof size);
    return size;
}

int iris_i_sized_fits(size_t size)
{
    return size >= sizeof size && size <= IRIS_SIZED_MOST &&
           size % sizeof(void *) == 0;
}

int iris_i_sized_init(void *sized, size_t size, int unset)
{
    if (sized == NULL || !iris_i_sized_fits(size)) {
        return 0;
    }
    memset(sized, unset, size);
    memcpy(sized, &size, sizeof size);
    return 1;
}

size_t iris_i_sized_unknown(const void *sized, size_t known, int unset)
{
    const unsigned char *bytes = sized;
    size_t size = size_of(sized);

    for (size_t i = known; i < size; i++) {
        if (bytes[i] != (unsigned char)unset) {
            return i;
        }
    }
    return 0;
}

iris_status_t iris_i_sized_take(const struct iris_log *log, const char *call,
                                const char *init, const void *options,
                                void *known_p)
{
    size_t known = size_of(known_p);
    size_t size = options == NULL ? 0 : size_of(options);

    if (options == NULL) {
        return IRIS_OK;
    }
    if (!iris_i_sized_fits(size)) {
        return iris_i_fail(log, IRIS_ERR_INVALID,
                           "%s: options of %zu bytes; call %s() before setting "
                           "fields",
                           call, size, init);
    }
    if (iris_i_sized_unknown(options, known, 0) != 0) {
        return iris_i_fail(log, IRIS_ERR_INVALID,
                           "%s: options set a field at byte %zu that this "
                           "library does not know; leave it out, or use a "
                           "library as new as the header",
                           call, iris_i_sized_unknown(options, known, 0));
    }
    memcpy(known_p, options, size < known ? size : known);
    return IRIS_OK;
}
