# SPDX-License-Identifier: MIT
#
# Makes C files of random definitions, and what iriscc's cutting has to leave of
# them: source FILE and expected EXPECTED, from `seed`. Definitions that are host
# code leave their line ends and their #defines; all else stays as it is.

function pick(n) {
    return int(rand() * n)
}

function one_of(list,    words, n) {
    n = split(list, words, "|")
    return words[1 + pick(n)]
}

function name() {
    return one_of("a|scale|rows_|_x|tmp2|iris_x") ++serial
}

function blank() {
    return one_of(" | |  |\n|\t|\n\n| /* } */ | /* \" { ' */ | // it's { \"\n|" \
                  "/*\n * {{ */")
}

# What looks like code and is not: texts and characters with braces.
function text() {
    return one_of("\"{\"|\"}\"|\"\\\"}\"|\"\\\\\"|'{'|'\"'|'\\''|'\\\\'|\";\"|" \
                  "\"/* \"|\"//\"|\"a\\\n{\"|\"IRIS_DEVICE\"")
}

function directive() {
    return one_of("#define BODY {\n|#define F(x) \\\n    g(x) { \\\n    x }\n|" \
                  "#undef BODY\n|#if 0\n|#endif\n|#include <a.h>\n|" \
                  "# define Q \"\n|#pragma x\n")
}

# A body in braces.
function body(depth,    out, n) {
    out = "{"
    for (n = pick(5); n > 0; n--) {
        if (depth > 0 && pick(3) == 0)
            out = out " if (x) " body(depth - 1)
        else if (pick(4) == 0)
            out = out "\n" directive()
        else
            out = out blank() one_of("f(" text() ");|x = (struct s){1};|;|" \
                                     "return x / 2;|y = x ? 1 : '{';")
    }
    return out blank() "}"
}

function arguments() {
    return one_of("void|int a, char *b|struct s *s|void (*f)(int), int x|" \
                  "int a[3],\n    int b")
}

function members() {
    return "{ int a;" blank() "struct { char c[4]; } in; }"
}

# A definition that the GPU compiler must not see.
function host() {
    if (pick(4) == 0)
        return one_of("static |const |") one_of("int |struct s ") name() \
            one_of("|[]|[2][3]") " =" one_of(" |") "{1," blank() text() "};"
    return one_of("static |extern |inline |") one_of("int |void |char *|" \
        "struct s *|unsigned long ") one_of("|\n") name() "(" arguments() ")" \
        one_of("\n|" " |") body(3)
}

# One that it must.
function device() {
    return one_of("IRIS_KERNEL(" name() ", struct s)|IRIS_DEVICE int " name() \
        "(" arguments() ")|static IRIS_HOST_DEVICE void " name() "(int x)|" \
        "__device__ int " name() "(void)|IRIS_DEVICE\nfloat *" name() "(int x)") \
        one_of("\n| ") body(3)
}

# What is neither: declarations, types, macros on lines of their own.
function neutral(    kind) {
    kind = pick(10)
    if (kind == 0)
        return "struct " name() " " members() ";"
    if (kind == 1)
        return "typedef " one_of("struct |union ") members() " " name() ";"
    if (kind == 2)
        return "enum { A" name() ",\n B" name() " = '{' };"
    if (kind == 3)
        return "int " name() "(" arguments() ");"
    if (kind == 4)
        return "static const int " name() " = 3;"
    if (kind == 5)
        return "ROWS(" name() ")\n"
    if (kind == 6)
        return "extern \"C\" {\nint " name() "(void);\n}"
    if (kind == 7)
        return "constexpr int " name() "[] = {1, 2};"
    if (kind == 8)
        return "const struct s " name() " = (struct s){1, " text() "};"
    return "_Static_assert(sizeof(int) == 4, " text() ");"
}

# The line ends of host code, and its lines that define.
function cut(source,    lines, n, i, keeps, out) {
    n = split(source, lines, "\n")
    for (i = 1; i < n; i++) {
        keeps = keeps || lines[i] ~ /^[ \t]*#[ \t]*(define|undef)/
        out = out (keeps ? lines[i] : "") "\n"
        keeps = keeps && lines[i] ~ /\\$/
    }
    return out
}

function put(definition, is_host) {
    printf "%s", definition >source
    printf "%s", is_host ? cut(definition) : definition >expected
}

BEGIN {
    srand(seed)
    for (count = 0; count < 200; count++) {
        kind = pick(4)
        if (kind == 0)
            put(host(), 1)
        else if (kind == 1)
            put(device(), 0)
        else if (kind == 2)
            put(neutral(), 0)
        else
            put(one_of("/* } */|// \"{\n|#define X {\n|#ifdef Y\n#endif\n"), 0)
        put(one_of("\n|\n\n| \n"), 0)
    }
}
