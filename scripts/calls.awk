# SPDX-License-Identifier: MIT
#
# Reads public headers, and calls found() for each public call: a function, or a macro that
# is used like one. Another awk file, passed with it, defines found(). Then
#   header     is the file's name, such as "ccl.h"
#   name       the call's name
#   prototype  its declaration, in one line and without the words of the compiler
#   doc        the lines of the comment that it stands under, with the indentation that
#              they have beyond the comment's own
#   fresh      1 for the first call under a comment
#   section    the lines of the comment "---- TITLE ---" that this part of the header has

function first_sentence(text) {
    gsub(/\n\n/, ". ", text)
    gsub(/[ \t\n]+/, " ", text)
    sub(/^ /, "", text)
    if (match(text, /[.:;]( |$)/))
        text = substr(text, 1, RSTART - 1)
    return text
}

# Ends a declaration: its words, without the compiler's and the body.
function declared(text) {
    gsub(/[ \t]+/, " ", text)
    sub(/^(IRIS_API|IRIS_DEVICE|IRIS_DEVICE_LARGE|IRIS_HOST_DEVICE|static inline) /, "", text)
    sub(/ *(IRIS_PRINTF)?;.*/, "", text)
    sub(/ *\{.*/, "", text)
    gsub(/\( /, "(", text)
    return text
}

function emit(word) {
    name = word
    if (name ~ /^iris_[id]_/ || (header, name) in seen)
        return
    seen[header, name] = 1
    found()
    fresh = 0
}

# A comment that names its calls itself, because a table of types expands to them:
# "iris_load: ..." or "iris_atomic_add, _sub: ..."; prototypes with the suffix of a type
# name further ones, and "IRIS_LANES(wg, i, n) statement: ..." a macro.
function named(    lines, n, i, words, m, j, last, text, full) {
    text = doc
    sub(/:.*/, "", text)
    n = split(doc, lines, "\n")
    prototype = ""
    for (i = 1; i <= n; i++)
        if (match(lines[i], /^IRIS_[A-Z_]+\([^)]+\)/)) {
            prototype = substr(lines[i], RSTART, RLENGTH)
            if (i == 1 && sub(/^IRIS_[A-Z_]+\([^)]+\)(;| statement:|:)? */, "", doc))
                doc = toupper(substr(doc, 1, 1)) substr(doc, 2)
            sub(/\(.*/, "", lines[i])
            emit(lines[i])
        }
    if (text !~ /^iris_[a-z0-9_]+(,|$)/)
        return
    doc = toupper(substr(doc, length(text) + 3, 1)) substr(doc, length(text) + 4)
    prototype = ""
    m = split(text, words, /[^a-z0-9_]+/)
    for (j = 1; j <= m; j++) {
        if (words[j] ~ /^iris_/)
            last = words[j]
        else if (words[j] ~ /^_/) {
            sub(/_[a-z]+$/, "", last)
            last = last words[j]
        } else
            continue
        full[j] = last
        emit(last)
    }
    for (i = 1; i <= n; i++)
        if (lines[i] ~ /^    / && match(lines[i], /iris_[a-z0-9_]+_(f32|u64)\(/)) {
            last = substr(lines[i], RSTART, RLENGTH - 5)
            emit(last)
            if (sub(/_masked$/, "", last))
                for (j = 1; j <= m; j++)
                    if (words[j] != "" && words[j] != last)
                        emit(full[j] "_masked")
        } else if (match(lines[i], /^iris_[a-z_]+:/))
            emit(substr(lines[i], 1, RLENGTH - 1))
}

FNR == 1 {
    header = FILENAME
    sub(/.*\//, "", header)
    doc = section = declaration = ""
    comment = ""
}
/^\/\*\*/ || /^\/\* ----/ {
    comment = $0 ~ /^\/\*\*/ ? "doc" : "section"
    lines_of = ""
}
comment != "" {
    line = $0
    last = sub(/ *\*\/.*/, "", line)
    if (comment == "doc")
        sub(/^(\/\*\*| \*)( |$) ?/, "", line)
    else if (!sub(/^ \* ?/, "", line)) {
        gsub(/^\/\* -+ | -+$/, "", line)
        line = line "\n"
    }
    lines_of = lines_of line "\n"
    if (last && comment == "doc") {
        doc = lines_of
        fresh = 1
        named()
    } else if (last)
        section = lines_of
    if (last)
        comment = ""
    next
}
declaration == "" && /^(IRIS_API|IRIS_DEVICE|IRIS_DEVICE_LARGE|IRIS_HOST_DEVICE|static inline) / {
    declaration = $0
    if ($0 !~ /[;{]/)
        next
}
declaration == "" && /^#define iris_[a-z_]*\(/ {
    match($0, /iris_[a-z_]*\([^)]*\)/)
    prototype = substr($0, RSTART, RLENGTH)
    word = prototype
    sub(/\(.*/, "", word)
    emit(word)
}
declaration != "" {
    if (declaration != $0)
        declaration = declaration " " $0
    if (/[;{]/) {
        prototype = declared(declaration)
        declaration = ""
        if (match(prototype, /iris_[a-z0-9_]*\(/))
            emit(substr(prototype, RSTART, RLENGTH - 1))
    }
}
