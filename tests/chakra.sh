#!/bin/bash
# SPDX-License-Identifier: MIT
#
# trace-chakra: converts a schedule to Chakra execution traces and back again.
# With CHAKRA_SCHEMA=FILE protoc also checks the file's messages with Chakra's own
# et_def.proto.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=
for command in python3 /usr/bin/python3; do
    ! $command -c "import google.protobuf" 2>/dev/null || python=$command
done
if [ -z "$python" ]; then
    echo "skipped: no protobuf for Python"
    exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tool=$here/../scripts/trace-chakra
failed=0

# shellcheck source=support/says.sh
. "$(dirname "$0")/support/says.sh"

# 20,000,000,000 bytes are more than 32 bits have.
cat >"$tmp/two.goal" <<'END'
num_ranks 2

rank 0 {
l0: calc 1499
l1: send 20000000000b to 1 tag 7
l1 requires l0
l3: recv 8b from 1 tag 300
l3 requires l0
l3 requires l1
}

rank 1 {
l1: recv 20000000000b from 0 tag 7
l2: calc 2500
l2 requires l1
l3: send 8b to 0 tag 300
l3 requires l2
}
END
$python "$tool" -o "$tmp/et" "$tmp/two.goal" || failed=1
$python "$tool" "$tmp/et" >"$tmp/back.goal"
sed 's/calc 1499/calc 1000/; s/calc 2500/calc 3000/' "$tmp/two.goal" |
    diff - "$tmp/back.goal" || { echo "FAILED: it is not the same again"; failed=1; }
says "it can be replayed" 0 " us, of which" ./iris-sim run \
    -P "$here/../tools/platforms/h100-2.json" "$tmp/back.goal"

# The messages by field number, as another reader of protobuf sees them: the
# first is the metadata, then come nodes: id 1, name 2, type 3, data_deps 5.
second() { # FILE: the second and third message
    $python - "$1" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
for i in range(3):
    length, data = data[0], data[1:]
    message, data = data[:length], data[length:]
    open(f"{sys.argv[1]}.{i}", "wb").write(message)
END
}
second "$tmp/et.0.et"
if command -v protoc >/dev/null; then
    says "version" 0 '1: "0.0.4"' protoc --decode_raw <"$tmp/et.0.et.0"
    says "a computation" 0 "3: 4" protoc --decode_raw <"$tmp/et.0.et.1"
    says "microseconds" 0 "7: 1" protoc --decode_raw <"$tmp/et.0.et.1"
    says "a message" 0 "3: 5" protoc --decode_raw <"$tmp/et.0.et.2"
    says "its size" 0 "9: 20000000000" protoc --decode_raw <"$tmp/et.0.et.2"
fi
if [ -n "${CHAKRA_SCHEMA-}" ]; then
    decode() { # MESSAGE FILE
        protoc -I "$(dirname "$CHAKRA_SCHEMA")" \
            --decode="ChakraProtoMsg.$1" "$CHAKRA_SCHEMA" <"$2"
    }
    says "the schema's metadata" 0 'version: "0.0.4"' \
        decode GlobalMetadata "$tmp/et.0.et.0"
    says "the schema's node" 0 "type: COMM_SEND_NODE" decode Node "$tmp/et.0.et.2"
    says "its attribute" 0 "int64_val: 20000000000" decode Node "$tmp/et.0.et.2"
    says "its dependencies" 0 "data_deps: 0" decode Node "$tmp/et.0.et.2"
    ! decode Node "$tmp/et.0.et.2" | grep -E '^ *[0-9]+:' ||
        { echo "FAILED: the schema does not know a field"; failed=1; }
fi

# A field of another number is seen.
sed 's/("type", 3/("type", 13/' "$tool" >"$tmp/tool"
$python "$tmp/tool" -o "$tmp/other" "$tmp/two.goal"
second "$tmp/other.0.et"
if command -v protoc >/dev/null &&
    protoc --decode_raw <"$tmp/other.0.et.2" | grep -q "^3: 5"; then
    echo "FAILED: a wrong field is not seen"
    failed=1
fi

head -c 40 "$tmp/et.1.et" >"$tmp/cut.0.et"
says "a cut file" 1 "ends inside a message" $python "$tool" "$tmp/cut"
says "no files" 1 "no such file" $python "$tool" "$tmp/none"
sed 's/tag 7/tug 7/' "$tmp/two.goal" >"$tmp/wrong.goal"
says "a wrong schedule" 1 "wrong.goal:5" $python "$tool" -o "$tmp/x" "$tmp/wrong.goal"
says "no arguments" 2 "usage: trace-chakra" $python "$tool"
[ $failed = 0 ]
