#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints cases.def: what PyTorch makes of full, arange and linspace, bit for
bit. Run it as: python3 make_cases.py >cases.def, or name some of the three:
PyTorch 2.9 divides by zero in arange of integers with a step below 1.

PyTorch's kernels on CPUs give other last bits with other vector units: the first
element of each vector is rounded, and sums may be fused with products. So each
case runs with none, with AVX2 and with AVX-512, and element by element. Where
all agree the bits are the case's; else they end in "~", and are what the plain
kernels give. A row of cases.def has a call's results in all types. Unsigned types of more than 8 bits, which PyTorch's CPU kernels
lack, are taken from i64.

A linspace is what CPUs with FMA give, which is what GPUs give."""

import os
import subprocess
import sys

import torch

TYPES = {
    "BOOL": torch.bool, "I8": torch.int8, "I16": torch.int16,
    "I32": torch.int32, "I64": torch.int64, "U8": torch.uint8,
    "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32,
    "F64": torch.float64, "COMPLEX64": torch.complex64,
    "COMPLEX128": torch.complex128,
}
UNSIGNED = {"U16": 2, "U32": 4, "U64": 8}
REAL = ["F16", "BF16", "F32", "F64"]
WHOLE = ["I8", "I16", "I32", "I64", "U8"]


def number(value):
    """A number in C."""
    if isinstance(value, bool):
        return "B(%d)" % value
    if isinstance(value, int):
        return "I(INT64_MIN)" if value == -2**63 else "I(%d)" % value
    if isinstance(value, complex):
        return "C(%s, %s)" % (real(value.real), real(value.imag))
    return "F(%s)" % real(value)


def real(value):
    if value != value:
        return "NAN"
    if value in (float("inf"), -float("inf")):
        return "-INFINITY" if value < 0 else "INFINITY"
    return float(value).hex()


def bits(make):
    """The elements' bytes in hexadecimal; "-" if PyTorch refuses."""
    try:
        tensor = make()
    except (RuntimeError, OverflowError, ValueError):
        return "-"
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy().tobytes().hex()


def narrow(make, width):
    """Of an i64 tensor the low bytes of each element."""
    values = bytes.fromhex(bits(make))
    return "".join(values[i:i + width].hex() for i in range(0, len(values), 8))


def full():
    values = [0, 1, -1, 3.141592, -2.718, 42, -100, 0.5, -0.25, 2.5, 127,
              128, 255, 256, -128, -129, -255, -256, 127.9, 128.0, 255.5, True,
              False, 1e-8, 6e-8, 5.97e-8, 65504.0, 65519.0, 1e6, 3.3895e38,
              3.4e38, 1e39, 16777217, 2**53 + 1, 2**63 - 1, -2**63,
              9.2e18, 9.3e18, 0.1, float("inf"), -float("inf"), float("nan"),
              complex(1.5, 0), complex(2, -3), complex(0, 1), complex(1e39, 0)]
    for name, dtype in TYPES.items():
        for value in values:
            yield "FULL(%s" % number(value), name, bits(
                lambda: torch.full((1,), value, dtype=dtype))
    for name, width in UNSIGNED.items():
        for value in (0, 1, 42, 2.5, 255, 65535):
            yield "FULL(%s" % number(value), name, narrow(
                lambda: torch.full((1,), value, dtype=torch.int64), width)


def arange_of(start, end, step, dtype):
    """The kernel's elements if they are those that single ones would be."""
    row = torch.arange(start, end, step, dtype=dtype)
    if not dtype.is_floating_point:
        return row, row
    wide = torch.float32 if dtype in (torch.float16,
                                      torch.bfloat16) else torch.float64
    single = [torch.tensor(start, dtype=wide) +
              torch.tensor(step, dtype=wide) * i for i in range(len(row))]
    return row, torch.stack(single).to(dtype) if single else row


def both_bits(make):
    """The bits of the row, with a mark if its elements alone have others."""
    try:
        row, single = make()
    except (RuntimeError, OverflowError, ValueError):
        return "-"
    bits_of = bits(lambda: row)
    return bits_of + ("" if bits(lambda: single) == bits_of else "*")


def arange():
    ranges = [(0, 5, 1), (5, 0, -1), (0, 40, 1), (-7, 100, 9), (3, 4, 10),
              (0.0, 8.0, 0.25), (0.0, -20.0, -0.5), (0.5, 5, 1.3),
              (0.0, 4.0, 0.1), (1, 2, 0.125), (100, -100, -7), (0, 300, 50),
              (0.0, 1.0, 1 / 3), (1e6, 1e6 + 50, 0.7), (-1.5, 2.5, 1),
              (0, 0, 1), (1, 0, 1), (0, 1, -1), (0, 1, 0), (0.0, 1.0, 0.0)]
    large = [(2**53 - 3, 2**53 + 9, 1), (2**63 - 10, 2**63 - 1, 2),
             (-2**63, -2**63 + 7, 3)]
    for name in WHOLE + REAL:
        for start, end, step in ranges + (large if name == "I64" else []):
            # Without elements upstream refuses; PyTorch does so in part.
            none = step == 0 or (end - start) / step <= 0
            yield "ARANGE(%s, %s, %s" % tuple(map(number, (
                start, end, step))), name, "-" if none else both_bits(
                    lambda: arange_of(start, end, step, TYPES[name]))
    for name, width in UNSIGNED.items():
        for start, end, step in ranges[:5]:
            yield "ARANGE(%s, %s, %s" % tuple(map(number, (
                start, end, step))), name, narrow(
                    lambda: torch.arange(start, end, step), width)


def linspace():
    lines = [(0, 10, 5), (0, 10, 0), (0, 10, 1), (0, 10, 2), (-1, 1, 33),
             (0.0, 1.0, 20), (0.0, 1.0, 3), (5, -3, 21), (0.1, 120.7, 47),
             (-1, 1, 7), (3, 3, 9), (100, 0, 101), (0, 1, -1)]
    both = [(1 + 2j, 3 - 4j, 5), (0j, 1 + 1j, 20), (2.0, 1j, 9)]
    # Ends that f64 rounds, to 2^63 too, which becomes -2^63.
    large = [(-5, 2**63 - 1, 7), (-2**63, 2**63 - 1, 40), (2**63 - 1, 0, 5),
             (2**63 - 1, 0, 1), (2**53 + 1, 2**53 + 9, 5),
             (2**53 + 1, 0, 1)]
    for name in WHOLE + REAL + ["COMPLEX64", "COMPLEX128"]:
        more = both if name[0] == "C" else both[:1]
        for start, end, steps in lines + more + (large if name == "I64" else []):
            yield "LINSPACE(%s, %s, %d" % (
                number(start), number(end), steps), name, bits(
                    lambda: torch.linspace(start, end, steps,
                                           dtype=TYPES[name]))
    for name, width in UNSIGNED.items():
        for start, end, steps in ((0, 10, 5), (100, 0, 101), (0, 60000, 7)):
            yield "LINSPACE(%s, %s, %d" % (
                number(start), number(end), steps), name, narrow(
                    lambda: torch.linspace(start, end, steps,
                                           dtype=torch.int64), width)


ROWS = {"full": full, "arange": arange, "linspace": linspace}


def run(capability):
    lines = subprocess.run([sys.executable, *sys.argv, "--rows"], check=True,
                           env=dict(os.environ, ATEN_CPU_CAPABILITY=capability),
                           stdout=subprocess.PIPE, text=True).stdout
    return lines.splitlines()


def main():
    calls = [word for word in sys.argv[1:] if word in ROWS] or list(ROWS)
    if sys.argv[-1] == "--rows":
        for name in calls:
            for row in ROWS[name]():
                print("|".join(row))
        return
    print("/* Made by make_cases.py with PyTorch %s: %s. */" % (
        torch.__version__, ", ".join(calls)))
    rows = {}
    for plain, *others in zip(*map(run, ("default", "avx2", "avx512"))):
        if plain.startswith("LINSPACE"):
            plain = others[0]
        call, name, result = plain.split("|")
        exact = set(others) == {plain} and not result.endswith("*")
        rows.setdefault(call, []).append(
            (name + " " + result.rstrip("*") + ("" if exact else "~")).strip())
    for call, results in rows.items():
        print('%s, "%s")' % (call, ", ".join(results)))


main()
