# SPDX-License-Identifier: MIT
#
# Maxima of one function: length, nesting, parameters. Reads C laid out by
# clang-format as .clang-format says: a function body's braces are in column 1,
# a block's brace follows its keyword on the line. Prints file:line: what.

BEGIN {
    max_lines = 60
    max_nesting = 3
    max_params = 7
}

FNR == 1 {
    in_comment = in_directive = in_body = 0
    signature = ""
}

# The line without comments, directives and the insides of quotes.
function strip(line,    out, rest) {
    if (in_directive || (!in_comment && line ~ /^[ \t]*#/)) {
        in_directive = line ~ /\\$/
        return ""
    }
    gsub(/\\\\/, "", line)
    gsub(/\\["']/, "", line)
    gsub(/'[^']*'/, "0", line)
    gsub(/"[^"]*"/, "\"\"", line)
    while (line != "") {
        if (in_comment) {
            if (!(rest = index(line, "*/")))
                return out
            line = substr(line, rest + 2)
            in_comment = 0
        } else if (rest = match(line, /\/[*\/]/)) {
            out = out substr(line, 1, rest - 1)
            if (substr(line, rest, 2) == "//")
                return out
            line = substr(line, rest + 2)
            in_comment = 1
        } else {
            return out line
        }
    }
    return out
}

# Removes __attribute__((...)) with whatever it nests.
function without_attributes(text,    start, at, depth, char) {
    while (start = index(text, "__attribute__")) {
        depth = 0
        for (at = start + 13; at <= length(text); at++) {
            char = substr(text, at, 1)
            depth += (char == "(") - (char == ")")
            if (char == ")" && depth == 0)
                break
        }
        text = substr(text, 1, start - 1) substr(text, at + 1)
    }
    return text
}

# Checks the parameter count of a declaration or definition in src/, whose
# functions are internal unless they are the public ones of the map.
function check_params(text, line,    name, at, depth, params, char) {
    if (!count_params)
        return
    text = without_attributes(text)
    if (text ~ /[=]|^[ ]*(typedef|struct [a-z_]+ *$)/ || !(at = index(text, "(")))
        return
    name = substr(text, 1, at - 1)
    if (substr(text, at + 1, 1) == "*") # a function pointer: not a function
        return
    sub(/ +$/, "", name)
    sub(/.*[^A-Za-z0-9_]/, "", name)
    if (name ~ /^iris_/ && name !~ /^iris_i_/)
        return
    params = 1
    for (; at <= length(text); at++) {
        char = substr(text, at, 1)
        depth += (char == "(") - (char == ")")
        params += char == "," && depth == 1
        if (depth == 0)
            break
    }
    if (params > max_params)
        report(line, name "() has " params " parameters, more than " max_params)
}

function report(line, what) {
    printf "%s:%d: %s\n", FILENAME, line, what
}

# Keeps the stack of open braces; only blocks of statements count as nesting,
# not initialisers, structs and compound literals.
function nest(code,    at, char, before) {
    for (at = 1; at <= length(code); at++) {
        char = substr(code, at, 1)
        if (char == "{") {
            before = substr(code, 1, at - 1)
            is_block[++braces] = \
                before ~ /(\) |(^|[^A-Za-z0-9_])(else|do) )$|^ *$/
            nesting += is_block[braces]
            if (nesting > max_nesting && nesting > deepest) {
                deepest = nesting
                report(FNR, "nesting " nesting ", more than " max_nesting)
            }
        } else if (char == "}" && braces > 0) {
            nesting -= is_block[braces--]
        }
    }
}

{
    code = strip($0)
    if (in_body) {
        if (code ~ /^}/) {
            in_body = 0
            if (FNR - begin + 1 > max_lines)
                report(begin, "function of " FNR - begin + 1 \
                       " lines, more than " max_lines)
        } else {
            nest(code)
        }
        signature = ""
    } else if (code ~ /^{/) {
        check_params(signature, begin)
        in_body = 1
        braces = nesting = deepest = 0
    } else if (code ~ /^[ \t]*$/ || code ~ /^}/) {
        signature = ""
    } else {
        if (signature == "")
            begin = FNR
        signature = signature " " code
        if (code ~ /;[ \t]*$/) {
            check_params(signature, begin)
            signature = ""
        }
    }
}
