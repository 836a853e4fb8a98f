#!/bin/sh
# Makes Debian packages from what was built: the shared library, the development files, and the command.
#
# Usage: deb.sh BUILD_DIRECTORY OUTPUT_DIRECTORY
#
# It needs dpkg-deb and the tools that come with a compiler, but not root. The Debian-specific files are in
# packaging/debian. Environment: TOOL (the command; without it, no package is made for it), CC, STRIP, CARGO,
# CARGOFLAGS, SOURCE_DATE_EPOCH (the time of the build, for reproducible packages; the default is the time in the
# changelog).
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
build=$1
mkdir -p "$2"
output=$(cd "$2" && pwd)
debian=$here/packaging/debian
upstream=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)
version=$(sed -n '1s/.*(\(.*\)).*/\1/p' "$debian/changelog")
maintainer=$(sed -n 's/^ -- \(.*>\)  .*/\1/p' "$debian/changelog" | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
umask 022

main() {
    look
    case $upstream in
    0.*) interface=${upstream%.*} ;;
    *) interface=${upstream%%.*} ;;
    esac
    library=libredlock$interface
    SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(date -d "$(sed -n 's/^ -- .*>  //p' "$debian/changelog" | head -n 1)" +%s)}
    export SOURCE_DATE_EPOCH
    stage
    check_symbols
    pack_library
    pack_development
    [ -z "${TOOL:-}" ] || pack_command
}

look() {
    for tool in dpkg-deb readelf nm gzip "${STRIP:-strip}"; do
        command -v "$tool" > /dev/null 2>&1 || give_up "there is no $tool"
    done
    [ "${version%-*}" = "$upstream" ] || give_up "packaging/debian/changelog begins with $version, Cargo.toml has $upstream"
    arch=$(dpkg --print-architecture)
    multiarch=$("${CC:-cc}" -print-multiarch 2> /dev/null || true)
    [ -n "$multiarch" ] || multiarch=$(uname -m)-linux-gnu
}

give_up() {
    echo "deb: $*" >&2
    exit 1
}

# Installs everything into one tree, and then distributes it to the packages.
stage() {
    dev=$scratch/dev lib=$scratch/lib
    env -u INCLUDEDIR -u MANDIR PREFIX=/usr LIBDIR="lib/$multiarch" DESTDIR="$dev" \
        sh "$here/packaging/install.sh" install "$build" > /dev/null
    from=usr/lib/$multiarch
    mkdir -p "$lib/$from"
    mv "$dev/$from/libredlock.so.$interface" "$dev/$from/libredlock.so.$upstream" "$lib/$from/"
    chmod 644 "$lib/$from/libredlock.so.$upstream"
    "${STRIP:-strip}" --strip-unneeded -R .comment -R .note "$lib/$from/libredlock.so.$upstream"
    # These are default directories. With the prefix /usr, pkg-config recognizes them and leaves their flags out.
    sed "s|^prefix=.*|prefix=/usr|" "$dev/$from/pkgconfig/redlock.pc" > "$scratch/redlock.pc"
    cat "$scratch/redlock.pc" > "$dev/$from/pkgconfig/redlock.pc"
    press_manual
    [ -z "${TOOL:-}" ] || move_command
}

# Moves the command and the files that belong to it.
move_command() {
    tool=$scratch/tool
    mkdir -p "$tool/usr/share/man"
    mv "$dev/usr/bin" "$tool/usr/"
    mv "$dev/usr/share/man/man1" "$tool/usr/share/man/"
    mv "$dev/usr/share/bash-completion" "$dev/usr/share/fish" "$tool/usr/share/"
    # Debian's zsh uses another directory.
    mkdir -p "$tool/usr/share/zsh/vendor-completions"
    mv "$dev/usr/share/zsh/site-functions/_redlock" "$tool/usr/share/zsh/vendor-completions/"
    rm -r "$dev/usr/share/zsh"
    "${STRIP:-strip}" --strip-unneeded -R .comment -R .note "$tool/usr/bin/redlock"
}

press_manual() {
    find "$dev/usr/share/man" -type f -exec gzip -9n {} +
    find "$dev/usr/share/man" -type l | while read -r page; do
        ln -s "$(readlink "$page").gz" "$page.gz"
        rm "$page"
    done
}

# Packages that use a symbol depend on the version that introduced it.
check_symbols() {
    sed -n 's/^ \(.*\)@Base .*/\1/p' "$debian/symbols" | LC_ALL=C sort > "$scratch/listed"
    nm -D --defined-only "$lib/$from/libredlock.so.$upstream" | sed 's/.* //' | LC_ALL=C sort > "$scratch/exported"
    diff "$scratch/listed" "$scratch/exported" >&2 || give_up "packaging/debian/symbols does not list what \
the library exports: to what is new (>) add the version that brings it, as ' NAME@Base $upstream'"
}

pack_library() {
    add_documents "$lib" "$library"
    sh "$here/packaging/licences.sh" > "$scratch/licences"
    gzip -9n < "$scratch/licences" > "$lib/usr/share/doc/$library/crates.gz"
    mkdir "$lib/DEBIAN"
    fill_in < "$debian/symbols" > "$lib/DEBIAN/symbols"
    echo "libredlock $interface $library (>= ${version%-*})" > "$lib/DEBIAN/shlibs"
    echo 'activate-noawait ldconfig' > "$lib/DEBIAN/triggers"
    pack "$lib" "$debian/control.lib" "$library"
}

pack_development() {
    add_documents "$dev" libredlock-dev
    examples=$dev/usr/share/doc/libredlock-dev/examples
    install -d "$examples"
    add_examples c-examples -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.sh'
    add_examples bindings -name '*.go' -o -name go.mod -o -name '*.rb' -o -name '*.py' -o -name py.typed \
        -o -name '*.js' -o -name '*.d.ts' -o -name '*.c' -o -name package.json
    (cd "$here" && find README.md README.zh-CN.md docs -type f ! -path 'docs/internals/*') | while read -r page; do
        install -D -m 644 "$here/$page" "$dev/usr/share/doc/libredlock-dev/$page"
    done
    mkdir "$dev/DEBIAN"
    pack "$dev" "$debian/control.dev" libredlock-dev
}

# Usage: add_examples FOLDER FIND_CONDITION...: the files of the folder, without tests and what was built there.
add_examples() {
    folder=$1
    shift
    (cd "$here/$folder" && find . \( -name tests -o -name node_modules -o -name build \) -prune -o -type f \( "$@" \) -print) \
        | while read -r example; do
            install -D -m 644 "$here/$folder/$example" "$examples/$example"
        done
}

pack_command() {
    add_documents "$tool" redlock
    sh "$here/packaging/licences.sh" redlock-cli > "$scratch/licences"
    gzip -9n < "$scratch/licences" > "$tool/usr/share/doc/redlock/crates.gz"
    mkdir "$tool/DEBIAN"
    linked=$tool/usr/bin/redlock
    pack "$tool" "$debian/control.tool" redlock
}

add_documents() {
    documents=$1/usr/share/doc/$2
    install -d "$documents"
    install -m 644 "$debian/copyright" "$documents/copyright"
    gzip -9n < "$debian/changelog" > "$documents/changelog.Debian.gz"
    gzip -9n < "$here/CHANGELOG.md" > "$documents/changelog.gz"
    install -d "$1/usr/share/lintian/overrides"
    sed "s/@PACKAGE@/$2/" "$debian/lintian-overrides" > "$1/usr/share/lintian/overrides/$2"
}

# Usage: pack TREE CONTROL NAME
pack() {
    (cd "$1" && find . -path ./DEBIAN -prune -o -type f -print | LC_ALL=C sort | sed 's|^\./||' \
        | xargs md5sum > "$scratch/md5sums")
    # As Debian counts: a file counts in whole KiB, and anything else as one.
    size=$(find "$1" -path "$1/DEBIAN" -prune -o -printf '%y %s\n' \
        | awk '{ all += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print all }')
    cp "$scratch/md5sums" "$1/DEBIAN/md5sums"
    fill_in < "$2" > "$1/DEBIAN/control"
    package=$output/$3_${version}_$arch.deb
    dpkg-deb --root-owner-group -Zxz --build "$1" "$package" > /dev/null
    echo "$package"
}

fill_in() {
    sed -e "s/@LIBRARY@/$library/g" -e "s/@INTERFACE@/$interface/g" -e "s/@VERSION@/$version/g" \
        -e "s/@ARCH@/$arch/" -e "s/@MAINTAINER@/$maintainer/" -e "s/@SIZE@/${size:-0}/" \
        -e "s/@DEPENDS@/$(depends)/"
}

# The oldest versions of glibc and libgcc that have everything that the library, or the command, needs from them.
depends() {
    readelf -V --wide "${linked:-$lib/$from/libredlock.so.$upstream}" > "$scratch/versions"
    newest() {
        grep -o "Name: $1_[0-9.]*" "$scratch/versions" | sed 's/.*_//' | sort -t . -k 1,1n -k 2,2n -k 3,3n | tail -n 1
    }
    printf 'libc6 (>= %s), libgcc-s1 (>= %s)' "$(newest GLIBC)" "$(newest GCC)"
}

main
