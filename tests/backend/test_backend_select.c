/* SPDX-License-Identifier: MIT
 *
 * Which backend is used, and what is said when none can be.
 */
#include "config.h"

#include "support/harness.h"

#include "context/context.h"
#include "support/leaks.h"
#include "backend/backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The backend that IRIS_BACKEND=name gives. */
static iris_status_t choose(const char *name,
                            struct iris_placement *placement_p)
{
    struct iris_config config;
    struct iris_settings settings;
    struct iris_bootstrap bootstrap = {.how = "test", .num_ranks = 1};

    iris_config_init(&config);
    config.backend = name;
    assert_int_equal(iris_i_settings_load(&config, &settings), IRIS_OK);
    return iris_i_place(&settings, &bootstrap, placement_p);
}

static TEST(a_backend_is_found_by_name_in_any_case)
{
    struct iris_placement placement = {.type = NULL};

    assert_int_equal(choose("SIM", &placement), IRIS_OK);
    assert_string_equal(placement.name, "sim");
    assert_true(placement.simulation);
    placement.type = NULL;
    assert_int_equal(choose(NULL, &placement), IRIS_OK);
    assert_non_null(placement.type);
}

static TEST(an_unknown_backend_leaves_the_output_alone)
{
    struct iris_placement placement = {.name = "untouched"};

    assert_int_equal(choose("quantum", &placement), IRIS_ERR_BACKEND);
    assert_string_equal(placement.name, "untouched");
    assert_true(harness_message_has("\"quantum\""));
    assert_true(harness_message_has("IRIS_BACKEND"));
    assert_true(harness_message_has("sim"));
}

static TEST(hip_by_name_works_or_says_why_not)
{
    struct iris_placement placement = {.name = "untouched"};

    if (choose("hip", &placement) == IRIS_OK) {
        assert_string_equal(placement.name, "hip");
        assert_false(placement.simulation);
        return;
    }
    assert_string_equal(placement.name, "untouched");
    assert_true(harness_message_has("hip"));
}

/* iris_init() with one setting fails, says so, and leaves nothing. */
static void refuse_init(const char *backend, const char *sim_device,
                        const char *text)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = (iris_t *)&config;

    iris_config_init(&config);
    config.backend = backend;
    config.sim_device = sim_device;
    leaks_note(&before);
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_BACKEND);
    assert_ptr_equal(iris, &config);
    assert_true(harness_message_has(text));
    assert_true(harness_message_has("[0/1]"));
    assert_int_equal(leaks_found(&before), 0);
}

static TEST(init_passes_on_why_a_backend_cannot_run)
{
    struct iris_placement placement;

    refuse_init("quantum", NULL, "unknown");
    refuse_init("cuda", NULL, "IRIS_BACKEND=hip");
    refuse_init("simulation", NULL, "IRIS_SIM_DEVICE=cpu");
    refuse_init("NVIDIA", NULL, "IRIS_BACKEND=hip");
    refuse_init("amd", NULL, "IRIS_BACKEND=hip");
    refuse_init("rocm", NULL, "IRIS_BACKEND=hip");
    refuse_init("cpu", NULL, "IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu");
    if (choose("hip", &placement) != IRIS_OK) {
        refuse_init("hip", NULL, "IRIS_BACKEND=sim");
        refuse_init("sim", "gpu", "IRIS_SIM_DEVICE=cpu");
    }
}

static iris_status_t no_fail(const struct iris_log *log, iris_status_t status,
                             const char *message)
{
    return status;
}

/* What the module says to a core that says this of itself. It is also looked at
 * whether a module that is refused leaves the process alone. */
static int takes(iris_module_entry_t entry, const char *version,
                 const struct iris_module_layout *layout)
{
    /* The module keeps it. */
    static struct iris_module_core core = {.fail = no_fail};
    int taken;

    core.version = version;
    core.layout = layout;
    unsetenv("CUDA_MODULE_LOADING");
    taken = entry(&core) != NULL;
    assert_int_equal(getenv("CUDA_MODULE_LOADING") != NULL, taken);
    return taken;
}

static TEST(a_module_of_another_build_is_refused_and_does_nothing)
{
    const char *folder = getenv("IRIS_MODULE_DIR");
    struct iris_module_layout layout = IRIS_MODULE_LAYOUT;
    iris_module_entry_t entry;
    char path[1024];
    void *module;

    snprintf(path, sizeof path, "%s/iris_hip.so", folder ? folder : "");
    module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        print_message("left out: no module here\n");
        skip();
    }
    *(void **)&entry = dlsym(module, IRIS_MODULE_SYMBOL);
    assert_non_null(entry);
    assert_int_equal(takes(entry, "iris 0.0.0 module 0", NULL), 0);
    layout.iris_stream += 8;
    assert_int_equal(takes(entry, IRIS_MODULE_VERSION, &layout), 0);
    layout.iris_stream -= 8;
    layout.bytes -= sizeof layout.bytes; /* it knows one struct less */
    assert_int_equal(takes(entry, IRIS_MODULE_VERSION, &layout), 0);
    layout.bytes = sizeof layout;
    assert_int_equal(takes(entry, IRIS_MODULE_VERSION, &layout), 1);
}

TEST_GROUP(unit);
