/* SPDX-License-Identifier: MIT
 *
 * Bells: event descriptors.
 */
#include "config.h"

#include "transport/internal.h"

#include "base/base.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int iris_i_bell_open(void)
{
    return iris_i_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void iris_i_bell_ring(int bell)
{
    uint64_t one = 1;

    (void)!write(bell, &one, sizeof one);
}

void iris_i_bell_silence(int bell)
{
    uint64_t rings;

    (void)!read(bell, &rings, sizeof rings);
}

int iris_i_bell_wait(int bell, int64_t ns)
{
    const struct timespec most = {ns / IRIS_NS_PER_S, ns % IRIS_NS_PER_S};
    struct pollfd polled = {.fd = bell, .events = POLLIN};

    if (ppoll(&polled, 1, &most, NULL) <= 0) {
        return 0;
    }
    iris_i_bell_silence(bell);
    return 1;
}
