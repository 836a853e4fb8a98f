#!/bin/sh
# Prints redlock.pc. Usage: pkg-config.sh VERSION PREFIX LIBDIR INCLUDEDIR < redlock.pc.in
#
# A path below PREFIX is relative to the .pc file, so that an installed tree can be moved. Any other path is a
# full path.
set -eu
. "$(dirname "$0")/paths.sh"
version=$1 prefix=$2 libdir=$3 includedir=$4

# The system libraries that the static library needs. The compiler adds libc and the unwinder itself, in the
# static or dynamic form that fits the program.
case $(uname -s) in
Darwin) native_libs='-framework Security -framework CoreFoundation -liconv -lm' ;;
*) native_libs='-lutil -lrt -lpthread -lm -ldl' ;;
esac

# The dollar signs are for pkg-config.
# shellcheck disable=SC2016
under_prefix() {
    if lies_in "$prefix" "$1"; then
        printf '${prefix}%s' "$(rest_of "$prefix" "$1" | for_pkg_config)"
    else
        printf '%s' "$1" | for_pkg_config
    fi
}

# The way from LIBDIR/pkgconfig up to PREFIX.
# shellcheck disable=SC2016
way_to_prefix() {
    if lies_in "$prefix" "$libdir"; then
        printf '${pcfiledir}/..%s' "$(steps_up "$prefix" "$libdir")"
    else
        printf '%s' "$prefix" | for_pkg_config
    fi
}

# Escapes text, because pkg-config splits flags as a shell does.
for_pkg_config() {
    sed "s/[] \"'#&()*;<>?[\\\\\`|\$]/\\\\&/g"
}

sed -e "s|@PREFIX@|$(for_sed "$(way_to_prefix)")|" \
    -e "s|@LIBDIR@|$(for_sed "$(under_prefix "$libdir")")|" \
    -e "s|@INCLUDEDIR@|$(for_sed "$(under_prefix "$includedir")")|" \
    -e "s|@VERSION@|$version|" \
    -e "s|@NATIVE_LIBS@|$native_libs|"
