#!/bin/sh
# Runs a demo to its end and looks at what it says, and ends it with Ctrl-C in the middle: nothing may be left
# behind.
#
# Usage: test-demo.sh demo|demo-fencing, with its path
set -eu

program=$1
name=${program##*/}
scratch=$(mktemp -d)
# PostgreSQL does not run as root, and has to come to its files all the same.
chmod 711 "$scratch"
demo=
trap '[ -z "$demo" ] || kill -TERM "-$demo" 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    start
    wait "$demo" || fail "it ends with status $?"
    check_nothing_left
    check_what_it_says
    for moment in 0.05 0.3 2.1 4.5; do
        start
        sleep "$moment"
        kill -INT "-$demo" 2>/dev/null || true
        ! wait "$demo" || fail "Ctrl-C after $moment s does not end it"
        check_nothing_left
    done
    start
    sleep 4.5
    kill -KILL "$demo"
    check_all_end
    echo "$name: ok"
}

# In a session of its own, so that all its processes can be told, and Ctrl-C reaches them all.
start() {
    mkdir "$scratch/files"
    TMPDIR=$scratch/files setsid "$program" > "$scratch/said" 2>&1 &
    demo=$!
}

check_what_it_says() {
    lines=$(wc -l < "$scratch/said")
    [ "$lines" -le 85 ] || fail "it says $lines lines, too many to read"
    case $name in
    demo)
        says 'greatest number of holders at one time 1 '
        ;;
    demo-fencing)
        says 'the balance is 110: the 500 of B are LOST'
        says 'SQLite changes no row'
        says 'the balance is 610: nothing is lost'
        says 'A and B hold the lock AT THE SAME TIME'
        says 'lost its memory [0-9]* s ago: its vote counts again in [0-9]* s'
        says 'PostgreSQL changes no row|PostgreSQL is not installed here'
        says 'happened as it is told'
        ;;
    esac
}

# Wherever its lines are broken.
says() {
    tr '\n' ' ' < "$scratch/said" | tr -s ' ' | grep -Eq "$1" || fail "it does not say: $1"
}

# What is left of a demo that was killed outright ends by itself. Files stay.
check_all_end() {
    tries=0
    while left && [ $tries -lt 300 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    ! left || fail "it leaves processes: $left"
    rm -rf "$scratch/files"
    demo=
}

# Processes of its session, or that name its files. PostgreSQL has sessions of its own. Those that nobody has
# taken note of yet have ended.
left() {
    left=$(ps -e -o sess= -o pid= -o args= | awk -v session="$demo" -v files="$scratch/files" '
        $3 == "awk" || /<defunct>$/ { next }
        $1 == session || index($0, files)')
    [ -n "$left" ]
}

check_nothing_left() {
    ! left || fail "it leaves processes: $left"
    rmdir "$scratch/files" || fail "it leaves files: $(find "$scratch/files")"
    demo=
}

fail() {
    cat "$scratch/said" >&2
    echo "$name: $*" >&2
    exit 1
}

main
