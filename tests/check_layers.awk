# SPDX-License-Identifier: MIT
#
# Who may include whom. Reads file:line:name of every include, with `layers`
# ("base backend ... tensor,ccl,ops": from low to high, commas between those of
# one height) and `islands` (folders that no other includes). Prints, by `rule`,
# includes of higher or neighbouring folders of src/, or cycles of files.

BEGIN {
    n = split(layers, rows, " ")
    for (i = 1; i <= n; i++) {
        m = split(rows[i], names, ",")
        for (j = 1; j <= m; j++)
            height[names[j]] = i
    }
    n = split(islands, names, " ")
    for (i = 1; i <= n; i++)
        island[names[i]] = 1
}

# src/heap/alloc.c -> heap
function folder_of(file,    parts) {
    split(file, parts, "/")
    return parts[2]
}

# The file of this project that a name in quotes or angle brackets means.
function resolve(name) {
    name = substr(name, 2, length(name) - 2)
    if (name ~ /^iris\/device\//)
        return substr(name, 6)
    if (name ~ /^iris\//)
        return "include/" name
    return "src/" name
}

function check_layer(place, file, target,    from, to) {
    if (file !~ /^src\//)
        return
    from = folder_of(file)
    if (!(from in height)) {
        if (!(from in unknown))
            print file ":1: src/" from " is no layer that check_structure knows"
        unknown[from] = 1
        return
    }
    to = folder_of(target)
    if (target !~ /^src\// || !(to in height) || to == from)
        return
    if (height[to] >= height[from] || to in island)
        print place ": " from " includes " to ", which is not below it"
}

# Depth first: an include of a file that is open closes a cycle.
function visit(file,    i, next_file) {
    state[file] = "open"
    for (i = 1; i <= count[file]; i++) {
        next_file = target_of[file, i]
        if (state[next_file] == "open")
            print place_of[file, i] ": a cycle of includes, back to " next_file
        else if (state[next_file] == "")
            visit(next_file)
    }
    state[file] = "done"
}

!/[>"]$/ { # a macro, which is a file of its own folder
    next
}

{
    split($0, parts, ":")
    file = parts[1]
    place = parts[1] ":" parts[2]
    target = resolve(parts[3])
    if (rule == "layers") {
        check_layer(place, file, target)
    } else {
        if (!(file in count))
            files[++num_files] = file
        count[file]++
        target_of[file, count[file]] = target
        place_of[file, count[file]] = place
    }
}

END {
    for (i = 1; i <= num_files; i++)
        if (state[files[i]] == "")
            visit(files[i])
}
