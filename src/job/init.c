/* SPDX-License-Identifier: MIT
 *
 * iris_init(): creates the context of a rank, and attaches the parts that every
 * context has.
 */
#include "config.h"

#include "job/internal.h"

#include "context/context.h"
#include "trace/trace.h"

#include <stdio.h>

iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p)
{
    struct iris_settings settings;
    iris_status_t status = iris_i_settings_load(config, &settings);

    return iris_i_context_open(&settings, bootstrap, &iris_i_life_ops, status,
                               iris_p);
}

/* Wrong settings may be the reason why a rank knows of no others, which wait
 * for it. It joins them all the same, to tell them. */
static void expect_others(struct iris_settings *settings)
{
    if (settings->rank.origin != IRIS_ORIGIN_DEFAULT &&
        settings->num_ranks.origin == IRIS_ORIGIN_DEFAULT) {
        settings->num_ranks.number = settings->rank.number + 2;
    }
}

iris_status_t iris_init(const struct iris_config *config, iris_t **iris_p)
{
    struct iris_settings settings;
    struct iris_bootstrap bootstrap;
    char message[IRIS_MESSAGE_BYTES];
    iris_status_t loaded, status;

    if (iris_p == NULL) {
        return iris_i_fail(
            NULL, IRIS_ERR_INVALID,
            "iris_init: iris_p is NULL; pass where to put the context");
    }
    loaded = iris_i_settings_load(config, &settings);
    snprintf(message, sizeof message, "%s", iris_last_error());
    if (loaded != IRIS_OK) {
        expect_others(&settings);
    }
    status = iris_i_bootstrap(&settings, &bootstrap);
    if (loaded != IRIS_OK) {
        iris_i_fail_again(loaded, message);
    }
    if (status != IRIS_OK) {
        return loaded != IRIS_OK ? loaded : status;
    }
    return iris_i_context_open(&settings, &bootstrap, &iris_i_life_ops, loaded,
                               iris_p);
}
