#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources prose
#
# No folder has more lines than its ceiling (scripts/size), and no more functions of
# src are shown to other files than allowed. In a small tree, the script finds a
# planted overflow, a function too many, a folder without a ceiling, and a bad row.
set -u
export LC_ALL=C
. "$(dirname "$0")/support/script.sh"

says "the tree is below its ceilings" 0 "folder " "$root/scripts/size"
cat "$tmp/out"

mkdir -p "$tmp/scripts" "$tmp/src/base" "$tmp/docs"
cp "$root/scripts/size" "$tmp/scripts"
seq 100 >"$tmp/src/base/a.c"
seq 7 >"$tmp/docs/page.md"
seq 9 >"$tmp/docs/a.o"
printf '# FOLDER LINES\nsrc/base 100\ndocs 7\n' >"$tmp/scripts/size-ceilings"
size=$tmp/scripts/size
says "lines at the ceiling" 0 "src/base                  100      100        1" "$size"
says "what a build makes" 0 "docs                        7        7        1" "$size"
echo "one more" >"$tmp/src/base/b.h"
says "a line above the ceiling" 1 "src/base has 1 lines more than its ceiling of 100" "$size"
rm "$tmp/src/base/b.h"
cat >"$tmp/src/base/a.c" <<'C'
static int take_one(void)
{
    return 1;
}

int iris_i_two(int a,
               int b)
{
    return take_one() + a + b;
}
C
echo "shown 50" >>"$tmp/scripts/size-ceilings"
says "a function of two is shown" 0 "src/base                   10      100        1        1        2       50" "$size"
printf 'void iris_i_more(void)\n{\n}\n' >>"$tmp/src/base/a.c"
says "a shown function too many" 1 "67 % of the functions of src are not static, more than 50" "$size"
mkdir "$tmp/src/new"
says "a folder without a ceiling" 1 "src/new has no ceiling" "$size"
rmdir "$tmp/src/new"
echo "tools 10" >>"$tmp/scripts/size-ceilings"
says "a row without a folder" 1 '"tools 10 " is not a folder' "$size"
echo "docs ten" >"$tmp/scripts/size-ceilings"
says "a ceiling that is no number" 1 '"docs ten " is not a folder' "$size"
rm "$tmp/scripts/size-ceilings"
says "no table" 1 "No such file" "$size"
says "help" 0 "usage: scripts/size" "$root/scripts/size" --help
says "a wrong option" 2 "usage: scripts/size" "$root/scripts/size" --nonsense
exit $failed
