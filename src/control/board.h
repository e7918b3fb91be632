/* SPDX-License-Identifier: MIT
 *
 * A board: the published state of one rank (struct iris_shown), in memory that
 * others read while the rank writes.
 */
#ifndef IRIS_SRC_CONTROL_BOARD_H
#define IRIS_SRC_CONTROL_BOARD_H

#include "control/control.h"

struct iris_board {
    _Alignas(64) atomic_uint state;
    atomic_uint busy;
    atomic_uint interrupted;
    atomic_uint blames;
    atomic_uint streams;
    atomic_ullong calls;
    atomic_ullong id;
    atomic_ullong elsewhere;
    _Atomic uint64_t name[IRIS_CALL_NAME_WORDS];
    _Atomic uint64_t reason[IRIS_REASON_WORDS];
    _Atomic uint64_t waits;
};

/* Writes parts (enum iris_show) of the rank's state. The state itself is stored
 * last, as a release of the parts that belong to it. The waits are stored with
 * release, too. */
void iris_i_board_write(struct iris_board *board, unsigned parts,
                        const struct iris_shown *shown);

/* Copies parts of it. Each number is read atomically. */
void iris_i_board_read(const struct iris_board *board, unsigned parts,
                       struct iris_shown *shown_p);

#endif /* IRIS_SRC_CONTROL_BOARD_H */
