# SPDX-License-Identifier: MIT
#
# Finds sentences that are hard to read in pages (.md), comments (.c, .h) and manual
# pages (.1, .7). Prints "FILE:LINE: KIND: SENTENCE" for each, and "words FILE SENTENCES
# LONG" for each file: how many sentences it has, and how many of more than 30 words.
#
# A sentence ends at a full stop, question mark, colon or semicolon, at an empty line, and
# where a list item or a cell of a table ends. Code is left out.
function flush(    sentence, rest) {
    rest = text
    text = ""
    # Code is one word, whatever is in it.
    gsub(/`[^`]*`/, "CODE", rest)
    gsub(/<[^>]*>/, "", rest)
    gsub(/\]\([^)]*\)/, "", rest)
    gsub(/[[*_"]/, "", rest)
    gsub(/e\.g\./, "eg", rest)
    gsub(/i\.e\./, "ie", rest)
    while (match(rest, /[.?!:;]([ )]|$)/)) {
        look(substr(rest, 1, RSTART))
        rest = substr(rest, RSTART + RLENGTH)
    }
    look(rest)
}

function report(kind, sentence) {
    printf "%s:%d: %s: %s\n", name, first, kind, substr(sentence, 1, 160)
}

function look(sentence,    low, words, parts) {
    gsub(/^[ (-]+/, "", sentence)
    words = split(sentence, parts, " ")
    if (words < 4)
        return
    sentences++
    if (words > 30) {
        long++
        report("long", sentence)
    }
    if (sentence ~ /\?$/)
        return
    low = " " tolower(sentence) " "
    gsub(/[,.;:()]/, " ", low)
    gsub(/  +/, " ", low)
    if (low ~ /^ (of|what|who|which|whose|whom|whoever|whatever) /)
        report("begins", sentence)
    # To say, show, know or ask what something is, is English.
    gsub(/ (say|says|said|saying|show|shows|shown|see|know|knows|ask|asks|tell|tells|explain|explains|decide|decides|describe|describes|find out|of|about|on|exactly|and) what /, " ", low)
    gsub(/ (who owns|what if|no matter what|what to|what happens|what happened) /, " ", low)
    if (low ~ / (what|whatever) /)
        report("what", sentence)
    if (low ~ / (is|are|was|were|be|has|have|had) none /)
        report("none", sentence)
    if (low ~ / but for /)
        report("but for", sentence)
    if (low ~ / so (many|much) / && low !~ / so (many|much) that /)
        report("so many", sentence)
    if (low ~ / the same of /)
        report("the same of", sentence)
    if (low ~ / as [^ ]+( [^ ]+)? (has|have|had) (it|them) /)
        report("as X has it", sentence)
    if (low ~ / be (it|they) /)
        report("be it", sentence)
    gsub(/ (anyone|someone|everyone|one|those|people|user|users|engineer|engineers|developer|developers|programmer|reader|readers|person|author|know|knows|say|says|see) who /, " ", low)
    if (low ~ / (who|whoever|whom) /)
        report("who", sentence)
}

function add(line) {
    if (text == "")
        first = FNR
    text = text " " line
}

function end_file() {
    flush()
    if (name != "")
        print "words", name, sentences + 0, long + 0
    sentences = long = 0
}

FNR == 1 {
    end_file()
    name = FILENAME
    kind = name ~ /\.md$/ ? "page" : name ~ /\.[17]$/ ? "manual" : "source"
    fenced = inside = 0
}

kind == "page" {
    if (/^ *```/) {
        fenced = !fenced
        flush()
    } else if (fenced || /^(    |\t)/ && !item || /^#/ || /^!\[/ || /^<!--/) {
        flush()
    } else if (/^ *$/) {
        flush()
        item = 0
    } else if (/^\|/) {
        flush()
        cells = split($0, cell, /\|/)
        for (i = 2; i < cells; i++) {
            add(cell[i])
            flush()
        }
    } else {
        if (/^ *([-*]|[0-9]+\.) /) {
            flush()
            item = 1
            sub(/^ *([-*]|[0-9]+\.) /, "")
        }
        add($0)
    }
    next
}

kind == "manual" {
    if (/^\.(nf|EX)/)
        fenced = 1
    if (/^\.(fi|EE)/)
        fenced = 0
    if (fenced || /^$/ || /^\.(SH|TP|PP|IP|TH|nf|fi|EX|EE|RS|RE|SS|LP|br)/)
        flush()
    else {
        sub(/^\.(B|I|BR|IR|RB|RI|BI|IB) /, "")
        gsub(/\\f[BIRP]/, "")
        gsub(/\\/, "")
        add($0)
    }
    next
}

# A line of code in a comment stands two columns deeper than the text around it, and ends
# like one.
function comment(line) {
    sub(/^[ \t]*\*+/, "", line)
    if (line ~ /^ *$/ || line ~ /SPDX-License/) {
        flush()
        return
    }
    if (line ~ /^   .*[;{}]$/) {
        flush()
        return
    }
    # Items of lists: a dash, or a term and two spaces, and the item's text.
    if (sub(/^ *- /, "", line))
        flush()
    if (line ~ /[^ .]   *[^ ]/) {
        flush()
        sub(/^ *[^ ]+( [^ ]+)*   */, "", line)
    }
    add(line)
}

{
    line = $0
    if (!inside) {
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        if (!match(line, /\/\*/))
            next
        line = substr(line, RSTART + 2)
        flush()
        inside = 1
        sub(/^[*!]*</, "", line)
    }
    if (match(line, /\*\//)) {
        comment(substr(line, 1, RSTART - 1))
        inside = 0
        flush()
    } else
        comment(line)
}

END { end_file() }
