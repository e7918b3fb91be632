/* SPDX-License-Identifier: MIT
 *
 * Products by cuBLASLt and hipBLASLt, for the modules of both.
 *
 * The library is found at run time. It sees row-major matrices as transposed
 * column-major ones. An algorithm is chosen once for a whole product, and its
 * parts by rows use the same one, so that they have the same bits as the whole.
 * Algorithms with a workspace are excluded: products on several streams, and
 * launches of graphs, would share it.
 */
#include "config.h"

#include "ops/internal.h"

#include "base/base.h"

#include <dlfcn.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Code for all modules of GPU libraries: finds the library, and converts
 * row-major matrices to the library's column-major view.
 */

/* ---- Finding the library ---- */

static void append_text(char *why, const char *text)
{
    size_t used = strlen(why);

    snprintf(why + used, IRIS_BLAS_WHY_BYTES - used, "%s%.200s",
             used > 0 ? ", " : "", text);
}

static void *load_by_name(const struct iris_blas_places *places,
                          int only_loaded)
{
    void *library = NULL;

    for (const char *const *name = places->names;
         library == NULL && *name != NULL; name++) {
        library = iris_i_loader_library(*name, only_loaded);
    }
    return library;
}

static void *load_from(const struct iris_blas_places *places,
                       const char *folder)
{
    void *library = NULL;
    char path[1024];

    for (const char *const *name = places->names;
         library == NULL && *name != NULL; name++) {
        if (snprintf(path, sizeof path, "%s/%s", folder, *name) <
            (int)sizeof path) {
            library = iris_i_loader_library(path, 0);
        }
    }
    return library;
}

static void *load_from_toolkit(const struct iris_blas_places *places,
                               const char *variable, char *why)
{
    static const char *const folders[] = {"lib64", "lib"};
    const char *toolkit = getenv(variable);
    void *library = NULL;
    char path[1024];

    if (toolkit == NULL || toolkit[0] == '\0') {
        snprintf(path, sizeof path, "$%s (not set)", variable);
        append_text(why, path);
        return NULL;
    }
    for (size_t i = 0; library == NULL && i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", toolkit, folders[i]);
        library = load_from(places, path);
        append_text(why, path);
    }
    return library;
}

/* Returns 0 if the pattern begins with an unset variable. */
static int expand_pattern(const char *pattern, char *path, size_t bytes)
{
    const char *rest = strchr(pattern, '/');
    char name[64];
    const char *value;

    if (pattern[0] != '$') {
        snprintf(path, bytes, "%s", pattern);
        return 1;
    }
    snprintf(name, sizeof name, "%.*s", (int)(rest - pattern - 1), pattern + 1);
    value = getenv(name);
    snprintf(path, bytes, "%s%s", value == NULL ? "" : value, rest);
    return value != NULL && value[0] != '\0';
}

static void *load_from_pattern(const struct iris_blas_places *places,
                               const char *pattern, char *why)
{
    void *library = NULL;
    char path[1024];
    glob_t found;

    if (!expand_pattern(pattern, path, sizeof path)) {
        return NULL;
    }
    append_text(why, path);
    if (glob(path, 0, NULL, &found) != 0) {
        return NULL;
    }
    for (size_t i = 0; library == NULL && i < found.gl_pathc; i++) {
        library = load_from(places, found.gl_pathv[i]);
    }
    globfree(&found);
    return library;
}

/* Loads the library. Tries in this order: one that the process has already
 * loaded, a folder that a variable names, the loader's own search, the other
 * folders. NULL: `why` lists the attempts. */
static void *find_library(const struct iris_blas_places *places, char *why)
{
    void *library = load_by_name(places, 1);
    char tried[IRIS_BLAS_WHY_BYTES] = "";

    for (const char *const *name = places->variables;
         library == NULL && *name != NULL; name++) {
        library = load_from_toolkit(places, *name, tried);
    }
    if (library == NULL) {
        append_text(tried, "the loader's path");
        library = load_by_name(places, 0);
    }
    for (const char *const *pattern = places->patterns;
         library == NULL && *pattern != NULL; pattern++) {
        library = load_from_pattern(places, *pattern, tried);
    }
    if (library == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "%s was not found; tried %.440s",
                 places->names[0], tried);
    }
    return library;
}

/* The address of <prefix><name>, or NULL with the reason in `why`. */
static void *find_symbol(void *library, const char *prefix, const char *name,
                         char *why)
{
    char symbol[80];
    void *address;

    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    address = dlsym(library, symbol);
    if (address == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "the library has no %s", symbol);
    }
    return address;
}

/* The path of the library with this symbol, for messages. */
static const char *find_path(const void *symbol)
{
    Dl_info info;

    return dladdr(symbol, &info) != 0 && info.dli_fname != NULL
               ? info.dli_fname
               : "an unknown file";
}

/* ---- Matrices ---- */

/* The alignment of every column, whichever the first one is. */
static int alignment_of(const void *data, int64_t column_bytes)
{
    uint64_t bits = (uint64_t)(uintptr_t)data | (uint64_t)column_bytes |
                    IRIS_BLAS_ALIGNMENT;

    return (int)(bits & -bits);
}

/* Whether the elements of a line are contiguous and lines do not overlap. With
 * a single line, its stride does not matter. */
static int is_dense_line(int64_t inner_stride, int64_t inner, int64_t stride,
                         int64_t lines)
{
    return (inner_stride == 1 || inner == 1) && (stride >= inner || lines == 1);
}

static struct iris_blas_columns
view_columns(const struct iris_blas_product *what,
             const struct iris_d_matrix *matrix, int64_t rows, int64_t cols)
{
    int by_row = is_dense_line(matrix->col, cols, matrix->row, rows);
    int64_t stride = by_row ? matrix->row : matrix->col;
    int64_t inner = by_row ? cols : rows;
    struct iris_blas_columns columns = {
        .is_transposed = !by_row,
        .rows = inner,
        .cols = by_row ? rows : cols,
        .ld = stride >= inner ? stride : inner,
        .data = matrix->data,
    };

    columns.alignment = alignment_of(
        matrix->data, columns.ld * (what->dtype == IRIS_DTYPE_F32 ? 4 : 2));
    return columns;
}

static int is_taken(const struct iris_d_matrix *matrix, int64_t rows,
                    int64_t cols)
{
    return is_dense_line(matrix->col, cols, matrix->row, rows) ||
           is_dense_line(matrix->row, rows, matrix->col, cols);
}

/* IRIS_ERR_UNSUPPORTED, with the reason in `why`: no library supports a
 * matrix's strides. */
static iris_status_t make_operands(const struct iris_blas_product *what,
                                   struct iris_blas_operands *operands_p,
                                   char *why)
{
    const struct iris_d_matrix out = {what->out, what->out_row, 1};

    if (!is_taken(&what->a, what->m, what->k) ||
        !is_taken(&what->b, what->k, what->n) ||
        !is_dense_line(1, what->n, what->out_row, what->m)) {
        snprintf(why, IRIS_BLAS_WHY_BYTES,
                 "it takes no matrix whose rows and columns both have gaps "
                 "(a: %lld, %lld; b: %lld, %lld; out: %lld, 1)",
                 (long long)what->a.row, (long long)what->a.col,
                 (long long)what->b.row, (long long)what->b.col,
                 (long long)what->out_row);
        return IRIS_ERR_UNSUPPORTED;
    }
    operands_p->first = view_columns(what, &what->b, what->k, what->n);
    operands_p->second = view_columns(what, &what->a, what->m, what->k);
    operands_p->out = view_columns(what, &out, what->m, what->n);
    return IRIS_OK;
}

void iris_i_blas_no_multiply(void *state, const struct iris_blas_f32 *what)
{
    (void)state, (void)what;
}

/* ---------------------------------------------------------------------------
 * Products by cuBLASLt and hipBLASLt. An algorithm is chosen once for a whole
 * product, and its parts by rows use the same one, so that they have the same
 * bits as the whole. Algorithms with a workspace are excluded: products on
 * several streams, and launches of graphs, would share it.
 */

/* The most handles of a context. */
#define MOST_HANDLES 8

/* Number of algorithms that are kept; the oldest is replaced first. */
#define KEPT 64

/* The library's functions. Its enums have the width of int, and its descriptors
 * are pointers. */
struct functions {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t cols,
                         int64_t ld);
    int (*layout_destroy)(void *layout);
    int (*desc_create)(void **desc, int compute, int scale_type);
    int (*desc_destroy)(void *desc);
    int (*desc_set)(void *desc, int attribute, const void *value, size_t bytes);
    int (*pref_create)(void **pref);
    int (*pref_destroy)(void *pref);
    int (*pref_set)(void *pref, int attribute, const void *value, size_t bytes);
    int (*heuristic)(void *handle, void *desc, void *a, void *b, void *c,
                     void *d, void *pref, int wanted, void *results,
                     int *num_p);
    int (*matmul)(void *handle, void *desc, const void *alpha, const void *a,
                  void *a_layout, const void *b, void *b_layout,
                  const void *beta, const void *c, void *c_layout, void *d,
                  void *d_layout, const void *algorithm, void *workspace,
                  size_t workspace_bytes, void *stream);
};

/* The key of an algorithm. Zeroed first, and compared as bytes. */
struct key {
    int64_t whole;
    int64_t n;
    int64_t k;
    int64_t ld[3]; /* leading dimensions of the first operand, the second,
                    * and out */
    int alignment[3];
    int is_transposed[2];
    int dtype;
    int has_bias;
};

struct chosen {
    struct key key;
    int is_known;
    int is_supported;
    uint64_t algorithm[IRIS_LT_RESULT_BYTES / sizeof(uint64_t)];
};

struct iris_lt {
    const struct iris_lt_dialect *dialect;
    struct functions call;
    void *handles[MOST_HANDLES];
    pthread_mutex_t lock;
    const void *users[MOST_HANDLES] IRIS_GUARDED_BY(lock); /* streams */
    unsigned next_user IRIS_GUARDED_BY(lock);
    struct chosen chosen[KEPT] IRIS_GUARDED_BY(lock);
    unsigned next IRIS_GUARDED_BY(lock);
};

/* A product's descriptors. */
struct descriptors {
    void *desc;
    void *layouts[3];
};

/* ---- Errors ---- */

static iris_status_t check_call(const struct iris_lt *lt, int status,
                                const char *call, char *why)
{
    const struct iris_lt_dialect *dialect = lt->dialect;
    const char *name = status > 0 && status < dialect->num_statuses
                           ? dialect->status_names[status]
                           : NULL;

    if (status == 0) {
        return IRIS_OK;
    }
    snprintf(why, IRIS_BLAS_WHY_BYTES, "%s%s returned %s (%d)", dialect->prefix,
             call, name == NULL ? "an unknown status" : name, status);
    return status == dialect->status_unsupported ? IRIS_ERR_UNSUPPORTED
           : status == dialect->status_no_memory ? IRIS_ERR_NO_MEMORY
                                                 : IRIS_ERR_DEVICE;
}

/* ---- The library ---- */

static iris_status_t bind_library(struct iris_lt *lt, void *library, char *why)
{
    const struct {
        const char *name;
        void *to;
    } table[] = {
        {"Create", &lt->call.create},
        {"Destroy", &lt->call.destroy},
        {"MatrixLayoutCreate", &lt->call.layout_create},
        {"MatrixLayoutDestroy", &lt->call.layout_destroy},
        {"MatmulDescCreate", &lt->call.desc_create},
        {"MatmulDescDestroy", &lt->call.desc_destroy},
        {"MatmulDescSetAttribute", &lt->call.desc_set},
        {"MatmulPreferenceCreate", &lt->call.pref_create},
        {"MatmulPreferenceDestroy", &lt->call.pref_destroy},
        {"MatmulPreferenceSetAttribute", &lt->call.pref_set},
        {"MatmulAlgoGetHeuristic", &lt->call.heuristic},
        {"Matmul", &lt->call.matmul},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *address =
            find_symbol(library, lt->dialect->prefix, table[i].name, why);

        if (address == NULL) {
            return IRIS_ERR_BACKEND;
        }
        memcpy(table[i].to, &address, sizeof address);
    }
    return IRIS_OK;
}

static void destroy_handles(const struct iris_lt *lt)
{
    for (int i = 0; i < MOST_HANDLES; i++) {
        if (lt->handles[i] != NULL) {
            (void)lt->call.destroy(lt->handles[i]);
        }
    }
}

/* All at once: later, a stream may be capturing, and then hipBLASLt ends the
 * process (rocm-libraries #11838). */
static iris_status_t create_handles(struct iris_lt *lt, char *why)
{
    iris_status_t status = IRIS_OK;

    for (int i = 0; i < lt->dialect->num_handles && status == IRIS_OK; i++) {
        status =
            check_call(lt, lt->call.create(&lt->handles[i]), "Create", why);
    }
    if (status != IRIS_OK) {
        destroy_handles(lt);
    }
    return status;
}

/* A stream's own handle, or that of the stream that has had one for longest. The
 * lock is held. */
static void *find_handle(struct iris_lt *lt, const void *stream)
    IRIS_REQUIRES(lt->lock)
{
    unsigned count = (unsigned)lt->dialect->num_handles;

    for (unsigned i = 0; i < count && i < lt->next_user; i++) {
        if (lt->users[i] == stream) {
            return lt->handles[i];
        }
    }
    lt->users[lt->next_user % count] = stream;
    return lt->handles[lt->next_user++ % count];
}

/* The library stays loaded: it may have started threads that never end. */
iris_status_t iris_i_lt_open(const struct iris_lt_dialect *dialect,
                             void **state_p, char *why)
{
    void *library = find_library(&dialect->places, why);
    struct iris_lt *lt;
    iris_status_t status;

    if (library == NULL) {
        return IRIS_ERR_BACKEND;
    }
    lt = calloc(1, sizeof *lt);
    if (lt == NULL) {
        snprintf(why, IRIS_BLAS_WHY_BYTES, "no memory");
        return IRIS_ERR_NO_MEMORY;
    }
    lt->dialect = dialect;
    status = bind_library(lt, library, why);
    if (status == IRIS_OK) {
        status = create_handles(lt, why);
    }
    if (status != IRIS_OK) {
        free(lt);
        return status;
    }
    pthread_mutex_init(&lt->lock, NULL);
    *state_p = lt;
    return IRIS_OK;
}

void iris_i_lt_close(void *state)
{
    struct iris_lt *lt = state;

    destroy_handles(lt);
    pthread_mutex_destroy(&lt->lock);
    free(lt);
}

void iris_i_lt_describe(void *state, char *text)
{
    const struct iris_lt *lt = state;
    const void *symbol;

    memcpy(&symbol, &lt->call.matmul, sizeof symbol);
    snprintf(text, IRIS_BLAS_WHY_BYTES, "%s in %.400s", lt->dialect->name,
             find_path(symbol));
}

/* ---- Descriptors ---- */

static int type_of(const struct iris_lt *lt, iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F16    ? lt->dialect->type_f16
           : dtype == IRIS_DTYPE_BF16 ? lt->dialect->type_bf16
                                      : lt->dialect->type_f32;
}

static void destroy_made(const struct iris_lt *lt, struct descriptors *made)
{
    for (int i = 0; i < 3; i++) {
        if (made->layouts[i] != NULL) {
            (void)lt->call.layout_destroy(made->layouts[i]);
        }
    }
    if (made->desc != NULL) {
        (void)lt->call.desc_destroy(made->desc);
    }
}

static iris_status_t describe_call(const struct iris_lt *lt,
                                   const struct iris_blas_product *what,
                                   const struct iris_blas_operands *operands,
                                   void **desc_p, char *why)
{
    const struct iris_lt_dialect *dialect = lt->dialect;
    const int ops[] = {dialect->op_none, dialect->op_transpose};
    int type = type_of(lt, what->dtype);
    const struct {
        int attribute;
        const void *value;
        size_t bytes;
    } settings[] = {
        {dialect->desc_trans_a, &ops[operands->first.is_transposed],
         sizeof ops[0]},
        {dialect->desc_trans_b, &ops[operands->second.is_transposed],
         sizeof ops[0]},
        {dialect->desc_epilogue, &dialect->epilogue_bias,
         sizeof dialect->epilogue_bias},
        {dialect->desc_bias_type, &type, sizeof type},
        {dialect->desc_bias, &what->bias.data, sizeof what->bias.data},
    };
    int count = what->bias.data != NULL ? 5 : 2;
    iris_status_t status = check_call(
        lt,
        lt->call.desc_create(desc_p, dialect->compute_f32, dialect->type_f32),
        "MatmulDescCreate", why);

    for (int i = 0; i < count && status == IRIS_OK; i++) {
        status =
            check_call(lt,
                       lt->call.desc_set(*desc_p, settings[i].attribute,
                                         settings[i].value, settings[i].bytes),
                       "MatmulDescSetAttribute", why);
    }
    return status;
}

/* Creates the descriptors of a product with what->m rows. The caller destroys
 * them even if this fails. */
static iris_status_t create_made(const struct iris_lt *lt,
                                 const struct iris_blas_product *what,
                                 const struct iris_blas_operands *operands,
                                 struct descriptors *made, char *why)
{
    const struct iris_blas_columns *all[] = {&operands->first,
                                             &operands->second, &operands->out};
    iris_status_t status = describe_call(lt, what, operands, &made->desc, why);

    for (int i = 0; i < 3 && status == IRIS_OK; i++) {
        int64_t rows = all[i]->rows, cols = all[i]->cols;

        if (i > 0) { /* b has no m */
            *(all[i]->is_transposed ? &rows : &cols) = what->m;
        }
        status = check_call(
            lt,
            lt->call.layout_create(&made->layouts[i], type_of(lt, what->dtype),
                                   (uint64_t)rows, (uint64_t)cols, all[i]->ld),
            "MatrixLayoutCreate", why);
    }
    return status;
}

/* ---- The choice of an algorithm ---- */

static struct key key_of(const struct iris_blas_product *what,
                         const struct iris_blas_operands *operands)
{
    const struct iris_blas_columns *all[] = {&operands->first,
                                             &operands->second, &operands->out};
    struct key key;

    memset(&key, 0, sizeof key);
    key.whole = what->whole;
    key.n = what->n;
    key.k = what->k;
    key.dtype = (int)what->dtype;
    key.has_bias = what->bias.data != NULL;
    for (int i = 0; i < 3; i++) {
        key.ld[i] = all[i]->ld;
        key.alignment[i] = all[i]->alignment;
    }
    key.is_transposed[0] = operands->first.is_transposed;
    key.is_transposed[1] = operands->second.is_transposed;
    return key;
}

/* A sum whose parts were added as f16 or bf16 would be rounded several times.
 * Parts of an f32 product are f32 anyway. */
static iris_status_t set_preference(const struct iris_lt *lt,
                                    const struct key *key, void *pref,
                                    char *why)
{
    static const int of[4] = {0, 1, 2, 2};
    const struct iris_lt_dialect *dialect = lt->dialect;
    uint64_t none = 0;
    int ret =
        lt->call.pref_set(pref, dialect->pref_workspace, &none, sizeof none);

    if (ret == 0 && dialect->pref_reduction >= 0 &&
        key->dtype != IRIS_DTYPE_F32) {
        ret = lt->call.pref_set(pref, dialect->pref_reduction,
                                &dialect->reduction_f32,
                                sizeof dialect->reduction_f32);
    }
    for (int i = 0; i < 4 && ret == 0; i++) {
        uint32_t bytes = (uint32_t)key->alignment[of[i]];

        if (dialect->pref_alignment[i] >= 0) {
            ret = lt->call.pref_set(pref, dialect->pref_alignment[i], &bytes,
                                    sizeof bytes);
        }
    }
    return check_call(lt, ret, "MatmulPreferenceSetAttribute", why);
}

/* The heuristics' first algorithm without a workspace. */
static iris_status_t ask_library(const struct iris_lt *lt,
                                 const struct descriptors *made, void *pref,
                                 struct chosen *chosen, char *why)
{
    const struct iris_lt_dialect *dialect = lt->dialect;
    uint64_t result[IRIS_LT_RESULT_BYTES / sizeof(uint64_t)] = {0};
    const char *bytes = (const char *)result;
    size_t workspace = 0;
    int num = 0, state = 0;
    iris_status_t status = check_call(
        lt,
        lt->call.heuristic(lt->handles[0], made->desc, made->layouts[0],
                           made->layouts[1], made->layouts[2], made->layouts[2],
                           pref, 1, result, &num),
        "MatmulAlgoGetHeuristic", why);

    memcpy(&workspace, bytes + dialect->algorithm_bytes, sizeof workspace);
    memcpy(&state, bytes + dialect->algorithm_bytes + sizeof workspace,
           sizeof state);
    chosen->is_supported =
        status == IRIS_OK && num > 0 && state == 0 && workspace == 0;
    memcpy(chosen->algorithm, result, dialect->algorithm_bytes);
    return status == IRIS_ERR_UNSUPPORTED ? IRIS_OK : status;
}

static iris_status_t choose_algorithm(const struct iris_lt *lt,
                                      const struct iris_blas_product *what,
                                      const struct iris_blas_operands *operands,
                                      struct chosen *chosen, char *why)
{
    struct iris_blas_product whole = *what;
    struct descriptors made = {0};
    void *pref = NULL;
    iris_status_t status;

    whole.m = what->whole;
    status = create_made(lt, &whole, operands, &made, why);

    if (status == IRIS_OK) {
        status = check_call(lt, lt->call.pref_create(&pref),
                            "MatmulPreferenceCreate", why);
    }
    if (status == IRIS_OK) {
        status = set_preference(lt, &chosen->key, pref, why);
    }
    if (status == IRIS_OK) {
        status = ask_library(lt, &made, pref, chosen, why);
    }
    if (pref != NULL) {
        (void)lt->call.pref_destroy(pref);
    }
    destroy_made(lt, &made);
    return status;
}

/* The algorithm for all parts of the product. The lock is held. */
static iris_status_t find_algorithm(struct iris_lt *lt,
                                    const struct iris_blas_product *what,
                                    const struct iris_blas_operands *operands,
                                    struct chosen *chosen_p, char *why)
    IRIS_REQUIRES(lt->lock)
{
    struct chosen fresh = {.key = key_of(what, operands), .is_known = 1};
    iris_status_t status;

    for (int i = 0; i < KEPT; i++) {
        if (lt->chosen[i].is_known &&
            memcmp(&lt->chosen[i].key, &fresh.key, sizeof fresh.key) == 0) {
            *chosen_p = lt->chosen[i];
            return IRIS_OK;
        }
    }
    status = choose_algorithm(lt, what, operands, &fresh, why);
    if (status == IRIS_OK) {
        lt->chosen[lt->next++ % KEPT] = fresh;
        *chosen_p = fresh;
    }
    return status;
}

/* ---- The product ---- */

/* Multiplies with existing descriptors and algorithm. */
static int enqueue_product(const struct iris_lt *lt,
                           const struct iris_blas_product *what,
                           const struct descriptors *made,
                           const struct chosen *chosen, void *handle,
                           void *stream)
{
    const float alpha = 1, beta = what->adds ? 1 : 0;

    return lt->call.matmul(
        handle, made->desc, &alpha, what->b.data, made->layouts[0],
        what->a.data, made->layouts[1], &beta, what->out, made->layouts[2],
        what->out, made->layouts[2], chosen->algorithm, NULL, 0, stream);
}

iris_status_t iris_i_lt_product(void *state,
                                const struct iris_blas_product *what,
                                void *stream, char *why)
{
    struct iris_lt *lt = state;
    struct iris_blas_operands operands;
    struct descriptors made = {0};
    struct chosen chosen;
    void *handle;
    int ret = 0;
    iris_status_t status = make_operands(what, &operands, why);

    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&lt->lock);
    status = find_algorithm(lt, what, &operands, &chosen, why);
    handle = find_handle(lt, stream);
    pthread_mutex_unlock(&lt->lock);
    if (status == IRIS_OK && !chosen.is_supported) {
        snprintf(why, IRIS_BLAS_WHY_BYTES,
                 "it has no algorithm without a workspace for such a product");
        return IRIS_ERR_UNSUPPORTED;
    }
    status = status ? status : create_made(lt, what, &operands, &made, why);
    if (status == IRIS_OK) {
        ret = enqueue_product(lt, what, &made, &chosen, handle, stream);
        status = check_call(lt, ret, "Matmul", why);
    }
    destroy_made(lt, &made);
    /* An algorithm for the whole product may not support every part. */
    return ret == lt->dialect->status_invalid && what->m != what->whole
               ? IRIS_ERR_UNSUPPORTED
               : status;
}
