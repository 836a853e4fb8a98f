#!/bin/sh
# Builds or installs the other libraries that the bench compares with. Each comes from its registry, in
# the version that is pinned here.
#
# Usage: install.sh DIRECTORY
# Everything goes into that directory. A library that cannot be installed is named and left out. The
# bench then reports it as missing.
set -u

here=$(cd "$(dirname "$0")" && pwd) && mkdir -p "$1" && there=$(cd "$1" && pwd) || exit 1

main() {
    absent=
    for peer in rslock python node; do
        echo "bench-peers: $peer"
        "install_$peer" || absent="$absent $peer"
    done
    [ -z "$absent" ] || echo "bench-peers: could not be had:$absent" >&2
}

install_rslock() {
    cargo build --quiet --release --locked --manifest-path "$here/rslock/Cargo.toml" \
        --target-dir "$there/rslock"
}

install_python() {
    [ -x "$there/python/bin/pip" ] || python3 -m venv "$there/python" || return 1
    "$there/python/bin/pip" install --quiet --disable-pip-version-check \
        --requirement "$here/python/requirements.txt"
}

install_node() {
    mkdir -p "$there/node" || return 1
    cp "$here/node/package.json" "$here/node/package-lock.json" "$there/node" || return 1
    npm ci --prefix "$there/node" --silent --no-audit --no-fund
}

main
