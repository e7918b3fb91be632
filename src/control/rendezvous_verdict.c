/* SPDX-License-Identifier: MIT
 *
 * What ranks tell each other of how the rendezvous went.
 */
#include "config.h"

#include "control/rendezvous_root.h"

#include "base/socket.h"

#include <stdio.h>

void iris_i_rendezvous_judge(struct iris_verdict *verdict, iris_status_t status)
{
    if (verdict->status == IRIS_OK && status != IRIS_OK) {
        verdict->status = status;
        snprintf(verdict->message, sizeof verdict->message, "%s",
                 iris_last_error());
    }
}

/* What another process says went wrong is one of our statuses, or nonsense. */
static iris_status_t status_from(int32_t number)
{
    switch (number) {
#define STATUS_CASE(name, value, text) \
    case value:                        \
        return IRIS_##name;
        IRIS_STATUS_ROWS(STATUS_CASE)
#undef STATUS_CASE
    }
    return IRIS_ERR_BOOTSTRAP;
}

iris_status_t iris_i_rendezvous_accept(const struct iris_verdict *verdict)
{
    char message[IRIS_MESSAGE_BYTES];

    if (verdict->status == IRIS_OK) {
        return IRIS_OK;
    }
    /* A text from outside need not have an end. */
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1,
             verdict->message);
    return iris_i_fail_again(status_from(verdict->status), message);
}

void iris_i_rendezvous_send(int sock, const struct iris_verdict *verdict,
                            int fd)
{
    (void)iris_i_socket_send(sock, verdict, sizeof *verdict, fd);
}
