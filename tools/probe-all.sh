#!/bin/bash
# SPDX-License-Identifier: MIT
#
# iris probe --all, which starts it: probes in each way of making ranks and heaps.
# A run is a place (two ranks on one GPU, or a rank on each), threads or processes,
# and a kind of memory; the last one comes after another library, of PyTorch if it is
# here. Each is a process of `iris probe --tabs` with the settings of
# the run and no others. One that does not end in time is killed, the step that it
# was in is noted as hung, and another process goes on behind that step.
#
# probe-all IRIS GPUS LIMIT BYTES JSON LOGS STACKS [RUN]...; an empty word is the default.
set -u -o pipefail
iris=$1 limit_gpus=$2 limit=$3 bytes=$4 json=$5 logs=$6 stacks=$7
shift 7
only=$*
most=600 # seconds after which no run is started again
restarts=2 # of a run that did not come to its end
checks="context flag data atomics copy streams library tiles bandwidth"
if [ -z "$logs" ]; then
    logs=$(mktemp -d)
    trap 'rm -rf "$logs"' EXIT
fi

die() {
    echo "iris probe: $*" >&2
    exit 1
}

# place-ranks-memory: two ranks on one GPU, or all GPUs.
list_runs() {
    local place ranks memory
    for place in one all; do
        for ranks in threads processes; do
            for memory in fine uncached vmem; do
                echo "$place-$ranks-$memory"
            done
        done
    done
    echo all-threads-rccl
}

# The RCCL or NCCL that PyTorch brings, else the loader's. It is loaded with what it
# needs, the GPU's runtime, which Iris then uses, too.
find_rccl() {
    local file
    file=$(timeout 20 python3 -c 'import glob, importlib.util as find
for folder in (find.find_spec("torch") or find.find_spec("nvidia")).submodule_search_locations:
    for name in ("/lib/librccl.so*", "/../nvidia/nccl/lib/libnccl.so*", "/nccl/lib/libnccl.so*"):
        for file in sorted(glob.glob(folder + name)):
            print(file)' 2>/dev/null | head -n 1)
    [ -z "$file" ] || { echo "$file" && return; }
    if [ "$platform" = amd ]; then echo librccl.so.1; else echo libnccl.so.2; fi
}

# No settings of the caller's count, nor those of a launcher that it runs under,
# but for the log and the deadlines.
clean_environment() {
    local name
    for name in $(compgen -e); do
        case $name in
        IRIS_MODULE_DIR | IRIS_LOG_LEVEL | IRIS_TIMEOUT_MS | IRIS_DEVICE_TIMEOUT_MS) ;;
        IRIS_TEST_*) ;;
        IRIS_* | OMPI_COMM_* | PMI_* | PMIX_* | RANK | WORLD_SIZE | LOCAL_RANK)
            unset "$name" ;;
        esac
    done
    export IRIS_TIMEOUT_MS=${IRIS_TIMEOUT_MS:-20000}
    export IRIS_DEVICE_TIMEOUT_MS=${IRIS_DEVICE_TIMEOUT_MS:-2000}
}

# Runs a command for $limit seconds at most: bounded STACKS COMMAND... What the threads
# of one that takes longer are doing goes to the file STACKS; the status is then 124.
bounded() {
    local file=$1 pid ret task
    shift
    rm -f "$file"
    setsid "$@" &
    pid=$!
    if timeout "$limit" tail --pid=$pid -f /dev/null; then
        wait $pid
        return
    fi
    {
        [ -z "$stacks" ] || "$stacks" $pid
        for task in /proc/"$pid"/task/*; do
            echo "$(cat "$task/comm") wchan: $(cat "$task/wchan")"
        done
    } >"$file" 2>/dev/null
    kill -KILL -- -$pid
    wait $pid 2>/dev/null
    return 124
}

# ---- One run ----

# Sets $ranks_option, and the library's settings, by the run's name.
settings_of() { # RUN
    local place ranks memory
    IFS=- read -r place ranks memory <<<"$1"
    export IRIS_SPAWN=$ranks IRIS_ALLOCATOR=pool IRIS_BACKEND=hip
    unset IRIS_HIP_MEMORY IRIS_SIM_DEVICE # vmem has what is best of it
    options="--ranks $gpus --rounds 100"
    if [ "$place" = one ]; then # processes may have the GPU in turns
        export IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu
        options="--ranks 2 --rounds 10"
    fi
    case $memory in
    rccl) options+=" --after $(find_rccl)" ;;
    vmem) export IRIS_ALLOCATOR=vmem ;;
    *) export IRIS_HIP_MEMORY=$memory ;;
    esac
}

# Why there is no memory of the kind that a run asks for; nothing if there is.
lacks_memory() { # RUN ERRORS
    case $1 in
    *-uncached) grep -am 1 -E 'no heap of .*hipError(InvalidValue|NotSupported)' "$2" ;;
    *-vmem) grep -am 1 'no vmem' "$2" ;;
    *-rccl) grep -am 1 'after: .*no such library' "$2" ;;
    *) return 1 ;;
    esac
}

not_available() { # WHY
    printf 'start\t-\t-\tnot available\t0\t%s\n' "$1"
}

# Whether the program has come to its end; then its status tells of bad verdicts.
ended() { # FILE
    [ "$(tail -n 1 "$1")" = end ]
}

# Adds the line of the step in which the program ended: STATUS FILE ERRORS.
# Gives the step after it; nothing if it had not begun any.
note_end() {
    local verdict=failed why last
    [ "$1" != 124 ] && [ "$1" != 137 ] || verdict=hung
    why=$(grep -a 'iris probe: ' "$3" | tail -n 1 | tr -c '[:print:]\n' '?')
    [ "$verdict" != hung ] ||
        why="the process did not end by itself; its stacks are in the logs"
    last=$(grep -a '^begin' "$2" | tail -n 1)
    printf '%s\t%s\t0\t%s\n' \
        "$(cut -s -f 3-5 <<<"${last:-$(printf '\t\tstart\t-\t-')}")" "$verdict" \
        "${why:-status $1}" >>"$2"
    cut -s -f 2 <<<"$last"
}

# Lets programs see two of the GPUs only; false if that cannot be said.
show_only() { # FIRST SECOND
    local names
    if [ -n "${FAKEHIP_DEVICES-}" ]; then # as tests/fakehip has it
        export FAKEHIP_FIRST=$1 FAKEHIP_DEVICES=2
        [ "$2" = $(($1 + 1)) ]
    else
        IFS=, read -ra names <<<"${HIP_VISIBLE_DEVICES:-${CUDA_VISIBLE_DEVICES-}}"
        export HIP_VISIBLE_DEVICES=${names[$1]:-$1},${names[$2]:-$2}
        export CUDA_VISIBLE_DEVICES=$HIP_VISIBLE_DEVICES
    fi
}

# Where all GPUs together cannot start: every two of them by themselves. Their
# lines have the GPUs' numbers.
pairs_alone() { # RUN
    local first second pair=$logs/probe-$1.pair ret
    [[ $1 = all-* ]] && [ "$gpus" -gt 2 ] || return 0
    for ((first = 0; first < gpus; first++)); do
        for ((second = first + 1; second < gpus; second++)); do
            [ $SECONDS -lt $most ] || return 0
            ( # what it shows is for this program only
                show_only $first $second || exit 0
                bounded "$logs/probe-$1.$first-$second.stacks" \
                    "$iris" probe --tabs --ranks 2 --bytes "${bytes:-67108864}" \
                    >"$pair" 2>"$pair.log"
                ret=$?
                ended "$pair" || note_end $ret "$pair" "$pair.log" >/dev/null
                cat "$pair.log" >>"$logs/probe-$1.log"
                sed -E "s/^([a-z]+)\t(0\t1|-\t-)\t/\1\t$first\t$second\t/" "$pair" \
                    >>"$logs/probe-$1.tsv"
            )
        done
    done
    rm -f "$pair" "$pair.log"
}

# Writes $logs/probe-RUN.tsv: a line of each step, or of why there is none.
run_probe() { # RUN
    local lines=$logs/probe-$1.tsv errors=$logs/probe-$1.log options why
    local ret=1 from=0 try
    settings_of "$1"
    rm -f "$logs/probe-$1".*.stacks
    : >"$lines"
    : >"$errors"
    if [[ $platform-$1 = nvidia-*-uncached ]]; then
        not_available "NVIDIA GPUs have one kind of memory" >"$lines"
        return
    fi
    for ((try = 0; try <= restarts; try++)); do
        # shellcheck disable=SC2086 # options are words
        bounded "$logs/probe-$1.$try.stacks" "$iris" probe --tabs $options \
            --bytes "${bytes:-67108864}" --from $from >>"$lines" 2>>"$errors"
        ret=$?
        if why=$(lacks_memory "$1" "$errors"); then
            not_available "$why" >"$lines"
            return
        fi
        if ended "$lines"; then # what the library warns of is worth a line
            why=$(grep -am 1 -F '[Iris]' "$errors") &&
                printf 'note\t-\t-\tok\t0\t%s\n' "$why" >>"$lines"
            return
        fi
        from=$(note_end $ret "$lines" "$errors")
        [ -n "$from" ] || { pairs_alone "$1" && return; }
        from=$((from + 1))
        [ $SECONDS -lt $most ] || break
    done
    printf 'rest\t-\t-\tnot run\t0\tthe run did not come to its end\n' >>"$lines"
}

# Rates that are far below others become the verdict "slow": of a run of all GPUs a
# pair with less than half of what the fastest has, or half of a link's known rate; and
# a stream's copy or kernels with less than a quarter of the other's. Fake GPUs have
# no rates.
judge_rates() { # RUN
    local lines=$logs/probe-$1.tsv link=0
    [[ $1 = all-* ]] || return 0
    [ -z "${FAKEHIP_DEVICES-}" ] || return 0
    [[ $info != *MI300X* ]] || link=48 # GB/s, docs/amd.md
    awk -F '\t' -v OFS='\t' -v link=$link '
        function max(a, b) { return a > b ? a : b }
        # "stream:47.1 1:12.2 4:40 ..."
        function read_rates(    n, i, rates) {
            n = split($6, rates, /[ :]/)
            stream = rates[2] + 0
            kernels = 0
            for (i = 4; i <= n; i += 2)
                kernels = max(kernels, rates[i] + 0)
            best = max(stream, kernels)
        }
        { rated = $1 == "bandwidth" && $4 == "ok" && $6 != "" }
        rated { read_rates() }
        FNR == NR {
            if (rated && best > fastest) {
                fastest = best
                where = $2 "-" $3
            }
            next
        }
        rated {
            why = best < fastest / 2 ? best " GB/s, but GPUs " where " have " fastest : \
                best < link / 2 ? best " GB/s of a link that has " link : \
                max(stream, kernels) > 4 * (stream < kernels ? stream : kernels) ? \
                "a copy of a stream has " stream " GB/s, kernels " kernels : ""
            if (why != "") {
                $4 = "slow"
                $6 = why "; try iris info and rocm-smi --showtopo, HSA_ENABLE_SDMA=0 for copies; " $6
            }
        }
        { print }' "$lines" "$lines" >"$lines.judged" && mv "$lines.judged" "$lines"
}

# All lines of all runs, with the run's name before them.
all_lines() {
    local run
    for run in $runs; do
        grep -av -e '^begin' -e '^end' "$logs/probe-$run.tsv" | sed "s/^/$run\t/"
    done
}

write_json() {
    {
        printf '{"gpus": %d, "seconds": %d, "date": "%s",\n' "$gpus" "$SECONDS" "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        printf ' "info": %s,\n "runs": [' \
            "${info:-null}"
        all_lines | LC_ALL=C awk -F '\t' '
            function text(s) {
                gsub(/[^ -~]/, "?", s)
                gsub(/["\\]/, "\\\\&", s)
                return "\"" s "\""
            }
            function rank(s) { return s ~ /^[0-9]+$/ ? s : "null" }
            $1 != run {
                printf "%s\n  {\"run\": %s, \"steps\": [", run == "" ? "" : "]},",
                    text($1)
                run = $1
                separator = ""
            }
            {
                printf "%s\n    {\"check\": %s, \"first\": %s, \"second\": %s, \"verdict\": %s, \"ms\": %s, \"text\": %s}",
                    separator, text($2), rank($3), rank($4), text($5), $6 + 0,
                    text($7)
                separator = ","
            }
            END { if (run != "") printf "]}" }'
        printf ']}\n'
    } >"$json" || die "cannot write $json"
}

# The tables, and what is red in a line each; the status says whether any is. Lines:
# run, check, two ranks, verdict, milliseconds, text, with tabs between them.
show() {
    local colour=0
    [ ! -t 1 ] || [ -n "${NO_COLOR-}" ] || colour=1
    all_lines | LC_ALL=C awk -F '\t' -v colour=$colour -v gpus="$gpus" -v checks="$checks" '
BEGIN {
    # From good to bad; what has come to no end is worst.
    count = split("ok,not available,slow,left out,no access,wrong,failed,hung,not run", names, ",")
    for (i = 1; i <= count; i++)
        badness[names[i]] = i
    num_checks = split(checks, check, " ")
}

function is_red(verdict) {
    return badness[verdict] > 3
}

function worse(one, other) {
    return badness[one] > badness[other] ? one : other
}

# In so many columns, in the colour of the verdict.
function paint(text, verdict, columns) {
    text = sprintf("%-" columns "s", text)
    if (!colour || verdict == "")
        return text
    return "\033[" (is_red(verdict) ? 31 : badness[verdict] == 1 ? 32 : 33) "m" text "\033[0m"
}

$2 == "note" {
    note[++num_notes] = $1 ": note: " $7
    next
}

{
    if (!($1 in run_number)) {
        run_number[$1] = ++num_runs
        run_name[num_runs] = $1
    }
    key = $1 SUBSEP $2
    total[key]++
    bad[key] += $5 != "ok"
    worst[key] = key in worst ? worse($5, worst[key]) : $5
    if ($2 == "start" || $2 == "rest")
        whole[$1] = $5
    if ($2 == "start" && $3 == "-" && $1 ~ /^all-/ && is_red($5))
        together[$1] = unpaired[$1] = $5
    if (is_red($5))
        red[++num_red] = $1 ": " $2 ($3 == "-" ? "" : $3 == "all" ? " of all" : " " $3 "-" $4) ": " $5 ($7 == "" ? "" : ": " $7)
    if ($5 == "slow")
        slow[++num_slow] = $1 ": " $2 " " $3 "-" $4 ": slow: " $7
    if ($5 == "not available")
        absent[$1] = $7
}

# A pair of GPUs in the runs that have one for each rank.
$1 ~ /^all-/ && $3 ~ /^[0-9]+$/ && $5 != "not available" {
    delete unpaired[$1] # each pair was tried alone
    pair = $3 SUBSEP $4
    pair_verdict[pair] = pair in pair_verdict ? worse($5, pair_verdict[pair]) : $5
}

# "stream:47.1 1:12.2 4:40 ...": of the pair whose widest grid is slowest.
$2 == "bandwidth" && ($5 == "ok" || $5 == "slow") && $7 != "" {
    sub(/.*; stream:/, "stream:", $7)
    n = split($7, rates, /[ :]/)
    if (!($1 in slowest) || rates[n] + 0 < slowest[$1] + 0) {
        slowest[$1] = rates[n]
        shown[$1] = sprintf("%d-%d", $3, $4)
        for (i = 3; i < n; i += 2)
            shown[$1] = shown[$1] sprintf("  %s: %.1f", rates[i], rates[i + 1])
        shown[$1] = shown[$1] sprintf("  stream: %.1f", rates[2])
    }
}

function row(name,    i, key, verdict, line) {
    line = sprintf("%-24s", name)
    if (name in absent)
        return line paint("not available", "not available", 14) substr(absent[name], 1, 90)
    for (i = 1; i <= num_checks; i++) {
        key = name SUBSEP check[i]
        verdict = key in worst ? worst[key] : name in whole ? whole[name] : "not run"
        line = line paint(verdict (key in worst && total[key] > 1 && bad[key] > 0 ? " " bad[key] "/" total[key] : ""), verdict, 16)
    }
    if (name in together && !(name in unpaired))
        line = line paint("(all together: " together[name] ")", together[name], 1)
    return line
}

# A run that cannot even start counts for every pair.
function matrix(    i, j, name, none, verdict, line) {
    for (name in unpaired)
        none = worse(unpaired[name], none == "" ? "ok" : none)

    print "\nGPUs, the worst of all runs"
    line = "     "
    for (j = 1; j < gpus; j++)
        line = line sprintf("%-12d", j)
    print line
    for (i = 0; i < gpus - 1; i++) {
        line = sprintf("%-5d", i)
        for (j = 1; j < gpus; j++) {
            verdict = (i, j) in pair_verdict ? pair_verdict[i, j] : ""
            verdict = none == "" ? verdict : worse(verdict, none)
            line = line (j <= i ? sprintf("%-12s", ".") : paint(verdict == "" ? "-" : verdict, verdict, 12))
        }
        print line
    }
}

END {
    line = sprintf("%-24s", "run")
    for (i = 1; i <= num_checks; i++)
        line = line sprintf("%-16s", check[i])
    print line
    for (i = 1; i <= num_runs; i++)
        print row(run_name[i])
    if (gpus > 1 && gpus <= 8) # a screen is not wider
        matrix()
    print "\nGB/s by workgroups, of the pair that is slowest at the most of them"
    for (i = 1; i <= num_runs; i++)
        if (run_name[i] in shown)
            printf "%-24s%s\n", run_name[i], shown[run_name[i]]
    if (num_red + num_notes + num_slow > 0)
        print ""
    for (i = 1; i <= num_notes && i <= 4; i++)
        print substr(note[i], 1, 240)
    for (i = 1; i <= num_slow && i <= 6; i++)
        print paint(substr(slow[i], 1, 240), "slow", 1)
    for (i = 1; i <= num_red && i <= 12; i++)
        print paint(substr(red[i], 1, 240), "hung", 1)
    if (num_red > 12)
        print "and " num_red - 12 " more"
    if (num_red + num_slow == 0)
        print "all is well"
    if (num_slow > 0)
        print num_slow " slow"
    if (num_red > 0)
        print num_red " failed"
    exit num_red > 0
}'
}

for run in $only; do
    # (A pipe into grep -q fails where grep ends first.)
    grep -qx -e "$run" <<<"$(list_runs)" || {
        echo "iris probe: --only=$run: the runs are $(list_runs | tr "\n" " ")" >&2
        exit 2
    }
done
[ -z "$json" ] || : >"$json" || die "cannot write $json"
mkdir -p "$logs" && [ -w "$logs" ] || die "cannot write to $logs"
clean_environment
info=$(IRIS_BACKEND=hip timeout -k 5 60 "$iris" info --json)
platform=amd
[[ $info != *'"runtime": "CUDA'* ]] || platform=nvidia
gpus=$(sed -nE 's/.*"name": "hip".*"num_devices": ([0-9]+).*/\1/p' <<<"$info")
[ "${gpus:-0}" != 0 ] || die "there is no GPU; iris info says why"
[ "${limit_gpus:-0}" -le "$gpus" ] || die "--gpus=$limit_gpus, but this machine has $gpus"
gpus=${limit_gpus:-$gpus}
[ -n "$only" ] || rm -f "$logs"/probe-*.{tsv,log,stacks}
runs=${only:-$(list_runs)}
limit=${limit:-$((40 + gpus * gpus / 20))} # every pair takes its time
[ "$gpus" -gt 1 ] || runs=$(grep -o 'one-[a-z-]*' <<<"$runs")
[ -n "$runs" ] || die "with one GPU there is no run $only"
SECONDS=0
for run in $runs; do
    [ ! -t 2 ] || printf '\r%-30s' "$run" >&2
    run_probe "$run"
    judge_rates "$run"
done
[ ! -t 2 ] || printf '\r%-30s\r' '' >&2
[ -z "$json" ] || write_json
echo "$gpus GPU(s), $SECONDS s"
show
