# SPDX-License-Identifier: MIT
#
# What the code of a kernel for an AMD GPU has to be, with -v gpu=gfx942,
# gfx950 or gfx90a. After assembly.awk. Prints one line for each rule: how many
# kernels it was checked in, and what broke it. Exit status 1 if anything did.
#
# The tables are those of LLVM's "User Guide for AMDGPU Backend", Memory Model
# gfx90a and gfx942, for global memory, and no workgroup in tgsplit mode.

BEGIN {
    says["accesses"] = "memory is reached by global_*, never flat_*"
    says["calls"] = "no kernel calls a function"
    says["private"] = "no scratch memory; LDS where lanes share it"
    says["barriers"] = "s_barriers are all there, behind vmcnt(0), no store between"
    says["writeback"] = "releases are all there, and vmcnt(0) behind each"
    says["float"] = "float atomics are compare-and-swap loops"
    says["orders"] = "cache operations and waits of every order and scope"
    says["bits"] = "each access has the cache bits of its scope"
    says["waits"] = "waits poll and acquire at system scope, and rest"
    says["signals"] = "signals are released behind their data, system scope"
    says["ranks"] = "the rank barrier releases, announces, polls, acquires"
    says["ccl"] = "collectives move 16 bytes an access, packets in one store"
    says["products"] = "tiles are multiplied by MFMA, barriers around each step"
    says["bulk"] = "bulk copies move 16 bytes an access, many under way"

    if (gpu == "gfx90a") {
        writeback["SYSTEM"] = "buffer_wbl2"
        invalidate["SYSTEM"] = "buffer_invl2+buffer_wbinvl1_vol"
        invalidate["AGENT"] = "buffer_wbinvl1_vol"
        load_bits["SYSTEM"] = load_bits["AGENT"] = "glc"
        load_bits["NT"] = store_bits["NT"] = "glc slc"
    } else {
        writeback["SYSTEM"] = "buffer_wbl2 sc0 sc1"
        writeback["AGENT"] = "buffer_wbl2 sc1"
        invalidate["SYSTEM"] = "buffer_inv sc0 sc1"
        invalidate["AGENT"] = "buffer_inv sc1"
        load_bits["SYSTEM"] = store_bits["SYSTEM"] = "sc0 sc1"
        load_bits["AGENT"] = store_bits["AGENT"] = "sc1"
        load_bits["WG"] = store_bits["WG"] = gpu == "gfx1250" ? "" : "sc0"
        load_bits["NT"] = store_bits["NT"] = "nt"
        atomic_bits["SYSTEM"] = "sc1"
    }
    # As rules match them, of system scope.
    release = "^writeback " writeback["SYSTEM"] "$"
    acquire = invalidate["SYSTEM"]
    gsub(/\+/, "[+]", acquire)
    acquire = "^invalidate " acquire "$"
    poll = "^load [a-z0-9_]+ " load_bits["SYSTEM"] "$"
    announcement = "^store global_store_dwordx2" tail(store_bits["SYSTEM"])
    # The data of kernels in protocols.h: of a size that nothing else has.
    data_load = "^load global_load_[us]?short"
    data_store = "^store global_store_(short|dwordx4)"
    write = "^(store|atomic) "
    nothing = "^$"
    # Of target_hip.h.
    bulk_depth = label ~ /clang 1[0-6]$/ ? 0 : 8
}

function tail(text) {
    return (text == "" ? "" : " " text) "$"
}

function wrong(name, what) {
    # Its own array, which lanes index; scratch is where that goes.
    if (name == "private" && kernel == "api_signals")
        return
    # More than registers hold, with records in every wait.
    if (name == "private" && traced && kernel == "iris_k_ccl_unordered")
        return
    # LLVM before 17 keeps in no register what several types see, what a long loop
    # fills, and arguments that a loop indexes: right, and slower.
    if (name == "private" && label ~ /clang 1[0-6]$/ &&
        kernel ~ /^iris_k_(ccl_(reduce|packet|unordered|matrix|pairs)$|arange_|linspace_)/)
        return
    if (++faults[name] <= 5)
        detail[name] = detail[name] "    " kernel ": " what "\n"
}

# A rule: `broken` is where it is, if anywhere.
function rule(name, broken, what) {
    if (broken)
        wrong(name, what)
}

# Rules for every kernel -----------------------------------------------------

# A flush of sources waits for lanes, and not for their stores.
function check_barriers(    i, waited, flush) {
    flush = kernel ~ /_flush$/
    rule("bulk", flush && !next_of("^barrier ", 0), "a flush has no s_barrier")
    for (i = 1; i <= count; i++) {
        if (kinds[i] == "wait" && texts[i] != "load")
            waited = 1
        else if (events[i] ~ /^(label|writeback|store|atomic) /)
            waited = 0
        else if (kinds[i] == "barrier") {
            barriers++
            rule("barriers", !waited && !flush,
                "stores may be in flight at s_barrier")
            # Compilers wait for all before a barrier of gfx90a.
            rule("bulk", waited && flush && gpu != "gfx90a",
                 "a flush waits for stores")
        }
    }
}

function check_floats() {
    rule("float", next_of("^atomic .*_(pk_|(add|sub|min|max|fmin|fmax)_f)", 0),
        "a float atomic, which may do nothing to fine-grained memory")
    if (kernel !~ /^(code|api)_(add|sub|min|max)_(f16|bf16|f32|f64)(_|$)/)
        return
    float_kernels++
    rule("float", !next_of("^atomic .*_cmpswap", 0), "has no compare-and-swap")
}

# Rules of orders.h: code_<op>_<type>_<order>_<scope> ------------------------

# The data before and after have 16 bytes, and the operation is the rest. A
# narrower scope may have wider operations only where the element is a part of
# a word (word.h says why).
function check_order(op, type, sem, scope,    kind, first, at, end, i) {
    ordered++
    if (type ~ /^(u8|u16|f16|bf16)$/ && op !~ /(load|store)$|^fence$/)
        scope = "SYSTEM"
    first = next_of("^store .*_dwordx4", 0)
    end = next_of("^load .*_dwordx4", 0)
    kind = op ~ /load$|^fetch$/ ? "load" : \
        op ~ /store$|^(set|fence)$/ ? "store" : "atomic"
    for (at = 1; at <= count && !is_operation(at, kind); at++)
        ;
    if (first == 0 || at > count || end == 0) {
        wrong("orders", "not the operation that was looked for")
        return
    }
    check_release(op, sem, scope, first, at)
    check_acquire(op, sem, scope, op == "fence" ? first : at, end)
    if (op == "fence") # what stands for its store is relaxed
        scope = "WG"
    for (i = at; i <= count; i++)
        if (is_operation(i, kind))
            check_bits(i, scope)
}

# Loads ahead of an update only guess.
function is_operation(i, kind) {
    return kinds[i] == kind && texts[i] !~ /_dwordx4$/
}

function check_bits(i, scope,    expected) {
    expected = kinds[i] == "load" ? load_bits[scope] : \
        kinds[i] == "store" ? store_bits[scope] : atomic_bits[scope]
    with_bits++
    rule("bits", bits[i] != expected,
        "'" events[i] "' should have '" expected "'")
}

function check_release(op, sem, scope, first, at,    part) {
    part = sem ~ /RELEASE|ACQ_REL/ && op !~ /load$|^fetch$/
    expect_part("writeback", part ? writeback[scope] : "", first, at)
    if (part && scope != "WG")
        rule("orders", !waits(first, at),
            "no vmcnt(0) between the data and " texts[at])
}

function check_acquire(op, sem, scope, at, end,    part, after, i) {
    part = sem ~ /ACQUIRE|ACQ_REL/ && op !~ /store$|^set$/
    after = at
    if (op != "fence")
        for (i = at; i <= count; i++) # a loop's last
            if (kinds[i] == "atomic")
                after = i
    expect_part("invalidate", part ? invalidate[scope] : "", after, end)
    if (part && scope != "WG")
        rule("orders", !waits(after, next_of("^invalidate ", after)),
            "no vmcnt(0) between " texts[at] " and invalidation")
}

# What is expected stands there, and nothing else of this kind is anywhere.
function expect_part(kind, expected, from, to,    found, all) {
    found = between(kind, from, to)
    all = between(kind, 0, count + 1)
    # LLVM 15 writes back at an acquiring fence, too: slow, but right.
    if (kind == "writeback" && gpu == "gfx90a" && kernel ~ /fence.*ACQ/)
        return
    rule("orders", found != expected || all != expected,
        kind " is '" all "', not '" expected "'" \
        (found != all ? ", or not in its place" : ""))
}

function waits(from, to,    at) {
    at = next_of("^wait ", from)
    return at != 0 && at < to
}

# Rules of protocols.h and of the library's own kernels ----------------------

# No other scope than the system's has anything to do here.
function check_system(name) {
    rule(name, number_of("^writeback ") != number_of(release),
        "a release that is not of system scope")
    rule(name, number_of("^invalidate ") != number_of(acquire),
        "an acquire that is not of system scope")
}

# Every way from one look to the next, or to the end of the wait, leads over a
# poll; and from a look to the data, and to other lanes, over an acquire.
function check_polls(name) {
    rule(name, !next_of("^sleep ", 0), "does not rest between looks")
    rule(name, leads("^sleep ", "^(sleep|invalidate|barrier) ", poll),
        "no poll of system scope between looks")
    rule(name, leads("^sleep ", "^barrier |" data_load, acquire),
        "no acquire of system scope behind the last poll")
}

function check_wait(    i) {
    waited_for++
    check_system("waits")
    check_polls("waits")
    if (kernel ~ /_wg_/) # of its leader
        rule("waits", leads(poll, "^barrier ", acquire "|" poll),
            "a look that holds acquires nothing")
    else if (kernel ~ /^code/)
        check_first_poll()
    rule("waits", kernel ~ /_wg_/ && leads("start", data_load, "^barrier "),
        "lanes go on before one has waited")
    rule("waits", leads("^invalidate ", poll, nothing),
        "empties caches between looks")
    # Of gfx90a stores have no bits to know them by; behind a leader is more.
    if (gpu == "gfx90a" || kernel ~ /_wg_/)
        return
    # The report of a wait that is given up.
    for (i = 1; i <= count; i++)
        if (events[i] ~ "^store .* " store_bits["SYSTEM"] "$")
            rule("waits", !is_released(i), "the report is not released")
}

# Of writes and write-backs as they stand, a write-back is the one before i.
function is_released(i) {
    while (--i > 0 && events[i] !~ write "|^writeback ")
        ;
    return events[i] ~ release
}

function check_test() {
    waited_for++
    check_system("waits")
    check_first_poll()
}

# code_set_<how>: several signals, of which one or all are waited for or tested.
# Ways that differ by how many hold join, so not every way to the data leads over
# an acquire; but each look has one behind it that comes before the next look.
function check_set(how,    i) {
    waited_for++
    check_system("waits")
    rule("waits", leads("start", "^load ", poll),
        "the first look is not of system scope")
    for (i = 1; i <= count; i++)
        rule("waits", events[i] ~ /^load global_load_dwordx2/ &&
            reaches(i, data_load, "^sleep |" poll) &&
            !(events[i] ~ poll && reaches(i, acquire, poll "|" data_load)),
            "a look that holds acquires nothing")
    if (how ~ /^test/)
        return
    rule("waits", !next_of("^sleep ", 0), "does not rest between looks")
    rule("waits", leads("^sleep ", "^(sleep|invalidate|barrier) ", poll),
        "no poll of system scope between looks")
}

function check_first_poll() {
    rule("waits", leads("start", "^load ", poll),
        "the first look is not of system scope")
    rule("waits", leads("start", data_load, acquire) ||
        !next_of(data_load, 0), "the data behind it may be from before")
}

# code_signal_<how>: data, then a signal. One lane's, or a workgroup's.
function check_signal(how,    signal, i) {
    signals++
    check_system("signals")
    signal = how ~ /add$/ ? "^atomic .*_add_x2" tail(atomic_bits["SYSTEM"]) : \
        announcement
    if (gpu == "gfx90a") # a bulk copy's stores of 8 bytes have no other bits
        signal = mark_released(signal)
    if (!next_of(signal, 0)) {
        wrong("signals", "no signal of system scope")
        return
    }
    rule("signals", leads("start", signal, release),
        "the signal is not released")
    rule("signals", how !~ /^alone/ && !next_of(data_store, 0), "no data")
    for (i = 1; i <= count; i++) {
        if (events[i] ~ signal)
            rule("signals", reaches(i, data_store, nothing),
                "data behind the signal")
        if (events[i] ~ data_store)
            rule("signals", reaches(i, signal, release),
                "no release between data and signal")
        if (events[i] ~ data_store && how ~ /^wg/)
            rule("signals", reaches(i, release, "^barrier "),
                "lanes need not have stored before one releases")
    }
}

# The first write behind a release gets a name of its own.
function mark_released(pattern,    i) {
    for (i = 1; i <= count; i++)
        if (events[i] ~ pattern && is_released(i))
            events[i] = "signal"
    return "^signal$"
}

# In traced code of gfx90a a look at the count of records is no other load than
# one of system scope: there the rest between polls tells them.
function check_rank_barrier(    first, look) {
    look = traced && gpu == "gfx90a" ? "^sleep " : poll
    rank_barriers++
    first = next_of(release, 0)
    check_system("ranks")
    check_polls("ranks")
    rule("ranks", leads("start", look, release), "polls, and did not release")
    rule("ranks", !traced && reaches(first, poll, announcement),
        "polls, and did not announce at system scope")
    rule("ranks", leads("start", "^writeback ", "^barrier "),
        "releases before all lanes have come")
    rule("ranks", kernel ~ /^code/ && !next_of(data_load, 0), "no data")
    rule("ranks", leads("^invalidate ", data_load, "^barrier "),
        "lanes go on before one has acquired")
}

# What the stores of a loop's two rounds, and of the one behind it, wait for has
# a round of loads and one of stores behind it (device/wg/wg.h); gfx1250 counts loads
# alone. Without rounds four loads are under way.
function check_bulk(    i, waited, deep) {
    bulks++
    for (i = 1; i <= count; i++) {
        if (kinds[i] == "await")
            waited = texts[i] + 0
        else if (events[i] ~ /^(wait|label) /)
            waited = 0
        else if (events[i] ~ /^store global_store_dwordx4$/)
            deep += waited >= bulk_depth * (gpu == "gfx1250" ? 1 : 2) && waited > 2
    }
    rule("bulk", deep < (bulk_depth ? 3 * bulk_depth : 4),
        deep + 0 " stores of 16 bytes have enough under way behind them")
    rule("bulk", next_of("^(load|store) .*_dwordx4 ", 0), "has cache bits")
}

# A step's elements of 16 bits are shared by 16 bytes or one by one, sums by 4. No
# lane may multiply before all have shared, or share before all have multiplied.
function check_product(type,    shared) {
    products++
    if (gpu == "gfx1250") # by the loop
        return
    shared = "^share ds_write_b(16|128)"
    rule("products", number_of("^matrix v_mfma_f32_16x16x" \
        (type == "f32" ? "4" : "16") "_?" type "(_1k)?$") \
        < (type == "f32" ? 16 : 8), "no MFMA of its type")
    rule("products", type != "f32" && !next_of("^share ds_write_b128", 0),
        "shares no 16 bytes")
    if (type == "f32") # which are of the size of sums
        return
    rule("products", leads(shared, "^matrix ", "^barrier "),
        "multiplies before all lanes have shared")
    rule("products", leads("^matrix ", shared, "^barrier "),
        "shares before all lanes have multiplied")
}

# In order: no matrix instructions, and no product that is not rounded (rule fma).
function check_ordered() {
    products++
    rule("products", next_of("^matrix ", 0), "MFMA, which has its own order")
}

# Elements that are moved or combined, and packets, travel by 16 bytes; packets
# to another GPU, whose caches must not keep them. Nobody polls with a cache.
function check_collective(    packets) {
    packets = is_packets()
    check_system("ccl")
    # Behind a poll it is the report of a wait.
    rule("ccl", !packets && !leads("^load global_load_dwordx4$",
        "^store global_store_dwordx4$", poll), "moves by less than 16 bytes")
    rule("ccl", packets && !next_of("^store global_store_dwordx4" \
        tail(store_bits["SYSTEM"]), 0), "no packet in one store")
    # Which packets are polled again depends on which have come.
    rule("ccl", packets ? !next_of(poll, 0) : \
        leads("^sleep ", "^(sleep|invalidate|barrier) ", poll),
        "no poll of system scope between looks")
}

function check_kernel(    part, name) {
    kernels++
    check_barriers()
    check_floats()
    rule("writeback", leads("^writeback ", write, "^wait (store)?$"),
        "a write does not wait for the write-back")
    name = kernel
    sub(/_ACQ_REL_/, "_ACQREL_", name)
    split(name, part, "_")
    sub(/ACQREL/, "ACQ_REL", part[4])
    if (part[4] ~ /^(RELAXED|ACQUIRE|RELEASE|ACQ_REL)$/)
        check_order(part[2], part[3], part[4], part[5])
    else if (name ~ /^code_wait_|^iris_k_wait$/)
        check_wait()
    else if (name ~ /^code_test_/)
        check_test()
    else if (name ~ /^code_set_/)
        check_set(substr(name, length("code_set_") + 1))
    else if (name ~ /^code_ranks|^iris_k_barrier$/)
        check_rank_barrier()
    else if (name ~ /^iris_k_signal/)
        check_signal(name ~ /add$/ ? "alone_add" : "alone")
    else if (name ~ /^code_signal_/)
        check_signal(substr(name, length("code_signal_") + 1))
    if (name ~ /^iris_k_/)
        check_library()
    if (name ~ /^code_(bulk|signal_wg_put)/)
        check_bulk()
    if (name ~ /^(code|api)_product_/)
        check_product(part[3])
    if (name ~ /^(code|api)_ordered_/)
        check_ordered()
}

# Rules of kernels that this file has none of are told of if it has to have all,
# -v all=1.
function result(name, number) {
    if (number == 0 && !all)
        return
    if (number == 0)
        wrong(name, "no such kernel was there to check")
    printf "%s %s: %s (%d): %s\n%s", label, name, says[name], number,
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
    result("bits", with_bits)
    result("waits", waited_for)
    result("signals", signals)
    result("ranks", rank_barriers)
    result("products", products)
    result("bulk", bulks)
    result("ccl", collectives)
    result("scopes", library)
    result("meet", met)
    result("data", met)
    result("locks", met)
    result("packets", collectives)
    if (workgroups)
        result("steps", workgroups)
    result("wide", wide)
    result("fma", library + products)
    if (traced)
        result("records", recorded)
    exit failed > 0
}
