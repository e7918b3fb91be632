#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build cpu
#
# Checks the locks of src by clang's analysis of threads: each guarded member is
# accessed with its lock held, each function that requires a lock is called with it,
# no function returns with a lock that its callers do not release, and locks whose
# order is declared are taken in that order. The attributes are in src/base/base.h.
# Four planted faults are refused.
set -u
srcdir=$(cd "$(dirname "$0")/.." && pwd)
[ -e config.h ] || { echo "run this in a build folder"; exit 1; }
for clang in clang-19 clang-20 clang-21 ""; do
    [ -z "$clang" ] || ! command -v "$clang" >/dev/null || break
done
[ -n "$clang" ] || { echo "skipped: no clang-19 or later"; exit 77; }

value() { # VARIABLE: a variable of the build's Makefile
    sed -n "s/^$1 = //p" Makefile
}
# shellcheck disable=SC2046
check() { # FILE...
    "$clang" -std=gnu11 -fsyntax-only -Wno-everything -Wthread-safety -Wthread-safety-beta \
        -Werror=thread-safety -Werror=thread-safety-beta -include config.h \
        -include "$srcdir/tests/check_locks.h" -DHAVE_CONFIG_H -DIRIS_MODULE_DIR='""' -I. \
        -Iinclude -I"$srcdir/include" -I"$srcdir/src" $(value MPI_CFLAGS) \
        $(value HIP_CPPFLAGS) "$@"
}
failed=0
refuse() { # FUNCTION: which has a fault
    { cat <<'C'; echo "$1"; } | check -x c - 2>&1 | grep -q '\[-Werror,-Wthread-safety' && return
#include "base/base.h"
struct list {
    pthread_mutex_t lock;
    int count IRIS_GUARDED_BY(lock);
};
static inline void add_one(struct list *list) IRIS_REQUIRES(list->lock)
{
    list->count++;
}
C
    echo "FAILED: not refused: $1"
    failed=1
}
refuse 'int get(struct list *list) { return list->count; }'
refuse 'void add(struct list *list) { add_one(list); }'
refuse 'int test(struct list *list) { pthread_mutex_lock(&list->lock);
    if (list->count > 9) { return 0; }
    pthread_mutex_unlock(&list->lock); return 1; }'
refuse 'static pthread_mutex_t inner;
    static pthread_mutex_t outer IRIS_ACQUIRED_BEFORE(inner);
    void reverse(void) { pthread_mutex_lock(&inner); pthread_mutex_lock(&outer);
    pthread_mutex_unlock(&outer); pthread_mutex_unlock(&inner); }'

# Without the headers of MPI or a GPU, the files that need them are left out.
without=/nowhere/
for file in mpi.h:mpi hip/hip_runtime_api.h:/backend_hip/ cublasLt.h:_cublaslt cblas.h:_cblas; do
    echo "#include <${file%:*}>" | check -x c - 2>/dev/null || without="$without|${file#*:}"
done
mapfile -t files < <(find "$srcdir/src" -name '*.c' ! -name '*_kernels.c' |
    grep -vE "$without" | sort)
check "${files[@]}" || failed=1
[ $failed = 1 ] || echo "${#files[@]} files, and 4 planted faults refused"
exit $failed
