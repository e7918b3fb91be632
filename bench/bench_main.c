/* SPDX-License-Identifier: MIT
 *
 * iris bench: measures every operation and checks its values. This file starts
 * the ranks; bench/ has a file for each kind of operation.
 */
#include "config.h"

#include "bench.h"

#include "../tools/iris.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes of the heap besides the buffers: allocations of the heap group. */
#define OTHER_BYTES ((size_t)512 << 20)
#define DEFAULT_HEAP_BYTES ((size_t)1 << 30)

struct job {
    struct bench_options options;
    struct bench_shared *shared;
    const char *prefix; /* prefix of heap-bases files to remove; NULL: they
                         * stay */
};

/* One rank. Wrong values do not end the job, so every rank continues. */
static int rank_main(iris_t *iris, void *arg)
{
    struct job *job = arg;
    struct bench b = {
        .iris = iris,
        .options = job->options,
        .shared = job->shared,
        .rank = iris_rank(iris),
        .num_ranks = iris_num_ranks(iris),
        .workgroups = job->options.workgroups,
        .start_ns = bench_now_ns(),
    };
    iris_status_t status, closed;

    bench_remove_bases(job->prefix, b.rank);
    if (b.workgroups == 0) {
        b.workgroups = (unsigned)iris_num_cus(iris);
    }
    status = bench_report_open(&b);
    if (status != IRIS_OK) {
        return (int)status;
    }
    status = b.options.tune != NULL ? bench_tune(&b)
             : b.options.targets    ? bench_run_targets(&b)
                                    : bench_run(&b);
    closed = bench_report_close(&b);
    return (int)(status != IRIS_OK ? status : closed);
}

static bool needs_init(const struct bench_options *options)
{
    return options->tune == NULL &&
           (options->targets ||
            bench_selected(options->ops, &bench_init, bench_init.ops[0]));
}

/* The defaults of this program: few messages, no files in the working folder,
 * and a heap that is large enough. */
static void configure_job(const struct bench_options *options, char *prefix,
                          size_t prefix_bytes, struct iris_config *config_p)
{
    const char *folder = getenv("TMPDIR");
    size_t slots = options->pairs == BENCH_ALL ? 16 : 2;
    size_t need;

    if (slots < (size_t)options->num_ranks && options->pairs == BENCH_ALL) {
        slots = (size_t)options->num_ranks;
    }
    need = options->max_bytes * (slots + 1);
    if (need < bench_fused_bytes(options)) {
        need = bench_fused_bytes(options);
    }
    need += OTHER_BYTES;
    iris_config_init(config_p);
    if (getenv("IRIS_LOG_LEVEL") == NULL) {
        config_p->log_level = "warning";
    }
    if (getenv("IRIS_HEAP_SIZE") == NULL) {
        config_p->heap_bytes =
            (int64_t)(need > DEFAULT_HEAP_BYTES ? need : DEFAULT_HEAP_BYTES);
    }
    if (getenv("IRIS_HEAP_BASES_PREFIX") == NULL) {
        snprintf(prefix, prefix_bytes, "%s/iris-bench-%ld",
                 folder == NULL ? "/tmp" : folder, (long)getpid());
        config_p->heap_bases_prefix = prefix;
    }
    /* An argument overrides the environment, but not a launcher. */
    if (getenv("IRIS_NUM_RANKS") == NULL && getenv("IRIS_RANK") == NULL) {
        config_p->num_ranks = 2;
    }
}

static int run_job(struct job *job)
{
    struct iris_config config;
    char prefix[2048];
    iris_status_t status = IRIS_OK;

    configure_job(&job->options, prefix, sizeof prefix, &config);
    job->prefix = config.heap_bases_prefix;
    if (needs_init(&job->options)) {
        status = bench_measure_init(&config, &job->options, job->shared);
    }
    if (status == IRIS_OK) {
        status = iris_spawn(&config, job->options.num_ranks, rank_main, job);
    }
    if (status != IRIS_OK) {
        fprintf(stderr, "iris bench: %s: %s\n", iris_status_string(status),
                iris_last_error()[0] != '\0' ? iris_last_error()
                                             : iris_status_text(status));
        return 1;
    }
    if (job->shared->wrong != 0) {
        fprintf(stderr, "iris bench: %llu values were wrong\n",
                (unsigned long long)job->shared->wrong);
        return 1;
    }
    return 0;
}

int tool_bench(int argc, char **argv)
{
    struct job job;
    int code;

    memset(&job, 0, sizeof job);
    bench_options_parse(argc, argv, &job.options);
    job.shared = mmap(NULL, sizeof *job.shared, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (job.shared == MAP_FAILED) {
        perror("iris bench: no memory");
        return 1;
    }
    code = run_job(&job);
    munmap(job.shared, sizeof *job.shared);
    return code;
}
