#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources
#
# Checks that mypy has nothing to say of the Python package.
cd "$(dirname "$0")/../python" || exit 1
mypy --version || {
    echo "skipped: no mypy"
    exit 77
}
mypy --cache-dir /dev/null iris_c
