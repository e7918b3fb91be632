# SPDX-License-Identifier: MIT
#
# Divides a comment that calls.awk found into paragraphs, lists, code, and statuses with
# their causes. Another awk file, passed with it, defines the functions that write them:
#   begins(KIND, LAST)    before the first line of "text", "list", "code" or "status";
#                         LAST is the kind of the lines before it, "" at first and in the end
#   wrote(KIND, TEXT, GAP)  a line; GAP is 1 if an empty line comes before it
#   item(TEXT)            the first line of an item of a list
#   cause(STATUS, TEXT)   the first line of a status's cause

# The texts of statuses: X(ERR_TIMEOUT, -9, "deadline passed").
/^    X\([A-Z_]+, *-?[0-9]+, *"/ {
    status = "IRIS_" substr($1, 3)
    sub(/,.*/, "", status)
    text = $0
    gsub(/^[^"]*"|"[^"]*$/, "", text)
    meaning[status] = text
}

function set_kind(next_kind) {
    if (kind != next_kind)
        begins(next_kind, kind)
    kind = next_kind
}

# Statuses without a cause of their own: "IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT".
function causes(list,    n, i, parts) {
    n = split(list, parts, /, */)
    for (i = 1; i <= n; i++)
        if (parts[i] in meaning)
            cause(parts[i], meaning[parts[i]])
}

function body(text,    lines, n, i, line, indent, word, gap) {
    n = split(text, lines, "\n")
    kind = ""
    for (i = 1; i <= n; i++) {
        line = lines[i]
        match(line, /^ */)
        indent = RLENGTH
        sub(/ *$/, "", line)
        if (line == "") {
            gap = 1
            continue
        }
        if (line ~ /^IRIS_ERR_[A-Z_]+(  |(, IRIS_ERR_[A-Z_]+)*,?$)/) {
            set_kind("status")
            word = line
            sub(/ .*/, "", word)
            if (line !~ /  /)
                causes(line)
            else {
                sub(/^[^ ]* */, "", line)
                cause(word, line)
            }
        } else if (kind == "status" && indent >= 8)
            wrote("status", substr(line, indent + 1), 0)
        else if (match(line, /^ *- /)) {
            set_kind("list")
            item(substr(line, RLENGTH + 1))
        } else if (kind == "list" && indent >= 3)
            wrote("list", substr(line, indent + 1), 0)
        else if (indent >= 2) {
            indent = kind == "code"
            set_kind("code")
            wrote("code", substr(line, 3), gap && indent)
        } else {
            indent = kind == "text"
            set_kind("text")
            wrote("text", line, gap && indent)
        }
        gap = 0
    }
    set_kind("")
}
