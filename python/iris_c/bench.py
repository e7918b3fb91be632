# SPDX-License-Identifier: MIT
"""Measures functions over all combinations of parameters, with the names of
upstream's iris.bench.

    import iris_c.bench as bench

    @bench.register
    @bench.axis("num_ranks", [2, 4])
    @bench.axis("rows", bench.power_of_two(8, 13))
    def all_gather(state, ctx):
        rows = ctx.ones(state["rows"], 64)
        out = ctx.zeros(state["rows"] * ctx.num_ranks, 64)
        state.set_bytes(rows.nbytes * (ctx.num_ranks - 1))
        state.exec(lambda: ctx.ccl.all_gather(out, rows))

    if __name__ == "__main__":
        bench.main()

main() calls each function once for each combination, with a State and a
context. The function makes its tensors, says how many bytes one call moves,
and names the function to measure.
"""

import argparse
import csv
import gc
import io
import itertools
import json
import re
import statistics
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from ._bootstrap import is_launched
from ._context import Iris, iris
from ._spawn import spawn

__all__ = [
    "AxisDef",
    "BenchmarkDef",
    "Result",
    "State",
    "axis",
    "linear_range",
    "main",
    "power_of_two",
    "register",
]

#: The axis whose value is the number of ranks, and its default as upstream's.
_RANKS = "num_ranks"
_RANKS_DEFAULT = 8

#: More than any GPU's last cache has.
_CACHE_BYTES = 256 << 20

#: Short names of types, on the command line.
_TYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
}

_FIGURES = ("gpu_time_ms", "min_time_ms", "skew_pct", "bandwidth_gbps", "tflops")


@dataclass
class AxisDef:
    """A parameter and its values."""

    name: str
    values: List[Any]


@dataclass
class BenchmarkDef:
    """A function that register() was called with, and its parameters."""

    name: str
    fn: Callable[["State", Iris], None]
    axes: List[AxisDef]


@dataclass
class Result:
    """The figures of one combination of parameters."""

    benchmark_name: str
    params: Dict[str, Any]
    #: The median of the slowest rank.
    gpu_time_ms: float
    #: The times of each call on rank 0.
    local_times_ms: List[float]
    #: The median of the fastest rank, and by how much it is below the slowest.
    min_time_ms: Optional[float] = None
    skew_pct: Optional[float] = None
    bandwidth_gbps: Optional[float] = None
    tflops: Optional[float] = None
    counters: Dict[str, float] = field(default_factory=dict)
    skipped: bool = False
    skip_reason: str = ""
    world_size: int = 1


class _Skipped(Exception):
    """Ends a benchmark's function: State.skip()."""


class State:
    """The parameters of one combination, and what the benchmark says of it."""

    def __init__(
        self, params: Dict[str, Any], n_warmup: int, n_repeat: int
    ) -> None:
        self.params = params
        self.n_warmup = n_warmup
        self.n_repeat = n_repeat
        self.bytes: Optional[float] = None
        self.flops: Optional[float] = None
        self.counters: Dict[str, float] = {}
        self.fn: Optional[Callable[[], Any]] = None
        self.preamble_fn: Callable[[], Any] = _nothing

    def __getitem__(self, key: str) -> Any:
        return self.params[key]

    def get(self, key: str, default: Any = None) -> Any:
        """A parameter, or `default` if there is none of this name."""
        return self.params.get(key, default)

    def set_bytes(self, n: float) -> None:
        """The bytes that a call moves, for the bandwidth."""
        self.bytes = n

    def set_flops(self, n: float) -> None:
        """The operations on floating-point numbers of a call."""
        self.flops = n

    def add_counter(self, name: str, value: float) -> None:
        """A figure of the program's own, which gets a column."""
        self.counters[name] = value

    def set_warmup(self, n: int) -> None:
        """The number of calls that are not measured; else --n_warmup."""
        self.n_warmup = n

    def set_repeat(self, n: int) -> None:
        """The number of calls that are measured; else --n_repeat."""
        self.n_repeat = n

    def exec(
        self,
        fn: Callable[[], Any],
        *,
        preamble_fn: Optional[Callable[[], Any]] = None,
    ) -> None:
        """The function to measure, which is called later. `preamble_fn` is
        called before each call and is not measured."""
        self.fn = fn
        self.preamble_fn = preamble_fn or _nothing

    def skip(self, reason: str = "") -> None:
        """Leaves this combination out, with a line that says why. All ranks
        leave out the same."""
        raise _Skipped(reason)


def power_of_two(start_exp: int, end_exp: int) -> List[int]:
    """The powers of two from 2**start_exp to 2**end_exp, both included."""
    return [1 << exponent for exponent in range(start_exp, end_exp + 1)]


def linear_range(start: int, end: int, step: int) -> List[int]:
    """The numbers start, start + step, ... up to `end`, which is included."""
    return list(range(start, end + 1, step))


def axis(name: str, values: Sequence[Any]) -> Callable[[Any], Any]:
    """Adds a parameter to a benchmark. The combinations are all those of the
    values; the parameter above the others changes last. "num_ranks" is the
    number of ranks."""

    def decorate(fn: Any) -> Any:
        axes = _axes_of(fn)
        if any(one.name == name for one in axes):
            raise ValueError(f"{fn.__name__} has two axes {name!r}; name them apart")
        if not values:
            raise ValueError(f"axis {name!r} of {fn.__name__} has no values")
        axes.insert(0, AxisDef(name, list(values)))
        return fn

    return decorate


#: What main() runs.
_registry: List[BenchmarkDef] = []


def register(fn: Any) -> Any:
    """Makes a function fn(state, ctx) a benchmark of main()."""
    _registry.append(BenchmarkDef(fn.__name__, fn, _axes_of(fn)))
    return fn


def _axes_of(fn: Any) -> List[AxisDef]:
    axes: List[AxisDef] = fn.__dict__.setdefault("_bench_axes", [])
    return axes


# ---- The clock ----


def _nothing() -> None:
    pass


class _HostClock:
    """Where calls are complete when they return: on the CPU."""

    def clear_cache(self) -> None:
        """Nothing: a CPU's caches hold what a program uses again."""

    def now(self) -> float:
        return time.perf_counter() * 1e3

    def between(self, marks: List[Tuple[Any, Any]]) -> List[float]:
        return [end - start for start, end in marks]


class _GpuClock:
    """Events on torch's current stream."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._cache = torch.empty(_CACHE_BYTES, dtype=torch.int8, device="cuda")

    def clear_cache(self) -> None:
        self._cache.zero_()

    def now(self) -> Any:
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, marks: List[Tuple[Any, Any]]) -> List[float]:
        self._torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in marks]


def _clock() -> Any:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return _GpuClock(torch)
    return _HostClock()


def _quantile(times: List[float], part: float) -> float:
    """The time below which this part of the times is, by interpolation."""
    ordered = sorted(times)
    place = part * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


_SUMMARIES: Dict[str, Callable[[List[float]], Any]] = {
    "mean": statistics.mean,
    "median": statistics.median,
    "min": min,
    "max": max,
    "all": list,
}


def do_bench(
    fn: Callable[[], Any],
    barrier_fn: Callable[[], Any] = _nothing,
    preamble_fn: Callable[[], Any] = _nothing,
    n_warmup: int = 25,
    n_repeat: int = 100,
    quantiles: Optional[Sequence[float]] = None,
    return_mode: str = "mean",
) -> Any:
    """The time of a call of `fn` in milliseconds: of torch's current stream on
    a GPU, else of the host.

    `fn` is called once, then n_warmup times, then n_repeat times, which count.
    `preamble_fn` and then `barrier_fn`, such as ctx.barrier, are called before
    each of these and do not count. On a GPU its caches are emptied in between.

    Args:
        quantiles: numbers from 0 to 1; the result is a list of these quantiles.
        return_mode: "mean", "median", "min", "max", or "all", a list.
    """
    if return_mode not in _SUMMARIES:
        raise ValueError(
            f"return_mode={return_mode!r}: takes {', '.join(_SUMMARIES)}"
        )
    if n_repeat < 1 or n_warmup < 0:
        raise ValueError(
            f"n_repeat is {n_repeat} and n_warmup {n_warmup}; they take 1 and 0"
            " at least"
        )
    clock = _clock()
    marks = []
    for _ in range(1 + n_warmup + n_repeat):
        preamble_fn()
        clock.clear_cache()
        barrier_fn()
        start = clock.now()
        fn()
        marks.append((start, clock.now()))
    times = clock.between(marks[1 + n_warmup :])
    barrier_fn()
    if quantiles is not None:
        return [_quantile(times, part) for part in quantiles]
    return _SUMMARIES[return_mode](times)


# ---- The ranks ----


def _combinations(one: BenchmarkDef, ranks: int) -> Iterator[Dict[str, Any]]:
    """The parameters of each call on this number of ranks."""
    choices = [
        [value for value in axis.values if axis.name != _RANKS or value == ranks]
        for axis in one.axes
    ]
    for values in itertools.product(*choices):
        yield dict(zip((axis.name for axis in one.axes), values))


def _measure(one: BenchmarkDef, state: State, ctx: Iris) -> Result:
    result = Result(
        one.name, state.params, 0.0, [], world_size=ctx.get_num_ranks()
    )
    try:
        one.fn(state, ctx)
    except _Skipped as skip:
        return replace(result, skipped=True, skip_reason=str(skip))
    if state.fn is None:
        raise RuntimeError(
            f"benchmark {one.name} measures nothing with {state.params}: it"
            " must call state.exec(fn) or state.skip(reason)"
        )
    times = do_bench(
        state.fn,
        barrier_fn=ctx.barrier,
        preamble_fn=state.preamble_fn,
        n_warmup=state.n_warmup,
        n_repeat=state.n_repeat,
        return_mode="all",
    )
    own = statistics.median(times)
    medians = [
        ctx.broadcast(own, src=rank) for rank in range(ctx.get_num_ranks())
    ]
    slowest, fastest = max(medians), min(medians)
    seconds = slowest * 1e-3
    return replace(
        result,
        gpu_time_ms=slowest,
        local_times_ms=times,
        min_time_ms=fastest,
        skew_pct=(slowest - fastest) / slowest * 100 if slowest else 0.0,
        bandwidth_gbps=_rate(state.bytes, seconds, 1e9),
        tflops=_rate(state.flops, seconds, 1e12),
        counters=state.counters,
    )


def _rate(amount: Optional[float], seconds: float, unit: float) -> Optional[float]:
    return amount / unit / seconds if amount is not None and seconds else None


def _run_rank(
    _rank: int, benchmarks: List[BenchmarkDef], given: argparse.Namespace
) -> List[Result]:
    """The results of one rank's calls. Rank 0's are reported."""
    results = []
    repeats = given.n_warmup, given.n_repeat
    with iris(given.heap_size) as ctx:
        ranks = ctx.get_num_ranks()
        _check_job(ctx, given.is_job, benchmarks)
        for one in benchmarks:
            for params in _combinations(one, ranks):
                results.append(_measure(one, State(params, *repeats), ctx))
                # This combination's tensors go before the next one's come.
                gc.collect()
                ctx.barrier()
        return results if ctx.get_rank() == 0 else []


def _check_job(ctx: Iris, is_job: bool, benchmarks: List[BenchmarkDef]) -> None:
    """Says which numbers of ranks a launcher's job leaves out."""
    ranks, numbers = ctx.get_num_ranks(), _numbers_of_ranks(benchmarks)
    if ranks not in numbers:
        raise ValueError(
            f"this job has {ranks} ranks, and the benchmarks take {numbers};"
            f" start another number, or pass --axis_num_ranks={ranks}"
        )
    others = [number for number in numbers if number != ranks]
    if is_job and others and ctx.get_rank() == 0:
        ctx.warning(f"benchmarks of {others} ranks are left out in this job")


# ---- The command line ----


def _text(value: Any) -> str:
    """A value as on the command line and in tables: float16, not torch.float16."""
    name: str = getattr(value, "__name__", None) or str(value)
    return name.split(".")[-1] if name.startswith("torch.") else name


def _value(text: str, axis: AxisDef) -> Any:
    """The value of an axis that a word names, or a new one of the same type."""
    for word in (text, _TYPES.get(text.lower(), text)):
        for value in axis.values:
            if _text(value) == word:
                return value
    first = axis.values[0]
    kind = type(first)
    if kind in (int, float, str):
        return kind(text)
    module = sys.modules.get(getattr(first, "__module__", ""))
    found = getattr(module, _TYPES.get(text.lower(), text), None)
    if kind is bool or not isinstance(found, kind):
        raise ValueError(f"{text!r} is not one of {[*map(_text, axis.values)]}")
    return found


def _values(text: str, axis: AxisDef) -> List[Any]:
    """The values of "1,2", of pow2:FIRST:LAST or lin:FIRST:LAST:STEP."""
    name, *numbers = text.split(":")
    ranges = {("pow2", 2): power_of_two, ("lin", 3): linear_range}
    if numbers and (name, len(numbers)) in ranges:
        made: Any = ranges[name, len(numbers)]
        return list(made(*map(int, numbers)))
    return [_value(word.strip(), axis) for word in text.split(",")]


def _selected(
    parser: argparse.ArgumentParser, pattern: Optional[str], words: List[str]
) -> List[BenchmarkDef]:
    """The benchmarks to run, with the values that --axis_ and --skip_ leave."""
    found = [
        replace(one, axes=[replace(axis) for axis in one.axes])
        for one in _registry
        if pattern is None or re.search(pattern, one.name)
    ]
    for one in found:
        if all(axis.name != _RANKS for axis in one.axes):
            one.axes.insert(0, AxisDef(_RANKS, [_RANKS_DEFAULT]))
    # What is asked for comes before what is left out.
    for word in sorted(words):
        parts = re.fullmatch(r"--(axis|skip)_(\w+)=(.+)", word)
        if parts is None:
            parser.error(f"unrecognized argument: {word}")
        axes = [axis for one in found for axis in one.axes if axis.name == parts[2]]
        if not axes:
            parser.error(f"{word}: no benchmark that is selected has this axis")
        for axis in axes:
            try:
                given = _values(parts[3], axis)
            except ValueError as error:
                parser.error(f"{word}: {error}")
            if parts[1] == "skip":
                given = [value for value in axis.values if value not in given]
            axis.values = given
    return [one for one in found if all(axis.values for axis in one.axes)]


def _row(result: Result) -> Dict[str, str]:
    """A result as the cells of a table."""
    row = {"benchmark": result.benchmark_name, "world_size": str(result.world_size)}
    row.update((name, _text(value)) for name, value in result.params.items())
    figures = {name: getattr(result, name) for name in _FIGURES}
    figures.update(result.counters)
    for name, figure in figures.items():
        missing = result.skipped or figure is None
        row[name] = "" if missing else f"{figure:.4f}"
    row["skipped"] = str(result.skipped)
    row["skip_reason"] = result.skip_reason
    return row


def _table(results: List[Result]) -> Tuple[List[str], List[Dict[str, str]]]:
    """The names of the columns, and the rows."""
    rows = [_row(result) for result in results]
    seen = dict.fromkeys(name for row in rows for name in row)
    last = ["skipped", "skip_reason"]
    return [name for name in seen if name not in last] + last, rows


def _as_csv(results: List[Result]) -> str:
    columns, rows = _table(results)
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _as_json(results: List[Result]) -> str:
    records = []
    for result in results:
        record = dict(vars(result), benchmark=result.benchmark_name)
        del record["benchmark_name"]
        record["params"] = {
            name: value if isinstance(value, (int, float, str)) else _text(value)
            for name, value in result.params.items()
        }
        records.append(record)
    return json.dumps(records, indent=2) + "\n"


def _as_text(results: List[Result]) -> str:
    """A table for each benchmark, without columns that are empty."""
    lines = []
    for name, group in itertools.groupby(results, lambda one: one.benchmark_name):
        columns, rows = _table(list(group))
        columns = [
            column
            for column in columns
            if column not in ("benchmark", "world_size", "skipped")
            and any(row.get(column) for row in rows)
        ]
        cells = [columns] + [[row.get(name, "") for name in columns] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines += ["", name]
        for row in cells:
            padded = (cell.rjust(width) for cell, width in zip(row, widths))
            lines.append("  ".join(padded))
    return "\n".join(lines) + "\n"


_FORMATS = {"console": _as_text, "json": _as_json, "csv": _as_csv}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        description="Measures the benchmarks of this program. --axis_NAME=VALUES"
        " replaces the values of a parameter, and --skip_NAME=VALUES leaves"
        " some out. VALUES: 1,2 or pow2:8:13 or lin:64:256:64.",
    )
    parser.add_argument("--benchmark_filter", help="a pattern of names")
    parser.add_argument(
        "--benchmark_format", choices=_FORMATS, default="console"
    )
    parser.add_argument("--benchmark_out", help="a file that gets the output, too")
    parser.add_argument(
        "--heap_size", help="bytes or a size such as 4G; default: IRIS_HEAP_SIZE"
    )
    parser.add_argument("--n_warmup", type=int, default=25)
    parser.add_argument("--n_repeat", type=int, default=100)
    return parser


def _numbers_of_ranks(benchmarks: List[BenchmarkDef]) -> List[int]:
    return sorted(
        {
            value
            for one in benchmarks
            for axis in one.axes
            if axis.name == _RANKS
            for value in axis.values
        }
    )


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Runs the benchmarks that are registered and prints their figures.

    It starts ranks, once for each number of ranks. A process that a launcher
    started is one rank instead, and measures what has this number of ranks.
    Call it below `if __name__ == "__main__":`.
    """
    parser = _parser()
    given, words = parser.parse_known_args(argv)
    benchmarks = _selected(parser, given.benchmark_filter, words)
    numbers = _numbers_of_ranks(benchmarks)
    if not numbers:
        sys.exit("no benchmark is selected: register() some, or drop filters")
    given.is_job = is_launched()
    if given.is_job:
        results = _run_rank(0, benchmarks, given)
        if not results:
            return  # another rank than 0
    else:
        results = []
        for ranks in numbers:
            results += spawn(_run_rank, ranks, (benchmarks, given))[0]
    text = _FORMATS[given.benchmark_format](results)
    print(text, end="")
    if given.benchmark_out:
        with open(given.benchmark_out, "w") as file:
            file.write(text)
