/* SPDX-License-Identifier: MIT
 *
 * structs.h for libFuzzer, in a job of one rank.
 */
#include "config.h"

#include "fuzz/structs.h"

static struct fuzz fuzz;

static void open_job(void)
{
    iris_t *iris = NULL;

    setenv("IRIS_BACKEND", "sim", 1);
    setenv("IRIS_SIM_DEVICE", "cpu", 1);
    setenv("IRIS_BOOTSTRAP", "env", 1);
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    setenv("IRIS_HEAP_BASES_FILES", "0", 1);
    setenv("IRIS_LOG_LEVEL", "off", 1);
    REQUIRE(iris_init(NULL, &iris) == IRIS_OK);
    REQUIRE(fuzz_open(&fuzz, iris) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz.iris == NULL) {
        open_job();
    }
    fuzz_case(&fuzz, data, size);
    REQUIRE(fuzz.failures == 0);
    return 0;
}
