#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Checks the table of locks in docs/architecture.md against the text of src. Each
# lock is in the table, with the functions that take it and the locks that are
# taken while it is held. Functions of the column "Runs under it" are only called
# with the lock held. The order of locks has no circle, and no function returns
# with a lock that its callers do not release. check_locks.awk finds all this;
# check_locks_faults.sh tests it. --print [LOCK] prints the results.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/.." || exit 1
page=docs/architecture.md
# CALLER CALLEE LOCK: the caller does not hold the lock there, though it seems so.
except="\
enqueue_calls wait_for hip_stream.lock,\
- at_exit context/finalize.c:exit_lock"
# The first: iris_i_hip_begin() has released the lock where it returns a target.
# The second: the process ends with the lock.
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# The rows of the table as lines like those of check_locks.awk.
table() {
    awk -F'|' '
        function words(kind, text,    word) {
            while (match(text, /`[^`]+`/)) {
                word = substr(text, RSTART + 1, RLENGTH - 2)
                print (substr(text, 1, RSTART - 1) ~ /tries $/ ? "tries" : kind), lock, word
                text = substr(text, RSTART + RLENGTH)
            }
        }
        /^## / { inside = $0 == "## Locks" }
        inside && /^\| `/ {
            lock = $2
            gsub(/[ `]/, "", lock)
            print "lock", lock
            words("takes", $4)
            words("with", $5)
            if ($6 ~ /^ any/)
                print "any", lock
            else
                words("under", $6)
        }' "$page"
}

# Locks that are taken in two orders, or twice.
circles() {
    awk '
        function visit(lock, path,    i) {
            if (state[lock] == "open") {
                if (!(lock in told))
                    print "a circle of locks:" substr(path, index(path, " " lock " ")) lock
                told[lock]
                return
            }
            if (state[lock] == "done")
                return
            state[lock] = "open"
            for (i = 1; i <= count[lock]; i++)
                visit(next_lock[lock, i], path lock " ")
            state[lock] = "done"
        }
        $1 == "under" { next_lock[$2, ++count[$2]] = $3 }
        END { for (lock in count) visit(lock, " ") }' "$tmp/code"
}

# only_in LEFT RIGHT TEXT: lines of the first that the second lacks.
only_in() {
    comm -23 "$1" "$2" | sed "s|\$| $3|"
}

find src -name '*.[ch]' | sort | xargs awk -v except="$except" \
    -f "$here/check_locks.awk" | sort -u >"$tmp/found"
if [ "${1-}" = --print ]; then
    grep -F "${2-}" "$tmp/found"
    exit
fi
if grep '^bad' "$tmp/found" | cut -d' ' -f2- | grep .; then
    exit 1 # the rest would follow from it
fi
# The page names a function without its file.
sed -E '/^bad/d; s/ src\/.*//; s/^((takes|with) [^ ]*) .*:/\1 /; s/^((under|tries) [^ ]* [^ ]*) .*/\1/' \
    "$tmp/found" | sort -u >"$tmp/code"
table | sort -u >"$tmp/table"
grep '^any' "$tmp/table" | cut -d' ' -f2 >"$tmp/any"
circles >"$tmp/complaints"
for kind in lock takes with under tries; do
    for side in code table; do
        grep "^$kind " "$tmp/$side" >"$tmp/$side.$kind"
    done
    if [ $kind = under ] || [ $kind = tries ]; then
        awk 'FILENAME == ARGV[1] { any[$1]; next } !($2 in any)' "$tmp/any" \
            "$tmp/code.$kind" >"$tmp/listed"
        mv "$tmp/listed" "$tmp/code.$kind"
    fi
    [ $kind = with ] || only_in "$tmp/code.$kind" "$tmp/table.$kind" "is not in the table"
    only_in "$tmp/table.$kind" "$tmp/code.$kind" "is in the table, but not so in src"
done | sed "s|^|$page: |" >>"$tmp/complaints"
cat "$tmp/complaints"
[ ! -s "$tmp/complaints" ] || exit 1
echo "$(wc -l <"$tmp/code.lock") locks, as the table has them; no circle"
