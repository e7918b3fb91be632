/* SPDX-License-Identifier: MIT
 *
 * The calls of a context: its start and end, its properties, messages, errors.
 */
#include "calls.h"

static int count_waits(void *arg)
{
    ++*(int *)arg;
    return 0; /* go on */
}

static void use_properties(iris_t *iris)
{
    printf("rank %d of %d, node %d of %d\n", iris_rank(iris),
           iris_num_ranks(iris), iris_node(iris), iris_num_nodes(iris));

    printf("backend %s, device %d, %d workgroups at once\n",
           iris_backend_name(iris), iris_device_id(iris), iris_num_cus(iris));

    const int64_t *bases = iris_heap_bases(iris);
    EXPECT(bases[iris_rank(iris)] != 0);

    const int64_t *words = iris_device_context(iris); /* in device memory */
    EXPECT(words != NULL && iris_context_words(iris_num_ranks(iris)) > 0);

    iris_log_set_level(iris, IRIS_LOG_WARNING);
    iris_debug(iris, "not printed");
    iris_info(iris, "not printed");
    iris_warning(iris, "%d of %d values are missing", 0, 8);
    iris_error(iris, "printed with the rank in front");
}

static void use_errors(iris_t *iris)
{
    void *ptr;
    iris_status_t status = iris_malloc(iris, 0, &ptr);

    if (status != IRIS_OK)
        printf("%s (%s): %s\n", iris_status_string(status),
               iris_status_text(status), iris_last_error());

    if (iris_lost_rank(iris) >= 0)
        printf("rank %d is gone\n", iris_lost_rank(iris));

    check(iris_clear_error(iris)); /* nothing has failed: does nothing */
}

/* As after IRIS_ERR_PEER_LOST. Here all ranks are left. */
static void go_on(iris_t *iris)
{
    int former[2];

    if (iris_rank(iris) == 0)
        check(iris_revoke(iris)); /* no rank waits any more */

    check(iris_shrink(iris, former));
    printf("rank %d was rank %d\n", iris_rank(iris), former[iris_rank(iris)]);
}

static int rank_main(iris_t *iris, void *arg)
{
    use_properties(iris);
    use_errors(iris);
    go_on(iris);
    return arg == NULL ? 0 : 1; /* 0: this rank has succeeded */
}

/* A process is one rank of a job that a launcher started, or a job of one. */
static void init_once(void)
{
    struct iris_config config;
    iris_t *iris;
    int waits = 0;

    iris_config_init(&config); /* all fields: from the environment */
    config.heap_bytes = 64 << 20;
    check(iris_config_set(&config, "log_level", "warning"));
    iris_set_wait_check(count_waits, &waits);
    check(iris_init(&config, &iris));
    iris_set_leave_reason(iris, "the example ends"); /* peers would read this */
    check(iris_finalize(iris));
}

static void init_for_garbage_collector(void)
{
    struct iris_config *config =
        (struct iris_config *)malloc(iris_config_size());
    iris_t *iris;

    iris_config_init_sized(config, iris_config_size()); /* for bindings */
    check(iris_init(config, &iris));
    check(iris_finalize_later(iris)); /* does not wait */
    free(config);
}

static void interrupt_waits(void)
{
    iris_t *iris;

    check(iris_init(NULL, &iris));
    iris_interrupt(iris); /* as a handler of SIGINT does: no call waits now */
    (void)iris_finalize(iris); /* does not wait for the peers */
}

int main(void)
{
    printf("Iris %s: heaps are aligned to %zu bytes\n", iris_version(),
           iris_alignment());
    printf("%s has %zu bytes\n", iris_dtype_name(IRIS_DTYPE_BF16),
           iris_dtype_size(IRIS_DTYPE_BF16));

    init_once();
    init_for_garbage_collector();
    interrupt_waits();
    check(iris_spawn(NULL, 2, rank_main, NULL));
    return 0;
}
