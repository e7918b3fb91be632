#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: cpu
#
# Every struct that a public header defines is in the cases of structs_*.c, by
# its name, or is named here with the reason why it needs none.
set -u
here=$(cd "$(dirname "$0")" && pwd)

# struct                why no case makes one
without="\
iris_heap_stats         an output; its size is an argument
iris_trace_counts       an output
iris_f16                any bits are a number
iris_bf16               any bits are a number
iris_f8e4m3             any bits are a number
iris_f8e5m2             any bits are a number
iris_gpu_image          made by compilers, added before main()"

found=0
for name in $(sed -nE 's/^(typedef )?(struct|union) (iris_[a-z0-9_]+) \{.*/\3/p' \
    "$here"/../../include/iris/*.h | sort -u) DLManagedTensorVersioned; do
    found=$((found + 1))
    grep -q "^$name " <<<"$without" && continue
    if ! grep -qE "\b(struct $name|${name}_t)\b" "$here"/structs_*.c; then
        echo "struct $name is in no case of tests/fuzz/structs_*.c"
        exit 1
    fi
done
# A pattern that finds nothing would find nothing wrong.
[ "$found" -ge 12 ] || { echo "only $found public structs found" && exit 1; }
echo "$found public structs, each with a case or a reason"
