#!/bin/sh
# Prints the names and licences of all third-party code that is linked into the library.
#
# Usage: licences.sh [PACKAGE]: cargo's name of the linked package, if it is not the library
# The licence files are those that come with the crates and with Rust. A crate without a licence file is an error.
# Many of them have the same text: it is printed once, at the end, and the others refer to it.
# Environment: CARGO, CARGOFLAGS.
set -eu

what=${1:-redlock-core}
here=$(cd "$(dirname "$0")/.." && pwd)
cargo=${CARGO:-cargo}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM

# In front of a text of a licence, and behind it.
begin=$(printf '\001begin')
end=$(printf '\001end')

main() {
    cd "$here"
    all > "$scratch/all"
    each_text_once < "$scratch/all"
}

all() {
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
        printf '\n---- %s\n%s\n' "${file##*/}" "$begin"
        cat "$file"
        printf '\n%s\n' "$end"
    done < "$scratch/files"
}

# Some distributions of Rust do not have this page.
of_rust() {
    printf "\n\n==== Rust's standard library, of %s: MIT OR Apache-2.0\n" "$(rustc --version)"
    page=$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html
    if [ -f "$page" ]; then
        sed -e "s/.*<pre>/$begin\\n/" -e "s/<\/pre>.*/\\n$end/" "$page" > "$scratch/page"
        sed -e 's/<[^>]*>//g' -e 's/&#60;/</g' -e 's/&#62;/>/g' -e 's/&#34;/"/g' -e "s/&#39;/'/g" -e 's/&amp;/\&/g' \
            -e 's/&#38;/\&/g' "$scratch/page" | sed '/^[[:space:]]*$/d'
    else
        echo 'Copyright: the Rust Project Developers (see https://thanks.rust-lang.org)'
        echo 'Its parts and their licences: COPYRIGHT-library.html of that version of Rust.'
    fi
}

# Texts that differ in nothing but white space are the same.
each_text_once() {
    awk -v begin="$begin" -v end="$end" '
        $0 == begin { inside = 1; text = key = ""; next }
        $0 == end {
            inside = 0
            if (!(key in number)) {
                number[key] = ++count
                texts[count] = text
            }
            print "text " number[key]
            next
        }
        inside { text = text $0 "\n"; gsub(/[[:space:]]/, ""); key = key $0; next }
        { print }
        END {
            for (i = 1; i <= count; i++)
                printf "\n\n==== text %d\n\n%s", i, texts[i]
        }'
}

main
