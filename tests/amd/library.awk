# SPDX-License-Identifier: MIT
#
# What the code of the library's kernels has to be, on every way through it.
# With rules.awk, which calls check_library(). With -v traced=1 the kernels are
# compiled with IRIS_TRACE and write records, too.
#
# Members meet: each says by words of system scope (a hello) where its buffers
# are, waits for the others' words, and makes a table of what they say. Then it
# moves or combines data, and says by such words (a goodbye) that it has. In
# what follows an announcement is a store of system scope that others wait for,
# data are all plain stores but those of words of 8 bytes, and a goodbye's
# release is the write-back of system scope before its announcement.

BEGIN {
    says["scopes"] = "no access is of another scope than the system's"
    says["meet"] = "a hello is released, waited for, acquired, and read once"
    says["data"] = "data are released behind a barrier before others hear of them"
    says["locks"] = "locks and waits acquire before data are touched"
    says["packets"] = "packets are one store, polled and compared as a whole"
    says["wide"] = "fills and random numbers are stores of 16 bytes"
    says["fma"] = "no product is contracted with a sum"
    says["steps"] = "steps of workgroups have barriers between them"
    says["records"] = "a record's place is taken at agent scope"

    # How many barriers and releases the protocols of these kernels have.
    split("reduce 7 29 matrix 7 29 move 7 29 reduce_f32_sum 7 29 move_near 7 " \
        "29 once_f32_sum 3 15 packet 5 28 unordered 16 37 send_pairs 3 6 " \
        "receive_pairs 3 9 wg_packet 9 33 wg_ring 21 76 wg_end 2 4 " \
        "tile_wg_packet 13 49 batch_packet 4 15 spread_packet 7 29", have, " ")
    for (i = 1; i in have; i += 3) {
        least["barrier", "iris_k_ccl_" have[i]] = have[i + 1]
        least["writeback", "iris_k_ccl_" have[i]] = have[i + 2]
    }

    meets = "^iris_k_ccl_(reduce(_[a-z0-9]+_(sum|max))?|matrix|move(_near)?|unordered)$"
    plain_load = "^load global_load_(dwordx4|dword|[us](byte|short))(_d16.*)?$"
    plain_store = traced ? "^store global_store_(byte|dwordx4)(_d16.*)?$" : \
        "^store global_store_(byte|short|dword|dwordx4)(_d16.*)?$"
    table_load = "^load global_load_dwordx2$"
    table_store = "^store global_store_dwordx2$"
    # Behind a wait's sleep is its report.
    apart = "^(barrier|sleep) "
}

# Whether some way leads from what matches `from` to `goal` that has not come to
# `first` and, behind that, to `second`: where that is, or 0.
function escapes(from, goal, first, second,    i, seen, at) {
    for (i = 1; i <= count; i++)
        if (events[i] ~ from &&
            (at = way_out(i + 1, 0, goal, first, second, seen)))
            return at
    return 0
}

function way_out(i, half, goal, first, second, seen,    at) {
    for (; i <= count && !((i, half) in seen); i++) {
        seen[i, half]
        if (kinds[i] == "end")
            return 0
        if (events[i] ~ goal)
            return i
        if (!half && events[i] ~ first)
            half = 1
        else if (half && events[i] ~ second)
            return 0
        if (kinds[i] == "jump")
            return way_out(target[texts[i]], half, goal, first, second, seen)
        if (kinds[i] == "branch" &&
            (at = way_out(target[texts[i]], half, goal, first, second, seen)))
            return at
    }
    return 0
}

# What is reached from event i before a barrier or the kernel's end.
function region_of(i, seen) {
    for (; i <= count && !(i in seen); i++) {
        seen[i]
        if (kinds[i] ~ /^(barrier|end)$/)
            return
        if (kinds[i] == "branch" || kinds[i] == "jump")
            region_of(target[texts[i]], seen)
        if (kinds[i] == "jump")
            return
    }
}

function number_in(region, pattern,    i, found) {
    for (i in region)
        found += events[i] ~ pattern
    return found + 0
}

# Stores that others wait for get a name of their own; on gfx90a, whose stores
# have no bits to know them by, polls stand for them.
function name_announcements(    i) {
    if (store_bits["SYSTEM"] == "")
        return kernel ~ /unordered$/ ? nothing : poll
    for (i = 1; i <= count; i++)
        if (events[i] ~ announcement && reaches(i, poll, nothing))
            announced[i]
    for (i in announced) {
        events[i] = "store announcement"
        delete announced[i]
    }
    # Who adds under locks polls, or not, whether or not it has just announced.
    return "^store announcement$" (kernel ~ /unordered$/ ? "" : "|" poll)
}

# What a lane stores once it has claimed the report of a wait, which ends it.
function name_reports(    i, j, region) {
    for (i = 1; i <= count; i++) {
        if (texts[i] !~ /_cmpswap_x2$/ || reaches(i, apart, nothing))
            continue
        split("", region)
        region_of(i + 1, region)
        for (j in region)
            if (kinds[j] == "store")
                events[j] = "store report " bits[j]
    }
}

# Lanes wait for the device's clock and for a stop, of their own GPU, only
# behind a sleep; who reports, claims that by an update there.
function check_scopes(    i) {
    for (i = 1; i <= count; i++) {
        if (kinds[i] == "store")
            rule("scopes", bits[i] != "" && bits[i] != store_bits["SYSTEM"],
                events[i])
        if (kinds[i] == "load" && !traced)
            rule("scopes", load_bits["AGENT"] != load_bits["SYSTEM"] &&
                bits[i] == load_bits["AGENT"], events[i])
        if (kinds[i] == "atomic" && !traced)
            rule("scopes", bits[i] != atomic_bits["SYSTEM"] &&
                (texts[i] !~ /_cmpswap_x2$/ || reaches(i, apart, nothing)),
                events[i])
    }
}

# Looks of waits get a name for a moment: behind them is a sleep.
function name_looks(    i) {
    split("", was)
    for (i = 1; i <= count; i++)
        if (events[i] ~ poll && reaches(i, "^sleep ", "^barrier |" poll))
            was[i] = events[i]
    for (i in was)
        events[i] = "look"
}

function forget_looks(    i) {
    for (i in was)
        events[i] = was[i]
}

# Hellos are read where they are made to a table: two words of each buffer's
# address. Besides, the member's rank and where its heap is are read there.
function check_meeting(    i, region, found) {
    for (i = 1; i <= count; i++) {
        if (kinds[i] != "barrier")
            continue
        split("", region)
        region_of(i + 1, region)
        if (number_in(region, "^(sleep|writeback) ") ||
            !number_in(region, poll) || !number_in(region, table_store))
            continue
        found++
        rule("meet", number_in(region, poll) < 2 ||
            number_in(region, table_load) > number_in(region, poll),
            "words of a hello are read as constants, or not at system scope")
        check_table(region)
    }
    rule("meet", !found, "no table is made of what members say")
    rule("meet", leads("^invalidate ", table_store, apart),
        "a table is made before all lanes have what members say")
}

function check_table(region,    i, behind) {
    for (i in region) {
        if (events[i] !~ table_store)
            continue
        rule("meet", reaches(i, plain_load "|" plain_store, apart),
            "a table is read before it is made")
        behind = reaches(i, "^barrier ", nothing)
        rule("meet", !behind || reaches(behind, plain_load, table_load),
            "a table is read as constants")
    }
}

# As it stands, since lanes without a member skip both the words and the wait;
# clang before 17 has blocks in another order.
function released_nothing(    i, j) {
    if (label ~ /clang 1[0-6]/)
        return 0
    for (i = 1; i <= count; i++)
        if (events[i] ~ release) {
            j = next_of(write "|^(barrier|writeback) |" poll, i)
            if (events[j] ~ poll)
                return j
        }
    return 0
}

function check_data(heard) {
    name_looks()
    rule("meet", leads("start", "^look$", release), "a hello is not released")
    forget_looks()
    rule("meet", released_nothing(), "a release, and no word behind it")
    rule("data", escapes(plain_store, heard, "^barrier ", release),
        "data are not released behind a barrier")
    rule("data", gpu != "gfx90a" &&
        leads(plain_store, "^store announcement$|" announcement, "^barrier "),
        "a word is stored before all lanes have stored their data")
    rule("data", kernel ~ /reduce(_|$)/ && !traced &&
        leads(plain_store, "^atomic .*_add_x2", "^barrier "),
        "steps are counted before all lanes have stored their data")
    rule("data", heard != nothing && !leads(plain_store, heard, nothing),
        "nobody hears of the data")
    # Not of gfx90a, whose announcements look like them, nor where words are data.
    # clang 22 makes outputs 0 by words of 8 bytes.
    if (kernel !~ /move(_near)?$/ && gpu != "gfx90a" && !traced &&
        !(kernel ~ /unordered$/ && label ~ /clang 2/)) {
        # Words beside each other may be a store of 16 bytes, too.
        rule("data", leads("^store global_store_(byte|dword)$", table_store,
            apart), "a word is stored before all lanes have read or stored")
        rule("meet", leads(table_store, plain_load "|" plain_store, apart),
            "a table is read before it is made")
    }
}

# Of polls those that are looks of a wait: behind them is a sleep.
function check_waits(    i) {
    rule("locks", leads("^sleep ", "^barrier |" plain_load, acquire),
        "a wait acquires nothing")
    if (traced) # by records there are more ways than are gone
        return
    for (i = 1; i <= count; i++)
        if (events[i] ~ poll && reaches(i, "^sleep ", "^barrier |" poll))
            rule("locks", reaches(i, "^barrier |" plain_load, acquire "|" poll),
                "a wait acquires nothing")
}

# One piece of a message. Lanes put it, and the leader says where it is, releases,
# and says that it has arrived; or lanes read it, and the leader says so.
function check_pairs(    i, wide, words) {
    met++
    wide = "^store global_store_dwordx4$"
    words = announcement
    check_waits()
    rule("meet", leads("^invalidate ", wide, "^barrier "),
        "lanes move a piece before the leader has waited for it")
    if (gpu == "gfx90a") # whose words look like data
        return
    rule("data", !leads(wide, words, nothing), "nobody hears of a piece")
    rule("data", leads(wide, words, "^barrier "),
        "a piece is told of before all lanes have moved it")
    rule("data", !leads(release, words, "^barrier "),
        "nobody hears of a piece that is released")
    for (i = 1; i <= count; i++)
        if (events[i] ~ words && !reaches(i, release, "^(barrier|end) "))
            events[i] = "store last"
    rule("data", escapes(wide, "^store last$", "^barrier ", release),
        "a piece is told of before it is released")
}

# A lock is taken by an update that acquires; the others, which add, do not.
function check_locks(    i, found) {
    for (i = 1; i <= count; i++)
        found += texts[i] ~ /_cmpswap_x2$/ && kinds[i + 1] == "wait" &&
            events[i + 2] ~ acquire
    rule("locks", !found, "no update acquires a lock")
}

# Cleared packets: all lanes' are, and then an addition that releases counts them
# and a wait follows.
function check_clear(    i, found, seen) {
    name_looks()
    for (i = 1; i <= count; i++)
        if (events[i] ~ /^atomic .*_add_x2/ &&
            reaches(i, "^look$", "^(barrier|store|atomic) ")) {
            events[i] = "count " events[i]
            found++
        }
    forget_looks()
    rule("data", !found, "nobody counts who cleared")
    rule("data", way_out(1, 0, "^count ", "^barrier ", release, seen),
        "cleared packets are not released behind a barrier")
    for (i = 1; i <= count; i++)
        sub(/^count /, "", events[i])
}

# Packets are two words beside each other, and both halves of both are used.
# Polls of one are loads of 8 bytes, since what the compiler does not know it
# would have to wait for at once.
function check_packets(    i, n, region, pairs, first, next_one) {
    rule("packets", gpu != "gfx90a" && kernel !~ /_tile_/ && leads("start",
        "^store global_store_dwordx4$", "^sleep "),
        "a packet that caches may keep")
    rule("packets", !next_of("^store global_store_dwordx4" \
        tail(store_bits["SYSTEM"]), 0), "no packet in one store")
    for (i = 1; i < count; i++) {
        split(place[i], first, " ")
        split(place[i + 1], next_one, " ")
        if (events[i] !~ poll || events[i + 1] !~ poll || place[i] == "" ||
            first[1] != next_one[1] || first[2] != next_one[2] ||
            first[3] + 8 != next_one[3])
            continue
        pairs++
        events[i] = "load packet"
        for (n = 0; n < 2; n++)
            # gfx1250's code uses data far behind, in another order than it stands.
            rule("packets", (gpu != "gfx1250" && !((i + n, 0) in looked_at)) ||
                !((i + n, 1) in compared), "a half of a packet is not used")
    }
    rule("packets", !pairs, "no packet is polled as a whole")
    for (i = 1; i <= count; i++)
        if (kinds[i] == "sleep") {
            split("", region)
            region_of(i + 1, region)
            rule("packets", !number_in(region, "^load packet$") &&
                !number_in(region, acquire), "no poll of packets behind a sleep")
        }
}

# Of a kernel of a program, which has written what is sent, and of one shot, which
# sends nothing once it has polled. With check_packets(), which names the polls.
function check_steps(    packet) {
    packet = "^store global_store_dwordx4" tail(store_bits["SYSTEM"])
    workgroups++
    rule("steps", leads("start", packet, poll),
        "the last step is not read at system scope")
    rule("steps", leads("start", packet, "^barrier "),
        "a packet is sent before all lanes have stored what is in it")
    rule("steps", leads("^load packet$", packet, "^barrier "),
        "a step begins before all lanes have ended the one before")
    rule("steps", leads(packet, "^end ", "^barrier "),
        "a kernel goes on before all lanes have what they received")
}

# Of tiles that go through stages: a load of 16 bits with a sign is of what other
# lanes may have stored.
function check_tiles() {
    rule("steps", leads("start", "^load global_load_(ubyte|ushort|dwordx4)",
        "^barrier "), "a tile is read before all lanes have stored it")
    rule("steps", leads("^store global_store_(byte|short|dwordx4)$",
        "^load global_load_sshort", "^barrier "),
        "lanes go on before all have stored the tile")
}

# A workgroup's use of a workspace, and the next.
function check_end() {
    workgroups++
    rule("steps", leads(poll, "^atomic .*_add_x2", "^barrier "),
        "a step is counted before all lanes have read the last one")
    rule("steps", leads("^atomic .*_add_x2", poll, "^barrier "),
        "a step is read before the last use has counted")
}

# Lanes combine other units than they have sent, and out may be in.
function check_batch(    packet) {
    packet = "^store global_store_dwordx4" tail(store_bits["SYSTEM"])
    workgroups++
    rule("steps", !leads(packet, "^store global_store_dwordx2$", nothing),
        "no sum of a batch is stored")
    rule("steps", leads(packet, "^store global_store_dwordx2$", "^barrier "),
        "sums of a batch are stored before all lanes have sent")
    rule("steps", number_of("^load packet$") < 8,
        "a batch has fewer than 8 packets under way")
}

# Ahead of any update of 4 bytes, which takes the place, stands a look at how
# many there are.
function check_records(    i) {
    recorded++
    for (i = 1; i <= count; i++)
        rule("records", events[i] ~ /^atomic global_atomic_add$/ &&
            reaches(i, "^store ", "^branch "),
            "a record is written whether or not there is room")
    # Polls of packets are no records.
    rule("records", kernel !~ /_once_/ &&
        !next_of("^atomic global_atomic_add$", 0), "no record takes a place")
    rule("records", leads("start", "^atomic global_atomic_add$",
        "^load global_load_dword " load_bits["AGENT"] "$"),
        "the number of records is not looked at in agent scope")
    if (gpu != "gfx90a")
        rule("records", next_of("^atomic global_atomic_add .", 0),
            "a record takes its place in another scope")
}

# In rows and random numbers. Short ones, and those without enough alignment,
# are narrower.
function check_wide() {
    wide++
    rule("wide", !next_of("^store global_store_dwordx4$", 0) ||
        next_of("^store global_store_dwordx3", 0), "does not store 16 bytes")
}

# What is a sum of products, not a conversion: neither factor is a constant. Rows
# of linspace fuse on purpose.
function contracts(    part) {
    if (kernel ~ /linspace/)
        return 0
    split($0, part, ",")
    if (kernel ~ /^code_|_tile_/ && part[2] ~ /^[ \t]*-/) # of a division of integers
        return 0
    return part[2] part[3] !~ /(^|[ \t])(-?[0-9]|0x)/ &&
        part[4] !~ /^[ \t]*0( |$)/
}

function check_ccl(    heard) {
    if (kernel ~ /wg_ring$/)
        return
    if (kernel ~ /wg_end$/) {
        check_end()
        return
    }
    collectives++
    check_collective()
    if (kernel ~ /_(send|receive)_pairs$/) {
        check_pairs()
        return
    }
    check_clear()
    if (is_packets())
        check_packets()
    if (kernel ~ /wg_packet$/)
        check_steps()
    if (kernel ~ /tile_wg_packet$/)
        check_tiles()
    if (kernel ~ /batch_packet$/)
        check_batch()
    if (kernel !~ meets)
        return
    met++
    check_waits()
    heard = name_announcements()
    check_data(heard)
    if (!traced)
        check_meeting()
    if (kernel ~ /unordered$/)
        check_locks()
}

function check_library() {
    library++
    if (!traced && ("barrier", kernel) in least) {
        rule("barriers", number_of("^barrier ") < least["barrier", kernel],
            number_of("^barrier ") " barriers, fewer than its protocol has")
        rule("writeback", number_of("^writeback ") < least["writeback", kernel],
            number_of("^writeback ") " releases, fewer than its protocol has")
    }
    check_scopes()
    name_reports()
    if (kernel ~ /^iris_k_ccl_/)
        check_ccl()
    if (traced)
        check_records()
    if (kernel ~ /^iris_k_(fill$|arange|linspace|uniform|normals|integer|wide)/)
        check_wide()
}
