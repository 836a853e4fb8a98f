#!/bin/sh
# Runs a command several times in a row while busy loops use the processors. Stops at the first run that fails.
#
# Usage: test-under-load.sh TIMES LOOPS COMMAND...
# The loops end with this script, no matter how it ends. The script ends them, also when it is interrupted from
# the keyboard. If it is killed, the loops notice within a moment. If only this script receives a SIGTERM, it ends
# after the current run. The command does not run in the background, because there SIGINT would be ignored, which
# tests depend on.
set -eu

times=$1 loops=$2
shift 2
pids=

main() {
    trap end_loops EXIT
    trap 'exit 1' HUP INT TERM
    number=0
    while [ "$number" -lt "$loops" ]; do
        busy_loop $$ &
        pids="$pids $!"
        number=$((number + 1))
    done
    run=0
    while [ "$run" -lt "$times" ]; do
        run=$((run + 1))
        echo "test-under-load: run $run of $times, beside $loops busy loops"
        if ! "$@" < /dev/null; then
            echo "test-under-load: run $run of $times FAILED" >&2
            exit 1
        fi
    done
    echo "test-under-load: passed $times times in a row"
}

# Checks now and then whether the script is still running.
busy_loop() {
    trap - EXIT HUP INT TERM
    while kill -0 "$1" 2> /dev/null; do
        turns=0
        while [ "$turns" -lt 100000 ]; do
            turns=$((turns + 1))
        done
    done
}

end_loops() {
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2> /dev/null || :
}

main "$@"
