# SPDX-License-Identifier: MIT
#
# Which function takes which lock, which ones it runs under, and which locks are
# taken while another is held, from the text of C files laid out by clang-format
# (a function body's braces are in column 1). A function is followed through
# calls by name, through slots of tables (".slot = function") and through
# functions that are passed to another. Where a name may be several functions,
# all count.
#
# Prints lines "lock LOCK FILE", "takes LOCK FUNCTION", "with LOCK FUNCTION" (it
# is only called with the lock held), "under LOCK LOCK FUNCTION" (the function
# takes the second while the first may be held), "tries LOCK LOCK FUNCTION" (it
# takes it if it is free) and "bad FILE:LINE: TEXT". A lock is STRUCT.FIELD, or
# FILE:NAME for a variable of a file. Two words stand for what is not a lock:
# `wait` for the beginning of a wait that may be for another rank, `observers` for
# a call of observers. The callbacks of both are not followed.
#
# -v except="CALLER CALLEE LOCK,...": the caller does not hold the lock there.
# "- FUNCTION LOCK": the function keeps the lock for good.

BEGIN {
    for (i = split(except, part, ","); i > 0; i--)
        excepted[part[i]] = 1
    event["iris_i_wait_begin"] = "wait"
    event["iris_i_hooks_before"] = event["iris_i_hooks_device"] = "observers"
}

FNR == 1 {
    in_comment = in_body = 0
    head = struct = ""
    base = FILENAME
    sub(/^.*src\//, "", base)
}

# The line without comments, the insides of quotes, and directives.
function strip(line,    at, end) {
    gsub(/\\["'\\]/, "", line)
    gsub(/"[^"]*"/, "\"\"", line)
    gsub(/'[^']*'/, "0", line)
    if (in_comment) {
        if (!(end = index(line, "*/")))
            return ""
        line = substr(line, end + 2)
        in_comment = 0
    }
    while (at = index(line, "/*")) {
        if (!(end = index(substr(line, at + 2), "*/"))) {
            in_comment = 1
            return substr(line, 1, at - 1)
        }
        line = substr(line, 1, at - 1) " " substr(line, at + end + 3)
    }
    sub(/[ \t]+$/, "", line)
    return line ~ /^[ \t]*#/ ? "" : line
}

# Remembers "struct T *NAME" in `types` for a function or a struct.
function note_types(owner, text,    type, name) {
    gsub(/iris_t /, "struct iris_context ", text)
    while (match(text, /struct [a-z_0-9]+ [*]*(const |_Atomic )?[*]*[a-z_0-9]+/)) {
        type = substr(text, RSTART + 7, RLENGTH - 7)
        text = substr(text, RSTART + RLENGTH)
        name = type
        sub(/ .*/, "", type)
        sub(/.*[ *]/, "", name)
        types[owner, name] = type
        if (owner ~ /^[a-z]/)
            types["", name] = ("", name) in types && types["", name] != type ? "?" : type
    }
}

function note_slot(name, value) {
    slot_name[++slots] = name
    slot_value[slots] = value
    slot_base[slots] = base
}

{ code = strip($0) }

in_body && code == "}" { in_body = 0; head = ""; next }
in_body { body[funcs] = body[funcs] " " code; next }

code ~ /^(static |typedef )*struct [a-z_0-9]+ \{/ {
    struct = code
    sub(/.*struct /, "", struct)
    sub(/ .*/, "", struct)
}
code ~ /^\}/ { struct = "" }
struct != "" { note_types(struct, code) }
match(code, /^typedef .*\(\*[a-z_0-9]+\)\(/) {
    name = substr(code, 1, RLENGTH - 2)
    sub(/.*\*/, "", name)
    function_type[name] = 1
}
code ~ /^[^(]*pthread_(mutex|rwlock)_t [a-z_]+( =.*)?;/ {
    name = code
    sub(/.*_t /, "", name)
    sub(/[ ;].*/, "", name)
    id = struct != "" ? struct "." name : base ":" name
    declared[id] = 1
    print "lock", id, FILENAME
}
match(code, /\.[a-z_]+ = [a-z_0-9]+[,}]?$/) || match(code, /\{\.[a-z_]+ = [a-z_0-9]+\}/) {
    name = value = substr(code, RSTART, RLENGTH)
    gsub(/^[{.]+| =.*/, "", name)
    gsub(/.*= |[,}]/, "", value)
    note_slot(name, value)
}

code == "{" && head ~ /\(/ {
    gsub(/__attribute__\(\(([^()]|\([^()]*\))*\)\)/, "", head)
    name = head
    sub(/\(.*/, "", name)
    sub(/ +$/, "", name)
    sub(/.*[ *]/, "", name)
    id = head ~ /static / && FILENAME ~ /\.c$/ ? base ":" name : name
    in_body = 1
    func_id[++funcs] = id
    func_base[funcs] = base
    func_place[funcs] = FILENAME ":" FNR
    func_head[funcs] = head
    number[id] = funcs
    note_types(funcs, head)
    next
}
code ~ /[;}]$/ { head = "" }
code !~ /[;}]$/ { head = head " " code }

# The lock that an expression is, seen from function f; "" if it cannot be told.
function lock_of(f, text,    part, parts, type, i) {
    gsub(/^[ &]+|\(pthread_[a-z]*_t \*\)|\(uintptr_t\)|[&()]/, "", text)
    gsub(/\[[^\]]*\]/, "", text)
    gsub(/->/, ".", text)
    parts = split(text, part, ".")
    if (parts == 1)
        return (func_base[f] ":" text) in declared ? func_base[f] ":" text : alias[f, text]
    type = types[f, part[1]]
    for (i = 2; i < parts; i++)
        type = (type, part[i]) in types ? types[type, part[i]] : types["", part[i]]
    return (type "." part[parts]) in declared ? type "." part[parts] : ""
}

# The function that a name is in function f's file, 0 for none of ours.
function function_of(f, name) {
    if ((func_base[f] ":" name) in number)
        return number[func_base[f] ":" name]
    return name in number ? number[name] : 0
}

function has(set, lock) { return index(set, " " lock " ") > 0 }
function plus(set, lock) { return has(set, lock) ? set : (set == "" ? " " : set) lock " " }
function minus(set, lock,    at) {
    at = index(set, " " lock " ")
    return at ? substr(set, 1, at) substr(set, at + length(lock) + 2) : set
}
function union(set, more,    i, n, part) {
    n = split(more, part, " ")
    for (i = 1; i <= n; i++)
        set = plus(set, part[i])
    return set
}

# Whether a parameter of f is a function.
function is_function(f, name) {
    return func_head[f] ~ ("\\(\\*" name "(\\)\\(|,|\\))")
}

function except_for(f, g, held,    i, n, part) {
    n = split(held, part, " ")
    for (i = 1; i <= n; i++)
        if (is_excepted(bare(func_id[f]) " " bare(func_id[g]) " " part[i]))
            held = minus(held, part[i])
    return held
}

function is_excepted(text) {
    if (text in excepted)
        used[text]
    return text in excepted
}

function bare(id) {
    sub(/.*:/, "", id)
    return id
}

function acquire(f, held, lock, how) {
    acquire_how[acquires + 1] = how
    acquire_f[++acquires] = f
    acquire_held[acquires] = held
    acquire_lock[acquires] = lock
}

function add_call(f, g, held) {
    call_from[++calls] = f
    call_to[calls] = g
    call_held[calls] = held
}

# A call of `name` by f, with `held`. Returns what is held after it.
function call(f, name, is_slot, held,    g, i) {
    g = is_slot ? 0 : function_of(f, name)
    if (name in event && func_base[f] !~ /(^|\/)(base|host_wait|hooks)\./)
        acquire(f, held, event[name], "under")
    if (g) {
        add_call(f, g, except_for(f, g, held))
        for (i = split(drops[g], dropped, " "); i > 0; i--)
            held = release(f, held, dropped[i])
        return union(held, keeps[g])
    }
    if (is_slot && func_base[f] ~ /(^|\/)(base|host_wait|hooks)\./)
        return held
    if (is_slot) {
        for (i = 1; i <= slots; i++)
            if (slot_name[i] == name && (g = slot_target[i]))
                add_call(f, g, held)
    } else if (is_function(f, name)) {
        for (i = 1; i <= passes; i++)
            if (pass_to[i] == f)
                add_call(f, pass_what[i], held)
    }
    return held
}

function release(f, held, lock) {
    if (has(held, lock))
        return minus(held, lock)
    drops[f] = plus(drops[f], lock)
    return held
}

# Goes through a function's text in its order. A block that ends by leaving does
# not count for what follows it.
function walk(f,    text, token, before, depth, held, saved, left, paren, callee, rest, lock, is_call, is_slot, try, g) {
    text = body[f]
    before = held = ""
    depth = paren = 0
    while (match(text, /[{}()]|[A-Za-z_][A-Za-z_0-9]*/)) {
        token = substr(text, RSTART, RLENGTH)
        before = before substr(text, 1, RSTART - 1)
        if (length(before) > 60)
            before = substr(before, length(before) - 59)
        text = substr(text, RSTART + RLENGTH)
        is_call = text ~ /^\(/
        is_slot = before ~ /(->|[a-z_\])]\.)$/
        if (token == "{") {
            saved[++depth] = held
            left[depth] = 0
            tried[depth] = try
            try = ""
        } else if (token == "}") {
            if (depth > 0 && left[depth])
                held = saved[depth]
            held = union(held, tried[depth--])
        } else if (token == "(") {
            callee[++paren] = pending
        } else if (token == ")") {
            paren--
        } else if (token ~ /^(return|break|continue|goto)$/) {
            left[depth] = 1
            if (token == "return")
                returns[f] = union(returns[f], held)
        } else if (token ~ /^pthread_(mutex|rwlock)_(try|rd|wr|tryrd|trywr|un)?lock$/) {
            rest = text
            sub(/^\(/, "", rest)
            sub(/\).*/, "", rest)
            rest = text ~ /^\(\(/ ? text : rest
            lock = lock_of(f, rest)
            if (lock == "") {
                wrong[func_place[f] ": " func_id[f] ": which lock is " rest "?"]
            } else if (token ~ /unlock$/) {
                held = release(f, held, lock)
            } else {
                takes[f, lock] = 1
                acquire(f, held, lock, token ~ /try/ ? "tries" : "under")
                if (text ~ /^\([^;]*\) != 0\) \{/) {
                    try = lock # once the block for failure is over
                    continue
                }
                held = plus(held, lock)
            }
        } else if (is_call && token !~ /^(if|for|while|switch|sizeof)$/) {
            held = call(f, token, is_slot, held)
        } else if (!is_slot && (g = function_of(f, token))) {
            note_taken(f, g, before, paren > 0 ? callee[paren] : "")
        }
        pending = is_call ? (is_slot ? "" : token) : ""
        before = before token
    }
    keeps[f] = held
}

# Function g's address is used by f: passed to another function, or kept.
function note_taken(f, g, before, callee,    to, name) {
    if ((f, g, callee) in seen)
        return
    seen[f, g, callee] = 1
    to = callee == "" ? 0 : function_of(f, callee)
    if (to && index(func_head[to], "(*")) {
        pass_to[++passes] = to
        pass_what[passes] = g
    } else if (match(before, /[a-z_]+ = $/)) {
        name = substr(before, RSTART, RLENGTH - 3)
        base = func_base[f]
        note_slot(name, func_base[f] ":" "")
        slot_target[slots] = g
    } else {
        root[g] = 1
    }
}

END {
    # Aliases: pthread_mutex_t *NAME = EXPRESSION;
    for (f = 1; f <= funcs; f++) {
        for (name in function_type)
            gsub(" " name " ", " x (*", func_head[f])
        text = body[f]
        gsub(/[{};]/, "\n&\n", text)
        for (i = split(text, line, "\n"); i > 0; i--)
            note_types(f, line[i])
        if (match(body[f], /pthread_mutex_t \*[a-z_]+ = [^;]*/)) {
            text = substr(body[f], RSTART + 17, RLENGTH - 17)
            name = text
            sub(/ .*/, "", name)
            sub(/^[a-z_]+ = /, "", text)
            alias[f, name] = lock_of(f, text)
        }
    }
    for (i = 1; i <= slots; i++) {
        name = slot_base[i] ":" slot_value[i]
        slot_target[i] = name in number ? number[name] : number[slot_value[i]]
        if (slot_target[i])
            slotted[slot_target[i]] = 1
    }
    # Until it is known what each call takes, releases and passes on.
    for (pass = 1; pass <= 4; pass++) {
        calls = acquires = 0
        for (f = 1; f <= funcs; f++)
            walk(f)
    }
    # may: held on some way here; must: on each way. "all" before any is known.
    for (i = 1; i <= calls; i++)
        called[call_to[i]] = 1
    for (f = 1; f <= funcs; f++) {
        may[f] = ""
        must[f] = (f in called) && !(f in root) ? "all" : ""
    }
    do {
        changed = 0
        for (i = 1; i <= calls; i++) {
            f = call_from[i]
            g = call_to[i]
            set = union(may[g], union(call_held[i], may[f]))
            if (set != may[g]) {
                may[g] = set
                changed = 1
            }
            if (must[f] == "all")
                continue
            here = union(call_held[i], minus_all(must[f], drops[f]))
            if (must[g] == "all") {
                must[g] = here
                changed = 1
            } else {
                n = split(must[g], part, " ")
                for (k = 1; k <= n; k++)
                    if (!has(here, part[k])) {
                        must[g] = minus(must[g], part[k])
                        changed = 1
                    }
            }
        }
    } while (changed)
    for (f = 1; f <= funcs; f++) {
        n = split(must[f] == "all" ? "" : must[f], part, " ")
        for (k = 1; k <= n; k++)
            print "with", part[k], func_id[f]
        n = split(drops[f], part, " ")
        for (k = 1; k <= n; k++)
            if (!has(must[f], part[k]))
                wrong[func_place[f] ": " func_id[f] " releases " part[k] ", which not every caller holds"]
    }
    for (f = 1; f <= funcs; f++) {
        n = split(returns[f], part, " ")
        for (k = 1; k <= n; k++)
            if (!has(keeps[f], part[k]))
                wrong[func_place[f] ": " func_id[f] " may return with " part[k] " held"]
        n = split(keeps[f], part, " ")
        for (k = 1; k <= n; k++)
            if ((!(f in called) || f in slotted || f in root) &&
                !is_excepted("- " bare(func_id[f]) " " part[k]))
                leaks[part[k]] = func_id[f]
    }
    for (key in takes) {
        split(key, part, SUBSEP)
        if (part[2] in leaks && has(keeps[part[1]], part[2]))
            wrong[func_place[part[1]] ": " func_id[part[1]] " leaves " part[2] \
                " locked, and so does " leaks[part[2]] " when it returns"]
    }
    for (key in takes) {
        split(key, part, SUBSEP)
        print "takes", part[2], func_id[part[1]]
    }
    for (i = 1; i <= acquires; i++) {
        n = split(union(acquire_held[i], may[acquire_f[i]]), part, " ")
        for (k = 1; k <= n; k++)
            print acquire_how[i], part[k], acquire_lock[i], func_id[acquire_f[i]]
    }
    for (text in excepted)
        if (!(text in used))
            wrong["tests/check_locks.sh:1: an exception that is not needed: " text]
    for (text in wrong)
        print "bad", text
}

function minus_all(set, less,    i, n, part) {
    n = split(less, part, " ")
    for (i = 1; i <= n; i++)
        set = minus(set, part[i])
    return set
}
