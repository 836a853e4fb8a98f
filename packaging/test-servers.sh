#!/bin/sh
# Runs all that talks to a server against each of some servers, and says how it went.
#
# Usage: test-servers.sh BUILD_DIRECTORY DEMO SERVER...    each as for servers.sh
# Every test program that starts servers is among TESTS; tests/pure/project.rs sees to that. What these leave out
# runs without any server, and so once: in `make test`. The environment: CARGO.
set -eu
cd "$(dirname "$0")/.."

TESTS='behaviour events face ffi guest matrix played programs servers soak tls tool'

target=$1 demo=$2
shift 2
CARGO=${CARGO:-cargo}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    # All of them first: nobody wants to hear after ten minutes that one is missing.
    for server in "$@"; do
        sh packaging/servers.sh "$server" "$target" > "$scratch/program"
        echo "$server $(cat "$scratch/program")" >> "$scratch/programs"
    done
    failed=0
    while read -r server program; do
        began=$(date +%s)
        REDIS_SERVER=$program
        export REDIS_SERVER
        echo "test-servers: $server: $("$program" --version)"
        if run_all; then how='ok'; else how='FAILED' failed=1; fi
        echo "$server: $how, $(($(date +%s) - began)) s: $("$program" --version)" >> "$scratch/said"
    done < "$scratch/programs"
    sed 's/^/test-servers: /' "$scratch/said"
    exit "$failed"
}

# The demo as well if the tests fail: that there is more to mend had better be known at once.
run_all() {
    all_well=0
    # shellcheck disable=SC2046,SC2086
    "$CARGO" test --workspace --no-fail-fast $(printf ' --test %s' $TESTS) < /dev/null || all_well=1
    for program in "$demo" "$demo-fencing"; do
        sh packaging/test-demo.sh "$program" < /dev/null || all_well=1
    done
    return $all_well
}

main "$@"
