# SPDX-License-Identifier: MIT
#
# Writes a manual page for each comment that calls.awk finds a call under, into `folder`.
# `names` are the calls that have a page, and `version` is the release.

BEGIN {
    split(names, list, " ")
    for (i in list)
        page_of[list[i]] = 1
}

# The texts of statuses: X(ERR_TIMEOUT, -9, "deadline passed").
/^    X\([A-Z_]+, *-?[0-9]+, *"/ {
    status = "IRIS_" substr($1, 3)
    sub(/,.*/, "", status)
    text = $0
    gsub(/^[^"]*"|"[^"]*$/, "", text)
    meaning[status] = text
}

# Text, with its fonts: names of calls and arguments.
function roff(text,    result, word) {
    gsub(/\\/, "\\e", text)
    result = ""
    while (match(text, /`[^`]*`|iris_[a-z0-9_]+\(\)/)) {
        word = substr(text, RSTART, RLENGTH)
        result = result substr(text, 1, RSTART - 1)
        if (word ~ /^`/)
            result = result "\\fI" substr(word, 2, RLENGTH - 2) "\\fR"
        else {
            sub(/\(\)$/, "", word)
            result = result "\\fB" word "\\fR()"
            if (word in page_of)
                mentioned[word] = 1
        }
        text = substr(text, RSTART + RLENGTH)
    }
    result = result text
    if (result ~ /^[.']/)
        result = "\\&" result
    return result
}

# Code and tables, as they stand.
function verbatim(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    return (text ~ /^[.']/ ? "\\&" : "") text
}

# A call's declaration, broken at commas into lines of 70 columns.
function synopsis(text,    start, line, i, n, args, pad, result) {
    if (!(start = index(text, "(")))
        return verbatim(text) "\n"
    line = substr(text, 1, start)
    pad = start > 45 ? 4 : start
    if (start > 45) {
        result = verbatim(line) "\n"
        line = sprintf("%4s", "")
    }
    n = split(substr(text, start + 1), args, ", ")
    for (i = 1; i <= n; i++) {
        if (i > 1 && length(line) + length(args[i]) > 70) {
            sub(/ $/, "", line)
            result = result verbatim(line) "\n"
            line = sprintf("%" pad "s", "")
        }
        line = line args[i] (i < n ? ", " : "")
    }
    return result verbatim(line) (text ~ /^[A-Za-z0-9_]+\(/ ? "" : ";") "\n"
}

function codes(list,    n, i, parts) {
    n = split(list, parts, /, */)
    for (i = 1; i <= n; i++)
        if (parts[i] in meaning)
            page = page ".TP\n.B " parts[i] "\n" roff(meaning[parts[i]]) "\n"
}

function set_kind(next_kind) {
    if (kind == "code" && next_kind != "code")
        page = page ".EE\n"
    if (next_kind == "code" && kind != "code")
        page = page (kind == "" ? "" : ".PP\n") ".EX\n"
    if (next_kind == "text" && kind != "text" && kind != "")
        page = page ".PP\n"
    kind = next_kind
}

# The lines of a comment: paragraphs, lists, statuses with their causes, code.
function body(text,    lines, n, i, line, indent, word) {
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
            if (!errors++)
                page = page ".SH ERRORS\n"
            if (line !~ /  /)
                codes(line)
            else {
                word = line
                sub(/ .*/, "", word)
                sub(/^[^ ]* */, "", line)
                page = page ".TP\n.B " word "\n" roff(line) "\n"
            }
        } else if (kind == "status" && indent >= 8)
            page = page roff(substr(line, indent + 1)) "\n"
        else if (match(line, /^ *- /)) {
            set_kind("list")
            page = page ".IP \\(bu 2\n" roff(substr(line, RLENGTH + 1)) "\n"
        } else if (kind == "list" && indent >= 3)
            page = page roff(substr(line, indent + 1)) "\n"
        else if (indent >= 2) {
            set_kind("code")
            page = page (gap && page !~ /\.EX\n$/ ? "\n" : "") verbatim(substr(line, 3)) "\n"
        } else {
            set_kind("text")
            page = page (gap && page !~ /\.(SH [^\n]*|PP)\n$/ ? ".PP\n" : "") roff(line) "\n"
        }
        gap = 0
    }
    set_kind("")
}

function write_page(    i, page, path, text, parts, title) {
    if (!num_calls)
        return
    delete mentioned
    errors = 0
    page_begin()
    for (i = 2; i <= num_calls; i++) {
        path = folder "/" calls[i] ".3"
        printf ".so man3/%s.3\n", calls[1] >path
        close(path)
    }
    num_calls = 0
}

function page_begin(    i, text, all, path) {
    for (i = 1; i <= num_calls; i++) {
        all = all (i > 1 ? ", " : "") calls[i]
        text = text (prototypes[i] == "" ? "" : synopsis(prototypes[i]))
    }
    page = ".\\\" Made from " folder_of_header "/" page_header " by scripts/man-pages.\n" \
        ".TH " toupper(calls[1]) " 3 \"\" \"Iris " version "\" \"Iris functions\"\n" \
        ".SH NAME\n" all " \\- " roff(first_sentence(page_doc)) "\n" \
        ".SH SYNOPSIS\n.nf\n#include <" include_name ">\n" \
        (text == "" ? "" : ".PP\n" text) ".fi\n.SH DESCRIPTION\n"
    body(page_doc)
    if (page_section ~ /\n\n./) {
        text = page_section
        sub(/\n.*/, "", text)
        page = page ".SH " toupper(text) "\n"
        text = page_section
        sub(/^[^\n]*\n*/, "", text)
        errors = 0
        body(text)
    }
    page = page ".SH SEE ALSO\n"
    for (i in calls)
        delete mentioned[calls[i]]
    page = page related() ".BR iris (7)\n"
    path = folder "/" calls[1] ".3"
    printf "%s", page >path
    close(path)
}

# The calls that the page mentions, sorted.
function related(    sorted, n, i, j, word, result) {
    n = 0
    for (word in mentioned) {
        for (i = ++n; i > 1 && sorted[i - 1] > word; i--)
            sorted[i] = sorted[i - 1]
        sorted[i] = word
    }
    for (i = 1; i <= n; i++)
        result = result ".BR " sorted[i] " (3),\n"
    return result
}

function found() {
    if (fresh || header != page_header)
        write_page()
    if (!num_calls) {
        page_doc = doc
        page_section = section
        page_header = header
        folder_of_header = FILENAME
        sub(/\/[^\/]*$/, "", folder_of_header)
        include_name = folder_of_header == "device" ? "iris/device.h" : "iris/" header
    }
    if (name in done)
        return
    done[name] = 1
    calls[++num_calls] = name
    prototypes[num_calls] = prototype
}

END { write_page() }
