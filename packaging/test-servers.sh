#!/bin/sh
# Runs everything that talks to a server against each of several servers, and reports the results.
#
# Usage: test-servers.sh BUILD_DIRECTORY DEMO SERVER...    each as for servers.sh
# TESTS contains every test program that starts servers. tests/pure/project.rs checks that. All other tests need
# no server, so they run only once: in `make test`. Environment: CARGO.
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
    # Gets all servers first, so that a missing one is noticed at once, and not after ten minutes.
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

# Runs the demo even if the tests fail, so that all failures are known at once.
run_all() {
    all_well=0
    # shellcheck disable=SC2046,SC2086
    "$CARGO" test --workspace --no-fail-fast $(printf ' --test %s' $TESTS) < /dev/null || all_well=1
    for program in "$demo" "$demo-fencing" "$demo-cluster"; do
        sh packaging/test-demo.sh "$program" < /dev/null || all_well=1
    done
    return $all_well
}

main "$@"
