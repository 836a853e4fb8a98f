#!/bin/sh
# Runs a demo to its end and checks its output. Then ends it with Ctrl-C at several points. Nothing may be left
# behind.
#
# Usage: test-demo.sh demo|demo-fencing|demo-cluster, with its path
set -eu

program=$1
name=${program##*/}
scratch=$(mktemp -d)
# PostgreSQL does not run as root, but must reach its files.
chmod 711 "$scratch"
demo=
trap '[ -z "$demo" ] || kill -TERM "-$demo" 2>/dev/null || true; rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    start
    wait "$demo" || fail "it ends with status $?"
    check_nothing_left
    check_what_it_says
    # At the very beginning, and after the demo has said these words.
    case $name in
    demo) set -- ' A holds' 'is killed' 'is frozen as well' ;;
    demo-fencing)
        set -- '1a[.].*A is frozen' '1b[.].*A is frozen'
        ! says 'and then in PostgreSQL' || set -- "$@" '1c[.]' '1c[.].*A is frozen'
        ;;
    demo-cluster) set -- 'holds the lock' 'is killed' 'has a new owner' 'is moved with its keys' ;;
    esac
    for words in '' "$@"; do
        start
        wait_until hears
        wait_until says "$words"
        kill -INT "-$demo"
        ! wait "$demo" || fail "Ctrl-C after '$words' does not end it"
        check_nothing_left
    done
    start
    wait_until says "$words"
    kill -KILL "$demo"
    check_all_end
    echo "$name: ok"
}

# Runs in a session of its own. So all its processes can be recognized, and Ctrl-C reaches all of them.
start() {
    mkdir "$scratch/files"
    TMPDIR=$scratch/files setsid "$program" > "$scratch/said" 2>&1 &
    demo=$!
}

# Whether the demo handles Ctrl-C yet. A shell starts background commands with the signal ignored, and the demo
# must first set its handler. On a busy machine, this takes some time.
hears() {
    [ -d /proc/self ] || { sleep 1; return; }
    [ "$(cat "/proc/$demo/comm")" = "$(printf %.15s "$name")" ] || return 1
    grep -q '^SigCgt:.*[2367abef]$' "/proc/$demo/status" # 2 is the bit of SIGINT
}

check_what_it_says() {
    lines=$(wc -l < "$scratch/said")
    [ "$lines" -le 95 ] || fail "it says $lines lines, too many to read"
    case $name in
    demo)
        must_say 'greatest number of holders at one time 1 '
        ;;
    demo-fencing)
        must_say 'the balance is 110: the 500 of B are LOST'
        must_say 'SQLite changes no row'
        must_say 'the balance is 610: nothing is lost'
        must_say 'A and B hold the lock AT THE SAME TIME'
        must_say 'lost its data [0-9]* s ago: no vote for another [0-9]* s'
        must_say 'PostgreSQL changes no row|PostgreSQL is not installed here'
        must_say '3b.*clock jumped forward.*=> one holder'
        must_say 'happened as it is told'
        ;;
    demo-cluster)
        must_say 'the master of tag b, :[0-9]+, is killed'
        must_say 'tag b has a new owner.*no vote for another [0-9]* s.*tag b votes again'
        must_say 'the slot of tag c is moved with its keys.*tag c votes again'
        must_say 'turns in which a second holder was at work 0 '
        ;;
    esac
}

must_say() {
    says "$1" || fail "it does not say: $1"
}

# Finds the words even if a line break divides them. Empty words are always found.
says() {
    [ -z "$1" ] || tr '\n' ' ' < "$scratch/said" | tr -s ' ' | grep -Eq "$1"
}

wait_until() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "waited in vain until it $*"
        sleep 0.1
    done
}

# After a demo was killed outright, its remaining processes must end by themselves. Its files stay.
check_all_end() {
    tries=0
    while left; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || fail "it leaves processes: $left"
        sleep 0.1
    done
    rm -rf "$scratch/files"
    demo=
}

# Processes of the demo's session, or with its files on the command line. PostgreSQL has sessions of its own.
# Zombie processes count as ended.
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
