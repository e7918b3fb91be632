# SPDX-License-Identifier: MIT
"""Whether a schedule has the bytes that an observer counted, for each pair of
ranks.

pairs.py OBSERVED SCHEDULE [RUN]: OBSERVED has lines `moved FROM TO BYTES`, RUN
is what iris-sim run --json printed."""

import collections
import json
import re
import sys


def observed(path):
    pairs = collections.Counter()
    for line in open(path, encoding="utf-8"):
        if line.startswith("moved "):
            source, target, count = map(int, line.split()[1:])
            pairs[source, target] += count
    return pairs


def scheduled(path):
    sent, received, rank = collections.Counter(), collections.Counter(), -1
    for line in open(path, encoding="utf-8"):
        if line.startswith("rank "):
            rank = int(line.split()[1])
        found = re.match(r"l\d+: (send|recv) (\d+)b (?:to|from) (\d+) ", line)
        if found and found[1] == "send":
            sent[rank, int(found[3])] += int(found[2])
        elif found:
            received[int(found[3]), rank] += int(found[2])
    return sent, received


def main():
    pairs = observed(sys.argv[1])
    sent, received = scheduled(sys.argv[2])
    assert pairs and sent == pairs and received == pairs, (pairs, sent, received)
    with open(sys.argv[3], encoding="utf-8") as file:
        ranks = json.load(file)["ranks"]
    for rank, figures in enumerate(ranks):
        assert figures["sent_bytes"] == sum(
            count for pair, count in pairs.items() if pair[0] == rank)
        assert figures["received_bytes"] == sum(
            count for pair, count in pairs.items() if pair[1] == rank)
    print(f"{sum(pairs.values())} bytes of {len(pairs)} pairs")


main()
