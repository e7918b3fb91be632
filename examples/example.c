/* SPDX-License-Identifier: MIT
 *
 * Code that the examples share; see example.h.
 */
#include "example.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Options ---- */

static const struct option long_options[] = {
    {"bytes", required_argument, NULL, 'b'},
    {"iterations", required_argument, NULL, 'i'},
    {"workgroups", required_argument, NULL, 'w'},
    {"ranks", required_argument, NULL, 'n'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void usage(FILE *file, const char *name, const char *about,
                  const struct example_options *defaults)
{
    fprintf(file,
            "usage: %s [options]\n"
            "       mpirun -n 4 %s [options]\n"
            "%s\n\n"
            "  -b, --bytes N[K|M|G]  size of the largest buffer [%zuK]\n"
            "  -i, --iterations N    timed iterations [%d]\n"
            "  -w, --workgroups N    workgroups of a kernel [as many as run]\n"
            "  -n, --ranks N         ranks to run [4]\n"
            "  -h, --help            this text\n\n"
            "Without a launcher the ranks are threads, or processes with\n"
            "IRIS_SPAWN=processes. iris info lists all such variables.\n",
            name, name, about, defaults->bytes >> 10, defaults->iterations);
}

/* A number from `least`, with K, M or G behind it where `units`; else exits. */
static size_t number(const char *option, const char *text, size_t least,
                     int units)
{
    static const char names[] = "KMG";
    char *end;
    unsigned long long value;
    const char *unit;

    errno = 0;
    value = strtoull(text, &end, 10);
    unit = units && *end != '\0' ? strchr(names, *end) : NULL;
    if (unit != NULL) {
        value <<= 10 * (unit - names + 1);
        end++;
    }
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        value < least || (!units && value > INT32_MAX)) {
        fprintf(stderr, "%s \"%s\": it takes a number from %zu%s\n", option,
                text, least, units ? ", also with K, M or G" : "");
        exit(2);
    }
    return (size_t)value;
}

void example_options(int argc, char **argv, const char *about,
                     struct example_options *options)
{
    const struct example_options defaults = *options;
    int option;

    while ((option = getopt_long(argc, argv, "b:i:w:n:h", long_options,
                                 NULL)) != -1) {
        switch (option) {
        case 'b':
            options->bytes = number("--bytes", optarg, 4, 1) / 4 * 4;
            break;
        case 'i':
            options->iterations = (int)number("--iterations", optarg, 1, 0);
            break;
        case 'w':
            options->workgroups = (int)number("--workgroups", optarg, 1, 0);
            break;
        case 'n':
            options->ranks = (int)number("--ranks", optarg, 1, 0);
            break;
        default:
            usage(option == 'h' ? stdout : stderr, argv[0], about, &defaults);
            exit(option == 'h' ? 0 : 2);
        }
    }
    if (optind < argc) {
        usage(stderr, argv[0], about, &defaults);
        exit(2);
    }
    /* Only where iris_spawn() makes the ranks: launchers have their number. */
    if (getenv("IRIS_RANK") == NULL) {
        setenv("IRIS_NUM_RANKS", "4", 0);
    }
}

int example_exit(iris_status_t status)
{
    if (status != IRIS_OK) {
        fprintf(stderr, "failed: %s: %s\n", iris_status_string(status),
                iris_last_error());
    }
    return status == IRIS_OK ? 0 : 1;
}

unsigned example_grid(const iris_t *iris, const struct example_options *options)
{
    return (unsigned)(options->workgroups != 0 ? options->workgroups
                                               : iris_num_cus(iris));
}

/* ---- Values ---- */

uint32_t example_sum(int num_ranks, size_t i, int round)
{
    uint32_t sum = 0;

    for (int rank = 0; rank < num_ranks; rank++) {
        sum += example_value(rank, i, round);
    }
    return sum;
}

uint32_t example_zero(int rank, size_t i, int round)
{
    (void)rank, (void)i, (void)round;
    return 0;
}

static iris_status_t no_memory(const iris_t *iris)
{
    fprintf(stderr, "rank %d: no memory on the host\n", iris_rank(iris));
    return IRIS_ERR_NO_MEMORY;
}

iris_status_t example_copy(iris_t *iris, void *to, const void *from,
                           size_t bytes)
{
    iris_status_t status = iris_memcpy(iris, to, from, bytes, NULL);

    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

int example_fill(iris_t *iris, uint32_t *ptr, size_t count, int rank, int round)
{
    uint32_t *host = malloc(count * sizeof *host);
    iris_status_t status;

    if (host == NULL) {
        return no_memory(iris);
    }
    for (size_t i = 0; i < count; i++) {
        host[i] = example_value(rank, i, round);
    }
    status = example_copy(iris, ptr, host, count * sizeof *host);
    free(host);
    return status;
}

int example_check(iris_t *iris, const char *what, const uint32_t *ptr,
                  size_t count, example_value_fn value, int rank, int round)
{
    uint32_t *host = malloc(count * sizeof *host);
    int ret;

    if (host == NULL) {
        return no_memory(iris);
    }
    ret = example_copy(iris, host, ptr, count * sizeof *host);
    for (size_t i = 0; ret == 0 && i < count; i++) {
        if (host[i] != value(rank, i, round)) {
            ret = example_wrong(iris, what, i, host[i], value(rank, i, round));
        }
    }
    free(host);
    return ret;
}

int example_wrong(const iris_t *iris, const char *what, size_t i, double seen,
                  double expected)
{
    fprintf(stderr, "rank %d: WRONG VALUE: %s[%zu] is %.9g, expected %.9g\n",
            iris_rank(iris), what, i, seen, expected);
    return 1;
}

int example_each_pair(iris_t *iris, example_pair_fn fn, void *arg)
{
    int num_ranks = iris_num_ranks(iris);
    int ret = iris_barrier(iris, NULL, NULL);

    for (int pair = 0; ret == 0 && pair < num_ranks * num_ranks; pair++) {
        ret = fn(iris, arg, pair / num_ranks, pair % num_ranks);
        if (ret == 0) {
            ret = iris_barrier(iris, NULL, NULL);
        }
    }
    return ret;
}

/* ---- Timing ---- */

double example_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double example_median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare);
    return times[count / 2];
}

double example_gib_per_s(size_t bytes, double seconds)
{
    return (double)bytes / seconds / (1 << 30);
}

/* The work that one call of example_time() times. */
struct timing {
    const struct example_options *options;
    const struct iris_kernel *kernel;
    const void *args;
    size_t args_bytes;
    int together;
    uint64_t *launch;
};

static iris_status_t time_one(iris_t *iris, const struct timing *timing,
                              double *seconds_p)
{
    iris_status_t status = IRIS_OK;
    double begin;

    if (timing->launch != NULL) {
        ++*timing->launch;
    }
    if (timing->together) {
        status = iris_barrier(iris, NULL, NULL);
    }
    begin = example_now();
    if (status == IRIS_OK) {
        status = iris_launch(iris, timing->kernel,
                             example_grid(iris, timing->options), EXAMPLE_LANES,
                             timing->args, timing->args_bytes, NULL);
    }
    if (status == IRIS_OK) {
        status = iris_stream_synchronize(iris, NULL);
    }
    *seconds_p = example_now() - begin;
    return status;
}

static iris_status_t time_all(iris_t *iris, const struct timing *timing,
                              double *seconds_p)
{
    int iterations = timing->options->iterations;
    double *times = calloc((size_t)iterations, sizeof *times);
    iris_status_t status = IRIS_OK;

    if (times == NULL) {
        return no_memory(iris);
    }
    /* The first one is overwritten: it warmed up. */
    for (int i = -1; status == IRIS_OK && i < iterations; i++) {
        status = time_one(iris, timing, &times[i < 0 ? 0 : i]);
    }
    if (status == IRIS_OK) {
        *seconds_p = example_median(times, iterations);
    }
    free(times);
    return status;
}

iris_status_t example_time(iris_t *iris, const struct example_options *options,
                           const struct iris_kernel *kernel, const void *args,
                           size_t args_bytes, double *seconds_p)
{
    struct timing timing = {options, kernel, args, args_bytes, 0, NULL};

    return time_all(iris, &timing, seconds_p);
}

iris_status_t example_time_together(iris_t *iris,
                                    const struct example_options *options,
                                    const struct iris_kernel *kernel,
                                    const void *args, size_t args_bytes,
                                    uint64_t *launch, double *seconds_p)
{
    struct timing timing = {options, kernel, args, args_bytes, 1, launch};

    return time_all(iris, &timing, seconds_p);
}

int example_sizes(size_t bytes, size_t *sizes)
{
    int count = 1;

    while (count < EXAMPLE_MAX_SIZES && bytes >> (4 * count) >= 4) {
        count++;
    }
    for (int i = 0; i < count; i++) {
        sizes[i] = bytes >> (4 * (count - 1 - i)) & ~(size_t)3;
    }
    return count;
}
