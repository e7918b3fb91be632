#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Tests the checker of the rules. It plants one violation of each rule in a copy
# of the sources. The checker reports each one at its place, and no others.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"
copy=$tmp

# The files that the checker reads, but for what was built among them.
copy_sources() {
    (cd "$root" && find configure.ac Makefile.am m4/iris_*.m4 scripts src \
        include device tools examples tests bench -type f \
        \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.hip' -o -name '*.sh' -o -name '*.awk' \
        -o -name 'local.mk' -o -path 'scripts/*' -o -name '*.ac' \
        -o -name '*.am' -o -name '*.m4' \) -print0 |
        xargs -0 cp --parents -t "$copy") || exit 1
    chmod -R u+w "$copy"
    cd "$copy" || exit 1
}

# plant FILE EXPECTED TEXT: appends lines to a file, which may be new. EXPECTED
# is how the report of the first of them begins, behind FILE:LINE.
plant() {
    mkdir -p "$(dirname "$1")"
    [ -e "$1" ] || echo "/* SPDX-License-Identifier: MIT */" >"$1"
    echo "$1:$(($(wc -l <"$1") + 1)): $2" >>expected
    printf '%b\n' "$3" >>"$1"
}

# lines COUNT TEXT: so many lines.
lines() {
    local i
    for ((i = 0; i < $1; i++)); do
        printf '%s\n' "$2"
    done
}

plant_includes() {
    plant src/base/upward.c "base includes control" '#include "control/agree.h"'
    plant src/base/upward.h "base includes queue" '#include <queue/stream.h>'
    plant src/backend/to_sim.c "backend includes backend_sim" \
        '#include "backend_sim/sim.h"'
    plant src/context/to_sim.c "context includes backend_sim" \
        '#include "backend_sim/sim.h"'
    plant src/tensor/to_ccl.c "tensor includes ccl" '#include "ccl/ccl_types.h"'
    plant src/ccl/to_ops.h "ccl includes ops" '#include "ops/ops_types.h"'
    plant src/trace/to_job.c "trace includes job" '#include "job/init.h"'
    plant src/base/cycle_b.h "a cycle of includes, back to src/base/cycle_a.h" \
        '#include "base/cycle_a.h"'
    echo '#include "base/cycle_b.h"' >src/base/cycle_a.h
    plant src/heap/hip_inside.c "only backend_hip includes HIP" \
        '#include <hip/hip_runtime_api.h>'
    plant device/stdio.h "device/ includes only itself" '#include <stdio.h>'
    plant device/rng.h "device/ includes only itself" \
        '#include <Random123/philox.h>'
    plant device/users.h "only src/ includes iris/device/kernels/random.h" \
        '#include <iris/device/kernels/random.h>'
    plant include/iris/types.h "iris/types.h includes only" '#include <limits.h>'
    mkdir -p src/nowhere
    echo '#include "base/error.h"' >src/nowhere/other.c
    echo "src/nowhere/other.c:1: src/nowhere is no layer" >>expected
}

plant_backends() {
    plant src/backend_sim/sim_twin.c "backend_sim includes backend_hip" \
        '#include "backend_hip/hip.h"'
    plant src/backend_hip/hip_twin.c "backend_hip includes backend_sim" \
        '#include "backend_sim/sim.h"'
    mv src/backend_sim/init.c src/backend_sim/elsewhere.c
    echo "src/backend/backend.h:1: not both backends have a file for init" \
        >>expected
}

plant_calls() {
    plant src/heap/slots.c "calls through a backend's table" \
        '    backend->memory->commit(backend, at, bytes);'
    plant src/heap/table.c "knows a backend's table" \
        'const struct iris_memory_ops *ops;'
    plant src/context/by_name.c "names a backend" \
        'int is_hip(const char *name) { return strcmp(name, "hip") == 0; }'
    plant src/backend/registry.c "asks for one backend" \
        '/* */ int x = strcasecmp(name, "hip");'
    plant src/context/by_type.c "compares a backend's type" \
        'int is_sim = backend->type == &iris_i_sim_type;'
    plant src/queue/jump.c "a goto" '        goto close;'
    plant src/queue/by_table.c "compares a backend's type" \
        'int is_own = iris->ops != other->ops;'
}

plant_code() {
    plant src/base/compiler.c "asks which compiler" '#ifdef __clang__'
    plant device/builtin.h "a builtin, an intrinsic or asm" \
        'int x = __builtin_popcount(3);'
    plant src/base/words.c "one of the words" 'int iris_i_wire_open(void);'
    plant src/base/comment.c "one of the words" '/* Growth is slow. */'
    : >src/base/waste_bin.c
    echo "src/base/waste_bin.c:1: called by a word" >>expected
    plant include/iris/left.hpp "asks which compiler" '#ifdef __GNUC__'
    plant tools/left.c "a note of work left" '/* TO''DO: all */'
}

plant_once() {
    plant tools/escape.c "escapes JSON" 'printf("\\u%04x", c);'
    plant src/trace/loads.c "loads a module" 'void *more = dlopen(path, 1);'
    plant src/queue/fake.c "knows the tests' GPU" '#if IRIS_HIP_FAKE'
}

plant_lists() {
    printf '%s\n' '/** A call.' ' * lost' ' *  kept */' >include/iris/manual.h
    echo "include/iris/manual.h:2: a comment's line that has lost" >>expected
    printf '%s\n' '/* Statuses:' ' * IRIS_OK      fine,' ' *              and' \
        ' * lost' ' *' ' * end */' >src/base/list.h
    echo "src/base/list.h:4: a list's line that has lost" >>expected
}

plant_waits() {
    plant src/heap/naps.c "waits by itself" \
        '    nanosleep(&nap, NULL);\n    n = poll(&pollfd, 1, 0);'
    plant src/queue/yields.c "waits by itself" '        sched_yield();'
    plant src/control/polls.c "waits by itself" \
        '    ret = poll(pollfds, 2, 50);'
    plant src/ops/type.c "wait for_ops is not in tests" \
        'static const struct iris_wait_type for_ops = {.late = fail_late};'
    plant src/trace/spins.c "waits by itself" \
        '    while (!idle && iris_i_now_ns() < deadline) {'
    plant src/base/images.c "waits by itself" \
        '    pthread_cond_timedwait(&visit_ended, &images_lock, &end);'
}

plant_names() {
    plant src/heap/verb.c "static function take() is not a verb and a noun" \
        'static int take(int a)\n{\n}'
    plant src/heap/twin.c "flip_bits() is a static function of src/heap/memory.c, too" \
        'static int flip_bits(int a,\n                    int b)\n{\n}'
}

plant_sizes() {
    plant src/base/long.c "function of 63 lines" \
        "void iris_i_long(void)\n{\n$(lines 60 '    call();')\n}"
    plant src/base/many.c "iris_i_many() has 8 parameters" \
        "void iris_i_many(int a, int b, int c, int d, int e, int f, int g, int h);"
    { echo "void iris_i_deep(int a)" && echo "{" && lines 4 "    if (a) {" &&
        lines 4 "    }" && echo "}"; } >src/base/deep.c
    echo "src/base/deep.c:6: nesting 4" >>expected
    lines 1201 "" >src/base/file.c
    echo "src/base/file.c:1200: file of 1201 lines" >>expected
    mkdir -p src/base/part && lines 81 "# all" >src/base/part/local.mk
    echo "src/base/part/local.mk:80: fragment of 81 lines" >>expected
}

copy_sources
bash tests/check_structure.sh >before
plant_includes
plant_backends
plant_calls
plant_code
plant_once
plant_lists
plant_waits
plant_names
plant_sizes
bash tests/check_structure.sh >after && fail "planted faults, and exit status 0"

# Lines that the faults have added: those expected, and no others.
sort <(grep -E '^[^ ]+:[0-9]+: ' before) >before.sorted
sort <(grep -E '^[^ ]+:[0-9]+: ' after) | comm -13 before.sorted - >new
while read -r line; do
    grep -qF -- "$line" new || fail "not reported: $line"
done <expected
while read -r line; do
    while read -r want; do
        [ "${line#"$want"}" = "$line" ] || continue 2
    done <expected
    fail "reported, but not planted: $line"
done <new
[ $failed = 0 ] && echo "passed: $(wc -l <expected) planted faults found"
exit $failed
