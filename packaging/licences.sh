#!/bin/sh
# Prints the names and licences of all third-party code that is linked into the library.
#
# Usage: licences.sh [PACKAGE]: cargo's name of the linked package, if it is not the library
# The licence files are those that come with the crates and with Rust. A crate without a licence file is an error.
# Environment: CARGO, CARGOFLAGS.
set -eu

what=${1:-redlock-core}
here=$(cd "$(dirname "$0")/.." && pwd)
cargo=${CARGO:-cargo}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

main() {
    cd "$here"
    echo "What is in $what that others have written, each with its licence."
    host=${CARGO_BUILD_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
    # shellcheck disable=SC2086
    "$cargo" metadata --format-version 1 --filter-platform "$host" ${CARGOFLAGS:-} | tr ',' '\n' \
        | sed -n 's|.*"manifest_path":"\(.*\)/Cargo.toml"|\1|p' | sort > "$scratch/directories"
    # shellcheck disable=SC2086
    "$cargo" tree --package "$what" --edges normal --prefix none --no-dedupe --format '{p}|{l}' ${CARGOFLAGS:-} \
        | sort -u > "$scratch/crates"
    while IFS='|' read -r crate licence; do
        # The project's own packages have a path behind their name. Macros have "(proc-macro)", and run only in
        # the compiler.
        case $crate in *' ('*) continue ;; esac
        of_crate "${crate%% *}" "${crate#* v}" "$licence"
    done < "$scratch/crates"
    of_rust
}

# Usage: of_crate NAME VERSION LICENCE
of_crate() {
    printf '\n\n==== %s %s: %s\n' "$@"
    directory=$(grep -e "/$1-$2\$" -e "/$1\$" "$scratch/directories" | head -n 1)
    find "$directory" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) \
        | LC_ALL=C sort > "$scratch/files"
    if [ ! -s "$scratch/files" ]; then
        echo "licences: $1 $2 ($3) has no file with its licence" >&2
        exit 1
    fi
    while read -r file; do
        printf '\n---- %s\n' "${file##*/}"
        cat "$file"
    done < "$scratch/files"
}

# Some distributions of Rust do not have this page.
of_rust() {
    printf "\n\n==== Rust's standard library, of %s: MIT OR Apache-2.0\n" "$(rustc --version)"
    page=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
    if [ -f "$page" ]; then
        sed -e 's/<[^>]*>//g' -e 's/&#60;/</g' -e 's/&#62;/>/g' -e 's/&#34;/"/g' -e "s/&#39;/'/g" -e 's/&amp;/\&/g' \
            -e 's/&#38;/\&/g' "$page" | sed '/^[[:space:]]*$/d'
    else
        echo 'Copyright: the Rust Project Developers (see https://thanks.rust-lang.org)'
        echo 'Its parts and their licences: COPYRIGHT-library.html of that version of Rust.'
    fi
}

main
