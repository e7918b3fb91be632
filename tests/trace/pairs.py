# SPDX-License-Identifier: MIT
"""Whether a replay moves the bytes that an observer counted, for each pair of
ranks.

pairs.py OBSERVED RUN FIGURES: OBSERVED has lines `moved FROM TO BYTES`. RUN and
FIGURES are what iris sim run --perfetto wrote and --json printed."""

import collections
import json
import sys


def observed(path):
    pairs = collections.Counter()
    for line in open(path, encoding="utf-8"):
        if line.startswith("moved "):
            source, target, count = map(int, line.split()[1:])
            pairs[source, target] += count
    return pairs


def replayed(path):
    sent = collections.Counter()
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    for event in events:
        if event["name"] == "send":
            target = event["args"]["target_rank"]
            sent[event["pid"], target] += event["args"]["payload_size"]
    return sent


def main():
    pairs = observed(sys.argv[1])
    sent = replayed(sys.argv[2])
    assert pairs and sent == pairs, (pairs, sent)
    with open(sys.argv[3], encoding="utf-8") as file:
        ranks = json.load(file)["ranks"]
    for rank, figures in enumerate(ranks):
        assert figures["sent_bytes"] == sum(
            count for pair, count in pairs.items() if pair[0] == rank)
        assert figures["received_bytes"] == sum(
            count for pair, count in pairs.items() if pair[1] == rank)
    print(f"{sum(pairs.values())} bytes of {len(pairs)} pairs")


main()
