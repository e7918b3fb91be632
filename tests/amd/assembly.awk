# SPDX-License-Identifier: MIT
#
# Reads assembly for AMD GPUs: makes a list of events of each kernel and hands
# it to check_kernel() of rules.awk. An event is what touches memory, orders it
# or leads elsewhere: kinds[i], its instruction in texts[i], its cache bits in
# bits[i], and all of these, as rules match it, in events[i]. Of a packet
# kernel's load of two registers place[i] is the address; looked_at[i, 0] and
# looked_at[i, 1] are there if an instruction behind it reads that one, and
# compared[i, 0], compared[i, 1] if it compares all of it.

# One of them happened in this kernel. Two invalidations in a row are one.
function event(kind, text) {
    if (kind == "invalidate" && kinds[count] == kind)
        text = texts[count--] "+" text
    kinds[++count] = kind
    texts[count] = text
    bits[count] = kind ~ /^(load|store|atomic)$/ ? cache_bits(kind) : ""
    events[count] = kind " " text (bits[count] == "" ? "" : " " bits[count])
}

# What the access says to caches. Of an update sc0, or glc, says only that the
# old value comes back.
function cache_bits(kind,    i, given, names, found) {
    for (i = 2; i <= NF; i++)
        given[$i]
    split("sc0 sc1 nt glc slc scc", names, " ")
    for (i = 1; i <= 6; i++)
        if ((names[i] in given) && !(kind == "atomic" && names[i] ~ /sc0|glc/))
            found = found (found == "" ? "" : " ") names[i]
    return found
}

# A load of two registers: what it says of them, and that they are loaded.
function load_pair(    first, offset) {
    if ($1 !~ /_dwordx2$/ || $2 !~ /^v\[/)
        return
    first = substr($2, 3) + 0
    loaded[first] = count " 0"
    loaded[first + 1] = count " 1"
    offset = $0 ~ /offset:/ ? $0 : ""
    sub(/.*offset:/, "", offset)
    place[count] = $3 " " $4 " " (offset + 0)
}

# Registers that a load filled and this instruction reads; its first operand is
# what it writes, unless it stores.
function look_at(    n, i, j, operands, last) {
    n = split($0, operands, /[ \t,]+/)
    for (i = $1 ~ /^(global_store|v_cmp)/ ? 2 : 3; i <= n; i++)
        if (match(operands[i], /v\[?[0-9]/)) {
            j = substr(operands[i], RSTART + 1)
            sub(/^\[/, "", j)
            last = j
            if (!sub(/^[0-9]+:/, "", last))
                last = j
            for (j += 0; j <= last + 0; j++)
                if (j in loaded) {
                    split(loaded[j], one_load, " ")
                    looked_at[one_load[1], one_load[2]]
                    if ($1 ~ /^v_cmp.*_[ui](32|64)(_e..)?$/)
                        compared[one_load[1], one_load[2]]
                }
        }
    if ($1 !~ /^(global_store|v_cmp|s_)/ && match(operands[2], /^v\[?[0-9]/)) {
        j = substr(operands[2], 2)
        sub(/^\[/, "", j)
        last = j
        if (!sub(/^[0-9]+:/, "", last))
            last = j
        for (j += 0; j <= last + 0; j++)
            delete loaded[j]
    }
}

# The position of the first event after `from` that matches, or 0.
function next_of(pattern, from,    i) {
    for (i = from + 1; i <= count; i++)
        if (events[i] ~ pattern)
            return i
    return 0
}

# Kernels whose lanes share memory of the workgroup.
function shares() {
    return kernel ~ /^(api_lanes|(api|code)_(product|ordered))_/
}

# Kernels of collectives by packets.
function is_packets() {
    return kernel ~ /packet(_|$)|_once_/
}

# How many events match.
function number_of(pattern,    i, found) {
    for (i = 1; i <= count; i++)
        found += events[i] ~ pattern
    return found + 0
}

# The texts of one kind between two events, joined with a comma.
function between(kind, from, to,    i, found) {
    for (i = from + 1; i < to; i++)
        if (kinds[i] == kind)
            found = found (found == "" ? "" : ", ") texts[i]
    return found
}

# Whether some way from event `from` (0: the kernel's start) comes to what
# matches `goal` before it comes to what matches `stop`: where that is, or 0.
# What matches both stops.
function reaches(from, goal, stop,    seen) {
    return way(from + 1, goal, stop, seen)
}

function way(i, goal, stop, seen,    at) {
    for (; i <= count && !(i in seen); i++) {
        seen[i]
        if (events[i] ~ stop || kinds[i] == "end")
            return 0
        if (events[i] ~ goal)
            return i
        if (kinds[i] == "jump")
            return way(target[texts[i]], goal, stop, seen)
        if (kinds[i] == "branch" &&
            (at = way(target[texts[i]], goal, stop, seen)))
            return at
    }
    return 0
}

# Whether some way leads from any event that matches `from` to `goal` before
# `stop`. "start" is the kernel's.
function leads(from, goal, stop,    i) {
    if (from == "start")
        return reaches(0, goal, stop)
    for (i = 1; i <= count; i++)
        if (events[i] ~ from && reaches(i, goal, stop))
            return i
    return 0
}

/^[A-Za-z0-9_]+:/ {
    if ($1 ~ /_gpu:$/) {
        kernel = $1
        sub(/_gpu:$/, "", kernel)
        count = 0
        inside = 1
        split("", place)
        split("", loaded)
        split("", looked_at)
        split("", compared)
    }
    next
}
/\.type.*@function/ && $0 !~ /_gpu,@function/ {
    kernel = $2
    wrong("calls", "is a function of its own")
}
/^\.L[A-Za-z0-9_]+:/ && !/^\.Lfunc_end/ {
    target[substr($1, 1, length($1) - 1)] = count + 1
    event("label", "")
}
/^\.Lfunc_end/ && inside {
    inside = 0
    check_kernel()
}
/^;? *ScratchSize: [1-9]/ { wrong("private", "scratch: " $0) }
/^;? *LDSByteSize: [1-9]/ && !shares() { wrong("private", "LDS: " $0) }
!inside { next }

{ sub(/;.*/, "") } # comments
NF == 0 { next }
gpu == "gfx1250" { translate() }
$1 ~ /^flat_/ { wrong("accesses", $1) }
$1 ~ /^s_(swappc|setpc|call)/ { wrong("calls", $1) }
$1 ~ /^(scratch_|buffer_(load|store)_)/ { wrong("private", $1) }
$1 ~ /^ds_(read|write|add|bpermute)/ && !shares() { wrong("private", $1) }
$1 ~ /^ds_write/ { event("share", $1) }
$1 ~ /^v_mfma/ { event("matrix", $1) }
is_packets() { look_at() }
$1 ~ /^v_(pk_)?(fma|dot)/ && kernel ~ /^(iris_k|code_ordered)_/ && contracts() {
    wrong("fma", $0)
}
$1 ~ /^global_load_/ {
    event("load", $1)
    if (is_packets())
        load_pair()
}
$1 ~ /^global_store_/ { event("store", $1) }
$1 ~ /^global_atomic_/ { event("atomic", $1) }
$1 ~ /^s_barrier/ { event("barrier", $1) }
$1 ~ /^s_endpgm/ { event("end", "") }
$1 ~ /^s_branch/ { event("jump", $2) }
$1 ~ /^s_cbranch/ { event("branch", $2) }
$1 ~ /^s_sleep/ { event("sleep", $1) }
$1 ~ /^s_wait_(load|store)cnt$/ && $2 == "0x0" {
    event("wait", $1 ~ /load/ ? "load" : "store")
}
$1 == "s_wait_loadcnt" && $2 != "0x0" {
    event("await", 16 * (length($2) > 3) + index("123456789abcdef", \
        substr($2, length($2))))
}
$1 == "s_waitcnt" && /vmcnt\([0-9]+\)/ {
    sub(/.*vmcnt\(/, "")
    sub(/\).*/, "")
    event($0 == 0 ? "wait" : "await", $0 == 0 ? "" : $0)
}
$1 == "buffer_wbl2" { event("writeback", whole()) }
$1 ~ /^buffer_(inv|wbinv)/ { event("invalidate", whole()) }

# gfx1250's names for what gfx942 has, too. A workgroup is on one compute unit.
function translate() {
    if ($1 ~ /^(global|ds)_/) {
        sub(/scope:SCOPE_SYS/, $1 ~ /_atomic_/ ? "sc1" : "sc0 sc1")
        sub(/scope:SCOPE_DEV/, $1 ~ /_atomic_/ ? "" : "sc1")
        sub(/th:TH_ATOMIC_RETURN/, "sc0")
        sub(/th:TH_(LOAD|STORE)_NT/, "nt")
        $0 = $0
    }
    if ($1 ~ /^global_atomic_/) {
        sub(/_[biu]64/, "_x2", $1)
        sub(/_[biu]32/, "", $1)
    } else if ($1 ~ /^global_(load|store)_/) {
        sub(/_b128$/, "_dwordx4", $1)
        sub(/_b96$/, "_dwordx3", $1)
        sub(/_b64$/, "_dwordx2", $1)
        sub(/_b32$/, "_dword", $1)
        sub(/_(b|u)16$/, $1 ~ /store/ ? "_short" : "_ushort", $1)
        sub(/_(b|u)8$/, $1 ~ /store/ ? "_byte" : "_ubyte", $1)
        sub(/_i16$/, "_sshort", $1)
    }
    if ($1 == "global_wb")
        $0 = "buffer_wbl2 " substr($0, index($0, "sc"))
    if ($1 == "global_inv")
        $0 = "buffer_inv " substr($0, index($0, "sc"))
    if ($1 == "s_barrier_signal")
        $0 = "s_barrier"
    if ($1 == "s_barrier_wait")
        $0 = "s_nop"
    sub(/^[ \t]*ds_load/, "ds_read")
    sub(/^[ \t]*ds_store/, "ds_write")
}

function whole() { # the instruction with single spaces
    $1 = $1
    return $0
}
