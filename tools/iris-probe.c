/* SPDX-License-Identifier: MIT
 *
 * iris probe: tests on this machine the operations that kernels of two ranks
 * need. It tests every pair of ranks in turn, and prints one line per check.
 * scripts/gpu-test uses it.
 */
#include "config.h"

#include "iris.h"
#include "probe.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A check that has hung this often is left out from then on, because each one
 * takes until the deadline. */
#define MOST_HUNG 3

static const char *const verdicts[] = {"ok", "no access", "wrong", "failed",
                                       "hung"};

/* ---- A step ---- */

/* Judges the failure of a call. The rank can go on, unless the status says that
 * it cannot. */
static iris_status_t judge(struct probe *probe, iris_status_t status,
                           struct probe_found *found_p)
{
    if (status == IRIS_OK || status == IRIS_ERR_PEER_LOST) {
        return status;
    }
    found_p->verdict = status == IRIS_ERR_TIMEOUT ? PROBE_HUNG : PROBE_FAILED;
    snprintf(found_p->text, sizeof found_p->text, "%s: %.450s",
             iris_status_string(status), iris_last_error());
    return iris_clear_error(probe->iris);
}

static bool is_member(const struct probe *probe)
{
    return probe->args.members >> probe->args.rank & 1;
}

/* Prepares a new board for the kernels, with every rank's address. */
static iris_status_t prepare(struct probe *probe)
{
    struct probe_board *board = calloc(1, sizeof *board);
    struct probe_args *args = &probe->args;
    const int64_t *bases = iris_heap_bases(probe->iris);
    int64_t offset = (int64_t)(uintptr_t)args->board - bases[args->rank];
    iris_status_t status;

    if (board == NULL) {
        return IRIS_ERR_NO_MEMORY;
    }
    board->id = args->salt + (uint64_t)args->rank;
    for (int rank = 0; rank < args->num_ranks; rank++) {
        board->bases[rank] =
            bases[rank] == 0 ? 0 : (uint64_t)(bases[rank] + offset);
    }
    status = iris_memcpy_sync(probe->iris, args->board, board, sizeof *board);
    free(board);
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* Runs one phase of a step on a rank, and then waits for all ranks. */
static iris_status_t do_phase(struct probe *probe,
                              iris_status_t (*phase)(struct probe *,
                                                     struct probe_found *))
{
    struct probe_found *found = &probe->shared->found[probe->args.rank];
    iris_status_t status = IRIS_OK;

    if (phase != NULL && is_member(probe) && found->verdict == PROBE_OK) {
        status = judge(probe, phase(probe, found), found);
    }
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* The worst finding of the members, or a note. */
static const struct probe_found *worst_of(const struct probe *probe)
{
    const struct probe_found *worst = &probe->shared->found[probe->first];

    for (int rank = 0; rank < probe->args.num_ranks; rank++) {
        const struct probe_found *one = &probe->shared->found[rank];

        if (one->verdict > worst->verdict) {
            worst = one;
        }
    }
    return worst;
}

static void print_pair(const struct probe *probe)
{
    char first[16] = "all", second[16] = "-";

    if (probe->second >= 0) {
        snprintf(first, sizeof first, "%d", probe->first);
        snprintf(second, sizeof second, "%d", probe->second);
    }
    printf(probe->options.tabs ? "%s\t%s\t" : "%4s %-4s", first, second);
}

/* Prints a line for the check; the text is one line, even if it contains line
 * breaks. */
static void print_verdict(const struct probe *probe, const char *name,
                          const char *verdict, double ms, const char *text)
{
    bool tabs = probe->options.tabs;

    printf(tabs ? "%s\t" : "%-10s", name);
    print_pair(probe);
    printf(tabs ? "%s\t%.3g\t" : "%-10s%8.3g ms  ", verdict, ms);
    for (const char *c = text; *c != '\0'; c++) {
        putchar((unsigned char)*c < ' ' ? ' ' : *c);
    }
    putchar('\n');
    fflush(stdout);
}

static void print_result(const struct probe *probe,
                         const struct probe_check *check, double ms)
{
    const struct probe_found *worst = worst_of(probe);

    probe->shared->num_bad += worst->verdict != PROBE_OK;
    print_verdict(probe, check->name, verdicts[worst->verdict], ms,
                  worst->text);
}

static iris_status_t do_step(struct probe *probe,
                             const struct probe_check *check, int64_t step,
                             bool *hung_p)
{
    struct probe_found *found = &probe->shared->found[probe->args.rank];
    bool first_rank = probe->args.rank == 0;
    int64_t start = iris_i_now_ns();
    iris_status_t status;

    if (first_rank && probe->options.tabs) {
        printf("begin\t%lld\t%s\t", (long long)step, check->name);
        print_pair(probe);
        putchar('\n');
        fflush(stdout);
    }
    memset(found, 0, sizeof *found);
    if (is_member(probe) && probe->second >= 0 &&
        !iris_is_reachable(probe->iris, probe->args.peer)) {
        found->verdict = PROBE_UNREACHABLE;
    }
    status = prepare(probe);
    status = status == IRIS_OK ? do_phase(probe, check->run) : status;
    status = status == IRIS_OK ? do_phase(probe, check->verify) : status;
    *hung_p = worst_of(probe)->verdict == PROBE_HUNG;
    if (status == IRIS_OK && first_rank) {
        print_result(probe, check, (double)(iris_i_now_ns() - start) / 1e6);
    }
    /* Nobody begins the next step before this one is printed. */
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* ---- All steps ---- */

/* Chooses the ranks of a step, and sets the kernels' arguments for them. */
static void choose(struct probe *probe, int first, int second)
{
    struct probe_args *args = &probe->args;

    probe->first = first;
    probe->second = second;
    args->peer = args->rank == first && second >= 0 ? second : first;
    args->members = second < 0 ? 0 : 1ull << first | 1ull << second;
    for (int rank = 0; rank < args->num_ranks && second < 0; rank++) {
        args->members |= (uint64_t)iris_is_reachable(probe->iris, rank) << rank;
    }
    args->rounds = (uint64_t)probe->options.rounds;
    args->salt += 16;
}

static void print_left_out(const struct probe *probe,
                           const struct probe_check *check)
{
    char text[64];

    if (probe->args.rank == 0) {
        snprintf(text, sizeof text, "it has hung %d times", MOST_HUNG);
        print_verdict(probe, check->name, "left out", 0, text);
        probe->shared->num_bad++;
    }
}

/* Every pair in turn. */
static iris_status_t do_check(struct probe *probe,
                              const struct probe_check *check, int64_t *step)
{
    int num_ranks = probe->args.num_ranks, num_hung = 0;
    iris_status_t status = IRIS_OK;

    for (int first = 0; first < num_ranks; first++) {
        for (int second = first + 1; second < num_ranks && status == IRIS_OK;
             second++) {
            bool hung = false;

            choose(probe, first, second);
            if (num_hung == MOST_HUNG) {
                print_left_out(probe, check);
            } else if (*step >= probe->options.from) {
                status = do_step(probe, check, *step, &hung);
            }
            num_hung += hung;
            (*step)++;
        }
    }
    return status;
}

/* All ranks at once. */
static iris_status_t do_all(struct probe *probe,
                            const struct probe_check *check, int64_t *step)
{
    bool hung;

    if ((probe->args.num_ranks == 2 && check->members == PROBE_OF_MORE) ||
        (*step)++ < probe->options.from) {
        return IRIS_OK;
    }
    choose(probe, 0, -1);
    return do_step(probe, check, *step - 1, &hung);
}

static int rank_main(iris_t *iris, void *arg)
{
    struct probe *template = arg;
    struct probe probe = *template;
    struct probe_args *args = &probe.args;
    iris_status_t status;
    int64_t step = 0;

    probe.iris = iris;
    args->context = iris_device_context(iris);
    args->rank = iris_rank(iris);
    args->num_ranks = iris_num_ranks(iris);
    args->bytes = (uint64_t)probe.options.bytes;
    if ((status = iris_stream_create(iris, &probe.stream)) != IRIS_OK ||
        (status = iris_calloc_typed(iris, 1, &args->board)) != IRIS_OK ||
        (status = iris_malloc(iris, args->bytes, (void **)&args->out)) !=
            IRIS_OK ||
        (status = iris_malloc(iris, args->bytes, (void **)&args->in)) !=
            IRIS_OK) {
        return (int)status;
    }
    if (args->rank == 0 && !probe.options.tabs) {
        printf("%d ranks on %s\n", args->num_ranks, iris_backend_name(iris));
    }
    for (const struct probe_check *check = probe_checks;
         check->name != NULL && status == IRIS_OK; check++) {
        status = check->members == PROBE_OF_PAIRS
                     ? do_check(&probe, check, &step)
                     : do_all(&probe, check, &step);
    }
    iris_stream_destroy(iris, probe.stream);
    return (int)status;
}

/* The defaults of this program are few messages, and no files in the working
 * folder. */
static int run_ranks(struct probe *probe)
{
    struct iris_config config;
    iris_status_t status;

    iris_config_init(&config);
    config.heap_bytes = 2 * probe->options.bytes + (64 << 20);
    config.heap_bases_files = 0;
    if (getenv("IRIS_LOG_LEVEL") == NULL) {
        config.log_level = "warning";
    }
    status = iris_spawn(&config, probe->options.num_ranks, rank_main, probe);
    if (status == IRIS_OK) {
        if (probe->options.tabs) {
            printf("end\n");
        }
        return TOOL_OK;
    }
    fflush(stdout);
    fprintf(stderr, "iris probe: %s: %s\n", iris_status_string(status),
            iris_last_error());
    return TOOL_FAILED;
}

static error_t parse_probe(int key, char *arg, struct argp_state *state)
{
    struct probe_options *options = state->input;

    switch (key) {
    case 'n':
        options->num_ranks =
            (int)tool_number(state, "ranks", arg, 2, PROBE_MOST_RANKS);
        return 0;
    case 'b':
        options->bytes =
            tool_number(state, "bytes", arg, 1 << 20, (int64_t)1 << 40);
        return 0;
    case 'r':
        options->rounds = tool_number(state, "rounds", arg, 1, 1000000);
        return 0;
    case 'f':
        options->from = tool_number(state, "from", arg, 0, 1000000);
        return 0;
    case 't':
        options->tabs = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_probe(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"ranks", 'n', "N", 0, "Ranks (default: 2)", 0},
        {"bytes", 'b', "N", 0,
         "Bytes of a large copy, at least 1 MiB (default: 64 MiB)", 0},
        {"rounds", 'r', "N", 0, "Rounds of flags and data (default: 100)", 0},
        {"from", 'f', "N", 0, "The first step (default: 0)", 0},
        {"tabs", 't', NULL, 0,
         "Separate the columns by tabs, and print before each step a line with "
         "\"begin\" and its number",
         0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_probe,
        .doc = "Checks on this machine the operations that each pair of ranks "
               "needs, and the library's collectives. Prints a line for each "
               "check: its name, the two ranks (or all), the verdict, "
               "milliseconds, and the reason or a rate. \"scripts/gpu-test "
               "probe\" runs it with each kind of ranks and memory.\v"
               "Exit status: 0 if all checks are ok, 1 if one is not or a call "
               "failed, 2 for a wrong command line.",
    };
    struct probe probe = {
        .options = {.num_ranks = 2, .bytes = 64 << 20, .rounds = 100}};
    int status;

    tool_parse(&argp, argc, argv, &probe.options);
    probe.shared = mmap(NULL, sizeof *probe.shared, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (probe.shared == MAP_FAILED) {
        perror("iris probe");
        return TOOL_FAILED;
    }
    probe.args.salt = (uint64_t)iris_i_now_ns() / 1000 << 16;
    status = run_ranks(&probe);
    if (status == TOOL_OK && probe.shared->num_bad != 0) {
        status = TOOL_FAILED;
    }
    munmap(probe.shared, sizeof *probe.shared);
    return status;
}
