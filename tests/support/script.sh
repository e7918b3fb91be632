# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
#
# What scripts that are tests begin with: the folders of the tests ($here) and of the
# tree ($root), a folder of their own ($tmp), which goes when they end, $failed and fail().
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
root=${here%/*}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
# shellcheck source=says.sh
. "$here/support/says.sh"

fail() { # WHAT
    echo "FAILED: $*"
    failed=1
}
