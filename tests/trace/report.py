# SPDX-License-Identifier: MIT
"""Compares a page of iris trace report with its trace.

usage: report.py PAGE TRACE [LABEL]...: the page has the trace's events and arrows
between tracks, unless it joins some, and memory of just these names.
"""

import json
import os
import sys


def data_of(path):
    text = open(path).read()
    begin = text.index("const d=") + len("const d=")
    return json.loads(text[begin:text.index(";\nconst q=")])


def arrows_of(events):
    """The trace's arrows, as (rank, track, ns since the begin) of both ends."""
    def ns(us):
        return round(us * 1000)

    first = min(ns(e["ts"]) for e in events if e["ph"] in "Xi")

    def end(event):
        return event["pid"], event["tid"], ns(event["ts"]) - first

    flows = [e for e in events if (e.get("cat"), e["name"]) in
             (("iris_flow", "signal"), ("iris_launch", "launch"))]
    begins = {(e["cat"], e["id"]): end(e) for e in flows if e["ph"] == "s"}
    pairs = {(begins[e["cat"], e["id"]], end(e)) for e in flows if e["ph"] == "f"}
    return {(a, b) for a, b in pairs if a[:2] != b[:2]}


def barriers_of(events):
    """(rank, track, ns since the begin) of each host barrier that all members have:
    the rank that came last, and the ns from the first to the last."""
    first = min(round(e["ts"] * 1000) for e in events if e["ph"] in "Xi")
    meetings, nth = {}, {}
    for e in events:
        members = e.get("args", {}).get("members")
        if e["name"] == "host barrier" and members:
            at = nth[e["pid"], members] = nth.get((e["pid"], members), 0) + 1
            begin = round(e["ts"] * 1000) - first
            end = begin + round(e["dur"] * 1000)
            meetings.setdefault((members, at), []).append((begin, e["pid"], e["tid"], end))
    found = {}
    for (members, _), ranks in meetings.items():
        ends = [part.split("-") for part in members.split(",")]
        if len(ranks) == sum(int(e[-1]) - int(e[0]) + 1 for e in ends):
            last = max(ranks, key=lambda one: one[0])
            if last[0] <= min(one[3] for one in ranks):
                found.update({(one[1], one[2], one[0]): (last[1], last[0] - min(ranks)[0])
                              for one in ranks})
    return found


def drawn_barriers(data):
    """The same in the page, where a slice is one event."""
    found = {}
    for track in data["tracks"]:
        for begin, _, kind, count, spread in slices_of(track):
            kind //= data["most_labels"] + 1
            by, row = kind % (data["ranks"] + 1) - 1, kind // (data["ranks"] + 1) ** 2
            if data["rows"][row][0] == "host barrier" and count == 1 and by >= 0:
                found[track["rank"], track["tid"], begin] = by, spread
    return found


def slices_of(track):
    """Each slice's (begin, end, kind, events, bytes)."""
    begin, rest = 0, iter(track["s"])
    for gap in rest:
        begin += gap
        duration, kind, bytes = next(rest), next(rest), next(rest)
        count, bytes = (-bytes, next(rest)) if bytes < 0 else (1, bytes)
        yield begin, begin + duration, kind, count, bytes


def main(page, trace, *labels):
    data = data_of(page)
    size = os.path.getsize(page)
    if size > 300000:
        sys.exit(f"a page of {size} bytes")
    tracks = [(t["rank"], t["tid"]) for t in data["tracks"]]
    slices = [s for track in data["tracks"] for s in slices_of(track)]
    used = {s[2] // (data["most_labels"] + 1) // (data["ranks"] + 1) ** 2 for s in slices}
    if not used <= set(range(len(data["rows"]))):
        sys.exit(f"slices of the operations {used}")
    used = {s[2] % (data["most_labels"] + 1) - 1 for s in slices}
    if not used <= set(range(-1, len(data["labels"]))):
        sys.exit(f"slices have the names {used}")
    if labels and sorted(data["labels"]) != sorted(labels):
        sys.exit(f"names of memory: {data['labels']}")
    events = json.load(open(trace))["traceEvents"]
    calls = {(e["pid"], e["args"]["call"]) for e in events if "call" in e.get("args", ())}
    drawn = sum(s[3] for s in slices)
    wanted = sum(e["ph"] in "Xi" for e in events) + len(calls)
    if data["grain"] == 0 and drawn != wanted:
        sys.exit(f"{drawn} of {wanted} events are drawn")
    found = {((*tracks[a], b), (*tracks[c], d)) for a, b, c, d, _ in data["arrows"]}
    arrows = arrows_of(events)
    if found - arrows or (data["arrow_step"] == 1 and arrows - found):
        sys.exit(f"arrows: {len(found - arrows)} too many, {len(arrows - found)} missing")
    barriers, meant = drawn_barriers(data), barriers_of(events)
    if barriers != meant if data["grain"] == 0 else not barriers.items() <= meant.items():
        sys.exit(f"barriers: {barriers} for {meant}")
    print(f"{len(found)} arrows, {len(barriers)} barriers, {len(slices)} slices, {len(data['labels'])} names,"
          f" grain {data['grain']}, {size} bytes")


main(*sys.argv[1:])
