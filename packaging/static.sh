#!/bin/sh
# Makes the static library for installation from the one that was built. Usage: static.sh FROM TO
#
# The library that Rust builds contains all of Rust's standard library. Three quarters of that are in a form that only
# Rust's own compiler reads. Its names clash with those of any other library that was built by another Rust. Here it
# becomes one object, with only the code that the functions of redlock.h can reach, and only their names. If the tools
# for that are missing, the library stays larger, and the script says so.
#
# Environment: LD, OBJCOPY, AR, NM and STRIP, for another target than this machine. Each may include options.
# shellcheck disable=SC2086
set -eu

from=$1 to=$2
LD=${LD:-ld} OBJCOPY=${OBJCOPY:-objcopy} AR=${AR:-ar} NM=${NM:-nm} STRIP=${STRIP:-strip}
here=$(dirname "$0")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    rm -f "$to"
    if ! make_one_object 2> "$scratch/said"; then
        echo "static.sh: libredlock.a is larger than it need be: $(head -n 1 "$scratch/said")" >&2
        cp "$from" "$to"
        $STRIP -S "$to" 2> /dev/null || true
    fi
    chmod 644 "$to"
}

# A linker keeps only one of several section groups with the same name, even across libraries. Here the groups
# become ordinary sections of this object.
make_one_object() {
    [ "$(uname -s)" != Darwin ] || { echo 'only GNU tools can do it' >&2; return 1; }
    sed -n 's/^[a-zA-Z].*[ *]\(RedLock[A-Za-z]*_[A-Za-z]*\)(.*/\1/p' "$here/../include/redlock.h" > "$scratch/names"
    # shellcheck disable=SC2046
    $LD -r --gc-sections --force-group-allocation $(sed 's/^/-u /' "$scratch/names") \
        -o "$scratch/redlock.o" "$from" \
        && $OBJCOPY --strip-debug -R .llvmbc -R .llvmcmd -R .comment \
            --keep-global-symbols="$scratch/names" "$scratch/redlock.o" \
        && $STRIP --strip-unneeded "$scratch/redlock.o" \
        && [ "$($NM -g --defined-only "$scratch/redlock.o" | wc -l)" = "$(wc -l < "$scratch/names")" ] \
        && $AR rcsD "$to" "$scratch/redlock.o"
}

main
