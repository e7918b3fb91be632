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
    print(f"{len(found)} arrows, {len(slices)} slices, {len(data['labels'])} names,"
          f" grain {data['grain']}, {size} bytes")


main(*sys.argv[1:])
