# SPDX-License-Identifier: MIT
"""Whether traces are what docs/tracing.md says: every begin has an end, arrows
join the right pairs, counts are those that an observer printed.

check.py MERGED OBSERVED: OBSERVED has lines `observed RANK COUNT`."""

import gzip
import json
import sys

FIELDS = ("program_id", "pid_m", "pid_n", "target_rank", "address", "xcc_id",
          "cu_id", "op_index", "payload_size")


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def nanoseconds(number):
    return round(number * 1000)


def check_events(events):
    for event in events:
        if event["ph"] in "CMsf":
            continue
        assert event["ph"] == "X", f"without end: {event}"
        assert event["dur"] > 0 and event["ts"] >= 0, event
        if event["cat"] == "iris":
            assert all(field in event["args"] for field in FIELDS), event
            args = event["args"]
            assert event["tid"] == f"XCC{args['xcc_id']}_CU{args['cu_id']}"


def slice_of(index, flow, at_end):
    """The operation that an arrow's end is in."""
    ts = nanoseconds(flow["ts"]) + at_end
    return index.get((flow["pid"], flow["tid"], ts), [])


def key_of(arrow):
    return arrow["cat"], arrow["id"]


def check_arrows(events):
    begins, ends, starts = {}, {}, {}
    for event in events:
        if event["ph"] == "X" and event["cat"] == "iris":
            place = event["pid"], event["tid"]
            ts = nanoseconds(event["ts"])
            begins.setdefault(place + (ts,), []).append(event)
            end = ts + nanoseconds(event["dur"])
            ends.setdefault(place + (end,), []).append(event)
        elif event["ph"] == "s":
            assert key_of(event) not in starts, "two arrows of one id"
            starts[key_of(event)] = event
    arrows = [event for event in events if event["ph"] == "f"]
    assert len(arrows) == len(starts)
    joined = 0
    for arrow in arrows:
        start = starts[key_of(arrow)]
        assert start["ts"] <= arrow["ts"], f"backwards: {start} {arrow}"
        if arrow["name"] != "signal":
            continue
        pairs = [(signal, wait)
                 for signal in slice_of(begins, start, 0)
                 for wait in slice_of(ends, arrow, 1)
                 if signal["args"].get("signal") and wait["args"].get("held")
                 and signal["args"]["target_rank"] == wait["pid"]
                 and signal["args"]["offset"] == wait["args"]["offset"]
                 and signal["args"]["value"] == wait["args"]["value"]]
        assert len(pairs) == 1, f"not a pair: {start} {arrow}"
        joined += 1
    return joined


def numbers_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers_of(item)]
    return [value] if isinstance(value, int) else []


def check_kernels(events):
    """Kernels' runs are on tracks of streams, under their kernels' names, and
    an arrow comes to each from its launch."""
    assert all(abs(number) < 2 ** 53 for number in numbers_of(events))
    runs = [event for event in events if event.get("cat") == "iris_kernel"]
    launches = {(event["pid"], nanoseconds(event["ts"])): event
                for event in events if event["name"].startswith("launch ")}
    starts = {key_of(event): event for event in events
              if event["ph"] == "s" and event["cat"] == "iris_launch"}
    ends = {(event["pid"], event["tid"], event["ts"]): event
            for event in events
            if event["ph"] == "f" and event["cat"] == "iris_launch"}
    assert runs and len(ends) == len(starts)
    for run in runs:
        assert run["name"] == run["args"]["kernel"], run
        assert run["tid"].startswith("stream_"), run
        arrow = starts[key_of(ends[run["pid"], run["tid"], run["ts"]])]
        launch = launches[arrow["pid"], nanoseconds(arrow["ts"])]
        assert arrow["tid"] == launch["tid"] and run["pid"] == launch["pid"]
        assert launch["name"] == "launch " + run["name"], (launch, run)


def check_counts(trace, observed):
    counts = [int(line.split()[2]) for line in open(observed, encoding="utf-8")
              if line.startswith("observed ")]
    of_kernels = [event for event in trace["traceEvents"]
                  if event.get("cat") == "iris" and event["ph"] == "X"]
    assert trace["metadata"]["schema_version"] == "1.1"
    accesses = sum(event["args"].get("lanes", 1) for event in of_kernels)
    # A spin loop of the program's own has as many events as it has turns.
    dropped = trace["metadata"]["dropped"]
    assert len(of_kernels) == trace["metadata"]["num_events"] > 0
    assert accesses + dropped == sum(counts), (accesses, dropped, counts)


def main():
    path, observed = sys.argv[1:]
    trace = load(path)
    events = trace["traceEvents"]
    check_events(events)
    joined = check_arrows(events)
    check_counts(trace, observed)
    names = {event["name"] for event in events}
    assert {"process_name", "thread_name"} <= names
    check_kernels(events)
    print(f"{len(events)} events, {joined} waits joined")


main()
