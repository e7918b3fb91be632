# SPDX-License-Identifier: MIT
#
# Lists in block comments whose lines have lost their indent. An item has a gap
# of two spaces behind its term, or is a line of statuses alone; its further
# lines are deeper than its first. A list ends at an empty line, a mark (@use), or a
# line less deep. The lines of a comment that begins with "/**" have two spaces.
function depth_of(text) {
    return match(text, /[^ ]/) ? RSTART - 1 : 0
}

function check(text) {
    depth = depth_of(text)
    if (text ~ /^ *(@.*)?$/) {
        list = -1
        return
    }
    if (manual && depth < 2)
        print FILENAME ":" FNR ": a comment's line that has lost its indent"
    if (text ~ /[^ .;:,]  +[^ ]/ || text ~ /^ *IRIS_ERR_[A-Z_, ]+$/)
        list = depth
    else if (depth == list)
        print FILENAME ":" FNR ": a list's line that has lost its indent"
    else if (depth < list)
        list = -1
}

FNR == 1 { inside = 0 }

!inside && /^[ \t]*\/\*/ && !/\*\// {
    inside = 1
    manual = /^[ \t]*\/\*\*/
    list = -1
    next
}

inside {
    text = $0
    sub(/[ ]+\\$/, "", text) # of a macro's line
    last = sub(/[ ]*\*\/.*$/, "", text)
    if (sub(/^[ \t]*\*/, "", text) || !last)
        check(text)
    if (last)
        inside = 0
}
