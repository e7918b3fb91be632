/* SPDX-License-Identifier: MIT
 *
 * The parts of iris sim, and their options.
 */
#ifndef IRIS_TOOLS_SIM_PARTS_H
#define IRIS_TOOLS_SIM_PARTS_H

#include "sim_platform.h"

struct sim_options {
    const char *platform; /* a file; NULL: not given */
    const char *output;   /* NULL: none */
    const char *picture;  /* an SVG file */
    const char *perfetto; /* a trace of the predicted run */
    const char *bytes;
    const char *ranks;
    const char *variant;
    const char *topology;    /* of the network; NULL: no contention inside it */
    const char *changes[16]; /* of --what-if */
    int num_changes;
    int scale;      /* ranks that run the trace's program; 0: the trace's own */
    int is_ring;    /* then messages go as far as in the trace */
    double compute; /* factor of the intervals between operations */
    int json;
    char **words; /* after the part's name */
    int num_words;
};

extern struct sim_options sim_options;

/* Each returns the exit status. */
int sim_fit_part(void);
int sim_run_part(void);
int sim_collective_part(void);

/* Reads the platform of --platform and applies --what-if. Returns 0, or -1
 * after printing a message. */
int sim_platform_given(struct sim_platform *platform_p);

/* Opens a file to write; NULL, having complained. Closing returns 0, or 1 if
 * something could not be written. */
FILE *sim_open(const char *path);
int sim_close(FILE *file, const char *path);

#endif /* IRIS_TOOLS_SIM_PARTS_H */
