#!/bin/sh
# Installs the library into a tree, or removes it again.
#
# Usage: install.sh install|uninstall|link BUILD_DIRECTORY
#
# link lets programs that were linked in the build directory find the library there.
#
# Environment: PREFIX, DESTDIR, BINDIR, LIBDIR, INCLUDEDIR, MANDIR. If one of the last four is not absolute, it is
# below PREFIX. TOOL is the built command; without it, no command is installed. DESTDIR is put in front of every
# path that is written, but appears in no file's content. static.sh uses further variables.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/packaging/paths.sh"
action=$1
build=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)

# Below share, where shells look for completions.
completions='bash-completion/completions/redlock zsh/site-functions/_redlock fish/vendor_completions.d/redlock.fish'

main() {
    prefix=$(absolute "$(pwd)" "${PREFIX:-/usr/local}")
    bindir=$(absolute "$prefix" "${BINDIR:-bin}")
    libdir=$(absolute "$prefix" "${LIBDIR:-lib}")
    includedir=$(absolute "$prefix" "${INCLUDEDIR:-include}")
    mandir=$(absolute "$prefix" "${MANDIR:-share/man}")
    to_bin=${DESTDIR:-}$bindir
    to_lib=${DESTDIR:-}$libdir
    to_include=${DESTDIR:-}$includedir
    to_man=${DESTDIR:-}$mandir
    to_share=${DESTDIR:-}${prefix%/}/share
    name_libraries
    case $action in
    install) lay_down ;;
    uninstall) take_out ;;
    link) ln -sf "$linked" "$build/$wanted" ;;
    *) echo "install.sh: unknown action: $action" >&2; exit 2 ;;
    esac
}

# Makes a path absolute, without redundant parts. A path that begins with ~ was meant to be expanded by a shell.
absolute() {
    # shellcheck disable=SC2088
    case $2 in
    /*) printf '%s/' "$2" ;;
    '~' | '~/'*) printf '%s%s/' "$HOME" "${2#?}" ;;
    *) printf '%s/%s/' "$1" "$2" ;;
    esac | sed -e 's|//*|/|g' -e ':again' -e 's|/\./|/|' -e 't again' \
        -e ':up' -e 's|/[^/]*[^/.][^/]*/\.\./|/|' -e 't up' -e 's|\(.\)/$|\1|'
}

# As in build.rs: until 1.0, a minor version may change the interface. After that, only a major version may.
name_libraries() {
    case $version in
    0.*) interface=${version%.*} ;;
    *) interface=${version%%.*} ;;
    esac
    case $(uname -s) in
    Darwin)
        linked=libredlock.dylib
        wanted=libredlock.$interface.dylib
        real=libredlock.$version.dylib
        ;;
    *)
        linked=libredlock.so
        wanted=libredlock.so.$interface
        real=libredlock.so.$version
        ;;
    esac
}

lay_down() {
    check_place
    for built in "$linked" libredlock.a; do
        [ -f "$build/$built" ] || give_up "there is no $build/$built: was the build for another target?"
    done
    install -d "$to_lib/pkgconfig" "$to_include/redlock-cpp" "$to_man/man3" "$to_man/man7"
    install -m 755 "$build/$linked" "$to_lib/$real"
    ln -sf "$real" "$to_lib/$wanted"
    ln -sf "$wanted" "$to_lib/$linked"
    sh "$here/packaging/static.sh" "$build/libredlock.a" "$to_lib/libredlock.a"
    install -m 644 "$here/include/redlock.h" "$here/include/redlock.hpp" "$to_include/"
    install -m 644 "$here/include/redlock-cpp/redlock.h" "$to_include/redlock-cpp/redlock.h"
    write_package_files
    lay_down_manual
    [ -z "${TOOL:-}" ] || lay_down_tool
    tell_the_dynamic_linker
    echo "redlock $version is installed in $to_lib, $to_include and $to_man${TOOL:+, and the command redlock in $to_bin}"
    say_what_is_to_be_told
}

# If pkg-config does not search there by itself, the dynamic linker may not, either.
say_what_is_to_be_told() {
    [ -z "${DESTDIR:-}" ] || return 0
    looks=$(pkg-config --variable pc_path pkg-config 2>/dev/null) || return 0
    case :$looks:${PKG_CONFIG_PATH:-}: in
    *":$libdir/pkgconfig:"*) ;;
    *) echo "for pkg-config: PKG_CONFIG_PATH=$libdir/pkgconfig, and for programs: LD_LIBRARY_PATH=$libdir" ;;
    esac
}

# The first existing directory on the way to the target must be writable.
check_place() {
    place=$to_lib
    while [ ! -e "$place" ]; do
        place=$(dirname "$place")
    done
    if ! [ -d "$place" ] || ! [ -w "$place" ]; then
        give_up "cannot write to $place: be root, or name a PREFIX of your own, such as PREFIX=\$HOME/.local"
    fi
}

give_up() {
    echo "install.sh: $*" >&2
    exit 1
}

write_package_files() {
    sh "$here/packaging/pkg-config.sh" "$version" "$prefix" "$libdir" "$includedir" \
        < "$here/packaging/redlock.pc.in" > "$to_lib/pkgconfig/redlock.pc"
    chmod 644 "$to_lib/pkgconfig/redlock.pc"
    DESTDIR=${DESTDIR:-} sh "$here/packaging/cmake.sh" "$prefix" "$libdir" "$includedir"
}

lay_down_manual() {
    for page in "$here"/man/*.[37]; do
        to=$to_man/man${page##*.}
        if [ -L "$page" ]; then
            ln -sf "$(readlink "$page")" "$to/${page##*/}"
        else
            install -m 644 "$page" "$to/"
        fi
    done
}

lay_down_tool() {
    [ -f "$TOOL" ] || give_up "there is no $TOOL: make tool"
    install -d "$to_bin" "$to_man/man1"
    install -m 755 "$TOOL" "$to_bin/redlock"
    install -m 644 "$here/tool/redlock.1" "$to_man/man1/"
    for completion in $completions; do
        install -d "$to_share/${completion%/*}"
        install -m 644 "$here/tool/completions/${completion%%/*}/${completion##*/}" "$to_share/$completion"
    done
}

# Without this, programs do not find a library in /usr/local/lib before the next boot.
tell_the_dynamic_linker() {
    if [ -z "${DESTDIR:-}" ] && [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ]; then
        PATH=$PATH:/sbin:/usr/sbin ldconfig || echo "install.sh: ldconfig failed" >&2
    fi
}

take_out() {
    rm -f "$to_lib/$linked" "$to_lib/$wanted" "$to_lib/$real" "$to_lib/libredlock.a" \
        "$to_lib/pkgconfig/redlock.pc" \
        "$to_include/redlock.h" "$to_include/redlock.hpp" "$to_include/redlock-cpp/redlock.h"
    for page in "$here"/man/*.[37]; do
        rm -f "$to_man/man${page##*.}/${page##*/}"
    done
    rm -f "$to_bin/redlock" "$to_man/man1/redlock.1"
    for completion in $completions; do
        rm -f "$to_share/$completion"
        # Removes the shell's directory, too, if it is empty.
        rmdir "$to_share/${completion%/*}" "$to_share/${completion%%/*}" 2>/dev/null || true
    done
    for cmake in "$to_lib/cmake" "$to_share/cmake"; do
        rm -f "$cmake/redlock/redlock-config.cmake" "$cmake/redlock/redlock-config-version.cmake"
    done
    take_out_directories
    tell_the_dynamic_linker
    echo "redlock $version is removed from $to_lib, $to_include and $to_man"
}

# Removes directories that others may use, if they are empty. Directories that a new system has always stay.
take_out_directories() {
    for directory in "$to_include/redlock-cpp" "$to_lib/pkgconfig" "$to_lib/cmake/redlock" "$to_lib/cmake" \
        "$to_share/cmake/redlock" "$to_share/cmake" "$to_man/man1" "$to_man/man3" "$to_man/man7"; do
        rmdir "$directory" 2>/dev/null || true
    done
    case ${DESTDIR:-}$prefix in
    / | /usr | /usr/local) return 0 ;;
    esac
    for directory in "$to_bin" "$to_lib" "$to_include" "$to_man" "$to_share"; do
        [ "$directory" != "${DESTDIR:-}$prefix" ] || continue
        while rmdir "$directory" 2>/dev/null && lies_in "${DESTDIR:-}$prefix" "${directory%/*}"; do
            directory=${directory%/*}
        done
    done
    [ "${DESTDIR:-}$prefix" = "${HOME:-/}" ] || rmdir "${DESTDIR:-}$prefix" 2>/dev/null || true
}

main
