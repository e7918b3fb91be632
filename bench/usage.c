/* SPDX-License-Identifier: MIT
 *
 * The output of --help and --list.
 */
#include "config.h"

#include "bench.h"

#include <stdio.h>

#define PROGRAM "iris-bench"

static const char help[] =
    "usage: " PROGRAM " [option]...\n"
    "Measures latency and bandwidth of every operation, and checks the values\n"
    "it moves. Runs its ranks itself, as threads (IRIS_SPAWN=processes: as\n"
    "processes), or is started by mpirun, torchrun or IRIS_RANK.\n"
    "\n"
    "  -n, --ranks N           ranks (default: IRIS_NUM_RANKS, else 2)\n"
    "  -g, --workgroups N      workgroups of a kernel (default 1; 0: one for\n"
    "                          each compute unit)\n"
    "  -b, --block N           lanes of a workgroup (default 256)\n"
    "  -s, --sizes MIN:MAX[:FACTOR]\n"
    "                          bytes, powers of two, with K, M or G\n"
    "                          (default 8:16M:2)\n"
    "  -o, --ops LIST          operations or groups, comma-separated\n"
    "                          (default all; --list names them)\n"
    "  -t, --type LIST         types of atomics: u32, u64, f32 or all\n"
    "                          (default u64)\n"
    "  -p, --pairs HOW         ring: each rank with the next; all: each with\n"
    "                          every other; one: rank 0 with rank 1, others\n"
    "                          idle (default ring)\n"
    "      --seconds S         time for a point (default 0.1; with --targets "
    "0.3)\n"
    "      --iterations N      operations of a point, instead of a time\n"
    "      --live N            live allocations for malloc (default 100000)\n"
    "      --init-ranks N      ranks that init starts (default 8)\n"
    "      --init-heap BYTES   heap of each of them (default 1G)\n"
    "  -f, --format FORMAT     table, csv or json (default table)\n"
    "      --output FILE       instead of stdout\n"
    "      --dtypes LIST       of collectives: i8 to u64, f16, bf16, f32, "
    "f64,\n"
    "                          f8e4m3, f8e5m2 or all; of fused operations "
    "those\n"
    "                          of f16, bf16 and f32 (default f32)\n"
    "      --shapes LIST       of fused operations: MxNxK, comma-separated, "
    "of\n"
    "                          the whole product of (M, K) and (K, N)\n"
    "                          (default 1x1024x1024 to 1024x1024x1024)\n"
    "      --variants LIST     of collectives: auto, one_shot and so on, or "
    "all\n"
    "                          (default auto)\n"
    "      --calls LIST        of collectives: graph, eager (enqueued one by\n"
    "                          one), waited (and each waited for) or all\n"
    "                          (default graph, where there are graphs)\n"
    "      --peer              measure NCCL or RCCL beside collectives and "
    "fused\n"
    "                          operations, on a CPU Open MPI (under mpirun),\n"
    "                          with CBLAS for products\n"
    "      --tune FILE         write which variants of collectives are best\n"
    "                          here: for IRIS_CCL_TUNING\n"
    "      --tune-seconds S    that this may take (default 60)\n"
    "      --spread PERCENT    how far apart its repeats may be (default 30)\n"
    "      --targets           measure operations with a target, and compare\n"
    "      --no-graph          on a GPU, enqueue one by one instead of in "
    "graphs\n"
    "      --no-progress       no progress line on the terminal\n"
    "  -l, --list              list operations and groups\n"
    "  -h, --help              this text\n"
    "\n"
    "Exit status: 0, or 1 if a value was wrong or a call failed, or 2 for a\n"
    "bad option. Timings never make it fail.\n";

void bench_print_help(void)
{
    fputs(help, stdout);
}

void bench_print_list(void)
{
    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        printf("%s (%s)\n   ", bench_groups[g]->name, bench_groups[g]->text);
        for (size_t op = 0; bench_groups[g]->ops[op] != NULL; op++) {
            printf(" %s", bench_groups[g]->ops[op]);
        }
        printf("\n");
    }
}
