#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: sources prose
#
# The manual as HTML: Sphinx finds no faults, every page and call is there and in the
# search index, and every link leads to a file.
set -u
export LC_ALL=C.UTF-8
. "$(dirname "$0")/support/script.sh"
: "${SPHINX_BUILD:=$(command -v sphinx-build)}"
{ [ -x "$SPHINX_BUILD" ] && python=$(sed -n '1s/^#! *//p' "$SPHINX_BUILD") &&
    $python -c 'import furo, myst_parser'; } 2>/dev/null ||
    { echo "left out: no Sphinx with MyST and Furo" && exit 77; }

# A copy, in which faults are planted.
mkdir "$tmp/root"
cp -r "$root"/*.md "$root/src" "$root/configure.ac" "$root/docs" "$root/device" "$root/examples" \
    "$root/include" "$root/scripts" "$tmp/root/"
cd "$tmp" || exit 99
make_html() {
    root/scripts/html html >log 2>&1
}

# Prints each link of the pages that leads nowhere.
check_links() {
    (cd html && python3 -c 'import pathlib, re
for page in pathlib.Path().rglob("*.html"):
    for link in set(re.findall(r"(?:href|src)=\"([^\"#:?]+)[\"#?]", page.read_text())):
        if not (page.parent / link).exists():
            print(f"{page}: {link}")')
}

make_html || { cat log && fail "scripts/html"; }
for page in "$root"/*.md "$root"/docs/*.md "$root"/docs/guide/*.md; do
    name=${page#"$root/"}
    [ -e "html/${name%.md}.html" ] || fail "no page for $name"
done
for call in iris_all_reduce iris_atomic_add iris_dev_barrier; do
    grep -q "\<$call\>" html/searchindex.js || fail "the search does not find $call"
    [ -e "html/reference/$call.html" ] || fail "the reference lacks $call"
done
grep -qE 'Iris_[a-z]|For f32:' html/reference/*.html && fail "a call's name or text is cut"
# The text of an error of src, too, and code can be copied.
grep -q "ask for at least 1" html/reference/messages.html && grep -q '\<overflow' html/searchindex.js ||
    fail "the search does not find messages"
grep -q 'page, title, , , score' html/_static/language_data.js || fail "the search has Sphinx's order"
grep -q 'src="[^"]*site.js' html/README.html || fail "no copy buttons"
links=$(check_links)
[ -z "$links" ] || fail "links that lead nowhere: $links"

# A link to a page, and one to a file, that do not exist.
rm html/docs/api.html
[ -n "$(check_links)" ] || fail "not seen: a page that is missing"
echo '[nowhere](nowhere.md)' >>root/docs/errors.md
# The pages are read and their links looked up, but nothing is written.
if SPHINXOPTS="-b dummy" make_html || ! grep -q 'nowhere\.md' log; then
    cat log
    fail "not seen: a wrong link"
fi
[ $failed = 0 ] && echo passed
exit $failed
