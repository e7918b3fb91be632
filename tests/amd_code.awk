# SPDX-License-Identifier: MIT
#
# Reads assembly for AMD GPUs of the kernels in amd_code.h and others, with
# -v gpu=gfx942 or gfx90a. Prints one line for each rule: how many kernels it
# was checked in, and what broke it. Exit status 1 if anything did.

BEGIN {
    says["accesses"] = "memory is reached by global_*, never flat_*"
    says["calls"] = "no kernel calls a function"
    says["private"] = "no scratch memory, no LDS"
    says["barriers"] = "s_barrier comes after vmcnt(0) and no later store"
    says["writeback"] = "vmcnt(0) between write-back and the write it is for"
    says["float"] = "float atomics are compare-and-swap loops"
    says["orders"] = "cache operations and waits of every order and scope"
    says["waits"] = "waits rest between looks and acquire what they saw"
    says["bulk"] = "bulk copies move 16 bytes an access, 4 under way"

    if (gpu == "gfx942") {
        writeback["SYSTEM"] = "buffer_wbl2 sc0 sc1"
        writeback["AGENT"] = "buffer_wbl2 sc1"
        invalidate["SYSTEM"] = "buffer_inv sc0 sc1"
        invalidate["AGENT"] = "buffer_inv sc1"
    } else {
        writeback["SYSTEM"] = "buffer_wbl2"
        invalidate["SYSTEM"] = "buffer_invl2+buffer_wbinvl1_vol"
        invalidate["AGENT"] = "buffer_wbinvl1_vol"
    }
}

function wrong(name, what) {
    # Its own array, which lanes index; scratch is where that goes.
    if (name == "private" && kernel == "api_signals")
        return
    if (++faults[name] <= 5)
        detail[name] = detail[name] "    " kernel ": " what "\n"
}

# One of the events below happened in this kernel: kind and text.
function event(kind, text) {
    kinds[++count] = kind
    texts[count] = text
}

# The position of the first event of a kind after `from`, or 0.
function next_of(kind, from,    i) {
    for (i = from + 1; i <= count; i++)
        if (kinds[i] == kind)
            return i
    return 0
}

function last_of(kind,    i) {
    for (i = count; i > 0; i--)
        if (kinds[i] == kind)
            return i
    return 0
}

# The cache operations of a kind between two events, joined with +.
function between(kind, from, to,    i, found) {
    for (i = from + 1; i < to; i++)
        if (kinds[i] == kind)
            found = found (found == "" ? "" : "+") texts[i]
    return found
}

function is_write(i) {
    return kinds[i] == "store" || kinds[i] == "atomic"
}

# Rules for every kernel -----------------------------------------------------

function check_barriers(    i, waited) {
    for (i = 1; i <= count; i++) {
        if (kinds[i] == "wait")
            waited = 1
        else if (kinds[i] == "label" || is_write(i) || kinds[i] == "writeback")
            waited = 0
        else if (kinds[i] == "barrier") {
            barriers++
            if (!waited)
                wrong("barriers", "stores may be in flight at s_barrier")
        }
    }
}

# From each write-back, every way to the next write leads over a wait.
function check_writeback(    i, seen) {
    for (i = 1; i <= count; i++) {
        if (kinds[i] == "writeback" && unwaited(i + 1, seen)) {
            wrong("writeback", "a write does not wait for the write-back")
            return
        }
    }
}

# Whether a write can come from event i on before a wait.
function unwaited(i, seen) {
    for (; i <= count && !(i in seen); i++) {
        seen[i] = 1
        if (kinds[i] == "wait" || kinds[i] == "end")
            return 0
        if (is_write(i))
            return 1
        if (kinds[i] == "jump")
            return unwaited(target[texts[i]], seen)
        if (kinds[i] == "branch" && unwaited(target[texts[i]], seen))
            return 1
    }
    return 0
}

# Rules that kernels ask for by their names ----------------------------------

# code_<op>_<type>_<order>_<scope>. A narrower scope may have wider operations
# only where the element is a part of a word (word.h says why).
function check_order(op, type, sem, scope,    first, at, after, end, part, i) {
    ordered++
    if (type ~ /^(u8|u16|f16|bf16)$/ && op !~ /^(load|store|fence)$/)
        scope = "SYSTEM"
    first = next_of("store", 0) # the data before
    end = last_of("load")       # the data after
    if (op ~ /^(load|fetch)$/)
        at = next_of("load", 0)
    else if (op ~ /^(store|fence|set)$/)
        at = next_of("store", first)
    else
        for (at = first + 1; at <= count && kinds[at] != "atomic"; at++)
            ;
    if (first == 0 || at == 0 || at > count || end == 0) {
        wrong("orders", "not the operation that was looked for")
        return
    }
    part = sem ~ /RELEASE|ACQ_REL/ && op !~ /^(load|fetch)$/
    expect_part("writeback", part ? writeback[scope] : "", first, at)
    if (part && scope != "WG" && !waits(first, at))
        wrong("orders", "no vmcnt(0) between the data and " texts[at])

    part = sem ~ /ACQUIRE|ACQ_REL/ && op !~ /^(store|set)$/
    after = at
    if (op == "fence")
        after = first
    else
        for (i = at; i <= count; i++) # a loop's last
            if (kinds[i] == "atomic")
                after = i
    expect_part("invalidate", part ? invalidate[scope] : "", after, end)
    if (part && scope != "WG" &&
        !waits(after, next_of("invalidate", after)))
        wrong("orders", "no vmcnt(0) between " texts[at] " and invalidation")
}

# What is expected stands there, and nothing else of this kind is anywhere.
function expect_part(kind, expected, from, to,    found, all) {
    found = between(kind, from, to)
    all = between(kind, 0, count + 1)
    # LLVM 15 writes back at an acquiring fence, too: slow, but right.
    if (kind == "writeback" && gpu == "gfx90a" && kernel ~ /fence.*ACQ/)
        return
    if (found != expected || all != expected)
        wrong("orders", kind " is '" all "', not '" expected "'" \
            (found != all ? ", or not in its place" : ""))
}

function waits(from, to,    at) {
    at = next_of("wait", from)
    return at != 0 && at < to
}

function check_wait(    last) {
    waited_for++
    last = last_of("load")
    if (last_of("invalidate") == 0 || last < last_of("invalidate"))
        wrong("waits", "the load behind the wait is not behind an acquire")
    if (last_of("sleep") == 0)
        wrong("waits", "does not rest between looks")
}

function check_bulk(    i, loads, stores) {
    bulks++
    for (i = 1; i <= count; i++) {
        if (texts[i] !~ /_dwordx4$/)
            continue
        loads += kinds[i] == "load"
        stores += kinds[i] == "store"
    }
    if (loads < 4 || stores < 4)
        wrong("bulk", loads + 0 " loads, " stores + 0 " stores of 16 bytes")
}

function check_kernel(    part, name) {
    kernels++
    check_barriers()
    check_writeback()
    name = kernel
    sub(/_ACQ_REL_/, "_ACQREL_", name)
    split(name, part, "_")
    if (part[1] != "code")
        return
    sub(/ACQREL/, "ACQ_REL", part[4])
    if (part[4] ~ /^(RELAXED|ACQUIRE|RELEASE|ACQ_REL)$/)
        check_order(part[2], part[3], part[4], part[5])
    else if (part[2] == "wait")
        check_wait()
    else if (part[2] == "wg")
        check_bulk()
}

# The assembly ---------------------------------------------------------------

/^[A-Za-z0-9_]+:/ {
    if ($1 ~ /_gpu:$/) {
        kernel = $1
        sub(/_gpu:$/, "", kernel)
        count = 0
        inside = 1
        floats = kernel ~ /^(code|api)_(add|sub|min|max)_(f16|bf16|f32|f64)(_|$)/
        loops = 0
    }
    next
}
/\.type.*@function/ && $0 !~ /_gpu,@function/ {
    kernel = $2
    wrong("calls", "is a function of its own")
}
/^\.L[A-Za-z0-9_]+:/ && !/^\.Lfunc_end/ {
    event("label", "")
    target[substr($1, 1, length($1) - 1)] = count
}
/^\.Lfunc_end/ && inside {
    inside = 0
    check_kernel()
    if (floats) {
        float_kernels++
        if (loops == 0)
            wrong("float", "has no compare-and-swap")
    }
}
/^;? *ScratchSize: [1-9]/ { wrong("private", "scratch: " $0) }
/^;? *LDSByteSize: [1-9]/ { wrong("private", "LDS: " $0) }
!inside { next }

{ sub(/;.*/, "") } # comments
NF == 0 { next }
$1 ~ /^flat_/ { wrong("accesses", $1) }
$1 ~ /^s_(swappc|setpc|call)/ { wrong("calls", $1) }
$1 ~ /^(scratch_|buffer_(load|store)_|ds_(read|write|add|bpermute))/ {
    wrong("private", $1)
}
$1 ~ /^global_atomic_(pk_|(add|sub|min|max|fmin|fmax)_f)/ {
    wrong("float", $1 ", which may do nothing to fine-grained memory")
}
$1 ~ /^global_atomic_cmpswap/ { loops++ }
$1 ~ /^global_load_/ { event("load", $1) }
$1 ~ /^global_store_/ { event("store", $1) }
$1 ~ /^global_atomic_/ { event("atomic", $1) }
$1 ~ /^s_barrier/ { event("barrier", $1) }
$1 ~ /^s_endpgm/ { event("end", "") }
$1 ~ /^s_branch/ { event("jump", $2) }
$1 ~ /^s_cbranch/ { event("branch", $2) }
$1 ~ /^s_sleep/ { event("sleep", $1) }
$1 == "s_waitcnt" && /vmcnt\(0\)/ { event("wait", "") }
$1 == "buffer_wbl2" { event("writeback", whole()) }
$1 ~ /^buffer_(inv|wbinv)/ { event("invalidate", whole()) }

function whole() { # the instruction with single spaces
    $1 = $1
    return $0
}

function result(name, number) {
    if (number == 0)
        wrong(name, "no such kernel was there to check")
    printf "%s %s (%d): %s\n%s", gpu, says[name], number,
        faults[name] ? faults[name] " FAILED" : "ok", detail[name]
    failed += faults[name]
}

END {
    kernel = "all"
    result("accesses", kernels)
    result("calls", kernels)
    result("private", kernels)
    result("barriers", barriers)
    result("writeback", kernels)
    result("float", float_kernels)
    result("orders", ordered)
    result("waits", waited_for)
    result("bulk", bulks)
    exit failed > 0
}
