# SPDX-License-Identifier: MIT
#
# Lists the functions and variables that headers declare at file scope. Reads the output of
# a compiler's -E, and prints for each declaration in a file below `root`, with tabs between:
#   the file, relative to root
#   extern: another file must define it; inline: the header does, or it is static or hidden
#   the name
#   for a function: its type, as the declaration of a pointer `use` to it
# It leaves out templates, classes and namespaces.

function paren_end(text, from,    i, depth, c) {
    for (i = from; i <= length(text); i++) {
        c = substr(text, i, 1)
        depth += (c == "(") - (c == ")")
        if (c == ")" && depth == 0)
            return i
    }
    return 0
}

function without_attributes(text) {
    while (match(text, /(__attribute__|__asm__) *\(/))
        text = substr(text, 1, RSTART - 1) " " substr(text, paren_end(text, RSTART) + 1)
    return text
}

# A declaration, which ends with a semicolon or the brace of a body.
function end_declaration(text, has_body,    kind, bare, open, before, name) {
    if (substr(file, 1, length(root)) != root ||
        text ~ /^[ \t]*(typedef|template|using|namespace|class)[ \t]/)
        return
    kind = has_body || text ~ /(^|[ \t])static[ \t]|"hidden"/ ? "inline" : "extern"
    bare = without_attributes(text)
    gsub(/(^|[ \t])(static|inline|extern|constexpr|__extension__|__inline|"C")[ \t]/, " ", bare)
    gsub(/(^|[ \t])(static|inline|extern)[ \t]/, " ", bare)
    open = index(bare, "(")
    before = open ? substr(bare, 1, open - 1) : bare
    gsub(/\[.*|=.*/, "", before)
    sub(/[ \t]+$/, "", before)
    if (!match(before, /[A-Za-z0-9_][ \t*]+[A-Za-z_][A-Za-z0-9_]*$/) ||
        (!open && text !~ /^[ \t]*extern[ \t]/))
        return
    match(before, /[A-Za-z_][A-Za-z0-9_]*$/)
    name = substr(before, RSTART)
    before = substr(before, 1, RSTART - 1)
    print substr(file, length(root) + 1) "\t" kind "\t" name \
        (open ? "\t" before " (*use)" \
        substr(bare, open, paren_end(bare, open) - open + 1) : "")
}

# A brace, a semicolon, or text between them.
function read_piece(piece) {
    if (piece == "{" && depth == 0 && text ~ /^[ \t]*extern[ \t]*"C"[ \t]*$/) {
        linkage++ # it has declarations at file scope
        text = ""
    } else if (piece == "{") {
        is_function = depth++ == 0 ? text ~ /\)[ \t]*$/ && text !~ /=/ : is_function
        if (depth == 1 && is_function)
            end_declaration(text, 1)
    } else if (piece == "}" && depth == 0) {
        linkage--
    } else if (piece == "}") {
        if (--depth == 0 && is_function)
            text = ""
    } else if (depth == 0 && piece == ";") {
        end_declaration(text, 0)
        text = ""
    } else if (depth == 0) {
        if (text !~ /[^ \t]/)
            file = now
        text = text " " piece
    }
}

/^# [0-9]+ "/ {
    split($0, marker, "\"")
    now = marker[2]
    next
}

# No quoted text has a brace or a semicolon, but for an `asm`, which stands in a body.
{
    count = split($0, pieces, /[{};]/)
    at = 0
    for (i = 1; i <= count; i++) {
        read_piece(pieces[i])
        at += length(pieces[i]) + 1
        if (i < count)
            read_piece(substr($0, at, 1))
    }
}
