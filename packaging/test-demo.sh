#!/bin/sh
# Runs the demo to its end, and ends it with Ctrl-C in the middle: nothing may be left behind.
#
# Usage: test-demo.sh PROGRAM
set -eu

program=$1
scratch=$(mktemp -d)
demo=
trap '[ -z "$demo" ] || kill -TERM "-$demo" 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    start
    wait "$demo" || fail "it ends with status $?"
    check_nothing_left
    lines=$(wc -l < "$scratch/said")
    [ "$lines" -le 65 ] || fail "it says $lines lines, too many to read"
    for moment in 0.05 0.3 2.1 4.5; do
        start
        sleep "$moment"
        kill -INT "-$demo" 2>/dev/null || true
        ! wait "$demo" || fail "Ctrl-C after $moment s does not end it"
        check_nothing_left
    done
    echo "demo: ok"
}

# In a session of its own, so that all its processes can be told, and Ctrl-C reaches them all.
start() {
    mkdir "$scratch/files"
    TMPDIR=$scratch/files setsid "$program" > "$scratch/said" 2>&1 &
    demo=$!
}

check_nothing_left() {
    left=$(ps -e -o sess= -o pid= -o args= | awk -v session="$demo" '$1 == session')
    [ -z "$left" ] || fail "it leaves processes: $left"
    rmdir "$scratch/files" || fail "it leaves files: $(find "$scratch/files")"
    demo=
}

fail() {
    cat "$scratch/said" >&2
    echo "demo: $*" >&2
    exit 1
}

main
