#!/bin/sh
# Runs libFuzzer to look for harmful bytes: fuzz/, with the targets in tests/played/hostile.
#
# Usage: fuzz.sh [TARGET...]
#        fuzz.sh keep: adds the finds of earlier runs to fuzz/corpus, unless the corpus already shows them.
# RUNS=10000000 says how often each target runs, MINUTES=5 how long. The default is 5 minutes. Finds are kept in
# target/fuzz and used again. It needs cargo-fuzz, a nightly Rust and a C++ compiler. If something is missing, the
# script names it and ends with status 3. Environment: CARGO, NIGHTLY (the argument that makes cargo the nightly
# one: +nightly), SANITIZER (address, which takes five times as long, or none), CARGO_TARGET_DIR.
set -eu
cd "$(dirname "$0")/.."

CARGO=${CARGO:-cargo}
NIGHTLY=${NIGHTLY-+nightly}
SANITIZER=${SANITIZER:-none}
target=${CARGO_TARGET_DIR:-target}/fuzz

main() {
    look
    build
    if [ "${1-}" = keep ]; then
        for name in calls replies urls; do
            keep "$name"
        done
        exit 0
    fi
    status=0
    [ $# -gt 0 ] || set -- urls replies calls
    for name; do
        fuzz "$name" || status=1
    done
    exit $status
}

look() {
    command -v "$CARGO" > /dev/null 2>&1 || give_up "there is no $CARGO"
    # shellcheck disable=SC2086
    "$CARGO" $NIGHTLY --version > /dev/null 2>&1 \
        || give_up 'there is no nightly Rust: rustup toolchain install nightly'
    # shellcheck disable=SC2086
    "$CARGO" $NIGHTLY fuzz --version > /dev/null 2>&1 \
        || give_up 'there is no cargo-fuzz: cargo install cargo-fuzz'
    command -v "${CXX:-c++}" > /dev/null 2>&1 || give_up 'there is no C++ compiler'
    host=$("$CARGO" -vV | sed -n 's/^host: //p')
}

build() {
    # Watching every comparison takes as long as everything else. fuzz/words.dict has the words that it would find.
    # shellcheck disable=SC2086
    "$CARGO" $NIGHTLY fuzz build --sanitizer "$SANITIZER" --no-trace-compares \
        --target-dir "$target/$SANITIZER" \
        || give_up 'the targets cannot be built'
}

program() {
    echo "$target/$SANITIZER/$host/release/$1"
}

fuzz() {
    name=$1
    case $name in
    calls) longest=160 ;;
    *) longest=512 ;;
    esac
    limit=-max_total_time=$((${MINUTES:-5} * 60))
    [ -z "${RUNS-}" ] || limit=-runs=$RUNS
    found=$target/corpus/$name harm=$target/harm/$name log=$target/$name.log
    mkdir -p "$found" "$harm"
    # A debugger can tell where memory was allocated. ASan does not have to record that for each allocation.
    result=0
    ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=16 \
        "$(program "$name")" "$limit" -max_len=$longest -timeout=10 -dict=fuzz/words.dict \
        -artifact_prefix="$harm/" -print_final_stats=1 "$found" "fuzz/corpus/$name" \
        > "$log" 2>&1 || result=$?
    report
    return $result
}

report() {
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
    seconds=$(sed -n 's/^Done .* runs in \([0-9]*\) second.*/\1/p' "$log" | tail -n 1)
    edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    corpus=$(sed -n 's/.* corp: \([0-9]*\)\/.*/\1/p' "$log" | tail -n 1)
    crashes=$(find "$harm" -type f | wc -l)
    printf '%-8s %10s executions %6s seconds %6s edges %5s in the corpus %3s crashes\n' \
        "$name" "${runs:-?}" "${seconds:-?}" "${edges:-?}" "${corpus:-?}" "$((crashes))"
    if [ "$result" -ne 0 ]; then
        grep -E -A 4 'panicked at|^==[0-9]+==' "$log" | head -n 12 >&2 || true
        echo "fuzz: $name ended with status $result: $log, and $harm has the bytes" >&2
    fi
}

keep() {
    # Keeps one file for each place that is reached, however often that file reaches it.
    "$(program "$1")" -merge=1 -use_counters=0 -max_len=512 "fuzz/corpus/$1" "$target/corpus/$1" \
        > "$target/$1.log" 2>&1
    echo "$1: $(find "fuzz/corpus/$1" -type f | wc -l) files"
}

give_up() {
    echo "fuzz: $*" >&2
    exit 3
}

main "$@"
