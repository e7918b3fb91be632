/* SPDX-License-Identifier: MIT
 *
 * Numbers in a program whose locale has a decimal comma: texts and files of the
 * library have a point.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/ccl.h>
#include <iris/tensor.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define FOLDER "test_locale.tmp"

/* Makes such a locale, since a system may have none. */
static int take_comma(void)
{
    FILE *file;

    if (system("rm -rf " FOLDER " && mkdir " FOLDER) != 0) {
        return 0;
    }
    file = fopen(FOLDER "/source", "w");
    if (file == NULL) {
        return 0;
    }
    fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
          "END LC_NUMERIC\n",
          file);
    fclose(file);
    (void)!system("localedef -c -i " FOLDER "/source ./" FOLDER
                  "/comma >/dev/null 2>&1");
    setenv("LOCPATH", FOLDER, 1);
    return setlocale(LC_NUMERIC, "comma") != NULL;
}

static void drop_comma(void)
{
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
    (void)!system("rm -rf " FOLDER);
}

static int text_body(iris_t *iris, void *arg)
{
    iris_shape_t one = IRIS_SHAPE(1);
    struct iris_ccl_options options;
    iris_tensor_t tensor;
    char text[64];

    CHECK_OK(iris_full(iris, one, iris_value_float(1.5), NULL, &tensor));
    CHECK_OK(iris_tensor_format(iris, &tensor, text, sizeof text, NULL));
    CHECK(strcmp(text, "f32 (1) [1.5]") == 0);
    CHECK_STATUS(
        iris_full(iris, one, iris_value_complex(1.5, 2.5), NULL, &tensor),
        IRIS_OK);
    CHECK_OK(iris_tensor_format(iris, &tensor, text, sizeof text, NULL));
    CHECK(strstr(text, "1.5+2.5i") != NULL);
    iris_ccl_options_init(&options);
    options.scale = 2.5;
    CHECK_BAD(iris,
              iris_all_reduce(iris, tensor.data, tensor.data, 1, IRIS_DTYPE_I32,
                              IRIS_REDUCE_SUM, &options),
              IRIS_ERR_INVALID, "scale is 2.5", "pass 0");
    snprintf(text, sizeof text, "%.1f", 1.5);
    CHECK(strcmp(text, "1,5") == 0); /* the program's locale is as it was */
    return 0;
}

static TEST(texts_have_a_point)
{
    if (!take_comma()) {
        drop_comma();
        return;
    }
    harness_run(1, text_body, NULL);
    drop_comma();
}

static TEST(files_have_a_point)
{
    struct iris_json_writer json = {0};
    char text[64] = "";

    if (take_comma()) {
        json.file = fmemopen(text, sizeof text, "w");
        assert_non_null(json.file);
        iris_i_json_real(&json, NULL, 1.5);
        fclose(json.file);
        assert_non_null(strstr(text, "1.5"));
    }
    drop_comma();
}

TEST_GROUP(unit);
