#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# iris sim with a simulated network: messages that share a link or a port take
# longer, in one topology and not in the other.
set -u
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
iris=$PWD/iris
failed=0

# shellcheck source=support/says.sh
. "$(dirname "$0")/support/says.sh"

# Nodes of two ranks, 10 GB/s and 5 us between them. Two nodes at a leaf switch,
# one link between the leaf switches.
cat >"$tmp/one.json" <<'EOT'
{"name": "nodes of two", "gpu": true, "node_ranks": 2, "links": 1,
 "launch_us": 2, "flag_us": 1, "meet_us": 10, "peer_us": 0.25,
 "combine_us": 0.75, "hop_us": 5, "link_gbs": 100, "reduce_gbs": 1000,
 "local_gbs": 2000, "network_gbs": 10, "leaf_ports": 4, "spines": 1}
EOT
sed 's/"spines": 1/"spines": 2/' "$tmp/one.json" >"$tmp/two.json"
sed 's/"spines": 1/"spines": 4/' "$tmp/one.json" >"$tmp/four.json"

goal() { # NAME "FROM TO"...: each sends 1,000,000 bytes
    local name=$1 rank pair n=0
    shift
    echo "num_ranks 8" >"$tmp/$name.goal"
    for rank in 0 1 2 3 4 5 6 7; do
        printf 'rank %s {\nl0: calc 0\n' $rank
        n=0
        for pair in "$@"; do
            n=$((n + 1))
            case $pair in
            "$rank "*) echo "l$n: send 1000000b to ${pair#* } tag $n" ;;
            *" $rank") echo "l$n: recv 1000000b from ${pair% *} tag $n" ;;
            esac
        done
        echo "}"
    done >>"$tmp/$name.goal"
}

run() { # PLATFORM TOPOLOGY GOAL OPTION...
    "$iris" sim run -P "$tmp/$1.json" -T "$2" "$tmp/$3.goal" "${@:4}"
}

collective() { # PLATFORM RANKS OPTION...
    "$iris" sim collective -P "$tmp/$1.json" -b 1000000 -n "$2" all_reduce "${@:3}"
}

goal far "0 4"
run one fat_tree far >"$tmp/out" 2>&1
if grep -q "install libsimgrid-dev" "$tmp/out"; then
    says "without SimGrid" 1 "needs SimGrid" run one fat_tree far
    [ $failed = 0 ] || exit 1
    echo "skipped: this build has no SimGrid"
    exit 77
fi
says "one message" 0 "105.000 us" run one fat_tree far
says "no such topology" 1 "only fat_tree and rail" run one ring far
sed 's/"spines": 1/"x": 1/' "$tmp/one.json" >"$tmp/none.json"
says "no switches" 1 "lacks leaf_ports, spines" run none fat_tree far

# Both go to the other leaf switch of a fat tree, and stay on their rails.
goal pair "0 4" "1 5"
says "a shared link" 0 "205.000 us" run one fat_tree pair
says "two links" 0 "105.000 us" run two fat_tree pair
says "two rails" 0 "105.000 us" run one rail pair
says "ports alone" 0 "105.000 us" "$iris" sim run -P "$tmp/one.json" "$tmp/pair.goal"
says "links of twice the rate" 0 "105.000 us" run one fat_tree pair -w network=2x
goal cross "0 5" "2 7"
says "rails share a link" 0 "205.000 us" run one rail cross

# Ports: a rank sends one message at a time; a receiver's senders share its port.
goal out "0 2" "0 4"
says "a sender's port" 0 "205.000 us" run two fat_tree out
goal in "2 0" "4 0"
says "a receiver's port" 0 "205.000 us" run two fat_tree in
goal near "0 1" "2 3"
says "inside nodes" 0 "11.000 us" run one fat_tree near

# Each waits for the other's message before it sends its own.
cat >"$tmp/dead.goal" <<'EOT'
num_ranks 4
rank 0 {
l0: recv 8b from 2 tag 2
l1: send 16b to 2 tag 1
l1 requires l0
}
rank 1 {
l0: calc 0
}
rank 2 {
l0: recv 16b from 0 tag 1
l1: send 8b to 0 tag 2
l1 requires l0
}
rank 3 {
l0: calc 0
}
EOT
says "a deadlock" 1 "a deadlock: 4 of 6 steps never run" run one rail dead

# Where nothing is shared, a collective takes the sum of its costs, but for one of
# the two hops: the ranks begin together.
far="8 ranks far                     "
says "by the sum" 0 "$far 632.250 us" collective four 8
says "by messages" 0 "$far 627.250 us" collective four 8 -T fat_tree
says "the same after other runs" 0 "$far 627.250 us" \
    collective four 2:8 -T fat_tree
says "two links for four ranks" 0 "$far 827.250 us" collective two 8 -T fat_tree
says "hierarchical" 0 "8 ranks hierarchical" collective four 8 -v hierarchical
plain=$(grep -o '[0-9.]* us' "$tmp/out")
says "hierarchical on rails" 0 "hierarchical             $plain" \
    collective four 8 -v hierarchical -T rail
says "three nodes" 1 "a higher power of 2" collective four 6 -v hierarchical -T rail

# 4,096 ranks.
sed 's/"node_ranks": 2/"node_ranks": 8/; s/ports": 4/ports": 32/; s/spines": 1/spines": 8/' \
    "$tmp/one.json" >"$tmp/large.json"
for topology in rail fat_tree; do
    says "4096 ranks, $topology" 0 "4096 ranks hierarchical" "$iris" sim collective \
        -P "$tmp/large.json" -b 64M -n 4096 -v hierarchical -T $topology all_reduce
    grep -o '[0-9.]* us' "$tmp/out" >"$tmp/$topology"
done
if awk 'NR == 1 { rail = $1 } END { exit !(rail < $1) }' "$tmp/rail" "$tmp/fat_tree"; then
    echo "passed: rails have less traffic on the links between switches"
else
    echo "FAILED: a fat tree is as fast as rails: $(cat "$tmp/rail" "$tmp/fat_tree")"
    failed=1
fi
exit $failed
