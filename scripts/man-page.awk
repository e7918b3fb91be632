# SPDX-License-Identifier: MIT
#
# Writes a manual page for each comment that calls.awk finds a call under, into `folder`, by
# comment.awk.
# `names` are the calls that have a page, and `version` is the release.

BEGIN {
    split(names, list, " ")
    for (i in list)
        page_of[list[i]] = 1
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

function begins(next_kind, last) {
    if (last == "code")
        page = page ".EE\n"
    if (next_kind == "status" && !errors++)
        page = page ".SH ERRORS\n"
    else if (last != "" && (next_kind == "code" || next_kind == "text"))
        page = page ".PP\n"
    if (next_kind == "code")
        page = page ".EX\n"
}

function wrote(kind, text, gap) {
    if (kind == "code")
        page = page (gap ? "\n" : "") verbatim(text) "\n"
    else
        page = page (gap ? ".PP\n" : "") roff(text) "\n"
}

function item(text) {
    page = page ".IP \\(bu 2\n" roff(text) "\n"
}

function cause(status, text) {
    page = page ".TP\n.B " status "\n" roff(text) "\n"
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
        include_name = folder_of_header ~ /^device/ ? "iris/device.h" : "iris/" header
    }
    if (name in done)
        return
    done[name] = 1
    calls[++num_calls] = name
    prototypes[num_calls] = prototype
}

END { write_page() }
