/* SPDX-License-Identifier: MIT
 *
 * Finds this rank's number: from the process that made it, from environment
 * variables, or from MPI; or it is alone.
 */
#include "config.h"

#include "control/control.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fewest characters of a secret that cannot be found by trying. */
#define SECRET_LEAST 16

/* ---- Ranks this process makes ---- */

iris_status_t iris_i_bootstrap_random_key(char key[IRIS_KEY_BYTES])
{
    uint64_t random[2];
    iris_status_t status = iris_i_secret_random(random, sizeof random);

    if (status != IRIS_OK) {
        return status;
    }
    snprintf(key, IRIS_KEY_BYTES, "%016llx%016llx",
             (unsigned long long)random[0], (unsigned long long)random[1]);
    return IRIS_OK;
}

/* The name of a job with a random secret. */
static void name_random(struct iris_bootstrap *bootstrap)
{
    char name[IRIS_SECRET_NAME_BYTES];

    iris_i_secret_name(&bootstrap->secret, "job", name);
    snprintf(bootstrap->job, sizeof bootstrap->job, "%s-%.8s", bootstrap->how,
             name);
}

void iris_i_bootstrap_thread(const char *key, int rank, int num_ranks,
                             struct iris_bootstrap *bootstrap_p)
{
    memset(bootstrap_p, 0, sizeof *bootstrap_p);
    bootstrap_p->how = "spawn";
    bootstrap_p->rank = rank;
    bootstrap_p->num_ranks = num_ranks;
    bootstrap_p->local_rank = rank;
    iris_i_sha256(key, strlen(key), bootstrap_p->secret.bytes);
    name_random(bootstrap_p);
}

/* ---- Secrets ---- */

static iris_status_t fail_file(const char *path, const char *why)
{
    return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                       "IRIS_JOB_SECRET_FILE=\"%.200s\" %s", path, why);
}

static iris_status_t check_file(const char *path, int fd)
{
    struct stat st;

    if (fd < 0 || fstat(fd, &st) != 0) {
        return fail_file(path, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return fail_file(path, "is not a regular file");
    }
    if (st.st_uid != geteuid()) {
        return fail_file(path, "belongs to another user; use a file of yours");
    }
    return (st.st_mode & 077) == 0
               ? IRIS_OK
               : fail_file(path, "can be read by other users; run chmod 600");
}

/* Reads the secret, without the end of its line. */
static iris_status_t read_secret(const char *path,
                                 char secret[IRIS_SETTING_BYTES])
{
    int fd = iris_i_fd_above_stdio(open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY));
    iris_status_t status = check_file(path, fd);
    size_t bytes = 0;
    ssize_t got = 1;

    while (status == IRIS_OK && got != 0 && bytes < IRIS_SETTING_BYTES) {
        got = read(fd, secret + bytes, IRIS_SETTING_BYTES - bytes);
        if (got < 0 && errno != EINTR) {
            status = fail_file(path, strerror(errno));
        }
        bytes += got > 0 ? (size_t)got : 0;
    }
    iris_i_fd_close(&fd);
    if (status == IRIS_OK && bytes == IRIS_SETTING_BYTES) {
        status = fail_file(path, "has a longer text than 511 bytes");
    }
    if (status == IRIS_OK) {
        secret[bytes] = '\0';
        secret[strcspn(secret, "\r\n")] = '\0';
    }
    return status;
}

/* Mixes the secret of the settings, if there is one, into the bootstrap's. */
static iris_status_t add_secret(const struct iris_settings *settings,
                                struct iris_bootstrap *bootstrap)
{
    const char *path = settings->job_secret_file.text;
    char text[IRIS_SETTING_BYTES];
    iris_status_t status = IRIS_OK;

    snprintf(text, sizeof text, "%s", settings->job_secret.text);
    if (path[0] != '\0' && text[0] != '\0') {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "IRIS_JOB_SECRET and IRIS_JOB_SECRET_FILE are both "
                           "set; unset one of them");
    }
    if (path[0] != '\0') {
        status = read_secret(path, text);
    }
    if (status != IRIS_OK || (path[0] == '\0' && text[0] == '\0')) {
        return status;
    }
    if (strlen(text) < SECRET_LEAST) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "the job's secret has %zu characters and needs %d: "
                           "take the output of \"openssl rand -hex 32\"",
                           strlen(text), SECRET_LEAST);
    }
    iris_i_hmac_sha256(text, strlen(text), bootstrap->secret.bytes,
                       sizeof bootstrap->secret.bytes, bootstrap->secret.bytes);
    bootstrap->is_guessable = 0;
    return IRIS_OK;
}

/* ---- Environment variables ---- */

/* Variables of launchers, besides our own. The first row whose rank and count
 * are both set applies. */
static const struct launcher {
    const char *name;
    const char *rank;
    const char *num_ranks;
    const char *local_rank;
    const char *num_local; /* number of ranks on this host; may be unset, or
                            * NULL */
    const char *num_hosts; /* NULL: the launcher does not say */
    const char *job; /* may be unset: then the parent process names the job */
} launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL,
     "TORCHELASTIC_RUN_ID"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL,
     "PMIX_NAMESPACE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
     "SLURM_STEP_NUM_NODES", "SLURM_JOB_ID"},
};

static const struct launcher *find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        if (getenv(launchers[i].rank) != NULL &&
            getenv(launchers[i].num_ranks) != NULL) {
            return &launchers[i];
        }
    }
    return NULL;
}

static iris_status_t parse_number(const char *name, int least, int *number_p)
{
    const char *text = getenv(name);
    char *end;
    long number;

    if (text == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "%s is not set; set IRIS_RANK and IRIS_NUM_RANKS",
                           name);
    }
    errno = 0;
    number = strtol(text, &end, 10);
    if (text[0] == '\0' || *end != '\0' || errno != 0 || number < least ||
        number > INT32_MAX) {
        return iris_i_fail(NULL, IRIS_ERR_CONFIG,
                           "environment variable %s=\"%.60s\" does not parse; "
                           "it takes: an integer from %d",
                           name, text, least);
    }
    *number_p = (int)number;
    return IRIS_OK;
}

int iris_i_bootstrap_env_applies(const struct iris_settings *settings)
{
    return settings->rank.origin != IRIS_ORIGIN_DEFAULT ||
           find_launcher() != NULL;
}

/* "job-NAME" if the name fits, else its beginning and a hash (64-bit FNV-1a) of
 * the whole name. So long names with the same beginning differ. */
static void name_after(const char *kind, const char *name, const char *port,
                       char key[IRIS_KEY_BYTES])
{
    uint64_t hash = UINT64_C(14695981039346656037);
    int length = snprintf(key, IRIS_KEY_BYTES, "%s-%s%s%s", kind, name,
                          port[0] == '\0' ? "" : "-", port);

    if (length < IRIS_KEY_BYTES) {
        return;
    }
    for (const char *c = name; *c != '\0'; c++) {
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    }
    snprintf(key, IRIS_KEY_BYTES, "%s-%.40s-%016llx-%.8s", kind, name,
             (unsigned long long)hash, port);
}

/* A launcher's name for the job, else its address, since all hosts share these.
 * Ranks that one shell or agent starts side by side have the same parent. With
 * torchrun, the port distinguishes jobs of one agent; with srun, the step
 * does. */
static void name_job(const struct iris_settings *settings, const char *job,
                     char key[IRIS_KEY_BYTES])
{
    const char *port = getenv("MASTER_PORT"), *host = getenv("MASTER_ADDR");

    port = port == NULL ? getenv("SLURM_STEP_ID") : port;
    port = port == NULL ? "" : port;
    if (settings->job_id.text[0] != '\0') {
        name_after("job", settings->job_id.text, "", key);
    } else if (job != NULL && job[0] != '\0' && strcmp(job, "none") != 0) {
        name_after("run", job, port, key);
    } else if (settings->root.text[0] != '\0') {
        name_after("root", settings->root.text, port, key);
    } else if (host != NULL && getenv("MASTER_PORT") != NULL) {
        name_after("master", host, port, key);
    } else {
        snprintf(key, IRIS_KEY_BYTES, "parent-%ld-%.8s", (long)getppid(), port);
    }
}

/* Whether the launcher has started ranks on other hosts, too. */
static iris_status_t find_others(const struct launcher *launcher, int num_ranks,
                                 int *others_p)
{
    int num_local = num_ranks, num_hosts = 1;
    iris_status_t status = IRIS_OK;

    if (launcher->num_local != NULL && getenv(launcher->num_local) != NULL) {
        status = parse_number(launcher->num_local, 1, &num_local);
    }
    if (status == IRIS_OK && launcher->num_hosts != NULL &&
        getenv(launcher->num_hosts) != NULL) {
        status = parse_number(launcher->num_hosts, 1, &num_hosts);
    }
    *others_p = num_local != num_ranks || num_hosts != 1;
    return status;
}

/* Under torchrun, rank 0 uses the port after MASTER_PORT: the agent uses that
 * port itself. */
static iris_status_t name_root(const struct launcher *launcher, char *root,
                               size_t bytes)
{
    const char *host = getenv("MASTER_ADDR");
    int port;

    if (getenv("MASTER_PORT") == NULL || host == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_BOOTSTRAP,
                           "%s has started ranks on several hosts; set "
                           "IRIS_ROOT to rank 0's host and a free port there, "
                           "such as node0:29400, alike on all ranks",
                           launcher->name);
    }
    if (parse_number("MASTER_PORT", 1, &port) != IRIS_OK) {
        return IRIS_ERR_CONFIG;
    }
    snprintf(root, bytes, strchr(host, ':') == NULL ? "%s:%d" : "[%s]:%d", host,
             port + 1);
    return IRIS_OK;
}

/* The address at which ranks of other hosts meet rank 0, if there are such
 * ranks. */
static iris_status_t find_root(const struct iris_settings *settings,
                               const struct launcher *launcher,
                               struct iris_bootstrap *bootstrap)
{
    char root[600];
    iris_status_t status = IRIS_OK;
    int others = settings->root.text[0] != '\0';

    snprintf(root, sizeof root, "%s", settings->root.text);
    if (!others && launcher != NULL) {
        status = find_others(launcher, bootstrap->num_ranks, &others);
        if (status == IRIS_OK && others) {
            status = name_root(launcher, root, sizeof root);
        }
    }
    if (status == IRIS_OK && others) {
        status = iris_i_address_parse(root, &bootstrap->root);
    }
    return status == IRIS_OK && others
               ? iris_i_address_towards(&bootstrap->root, &bootstrap->own)
               : status;
}

/* Reads our own variables, else the launcher's. */
static iris_status_t read_ranks(const struct iris_settings *settings,
                                const struct launcher *launcher,
                                struct iris_bootstrap *bootstrap)
{
    iris_status_t status;

    if (launcher == NULL) {
        bootstrap->rank = (int)settings->rank.number;
        bootstrap->num_ranks = (int)settings->num_ranks.number;
        bootstrap->local_rank = bootstrap->rank;
        return IRIS_OK;
    }
    status = parse_number(launcher->rank, 0, &bootstrap->rank);
    if (status == IRIS_OK) {
        status = parse_number(launcher->num_ranks, 1, &bootstrap->num_ranks);
    }
    bootstrap->local_rank = bootstrap->rank;
    if (status == IRIS_OK && getenv(launcher->local_rank) != NULL) {
        status = parse_number(launcher->local_rank, 0, &bootstrap->local_rank);
    }
    return status;
}

iris_status_t iris_i_bootstrap_env(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p)
{
    struct iris_bootstrap bootstrap = {.how = "env"};
    const struct launcher *launcher =
        settings->rank.origin != IRIS_ORIGIN_DEFAULT ? NULL : find_launcher();
    const char *job = launcher == NULL ? NULL : getenv(launcher->job);
    iris_status_t status = read_ranks(settings, launcher, &bootstrap);

    if (status == IRIS_OK) {
        status = find_root(settings, launcher, &bootstrap);
    }
    if (status != IRIS_OK) {
        return status;
    }
    if (bootstrap.rank >= bootstrap.num_ranks) {
        return iris_i_fail(
            NULL, IRIS_ERR_BOOTSTRAP,
            "rank %d is out of range: the job has %d ranks, "
            "0 to %d; check %s and %s",
            bootstrap.rank, bootstrap.num_ranks, bootstrap.num_ranks - 1,
            launcher == NULL ? "IRIS_RANK" : launcher->rank,
            launcher == NULL ? "IRIS_NUM_RANKS" : launcher->num_ranks);
    }
    name_job(settings, job, bootstrap.job);
    iris_i_sha256(bootstrap.job, strlen(bootstrap.job), bootstrap.secret.bytes);
    bootstrap.is_guessable = 1;
    *bootstrap_p = bootstrap;
    return IRIS_OK;
}

/* ---- The bootstrap that applies ---- */

iris_status_t iris_i_bootstrap_check(int num_ranks)
{
    if (num_ranks <= IRIS_RANKS_MAX) {
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "a job of %d ranks; it can have at most %d: lower "
                       "IRIS_NUM_RANKS",
                       num_ranks, IRIS_RANKS_MAX);
}

static iris_status_t stay_alone(struct iris_bootstrap *bootstrap_p)
{
    char key[IRIS_KEY_BYTES];
    iris_status_t status = iris_i_bootstrap_random_key(key);

    if (status == IRIS_OK) {
        iris_i_bootstrap_thread(key, 0, 1, bootstrap_p);
        bootstrap_p->how = "alone";
    }
    return status;
}

/* All ranks get rank 0's random secret. */
static iris_status_t join_mpi(const struct iris_settings *settings,
                              struct iris_bootstrap *bootstrap_p)
{
    iris_status_t status = iris_i_bootstrap_mpi(settings, bootstrap_p);

    if (status == IRIS_OK) {
        name_random(bootstrap_p);
    }
    return status;
}

static iris_status_t find_out(const struct iris_settings *settings,
                              struct iris_bootstrap *bootstrap_p)
{
    int64_t how = settings->bootstrap.number;
    int has_rank = settings->rank.origin != IRIS_ORIGIN_DEFAULT;

    if (how == IRIS_CHOICE_BOOTSTRAP_MPI) {
        return join_mpi(settings, bootstrap_p);
    }
    if (how == IRIS_CHOICE_BOOTSTRAP_ENV || has_rank) {
        return iris_i_bootstrap_env(settings, bootstrap_p);
    }
    if (iris_i_bootstrap_mpi_applies()) {
        return join_mpi(settings, bootstrap_p);
    }
    if (iris_i_bootstrap_env_applies(settings)) {
        return iris_i_bootstrap_env(settings, bootstrap_p);
    }
    /* With IRIS_SPAWN=threads it is for an iris_spawn() that may come; iris check
     * sets both, and counts the ranks itself. */
    if (settings->num_ranks.number > 1 &&
        (settings->spawn.origin == IRIS_ORIGIN_DEFAULT ||
         settings->spawn.number != IRIS_CHOICE_SPAWN_THREADS)) {
        return iris_i_fail(
            NULL, IRIS_ERR_INVALID,
            "IRIS_NUM_RANKS=%lld, but iris_init() makes one rank "
            "of this process: start the program by \"iris run "
            "-n %lld\" or another launcher, call iris_spawn(), "
            "or unset IRIS_NUM_RANKS",
            (long long)settings->num_ranks.number,
            (long long)settings->num_ranks.number);
    }
    return stay_alone(bootstrap_p);
}

iris_status_t iris_i_bootstrap(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap_p)
{
    struct iris_bootstrap bootstrap;
    iris_status_t status = find_out(settings, &bootstrap);

    if (status == IRIS_OK) {
        status = iris_i_bootstrap_check(bootstrap.num_ranks);
    }
    if (status == IRIS_OK) {
        status = add_secret(settings, &bootstrap);
    }
    if (status == IRIS_OK) {
        *bootstrap_p = bootstrap;
    }
    return status;
}

int iris_i_bootstrap_launched(const struct iris_settings *settings)
{
    return settings->bootstrap.number != IRIS_CHOICE_BOOTSTRAP_AUTO ||
           iris_i_bootstrap_mpi_applies() ||
           iris_i_bootstrap_env_applies(settings);
}
