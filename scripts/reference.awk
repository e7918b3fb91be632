# SPDX-License-Identifier: MIT
#
# Writes a page in Markdown for each header that has public calls, into `folder`, by
# comment.awk: for `make html`.

# The header's first comment, without its line of the licence.
FNR == 1 {
    write_calls()
    about = ""
    in_about = 1
}
FNR > 2 && in_about {
    in_about = !/\*\//
    line = $0
    sub(/ *\*\/.*/, "", line)
    sub(/^ \* ?/, "", line)
    about = about line "\n"
}

function escaped(text) {
    gsub(/[<*[#]/, "\\\\&", text)
    return text
}

# Text in which Markdown has no marks but `code`.
function markdown(text,    result) {
    while (match(text, /`[^`]*`/)) {
        result = result escaped(substr(text, 1, RSTART - 1)) substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
    }
    return result escaped(text)
}

function begins(next_kind, last) {
    if (last == "code")
        print "```" >page
    print next_kind == "code" ? "\n```c" : "" >page
}

function wrote(kind, text, gap) {
    print (gap ? "\n" : "") (kind == "code" ? text : kind == "text" ? markdown(text) : \
        "  " markdown(text)) >page
}

function item(text) { print "- " markdown(text) >page }

function cause(status, text) { print "- `" status "`: " markdown(text) >page }

# A heading, and below it what its calls have in common.
function write_calls() {
    if (calls == "")
        return
    print "\n### " calls "\n" >page
    if (prototypes != "")
        print "```c\n" prototypes "```" >page
    body(call_doc)
    calls = prototypes = ""
}

function write_section(    title, text) {
    title = text = section
    sub(/\n.*/, "", title)
    sub(/^[^\n]*\n*/, "", text)
    print "\n## " (title == "" ? "Calls" : title) >page
    body(text)
    page_section = section
}

function found() {
    if (fresh || header != page_header)
        write_calls()
    if (header != page_header) {
        page = folder "/" header ".md"
        print "# " header >page
        body(about)
        page_section = "none yet"
        page_header = header
    }
    if (section != page_section)
        write_section()
    calls = calls (calls == "" ? "" : ", ") "`" name "`"
    if (prototype != "")
        prototypes = prototypes prototype (prototype ~ /^[A-Za-z0-9_]+\(/ ? "" : ";") "\n"
    call_doc = doc
}

END { write_calls() }
