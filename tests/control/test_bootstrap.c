/* SPDX-License-Identifier: MIT
 *
 * Who am I, how many are we: what each launcher's variables mean, and which
 * goes first.
 */
#include "config.h"

#include "control/control.h"

#include "support/harness.h"
#include "base/base.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The resolver, of which "laptop" has two addresses and "cable" has one. Systems
 * list link-local addresses first, with the number of the interface. */
int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *hints, struct addrinfo **all)
{
    int (*resolve)(const char *, const char *, const struct addrinfo *,
                   struct addrinfo **);
    struct addrinfo *more = NULL;
    struct sockaddr_in6 *first;
    int ret;

    *(void **)&resolve = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(host, "laptop") != 0 && strcmp(host, "cable") != 0) {
        return resolve(host, port, hints, all);
    }
    ret = resolve("fe80::1", port, hints, all);
    if (ret == 0) {
        first = (struct sockaddr_in6 *)(*all)->ai_addr;
        first->sin6_scope_id = 2;
    }
    if (ret == 0 && strcmp(host, "laptop") == 0) {
        ret = resolve("::1", port, hints, &more);
        (*all)->ai_next = more;
    }
    return ret;
}

static const char *const foreign[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_NAMESPACE",
    "PMI_RANK",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_NUM_NODES",
    "SLURM_JOB_ID",
    "SLURM_STEP_ID",
};

static int clear(void **state)
{
#define ROW(field, kind, env, value, choices, help) unsetenv(env);
    IRIS_CONFIG_ROWS(ROW)
#undef ROW
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        unsetenv(foreign[i]);
    }
    return 0;
}

/* Sets name after name to value after value, up to NULL. */
static void set_all(const char *const pairs[][2])
{
    clear(NULL);
    for (size_t i = 0; pairs[i][0] != NULL; i++) {
        setenv(pairs[i][0], pairs[i][1], 1);
    }
}

static iris_status_t find(struct iris_bootstrap *bootstrap_p)
{
    struct iris_settings settings;

    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_OK);
    return iris_i_bootstrap(&settings, bootstrap_p);
}

static struct iris_bootstrap find_ok(void)
{
    struct iris_bootstrap bootstrap = {.rank = -1};
    iris_status_t status = find(&bootstrap);

    if (status != IRIS_OK) {
        print_error("%s\n", iris_last_error());
    }
    assert_int_equal(status, IRIS_OK);
    return bootstrap;
}

static void refuse(iris_status_t expected, const char *first,
                   const char *second)
{
    struct iris_bootstrap bootstrap = {.rank = -5};

    assert_int_equal(find(&bootstrap), expected);
    if (!harness_message_has(first) || !harness_message_has(second)) {
        print_error("%s\n", iris_last_error());
        fail();
    }
    assert_int_equal(bootstrap.rank, -5);
}

static TEST(a_program_by_itself_is_alone)
{
    struct iris_bootstrap one = find_ok(), other = find_ok();

    assert_string_equal(one.how, "alone");
    assert_int_equal(one.rank, 0);
    assert_int_equal(one.num_ranks, 1);
    assert_string_not_equal(one.job, other.job);
}

static TEST(ranks_that_nobody_starts_are_refused)
{
    setenv("IRIS_NUM_RANKS", "3", 1);
    refuse(IRIS_ERR_INVALID, "IRIS_NUM_RANKS=3", "iris run -n 3");
    setenv("IRIS_NUM_RANKS", "1", 1);
    assert_string_equal(find_ok().how, "alone");
}

static TEST(our_own_variables_say_who_we_are)
{
    static const char *const pairs[][2] = {{"IRIS_RANK", "3"},
                                           {"IRIS_NUM_RANKS", "5"},
                                           {"IRIS_JOB_ID", "a job"},
                                           {NULL, NULL}};
    struct iris_bootstrap bootstrap;

    set_all(pairs);
    bootstrap = find_ok();
    assert_string_equal(bootstrap.how, "env");
    assert_int_equal(bootstrap.rank, 3);
    assert_int_equal(bootstrap.num_ranks, 5);
    assert_int_equal(bootstrap.local_rank, 3);
    assert_string_equal(bootstrap.job, "job-a job");
}

static TEST(without_a_job_id_the_parent_is_the_job)
{
    struct iris_bootstrap bootstrap;
    char key[IRIS_KEY_BYTES];

    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "2", 1);
    bootstrap = find_ok();
    snprintf(key, sizeof key, "parent-%ld-", (long)getppid());
    assert_string_equal(bootstrap.job, key);
}

static TEST(torchrun_is_understood)
{
    static const char *const pairs[][2] = {{"RANK", "2"},
                                           {"WORLD_SIZE", "4"},
                                           {"LOCAL_RANK", "1"},
                                           {"TORCHELASTIC_RUN_ID", "run7"},
                                           {"MASTER_PORT", "29500"},
                                           {NULL, NULL}};
    struct iris_bootstrap bootstrap;
    char key[IRIS_KEY_BYTES];

    set_all(pairs);
    bootstrap = find_ok();
    assert_string_equal(bootstrap.how, "env");
    assert_int_equal(bootstrap.rank, 2);
    assert_int_equal(bootstrap.num_ranks, 4);
    assert_int_equal(bootstrap.local_rank, 1);
    assert_string_equal(bootstrap.job, "run-run7-29500");
    /* What torchrun says when it was given no id. */
    setenv("TORCHELASTIC_RUN_ID", "none", 1);
    bootstrap = find_ok();
    snprintf(key, sizeof key, "parent-%ld-29500", (long)getppid());
    assert_string_equal(bootstrap.job, key);
    /* The parents of two hosts differ, and the address does not. */
    setenv("MASTER_ADDR", "node0", 1);
    assert_string_equal(find_ok().job, "master-node0-29500");
    setenv("IRIS_JOB_ID", "mine", 1);
    assert_string_equal(find_ok().job, "job-mine");
}

static TEST(open_mpis_variables_do_without_mpi)
{
    static const char *const pairs[][2] = {
        {"IRIS_BOOTSTRAP", "env"},     {"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"PMIX_NAMESPACE", "12345"},   {NULL, NULL}};
    struct iris_bootstrap bootstrap;

    set_all(pairs);
    bootstrap = find_ok();
    assert_int_equal(bootstrap.rank, 1);
    assert_int_equal(bootstrap.num_ranks, 2);
    assert_int_equal(bootstrap.local_rank, 0);
    assert_string_equal(bootstrap.job, "run-12345");
}

static TEST(our_own_variables_go_before_a_launchers)
{
    static const char *const pairs[][2] = {{"RANK", "2"},
                                           {"WORLD_SIZE", "4"},
                                           {"IRIS_RANK", "0"},
                                           {"IRIS_NUM_RANKS", "3"},
                                           {"OMPI_COMM_WORLD_RANK", "7"},
                                           {"OMPI_COMM_WORLD_SIZE", "8"},
                                           {NULL, NULL}};
    struct iris_bootstrap bootstrap;

    set_all(pairs);
    bootstrap = find_ok();
    assert_int_equal(bootstrap.rank, 0);
    assert_int_equal(bootstrap.num_ranks, 3);
}

static TEST(half_a_launcher_is_none)
{
    setenv("RANK", "2", 1);
    assert_string_equal(find_ok().how, "alone");
    setenv("IRIS_BOOTSTRAP", "env", 1);
    assert_int_equal(find_ok().num_ranks, 1);
}

static TEST(a_rank_out_of_range_names_the_variables)
{
    static const char *const ours[][2] = {
        {"IRIS_RANK", "4"}, {"IRIS_NUM_RANKS", "4"}, {NULL, NULL}};
    static const char *const torchs[][2] = {
        {"RANK", "9"}, {"WORLD_SIZE", "2"}, {NULL, NULL}};

    set_all(ours);
    refuse(IRIS_ERR_BOOTSTRAP, "rank 4 is out of range: the job has 4 ranks",
           "IRIS_RANK and IRIS_NUM_RANKS");
    set_all(torchs);
    refuse(IRIS_ERR_BOOTSTRAP, "rank 9 is out of range: the job has 2 ranks",
           "RANK and WORLD_SIZE");
    unsetenv("RANK");
    setenv("IRIS_RANK", "1", 1); /* of IRIS_NUM_RANKS, 1 */
    refuse(IRIS_ERR_BOOTSTRAP, "rank 1 is out of range", "IRIS_NUM_RANKS");
}

/* "10.1.2.3:4" or "[fd00::1]:4" of a bootstrap's address. */
static const char *text_of(const struct iris_address *address)
{
    static char text[64];
    struct sockaddr_in6 in6;
    struct sockaddr_in in;
    char host[INET6_ADDRSTRLEN];

    if (address->bytes == sizeof in6) {
        memcpy(&in6, address->data, sizeof in6);
        inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
        snprintf(text, sizeof text, "[%s]:%d", host, ntohs(in6.sin6_port));
        return text;
    }
    assert_int_equal(address->bytes, sizeof in);
    memcpy(&in, address->data, sizeof in);
    inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
    snprintf(text, sizeof text, "%s:%d", host, ntohs(in.sin_port));
    return text;
}

static TEST(ranks_on_several_hosts_need_rank_0s_address)
{
    static const char *const torchs[][2] = {{"RANK", "9"},
                                            {"WORLD_SIZE", "16"},
                                            {"LOCAL_RANK", "1"},
                                            {"LOCAL_WORLD_SIZE", "8"},
                                            {NULL, NULL}};
    struct iris_bootstrap bootstrap;

    set_all(torchs);
    refuse(IRIS_ERR_BOOTSTRAP, "torchrun has started ranks on several hosts",
           "set IRIS_ROOT to rank 0's host and a free port");
    setenv("IRIS_ROOT", "127.0.0.1:4000", 1);
    bootstrap = find_ok();
    assert_string_equal(text_of(&bootstrap.root), "127.0.0.1:4000");
    unsetenv("IRIS_ROOT");
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "5000", 1);
    bootstrap = find_ok();
    assert_string_equal(text_of(&bootstrap.root), "127.0.0.1:5001");
    setenv("LOCAL_WORLD_SIZE", "16", 1);
    assert_int_equal(find_ok().num_ranks, 16);
    assert_int_equal(find_ok().root.bytes, 0);
}

static TEST(steps_of_slurm_are_understood)
{
    static const char *const steps[][2] = {{"SLURM_PROCID", "5"},
                                           {"SLURM_STEP_NUM_TASKS", "8"},
                                           {"SLURM_LOCALID", "1"},
                                           {"SLURM_JOB_ID", "77"},
                                           {"SLURM_STEP_NUM_NODES", "2"},
                                           {"SLURM_STEP_ID", "3"},
                                           {NULL, NULL}};
    struct iris_bootstrap bootstrap;

    set_all(steps);
    refuse(IRIS_ERR_BOOTSTRAP, "srun has started ranks on several hosts",
           "set IRIS_ROOT");
    setenv("IRIS_ROOT", "localhost:4000", 1);
    bootstrap = find_ok();
    assert_int_equal(bootstrap.rank, 5);
    assert_int_equal(bootstrap.num_ranks, 8);
    assert_int_equal(bootstrap.local_rank, 1);
    assert_string_equal(bootstrap.job, "run-77-3");
    assert_string_equal(text_of(&bootstrap.root), "127.0.0.1:4000");
    assert_string_equal(text_of(&bootstrap.own), "127.0.0.1:0");
}

static TEST(an_ipv6_address_of_rank_0_stands_in_brackets)
{
    static const char *const torchs[][2] = {{"RANK", "9"},
                                            {"WORLD_SIZE", "16"},
                                            {"LOCAL_RANK", "1"},
                                            {"LOCAL_WORLD_SIZE", "8"},
                                            {"MASTER_ADDR", "::1"},
                                            {"MASTER_PORT", "5000"},
                                            {NULL, NULL}};
    struct iris_bootstrap bootstrap;

    if (access("/proc/net/if_inet6", R_OK) != 0) {
        skip(); /* this system has no IPv6 */
    }
    set_all(torchs);
    bootstrap = find_ok();
    assert_string_equal(text_of(&bootstrap.root), "[::1]:5001");
    setenv("IRIS_ROOT", "[::1]:4000", 1);
    bootstrap = find_ok();
    assert_string_equal(text_of(&bootstrap.root), "[::1]:4000");
    assert_string_equal(text_of(&bootstrap.own), "[::1]:0");
}

static TEST(a_link_local_address_is_not_chosen_from_several)
{
    struct iris_bootstrap bootstrap;

    if (access("/proc/net/if_inet6", R_OK) != 0) {
        skip(); /* this system has no IPv6 */
    }
    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "2", 1);
    setenv("IRIS_ROOT", "cable:4000", 1);
    refuse(IRIS_ERR_CONFIG, "cable", "a link-local address has a meaning");
    setenv("IRIS_ROOT", "laptop:4000", 1);
    bootstrap = find_ok();
    assert_non_null(strstr(text_of(&bootstrap.root), ":4000"));
    assert_null(strstr(text_of(&bootstrap.root), "fe80"));
}

static TEST(a_malformed_address_of_rank_0_is_refused)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"localhost", "is not HOST:PORT"},
        {":4000", "is not HOST:PORT"},
        {"localhost:", "the port is not a number"},
        {"localhost:0", "the port is not a number"},
        {"localhost:65536", "the port is not a number"},
        {"localhost:40x", "the port is not a number"},
        {"localhost:-4", "the port is not a number"},
        {"::1:4000", "an IPv6 address needs brackets, such as [fd00::1]:"},
        {"fd00::1", "an IPv6 address needs brackets"},
        {"[::1:4000", "an IPv6 address needs brackets"},
        {"::1]:4000", "an IPv6 address needs brackets"},
        {"[::1]", "an IPv6 address needs brackets"},
        {"[]:4000", "the brackets contain no IPv6 address"},
        {"[localhost]:4000", "the brackets contain no IPv6 address"},
        {"[::1]:", "the port is not a number"},
        {"[::1]:65536", "the port is not a number"},
        {"[fe80::1]:4000", "a link-local address has a meaning on one host"},
    };

    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "2", 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv("IRIS_ROOT", rows[i].text, 1);
        refuse(IRIS_ERR_CONFIG, rows[i].text, rows[i].why);
    }
}

static TEST(a_launchers_variable_that_does_not_parse_is_named)
{
    static const struct {
        const char *rank, *size, *local, *named;
    } rows[] = {
        {"one", "2", "0", "RANK=\"one\""},
        {"-1", "2", "0", "RANK=\"-1\""},
        {"", "2", "0", "RANK=\"\""},
        {"0", "0", "0", "WORLD_SIZE=\"0\""},
        {"0", "2x", "0", "WORLD_SIZE=\"2x\""},
        {"0", "99999999999", "0", "WORLD_SIZE=\"99999999999\""},
        {"0", "2", "here", "LOCAL_RANK=\"here\""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        setenv("RANK", rows[i].rank, 1);
        setenv("WORLD_SIZE", rows[i].size, 1);
        setenv("LOCAL_RANK", rows[i].local, 1);
        refuse(IRIS_ERR_CONFIG, rows[i].named, "does not parse; it takes");
    }
}

static TEST(more_ranks_than_a_job_can_have_are_refused)
{
    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "1000", 1);
    assert_int_equal(find_ok().num_ranks, 1000);
    setenv("IRIS_NUM_RANKS", "1001", 1);
    refuse(IRIS_ERR_UNSUPPORTED, "a job of 1001 ranks", "at most 1000");
    assert_int_equal(iris_i_bootstrap_check(INT32_MAX), IRIS_ERR_UNSUPPORTED);
}

static TEST(init_blames_the_value_before_the_rank)
{
    iris_t *iris = NULL;

    setenv("IRIS_RANK", "1", 1);
    setenv("IRIS_NUM_RANKS", "two", 1);
    setenv("IRIS_TIMEOUT_MS", "100", 1); /* for a rank 0 that is not there */
    assert_int_equal(iris_init(NULL, &iris), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_NUM_RANKS=\"two\""));
    assert_null(iris);
}

static TEST(long_job_ids_make_keys_that_differ_as_they_do)
{
    char id[300], key[IRIS_KEY_BYTES];

    memset(id, 'j', sizeof id);
    id[sizeof id - 1] = '\0';
    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_JOB_ID", id, 1);
    snprintf(key, sizeof key, "%s", find_ok().job);
    assert_string_equal(find_ok().job, key);
    id[sizeof id - 2] = 'k';
    setenv("IRIS_JOB_ID", id, 1);
    assert_string_not_equal(find_ok().job, key);
}

/* Whether the settings give the bootstrap this secret. */
static int has_secret(const struct iris_bootstrap *bootstrap)
{
    struct iris_bootstrap now = find_ok();

    assert_false(now.is_guessable);
    return iris_i_secret_equal(&now.secret, &bootstrap->secret,
                               sizeof now.secret);
}

static TEST(a_secret_comes_from_a_variable_or_a_private_file)
{
    static const char secret[] = "0123456789abcdef";
    char path[] = "/tmp/iris-secret-XXXXXX";
    struct iris_bootstrap plain, locked;
    int fd = mkstemp(path);

    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "2", 1);
    setenv("IRIS_JOB_ID", "locked", 1);
    plain = find_ok();
    assert_true(plain.is_guessable);
    setenv("IRIS_JOB_SECRET", secret, 1);
    locked = find_ok();
    assert_string_equal(locked.job, plain.job);
    assert_false(has_secret(&plain));
    setenv("IRIS_JOB_SECRET_FILE", path, 1);
    assert_int_equal(find(&plain), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("both set"));
    unsetenv("IRIS_JOB_SECRET");
    assert_int_equal(write(fd, secret, 16), 16);
    assert_int_equal(write(fd, "\n", 1), 1);
    assert_true(has_secret(&locked));
    setenv("IRIS_JOB_ID", "another", 1);
    assert_false(has_secret(&locked));
    fchmod(fd, 0640);
    assert_int_equal(find(&plain), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("can be read by other users"));
    fchmod(fd, 0600);
    if (fchown(fd, 12345, 12345) == 0) { /* as root */
        assert_int_equal(find(&plain), IRIS_ERR_CONFIG);
        assert_true(harness_message_has("belongs to another user"));
    }
    unlink(path);
    close(fd);
    assert_int_equal(find(&plain), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("No such file"));
}

static TEST(a_short_secret_is_refused_and_no_message_shows_a_long_one)
{
    char secret[IRIS_SETTING_BYTES + 1] = "short";
    struct iris_settings settings;
    struct iris_bootstrap bootstrap;

    setenv("IRIS_JOB_SECRET", secret, 1);
    assert_int_equal(find(&bootstrap), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("has 5 characters and needs 16"));
    memset(secret, 's', sizeof secret - 1);
    setenv("IRIS_JOB_SECRET", secret, 1);
    assert_int_equal(iris_i_settings_load(NULL, &settings), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_JOB_SECRET"));
    assert_false(harness_message_has("sss"));
}

TEST_GROUP_WITH(clear, NULL, unit);
