#!/bin/sh
# Runs the library under ThreadSanitizer: tests/programs/threads/storm.c, with servers that freeze from time to
# time.
#
# Usage: check-threads.sh [SECONDS]
# It needs a C compiler, redis-server, and a Rust toolchain with the sanitizer's runtime. A stable toolchain has
# the runtime, and uses it when it is told that it may. If something is missing, the script names it and ends with
# status 3. Environment: CARGO, CC, REDIS_SERVER, CARGO_TARGET_DIR.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-20}
CARGO=${CARGO:-cargo}
CC=${CC:-cc}
REDIS_SERVER=${REDIS_SERVER:-redis-server}
SERVERS='1 2 3 4 5'
target=${CARGO_TARGET_DIR:-target}/threads

scratch=$(mktemp -d)
trap 'end' EXIT
trap 'exit 1' HUP INT TERM

main() {
    look
    compile_library
    compile_program
    start_servers
    freeze_servers &
    freezing=$!
    run
    echo 'check-threads: ok'
}

look() {
    for tool in "$CARGO" rustc "$CC" "$REDIS_SERVER" nm; do
        command -v "$tool" > /dev/null 2>&1 || give_up "there is no $tool"
    done
    host=$(rustc -vV | sed -n 's/^host: //p')
    runtime=$(find "$(rustc --print sysroot)/lib/rustlib/$host/lib" \
        -name 'librustc-*_rt.tsan.a' 2> /dev/null) || true
    [ -n "$runtime" ] || give_up "this Rust toolchain has no ThreadSanitizer for $host"
}

# The standard library is not rebuilt. std.c tells ThreadSanitizer what it must know about it.
compile_library() {
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$target \
        RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer -Cdebuginfo=1' \
        "$CARGO" rustc --lib --crate-type staticlib --target "$host" \
        || give_up 'this Rust toolchain does not compile for ThreadSanitizer'
    library=$target/$host/debug/libredlock.a
}

compile_program() {
    lock=$(name_in_std 'sync5mutex5futex.*14lock_contended')
    wait=$(name_in_std 'sync7condvar5futex.*7Condvar4wait')
    for part in storm std; do
        "$CC" -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Wpedantic -Werror -g -O1 -Iinclude \
            -fsanitize=thread -DLOCK_CONTENDED="\"$lock\"" -DCONDVAR_WAIT="\"$wait\"" \
            -c -o "$scratch/$part.o" "tests/programs/threads/$part.c"
    done
    "$CC" -o "$scratch/storm" -pthread "$scratch/storm.o" "$scratch/std.o" "$library" \
        -Wl,--wrap="$lock" -Wl,--wrap="$wait" \
        -Wl,--whole-archive "$runtime" -Wl,--no-whole-archive -lm -ldl -lrt
}

# Finds the name of a standard library function that the library uses. Exactly one must match.
name_in_std() {
    found=$(nm -u "$library" 2> /dev/null | awk '{ print $NF }' | grep -E "$1\$" | sort -u)
    [ "$(echo "$found" | wc -w)" -eq 1 ] || give_up "this Rust's standard library has no $1"
    echo "$found"
}

start_servers() {
    servers=
    for i in $SERVERS; do
        "$REDIS_SERVER" --port 0 --unixsocket "$scratch/$i" --save '' --appendonly no \
            --dir "$scratch" --daemonize no > "$scratch/$i.log" 2>&1 &
        echo $! > "$scratch/$i.pid"
        servers="$servers unix://$scratch/$i"
    done
    for i in $SERVERS; do
        until [ -S "$scratch/$i" ]; do
            kill -0 "$(cat "$scratch/$i.pid")" || give_up "$(cat "$scratch/$i.log")"
            sleep 0.05
        done
    done
}

# Freezes two of five servers at a time. So a quorum is always there, but not always in time.
freeze_servers() {
    while :; do
        for i in $SERVERS; do
            one=$(cat "$scratch/$i.pid") other=$(cat "$scratch/$((i % 5 + 1)).pid")
            kill -STOP "$one" "$other"
            sleep 0.05
            kill -CONT "$one" "$other"
            sleep 0.2
        done
    done
}

run() {
    # The thread that drops the last reference sees the changes of the others because of a fence. ThreadSanitizer
    # does not know fences.
    echo 'race:*alloc::sync::Arc*drop_slow*' > "$scratch/suppressions"
    status=0
    # shellcheck disable=SC2086
    TSAN_OPTIONS="suppressions=$scratch/suppressions history_size=4" \
        "$scratch/storm" "$seconds" $servers || status=$?
    case $status in
    0) ;;
    66) fail 'ThreadSanitizer has found something: see above' ;;
    142) fail 'a call has not ended in time' ;;
    *) fail "the program ends with status $status" ;;
    esac
}

fail() {
    echo "check-threads: $*" >&2
    exit 1
}

give_up() {
    echo "check-threads: $*" >&2
    exit 3
}

end() {
    status=$?
    set +e
    [ -z "${freezing-}" ] || kill "$freezing" 2> /dev/null
    for file in "$scratch"/*.pid; do
        [ ! -e "$file" ] || kill -KILL "$(cat "$file")" 2> /dev/null
    done
    wait 2> /dev/null
    rm -rf "$scratch"
    exit "$status"
}

main
