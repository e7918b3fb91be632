/* SPDX-License-Identifier: MIT
 *
 * iris-probe: tests on this machine the operations that kernels of two ranks
 * need. It tests every pair of ranks in turn, and prints one line per check.
 * scripts/gpu-test uses it.
 */
#include "config.h"

#include "probe.h"
#include "base/clock.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A check that has hung this often is left out from then on, because each one
 * takes until the deadline. */
#define MOST_HUNG 3

static const char *const verdicts[] = {"ok", "no access", "wrong", "failed",
                                       "hung"};

static void usage(FILE *file)
{
    fprintf(file,
            "usage: iris-probe [option]...\n"
            "Checks what each pair of ranks needs of each other. Prints, with\n"
            "tabs between them: check, the two ranks (or \"all\" and \"-\"),\n"
            "verdict, milliseconds, text; and before each a line of \"begin\"\n"
            "and the number of the step. For scripts/gpu-test probe.\n\n"
            "  --ranks N   ranks (default 2)\n"
            "  --bytes N   of a large copy (default 64 MiB)\n"
            "  --rounds N  of flags and data (default 100)\n"
            "  --from N    the first step (default 0)\n"
            "  --help      this text\n\n"
            "Exit status: 0 if all steps came to their end; 1; 2 for a bad "
            "option.\n");
}

static bool parse_number(const char *text, int64_t least, int64_t most,
                         int64_t *number_p)
{
    char *end;
    long long number = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || number < least || number > most) {
        fprintf(stderr,
                "iris-probe: \"%s\": wants a number from %lld to "
                "%lld; see iris-probe --help\n",
                text, (long long)least, (long long)most);
        return false;
    }
    *number_p = number;
    return true;
}

/* Returns false if the program must end with *code_p. */
static bool parse(int argc, char **argv, struct probe_options *options_p,
                  int *code_p)
{
    static const struct option names[] = {
        {"ranks", required_argument, NULL, 'n'},
        {"bytes", required_argument, NULL, 'b'},
        {"rounds", required_argument, NULL, 'r'},
        {"from", required_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    int64_t number;
    bool good = true;

    while (good && (option = getopt_long(argc, argv, "h", names, NULL)) != -1) {
        switch (option) {
        case 'n':
            good = parse_number(optarg, 2, PROBE_MOST_RANKS, &number);
            options_p->num_ranks = good ? (int)number : 0;
            break;
        case 'b':
            good = parse_number(optarg, 8, (int64_t)1 << 40, &options_p->bytes);
            break;
        case 'r':
            good = parse_number(optarg, 1, 1000000, &options_p->rounds);
            break;
        case 'f':
            good = parse_number(optarg, 0, 1000000, &options_p->from);
            break;
        case 'h':
            usage(stdout);
            *code_p = 0;
            return false;
        default:
            good = false;
        }
    }
    if (!good || optind < argc) {
        usage(stderr);
        *code_p = 2;
        return false;
    }
    return true;
}

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
    struct probe_found *found = &probe->found[probe->args.rank];
    iris_status_t status = IRIS_OK;

    if (phase != NULL && is_member(probe) && found->verdict == PROBE_OK) {
        status = judge(probe, phase(probe, found), found);
    }
    return status == IRIS_OK ? iris_barrier(probe->iris, NULL, NULL) : status;
}

/* The worst finding of the members, or a note. */
static const struct probe_found *worst_of(const struct probe *probe)
{
    const struct probe_found *worst = &probe->found[probe->first];

    for (int rank = 0; rank < probe->args.num_ranks; rank++) {
        const struct probe_found *one = &probe->found[rank];

        if (one->verdict > worst->verdict) {
            worst = one;
        }
    }
    return worst;
}

static void print_pair(const struct probe *probe)
{
    if (probe->second < 0) {
        printf("all\t-\t");
    } else {
        printf("%d\t%d\t", probe->first, probe->second);
    }
}

/* Prints the text as one line, even if it contains line breaks. */
static void print_result(const struct probe *probe,
                         const struct probe_check *check, double ms)
{
    const struct probe_found *worst = worst_of(probe);

    printf("%s\t", check->name);
    print_pair(probe);
    printf("%s\t%.3g\t", verdicts[worst->verdict], ms);
    for (const char *c = worst->text; *c != '\0'; c++) {
        putchar((unsigned char)*c < ' ' ? ' ' : *c);
    }
    putchar('\n');
    fflush(stdout);
}

static iris_status_t do_step(struct probe *probe,
                             const struct probe_check *check, int64_t step,
                             bool *hung_p)
{
    struct probe_found *found = &probe->found[probe->args.rank];
    bool first_rank = probe->args.rank == 0;
    int64_t start = iris_i_now_ns();
    iris_status_t status;

    if (first_rank) {
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
    if (probe->args.rank == 0) {
        printf("%s\t%d\t%d\tleft out\t0\tit has hung %d times\n", check->name,
               probe->first, probe->second, MOST_HUNG);
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
static int run(struct probe *probe)
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
        printf("end\n");
        return 0;
    }
    fflush(stdout);
    fprintf(stderr, "iris-probe: %s: %s\n", iris_status_string(status),
            iris_last_error());
    return 1;
}

int main(int argc, char **argv)
{
    struct probe probe = {
        .options = {.num_ranks = 2, .bytes = 64 << 20, .rounds = 100}};
    const size_t bytes = PROBE_MOST_RANKS * sizeof *probe.found;
    int code = 1;

    if (!parse(argc, argv, &probe.options, &code)) {
        return code;
    }
    probe.found = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (probe.found == MAP_FAILED) {
        perror("iris-probe: no memory");
        return 1;
    }
    probe.args.salt = (uint64_t)iris_i_now_ns() / 1000 << 16;
    code = run(&probe);
    munmap(probe.found, bytes);
    return code;
}
