/* SPDX-License-Identifier: MIT
 *
 * Graphs' insides.
 */
#ifndef IRIS_SRC_QUEUE_GRAPH_H
#define IRIS_SRC_QUEUE_GRAPH_H

#include "context/context.h"

struct iris_graph {
    struct iris_graph *next;
    void *native; /* the backend's */
};

/* Frees what the program has not. */
void iris_i_graph_close_all(iris_t *iris);

#endif /* IRIS_SRC_QUEUE_GRAPH_H */
