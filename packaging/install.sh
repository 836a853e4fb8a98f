#!/bin/sh
# Lays the library down in a tree, or takes it out again.
#
# Usage: install.sh install|uninstall|link BUILD_DIRECTORY
#
# link lets programs that were linked in the build directory find the library there.
#
# Environment: PREFIX, DESTDIR, LIBDIR, INCLUDEDIR. A LIBDIR or INCLUDEDIR that is not absolute is
# below PREFIX. DESTDIR is put in front of every path that is written, and in no file's content.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
action=$1
build=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)

main() {
    prefix=$(absolute "$(pwd)" "${PREFIX:-/usr/local}")
    libdir=$(absolute "$prefix" "${LIBDIR:-lib}")
    includedir=$(absolute "$prefix" "${INCLUDEDIR:-include}")
    to_lib=${DESTDIR:-}$libdir
    to_include=${DESTDIR:-}$includedir
    name_libraries
    case $action in
    install) lay_down ;;
    uninstall) take_out ;;
    link) ln -sf "$linked" "$build/$wanted" ;;
    *) echo "install.sh: unknown action: $action" >&2; exit 2 ;;
    esac
}

# Without a slash at the end, as the .pc file wants it.
absolute() {
    case $2 in
    /*) printf '%s' "$2" ;;
    *) printf '%s/%s' "$1" "$2" ;;
    esac | sed -e 's|//*|/|g' -e 's|\(.\)/$|\1|'
}

# As build.rs: until 1.0 a minor version may change the interface, from then on only a major one.
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
    install -d "$to_lib/pkgconfig" "$to_include/redlock-cpp"
    install -m 755 "$build/$linked" "$to_lib/$real"
    ln -sf "$real" "$to_lib/$wanted"
    ln -sf "$wanted" "$to_lib/$linked"
    install -m 644 "$build/libredlock.a" "$to_lib/libredlock.a"
    install -m 644 "$here/include/redlock.h" "$here/include/redlock.hpp" "$to_include/"
    install -m 644 "$here/include/redlock-cpp/redlock.h" "$to_include/redlock-cpp/redlock.h"
    sh "$here/packaging/pkg-config.sh" "$version" "$prefix" "$libdir" "$includedir" \
        < "$here/packaging/redlock.pc.in" > "$to_lib/pkgconfig/redlock.pc"
    chmod 644 "$to_lib/pkgconfig/redlock.pc"
    tell_the_dynamic_linker
    echo "redlock $version is installed in $to_lib and $to_include"
}

# Without this a library in /usr/local/lib is not found by programs before the next boot.
tell_the_dynamic_linker() {
    if [ -z "${DESTDIR:-}" ] && [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ]; then
        PATH=$PATH:/sbin:/usr/sbin ldconfig || echo "install.sh: ldconfig failed" >&2
    fi
}

take_out() {
    rm -f "$to_lib/$linked" "$to_lib/$wanted" "$to_lib/$real" "$to_lib/libredlock.a" \
        "$to_lib/pkgconfig/redlock.pc" \
        "$to_include/redlock.h" "$to_include/redlock.hpp" "$to_include/redlock-cpp/redlock.h"
    # Directories that others may use stay, unless nobody does.
    for directory in "$to_include/redlock-cpp" "$to_lib/pkgconfig"; do
        rmdir "$directory" 2>/dev/null || true
    done
    tell_the_dynamic_linker
    echo "redlock $version is removed from $to_lib and $to_include"
}

main
