/* SPDX-License-Identifier: MIT
 *
 * iris-info --explain: prints how the library executes a fused operation. The
 * ranks enqueue the call and never run it, so the output shows the library's
 * own decisions.
 */
#include "config.h"

#include "info.h"
#include "info_explain.h"
#include "info_times.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ccl/ccl_check.h"
#include "ccl/ccl_workspace.h"
#include "ccl/choose.h"
#include "ops/blas.h"
#include "ops/ops_check.h"

#define MAX_SIDE (1 << 20)
#define MAX_RANKS 64
#define OTHER_BYTES ((size_t)256 << 20) /* of the heap: workspaces */

static const struct explain_operation operations[] = {
#define OPERATION(name, shares_a, shares_out)                            \
    {                                                                    \
#name, shares_a, shares_out, iris_##name, iris_##name##_preamble \
    }
    OPERATION(matmul_all_reduce, 0, 0),
    OPERATION(all_gather_matmul, 1, 0),
    OPERATION(matmul_all_gather, 1, 0),
    OPERATION(matmul_reduce_scatter, 0, 1),
#undef OPERATION
};
#define NUM_OPERATIONS (sizeof operations / sizeof operations[0])

static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                      IRIS_DTYPE_BF16};

/* ---- Output ---- */

static void print_way(const struct explain_steps *steps)
{
    size_t streams = 0;

    for (size_t i = 0; i < steps->count; i++) {
        size_t before = 0;

        while (steps->events[before].stream != steps->events[i].stream) {
            before++;
        }
        streams += before == i;
    }
    if (streams <= 1) {
        printf("  way         the steps below in order, on one stream: nothing "
               "overlaps\n");
    } else {
        printf("  way         the steps below on %zu streams\n", streams);
    }
}

/* The library, or the reason why no library is used. */
static iris_status_t print_library(iris_t *iris)
{
    const struct iris_blas *blas = NULL;
    void *state = NULL;
    char text[IRIS_BLAS_WHY_BYTES];
    iris_status_t status = iris_i_ops_blas(iris, &blas, &state);

    if (status != IRIS_OK) {
        return status;
    }
    if (blas != NULL) {
        blas->describe(state, text);
        printf("  library     %s: %s\n", blas->name, text);
    } else {
        printf("  library     none: Iris's own loop, %s\n",
               strcmp(iris_i_settings(iris)->blas.text, "none") == 0
                   ? "as IRIS_BLAS=none asks for"
                   : "as no library can be loaded; IRIS_LOG_LEVEL=info says "
                     "why");
    }
    return IRIS_OK;
}

/* The collective of an event. */
static enum iris_ccl_op op_of(const struct iris_host_event *event)
{
    int op = 0;

    while (strcmp(iris_i_ccl_kinds[op].name, event->kernel) != 0) {
        op++; /* it is one of them */
    }
    return (enum iris_ccl_op)op;
}

/* The same, with the variant that the library chooses. */
static iris_status_t choose(iris_t *iris, const struct explain_request *request,
                            const struct iris_host_event *event,
                            struct iris_ccl_call *call_p)
{
    struct iris_ccl_options options;
    iris_status_t status;

    iris_ccl_options_init(&options);
    *call_p = (struct iris_ccl_call){.name = event->kernel,
                                     .op = op_of(event),
                                     .in = event->source,
                                     .out = (void *)event->address,
                                     .count = event->count,
                                     .dtype = request->dtype,
                                     .reduce = IRIS_REDUCE_SUM};
    status = iris_i_ccl_take_options(iris, call_p, &options);
    if (status == IRIS_OK) {
        status = iris_i_ccl_check(iris, call_p);
    }
    if (status == IRIS_OK) {
        status = iris_i_ccl_known_workspace(iris, call_p);
    }
    return status == IRIS_OK ? iris_i_ccl_choose(iris, call_p) : status;
}

static void print_why(iris_t *iris, const struct iris_ccl_call *call)
{
    const struct iris_settings *settings = iris_i_settings(iris);
    const char *const asked[IRIS_CCL_NUM_OPS] = {
        settings->all_reduce.text, settings->all_gather.text,
        settings->reduce_scatter.text, settings->all_to_all.text,
        settings->ccl_broadcast.text};
    const char *tuning = settings->ccl_tuning.text;

    if (strcmp(asked[call->op], "auto") != 0) {
        printf("              %s is what the environment asks for\n",
               asked[call->op]);
    } else {
        printf("              chosen for %zu bytes of each of %d members on a "
               "%s%s%s\n",
               call->bytes, iris_i_num_ranks(iris),
               iris_i_device(iris)->wavefront > 1 ? "GPU" : "CPU",
               tuning[0] == '\0' ? "" : ", rules of IRIS_CCL_TUNING first: ",
               tuning);
    }
}

static iris_status_t print_collective(iris_t *iris,
                                      const struct explain_request *request,
                                      const struct iris_host_event *event,
                                      unsigned workgroups)
{
    struct iris_ccl_call call;
    iris_status_t status;

    if (iris_i_ccl_kinds[op_of(event)].pairs) {
        printf("  collective  %s of %zu %s, messages, %u workgroup%s\n"
               "              the ranks do not divide M: each sends its own "
               "rows\n",
               event->kernel, event->count, event->type, workgroups,
               workgroups == 1 ? "" : "s");
        return IRIS_OK;
    }
    status = choose(iris, request, event, &call);
    if (status == IRIS_OK) {
        printf("  collective  %s of %zu %s, variant %s, %u workgroup%s\n",
               event->kernel, event->count, event->type,
               iris_ccl_variant_name(call.variant), workgroups,
               workgroups == 1 ? "" : "s");
        print_why(iris, &call);
    }
    return status;
}

/* Prints one line for launches and copies that are alike and follow each other. */
static size_t print_alike(const struct explain_request *request,
                          const struct iris_host_event *events, size_t count)
{
    const struct iris_host_event *first = &events[0];
    size_t alike = 1;

    if (first->op == IRIS_HOST_COPY) {
        while (alike < count && events[alike].op == IRIS_HOST_COPY) {
            alike++;
        }
        printf("  copies      %zu, of %zu bytes%s\n", alike, first->bytes,
               alike > 1 ? " and so on" : "");
        return alike;
    }
    while (alike < count && events[alike].op == IRIS_HOST_LAUNCH &&
           strcmp(events[alike].kernel, first->kernel) == 0) {
        alike++;
    }
    printf("  kernel      %s, %u workgroup%s", first->kernel, first->grid,
           first->grid == 1 ? "" : "s");
    if (alike > 1) {
        printf(", %zu times, each for some of the rows%s", alike,
               request->m % request->ranks != 0
                   ? ":\n              the ranks do not divide M"
                   : "");
    }
    printf("\n");
    return alike;
}

static iris_status_t print_steps(iris_t *iris,
                                 const struct explain_request *request,
                                 const struct explain_steps *steps)
{
    iris_status_t status = IRIS_OK;

    for (size_t i = 0; i < steps->count && status == IRIS_OK;) {
        const struct iris_host_event *event = &steps->events[i];

        if (event->op != IRIS_HOST_COLLECTIVE) {
            i += print_alike(request, event, steps->count - i);
            continue;
        }
        /* Its kernel is the next launch. */
        i++;
        status = print_collective(iris, request, event,
                                  i < steps->count ? steps->events[i].grid : 0);
        i++;
    }
    return status;
}

static iris_status_t print(iris_t *iris, const struct explain_request *request,
                           const iris_tensor_t *tensors,
                           const struct explain_steps *steps)
{
    struct iris_ops_call call = {
        .name = request->operation->name,
        .op = (enum iris_ops_op)(request->operation - operations),
        .a = &tensors[0],
        .b = &tensors[1],
        .out = &tensors[2]};
    iris_status_t status = iris_i_ops_check(iris, &call, NULL);

    if (status != IRIS_OK) {
        return status;
    }
    printf("iris_%s: M %lld, N %lld, K %lld, %s; %d rank%s on %s\n",
           request->operation->name, (long long)request->m,
           (long long)request->n, (long long)request->k,
           iris_dtype_name(request->dtype), iris_num_ranks(iris),
           request->ranks == 1 ? "" : "s", iris_backend_name(iris));
    info_print_times(iris, &call);
    print_way(steps);
    status = print_library(iris);
    if (status == IRIS_OK) {
        status = print_steps(iris, request, steps);
    }
    printf("  workspace   %zu bytes%s\n", call.workspace,
           call.workspace != 0   ? ""
           : request->ranks == 1 ? ": one rank has no collective"
                                 : ": the collective works in out");
    return status;
}

static int explain_rank(iris_t *iris, void *arg)
{
    const struct explain_request *request = arg;
    struct explain_steps *steps = calloc(1, sizeof *steps);
    iris_tensor_t tensors[3];
    struct iris_ops_options options;
    char file[128];
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    snprintf(file, sizeof file, "%s_rank_%d_heap_bases.json", request->prefix,
             iris_rank(iris));
    unlink(file);
    iris_ops_options_init(&options);
    if (steps != NULL) {
        status = info_explain_prepare(iris, request, tensors, &options);
    }
    if (status == IRIS_OK) {
        status = info_explain_steps(iris, request, tensors, &options, steps);
    }
    if (status == IRIS_OK && iris_rank(iris) == 0) {
        status = print(iris, request, tensors, steps);
        fflush(stdout);
    }
    free(steps);
    return (int)status;
}

/* ---- Arguments ---- */

static int complain(const char *what, const char *value, const char *wants)
{
    fprintf(stderr, "iris-info: %s \"%s\": wants %s; see iris-info --help\n",
            what, value, wants);
    return 2;
}

static int parse_number(const char *what, const char *value, int64_t most,
                        int64_t *number_p)
{
    char wants[64], *end;
    long long number = strtoll(value, &end, 10);

    if (end != value && *end == '\0' && number >= 1 && number <= most) {
        *number_p = number;
        return 0;
    }
    snprintf(wants, sizeof wants, "a whole number from 1 to %lld",
             (long long)most);
    return complain(what, value, wants);
}

static int parse_operation(const char *value, struct explain_request *request)
{
    char wants[128] = "";

    for (size_t i = 0; i < NUM_OPERATIONS; i++) {
        if (strcmp(operations[i].name, value) == 0) {
            request->operation = &operations[i];
            return 0;
        }
        strcat(strcat(wants, i == 0 ? "" : " or "), operations[i].name);
    }
    return complain("--explain", value, wants);
}

static int parse_dtype(const char *value, struct explain_request *request)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        if (strcmp(iris_dtype_name(dtypes[i]), value) == 0) {
            request->dtype = dtypes[i];
            return 0;
        }
    }
    return complain("--dtype", value, "f32, f16 or bf16");
}

/* Parses the arguments behind --explain OPERATION. */
static int parse(int argc, char **argv, struct explain_request *request)
{
    static const struct option options[] = {
        {"ranks", required_argument, NULL, 'r'},
        {"dtype", required_argument, NULL, 'd'},
        {NULL, 0, NULL, 0},
    };
    int64_t *const sides[] = {&request->m, &request->n, &request->k};
    static const char *const names[] = {"M", "N", "K"};
    int option, ret = 0;

    while (ret == 0 &&
           (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        ret = option == 'r'
                  ? parse_number("--ranks", optarg, MAX_RANKS, &request->ranks)
              : option == 'd' ? parse_dtype(optarg, request)
                              : 2; /* getopt has said why */
    }
    if (ret == 0 && argc - optind != 3) {
        return complain("--explain", request->operation->name,
                        "three sizes after it: M N K");
    }
    for (int i = 0; i < 3 && ret == 0; i++) {
        ret = parse_number(names[i], argv[optind + i], MAX_SIDE, sides[i]);
    }
    return ret;
}

/* Room for the matrices, a workspace for any operation, and some more. */
static int64_t heap_bytes(const struct explain_request *request)
{
    int64_t rows = request->m + request->ranks;
    int64_t wide = request->n > request->k ? request->n : request->k;

    return (3 * rows * wide + request->k * request->n) *
               (int64_t)iris_dtype_size(request->dtype) +
           (int64_t)OTHER_BYTES;
}

int info_explain(const char *operation, int argc, char **argv)
{
    struct explain_request request = {.ranks = 2, .dtype = IRIS_DTYPE_F32};
    struct iris_config config;
    iris_status_t status;
    int ret = parse_operation(operation, &request);

    ret = ret == 0 ? parse(argc, argv, &request) : ret;
    if (ret != 0) {
        return ret;
    }
    snprintf(request.prefix, sizeof request.prefix, "/tmp/iris-info-%ld",
             (long)getpid());
    iris_config_init(&config);
    config.heap_bytes = heap_bytes(&request);
    if (getenv("IRIS_LOG_LEVEL") == NULL) {
        config.log_level = "off"; /* the stream is stopped on purpose */
    }
    config.heap_bases_prefix = request.prefix;
    status = iris_spawn(&config, (int)request.ranks, explain_rank, &request);
    if (status != IRIS_OK) {
        printf("explain: FAILED: %s: %s\n", iris_status_string(status),
               iris_last_error());
    }
    return status != IRIS_OK;
}
