# SPDX-License-Identifier: MIT
#
# One screen of what iris probe found: a table of runs and checks, a matrix of
# GPUs, and a line for what is red. Lines: run, check, two ranks, verdict,
# milliseconds, text, with tabs between them. Exits with 1 if something is red.

BEGIN {
    # From good to bad; what has come to no end is worst.
    count = split("ok,not available,left out,no access,wrong,failed,hung,not run", names, ",")
    for (i = 1; i <= count; i++)
        badness[names[i]] = i
    num_checks = split(checks, check, " ")
}

function is_red(verdict) {
    return badness[verdict] != 1 && badness[verdict] != 2
}

function worse(one, other) {
    return badness[one] > badness[other] ? one : other
}

# In so many columns, in the verdict's colour.
function paint(text, verdict, columns) {
    text = sprintf("%-" columns "s", text)
    if (!colour || verdict == "")
        return text
    return "\033[" (is_red(verdict) ? 31 : badness[verdict] == 1 ? 32 : 33) "m" text "\033[0m"
}

$2 == "note" {
    note[++num_notes] = $1 ": note: " $7
    next
}

{
    if (!($1 in run_number)) {
        run_number[$1] = ++num_runs
        run_name[num_runs] = $1
    }
    key = $1 SUBSEP $2
    total[key]++
    bad[key] += $5 != "ok"
    worst[key] = key in worst ? worse($5, worst[key]) : $5
    if ($2 == "start" || $2 == "rest")
        whole[$1] = $5
    if ($2 == "start" && $3 == "-" && $1 ~ /^all-/ && is_red($5))
        together[$1] = unpaired[$1] = $5
    if (is_red($5))
        red[++num_red] = $1 ": " $2 ($3 == "-" ? "" : $3 == "all" ? " of all" : " " $3 "-" $4) ": " $5 ($7 == "" ? "" : ": " $7)
    if ($5 == "not available")
        absent[$1] = $7
}

# A pair of GPUs in the runs that have one for each rank.
$1 ~ /^all-/ && $3 ~ /^[0-9]+$/ && $5 != "not available" {
    delete unpaired[$1] # each pair was tried alone
    pair = $3 SUBSEP $4
    pair_verdict[pair] = pair in pair_verdict ? worse($5, pair_verdict[pair]) : $5
}

# "stream:47.1 1:12.2 4:40 ...": of the pair whose widest grid is slowest.
$2 == "bandwidth" && $5 == "ok" && $7 != "" {
    n = split($7, rates, /[ :]/)
    if (!($1 in slowest) || rates[n] + 0 < slowest[$1] + 0) {
        slowest[$1] = rates[n]
        shown[$1] = sprintf("%d-%d", $3, $4)
        for (i = 3; i < n; i += 2)
            shown[$1] = shown[$1] sprintf("  %s: %.1f", rates[i], rates[i + 1])
        shown[$1] = shown[$1] sprintf("  stream: %.1f", rates[2])
    }
}

function row(name,    i, key, verdict, line) {
    line = sprintf("%-24s", name)
    if (name in absent)
        return line paint("not available", "not available", 14) substr(absent[name], 1, 90)
    for (i = 1; i <= num_checks; i++) {
        key = name SUBSEP check[i]
        verdict = key in worst ? worst[key] : name in whole ? whole[name] : "not run"
        line = line paint(verdict (key in worst && total[key] > 1 && bad[key] > 0 ? " " bad[key] "/" total[key] : ""), verdict, 16)
    }
    if (name in together && !(name in unpaired))
        line = line paint("(all together: " together[name] ")", together[name], 1)
    return line
}

# A run that cannot even start counts for every pair.
function matrix(    i, j, name, none, verdict, line) {
    for (name in unpaired)
        none = worse(unpaired[name], none == "" ? "ok" : none)

    print "\nGPUs, the worst of all runs"
    line = "     "
    for (j = 1; j < gpus; j++)
        line = line sprintf("%-12d", j)
    print line
    for (i = 0; i < gpus - 1; i++) {
        line = sprintf("%-5d", i)
        for (j = 1; j < gpus; j++) {
            verdict = (i, j) in pair_verdict ? pair_verdict[i, j] : ""
            verdict = none == "" ? verdict : worse(verdict, none)
            line = line (j <= i ? sprintf("%-12s", ".") : paint(verdict == "" ? "-" : verdict, verdict, 12))
        }
        print line
    }
}

END {
    line = sprintf("%-24s", "run")
    for (i = 1; i <= num_checks; i++)
        line = line sprintf("%-16s", check[i])
    print line
    for (i = 1; i <= num_runs; i++)
        print row(run_name[i])
    if (gpus > 1 && gpus <= 8) # a screen is not wider
        matrix()
    print "\nGB/s by workgroups, of the pair that is slowest at the most of them"
    for (i = 1; i <= num_runs; i++)
        if (run_name[i] in shown)
            printf "%-24s%s\n", run_name[i], shown[run_name[i]]
    if (num_red + num_notes > 0)
        print ""
    for (i = 1; i <= num_notes && i <= 4; i++)
        print substr(note[i], 1, 240)
    for (i = 1; i <= num_red && i <= 12; i++)
        print paint(substr(red[i], 1, 240), "hung", 1)
    if (num_red > 12)
        print "and " num_red - 12 " more"
    print num_red == 0 ? "all is well" : num_red " failed"
    exit num_red > 0
}
