# SPDX-License-Identifier: MIT
"""Compares a page of iris trace report with its trace.

usage: report.py PAGE TRACE [LABEL]...: the page has the trace's arrows between
tracks, each once per bin, and memory of just these names.
"""

import json
import sys


def data_of(path):
    text = open(path).read()
    begin = text.index("const d=") + len("const d=")
    return json.loads(text[begin:text.index(";\nconst q=")])


def arrows_of(events, bins):
    """The trace's arrows, as (rank, track, bin) of both ends."""
    def ns(us):
        return round(us * 1000)

    spans = [e for e in events if e["ph"] in "Xi"]
    first = min(ns(e["ts"]) for e in spans)
    last = max(ns(e["ts"]) + ns(e.get("dur", 0)) for e in spans)

    def end(event):
        return event["pid"], event["tid"], (ns(event["ts"]) - first) * bins // (last - first + 1)

    flows = [e for e in events if (e.get("cat"), e["name"]) in
             (("iris_flow", "signal"), ("iris_launch", "launch"))]
    begins = {(e["cat"], e["id"]): end(e) for e in flows if e["ph"] == "s"}
    pairs = {(begins[e["cat"], e["id"]], end(e)) for e in flows if e["ph"] == "f"}
    return {(a, b) for a, b in pairs if a[:2] != b[:2]}


def main(page, trace, *labels):
    data = data_of(page)
    tracks = [(t["rank"], t["name"]) for t in data["tracks"]]
    found = {((*tracks[a], int(b)), (*tracks[c], int(d)))
             for a, b, c, d, _ in data["arrows"]}
    wanted = arrows_of(json.load(open(trace))["traceEvents"], data["bins"])
    if found != wanted:
        sys.exit(f"arrows: {len(found - wanted)} too many, {len(wanted - found)} missing")
    if labels and sorted(data["labels"]) != sorted(labels):
        sys.exit(f"names of memory: {data['labels']}")
    used = {run[4] for track in data["tracks"] for run in track["runs"]}
    if not used <= set(range(-1, len(data["labels"]))):
        sys.exit(f"slices have names {used}")
    print(f"{len(found)} arrows, {len(data['labels'])} names")


main(*sys.argv[1:])
