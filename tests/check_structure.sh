#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Checks the project's rules: includes between folders, the places that test for
# compilers and use builtins, words in names, and the sizes of functions and
# files. Prints file:line and the fault. check_structure_faults.sh tests this.
# Lists of files are meant to split into words.
# shellcheck disable=SC2046,SC2086
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.." || exit 1

# The folders of src/ from low to high, commas between those of one height; and
# those that no other folder includes.
layers="base backend backend_sim,backend_hip control report heap check queue,transport context \
tensor,ccl,trace ops job"
islands="backend_sim backend_hip"
if [ "${1-}" = --layers ]; then
    tr ' ,' '\n' <<<"$layers"
    exit
fi
# Words that no name and no comment in src/ has: the field has better ones
# (docs/architecture.md).
forbidden="wire waste foreign adopt growth"
# Rules that are reported and do not fail yet.
pending=""

found=$(mktemp)
all=$(mktemp)
trap 'rm -f "$found" "$all"' EXIT

sources() { # FOLDER...: the C files below
    find "$@" \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.hip' \) -type f \
        2>/dev/null | sort
}

# Prints, for the lines on stdin (file:line:text), what is wrong with them.
because() {
    sed "s/^\([^:]*:[0-9]*\):.*/\1: $1/"
}

# Includes of the given files, as file:line:name.
includes() {
    [ $# = 0 ] || grep -HnE '^[[:space:]]*#[[:space:]]*include' "$@" |
        sed -E 's/^([^:]*:[0-9]*):[^<"]*([<"][^>"]*[>"]).*/\1:\2/'
}

# Lines of the given files that match a pattern outside comments and, unless
# `quotes` is 1, outside quotes.
code_lines() { # PATTERN FILE...
    local pattern=$1
    shift
    [ $# = 0 ] || awk -v pattern="$pattern" -v quotes="${quotes-0}" '
        FNR == 1 { comment = 0 }
        {
            code = $0
            if (comment) {
                if (!sub(/^.*\*\//, "", code))
                    next
                comment = 0
            }
            gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", code)
            if (!quotes)
                gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
            if (sub(/\/\*.*/, "", code))
                comment = 1
            sub(/\/\/.*/, "", code)
            if (code ~ pattern)
                print FILENAME ":" FNR ":" $0
        }' "$@"
}

# What programs include of device/ needs nothing else; kernels/random.h is
# compiled into the library only, with Random123.
check_includes() {
    includes $(sources src include | grep -v '^src/backend_hip/') |
        grep -E '[<"](hip/|cuda|rocm)' |
        because "only backend_hip includes HIP or CUDA headers"
    includes $(sources device) |
        grep -vE ':<(stdint\.h|stddef\.h|iris\/types\.h|iris\/device\/[a-z0-9_/]+\.h)>$|include IRIS_TARGET_HEADER$' |
        grep -v '^device/kernels/random\.h:[0-9]*:<Random123/philox\.h>$' |
        because "device\\/ includes only itself, stdint, stddef, iris\\/types.h"
    includes $(sources include device bench tools examples) |
        grep -E '<iris/device/kernels/random\.h>' |
        because "only src\\/ includes iris\\/device\\/kernels\\/random.h"
    includes include/iris/types.h | grep -vE ':<std(int|def)\.h>$' |
        because "iris\\/types.h includes only stdint and stddef"
}

check_layers() {
    includes $(sources src) | awk -v rule=layers -v islands="$islands" \
        -v layers="$layers" -f "$here/check_layers.awk"
}

check_cycles() {
    includes $(sources src include device) |
        awk -v rule=cycles -f "$here/check_layers.awk"
}

# The tables of a backend are called through by the wrappers only.
check_slots() {
    local files
    files=$(sources src | grep -v '^src/backend/calls\.h$')
    code_lines '(->|[.])(device|memory|queue)->[a-z_]+ *[(]' $files |
        because "calls through a backend's table; only src\\/backend\\/calls.h does"
    code_lines 'struct iris_(device|memory|queue)_ops([^a-z_]|$)' \
        $(grep -v '^src/backend[_/]' <<<"$files") |
        because "knows a backend's table; the wrappers of backend\\/calls.h are there"
}

# Which backend an instance has is no one's business: the registry finds them by
# name, placement chooses.
check_policy() {
    local files
    files=$(sources src | grep -v '^src/backend_hip/')
    quotes=1 code_lines '"hip"' \
        $(grep -v '^src/backend/registry\.c$' <<<"$files") |
        because "names a backend; only the registry does"
    quotes=1 code_lines 'cmp *[(].*"hip"' src/backend/registry.c |
        because "asks for one backend"
    code_lines '[!=]= *&?iris_i_[a-z0-9]+_(type|ops|device|memory|queue)([^a-z_]|$)|iris_i_[a-z0-9]+_(type|ops|device|memory|queue) *[!=]=|(->|[.])ops *[!=]= *[^N ]|(backend|instance|gpu|sim|hip)(->|[.])(type|device|memory|queue) *[!=]= *[^N ]|[!=]= *[a-z]*(backend|instance|gpu|sim|hip)(->|[.])type([^a-z_]|$)' \
        $files | because "compares a backend's type or table"
}

check_compilers() {
    local files
    files=$(sources device src include tools examples)
    code_lines '__(HIPCC|CUDACC|clang|GNUC|NVCC|INTEL_COMPILER|SANITIZE_[A-Z]+|has_[a-z_]+|HIP_(PLATFORM|DEVICE_COMPILE)[A-Z_]*|CUDA_ARCH__)([^A-Za-z]|$)' \
        $(grep -vE '^(device/core/(compat|target_[a-z]+)\.h|examples/15_cpp\.cpp)$' <<<"$files") |
        because "asks which compiler this is; only device\\/core\\/compat.h and target_\\*.h may"
    code_lines '(^|[^A-Za-z0-9_])(__builtin_|__atomic_|__sync_|__hip_|__threadfence|__syncthreads|_mm_|__(asm|asm__)|asm([^A-Za-z0-9_]|$))' \
        $(grep -vE '^(device/(core/(atomic|half|vector)|wg/mma)|src/base/processor)\.h$|^src/check/race_interpose\.c$' <<<"$files") |
        grep -v '^device/core/compat\.h:[0-9]*:.*__builtin_expect(' |
        because "a builtin, an intrinsic or asm; only device\\/core\\/atomic.h, half.h, mma.h, vector.h, base\\/processor.h have them, and check\\/race_interpose.c, for symbols that the C library has"
}

check_sizes() {
    local file
    wc -l $(sources src include device tools examples tests bench) /dev/null |
        awk '$1 > 1200 && $2 != "total" {
            print $2 ":1200: file of " $1 " lines, more than 1200" }'
    find src include device tools examples tests bench -name local.mk | sort |
        while read -r file; do
            awk 'END { if (NR > 80)
                print FILENAME ":80: fragment of " NR " lines, more than 80"
            }' "$file"
        done
    awk -v count_params=1 -f "$here/check_structure.awk" $(sources src)
    awk -v count_params=0 -f "$here/check_structure.awk" \
        $(sources include device tools examples tests bench)
}

# Machinery that there is once.
check_once() {
    quotes=1 code_lines 'u%04x' $(sources src tools bench |
        grep -v '^src/base/file\.c$') |
        because "escapes JSON; only src\\/base\\/file.c does"
    code_lines '(^|[^a-z_])dlopen *[(]' \
        $(sources src tools | grep -v '^src/base/loader\.c$') |
        because "loads a module; only src\\/base\\/loader.c does"
    code_lines 'IRIS_HIP_FAKE' \
        $(sources src tools device | grep -v '^src/backend_hip/') |
        because "knows the tests' GPU; only backend_hip may"
}

check_lists() {
    awk -f "$here/check_lists.awk" $(sources src include device tools bench)
}

check_twins() {
    [ -d src/backend_hip ] || return
    # The subjects of the interface; the rest is a backend's own affair.
    local noun
    for noun in fault heap init stream; do
        [ -e src/backend_sim/$noun.c ] && [ -e src/backend_hip/$noun.c ] ||
            echo "src/backend/backend.h:1: not both backends have a file for $noun"
    done
}

# Static functions are a verb and a noun, and no two files of a folder have the same:
# a name in a stack trace then is one function.
check_names() {
    awk '
        FNR == 1 { head = ""; folder = FILENAME; sub(/\/[^\/]*$/, "", folder) }
        /^{$/ && head ~ /static .*\(/ {
            name = head
            sub(/\(.*/, "", name)
            sub(/.*[ *]/, "", name)
            where = FILENAME ":" line
            if (name !~ /_/)
                print where ": static function " name "() is not a verb and a noun"
            if (!((folder, name) in first))
                first[folder, name] = FILENAME
            else if (first[folder, name] != FILENAME)
                print where ": " name "() is a static function of " \
                    first[folder, name] ", too"
        }
        /^}|[;}]$|^[ \t]*[\/#*]|^$/ { head = ""; next }
        { line = head == "" ? FNR : line; head = head " " $0 }' \
        $(sources src tools bench | grep "[.]c$")
}

check_words() {
    local pattern
    pattern="(^|[^A-Za-z])($(echo $forbidden | tr ' ' '|'))([^A-Za-z]|$)"
    grep -HniE "$pattern" $(sources src) |
        because "one of the words that are not ours: $forbidden"
    sources src | grep -iE "$pattern" |
        sed "s/$/:1: called by a word that is not ours: $forbidden/"
}

check_todo() {
    local word='TO''DO|FIX''ME|X''XX'
    grep -HnEw "$word" $(sources src include device tools examples tests bench) \
        configure.ac Makefile.am m4/iris_*.m4 scripts/* tests/*.sh |
        because "a note of work left undone"
}

# Sleeps outside base/host_wait.c, as FILE CALL: the reason. Whatever else waits has a
# deadline, sees deaths and interrupts, and warns.
may_sleep="
src/base/base.h iris_i_futex_wait: the sleep of an agreement's wait
src/base/ticks.c nanosleep: keeps two readings of a counter apart
src/base/images.c pthread_cond_wait: for a visit by another thread, as a lock
src/trace/export.c pthread_cond_wait: for a file that another thread writes
src/report/incident.c sem_wait: a thread that has nothing to do until a signal
src/job/spawn.c poll: a parent, for its children
src/backend/workgroup.c sched_yield: polls outside a kernel, which have no rank
src/backend_sim/stream.c sched_yield: a worker, before it sleeps
src/backend_sim/stream.c pthread_cond_wait: workers, for a kernel, its end, a command
src/backend_sim/stream.c pthread_cond_timedwait: the same; a wait's sleep
src/check/weak_schedule.c pthread_cond_timedwait: a workgroup, for its turn
src/control/table.c iris_i_futex_wait: a wait's sleep
src/control/control.c poll: a wait's sleep
src/control/hub.c iris_i_futex_wait: a thread, for something to send
src/control/hub.c poll: a thread that serves connections until it is told to end
src/transport/bell.c ppoll: the same, the proxy
src/transport/channel_socket.c epoll_wait: the same
src/transport/engine_ucx.c poll: the same
src/base/gate.c epoll_wait: with no time, it only looks
src/check/order.c sched_yield: a lock of a few instructions, given up after some time
src/transport/steps.c sched_yield: the same, before it sleeps
"

# A poll() of no time only looks.
check_waits() {
    local calls='nanosleep|clock_nanosleep|usleep|sched_yield|p?poll|epoll_wait|pthread_cond_(timed)?wait|sem_(timed)?wait|iris_i_futex_wait'
    code_lines "(^|[^A-Za-z0-9_])($calls) *[(]|(while|for) *[(].*iris_i_now_ns" \
        $(sources src | grep -v '^src/base/host_wait\.c$') |
        grep -v 'poll(.*, 0)' |
        grep -vE -f <(sed -nE 's/^([^ ]+) ([a-z_]+): .*/^\1:[0-9]+:.*[^a-z_]\2[(]/p' <<<"$may_sleep") |
        because "waits by itself; loops that wait use base\/wait.h"
    code_lines 'struct iris_wait_type [a-z_]+ = ' $(sources src) |
        while IFS=: read -r file line text; do
            name=$(sed -E 's/.*iris_wait_type ([a-z_]+).*/\1/' <<<"$text")
            grep -qE "^ \* $file .*\b$name\b.*: " tests/context/test_waits.c ||
                echo "$file:$line: wait $name is not in tests/context/test_waits.c"
        done
}

# What a function has made when it fails goes by a function that closes it.
check_undo() {
    code_lines '(^|[^A-Za-z0-9_])goto[^A-Za-z0-9_]' $(sources src) |
        because "a goto; errors are undone by a function that closes what is half made"
}

# How many of the lines of .c files are comments: information, not a rule. About
# a tenth is meant, 5 to 20 % is fine.
comment_share() {
    awk '
        FNR == 1 { split(FILENAME, parts, "/"); folder = parts[2]; comment = 0 }
        { lines[folder]++ }
        comment || /^[ \t]*\/[*\/]/ { comments[folder]++ }
        /\/\*/ { comment = 1 }
        /\*\// { comment = 0 }
        END {
            for (folder in lines)
                printf "comments in src/%s: %d %%\n", folder,
                       100 * comments[folder] / lines[folder] + 0.5
        }' $(sources src | grep '\.c$') | sort
}

for rule in includes layers cycles slots policy compilers sizes once lists \
    twins names words waits undo todo; do
    check_$rule >"$found"
    case " $pending " in
    *" $rule "*)
        cat "$found"
        [ ! -s "$found" ] ||
            echo "rule $rule: $(wc -l <"$found") violations; not held yet" ;;
    *) tee -a "$all" <"$found" ;;
    esac
done
comment_share
if [ -s "$all" ]; then
    echo "$(wc -l <"$all") violations"
    exit 1
fi
echo "structure: nothing to complain about"
