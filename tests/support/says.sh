# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: MIT
#
# For scripts that run a command and look at its output. They set $tmp and failed=0.

# The command exits with STATUS, and its output contains TEXT.
says() { # LABEL STATUS TEXT COMMAND...
    local label=$1 status=$2 text=$3 ret
    shift 3
    "$@" >"$tmp/out" 2>&1
    ret=$?
    if [ $ret = "$status" ] && grep -qF -- "$text" "$tmp/out"; then
        echo "passed: $label"
    else
        echo "FAILED: $label ($ret), without '$text'"
        tail -n 5 "$tmp/out"
        failed=1
    fi
}
