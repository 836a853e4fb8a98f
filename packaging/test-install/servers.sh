# Servers for the parts of test-install.sh that take locks, and the common steps of these parts. They make packages,
# install them into an otherwise empty environment, and run the example in docs/packages.md.
# shellcheck shell=sh disable=SC2034,SC2154

cli=${REDIS_CLI:-redis-cli}
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
root=$(pwd)
ports=

# Starts three servers on free ports.
start_servers() {
    [ -z "$ports" ] || return 0
    has "$cli" || fail "there is no $cli"
    tries=0
    while :; do
        first=$((10000 + $(od -An -N2 -tu2 /dev/urandom) % 20000))
        ! sh c-examples/servers.sh up "$scratch/servers" $first > "$scratch/said" 2>&1 || break
        tries=$((tries + 1))
        [ $tries -lt 20 ] || fail "no servers can be started: $(cat "$scratch/said")"
    done
    ports="$first $((first + 1)) $((first + 2))"
}

end_servers() {
    [ ! -d "$scratch/servers" ] || sh c-examples/servers.sh down "$scratch/servers" > /dev/null
}

# Usage: package NAME: makes the package outside of the project, and prints where it is.
package() {
    mkdir -p "$scratch/packages"
    made=$(sh packaging/packages.sh "$release" "$scratch/packages/$1" "$1" | tail -n 1)
    [ -n "$made" ] || fail "the package for $1 cannot be made"
    echo "$made"
}

# Usage: shown LANGUAGE: prints the example of docs/packages.md, with the ports of these servers.
shown() {
    # shellcheck disable=SC2086
    set -- "$1" $ports
    sed -n "/^\`\`\`$1 /,/^\`\`\`\$/p" docs/packages.md | sed -e '/^```/d' -e "s/\<6379\>/$2/" -e "s/\<6380\>/$3/" -e "s/\<6381\>/$4/" \
        > "$scratch/shown"
    [ -s "$scratch/shown" ] || fail "docs/packages.md has no example in $1"
    cat "$scratch/shown"
}

# Runs a command with a minimal environment. Only PATH, HOME and a few other variables are set.
clean() {
    env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 TMPDIR="$scratch" "$@"
}

# Usage: locks COMMAND...: the command must take a lock on the servers, and release it.
locks() {
    for port in $ports; do
        "$cli" -p "$port" config resetstat > /dev/null
    done
    "$@" > "$scratch/said" 2> "$scratch/complained" || fail "$* fails: $(cat "$scratch/said" "$scratch/complained")"
    [ ! -s "$scratch/complained" ] || fail "$* complains: $(cat "$scratch/complained")"
    case $(cat "$scratch/said") in
    'ours for 9.'* | 'ours for 99'* | 'ours for 98'*) ;;
    *) fail "$* says: $(cat "$scratch/said")" ;;
    esac
    # The command may take its lock and end before its connection to the last server is ready.
    asked=0 all=0
    for port in $ports; do
        all=$((all + 1))
        if "$cli" -p "$port" info commandstats | grep -q '^cmdstat_set:calls=[1-9]'; then asked=$((asked + 1)); fi
        [ "$("$cli" -p "$port" exists invoice:42)" = 0 ] || fail "$* leaves its lock behind"
    done
    [ "$((2 * asked))" -gt "$all" ] || fail "$* asks $asked of $all servers for its lock"
}

# Usage: lies_below DIRECTORY FILES: checks the library that a program has loaded, according to /proc/self/maps.
lies_below() {
    case $2 in
    "$1"/*libredlock.so."$interface") ;;
    *) fail "it uses the library '$2', and not one in $1" ;;
    esac
}

# Usage: knows_no_place DIRECTORY: nothing in it may refer to this project's directory.
knows_no_place() {
    [ -d "$1" ] || fail "there is no $1"
    ! grep -rlF "$root/" "$1" || fail "something in $1 names $root"
}

# Usage: is_whole DIRECTORY: what is installed there must not refer to the project, and must have the licences.
is_whole() {
    knows_no_place "$1"
    notice=$(find "$1" -name THIRD-PARTY.txt)
    [ -f "$notice" ] || fail "there is no THIRD-PARTY.txt in $1"
    for crate in redis ring rustls "Rust's standard library"; do
        grep -q "^==== $crate" "$notice" || fail "THIRD-PARTY.txt lacks $crate"
    done
    # Without the same texts again and again.
    [ "$(wc -c < "$notice")" -lt 300000 ] || fail "THIRD-PARTY.txt has $(wc -c < "$notice") bytes"
    cmp -s LICENSE "$(find "$1" -name LICENSE)" || fail "there is no LICENSE in $1"
}
