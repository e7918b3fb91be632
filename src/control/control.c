/* SPDX-License-Identifier: MIT
 *
 * Functions common to all control planes.
 */
#include "config.h"

#include "control/control.h"

#include "control/records.h"

#include <unistd.h>

int iris_i_control_is_remote(struct iris_control *control, int rank)
{
    return control != NULL && control->ops->is_remote(control, rank);
}

void iris_i_control_wait_stream(struct iris_control *control, int change)
{
    if (control != NULL) {
        control->ops->wait_stream(control, change);
    }
}

void iris_i_control_close(struct iris_control *control)
{
    if (control != NULL) {
        control->ops->close(control);
    }
}

uint64_t iris_i_control_next_id(void)
{
    static atomic_uint count;

    return ((uint64_t)getpid() << 32) + atomic_fetch_add(&count, 1) + 1;
}

void iris_i_control_open_record(struct iris_control *control,
                                struct iris_records *records)
{
    control->records = records;
    control->record = iris_i_records_open(records, control->rank);
    if (control->record == NULL) {
        iris_i_warning(control->log,
                       "no flight record of this rank, so that reports of "
                       "hangs say less: %s",
                       iris_last_error());
    }
}
