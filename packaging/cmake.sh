#!/bin/sh
# Writes the CMake package. Usage: cmake.sh PREFIX LIBDIR INCLUDEDIR, and DESTDIR in the environment.
#
# The package is in LIBDIR/cmake/redlock. It refers to the headers by a relative path, or by a full path if either
# directory is outside PREFIX. If CMake is given PREFIX but does not search LIBDIR, two files in
# PREFIX/share/cmake lead there.
set -eu
here=$(dirname "$0")
. "$here/paths.sh"
prefix=$1 libdir=$2 includedir=$3
package=${DESTDIR:-}$libdir/cmake/redlock
leads=${DESTDIR:-}${prefix%/}/share/cmake/redlock

main() {
    install -d "$package"
    sed "s|^set(_redlock_headers .*|set(_redlock_headers \"$(for_sed "$(way_to_headers)")\")|" \
        "$here/cmake/redlock-config.cmake" > "$package/redlock-config.cmake"
    cat "$here/cmake/redlock-config-version.cmake" > "$package/redlock-config-version.cmake"
    chmod 644 "$package"/*
    cmake_looks_there || lead_there
}

way_to_headers() {
    if lies_in "$prefix" "$libdir" && lies_in "$prefix" "$includedir"; then
        printf '../..%s%s' "$(steps_up "$prefix" "$libdir")" "$(rest_of "$prefix" "$includedir")"
    else
        for_cmake "$includedir"
    fi
}

# Debian has a directory for each architecture inside lib. Other systems have lib64 and similar directories beside
# it.
cmake_looks_there() {
    below=
    ! lies_in "$prefix" "$libdir" || below=$(rest_of "$prefix" "$libdir")
    case $below in
    /lib) ;;
    /lib/*-*-*) [ -e /etc/debian_version ] ;;
    /lib64 | /lib32 | /libx32) [ ! -e /etc/debian_version ] ;;
    *) return 1 ;;
    esac
}

# The dollar sign is for CMake.
# shellcheck disable=SC2016
lead_there() {
    if lies_in "$prefix" "$libdir"; then
        way='${CMAKE_CURRENT_LIST_DIR}/../../..'$(for_cmake "$(rest_of "$prefix" "$libdir")")
    else
        way=$(for_cmake "$libdir")
    fi
    install -d "$leads"
    for file in redlock-config.cmake redlock-config-version.cmake; do
        printf 'include("%s/cmake/redlock/%s")\n' "$way" "$file" > "$leads/$file"
        chmod 644 "$leads/$file"
    done
}

# Escapes text for a quoted CMake string.
for_cmake() {
    printf '%s' "$1" | sed 's/["\\$]/\\&/g'
}

main
