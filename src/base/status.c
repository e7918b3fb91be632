/* SPDX-License-Identifier: MIT
 *
 * Names and texts of statuses, from the one table.
 */
#include "config.h"

#include <iris/status.h>

const char *iris_status_string(iris_status_t status)
{
    switch (status) {
#define STATUS_NAME(name, value, text) \
    case IRIS_##name:                  \
        return "IRIS_" #name;
        IRIS_STATUS_ROWS(STATUS_NAME)
#undef STATUS_NAME
    }
    return "IRIS_ERR_?";
}

const char *iris_status_text(iris_status_t status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text) \
    case IRIS_##name:                  \
        return text;
        IRIS_STATUS_ROWS(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "unknown status";
}

const char *iris_version(void)
{
    return PACKAGE_VERSION;
}
