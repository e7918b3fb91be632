/* SPDX-License-Identifier: MIT
 *
 * Sites: the places of accesses and host calls in the program, by numbers.
 *
 * A site is constant once it has a number, and equal sites of all ranks have one
 * number. A rank's own table finds the number from an address; both change under
 * a spin lock.
 */
#include "config.h"

#include "check/internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- Numbers ---- */

static struct iris_race_known make_key(const struct iris_cpu_event *event)
{
    return (struct iris_race_known){
        .address = event->site,
        .kernel = event->kernel,
        .how = (uint64_t)event->op | (uint64_t)event->sem << 16 |
               (uint64_t)event->scope << 18 | (uint64_t)event->atomic << 20};
}

/* The slot of a key in the rank's table. */
static struct iris_race_known *find_known(struct iris_race *race,
                                          const struct iris_race_known *key)
{
    uint64_t hash = ((uintptr_t)key->address ^ (uintptr_t)key->kernel << 20 ^
                     key->how << 40) *
                    UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 40);
    struct iris_race_known *known;

    do {
        known = &race->sites.known[at++ % IRIS_RACE_KNOWN_SITES];
    } while (atomic_load_explicit(&known->number, memory_order_acquire) != 0 &&
             (known->address != key->address || known->kernel != key->kernel ||
              known->how != key->how));
    return known;
}

/* The number of an equal site, which may be another rank's; 0: too many. */
static uint32_t add_site(struct iris_race_shared *shared,
                         const struct iris_race_site *site)
{
    uint32_t i = 1;

    while (i <= shared->num_sites &&
           memcmp(&shared->sites[i], site, sizeof *site) != 0) {
        i++;
    }
    if (i == IRIS_RACE_SITES) {
        return 0;
    }
    if (i > shared->num_sites) {
        shared->sites[i] = *site;
        shared->num_sites = i;
    }
    return i;
}

static uint32_t number_site(struct iris_race *race,
                            const struct iris_race_known *key,
                            const struct iris_race_site *site)
{
    struct iris_race_known *known;
    uint32_t number;

    iris_i_order_spin_lock(race->order.shared, &race->shared->lock);
    known = find_known(race, key);
    number = atomic_load(&known->number);
    if (number == 0) {
        number = add_site(race->shared, site);
        known->address = key->address;
        known->kernel = key->kernel;
        known->how = key->how;
        atomic_store_explicit(&known->number, number, memory_order_release);
    }
    iris_i_order_spin_unlock(&race->shared->lock);
    if (number == 0) {
        atomic_store(&race->order.shared->blind, true);
    }
    return number;
}

uint32_t iris_i_race_site(struct iris_race *race,
                          const struct iris_cpu_event *event)
{
    const struct iris_race_known key = make_key(event);
    uint32_t number = atomic_load(&find_known(race, &key)->number);
    struct iris_race_site site;

    if (number != 0) {
        return number;
    }
    /* With the padding: sites are compared as bytes. */
    memset(&site, 0, sizeof site);
    site.op = event->op;
    site.host_op = -1;
    site.sem = event->sem;
    site.scope = event->scope;
    site.atomic = event->atomic != 0;
    snprintf(site.kernel, sizeof site.kernel, "%s", event->kernel);
    iris_i_source_find(&(struct iris_caller){{event->site}}, &site.source);
    return number_site(race, &key, &site);
}

/* A hash of all callers. Two that share it count as one. */
static const void *hash_caller(const struct iris_caller *caller)
{
    uint64_t hash = 0;

    for (unsigned i = 0; i < IRIS_SOURCE_FRAMES; i++) {
        hash = (hash ^ (uintptr_t)caller->frames[i]) *
               UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (const void *)(uintptr_t)hash;
}

uint32_t iris_i_race_host_site(struct iris_race *race, enum iris_host_op op,
                               const struct iris_caller *caller)
{
    const struct iris_race_known key = {.address = hash_caller(caller),
                                        .how =
                                            (uint64_t)1 << 32 | (uint64_t)op};
    uint32_t number = atomic_load(&find_known(race, &key)->number);
    struct iris_race_site site;

    if (number != 0) {
        return number;
    }
    memset(&site, 0, sizeof site);
    site.host_op = (int32_t)op;
    iris_i_source_find(caller, &site.source);
    return number_site(race, &key, &site);
}

/* ---- The operation of a site ---- */

static const char *name_host_call(const struct iris_race_site *site)
{
    switch ((enum iris_host_op)site->host_op) {
    case IRIS_HOST_COPY:
        return "copy on a stream";
    case IRIS_HOST_SET:
        return "fill on a stream";
    case IRIS_HOST_SIGNAL:
        return "signal on a stream";
    case IRIS_HOST_WAIT:
        return "wait on a stream";
    case IRIS_HOST_FREE:
        return "iris_free";
    default:
        return "collective";
    }
}

void iris_i_race_deed(const struct iris_race_site *site, char *text,
                      size_t bytes)
{
    static const char *const sems[] = {
        [IRIS_RELAXED] = "relaxed",
        [IRIS_ACQUIRE] = "acquire",
        [IRIS_RELEASE] = "release",
        [IRIS_ACQ_REL] = "acquire and release",
    };
    static const char *const scopes[] = {
        [IRIS_SCOPE_WG] = "workgroup scope",
        [IRIS_SCOPE_AGENT] = "agent scope",
        [IRIS_SCOPE_SYSTEM] = "system scope",
    };
    const char *op = iris_i_op_name(site->op);

    if (site->host_op >= 0) {
        snprintf(text, bytes, "%s", name_host_call(site));
    } else if (site->atomic && (unsigned)site->sem < 4 &&
               (unsigned)site->scope < 3) {
        snprintf(text, bytes, "%s%s, %s, %s",
                 strncmp(op, "atomic", 6) == 0 || site->op == IRIS_OP_WAIT
                     ? ""
                     : "atomic ",
                 op, sems[site->sem], scopes[site->scope]);
    } else {
        snprintf(text, bytes, "%s", op);
    }
}
