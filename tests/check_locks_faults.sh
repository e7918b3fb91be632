#!/bin/bash
# SPDX-License-Identifier: MIT
# inputs: build
#
# Tests the checker of locks: it reports each fault that is planted in a small
# tree, or in the table of its page.
# Backquotes are what the page has.
# shellcheck disable=SC2016
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
failed=0 planted=0

fail() {
    echo "FAILED: $*"
    failed=1
}

tree() {
    rm -rf src docs
    mkdir -p src/heap docs
    cat >src/heap/list.h <<'C'
struct list {
    pthread_mutex_t lock; /* guards the rest */
    struct names *names;
};
struct names {
    pthread_mutex_t lock;
    struct list *list;
};
C
    cat >src/heap/list.c <<'C'
static pthread_mutex_t ends = PTHREAD_MUTEX_INITIALIZER;

static const struct ops ops = {
    .name = iris_i_name,
};

static int find(struct list *list)
{
    return list->ops->name(list->names);
}

int iris_i_name(struct names *names)
{
    pthread_mutex_lock(&names->lock);
    pthread_mutex_unlock(&names->lock);
    return 0;
}

static void unlock_all(struct list *list)
{
    pthread_mutex_unlock(&list->lock);
}

int iris_i_list_find(struct list *list)
{
    int found = 0;

    pthread_mutex_lock(&list->lock);
    if (list->names == NULL) {
        pthread_mutex_unlock(&list->lock);
        return 0;
    }
    found = find(list);
    unlock_all(list);
    return found;
}

void iris_i_list_end(void)
{
    if (pthread_mutex_trylock(&ends) != 0) {
        return;
    }
    pthread_mutex_unlock(&ends);
}
C
    cat >docs/architecture.md <<'MD'
## Locks

| Lock | Guards | Taken by | Runs under it | Under it |
| --- | --- | --- | --- | --- |
| `list.lock` | the `list` | `iris_i_list_find` | `find`, `unlock_all` | `names.lock` |
| `names.lock` | names | `iris_i_name` | | nothing |
| `heap/list.c:ends` | the end | `iris_i_list_end` | | nothing |
MD
}

# expect PATTERN [FILE SED]: what is reported once the file has been edited.
expect() {
    tree
    if [ $# = 3 ]; then
        cp "$2" before
        sed -i -E "$3" "$2"
        ! cmp -s before "$2" || fail "nothing planted: $3"
        planted=$((planted + 1))
    fi
    bash tests/check_locks.sh >found
    [ $? = $(($# == 3)) ] || fail "exit status for: $*"
    grep -q "$1" found || { fail "not reported: $1" && cat found; }
}

cd "$copy" || exit 1
mkdir tests
cp "$here/check_locks.awk" tests
# The small tree needs no exceptions.
sed '/^except=/,/"$/c except=' "$here/check_locks.sh" >tests/check_locks.sh
code=src/heap/list.c page=docs/architecture.md
expect "^3 locks"
expect "lock names.lock is not in the table" $page '/`names.lock. [|] names/d'
expect "lock list.old is in the table, but not" $page '$a| `list.old` | | | | nothing |'
expect "takes heap/list.c:ends iris_i_list_end is not in" $page 's/`iris_i_list_end`//'
expect "takes names.lock find is in the table, but" $page 's/`iris_i_name`/`find`, &/'
expect "under list.lock names.lock is not in the" $page '/^. `list.lock/s/`names.lock`/nothing/'
expect "under heap/list.c:ends list.lock is in the table, but" $page '/ends/s/nothing/`list.lock`/'
expect "under names.lock wait is not in the table" $code \
    '/lock\(&names->lock/s/$/\n    iris_i_wait_begin(\&wait);/;'
expect "with list.lock find is in the table, but" $code \
    's/^    int found = 0;/    int found = find(list);/'
expect "iris_i_list_find may return with list.lock held" $code \
    '/== NULL/,/return/{/unlock/d}'
expect "iris_i_name leaves names.lock locked, and so does iris_i_name" $code '/unlock\(&names/d'
expect "unlock_all releases list.lock, which not every" $code \
    '/iris_i_list_end/,/^}/s/return;/unlock_all(list);/'
expect "a circle of locks: list.lock list.lock" $code \
    's/^    return list->ops.*/    pthread_mutex_lock(\&list->lock);\
    pthread_mutex_unlock(\&list->lock);/'
expect "a circle of locks: [a-z.]*lock [a-z.]*lock [a-z.]*lock$" $code \
    's/iris_i_list_end\(void/iris_i_list_end(struct names *n/
    s/^    pthread_mutex_unlock\(&ends/    pthread_mutex_lock(\&n->lock);\
    pthread_mutex_lock(\&n->list->lock);\
    pthread_mutex_unlock(\&n->list->lock);\
    pthread_mutex_unlock(\&n->lock);\n&/'
expect "iris_i_name: which lock is &other->lock" $code '/unlock\(&names/s/names/other/'
expect "an exception that is not needed: - gone list.lock" tests/check_locks.sh \
    's/^except=/&"- gone list.lock"/'
[ $failed = 0 ] && echo "passed: $planted planted faults found"
exit $failed
