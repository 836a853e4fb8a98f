#!/bin/sh
# Runs the C and C++ programs, both tests and examples, with tools that find memory errors and leaks.
#
# Usage: check-memory.sh short|long
#   short: the programs under AddressSanitizer and UndefinedBehaviorSanitizer, with the unchanged library.
#          Some of them also run under valgrind, with the release build.
#   long:  also all of them under valgrind, and all of them with a library that is itself built with
#          AddressSanitizer. Includes the demos.
# Any fault ends it with status 1, as does any block that is definitely, indirectly or possibly lost. Memory that
# is still reachable at the end is not a leak. That is the page of src/system/process.rs, which is never freed,
# the panic hook, and what std keeps for a thread.
#
# It needs gcc with its sanitizers, valgrind and redis-server. long also needs clang, and a Rust toolchain with
# AddressSanitizer's runtime. A stable toolchain has the runtime, and uses it when it is told that it may. If
# something is missing, the script names it and ends with status 3. Environment: CARGO, CARGO_TARGET_DIR.
set -eu
cd "$(dirname "$0")/.."

how_long=$1
CARGO=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}/memory
sanitizers='-fsanitize=address,undefined -fno-omit-frame-pointer'

# The rows of the fault matrix that are C programs with no library loaded before them. Two rows are left out. The
# first has a library loaded before it, and the sanitizer must be loaded first. The second ends children of a
# process whose thread drives. The memory that belonged to that thread counts as a leak in those children.
ROWS='forks:: signals:: callbacks:: --skip a_child_with_the_pid_of_its_parent
    --skip a_child_neither_keeps_a_shared_lock'

# The tests whose threads run while they fork.
THREADS_THAT_FORK='a_child_can_free_objects_of_other_threads
    a_child_forked_while_servers_are_added_locks
    a_child_forked_during_the_first_call_locks
    a_child_of_many_locking_threads_locks_on_its_own
    no_child_hangs_in_a_storm_of_forks'

# Program tests that spend nearly all their time compiling, and run little.
SMALL='--skip found_by_its_directory --skip several_units --skip builds_and_runs_unchanged'

# Program tests that only compile, or that run valgrind themselves.
NOT_RUN='--skip every_compiler --skip every_standard --skip cannot_be --skip header_compiles_as_cpp
    --skip leak_nothing --skip needs_no_exceptions --skip wants_exceptions'

unset REDLOCK_TEST_UNDER REDLOCK_TEST_LIBRARY REDLOCK_TEST_CC REDLOCK_TEST_CFLAGS CFLAGS
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    look
    case $how_long in
    short)
        # shellcheck disable=SC2086
        sanitize_programs $SMALL
        valgrind_some
        ;;
    long)
        look_further
        sanitize_programs
        sanitize_demo
        valgrind_all
        sanitize_library
        ;;
    *) give_up "short or long?" ;;
    esac
    echo "check-memory: $how_long: ok"
}

look() {
    for tool in "$CARGO" gcc g++ valgrind "${REDIS_SERVER:-redis-server}"; do
        command -v "$tool" > /dev/null 2>&1 || give_up "there is no $tool"
    done
    echo 'int main(void) { return 0; }' > "$scratch/none.c"
    # shellcheck disable=SC2086
    if ! gcc $sanitizers -o "$scratch/none" "$scratch/none.c" 2> /dev/null || ! "$scratch/none"; then
        give_up 'gcc has no AddressSanitizer or no UndefinedBehaviorSanitizer here'
    fi
}

look_further() {
    for tool in clang clang++ rustc setsid ps; do
        command -v "$tool" > /dev/null 2>&1 || give_up "there is no $tool"
    done
    host=$(rustc -vV | sed -n 's/^host: //p')
    runtime=$(find "$(rustc --print sysroot)/lib/rustlib/$host/lib" \
        -name 'librustc-*_rt.asan.a' 2> /dev/null) || true
    [ -n "$runtime" ] || give_up "this Rust toolchain has no AddressSanitizer for $host"
}

# A child that was forked while another thread allocated may wait for ever for a mutex of gcc's
# AddressSanitizer allocator. So sanitize_library, with a newer runtime, runs the tests that fork beside threads.
# shellcheck disable=SC2046,SC2086
sanitize_programs() {
    flags="$sanitizers -fno-sanitize-recover=all"
    REDLOCK_TEST_CC=gcc REDLOCK_TEST_CFLAGS=$flags guests --skip failing
    REDLOCK_TEST_CC=gcc REDLOCK_TEST_CFLAGS=$flags rows $ROWS $(each --skip $THREADS_THAT_FORK)
    REDLOCK_TEST_CC=gcc REDLOCK_TEST_CFLAGS=$flags tls manners:: $(each --skip $THREADS_THAT_FORK)
    REDLOCK_TEST_COMPILERS='gcc g++' REDLOCK_TEST_CFLAGS=$flags programs "$@"
}

# The demos fork, and have no threads.
sanitize_demo() {
    "$CARGO" build --release
    sh packaging/install.sh link "${CARGO_TARGET_DIR:-target}/release"
    library=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)
    # shellcheck disable=SC2086
    gcc -std=c11 $sanitizers -fno-sanitize-recover=all -g -O1 -Iinclude -o "$scratch/demo" \
        c-examples/demo.c c-examples/demo/*.c -pthread -L"$library" -lredlock \
        -Wl,-rpath,"$library"
    sh packaging/test-demo.sh "$scratch/demo"
    # shellcheck disable=SC2086
    gcc -std=c11 $sanitizers -fno-sanitize-recover=all -g -O1 -Iinclude -o "$scratch/demo-fencing" \
        c-examples/fencing/*.c c-examples/demo/servers.c c-examples/demo/terminal.c -pthread \
        -L"$library" -lredlock -Wl,-rpath,"$library" -lsqlite3
    gcc -std=c11 -O2 -shared -fPIC -o "$scratch/demo-fencing-set_clock.so" \
        c-examples/fencing/preload/set_clock.c
    sh packaging/test-demo.sh "$scratch/demo-fencing"
    # shellcheck disable=SC2086
    gcc -std=c11 $sanitizers -fno-sanitize-recover=all -g -O1 -Iinclude -o "$scratch/demo-cluster" \
        c-examples/cluster/*.c c-examples/demo/servers.c c-examples/demo/terminal.c -pthread \
        -L"$library" -lredlock -Wl,-rpath,"$library"
    sh packaging/test-demo.sh "$scratch/demo-cluster"
}

# With the release build of the library. The test build takes ten times as long under valgrind.
valgrind_some() {
    "$CARGO" build --quiet --release
    REDLOCK_TEST_LIBRARY=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)/libredlock.so
    export REDLOCK_TEST_LIBRARY
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect,possible) guests \
        threads_signals_and_descriptors
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect,possible) rows bad_calls
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect) rows a_lease_and_its_connections
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect,possible) tls \
        manners::threads_signals_and_descriptors manners::descriptors_and_memory
    unset REDLOCK_TEST_LIBRARY
}

# A child may end while a manager is still there. The manager's handle points past the counts in front of it, so the
# manager and all that belongs to it count as possibly lost. A child does not have its parent's other threads.
# Memory that only those threads referred to is lost there for good (docs/internals/fork.md: what such a holder was
# changing is never freed).
# shellcheck disable=SC2046,SC2086
valgrind_all() {
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect,possible) guests --skip failing
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect) rows $ROWS $(each --skip $THREADS_THAT_FORK)
    REDLOCK_TEST_UNDER='valgrind --quiet --vgdb=no --error-exitcode=99 --leak-check=no' rows \
        $THREADS_THAT_FORK
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect) tls manners:: \
        $(each --skip $THREADS_THAT_FORK)
    REDLOCK_TEST_UNDER=$(valgrind_for definite,indirect,possible) \
        REDLOCK_TEST_COMPILERS='gcc g++' programs
}

valgrind_for() {
    echo "valgrind --quiet --vgdb=no --error-exitcode=99 --leak-check=full" \
        "--show-leak-kinds=$1 --errors-for-leak-kinds=$1"
}

# The runtime is Rust's own, which is newer than the runtime of most C compilers.
sanitize_library() {
    RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$target \
        RUSTFLAGS='-Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer -Cdebuginfo=1' \
        "$CARGO" rustc --lib --crate-type cdylib --target "$host" \
        || give_up 'this Rust toolchain does not compile for AddressSanitizer'
    library=$(cd "$target/$host/debug" && pwd)/libredlock.so
    flags="$sanitizers -fsanitize-trap=undefined -fno-sanitize-link-runtime
        -Wno-unused-command-line-argument -Wl,--whole-archive,$runtime,--no-whole-archive
        -Wl,--export-dynamic -ldl -lrt -lm"
    REDLOCK_TEST_LIBRARY=$library REDLOCK_TEST_CC=clang REDLOCK_TEST_CFLAGS=$flags guests
    # shellcheck disable=SC2086
    REDLOCK_TEST_LIBRARY=$library REDLOCK_TEST_CC=clang REDLOCK_TEST_CFLAGS=$flags rows $ROWS
    REDLOCK_TEST_LIBRARY=$library REDLOCK_TEST_CC=clang REDLOCK_TEST_CFLAGS=$flags tls manners::
    REDLOCK_TEST_LIBRARY=$library REDLOCK_TEST_COMPILERS='clang clang++' REDLOCK_TEST_CFLAGS=$flags programs
}

# With the whole workspace, as `make test` builds it.
guests() {
    "$CARGO" test --quiet --workspace --test guest -- "$@"
}

rows() {
    "$CARGO" test --quiet --workspace --test matrix -- "$@"
}

# Programs that use TLS.
tls() {
    "$CARGO" test --quiet --workspace --test tls -- "$@"
}

programs() {
    # shellcheck disable=SC2086
    "$CARGO" test --quiet --workspace --test programs -- c:: cpp:: $NOT_RUN "$@"
}

# Puts the option in front of each word.
each() {
    option=$1
    shift
    for word in "$@"; do
        printf ' %s %s' "$option" "$word"
    done
}

give_up() {
    echo "check-memory: $*" >&2
    exit 3
}

main
