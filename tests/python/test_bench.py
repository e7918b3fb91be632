# SPDX-License-Identifier: MIT
"""iris_c.bench: combinations of parameters, times of ranks, the command line."""

import csv
import importlib.util
import io
import json
import os
import sys
import tempfile
import unittest
import unittest.mock

import iris_c
import support
from iris_c import bench

PROGRAM = os.path.join(os.path.dirname(__file__), "measured.py")
FAST = ["--n_warmup=1", "--n_repeat=3"]


def run(*words, ranks=0):
    """The statuses and texts of the program; of `ranks` ranks of a launcher."""
    command = [sys.executable, PROGRAM, *FAST, *words]
    if ranks:
        return support.finish(support.start_ranks(command, ranks))
    return support.finish([support.start_process(command)])


class Clock:
    """Times that are numbers from a list."""

    def __init__(self, log):
        self.log = log
        self.ticks = 0

    def clear_cache(self):
        self.log.append("cache")

    def now(self):
        self.ticks += 1
        return self.ticks**2

    def between(self, marks):
        return [end - start for start, end in marks]


class Timing(unittest.TestCase):
    def time(self, log, **named):
        with unittest.mock.patch.object(bench, "_clock", lambda: Clock(log)):
            return iris_c.do_bench(
                lambda: log.append("fn"),
                barrier_fn=lambda: log.append("barrier"),
                preamble_fn=lambda: log.append("preamble"),
                n_warmup=1,
                n_repeat=3,
                **named,
            )

    def test_only_calls_behind_the_warmup_count(self):
        log = []
        # The clock's differences are 3, 7, 11, 15, 19: two calls do not count.
        self.assertEqual(self.time(log, return_mode="all"), [11, 15, 19])
        once = ["preamble", "cache", "barrier", "fn"]
        self.assertEqual(log, once * 5 + ["barrier"])

    def test_times_are_summed_up_as_asked(self):
        for mode, figure in (
            ("mean", 15), ("median", 15), ("min", 11), ("max", 19)
        ):
            self.assertEqual(self.time([], return_mode=mode), figure)
        quartiles = self.time([], quantiles=[0, 0.25, 1])
        self.assertEqual(quartiles, [11, 13, 19])
        with self.assertRaisesRegex(ValueError, "takes mean, median"):
            self.time([], return_mode="sum")
        with self.assertRaisesRegex(ValueError, "n_repeat is 0"):
            iris_c.do_bench(lambda: None, n_repeat=0)

    def test_the_slowest_ranks_median_is_the_figure(self):
        medians = [2.0, 8.0, 4.0]
        ctx = unittest.mock.Mock()
        ctx.get_num_ranks.return_value = 3
        ctx.broadcast.side_effect = lambda value, src: medians[src]

        def moves(state, ctx):
            state.set_bytes(16 * 10**6)
            state.set_flops(4 * 10**9)
            state.exec(lambda: None)

        one = bench.BenchmarkDef("moves", moves, [])
        with unittest.mock.patch.object(
            bench, "do_bench", lambda *_, **named: [1.0, 3.0]
        ):
            result = bench._measure(one, bench.State({}, 0, 2), ctx)
        ctx.broadcast.assert_any_call(2.0, src=1)
        self.assertEqual(result.local_times_ms, [1.0, 3.0])
        self.assertEqual((result.gpu_time_ms, result.min_time_ms), (8.0, 2.0))
        self.assertEqual(result.skew_pct, 75.0)
        self.assertEqual((result.bandwidth_gbps, result.tflops), (2.0, 0.5))
        self.assertEqual(result.world_size, 3)


class Axes(unittest.TestCase):
    def test_ranges_have_both_ends(self):
        self.assertEqual(bench.power_of_two(3, 6), [8, 16, 32, 64])
        self.assertEqual(bench.linear_range(64, 256, 64), [64, 128, 192, 256])

    def test_wrong_axes_are_refused(self):
        with self.assertRaisesRegex(ValueError, "two axes 'M'"):
            bench.axis("M", [1])(bench.axis("M", [2])(lambda: None))
        with self.assertRaisesRegex(ValueError, "no values"):
            bench.axis("M", [])(lambda: None)

    def test_words_become_values_of_the_axis(self):
        numpy = __import__("numpy")
        for values, text, found in (
            ([1], "5,6", [5, 6]),
            ([1], "pow2:2:4", [4, 8, 16]),
            ([1], "lin:1:7:3", [1, 4, 7]),
            ([0.5], "2", [2.0]),
            (["two_shot"], "ring", ["ring"]),
            (["fp16"], "fp16", ["fp16"]),
            (["float32"], "fp32", ["float32"]),
            ([numpy.float32], "fp16,float32", [numpy.float16, numpy.float32]),
            ([True, False], "False", [False]),
        ):
            axis = bench.AxisDef("one", values)
            self.assertEqual(bench._values(text, axis), found)
        for values, text in (
            ([1], "many"),
            ([1], "pow2:1"),
            ([True], "2"),
            ([numpy.float32], "asarray"),
        ):
            with self.assertRaises(ValueError):
                bench._values(text, bench.AxisDef("one", values))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "a test of torch")
    def test_types_of_torch_have_short_names(self):
        import torch

        axis = bench.AxisDef("dtype", [torch.float32])
        self.assertEqual(
            bench._values("fp32,bf16", axis), [torch.float32, torch.bfloat16]
        )
        self.assertEqual(bench._text(torch.bfloat16), "bfloat16")


class Program(unittest.TestCase):
    def test_each_combination_runs_once_in_order(self):
        statuses, texts = run("--benchmark_filter=gather", "--benchmark_format=json")
        self.assertEqual(statuses, [0], texts)
        results = json.loads(texts[0])
        self.assertEqual(
            [tuple(result["params"].values()) for result in results],
            [
                (ranks, rows, dtype)
                for ranks in (1, 2)
                for rows in (3, 5)
                for dtype in ("float32", "int16")
            ],
        )
        for result in results:
            params = result["params"]
            self.assertEqual(result["benchmark"], "gather")
            self.assertEqual(result["world_size"], params["num_ranks"])
            if result["skipped"]:
                self.assertEqual(params["rows"], 5)
                self.assertEqual(result["skip_reason"], "too odd")
                continue
            self.assertEqual(len(result["local_times_ms"]), 3)
            self.assertEqual(result["counters"], {"elements": params["rows"] * 2})
            moved = result["bandwidth_gbps"] * result["gpu_time_ms"] * 1e6
            self.assertAlmostEqual(moved, 10**6, delta=1)
        self.assertEqual(sum(result["skipped"] for result in results), 2)

    def test_words_choose_values_and_a_table_is_written(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "table")
        statuses, texts = run(
            "--axis_rows=lin:2:4:2", "--skip_num_ranks=2", "--skip_dtype=fp32",
            "--benchmark_format=csv", f"--benchmark_out={path}",
        )
        self.assertEqual(statuses, [0], texts)
        rows = list(csv.DictReader(io.StringIO(texts[0])))
        self.assertEqual(
            [(row["rows"], row["dtype"], row["skipped"]) for row in rows],
            [("2", "int16", "False"), ("4", "int16", "False")],
        )
        with open(path) as file:
            self.assertEqual(file.read(), texts[0])

    def test_words_that_select_nothing_are_errors(self):
        for words, text in (
            (["--axis_columns=4"], "no benchmark that is selected has this axis"),
            (["--axis_rows=many"], "--axis_rows=many: invalid literal"),
            (["--use_gluon"], "unrecognized argument: --use_gluon"),
            (["--benchmark_filter=none"], "no benchmark is selected"),
            (["--skip_num_ranks=1,2"], "no benchmark is selected"),
        ):
            with unittest.mock.patch.object(bench, "_registry", []) as registry:
                named = bench.axis("rows", [1])(lambda state, ctx: None)
                named = bench.axis("num_ranks", [1, 2])(named)
                registry.append(bench.BenchmarkDef("one", named, named._bench_axes))
                error = io.StringIO()
                with unittest.mock.patch.object(sys, "stderr", error):
                    with self.assertRaises(SystemExit) as ended:
                        bench.main(words)
            self.assertIn(text, f"{ended.exception.code} {error.getvalue()}")

    def test_a_benchmark_that_measures_nothing_is_an_error(self):
        statuses, texts = run("--benchmark_filter=silent")
        self.assertEqual(statuses, [1])
        self.assertIn("benchmark silent measures nothing", texts[0])

    def test_a_rank_of_a_launcher_is_one_rank(self):
        statuses, texts = run("--benchmark_filter=gather", ranks=2)
        self.assertEqual(statuses, [0, 0], texts)
        self.assertIn("benchmarks of [1] ranks are left out", texts[0])
        table = [line.split() for line in texts[0].splitlines()]
        start = table.index(["gather"])
        self.assertEqual(table[start + 1][:4], ["num_ranks", "rows", "dtype", "gpu_time_ms"])
        self.assertEqual([row[:3] for row in table[start + 2 :]], [
            ["2", "3", "float32"], ["2", "3", "int16"],
            ["2", "5", "float32"], ["2", "5", "int16"],
        ])
        self.assertEqual(table[-1][3:], ["too", "odd"])
        self.assertEqual(texts[1], "")

    def test_a_job_of_another_number_of_ranks_is_an_error(self):
        statuses, texts = run("--benchmark_filter=gather", ranks=3)
        self.assertEqual(statuses, [1, 1, 1])
        self.assertIn("pass --axis_num_ranks=3", texts[0])


if __name__ == "__main__":
    unittest.main()
