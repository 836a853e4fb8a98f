#!/bin/sh
# Makes the packages that people install with pip, gem, npm, go and cargo. Publishes nothing.
#
# Usage: packages.sh BUILD_DIRECTORY OUTPUT_DIRECTORY [python|ruby|node|go|rust...]
# Each package is a file in packaging/packages. By default, all are made. BUILD_DIRECTORY has the result of `cargo
# build --release`. The first four packages contain the library, linked for old systems (portable.sh), and
# THIRD-PARTY.txt. Environment: CARGO, CARGOFLAGS, CARGO_TARGET_DIR, CC, SOURCE_DATE_EPOCH.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
output=$(cd "$2" && pwd)
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
umask 022
. "$here/packaging/version.sh"

main() {
    [ "$(uname -s)" = Linux ] || give_up 'they are made on Linux, and for it'
    [ "$*" = rust ] || prepare
    for package in "$@"; do
        # shellcheck disable=SC1090
        . "$here/packaging/packages/$package.sh"
        "make_$package"
    done
}

# Prepares what all packages except the crate contain: the library, and the licences of the code in it.
prepare() {
    [ -f "$build/libredlock.a" ] || give_up "there is no $build/libredlock.a: make build"
    tools=$(sh "$here/packaging/package-tools.sh" "${CARGO_TARGET_DIR:-$here/target}") || exit 3
    third_party=$scratch/THIRD-PARTY.txt
    sh "$here/packaging/licences.sh" > "$third_party"
    # The compiler adds this code itself.
    { printf "\n\n==== Zig's compiler runtime: MIT\n" && cat "$tools"/lib/python*/site-packages/ziglang/LICENSE; } >> "$third_party"
    portable=$scratch/libredlock.so.$interface
    sh "$here/packaging/portable.sh" "$build" "$tools" "$portable"
}

give_up() {
    echo "packages: $*" >&2
    exit 1
}

# Runs a command that prints too much. The output is shown only if the command fails.
quietly() {
    "$@" > "$scratch/said" 2>&1 || { cat "$scratch/said" >&2; give_up "$* fails"; }
}

# Usage: begin NAME: makes the directory for the contents of a package.
begin() {
    stage=$scratch/$1
    mkdir "$stage"
    cp "$here/LICENSE" "$stage/"
    cp "$third_party" "$stage/THIRD-PARTY.txt"
}

# Usage: readme BINDING: puts its README.md into the package. A reader of the package can install it by its name. The
# pages of the project are not in the package, so there are no links to them.
readme() {
    # shellcheck disable=SC2016
    sed -e 's|target/packages/redlock[_-]native-[*][.][a-z]*$|redlock-native|' -e 's/^gem install --local/gem install/' \
        -e 's|\[\([^]]*\)\](\.\./\.\./\([^)]*\))|\1 (`\2`)|g' "$here/bindings/$1/README.md" > "$stage/README.md"
}

# Usage: take FILE: moves a finished package to the output directory.
take() {
    mv "$1" "$output/"
    echo "$output/${1##*/}"
}

[ $# -gt 0 ] || set -- python ruby node go rust
main "$@"
